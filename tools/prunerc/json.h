// The stable, documented JSON of the verbs, and a few texts they share.
#ifndef PRUNERC_TOOLS_PRUNERC_JSON_H_
#define PRUNERC_TOOLS_PRUNERC_JSON_H_

#include "ir/support/result.h"
#include "ir/target.h"
#include "search/tune/tuner.h"
#include "tools/driver/algebra.h"
#include "tools/driver/limits.h"
#include "tools/driver/network/network_rank.h"

#include <optional>
#include <span>
#include <string>

namespace prunerc::cli {

/// One line, as tools/FORMS.md has it: schema "prunerc.tune/1". `shares` and, with --algebra,
/// `outcomes` have one of each task; `ranked` is of a net, empty where ranking was left out.
std::string tune_json(const search::TuneReport& report, std::span<const LimitShare> shares,
                      const std::string& repro, const std::optional<RankReport>* ranked = nullptr,
                      std::span<const AlgebraOutcome> outcomes = {});

/// "90s", "10m", "1h", "45" (seconds) of an option. Units: seconds. Errors: UsageOption.
Result<double> parse_duration(const std::string& text, const std::string& option = "--time");
/// The same in ns, at least 1; 0 of an empty text.
Result<int64_t> parse_limit_ns(const std::string& text, const std::string& option);

/// On one line and in ASCII, also where a text in it is no UTF-8.
template <typename Json>
std::string json_line(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

/// "equal to 2^-64 (3 tests), normal rounding": what is known of a derived program.
std::string proof_text(const search::DerivedLink& link);

/// "cpu znver4, 64-byte vectors, 2 threads, 268 GFLOP/s a thread": one line for people.
std::string describe(const ir::Target& target);

}  // namespace prunerc::cli

#endif  // PRUNERC_TOOLS_PRUNERC_JSON_H_

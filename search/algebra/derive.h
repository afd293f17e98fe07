// derive: other programs that compute the same as an operator's, each shown to be equal.
#ifndef PRUNERC_SEARCH_ALGEBRA_DERIVE_H_
#define PRUNERC_SEARCH_ALGEBRA_DERIVE_H_

#include "ir/fpv/fpv.h"
#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/target.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::search::algebra {

/// Where forms come from; bits of a set.
enum class Rule : uint8_t { kOrder = 1, kAxis = 2, kBank = 4, kWinograd = 8, kCascade = 16 };
using RuleSet = uint8_t;
inline constexpr RuleSet kAllRules = 31;
std::string_view to_string(Rule rule);

/// What rounding may differ: kStrict: the order of sums, products and divisions; kNormal: as the operator itself
/// may err, four times over; kLoose: more (Winograd).
enum class NumericClass : uint8_t { kStrict, kNormal, kLoose };
std::string_view to_string(NumericClass numeric);

struct Derived {
  ir::Program program;  // unscheduled, same parameters as the operator's
  std::string recipe;   // in words: "A*B first"
  RuleSet rules = 0;    // that made it
  double flops = 0, bytes = 0;
  double limit_ns = 0;  // of all its nests one after the other (roofline.h)
  ir::FpvVerdict verdict;
  NumericClass numerics = NumericClass::kStrict;
};

struct DeriveOptions {
  RuleSet rules = kAllRules;
  NumericClass numerics = NumericClass::kNormal;  // the loosest that is wanted
  int keep = 6;                                   // forms at most
  double seconds = 10;                            // then what is left is not tried
  int max_ops = 11;                               // of a form that the bank makes
  int bank = 4096;                                // terms that it holds
  double log2_error = -40;
  uint64_t seed = 1;
};

struct DeriveReport {
  double spec_flops = 0, spec_bytes = 0, spec_limit_ns = 0;
  std::vector<Derived> forms;                 // fastest limit first
  int64_t tried = 0, filtered = 0, kept = 0;  // terms of the search
  std::vector<std::string> refused;           // forms that a check turned down, and why
  double seconds = 0;
  bool stopped = false;  // by DeriveOptions::seconds: not all was tried or checked
};

/// Deterministic in (spec, target, options) unless `seconds` ends it. One thread.
/// Errors: those of lift.
Result<DeriveReport> derive(const ir::Program& spec, const ir::Target& target,
                            const DeriveOptions& options = {});

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_DERIVE_H_

// Every expected failure: an id from diag.def, where it happened, and up to three small arguments.
#ifndef PRUNERC_IR_SUPPORT_DIAG_H_
#define PRUNERC_IR_SUPPORT_DIAG_H_

#include "ir/support/ids.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace prunerc {

enum class Diag : uint16_t {
#define PRUNERC_DIAG(name, text) k##name,
#include "ir/support/diag.def"
#undef PRUNERC_DIAG
};

/// "SplitFactorMismatch".
std::string_view diag_name(Diag id);
/// The message with {} for each argument.
std::string_view diag_text(Diag id);

/// Where in a text or in a program a failure lies. Lines and columns count from 1; 0 means unknown.
struct Locus {
  int32_t line = 0;
  int32_t column = 0;
  bool operator==(const Locus&) const = default;
};

using DiagArg = std::variant<std::monostate, int64_t, double, ir::LoopId, ir::BlockId, ir::BufferId,
                             std::string>;

/// What is known of one failure. Text is made only by message().
struct ErrorData {
  Diag id = Diag::kInternal;
  Locus locus;
  std::array<DiagArg, 3> args;
  std::string detail;  // long text such as a compiler's log; empty for most
};

/// Renders the row's text with its arguments: "split factors multiply to 9, but loop @L0 has extent
/// 10". A known locus is put in front as "line:column: ", a detail is appended on a new line.
std::string message(const ErrorData& error);

}  // namespace prunerc

#endif  // PRUNERC_IR_SUPPORT_DIAG_H_

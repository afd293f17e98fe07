// Debugging switches from the environment, parsed once: what to dump, to time and to leave out.
#ifndef PRUNERC_IR_SUPPORT_OPTIONS_H_
#define PRUNERC_IR_SUPPORT_OPTIONS_H_

#include "ir/support/result.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc {

struct DebugOptions {
  std::vector<std::string> dump;  // items as written
  std::string dump_dir;           // empty: dumps go to stderr
  bool time_passes = false;
  int64_t max_optional_passes = -1;  // negative: no limit

  /// Whether "after:lower/lower_init" (say) is asked for, by its name or by "after:lower/*".
  bool wants_dump(std::string_view item) const;
};

/// One row of options.def, for `prunerc --help-debug`.
struct DebugOptionRow {
  std::string_view variable;
  std::string_view form;
  std::string_view meaning;
};
std::span<const DebugOptionRow> debug_option_rows();

/// Reads the switches through `lookup` (variable -> text, nullptr if unset).
/// Errors: UsageOption, naming the variable and the form that it wants.
Result<DebugOptions> parse_debug_options(const std::function<const char*(const char*)>& lookup);

/// Those of this process, read at the first call. A malformed one is reported on stderr once and
/// has no effect: an embedding program must not fail because of it (the command line refuses to
/// start).
const DebugOptions& debug_options();

/// Writes a dump to stderr under a heading, or to dump_dir/NAME with '/' as '-'. A file that cannot
/// be written is reported on stderr.
void write_dump(std::string_view name, std::string_view text);

}  // namespace prunerc

#endif  // PRUNERC_IR_SUPPORT_OPTIONS_H_

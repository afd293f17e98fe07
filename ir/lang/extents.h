// The extents solver: which indices and dimensions are equal, and how large each is.
#ifndef PRUNERC_IR_LANG_EXTENTS_H_
#define PRUNERC_IR_LANG_EXTENTS_H_

#include "ir/lang/typed.h"

#include <optional>
#include <string>
#include <vector>

namespace prunerc::lang {

/// Union-find over unknown extents. Two different values for one class are reported where they
/// meet.
class Extents {
 public:
  explicit Extents(DiagSink& sink) : sink_(sink) {}

  /// A new unknown; `what` names it in messages: "the extent of 'i'".
  Unknown make(std::string what, SourceRange range);
  /// `unknown` has this value because of the text at `range`.
  void fix(Unknown unknown, int64_t value, SourceRange range);
  /// Both are equal because of the text at `range`.
  void equate(Unknown a, Unknown b, SourceRange range);

  std::optional<int64_t> value(Unknown unknown);
  /// True once for each class without a value, so that one message is given for it; false if an
  /// error was reported.
  bool claim_unsolved(Unknown unknown);

 private:
  struct Class {
    Unknown parent;
    std::string what;
    SourceRange range;  // of the unknown itself
    std::optional<int64_t> value;
    SourceRange value_range;  // where the value came from
    bool is_reported = false;
  };
  Unknown find(Unknown unknown);
  void report_conflict(Unknown unknown, int64_t value, SourceRange range);

  std::vector<Class> classes_;
  DiagSink& sink_;
};

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_EXTENTS_H_

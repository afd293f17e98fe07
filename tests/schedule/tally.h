// How many cases of the tables in this folder each primitive has, accepted and refused: a primitive
// is described by what it refuses as much as by what it does.
#ifndef PRUNERC_TESTS_SCHEDULE_TALLY_H_
#define PRUNERC_TESTS_SCHEDULE_TALLY_H_

#include "schedule/trace/trace.h"

#include <array>
#include <cstddef>
#include <ostream>

namespace prunerc::testing {

/// Cases by their last step; the steps before it only prepare its program.
class Tally {
 public:
  /// Every primitive has this many cases or more,
  static constexpr int kFewest = 5;
  /// of which at least this part are refusals; so have all of them together.
  static constexpr double kRefused = 0.35;

  void accept(schedule::PrimitiveKind kind) { ++counts_[index(kind)].accepted; }
  void refuse(schedule::PrimitiveKind kind) { ++counts_[index(kind)].refused; }
  /// Prints a line for each primitive that has too few; the number of such lines.
  int report(std::ostream& out) const;

 private:
  struct Count {
    int accepted = 0;
    int refused = 0;
  };
  static std::size_t index(schedule::PrimitiveKind kind) { return static_cast<std::size_t>(kind); }
  std::array<Count, 64> counts_;
};

/// The tally of this process.
Tally& tally();

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SCHEDULE_TALLY_H_

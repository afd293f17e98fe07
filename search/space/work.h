// Work: what one run of an operator does, as people are told.
#ifndef PRUNERC_SEARCH_SPACE_WORK_H_
#define PRUNERC_SEARCH_SPACE_WORK_H_

#include "ir/program.h"

namespace prunerc::search {

/// What one run does, in full. Searches, cost models and pools go by Task::flops and Task::bytes,
/// whose meaning is fixed by what was trained on and recorded.
struct Work {
  double float_ops = 0;
  double integer_ops =
      0;  // on data; arithmetic of subscripts, also of those by data, does not count
  /// Parameters once; but an input that is read at data-dependent subscripts alone counts as many
  /// elements as such reads there are, at most all: a gather need not move its whole table.
  double bytes = 0;
  /// Mostly integer operations: its rate counts all of them, else those on floats alone.
  bool is_integer() const { return integer_ops > float_ops; }
  double rated_ops() const { return is_integer() ? float_ops + integer_ops : float_ops; }
};

/// Of an unscheduled program; 0 for what cannot be counted.
Work work_of(const ir::Program& program);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_WORK_H_

// The part of a program that a few elements of an output need.
#ifndef PRUNERC_SCHEDULE_TWIN_SLICE_H_
#define PRUNERC_SCHEDULE_TWIN_SLICE_H_

#include "ir/arith/interval.h"
#include "ir/program.h"

#include <vector>

namespace prunerc::schedule {

/// Elements of a buffer, an interval of indices for each dimension.
struct ElementBox {
  ir::BufferId buffer;
  std::vector<ir::Interval> box;
};

/// The program with conditions that leave out what certainly writes none of the elements, nor
/// anything that they are made of. They get the values that the whole program gives them, whatever
/// that is: nothing is taken for granted about the program but its text. Loops stay, so that
/// threads and the lives of buffers are the same. What is left may be everything.
ir::Program slice(const ir::Program& program, const ElementBox& wanted);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_TWIN_SLICE_H_

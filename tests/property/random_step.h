// Random applications of schedule primitives: mostly plausible, some nonsense.
#ifndef PRUNERC_TESTS_PROPERTY_RANDOM_STEP_H_
#define PRUNERC_TESTS_PROPERTY_RANDOM_STEP_H_

#include "ir/support/rng.h"
#include "schedule/schedule.h"

namespace prunerc::testing {

struct RandomStep {
  schedule::Instruction instruction;
  schedule::Decision decision;  // of a sampling instruction
};

/// Operands of the right types, drawn from what the program has; one in forty steps names an id
/// that does not exist.
RandomStep random_step(const schedule::Schedule& s, Rng& rng);

/// Maps a random block onto a random tensor intrinsic in a random way, by the steps that this
/// takes; false, and nothing done, if no block has a mapping. Products of f32 have one.
bool random_mapping(schedule::Schedule& s, Rng& rng);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_PROPERTY_RANDOM_STEP_H_

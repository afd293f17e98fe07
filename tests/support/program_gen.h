// Random tensor programs for property tests: unscheduled, well-formed and free of undefined
// behaviour by construction.
#ifndef PRUNERC_TESTS_SUPPORT_PROGRAM_GEN_H_
#define PRUNERC_TESTS_SUPPORT_PROGRAM_GEN_H_

#include "ir/interp/tensor.h"
#include "ir/program.h"
#include "ir/support/rng.h"

#include <cstdint>
#include <vector>

namespace prunerc::testing {

/// What the generator prefers.
struct GenPolicy {
  int min_ops = 1;
  int max_ops = 4;
  int max_rank = 4;
  int64_t max_elements = 512;     // of one tensor
  int64_t max_iterations = 4096;  // of one block
  double odd_extents = 0.5;       // chance that an extent is 1 or a prime
  bool only_f32 = false;
  bool transcendental = true;  // exp, tanh, ...: outputs are then not whole numbers
  bool unusual = true;         // gathers, scans, two blocks that write one buffer
};

/// A policy of its own for each case: long and short programs, mostly odd or mostly even extents,
/// one type or all.
GenPolicy random_policy(Rng& rng);

/// With inputs of random_inputs every sum is exact in any order, so that results may be compared
/// bit by bit, and nothing overflows but integers, which wrap. The same generator state gives the
/// same program.
ir::Program random_program(Rng& rng, const GenPolicy& policy = {});

/// The same with some of its inputs const: at least one, if it has any.
ir::Program with_const_inputs(const ir::Program& program, Rng& rng);

/// Small whole numbers for every input of `program`.
std::vector<ir::Tensor> random_inputs(const ir::Program& program, Rng& rng);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SUPPORT_PROGRAM_GEN_H_

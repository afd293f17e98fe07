// Machines with given rates, on which forms are ranked alike wherever the tests run.
#ifndef PRUNERC_TESTS_SUPPORT_MACHINES_H_
#define PRUNERC_TESTS_SUPPORT_MACHINES_H_

#include "ir/target.h"

namespace prunerc::testing {

/// One thread of a Zen 4 with the rates that one had.
inline ir::Target measured_machine() {
  ir::Target target = *ir::target_from_string("cpu:znver4");
  target.platform.fma_gflops = 260;
  target.platform.l2_bandwidth = 250e9;
  target.platform.l3_bandwidth = 110e9;
  target.platform.memory_bandwidth = 40e9;
  target.num_threads = 1;
  return target;
}

/// Operations cost and bytes do not: at small extents memory would hide operations.
inline ir::Target slow_machine() {
  ir::Target target = *ir::target_from_string("cpu");
  target.num_threads = 1;
  target.platform.fma_gflops = 1;
  target.platform.l2_bandwidth = 1e15;
  target.platform.l3_bandwidth = 1e15;
  target.platform.memory_bandwidth = 1e15;
  return target;
}

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SUPPORT_MACHINES_H_

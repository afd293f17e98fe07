// Artifacts of test_kernels.cc, and a device whose workers are the test's own worker binary.
#ifndef PRUNERC_TESTS_RUNTIME_KERNELS_H_
#define PRUNERC_TESTS_RUNTIME_KERNELS_H_

#include "codegen/artifact.h"
#include "runtime/cpu/device.h"

#include <string>

namespace prunerc::runtime {

/// f32[1000] -> f32[1000]; `entry` is a function of test_kernels.cc.
codegen::Artifact test_artifact(const std::string& entry);

/// A checking job for it, with uniform input.
Job test_job(const codegen::Artifact& artifact);

/// Options with short limits.
WorkerOptions test_options(int num_threads = 1);

}  // namespace prunerc::runtime

#endif  // PRUNERC_TESTS_RUNTIME_KERNELS_H_

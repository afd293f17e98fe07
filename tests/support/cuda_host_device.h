// Emitted CUDA text in worker processes: plain in several orders, under the race checker, under the
// bounds checker.
#ifndef PRUNERC_TESTS_SUPPORT_CUDA_HOST_DEVICE_H_
#define PRUNERC_TESTS_SUPPORT_CUDA_HOST_DEVICE_H_

#include "codegen/artifact.h"
#include "codegen/cuda/host_object.h"
#include "runtime/cuda_host/device.h"

#include <span>
#include <string_view>

namespace prunerc::testing {

/// The command and limits of the worker that takes objects with this checker.
runtime::cuda_host::HostDeviceOptions host_device_options(codegen::HostChecker checker);

/// Compiles an artifact of kind kCudaSource and checks it (Check::kMemory) on these inputs, in a
/// worker that later calls of the same thread use again. A text that does not compile is
/// kBuildError. Status and detail are those of runtime::cuda_host::HostDevice; outputs are there if
/// the status is kOk.
runtime::JobOutcome check_source_on_host(const codegen::Artifact& source,
                                         std::span<const std::string_view> inputs,
                                         codegen::HostChecker checker);

/// The same for an object of that kind (codegen::build_host_object): one for several inputs.
runtime::JobOutcome check_object_on_host(const codegen::Artifact& object,
                                         std::span<const std::string_view> inputs,
                                         codegen::HostChecker checker);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SUPPORT_CUDA_HOST_DEVICE_H_

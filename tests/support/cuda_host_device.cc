#include "tests/support/cuda_host_device.h"

#include "tests/support/find_binary.h"

#include <string>

namespace prunerc::testing {

using codegen::HostChecker;
using runtime::cuda_host::HostDevice;
using runtime::cuda_host::HostDeviceOptions;

HostDeviceOptions host_device_options(HostChecker checker) {
  HostDeviceOptions options;
  const char* const binary = checker == HostChecker::kRace     ? "runtime/cuda_host/race_worker"
                             : checker == HostChecker::kBounds ? "runtime/cuda_host/bounds_worker"
                                                               : "tests/support/cuda_host_worker";
  options.worker_argv = {find_binary(binary), "__cuda_host_worker"};
  if (checker != HostChecker::kNone) options.memory = HostDeviceOptions::Memory::kUnlimited;
  return options;
}

runtime::JobOutcome check_object_on_host(const codegen::Artifact& object,
                                         std::span<const std::string_view> inputs,
                                         HostChecker checker) {
  thread_local HostDevice plain(host_device_options(HostChecker::kNone));
  thread_local HostDevice race(host_device_options(HostChecker::kRace));
  thread_local HostDevice bounds(host_device_options(HostChecker::kBounds));
  runtime::Job job;
  job.artifact = &object;
  job.want_outputs = true;
  for (const std::string_view input : inputs)
    job.inputs.push_back({.fill = runtime::Fill::kBytes, .seed = 0, .bytes = input});
  HostDevice& device = checker == HostChecker::kNone   ? plain
                       : checker == HostChecker::kRace ? race
                                                       : bounds;
  return device.run(job);
}

runtime::JobOutcome check_source_on_host(const codegen::Artifact& source,
                                         std::span<const std::string_view> inputs,
                                         HostChecker checker) {
  const Result<codegen::Artifact> object = codegen::build_host_object(source, {.checker = checker});
  if (object.ok()) return check_object_on_host(*object, inputs, checker);
  runtime::JobOutcome outcome;
  outcome.measurement.status = MeasureStatus::kBuildError;
  outcome.measurement.detail = object.error().message();
  return outcome;
}

}  // namespace prunerc::testing

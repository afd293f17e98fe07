#include "tests/support/cuda_host_device.h"

#include <filesystem>
#include <string>

namespace prunerc::testing {

using codegen::HostChecker;
using runtime::cuda_host::HostDevice;
using runtime::cuda_host::HostDeviceOptions;

namespace {

// Tests start in the root of their files; a benchmark starts anywhere, with the same tree above it.
std::string find_binary(const std::string& path) {
  if (std::filesystem::exists(path)) return path;
  std::error_code code;
  std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", code);
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    if (std::filesystem::exists(folder / path)) return (folder / path).string();
  }
  return path;
}

}  // namespace

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

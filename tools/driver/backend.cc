#include "tools/driver/backend.h"

#include "codegen/codegen.h"
#include "codegen/cuda/host_object.h"
#include "runtime/cpu/device.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda_host/device.h"
#include "tools/driver/platform.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace prunerc {
namespace {

codegen::NvrtcOptions nvrtc_options() {
  const std::string folder = cache_folder();
  return {folder.empty() ? "" : folder + "/cubins"};
}

}  // namespace

Result<CudaBuild> build_cubin(const ir::Program& scheduled, const ir::Target& target) {
  CudaBuild out;
  PRUNERC_TRY(out.artifact, codegen::print_cuda_artifact(scheduled, target));
  PRUNERC_TRY(out.cubin,
              codegen::compile_cubin(out.artifact.bytes, out.artifact.cpu, nvrtc_options()));
  out.artifact.kind = codegen::ArtifactKind::kCudaCubin;
  out.text = std::exchange(out.artifact.bytes, out.cubin.bytes);
  return out;
}

Result<codegen::Artifact> build_kernel(const ir::Program& scheduled, const ir::Target& target) {
  switch (target.kind) {
    case ir::TargetKind::kCpu: return codegen::compile_cpu(scheduled, target, {});
    case ir::TargetKind::kCuda: {
      PRUNERC_TRY(CudaBuild built, build_cubin(scheduled, target));
      return std::move(built.artifact);
    }
    case ir::TargetKind::kCudaHost: {
      PRUNERC_TRY(const codegen::Artifact source, codegen::print_cuda_artifact(scheduled, target));
      return codegen::build_host_object(source, {});
    }
  }
  PRUNERC_UNREACHABLE("target kind");
}

Candidate build_candidate(const ir::Program& scheduled, const ir::Target& target) {
  const auto rejected = [](MeasureStatus status, std::string why) {
    return Candidate{{}, status, std::move(why)};
  };
  const auto failed = [&](const Error& error) {
    const bool over = error.id() == Diag::kGpuLimit;
    return rejected(over ? MeasureStatus::kOverLimit : MeasureStatus::kBuildError, error.message());
  };
  if (target.kind != ir::TargetKind::kCuda) {
    Result<codegen::Artifact> artifact = build_kernel(scheduled, target);
    if (!artifact.ok()) return failed(artifact.error());
    return {std::move(*artifact), MeasureStatus::kOk, {}};
  }
  Result<CudaBuild> built = build_cubin(scheduled, target);
  if (!built.ok()) return failed(built.error());
  for (const codegen::SpillInfo& spill : built->cubin.spills) {
    const int64_t bytes = spill.spill_store_bytes + spill.spill_load_bytes;
    if (bytes == 0) continue;
    return rejected(MeasureStatus::kSpills,
                    fmt::format("kernel {} spills {} bytes", spill.kernel, bytes));
  }
  if (built->cubin.serializes_wgmma) {
    return rejected(MeasureStatus::kSerialized,
                    fmt::format("kernel {}: wgmma one after the other", built->artifact.entry));
  }
  return {std::move(built->artifact), MeasureStatus::kOk, {}};
}

ir::Target with_device(const ir::Target& target) {
  if (target.kind != ir::TargetKind::kCuda || runs_here(target)) return target;
  ir::Target host = target;
  host.kind = ir::TargetKind::kCudaHost;
  return host;
}

int64_t own_run_limit_ns(const ir::Target& target) {
  switch (target.kind) {
    case ir::TargetKind::kCpu: return runtime::WorkerOptions{}.run_limit_ns;
    case ir::TargetKind::kCuda: return runtime::cuda::CudaDeviceOptions{}.run_limit_ns;
    case ir::TargetKind::kCudaHost: return runtime::cuda_host::HostDeviceOptions{}.run_limit_ns;
  }
  PRUNERC_UNREACHABLE("target kind");
}

Result<std::unique_ptr<runtime::Device>> open_device(const ir::Target& target, int num_threads,
                                                     const std::vector<std::string>& worker_command,
                                                     int64_t run_limit_ns) {
  // A command is that of a CPU worker; the others are the same executable with another argument.
  std::optional<std::string> executable;
  if (!worker_command.empty()) executable = worker_command.front();
  if (target.kind == ir::TargetKind::kCpu) {
    PRUNERC_TRY_VOID(check_threads_here(num_threads));
    runtime::WorkerOptions options;
    options.num_threads = num_threads;
    if (run_limit_ns > 0) options.run_limit_ns = options.unchecked_run_limit_ns = run_limit_ns;
    if (!worker_command.empty()) options.worker_argv = worker_command;
    return std::unique_ptr<runtime::Device>(std::make_unique<runtime::CpuDevice>(options));
  }
  if (target.kind == ir::TargetKind::kCudaHost) {
    runtime::cuda_host::HostDeviceOptions options;
    if (run_limit_ns > 0) options.run_limit_ns = run_limit_ns;
    if (executable) options.worker_argv.front() = *executable;
    return std::unique_ptr<runtime::Device>(
        std::make_unique<runtime::cuda_host::HostDevice>(options));
  }
  runtime::cuda::CudaDeviceOptions options;
  if (run_limit_ns > 0) options.run_limit_ns = run_limit_ns;
  if (executable) options.worker_argv.front() = *executable;
  PRUNERC_TRY(std::unique_ptr<runtime::cuda::CudaDevice> device,
              runtime::cuda::CudaDevice::open(options));
  return std::unique_ptr<runtime::Device>(std::move(device));
}

Result<codegen::RaceReport> check_races(const ir::Program& scheduled, const ir::Target& target) {
  PRUNERC_TRY(const ir::Program lowered, codegen::lower_gpu(scheduled, target));
  return codegen::find_races(lowered);
}

}  // namespace prunerc

#include "tests/support/gpu.h"

#include "codegen/cuda/nvrtc.h"
#include "runtime/cuda/attributes.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/driver.h"
#include "tests/support/find_binary.h"

namespace prunerc::testing {
namespace {

using runtime::cuda::CudaDevice;

Result<std::unique_ptr<CudaDevice>>& device() {
  static Result<std::unique_ptr<CudaDevice>> opened =
      CudaDevice::open({.worker_argv = {find_binary("tests/support/gpu_worker"), "__cuda_worker"}});
  return opened;
}

/// "sm_90a": what this GPU's code is compiled for.
Result<std::string> find_arch() {
  PRUNERC_TRY(const runtime::cuda::Driver* const api, runtime::cuda::driver());
  PRUNERC_TRY(const runtime::cuda::DeviceDescription gpu, runtime::cuda::describe_device(*api));
  return gpu.target.name.substr(gpu.target.name.find(':') + 1);
}

}  // namespace

std::string why_no_gpu() {
  if (!device().ok()) return device().error().message();
  const Result<codegen::NvrtcInfo> nvrtc = codegen::nvrtc_info();
  return nvrtc.ok() ? "" : nvrtc.error().message();
}

runtime::JobOutcome check_source_on_gpu(const codegen::Artifact& source,
                                        std::span<const std::string_view> inputs) {
  runtime::JobOutcome outcome;
  static const Result<std::string> arch = find_arch();
  Result<codegen::Cubin> cubin =
      codegen::compile_cubin(source.bytes, arch.ok() ? *arch : source.cpu, {});
  if (!cubin.ok()) {
    outcome.measurement.status = MeasureStatus::kBuildError;
    outcome.measurement.detail = cubin.error().message();
    return outcome;
  }
  codegen::Artifact compiled = source;
  compiled.kind = codegen::ArtifactKind::kCudaCubin;
  compiled.bytes = std::move(cubin->bytes);
  runtime::Job job;
  job.artifact = &compiled;
  job.want_outputs = true;
  for (const std::string_view input : inputs)
    job.inputs.push_back({.fill = runtime::Fill::kBytes, .seed = 0, .bytes = input});
  return (*device())->run(job);
}

}  // namespace prunerc::testing

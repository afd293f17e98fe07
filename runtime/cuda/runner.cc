#include "runtime/cuda/runner.h"

#include "runtime/worker/check.h"

#include <algorithm>
#include <utility>

namespace prunerc::runtime::cuda {
namespace {

/// Copies of inputs must leave a device to the kernels, and a process of the user's a part of it.
constexpr int64_t kMaxInputBytes = int64_t{4} << 30;
constexpr int64_t kMaxInputShare = 4;  // one in so many bytes of the device

using codegen::ArtifactParam;
using codegen::ParamRole;

const unsigned char* bytes_of(const std::string& text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

/// No device is the machine's fault, a cubin that does not load the build's, the rest the kernel's.
Measurement failed_by(const Error& error) {
  switch (error.id()) {
    case Diag::kCudaMissing:
    case Diag::kKernelInput:
    case Diag::kIoError: return failed(MeasureStatus::kDeviceLost, error.message());
    case Diag::kArtifactMalformed:
    case Diag::kCudaTensorMap:
    case Diag::kCudaVersion:
    case Diag::kKernelLoad: return failed(MeasureStatus::kBuildError, error.message());
    default: return failed(MeasureStatus::kCrash, error.message());
  }
}

}  // namespace

struct CudaRunner::Prepared {
  codegen::Artifact artifact;
  std::optional<DeviceKernel> kernel;
  std::vector<DeviceBuffer> params;
  std::vector<uint64_t> input_checksums;
  std::vector<DeviceBuffer> workspace;  ///< one
};

/// Of one round: on the device, or in `bytes` once it had to make room.
struct CudaRunner::Output {
  ArtifactParam param;
  std::optional<DeviceBuffer> buffer;
  std::string bytes = {};

  Result<std::string> download() const {
    return buffer ? buffer->download() : Result<std::string>(bytes);
  }
};

CudaRunner::CudaRunner(int exchange_fd, StatusPage* status) : JobRunner(exchange_fd, status) {}

CudaRunner::~CudaRunner() = default;

Result<void> CudaRunner::open() {
  if (timer_) return {};
  PRUNERC_TRY(api_, driver());
  int device = 0;
  Context context = nullptr;
  PRUNERC_CUDA(*api_, cuDeviceGet, &device, 0);
  PRUNERC_CUDA(*api_, cuDevicePrimaryCtxRetain, &context, device);
  PRUNERC_CUDA(*api_, cuCtxSetCurrent, context);
  PRUNERC_CUDA(*api_, cuStreamCreate, &stream_, 0);
  PRUNERC_TRY(LaunchTimer timer, LaunchTimer::make(*api_, stream_));
  PRUNERC_TRY(Inspector inspector, Inspector::make(*api_));
  inspector_.emplace(std::move(inspector));
  size_t device_bytes = 0;
  PRUNERC_CUDA(*api_, cuDeviceTotalMem, &device_bytes, device);
  inputs_.emplace(*api_,
                  std::min(kMaxInputBytes, static_cast<int64_t>(device_bytes) / kMaxInputShare));
  timer_.emplace(std::move(timer));
  return {};
}

template <typename Fn>
auto CudaRunner::with_room(Fn&& allocate) -> decltype(allocate()) {
  while (true) {
    auto result = allocate();
    if (result.ok() || !inputs_->evict_oldest()) return result;
  }
}

Result<std::string> CudaRunner::make_input(const InputMessage& input, const ArtifactParam& param) {
  std::string bytes(static_cast<size_t>(codegen::size_bytes(param)), '\0');
  auto* const data = reinterpret_cast<unsigned char*>(bytes.data());
  if (!fill_input(input, param, data)) {
    return error(Diag::kIoError, "read", param.name, "it is not in the exchange file");
  }
  return bytes;
}

Result<uint64_t> CudaRunner::fill_buffer(const InputMessage& input, const ArtifactParam& param,
                                         const DeviceBuffer& to) {
  const InputStore::Key key = {.fill = input.fill,
                               .seed = input.seed,
                               .dtype = param.dtype,
                               .num_elems = codegen::num_elems(param)};
  return inputs_->fill(
      *inspector_, key, [&] { return make_input(input, param); }, to);
}

Result<void> CudaRunner::prepare(const JobMessage& job, unsigned char poison, Prepared* prepared) {
  PRUNERC_TRY(prepared->artifact, codegen::deserialize(job.artifact));
  const codegen::Artifact& artifact = prepared->artifact;
  PRUNERC_TRY(DeviceKernel kernel, DeviceKernel::load(*api_, artifact));
  prepared->kernel.emplace(std::move(kernel));
  std::vector<DevicePtr> places;
  size_t input_idx = 0;
  for (const ArtifactParam& param : artifact.params) {
    const int64_t bytes = codegen::size_bytes(param);
    PRUNERC_TRY(DeviceBuffer buffer,
                with_room([&] { return DeviceBuffer::allocate(*api_, bytes); }));
    places.push_back(buffer.data());
    prepared->params.push_back(std::move(buffer));
    if (param.role == ParamRole::kOutput) {
      PRUNERC_TRY_VOID(prepared->params.back().fill(poison, nullptr));
      continue;
    }
    if (input_idx == job.inputs.size()) return error(Diag::kKernelInput, param.name, bytes, 0);
    PRUNERC_TRY(const uint64_t checksum,
                fill_buffer(job.inputs[input_idx++], param, prepared->params.back()));
    prepared->input_checksums.push_back(checksum);
  }
  PRUNERC_TRY(DeviceBuffer workspace,
              with_room([&] { return DeviceBuffer::allocate(*api_, artifact.workspace_bytes); }));
  PRUNERC_TRY_VOID(workspace.fill(poison, nullptr));
  const DevicePtr workspace_at = workspace.data();
  prepared->workspace.push_back(std::move(workspace));
  PRUNERC_TRY_VOID(prepared->kernel->bind(places, workspace_at));
  PRUNERC_CUDA(*api_, cuCtxSynchronize);
  return {};
}

Result<void> CudaRunner::run_once(const Prepared& prepared) {
  PRUNERC_TRY_VOID(prepared.kernel->launch(stream_));
  PRUNERC_CUDA(*api_, cuStreamSynchronize, stream_);
  return {};
}

Result<std::string> CudaRunner::find_damage(const Prepared& prepared) {
  size_t input_idx = 0;
  for (size_t i = 0; i < prepared.params.size(); ++i) {
    const ArtifactParam& param = prepared.artifact.params[i];
    PRUNERC_TRY(const bool intact, prepared.params[i].is_redzone_intact());
    if (!intact) return "the kernel wrote outside of '" + param.name + "'";
    if (param.role == ParamRole::kOutput) continue;
    PRUNERC_TRY(const uint64_t checksum, inspector_->checksum(prepared.params[i]));
    if (checksum != prepared.input_checksums[input_idx++])
      return "the kernel wrote to its input '" + param.name + "'";
  }
  PRUNERC_TRY(const bool intact, prepared.workspace.front().is_redzone_intact());
  return std::string(intact ? "" : "the kernel wrote outside of its workspace");
}

Result<std::string> CudaRunner::run_round(const JobMessage& job, unsigned char poison,
                                          const OnProgress& on_progress,
                                          std::vector<Output>* outputs) {
  enter(Stage::kPreparing, on_progress);
  Prepared prepared;
  PRUNERC_TRY_VOID(prepare(job, poison, &prepared));
  enter(Stage::kRunning, on_progress);
  PRUNERC_TRY_VOID(run_once(prepared));
  PRUNERC_TRY(std::string damage, find_damage(prepared));
  for (size_t i = 0; i < prepared.params.size(); ++i) {
    const ArtifactParam& param = prepared.artifact.params[i];
    if (param.role == ParamRole::kOutput)
      outputs->push_back({.param = param, .buffer = std::move(prepared.params[i])});
  }
  return damage;
}

Result<std::optional<std::string>> CudaRunner::find_output_difference(
    const std::vector<Output>& first, const std::vector<Output>& second) {
  for (size_t i = 0; i < first.size(); ++i) {
    if (first[i].buffer) {
      PRUNERC_TRY(const bool equal, inspector_->are_equal(*first[i].buffer, *second[i].buffer));
      if (equal) continue;
    }
    PRUNERC_TRY(const std::string before, first[i].download());
    PRUNERC_TRY(const std::string after, second[i].download());
    auto difference = find_difference(first[i].param, bytes_of(before), bytes_of(after));
    if (difference) return difference;
  }
  return std::optional<std::string>();
}

Result<void> CudaRunner::leave_device(std::vector<Output>* outputs) {
  for (Output& output : *outputs) {
    PRUNERC_TRY(output.bytes, output.download());
    output.buffer.reset();
  }
  return {};
}

Measurement CudaRunner::check(const JobMessage& job, const OnProgress& on_progress) {
  std::vector<Output> first, second;
  Result<std::string> damage = run_round(job, kPoisonA, on_progress, &first);
  if (damage.ok() && damage->empty() && job.check == Check::kMemory) {
    damage = run_round(job, kPoisonB, on_progress, &second);
    // Both rounds' outputs may be more than the device holds; where the context is lost, so is this.
    if (!damage.ok() && leave_device(&first).ok()) {
      second.clear();
      damage = run_round(job, kPoisonB, on_progress, &second);
    }
    if (damage.ok() && damage->empty()) {
      Result<std::optional<std::string>> difference = find_output_difference(first, second);
      if (!difference.ok()) return failed_by(difference.error());
      damage = difference->value_or("");
    }
  }
  if (!damage.ok()) return failed_by(damage.error());
  if (!damage->empty()) return failed(MeasureStatus::kWrongResult, *damage);
  return job.want_outputs ? write_outputs(first, job.outputs_offset) : succeeded();
}

Measurement CudaRunner::write_outputs(const std::vector<Output>& outputs, int64_t offset) {
  for (const Output& output : outputs) {
    const Result<std::string> bytes = output.download();
    if (!bytes.ok()) return failed_by(bytes.error());
    const Measurement written =
        write_output(bytes_of(*bytes), static_cast<int64_t>(bytes->size()), &offset);
    if (!written.ok()) return written;
  }
  return succeeded();
}

Measurement CudaRunner::time(const JobMessage& job) {
  Prepared prepared;
  Result<void> done = prepare(job, kPoisonB, &prepared);
  if (done.ok()) done = with_room([&] { return timer_->reserve(job.timing.cache); });
  if (!done.ok()) return failed_by(done.error());
  Measurement result = time_launches(
      [&](int64_t count) { return timer_->time(*prepared.kernel, job.timing.cache, count); },
      job.timing);
  if (result.status != MeasureStatus::kOk) return result;
  const Result<double> canary = timer_->canary_ns();
  if (!canary.ok()) return failed_by(canary.error());
  result.canary_ns = *canary;
  return result;
}

Measurement CudaRunner::run(const JobMessage& job, const OnProgress& on_progress) {
  enter(Stage::kLoading, on_progress);
  const Result<void> ready = open();
  if (!ready.ok()) return failed_by(ready.error());
  Measurement result = check(job, on_progress);
  if (result.status == MeasureStatus::kOk && job.want_timing) {
    enter(Stage::kTiming, on_progress);
    result = time(job);
  }
  leave();
  return result;
}

std::vector<Measurement> CudaRunner::compare(const CompareMessage& message,
                                             const OnProgress& on_progress) {
  const size_t count = message.jobs.size();
  enter(Stage::kLoading, on_progress);
  if (const Result<void> ready = open(); !ready.ok()) return {count, failed_by(ready.error())};
  std::vector<Measurement> results(count);
  std::vector<Prepared> prepared(count);
  std::vector<TimedLaunches> timed;
  std::vector<size_t> timed_idx;
  for (size_t i = 0; i < count; ++i) {
    enter_job(i);
    Result<void> done = prepare(message.jobs[i], kPoisonB, &prepared[i]);
    if (done.ok()) done = with_room([&] { return timer_->reserve(message.timing.cache); });
    if (!done.ok()) results[i] = failed_by(done.error());
    if (!done.ok()) continue;
    timed_idx.push_back(i);
    timed.push_back([this, i, &prepared, &message](int64_t launches) {
      enter_job(i);
      return timer_->time(*prepared[i].kernel, message.timing.cache, launches);
    });
  }
  enter(Stage::kTiming, on_progress);
  std::vector<Measurement> times = time_interleaved(timed, message.timing);
  for (size_t i = 0; i < times.size(); ++i) results[timed_idx[i]] = std::move(times[i]);
  leave();
  return results;
}

}  // namespace prunerc::runtime::cuda

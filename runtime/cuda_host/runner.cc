#include "runtime/cuda_host/runner.h"

#include "runtime/cuda_host/annotate.h"
#include "runtime/worker/buffer.h"
#include "runtime/worker/check.h"
#include "runtime/worker/fault.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace prunerc::runtime::cuda_host {
namespace {

using codegen::ArtifactParam;
using codegen::ParamRole;

/// What cudaMalloc guarantees; kernels may rely on it for vector accesses.
constexpr size_t kDeviceAlignment = 256;

/// The orders of a check, the one most likely to show something first. Each pair of an order and a
/// mode shows bugs that others hide (DESIGN.md, D4).
constexpr ExecutionOptions kOrders[] = {
    {.order = ThreadOrder::kAscending, .mode = AsyncMode::kEager},
    {.order = ThreadOrder::kDescending, .mode = AsyncMode::kLazy},
    {.order = ThreadOrder::kRandom, .mode = AsyncMode::kLateMma, .seed = 1},
    {.order = ThreadOrder::kDescending, .mode = AsyncMode::kEager},
    {.order = ThreadOrder::kAscending, .mode = AsyncMode::kLateMma},
    {.order = ThreadOrder::kRandom, .mode = AsyncMode::kLazy, .seed = 2},
};
/// A checker sees accesses without order in whatever order they come: two runs are for the modes.
constexpr size_t kNumCheckedOrders = 2;
constexpr ExecutionOptions kCheckedOrders[kNumCheckedOrders] = {
    {.order = ThreadOrder::kAscending, .mode = AsyncMode::kEager},
    {.order = ThreadOrder::kAscending, .mode = AsyncMode::kLateMma},
};

std::span<const ExecutionOptions> orders_of(Check check) {
  const std::span<const ExecutionOptions> all =
      kChecker == Checker::kNone ? std::span<const ExecutionOptions>(kOrders) : kCheckedOrders;
  return check == Check::kMemory ? all : all.first(1);
}

}  // namespace

/// A tensor: between guard pages, or, for a bounds checker, a block of exactly its size.
struct HostRunner::Memory {
  GuardedBuffer guarded;
  std::unique_ptr<void, decltype(&std::free)> block{nullptr, &std::free};
  unsigned char* data = nullptr;
  int64_t bytes = 0;

  bool allocate(int64_t size, Placement placement, int index) {
    bytes = size;
    if constexpr (kChecker == Checker::kBounds) {
      void* at = nullptr;
      if (posix_memalign(&at, kDeviceAlignment, static_cast<size_t>(std::max<int64_t>(size, 1))) !=
          0)
        return false;
      block.reset(at);
      data = static_cast<unsigned char*>(at);
    } else {
      guarded = GuardedBuffer(size, placement, index);
      data = guarded.data();
    }
    return data != nullptr;
  }
  void poison(unsigned char value) {
    if (bytes > 0) std::memset(data, value, static_cast<size_t>(bytes));
  }
  bool is_redzone_intact() const { return data == block.get() || guarded.is_redzone_intact(); }
};

struct HostRunner::Round {
  Placement placement = Placement::kRight;
  unsigned char poison = kPoisonA;
  std::vector<Memory> params;
  std::vector<unsigned char*> pointers;
  std::vector<uint64_t> input_hashes;
  Memory workspace;
};

HostRunner::HostRunner(const ConfigureMessage& configure, int exchange_fd, StatusPage* status)
    : JobRunner(exchange_fd, status),
      num_threads_(kChecker == Checker::kNone ? configure.num_threads : 1) {}

Measurement HostRunner::prepare(const codegen::Artifact& artifact, const JobMessage& job,
                                Round* round) {
  const auto no_memory = [] {
    return failed(MeasureStatus::kDeviceLost, "not enough memory for the buffers");
  };
  size_t input_idx = 0;
  for (const ArtifactParam& param : artifact.params) {
    Memory& memory = round->params.emplace_back();
    if (!memory.allocate(codegen::size_bytes(param), round->placement, 0)) return no_memory();
    round->pointers.push_back(memory.data);
    if (kChecker != Checker::kBounds) add_fault_region(memory.guarded, param.name);
    if (param.role == ParamRole::kOutput) {
      memory.poison(round->poison);
      continue;
    }
    if (input_idx == job.inputs.size())
      return failed(MeasureStatus::kDeviceLost, "the job has too few inputs");
    if (!fill_input(job.inputs[input_idx++], param, memory.data)) {
      return failed(MeasureStatus::kDeviceLost,
                    "input '" + param.name + "' is not in the exchange file");
    }
    round->input_hashes.push_back(hash_bytes(memory.data, memory.bytes));
  }
  if (!round->workspace.allocate(artifact.workspace_bytes, round->placement, 0)) return no_memory();
  if (kChecker != Checker::kBounds) add_fault_region(round->workspace.guarded, "workspace");
  round->workspace.poison(round->poison);
  return succeeded();
}

Measurement HostRunner::execute(const codegen::Artifact& artifact, const KernelObject& object,
                                const ExecutionOptions& options, Round* round) {
  const std::string fault =
      run_launches(artifact, object, round->pointers, round->workspace.data, options);
  if (!fault.empty()) {
    return failed(MeasureStatus::kCrash, fault + "; threads " +
                                             std::string(to_string(options.order)) + ", copies " +
                                             std::string(to_string(options.mode)));
  }
  size_t input_idx = 0;
  for (size_t i = 0; i < round->params.size(); ++i) {
    const ArtifactParam& param = artifact.params[i];
    const Memory& memory = round->params[i];
    if (!memory.is_redzone_intact())
      return failed(MeasureStatus::kWrongResult,
                    "the kernel wrote outside of '" + param.name + "'");
    if (param.role == ParamRole::kOutput) continue;
    if (hash_bytes(memory.data, memory.bytes) != round->input_hashes[input_idx++]) {
      return failed(MeasureStatus::kWrongResult,
                    "the kernel wrote to its input '" + param.name + "'");
    }
  }
  if (!round->workspace.is_redzone_intact())
    return failed(MeasureStatus::kWrongResult, "the kernel wrote outside of its workspace");
  return succeeded();
}

Measurement HostRunner::compare_outputs(const codegen::Artifact& artifact, const Round& first,
                                        const Round& other) {
  for (size_t i = 0; i < artifact.params.size(); ++i) {
    if (artifact.params[i].role == ParamRole::kInput) continue;
    const auto difference =
        find_difference(artifact.params[i], first.params[i].data, other.params[i].data);
    if (difference) return failed(MeasureStatus::kWrongResult, *difference);
  }
  return succeeded();
}

Measurement HostRunner::write_outputs(const codegen::Artifact& artifact, const Round& round,
                                      int64_t offset) {
  for (size_t i = 0; i < artifact.params.size(); ++i) {
    if (artifact.params[i].role == ParamRole::kInput) continue;
    const Memory& memory = round.params[i];
    const Measurement written = write_output(memory.data, memory.bytes, &offset);
    if (!written.ok()) return written;
  }
  return succeeded();
}

Measurement HostRunner::check(const codegen::Artifact& artifact, const KernelObject& object,
                              const JobMessage& job, const OnProgress& on_progress) {
  Round first;
  const std::span<const ExecutionOptions> orders = orders_of(job.check);
  for (size_t n = 0; n < orders.size(); ++n) {
    enter(Stage::kPreparing, on_progress);
    Round other;
    Round& round = n == 0 ? first : other;
    round.placement = n % 2 == 0 ? Placement::kRight : Placement::kLeft;
    round.poison = n == 0 ? kPoisonA : kPoisonB;
    clear_fault_regions();
    Measurement result = prepare(artifact, job, &round);
    if (!result.ok()) return result;
    enter(Stage::kRunning, on_progress);
    ExecutionOptions options = orders[n];
    options.num_threads = num_threads_;
    result = execute(artifact, object, options, &round);
    clear_fault_regions();
    if (result.ok() && n > 0) result = compare_outputs(artifact, first, round);
    if (!result.ok()) return result;
  }
  return job.want_outputs ? write_outputs(artifact, first, job.outputs_offset) : succeeded();
}

Measurement HostRunner::run(const JobMessage& job, const OnProgress& on_progress) {
  enter(Stage::kLoading, on_progress);
  Result<codegen::Artifact> artifact = codegen::deserialize(job.artifact);
  if (!artifact.ok()) return failed(MeasureStatus::kBuildError, artifact.error().message());
  if (artifact->kind != codegen::ArtifactKind::kCudaHostObject)
    return failed(MeasureStatus::kBuildError, "the artifact is not compiled for the host");
  if (job.want_timing)
    return failed(MeasureStatus::kRunError, "the host stands in for a GPU: its times mean nothing");
  const Result<KernelObject> object = KernelObject::load(artifact->entry, artifact->bytes);
  if (!object.ok()) return failed(MeasureStatus::kBuildError, object.error().message());
  Measurement result = check(*artifact, *object, job, on_progress);
  leave();
  return result;
}

std::vector<Measurement> HostRunner::compare(const CompareMessage& message,
                                             const OnProgress& on_progress) {
  enter(Stage::kTiming, on_progress);
  return {message.jobs.size(),
          failed(MeasureStatus::kRunError, "the host stands in for a GPU: its times mean nothing")};
}

}  // namespace prunerc::runtime::cuda_host

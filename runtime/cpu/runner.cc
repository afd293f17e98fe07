#include "runtime/cpu/runner.h"

#include "runtime/clock.h"
#include "runtime/cpu/limits.h"
#include "runtime/cpu/orc.h"
#include "runtime/worker/buffer.h"
#include "runtime/worker/check.h"
#include "runtime/worker/fault.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace prunerc::runtime {
namespace {

/// Idle workers of a pool poll this long while a kernel is timed: in effect, until it is over.
constexpr int64_t kSpinWhileTimingNs = int64_t{60} * 1'000'000'000;
constexpr int64_t kSpinOtherwiseNs = 200'000;
constexpr int64_t kMaxFilledBytes = 256 << 20;
/// Of copies of constants.
constexpr int64_t kMaxCopiedBytes = 256 << 20;
/// Larger than any cache that we know of counts twice over: the last level may keep part of the
/// lines.
constexpr size_t kFlushBytes = 128 << 20;

/// A first run this much slower than the best known is not due to cold caches and fresh pages.
constexpr double kHopelessFactor = 10;
constexpr double kHopelessFloorNs = 20e6;

/// True if a kernel that is only timed is so slow that a second run would be wasted.
bool is_hopeless(const JobMessage& job, double elapsed_ns) {
  const double best_ns = job.timing.best_known_ns;
  return job.want_timing && !job.want_outputs && best_ns > 0 && elapsed_ns > kHopelessFloorNs &&
         elapsed_ns > kHopelessFactor * best_ns;
}

Measurement one_run(double elapsed_ns) {
  Measurement result = succeeded();
  result.samples_ns = {elapsed_ns};
  result.runs_per_sample = 1;
  result.detail = "far slower than the best known: run once, not checked further";
  summarize(&result);
  return result;
}

}  // namespace

/// The two checking runs differ in what an honest kernel cannot notice.
enum class Runner::Round : uint8_t { kFirst, kSecond, kTiming };

struct Runner::Kernel {
  codegen::Artifact artifact;
  std::optional<LoadedKernel> code;
  std::vector<InputMessage> inputs;
};

struct Runner::Tensor {
  std::string bytes;
  uint64_t hash = 0;
};

struct Runner::Arguments {
  std::vector<GuardedBuffer> params;
  GuardedBuffer workspace, prepared;
  // Of the parameters, then of `prepared` if the kernel has any. Const inputs are null for the kernel
  // and the others for what prepares them: neither may read them.
  std::vector<void*> pointers, constants;
  uint64_t prepared_hash = 0;  // of what prepare_constants left there
  // Of the prepared constants, far from where the one before lies; empty: they stay warm.
  std::vector<void*> copies;
  size_t next_copy = 0;

  void* const* next() {
    if (!copies.empty()) {
      pointers.back() = copies[next_copy];
      next_copy = (next_copy + 1) % copies.size();
    }
    return pointers.data();
  }
  std::vector<uint64_t> input_hashes;
};

Runner::Runner(const ConfigureMessage& configure, int exchange_fd, StatusPage* status)
    : JobRunner(exchange_fd, status),
      memory_limit_bytes_(configure.memory_limit_bytes > 0 ? configure.memory_limit_bytes
                                                           : INT64_MAX),
      pool_({.num_threads = configure.num_threads,
             .spin_ns = kSpinOtherwiseNs,
             .on_thread_start = [](int) { prepare_thread_for_faults(); }}) {}

Runner::~Runner() = default;

Measurement Runner::load(const JobMessage& job, Kernel* kernel) {
  Result<codegen::Artifact> artifact = codegen::deserialize(job.artifact);
  if (!artifact.ok()) return failed(MeasureStatus::kBuildError, artifact.error().message());
  kernel->artifact = *std::move(artifact);
  Result<LoadedKernel> code = load_kernel(kernel->artifact);
  if (!code.ok()) return failed(MeasureStatus::kBuildError, code.error().message());
  kernel->code.emplace(std::move(code).value());
  kernel->artifact.bytes.clear();
  kernel->inputs = job.inputs;
  const auto is_input = [](const codegen::ArtifactParam& p) {
    return p.role == codegen::ParamRole::kInput;
  };
  const auto& params = kernel->artifact.params;
  if (std::count_if(params.begin(), params.end(), is_input) !=
      static_cast<std::ptrdiff_t>(job.inputs.size())) {
    return failed(MeasureStatus::kDeviceLost,
                  "the job has another number of inputs than the kernel");
  }
  return succeeded();
}

bool Runner::fill_or_copy(const InputMessage& input, const codegen::ArtifactParam& param,
                          unsigned char* to) {
  const int64_t bytes = codegen::size_bytes(param);
  if (input.fill == Fill::kBytes) return fill_input(input, param, to);
  const int64_t count = codegen::num_elems(param);
  const auto key = std::make_tuple(input.fill, input.seed, param.dtype, count);
  const auto found = filled_.find(key);
  if (found != filled_.end()) {
    std::memcpy(to, found->second->bytes.data(), static_cast<size_t>(bytes));
    // An earlier kernel may have written there.
    if (hash_bytes(to, bytes) == found->second->hash) return true;
  }
  fill_input(input, param, to);
  if (found == filled_.end() && filled_bytes_ + bytes <= kMaxFilledBytes) {
    auto tensor = std::make_unique<Tensor>();
    tensor->bytes.assign(reinterpret_cast<const char*>(to), static_cast<size_t>(bytes));
    tensor->hash = hash_bytes(to, bytes);
    filled_.emplace(key, std::move(tensor));
    filled_bytes_ += bytes;
  }
  return true;
}

Measurement Runner::prepare(const Kernel& kernel, Round round, Arguments* arguments) {
  const Placement placement = round == Round::kFirst    ? Placement::kRight
                              : round == Round::kSecond ? Placement::kLeft
                                                        : Placement::kStaggered;
  const unsigned char poison = round == Round::kFirst ? kPoisonA : kPoisonB;
  const auto no_memory = [] {
    return failed(MeasureStatus::kDeviceLost, "not enough memory for the buffers");
  };
  // Asked beforehand: the system promises more memory than there is, and then ends whatever touches
  // it.
  const int64_t workspace = codegen::total_workspace_bytes(kernel.artifact, pool_.num_threads());
  int64_t needed_bytes = workspace + kernel.artifact.prepared_bytes;
  for (const auto& param : kernel.artifact.params) needed_bytes += codegen::size_bytes(param);
  if (needed_bytes > memory_limit_bytes_) return no_memory();
  int index = 0;
  size_t input_idx = 0;
  for (const codegen::ArtifactParam& param : kernel.artifact.params) {
    GuardedBuffer& buffer =
        arguments->params.emplace_back(codegen::size_bytes(param), placement, index++);
    if (buffer.data() == nullptr) return no_memory();
    arguments->pointers.push_back(buffer.data());
    add_fault_region(buffer, param.name);
    if (param.role == codegen::ParamRole::kOutput) {
      buffer.poison(poison);
      continue;
    }
    if (!fill_or_copy(kernel.inputs[input_idx++], param, buffer.data())) {
      return failed(MeasureStatus::kDeviceLost,
                    "input '" + param.name + "' is not in the exchange file");
    }
    const bool hashed = round != Round::kTiming;
    arguments->input_hashes.push_back(hashed ? hash_bytes(buffer.data(), buffer.size_bytes()) : 0);
  }
  if (kernel.code->prepare_entry() != nullptr) {
    arguments->prepared = GuardedBuffer(kernel.artifact.prepared_bytes, placement, index++);
    if (arguments->prepared.data() == nullptr) return no_memory();
    arguments->prepared.poison(poison);
    arguments->constants = arguments->pointers;
    for (size_t i = 0; i < kernel.artifact.params.size(); ++i) {
      const bool is_const = kernel.artifact.params[i].is_const;
      (is_const ? arguments->pointers : arguments->constants)[i] = nullptr;
    }
    for (std::vector<void*>* each : {&arguments->pointers, &arguments->constants})
      each->push_back(arguments->prepared.data());
    add_fault_region(arguments->prepared, "prepared constants");
  }
  arguments->workspace = GuardedBuffer(workspace, placement, index);
  if (arguments->workspace.data() == nullptr) return no_memory();
  arguments->workspace.poison(poison);
  add_fault_region(arguments->workspace, "workspace");
  return succeeded();
}

Measurement Runner::prepare_constants(const Kernel& kernel, Arguments& arguments) {
  const PrunercKernel entry = kernel.code->prepare_entry();
  if (entry == nullptr) return succeeded();
  const int32_t code =
      entry(arguments.constants.data(), arguments.workspace.data(), pool_.launch());
  if (code != 0)
    return failed(MeasureStatus::kRunError, "preparing constants returned " + std::to_string(code));
  arguments.prepared_hash = hash_bytes(arguments.prepared.data(), arguments.prepared.size_bytes());
  return succeeded();
}

Measurement Runner::execute(const Kernel& kernel, Arguments& arguments) {
  const int32_t code =
      kernel.code->entry()(arguments.pointers.data(), arguments.workspace.data(), pool_.launch());
  if (code != 0)
    return failed(MeasureStatus::kRunError, "the kernel returned " + std::to_string(code));
  size_t input_idx = 0;
  for (size_t i = 0; i < arguments.params.size(); ++i) {
    const codegen::ArtifactParam& param = kernel.artifact.params[i];
    const GuardedBuffer& buffer = arguments.params[i];
    if (!buffer.is_redzone_intact()) {
      return failed(MeasureStatus::kWrongResult,
                    "the kernel wrote outside of '" + param.name + "'");
    }
    if (param.role == codegen::ParamRole::kOutput) continue;
    if (hash_bytes(buffer.data(), buffer.size_bytes()) != arguments.input_hashes[input_idx++]) {
      return failed(MeasureStatus::kWrongResult,
                    "the kernel wrote to its input '" + param.name + "'");
    }
  }
  if (kernel.code->prepare_entry() != nullptr) {
    const GuardedBuffer& prepared = arguments.prepared;
    if (!prepared.is_redzone_intact() ||
        hash_bytes(prepared.data(), prepared.size_bytes()) != arguments.prepared_hash) {
      return failed(MeasureStatus::kWrongResult,
                    "the kernel wrote to its prepared constants or outside of them");
    }
  }
  if (!arguments.workspace.is_redzone_intact()) {
    return failed(MeasureStatus::kWrongResult, "the kernel wrote outside of its workspace");
  }
  return succeeded();
}

Measurement Runner::check(const Kernel& kernel, const JobMessage& job,
                          const OnProgress& on_progress, std::vector<uint64_t>* output_hashes) {
  std::vector<Arguments> rounds(job.check == Check::kMemory ? 2 : 1);
  clear_fault_regions();
  for (size_t i = 0; i < rounds.size(); ++i) {
    enter(Stage::kPreparing, on_progress);
    Measurement result = prepare(kernel, i == 0 ? Round::kFirst : Round::kSecond, &rounds[i]);
    if (!result.ok()) return result;
    enter(Stage::kRunning, on_progress);
    result = prepare_constants(kernel, rounds[i]);
    if (!result.ok()) return result;
    const int64_t started_ns = now_ns();
    result = execute(kernel, rounds[i]);
    if (!result.ok()) return result;
    const auto elapsed_ns = static_cast<double>(now_ns() - started_ns);
    if (is_hopeless(job, elapsed_ns)) return one_run(elapsed_ns);
  }
  enter(Stage::kPreparing, on_progress);
  for (size_t i = 0; rounds.size() == 2 && i < kernel.artifact.params.size(); ++i) {
    const codegen::ArtifactParam& param = kernel.artifact.params[i];
    if (param.role == codegen::ParamRole::kInput) continue;
    const auto difference =
        find_difference(param, rounds[0].params[i].data(), rounds[1].params[i].data());
    if (difference) return failed(MeasureStatus::kWrongResult, *difference);
    const GuardedBuffer& buffer = rounds[0].params[i];
    if (job.want_timing) output_hashes->push_back(hash_bytes(buffer.data(), buffer.size_bytes()));
  }
  return job.want_outputs ? write_outputs(kernel, rounds[0], job.outputs_offset) : succeeded();
}

Measurement Runner::write_outputs(const Kernel& kernel, const Arguments& arguments,
                                  int64_t offset) {
  for (size_t i = 0; i < arguments.params.size(); ++i) {
    if (kernel.artifact.params[i].role == codegen::ParamRole::kInput) continue;
    const GuardedBuffer& buffer = arguments.params[i];
    const Measurement written = write_output(buffer.data(), buffer.size_bytes(), &offset);
    if (!written.ok()) return written;
  }
  return succeeded();
}

void Runner::flush_caches() {
  if (flush_.empty()) flush_.resize(kFlushBytes);
  for (size_t i = 0; i < flush_.size(); i += 64) flush_[i] = static_cast<char>(flush_[i] + 1);
}

void Runner::copy_constants(const TimingOptions& timing, Arguments& arguments) {
  const int64_t bytes = arguments.prepared.size_bytes();
  if (timing.constants_bytes == 0 || bytes == 0) return;
  // Not a multiple of a page, so that not all of them compete for the same sets.
  const int64_t stride =
      (bytes + PRUNERC_ALIGNMENT - 1) / PRUNERC_ALIGNMENT * PRUNERC_ALIGNMENT + PRUNERC_ALIGNMENT;
  const int64_t most = std::min(kMaxCopiedBytes, memory_limit_bytes_ / 4);
  const int64_t count = std::min(timing.constants_bytes, most) / stride;
  if (count < 2) return;
  if (copies_.size() < static_cast<size_t>(count * stride + PRUNERC_ALIGNMENT))
    copies_.resize(static_cast<size_t>(count * stride + PRUNERC_ALIGNMENT));
  const auto begin = reinterpret_cast<uintptr_t>(copies_.data());
  char* const first = copies_.data() + (PRUNERC_ALIGNMENT - begin % PRUNERC_ALIGNMENT);
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(first + i * stride, arguments.prepared.data(), static_cast<size_t>(bytes));
  // Neighbours do not follow one another: a prefetcher that runs past the end of one must not bring
  // the next.
  const int64_t half = (count + 1) / 2;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = i % 2 == 0 ? i / 2 : half + i / 2;
    arguments.copies.push_back(first + at * stride);
  }
}

RawSample Runner::sample(const Kernel& kernel, Arguments& arguments, CacheState cache,
                         int64_t runs) {
  RawSample result;
  for (int64_t done = 0; done < runs;) {
    if (cache == CacheState::kFlushed) flush_caches();
    const int64_t batch = cache == CacheState::kFlushed ? 1 : runs;
    const std::vector<int64_t> workers_before = pool_.worker_cpu_ns();
    const int64_t cpu_before = thread_cpu_ns();
    const int64_t started = now_ns();
    for (int64_t i = 0; i < batch; ++i) {
      kernel.code->entry()(arguments.next(), arguments.workspace.data(), pool_.launch());
    }
    const int64_t wall = now_ns() - started;
    const int64_t caller_cpu = thread_cpu_ns() - cpu_before;
    std::vector<int64_t> worker_cpu = pool_.worker_cpu_ns();
    for (size_t i = 0; i < worker_cpu.size(); ++i) worker_cpu[i] -= workers_before[i];
    const RawSample one = sample_of(wall, caller_cpu, worker_cpu);
    result.wall_ns += one.wall_ns;
    result.lost_ns += one.lost_ns;
    result.caller_lost_ns += one.caller_lost_ns;
    done += batch;
  }
  return result;
}

// A kernel that remembers by address what it computed, or answers what it was asked before, is fast
// for nothing. It meets other inputs first where it will be timed, and stale outputs after that.
Measurement Runner::run_on_other_inputs(const Kernel& kernel, Arguments& arguments) {
  const auto fill_all = [&](uint64_t seed_change) {
    size_t input_idx = 0;
    for (size_t i = 0; i < arguments.params.size(); ++i) {
      const codegen::ArtifactParam& param = kernel.artifact.params[i];
      if (param.role == codegen::ParamRole::kOutput) {
        arguments.params[i].poison(kPoisonB);
        continue;
      }
      InputMessage input = kernel.inputs[input_idx++];
      // What the user gave has no other seed.
      if (input.fill == Fill::kBytes) continue;
      input.seed ^= seed_change;
      fill_or_copy(input, param, arguments.params[i].data());
    }
  };
  constexpr uint64_t kOtherInputs = 0x4F54484552ULL;
  for (const uint64_t seed_change : {kOtherInputs, uint64_t{0}}) {
    fill_all(seed_change);
    const Measurement prepared = prepare_constants(kernel, arguments);
    if (!prepared.ok()) return prepared;
    kernel.code->entry()(arguments.pointers.data(), arguments.workspace.data(), pool_.launch());
  }
  return succeeded();
}

Measurement Runner::check_timed(const Kernel& kernel, const Arguments& arguments,
                                const std::vector<uint64_t>& output_hashes) {
  size_t output_idx = 0;
  for (size_t i = 0; i < arguments.params.size(); ++i) {
    const codegen::ArtifactParam& param = kernel.artifact.params[i];
    if (param.role == codegen::ParamRole::kInput) continue;
    const GuardedBuffer& buffer = arguments.params[i];
    if (hash_bytes(buffer.data(), buffer.size_bytes()) != output_hashes[output_idx++]) {
      return failed(MeasureStatus::kWrongResult,
                    "'" + param.name + "' depends on what the kernel computed before");
    }
  }
  return succeeded();
}

Measurement Runner::run(const JobMessage& job, const OnProgress& on_progress) {
  Kernel kernel;
  enter(Stage::kLoading, on_progress);
  Measurement result = load(job, &kernel);
  std::vector<uint64_t> output_hashes;
  if (result.ok()) result = check(kernel, job, on_progress, &output_hashes);
  if (result.ok() && job.want_timing && result.samples_ns.empty()) {
    Arguments arguments;
    clear_fault_regions();
    enter(Stage::kPreparing, on_progress);
    result = prepare(kernel, Round::kTiming, &arguments);
    enter(Stage::kRunning, on_progress);
    if (result.ok() && output_hashes.empty()) {
      result = prepare_constants(kernel, arguments);
    } else if (result.ok()) {
      result = run_on_other_inputs(kernel, arguments);
      if (result.ok()) result = check_timed(kernel, arguments, output_hashes);
    }
    if (result.ok()) {
      copy_constants(job.timing, arguments);
      enter(Stage::kTiming, on_progress);
      pool_.set_spin_ns(kSpinWhileTimingNs);
      const double before_ns = reference_ns(pool_);
      result = time_kernel(
          [&](int64_t runs) { return sample(kernel, arguments, job.timing.cache, runs); },
          job.timing);
      result.reference_ns = (before_ns + reference_ns(pool_)) / 2;
      pool_.set_spin_ns(kSpinOtherwiseNs);
      result.canary_ns = canary_ns();
    }
    if (result.ok() && !output_hashes.empty()) {
      const Measurement same = check_timed(kernel, arguments, output_hashes);
      if (!same.ok()) result = same;
    }
  }
  leave();
  clear_fault_regions();
  return result;
}

std::vector<Measurement> Runner::compare(const CompareMessage& message,
                                         const OnProgress& on_progress) {
  const size_t num_jobs = message.jobs.size();
  std::vector<Measurement> results(num_jobs);
  std::vector<Kernel> kernels(num_jobs);
  std::vector<Arguments> arguments(num_jobs);
  std::vector<TimedRun> timed;
  std::vector<size_t> timed_idx;
  clear_fault_regions();
  for (size_t i = 0; i < num_jobs; ++i) {
    enter_job(i);
    enter(Stage::kLoading, on_progress);
    results[i] = load(message.jobs[i], &kernels[i]);
    if (results[i].ok()) results[i] = prepare(kernels[i], Round::kTiming, &arguments[i]);
    if (results[i].ok()) results[i] = prepare_constants(kernels[i], arguments[i]);
    if (!results[i].ok()) continue;
    timed_idx.push_back(i);
    timed.push_back([this, i, &kernels, &arguments, &message](int64_t runs) {
      enter_job(i);
      return sample(kernels[i], arguments[i], message.timing.cache, runs);
    });
  }
  enter(Stage::kTiming, on_progress);
  pool_.set_spin_ns(kSpinWhileTimingNs);
  std::vector<Measurement> times = time_interleaved(timed, message.timing);
  pool_.set_spin_ns(kSpinOtherwiseNs);
  const double canary = canary_ns();
  for (size_t i = 0; i < times.size(); ++i) {
    times[i].canary_ns = canary;
    results[timed_idx[i]] = std::move(times[i]);
  }
  leave();
  clear_fault_regions();
  return results;
}

}  // namespace prunerc::runtime

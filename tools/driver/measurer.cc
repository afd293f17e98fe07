#include "tools/driver/measurer.h"

#include "ir/equal.h"
#include "runtime/cpu/limits.h"
#include "tools/driver/backend.h"
#include "tools/driver/kept.h"
#include "tools/driver/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace prunerc {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Built {
  search::MeasureInput input;
  search::Measurement outcome;  // a failed build is final
  std::shared_ptr<const codegen::Artifact> artifact;
  bool ok = false;
};

Built build(search::MeasureInput input, KeptKernels& kept) {
  Built built;
  const auto start = std::chrono::steady_clock::now();
  const Fingerprint program = ir::fingerprint(input.program);
  built.artifact = kept.find(program);
  built.ok = built.artifact != nullptr;
  if (!built.ok) {
    Candidate candidate = build_candidate(input.program, input.task->target);
    built.ok = candidate.status == MeasureStatus::kOk;
    built.outcome.status = candidate.status;
    built.outcome.detail = std::move(candidate.detail);
    built.artifact = std::make_shared<const codegen::Artifact>(std::move(candidate.artifact));
    if (built.ok) kept.keep(program, built.artifact);
  }
  built.outcome.build_s = seconds_since(start);
  built.input = std::move(input);
  return built;
}

/// Fewer samples than these are not enough to tell good candidates apart.
constexpr int64_t kSamplesBeforeCut = 20;

// A candidate that needs all of its time for one run gets no second one.
runtime::TimingOptions timing_of(const MeasurerOptions& options,
                                 const search::MeasureInput& input) {
  runtime::TimingOptions timing = options.timing;
  timing.best_known_ns = input.best_ns;
  timing.min_possible_ns = impossible_ns(*input.task);
  timing.constants_bytes = input.task->target.constants_bytes;
  if (options.cut_factor > 0 && input.best_ns > 0) {
    const auto cut_ns = static_cast<int64_t>(options.cut_factor * input.best_ns);
    timing.max_time_ns =
        std::min(timing.max_time_ns, std::max(cut_ns, kSamplesBeforeCut * timing.min_sample_ns));
  }
  return timing;
}

search::MachineState state_beside(const runtime::Measurement& timed) {
  search::MachineState state;
  state.reference_ns = timed.reference_ns;
  if (timed.reference_ns > 0) state.clock_ghz = runtime::clock_of_canary(timed.canary_ns);
  double load = 0;
  if (getloadavg(&load, 1) == 1) state.load = load;
  return state;
}

}  // namespace

struct DeviceMeasurer::Impl {
  Impl(runtime::Device& measured_on, runtime::Device& cpu, const MeasurerOptions& wanted)
      : device(measured_on),
        options(wanted),
        references(cpu),
        kept(static_cast<std::size_t>(std::max(0, wanted.kept_kernels))) {
    for (int i = 0; i < options.num_builders; ++i) threads.emplace_back([this] { build_loop(); });
    threads.emplace_back([this] { run_loop(); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
      to_build.clear();
      to_run.clear();
    }
    changed.notify_all();
    for (std::thread& t : threads) t.join();
  }

  void build_loop() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] {
        return stopping || (!to_build.empty() && !(options.exclusive_timing && running));
      });
      if (stopping) return;
      search::MeasureInput input = std::move(to_build.front());
      to_build.pop_front();
      ++num_building;
      lock.unlock();
      Built built = build(std::move(input), kept);
      lock.lock();
      --num_building;
      if (built.ok) {
        const bool urgent = is_urgent(built.input);
        add(std::move(built), to_run, urgent);
      } else {
        finish({built.input.id, std::move(built.outcome)});
      }
      changed.notify_all();
    }
  }

  void run_loop() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] {
        return stopping || (!to_run.empty() && !(options.exclusive_timing && num_building > 0));
      });
      if (stopping) return;
      // With exclusive timing whatever is built is run in one go: builders and timer take turns,
      // both busy.
      running = true;
      do {
        Built built = std::move(to_run.front());
        to_run.pop_front();
        lock.unlock();
        search::MeasureOutcome outcome{built.input.id, run(built)};
        lock.lock();
        finish(std::move(outcome));
        changed.notify_all();
      } while (!stopping && options.exclusive_timing && !to_run.empty());
      running = false;
      changed.notify_all();
    }
  }

  // Both with the lock held.
  void begin(search::MeasureInput input) {
    if (num_open++ == 0) busy_since = std::chrono::steady_clock::now();
    const bool urgent = is_urgent(input);
    add(std::move(input), to_build, urgent);
  }
  // Somebody waits for a verdict, and a batch may stand before it.
  static bool is_urgent(const search::MeasureInput& input) {
    return input.kind == search::MeasureKind::kVerify;
  }
  template <typename T>
  static void add(T one, std::deque<T>& queue, bool urgent) {
    if (urgent) {
      queue.push_front(std::move(one));
    } else {
      queue.push_back(std::move(one));
    }
  }
  void finish(search::MeasureOutcome outcome) {
    if (--num_open == 0) busy_s += seconds_since(busy_since);
    done.push_back(std::move(outcome));
  }

  void drop_waiting() {
    const auto num = static_cast<int64_t>(to_build.size() + to_run.size());
    if (num == 0) return;
    to_build.clear();
    to_run.clear();
    num_pending -= num;
    num_open -= num;
    if (num_open == 0) busy_s += seconds_since(busy_since);
  }

  search::Measurement run(Built& built) {
    return built.input.kind == search::MeasureKind::kVerify ? verify(built) : time(built);
  }

  search::Measurement time(Built& built) {
    const auto start = std::chrono::steady_clock::now();
    runtime::Job job;
    job.artifact = built.artifact.get();
    job.inputs = References::inputs(built.input.task->base, built.input.seed);
    job.timing = timing_of(options, built.input);
    const runtime::JobOutcome ran = device.run(job);
    search::Measurement& m = built.outcome;
    m.status = ran.measurement.status;
    m.disturbed = ran.measurement.disturbed;
    m.samples_ns = ran.measurement.samples_ns;
    m.detail = ran.measurement.detail;
    if (m.ok()) search::summarize_samples(m);
    if (m.ok()) m.machine = state_beside(ran.measurement);
    m.measure_s = seconds_since(start);
    return std::move(m);
  }

  search::Measurement verify(Built& built) {
    const auto start = std::chrono::steady_clock::now();
    search::Measurement& m = built.outcome;
    // Inputs that the candidate was not timed on.
    const uint64_t seed = built.input.seed ^ kVerifySeed;
    compare(built, seed, Values::kUsual, m);
    if (m.ok() && References::has_whole_floats(built.input.task->base))
      compare(built, seed, Values::kReal, m);
    m.verify_s = seconds_since(start);
    return std::move(m);
  }

  // Runs the kernel on such inputs and says in `m` what came out; evidence adds up.
  void compare(const Built& built, uint64_t seed, Values values, search::Measurement& m) {
    const search::Task& task = *built.input.task;
    runtime::Job job;
    job.artifact = built.artifact.get();
    job.inputs = References::inputs(task.base, seed, values);
    job.want_outputs = true;
    runtime::JobOutcome ran = device.run(job);
    m.status = ran.measurement.status;
    m.detail = ran.measurement.detail;
    if (!m.ok()) return;
    const Result<Comparison> comparison =
        references.compare(task, seed, ran.outputs, built.input.within_s, values);
    if (!comparison.ok()) {
      m.status = MeasureStatus::kRunError;
      m.detail = "no reference: " + comparison.error().message();
    } else if (!comparison->ok) {
      m.status = MeasureStatus::kWrongResult;
      m.detail = comparison->what;
    } else if (values == Values::kUsual) {
      m.evidence = comparison->what + ", on " + References::describe_inputs(task.base, seed);
    } else if (comparison->num_exact > 0) {
      m.evidence += fmt::format(", and {} on floats in [-1, 1)", comparison->num_exact);
    }
  }

  static constexpr uint64_t kVerifySeed = 0x5645524946590001ULL;

  runtime::Device& device;
  const MeasurerOptions options;
  References references;
  KeptKernels kept;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<search::MeasureInput> to_build;
  std::deque<Built> to_run;
  std::deque<search::MeasureOutcome> done;
  int num_building = 0;
  bool running = false;
  bool stopping = false;
  int64_t num_open = 0;  // submitted and not done
  std::chrono::steady_clock::time_point busy_since;
  double busy_s = 0;        // without the time since then
  int64_t num_pending = 0;  // submitted and not yet handed out; caller's thread only
  std::vector<std::thread> threads;
};

DeviceMeasurer::DeviceMeasurer(runtime::Device& device, runtime::Device& cpu,
                               const MeasurerOptions& options)
    : impl_(std::make_unique<Impl>(device, cpu, options)) {}
DeviceMeasurer::~DeviceMeasurer() = default;

void DeviceMeasurer::submit(search::MeasureInput input) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->begin(std::move(input));
  }
  ++impl_->num_pending;
  impl_->changed.notify_all();
}

double DeviceMeasurer::busy_seconds() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->busy_s + (impl_->num_open > 0 ? seconds_since(impl_->busy_since) : 0);
}

void DeviceMeasurer::withdraw() {
  const std::lock_guard lock(impl_->mutex);
  impl_->drop_waiting();
}

std::optional<search::MeasureOutcome> DeviceMeasurer::next(search::Deadline deadline) {
  if (impl_->num_pending == 0) return std::nullopt;
  std::unique_lock lock(impl_->mutex);
  if (!impl_->changed.wait_until(lock, deadline, [&] { return !impl_->done.empty(); })) {
    return std::nullopt;
  }
  search::MeasureOutcome outcome = std::move(impl_->done.front());
  impl_->done.pop_front();
  --impl_->num_pending;
  return outcome;
}

}  // namespace prunerc

#include "runtime/worker/device.h"

#include "runtime/clock.h"
#include "runtime/worker/process.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace prunerc::runtime {
namespace {

constexpr int64_t kStartLimitNs = 30'000'000'000;
/// A run may take ten times the best known, and a second for what is slow once (first touch of
/// memory, a busy core).
constexpr double kSoftLimitFactor = 10;
constexpr int64_t kSoftLimitSlackNs = 1'000'000'000;
constexpr double kMemoryShare = 0.8;
/// A check runs a kernel so often at most, and prepares as often.
constexpr int64_t kRunsOfCheck = 6;

int64_t default_memory_limit() {
  const double bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return static_cast<int64_t>(kMemoryShare * bytes);
}

/// Lays inputs given as bytes out in the exchange file and makes the message. Errors: KernelInput,
/// IoError.
Result<JobMessage> make_message(const Job& job, WorkerProcess& worker, int64_t* offset) {
  JobMessage message;
  message.artifact = codegen::serialize(*job.artifact);
  message.check = job.check;
  message.want_outputs = job.want_outputs;
  message.want_timing = job.timing.has_value();
  message.timing = job.timing.value_or(TimingOptions{});
  size_t input_idx = 0;
  for (const codegen::ArtifactParam& param : job.artifact->params) {
    if (param.role == codegen::ParamRole::kOutput) continue;
    if (input_idx == job.inputs.size())
      return error(Diag::kKernelInput, param.name, codegen::size_bytes(param), 0);
    const InputSpec& input = job.inputs[input_idx++];
    message.inputs.push_back({.fill = input.fill, .seed = input.seed, .offset = *offset});
    if (input.fill != Fill::kBytes) continue;
    const auto given = static_cast<int64_t>(input.bytes.size());
    if (given != codegen::size_bytes(param)) {
      return error(Diag::kKernelInput, param.name, codegen::size_bytes(param), given);
    }
    if (!worker.write_exchange(input.bytes, *offset)) {
      return error(Diag::kIoError, "share", param.name, std::strerror(errno));
    }
    *offset += given;
  }
  if (input_idx != job.inputs.size()) return error(Diag::kKernelInput, "(one too many)", 0, 0);
  message.outputs_offset = *offset;
  return message;
}

Measurement from_talk(const TalkResult& talk) {
  switch (talk.status) {
    case TalkStatus::kAnswered: break;
    case TalkStatus::kDied:
    case TalkStatus::kGarbage: return failed(MeasureStatus::kCrash, talk.detail);
    case TalkStatus::kTimeout: return failed(MeasureStatus::kTimeout, talk.detail);
  }
  std::optional<std::vector<Measurement>> answer = decode_measurements(talk.payload);
  if (!answer || answer->size() != 1)
    return failed(MeasureStatus::kCrash, "the process sent garbage");
  return std::move(answer->front());
}

/// After any other end, memory of the worker may be damaged.
bool leaves_worker_clean(MeasureStatus status) {
  return status == MeasureStatus::kOk || status == MeasureStatus::kBuildError;
}

}  // namespace

WorkerDevice::WorkerDevice(WorkerOptions options) : options_(std::move(options)) {
  if (options_.memory_limit_bytes == 0) options_.memory_limit_bytes = default_memory_limit();
}

WorkerDevice::~WorkerDevice() = default;

int64_t WorkerDevice::limit_of(double best_known_ns) const {
  if (best_known_ns <= 0) return options_.run_limit_ns;
  const double soft = kSoftLimitFactor * best_known_ns + static_cast<double>(kSoftLimitSlackNs);
  return static_cast<int64_t>(std::min(soft, static_cast<double>(options_.run_limit_ns)));
}

RequestLimits WorkerDevice::request_limits(int64_t wall_ns, int64_t written) const {
  const int64_t each_ns = options_.cpu_limit_ns > 0 ? options_.cpu_limit_ns : wall_ns;
  return {.file_bytes = std::max(options_.file_limit_bytes, written),
          .cpu_ns = each_ns * std::max(1, options_.num_threads)};
}

Measurement WorkerDevice::ensure_worker() {
  const bool used_up =
      worker_ != nullptr && (jobs_of_worker_ >= options_.max_jobs_per_worker ||
                             now_ns() - worker_->started_ns() > options_.max_worker_age_ns);
  if (used_up) worker_.reset();
  if (worker_ == nullptr) {
    const ConfigureMessage configure = {.num_threads = std::max(1, options_.num_threads),
                                        .memory_limit_bytes = options_.memory_limit_bytes};
    auto started = WorkerProcess::start(options_.worker_argv, options_.environment, configure,
                                        now_ns() + kStartLimitNs);
    if (!started.ok()) return failed(MeasureStatus::kDeviceLost, started.error().message());
    worker_ = std::move(started).value();
    jobs_of_worker_ = 0;
    ++num_started_;
  }
  ++jobs_of_worker_;
  return succeeded();
}

JobOutcome WorkerDevice::attempt(const Job& job, bool* died) {
  *died = false;
  int64_t offset = kExchangeDataOffset;
  Result<JobMessage> message = make_message(job, *worker_, &offset);
  if (!message.ok())
    return {.measurement = failed(MeasureStatus::kDeviceLost, message.error().message()),
            .outputs = {}};
  const TimingOptions timing = message->timing;
  const bool unchecked = job.check == Check::kNone && !job.timing;
  int64_t run_limit = unchecked ? options_.unchecked_run_limit_ns : limit_of(timing.best_known_ns);
  if (job.run_limit_ns > 0) run_limit = std::min(run_limit, job.run_limit_ns);
  const auto stage_limit = [&](Stage stage) {
    if (stage == Stage::kRunning) return run_limit;
    // Sampling ends after max_time_ns; the run in flight then, and a first one in warm-up, come on
    // top.
    if (stage == Stage::kTiming) return 2 * timing.max_time_ns + 3 * run_limit;
    return options_.load_limit_ns;
  };
  const Frame request{.type = FrameType::kRun, .payload = encode(*message)};
  if (request.payload.size() > kMaxFrameBytes) {
    return {.measurement = failed(MeasureStatus::kDeviceLost, "the object is too large to send"),
            .outputs = {}};
  }
  int64_t written = offset;
  for (const codegen::ArtifactParam& param : job.artifact->params) {
    if (job.want_outputs && param.role == codegen::ParamRole::kOutput)
      written += codegen::size_bytes(param);
  }
  int64_t wall_ns = kRunsOfCheck * (run_limit + options_.load_limit_ns);
  for (const Stage stage : {Stage::kLoading, Stage::kPreparing, Stage::kTiming})
    wall_ns += stage_limit(stage);
  const TalkResult talk = worker_->talk(request, request_limits(wall_ns, written), stage_limit);
  *died = talk.status != TalkStatus::kAnswered;
  JobOutcome outcome{.measurement = from_talk(talk), .outputs = {}};
  if (!leaves_worker_clean(outcome.measurement.status)) {
    if (!*died) worker_.reset();
    return outcome;
  }
  for (const codegen::ArtifactParam& param : job.artifact->params) {
    if (!job.want_outputs || !outcome.measurement.ok()) break;
    if (param.role == codegen::ParamRole::kInput) continue;
    const int64_t bytes = codegen::size_bytes(param);
    if (!worker_->read_exchange(offset, bytes, &outcome.outputs.emplace_back())) {
      return {.measurement = failed(MeasureStatus::kCrash, "the outputs are missing"),
              .outputs = {}};
    }
    offset += bytes;
  }
  return outcome;
}

JobOutcome WorkerDevice::run(const Job& job) {
  if (const Result<void> valid = codegen::validate(*job.artifact); !valid.ok()) {
    return {.measurement = failed(MeasureStatus::kBuildError, valid.error().message()),
            .outputs = {}};
  }
  while (true) {
    const Measurement ready = ensure_worker();
    if (ready.status != MeasureStatus::kOk) return {.measurement = ready, .outputs = {}};
    const bool fresh = jobs_of_worker_ == 1;
    bool died = false;
    JobOutcome outcome = attempt(job, &died);
    if (died) worker_.reset();
    // In a process that ran other kernels before, one of them may have done the damage: only a
    // fresh one convicts.
    if (!died || fresh) return outcome;
  }
}

std::vector<Measurement> WorkerDevice::attempt_compare(std::span<const Job> jobs,
                                                       const TimingOptions& timing, bool* died,
                                                       size_t* culprit) {
  *died = false;
  *culprit = 0;
  CompareMessage message;
  message.timing = timing;
  int64_t offset = kExchangeDataOffset;
  for (const Job& job : jobs) {
    Result<JobMessage> one = make_message(job, *worker_, &offset);
    if (!one.ok()) return {jobs.size(), failed(MeasureStatus::kDeviceLost, one.error().message())};
    message.jobs.push_back(*std::move(one));
  }
  const auto num_jobs = static_cast<int64_t>(jobs.size());
  const auto stage_limit = [&](Stage stage) {
    if (stage != Stage::kTiming) return options_.load_limit_ns;
    return num_jobs * (3 * timing.max_time_ns + 3 * options_.run_limit_ns);
  };
  const Frame request{.type = FrameType::kCompare, .payload = encode(message)};
  if (request.payload.size() > kMaxFrameBytes) {
    return {jobs.size(), failed(MeasureStatus::kDeviceLost, "the objects are too large to send")};
  }
  const int64_t wall_ns = 2 * num_jobs * options_.load_limit_ns + stage_limit(Stage::kTiming);
  const TalkResult talk = worker_->talk(request, request_limits(wall_ns, offset), stage_limit);
  if (talk.status == TalkStatus::kAnswered) {
    std::optional<std::vector<Measurement>> answer = decode_measurements(talk.payload);
    if (answer && answer->size() == jobs.size()) return *std::move(answer);
  }
  *died = true;
  *culprit = std::min<size_t>(talk.job_idx, jobs.size() - 1);
  if (talk.status == TalkStatus::kAnswered) {
    return {jobs.size(), failed(MeasureStatus::kCrash, "the process sent garbage")};
  }
  return {jobs.size(), from_talk(talk)};
}

std::vector<Measurement> WorkerDevice::compare(std::span<const Job> jobs,
                                               const TimingOptions& timing) {
  std::vector<Measurement> results(jobs.size());
  std::vector<size_t> remaining;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Result<void> valid = codegen::validate(*jobs[i].artifact);
    if (valid.ok()) {
      remaining.push_back(i);
    } else {
      results[i] = failed(MeasureStatus::kBuildError, valid.error().message());
    }
  }
  // Each failed round names one culprit and goes on without it, so this ends.
  while (!remaining.empty()) {
    worker_.reset();
    std::vector<Job> group;
    for (const size_t i : remaining) group.push_back(jobs[i]);
    const Measurement ready = ensure_worker();
    bool died = false;
    size_t culprit = 0;
    std::vector<Measurement> times = ready.status == MeasureStatus::kOk
                                         ? attempt_compare(group, timing, &died, &culprit)
                                         : std::vector<Measurement>(group.size(), ready);
    if (!died) {
      for (size_t i = 0; i < remaining.size(); ++i) results[remaining[i]] = std::move(times[i]);
      break;
    }
    results[remaining[culprit]] = std::move(times[culprit]);
    remaining.erase(remaining.begin() + static_cast<std::ptrdiff_t>(culprit));
  }
  worker_.reset();
  return results;
}

}  // namespace prunerc::runtime

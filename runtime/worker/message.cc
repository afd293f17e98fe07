#include "runtime/worker/message.h"

#include "ir/support/wire.h"

#include <array>
#include <cmath>

namespace prunerc::runtime {
namespace {

// What the shortest encoding takes: a count of more than the rest of the bytes can hold fails
// before it allocates.
constexpr uint64_t kMinInputBytes = 17;
constexpr uint64_t kMinJobBytes = 84;
constexpr uint64_t kMinMeasurementBytes = 66;

void put(WireWriter& writer, const TimingOptions& timing) {
  writer.put(timing.min_sample_ns);
  writer.put(timing.min_samples);
  writer.put(timing.max_samples);
  writer.put(timing.target_error);
  writer.put(timing.max_time_ns);
  writer.put(timing.best_known_ns);
  writer.put(timing.early_stop_factor);
  writer.put(timing.min_possible_ns);
  writer.put(timing.cache);
  writer.put(timing.constants_bytes);
}

/// False if a field holds what no caller could mean.
bool get(WireReader& reader, TimingOptions* timing) {
  timing->min_sample_ns = reader.get<int64_t>();
  timing->min_samples = reader.get<int32_t>();
  timing->max_samples = reader.get<int32_t>();
  timing->target_error = reader.get<double>();
  timing->max_time_ns = reader.get<int64_t>();
  timing->best_known_ns = reader.get<double>();
  timing->early_stop_factor = reader.get<double>();
  timing->min_possible_ns = reader.get<double>();
  timing->cache = reader.get<CacheState>();
  timing->constants_bytes = reader.get<int64_t>();
  return !reader.failed() && timing->cache <= CacheState::kFlushed && timing->constants_bytes >= 0;
}

void put(WireWriter& writer, const JobMessage& job) {
  writer.put_string(job.artifact);
  writer.put(static_cast<uint64_t>(job.inputs.size()));
  for (const InputMessage& input : job.inputs) {
    writer.put(input.fill);
    writer.put(input.seed);
    writer.put(input.offset);
  }
  writer.put(job.check);
  writer.put(static_cast<uint8_t>(job.want_outputs));
  writer.put(job.outputs_offset);
  writer.put(static_cast<uint8_t>(job.want_timing));
  put(writer, job.timing);
}

bool get_flag(WireReader& reader, bool* flag) {
  const auto byte = reader.get<uint8_t>();
  *flag = byte == 1;
  return byte <= 1;
}

bool get(WireReader& reader, JobMessage* job) {
  job->artifact = reader.get_string();
  const uint64_t num_inputs = reader.get_count(kMinInputBytes);
  for (uint64_t i = 0; i < num_inputs; ++i) {
    InputMessage input;
    input.fill = reader.get<Fill>();
    input.seed = reader.get<uint64_t>();
    input.offset = reader.get<int64_t>();
    if (static_cast<int>(input.fill) >= kNumFills || input.offset < 0) return false;
    job->inputs.push_back(input);
  }
  job->check = reader.get<Check>();
  bool valid = job->check <= Check::kMemory;
  valid = get_flag(reader, &job->want_outputs) && valid;
  job->outputs_offset = reader.get<int64_t>();
  valid = get_flag(reader, &job->want_timing) && valid;
  valid = get(reader, &job->timing) && valid;
  return valid && job->outputs_offset >= 0;
}

void put(WireWriter& writer, const Measurement& measurement) {
  writer.put(measurement.status);
  writer.put(static_cast<uint64_t>(measurement.samples_ns.size()));
  for (const double sample : measurement.samples_ns) writer.put(sample);
  writer.put(measurement.median_ns);
  writer.put(measurement.min_ns);
  writer.put(measurement.spread);
  writer.put(measurement.runs_per_sample);
  writer.put(measurement.num_disturbed);
  writer.put(static_cast<uint8_t>(measurement.disturbed));
  writer.put(measurement.canary_ns);
  writer.put(measurement.reference_ns);
  writer.put_string(measurement.detail);
}

bool get(WireReader& reader, Measurement* measurement) {
  measurement->status = reader.get<MeasureStatus>();
  const uint64_t num_samples = reader.get_count(sizeof(double));
  bool finite = true;
  const auto get_finite = [&] {
    const auto value = reader.get<double>();
    finite = finite && std::isfinite(value);
    return value;
  };
  measurement->samples_ns.reserve(num_samples);
  for (uint64_t i = 0; i < num_samples; ++i) measurement->samples_ns.push_back(get_finite());
  measurement->median_ns = get_finite();
  measurement->min_ns = get_finite();
  measurement->spread = get_finite();
  measurement->runs_per_sample = reader.get<int64_t>();
  measurement->num_disturbed = reader.get<int64_t>();
  const bool valid = get_flag(reader, &measurement->disturbed);
  measurement->canary_ns = get_finite();
  measurement->reference_ns = get_finite();
  measurement->detail = reader.get_string();
  return finite && valid && static_cast<int>(measurement->status) < kNumMeasureStatuses;
}

}  // namespace

std::string encode(const ConfigureMessage& message) {
  WireWriter writer;
  writer.put(message.num_threads);
  writer.put(message.memory_limit_bytes);
  return writer.take();
}

std::optional<ConfigureMessage> decode_configure(std::string_view bytes) {
  WireReader reader(bytes);
  ConfigureMessage message;
  message.num_threads = reader.get<int32_t>();
  message.memory_limit_bytes = reader.get<int64_t>();
  if (!reader.at_end() || message.num_threads < 1 || message.memory_limit_bytes < 0)
    return std::nullopt;
  return message;
}

std::string encode(const JobMessage& message) {
  WireWriter writer;
  put(writer, message);
  return writer.take();
}

std::optional<JobMessage> decode_job(std::string_view bytes) {
  WireReader reader(bytes);
  JobMessage message;
  if (!get(reader, &message) || !reader.at_end()) return std::nullopt;
  return message;
}

std::string encode(const CompareMessage& message) {
  WireWriter writer;
  writer.put(static_cast<uint64_t>(message.jobs.size()));
  for (const JobMessage& job : message.jobs) put(writer, job);
  put(writer, message.timing);
  return writer.take();
}

std::optional<CompareMessage> decode_compare(std::string_view bytes) {
  WireReader reader(bytes);
  CompareMessage message;
  const uint64_t num_jobs = reader.get_count(kMinJobBytes);
  for (uint64_t i = 0; i < num_jobs; ++i) {
    if (!get(reader, &message.jobs.emplace_back())) return std::nullopt;
  }
  if (!get(reader, &message.timing) || !reader.at_end()) return std::nullopt;
  return message;
}

std::string encode(const std::vector<Measurement>& message) {
  WireWriter writer;
  writer.put(static_cast<uint64_t>(message.size()));
  for (const Measurement& measurement : message) put(writer, measurement);
  return writer.take();
}

std::optional<std::vector<Measurement>> decode_measurements(std::string_view bytes) {
  WireReader reader(bytes);
  std::vector<Measurement> message(reader.get_count(kMinMeasurementBytes));
  for (Measurement& measurement : message) {
    if (!get(reader, &measurement)) return std::nullopt;
  }
  if (!reader.at_end()) return std::nullopt;
  return message;
}

std::string_view to_string(Stage stage) {
  constexpr std::array<std::string_view, 5> kNames = {"idle", "loading", "preparing", "running",
                                                      "timing"};
  const auto idx = static_cast<size_t>(stage);
  return idx < kNames.size() ? kNames[idx] : "in an unknown stage";
}

}  // namespace prunerc::runtime

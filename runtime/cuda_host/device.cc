#include "runtime/cuda_host/device.h"

#include <limits>
#include <optional>

namespace prunerc::runtime::cuda_host {
namespace {

constexpr int64_t kFileBytes = int64_t{256} << 20;

WorkerOptions worker_options(const HostDeviceOptions& options) {
  WorkerOptions result;
  result.num_threads = options.num_threads;
  result.worker_argv = options.worker_argv;
  result.run_limit_ns = options.run_limit_ns;
  result.unchecked_run_limit_ns = options.run_limit_ns;
  // Objects are linked from a temporary file; a sanitizer looks for its symbolizer.
  result.file_limit_bytes = kFileBytes;
  result.environment = {"TMPDIR", "PATH"};
  if (options.memory == HostDeviceOptions::Memory::kUnlimited)
    result.memory_limit_bytes = std::numeric_limits<int64_t>::max();
  return result;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// "kernel.cu:26" of a frame in the kernel's text.
std::optional<std::string> place_in(std::string_view line) {
  const size_t at = line.find("kernel.cu:");
  if (at == std::string_view::npos) return std::nullopt;
  size_t end = at + std::string_view("kernel.cu:").size();
  while (end < line.size() && line[end] >= '0' && line[end] <= '9') ++end;
  return std::string(line.substr(at, end - at));
}

/// The first place in the kernel below line `from`, before the next empty line.
std::string first_place(const std::vector<std::string_view>& lines, size_t from) {
  for (size_t i = from + 1; i < lines.size() && !lines[i].empty(); ++i) {
    if (const auto place = place_in(lines[i])) return " at " + *place;
  }
  return "";
}

/// "write" or "read" if the line begins a sanitizer's account of an access.
std::string access_of(std::string_view line) {
  for (const std::string_view word : {"Write", "write", "WRITE"}) {
    if (contains(line, std::string(word) + " of size ")) return "write";
  }
  for (const std::string_view word : {"Read", "read", "READ"}) {
    if (contains(line, std::string(word) + " of size ")) return "read";
  }
  return "";
}

/// What acts by itself is a named thread to the race checker: " by wgmma" for "... by thread T7:"
/// if the report introduces T7 with that name.
std::string actor_of(std::string_view line, std::string_view log) {
  const size_t at = line.find("thread T");
  if (at == std::string_view::npos) return "";
  const std::string_view rest = line.substr(at + 7);
  const std::string named =
      "Thread " + std::string(rest.substr(0, rest.find_first_of(": "))) + " '";
  const size_t name = log.find(named);
  if (name == std::string_view::npos) return "";
  const std::string_view quoted = log.substr(name + named.size());
  return " by " + std::string(quoted.substr(0, quoted.find('\'')));
}

/// What a bounds checker says of an address that is far off: "The signal is caused by a WRITE".
std::string signal_access_of(std::string_view line) {
  if (contains(line, "caused by a WRITE")) return "write";
  return contains(line, "caused by a READ") ? "read" : "";
}

}  // namespace

std::string summarize_report(std::string_view log) {
  const std::vector<std::string_view> lines = lines_of(log);
  std::string race, bounds;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    const std::string access = access_of(line);
    if (contains(line, "WARNING: ThreadSanitizer: data race")) race = "data race:";
    if (!race.empty() && !access.empty())
      race +=
          (race.back() == ':' ? " " : ", ") + access + actor_of(line, log) + first_place(lines, i);
    if (contains(line, "runtime error:")) {
      const size_t at = line.find("runtime error:");
      return std::string(line.substr(at + 15)) + (place_in(line) ? " at " + *place_in(line) : "");
    }
    if (contains(line, "ERROR: AddressSanitizer: ")) {
      const size_t at = line.find("AddressSanitizer: ") + 18;
      bounds = std::string(line.substr(at, line.find(' ', at) - at)) + ":";
    } else if (!bounds.empty() && !(access + signal_access_of(line)).empty()) {
      return bounds + " " + access + signal_access_of(line) + first_place(lines, i);
    }
  }
  return !race.empty() ? race : bounds;
}

HostDevice::HostDevice(HostDeviceOptions options) : workers_(worker_options(options)) {}

JobOutcome HostDevice::run(const Job& job) {
  JobOutcome outcome = workers_.run(job);
  Measurement& measurement = outcome.measurement;
  if (measurement.status != MeasureStatus::kCrash) return outcome;
  const std::string summary = summarize_report(measurement.detail);
  if (summary.empty()) return outcome;
  if (summary.rfind("data race", 0) == 0) measurement.status = MeasureStatus::kWrongResult;
  measurement.detail = summary;
  return outcome;
}

std::vector<Measurement> HostDevice::compare(std::span<const Job> jobs, const TimingOptions&) {
  return {jobs.size(),
          failed(MeasureStatus::kRunError, "the host stands in for a GPU: its times mean nothing")};
}

}  // namespace prunerc::runtime::cuda_host

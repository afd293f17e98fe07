// What the parent and a worker agree on: messages as plain data, the memory that both map,
// descriptors.
#ifndef PRUNERC_RUNTIME_WORKER_MESSAGE_H_
#define PRUNERC_RUNTIME_WORKER_MESSAGE_H_

#include "runtime/device.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::runtime {

struct ConfigureMessage {
  int32_t num_threads = 1;
  int64_t memory_limit_bytes = 0;  ///< of address space; 0: none

  bool operator==(const ConfigureMessage&) const = default;
};

/// An input as it travels: bytes lie in the exchange file at `offset`.
struct InputMessage {
  Fill fill = Fill::kUniform;
  uint64_t seed = 0;
  int64_t offset = 0;

  bool operator==(const InputMessage&) const = default;
};

struct JobMessage {
  std::string artifact;  ///< serialized
  std::vector<InputMessage> inputs;
  Check check = Check::kMemory;
  bool want_outputs = false;
  int64_t outputs_offset = 0;  ///< in the exchange file; outputs follow each other without gaps
  bool want_timing = false;
  TimingOptions timing;

  bool operator==(const JobMessage&) const = default;
};

struct CompareMessage {
  std::vector<JobMessage> jobs;
  TimingOptions timing;

  bool operator==(const CompareMessage&) const = default;
};

std::string encode(const ConfigureMessage& message);
std::string encode(const JobMessage& message);
std::string encode(const CompareMessage& message);
std::string encode(const std::vector<Measurement>& message);

/// Each accepts exactly what encode makes; anything else is nullopt, in time and memory linear in
/// the bytes.
std::optional<ConfigureMessage> decode_configure(std::string_view bytes);
std::optional<JobMessage> decode_job(std::string_view bytes);
std::optional<CompareMessage> decode_compare(std::string_view bytes);
std::optional<std::vector<Measurement>> decode_measurements(std::string_view bytes);

/// What a worker is doing; lies at the start of the exchange file, so that it can be read after a
/// sudden death.
enum class Stage : uint32_t { kIdle, kLoading, kPreparing, kRunning, kTiming };

/// "running".
std::string_view to_string(Stage stage);

struct StatusPage {
  uint32_t stage;
  uint32_t job_idx;  ///< in a comparison: the job in flight
  char detail[480];  ///< written by the signal handler; NUL-terminated
};
inline constexpr int64_t kExchangeDataOffset = 4096;

// Where a worker finds its ends of the pipes and the shared exchange file.
inline constexpr int kWorkerInFd = 3;
inline constexpr int kWorkerOutFd = 4;
inline constexpr int kWorkerExchangeFd = 5;

/// Set in a worker's environment; a worker never starts workers.
inline constexpr const char* kWorkerVariable = "PRUNERC_IN_WORKER";

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_WORKER_MESSAGE_H_

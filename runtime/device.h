// The interface to whatever runs kernels: one implementation per kind of device.
#ifndef PRUNERC_RUNTIME_DEVICE_H_
#define PRUNERC_RUNTIME_DEVICE_H_

#include "codegen/artifact.h"
#include "runtime/fill.h"
#include "runtime/measurement.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::runtime {

/// What one input of a kernel holds.
struct InputSpec {
  Fill fill = Fill::kUniform;
  uint64_t seed = 0;       ///< of the fill
  std::string_view bytes;  ///< the tensor itself if the fill is kBytes; borrowed for the call
};

enum class Check : uint8_t {
  kNone,    ///< run once
  kMemory,  ///< run twice, in differently placed and poisoned buffers: see JobOutcome
};

/// One kernel to run, to check, to time, or all of these.
struct Job {
  const codegen::Artifact* artifact = nullptr;  ///< borrowed for the call
  std::vector<InputSpec> inputs;                ///< one per input parameter, in order
  Check check = Check::kMemory;
  bool want_outputs = false;
  std::optional<TimingOptions> timing;  ///< absent: do not time
  int64_t run_limit_ns = 0;  ///< of a run, if that is less than the device's own; 0: its own
};

/// `measurement.status` tells how far the job came; a job without timing that went well is kOk
/// without samples. Under Check::kMemory these are kWrongResult: a write outside a buffer, to an
/// input, an output element that is not written or that differs between two runs on the same
/// inputs.
struct JobOutcome {
  Measurement measurement;
  std::vector<std::string> outputs;  ///< one per output parameter if wanted and the run went well
};

/// Runs kernels. Whatever a kernel does, every call returns, and the next call works.
/// Threads: one call at a time.
class Device {
 public:
  virtual ~Device() = default;
  virtual JobOutcome run(const Job& job) = 0;
  /// Times several jobs in turn, each with `timing`, in one process: for choosing among finalists.
  virtual std::vector<Measurement> compare(std::span<const Job> jobs,
                                           const TimingOptions& timing) = 0;
};

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_DEVICE_H_

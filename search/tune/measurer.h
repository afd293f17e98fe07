// Measurer: who builds, times and verifies candidates. Search owns the interface; tools/ implements
// it with codegen and runtime, tests with a table.
#ifndef PRUNERC_SEARCH_TUNE_MEASURER_H_
#define PRUNERC_SEARCH_TUNE_MEASURER_H_

#include "ir/program.h"
#include "schedule/trace/trace.h"
#include "search/record/measurement.h"
#include "search/space/task.h"

#include <chrono>
#include <cstdint>
#include <optional>

namespace prunerc::search {

/// Verify: run on fresh inputs and compare with the unscheduled program; no timing needed.
enum class MeasureKind : uint8_t { kTime, kVerify };

struct MeasureInput {
  int64_t id = 0;  // unique within one tune() call
  MeasureKind kind = MeasureKind::kTime;
  const Task* task = nullptr;  // outlives the request
  ir::Program program;         // scheduled
  schedule::Trace trace;
  double best_ns = 0;  // best so far, 0 if none: a measurer may stop early far above it
  uint64_t seed = 0;   // for input data
  /// Of a verification: what would take longer is left out, as far as something is compared at all;
  /// 0: no limit. Units: seconds.
  double within_s = 0;
};

struct MeasureOutcome {
  int64_t id = 0;
  Measurement measurement;
};

using Deadline = std::chrono::steady_clock::time_point;

/// Asynchronous: builds run ahead of measuring, answers may come in any order, each request is
/// answered once. Threads: submit and next are called from one thread.
class Measurer {
 public:
  virtual ~Measurer() = default;
  virtual void submit(MeasureInput input) = 0;
  /// An outcome as soon as there is one; nothing once `deadline` has passed or no request is
  /// pending.
  virtual std::optional<MeasureOutcome> next(Deadline deadline) = 0;
  /// Wall seconds so far in which there was something to build or to run; 0 if nobody counts.
  virtual double busy_seconds() const { return 0; }
  /// Drops the requests that nobody has begun; they get no answer.
  virtual void withdraw() {}
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_TUNE_MEASURER_H_

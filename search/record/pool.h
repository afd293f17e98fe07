// Pool: measured candidates of one task on one platform, in one small file: what searches and
// models are studied on where there is no device.
#ifndef PRUNERC_SEARCH_RECORD_POOL_H_
#define PRUNERC_SEARCH_RECORD_POOL_H_

#include "ir/support/result.h"
#include "schedule/trace/trace.h"
#include "search/record/measurement.h"
#include "search/space/space.h"
#include "search/space/task.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::search {

inline constexpr int kPoolFormat = 1;

/// How a candidate came into the pool. Statistics of the space are those of uniform ones.
enum class PoolOrigin : uint8_t { kUniform, kSearched };
std::string_view to_string(PoolOrigin origin);

/// One measured candidate.
struct PoolRow {
  int sketch = 0;
  std::vector<schedule::Decision> decisions;
  uint32_t fingerprint = 0;  // the low bits of the program's: tells whether a build still makes it
  MeasureStatus status = MeasureStatus::kRejected;
  PoolOrigin origin = PoolOrigin::kUniform;
  bool disturbed = false;  // other work took the CPU during most samples
  bool is_final = false;   // measured again in turns with the best others
  bool verified = false;   // its outputs were compared with the operator's
  int num_samples = 0;     // one or two for candidates that were cut, being far from the best
  double median_ns = 0;    // kept to 0.03 %; 0 unless ok
  double spread = 0;       // kept to 0.001
  double build_s = 0;      // kept to 1 %
  double measure_s = 0;    // kept to 1 %
  bool operator==(const PoolRow&) const = default;
  bool ok() const { return status == MeasureStatus::kOk; }
};

/// What became of the uniform draws of one sketch.
struct SketchDraws {
  int64_t drawn = 0;
  int64_t rejected = 0;  // no legal program
  int64_t repeated = 0;  // a program that the pool has
  bool operator==(const SketchDraws&) const = default;
};

struct Pool {
  std::string op, op_text, bindings;
  std::string program;   // canonical text of the unscheduled operator
  std::string platform;  // full target text with the numbers measured that day
  std::string timer, version, created;
  uint64_t seed = 0;
  double share_searched = 0;
  int64_t num_batches = 0;  // drawn so far: where a recording goes on
  std::vector<Sketch> sketches;
  std::vector<SketchDraws> draws;  // by sketch
  std::array<std::string, kNumMeasureStatuses>
      examples;               // by status: what was said of the first failure
  std::vector<PoolRow> rows;  // in the order of measuring

  /// The task as it was tuned, from the texts. Errors: those of the parser, TargetUnknown,
  /// TargetField.
  Result<Task> task() const;
  /// All decisions of the recorded sketches, measured or not.
  SearchSpace space() const;
  /// Row of the fastest, -1 if none ran.
  int best() const;
};

/// An empty pool of the task with these sketches.
Pool make_pool(const Task& task, const SearchSpace& space);

/// The file's bytes: a magic, the format, a checksum, and zstd over a JSON header and columns.
std::string serialize(const Pool& pool);
/// Errors: PoolDamaged, PoolVersion. `path` is for messages.
Result<Pool> parse_pool(std::string_view bytes, const std::string& path);

/// Replaces the file as a whole: a reader, or who comes after a crash, finds the old or the new
/// one. Errors: IoError.
Result<void> write_pool(const Pool& pool, const std::string& path);
/// Errors: IoError, PoolDamaged, PoolVersion.
Result<Pool> read_pool(const std::string& path);

/// The row as a file would give it back.
PoolRow rounded(PoolRow row);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_RECORD_POOL_H_

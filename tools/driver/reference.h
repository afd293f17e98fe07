// What a task's outputs must be, and whether a candidate's are: architecture.md's "nothing unverified wins".
#ifndef PRUNERC_TOOLS_DRIVER_REFERENCE_H_
#define PRUNERC_TOOLS_DRIVER_REFERENCE_H_

#include <map>
#include <string>
#include <vector>

#include "ir/support/result.h"
#include "runtime/device.h"
#include "search/task.h"

namespace prunerc {

/// One comparison of outputs.
struct Comparison {
  bool ok = false;
  int64_t num_elems = 0;   ///< compared with the unscheduled program
  int64_t num_exact = 0;   ///< of these, evaluated in double over the full reduction
  double worst = 0;        ///< largest error as a part of its bound
  std::string what;        ///< for people: the first difference, or what was compared
};

/// Keeps, per task, the outputs of the unscheduled program on inputs that no candidate was timed on.
/// Threads: one call at a time.
class References {
 public:
  explicit References(runtime::Device& device) : device_(device) {}

  /// The inputs that verification uses: floats in [-1, 1), small integers.
  static std::vector<runtime::InputSpec> inputs(const ir::Program& program, uint64_t seed);

  /// Compares a candidate's outputs on inputs(task.base, seed) with the reference.
  /// Errors: whatever keeps the reference itself from being computed.
  Result<Comparison> compare(const search::Task& task, uint64_t seed,
                             const std::vector<std::string>& outputs);

 private:
  struct Expected {
    std::vector<std::string> outputs;
    std::vector<std::vector<int64_t>> sampled;       // positions checked in double, per output
    std::vector<std::vector<double>> exact, bounds;  // value and allowed error at those positions
    double relative = 0;                             // allowed error of every element against `outputs`
  };
  Result<const Expected*> expected(const search::Task& task, uint64_t seed);

  runtime::Device& device_;
  std::map<std::string, Expected> expected_;  // by task key hash and seed
};

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_REFERENCE_H_

// What a task's outputs must be, and whether a candidate's are (search/DESIGN.md, D8).
#ifndef PRUNERC_TOOLS_DRIVER_REFERENCE_H_
#define PRUNERC_TOOLS_DRIVER_REFERENCE_H_

#include "ir/interp/elements.h"
#include "ir/support/result.h"
#include "runtime/device.h"
#include "search/space/task.h"

#include <string>
#include <vector>

namespace prunerc {

/// The unscheduled program with each block's contiguous output axis innermost and in vectors: a
/// reduction's terms are still added one after the other. A block that does not take this form stays
/// as it is.
ir::Program reference_schedule(const ir::Program& base, const ir::Target& target);

/// One comparison of outputs.
struct Comparison {
  bool ok = false;
  int64_t num_elems = 0;  ///< compared with the unscheduled program, where that gives numbers
  int64_t num_exact = 0;  ///< of these, evaluated in double over the full reduction
  double worst = 0;       ///< largest error as a part of its bound
  std::string what;       ///< for people: the first difference, or what was compared
  bool is_empty() const { return num_elems + num_exact == 0; }
};

/// What inputs hold. Small whole numbers, where a program computes the same with them in any order,
/// show a wrong element to the bit; they do not show that arithmetic is coarser than it should be.
enum class Values : uint8_t { kUsual, kReal };

/// Says what a task's outputs must be on inputs that no candidate was timed on. Two sources: all
/// outputs of the unscheduled program (its innermost output axis vectorized, so that it ends in
/// reasonable time; sums keep their order), and a few thousand outputs in double over the full
/// reduction (ir/interp/elements.h), each with its own bound. Threads: one call at a time.
class References {
 public:
  /// The device runs kernels for this machine's CPU.
  explicit References(runtime::Device& cpu) : device_(cpu) {}

  /// The inputs that verification uses: floats in [-1, 1), or small integers where these make every
  /// result exact.
  static std::vector<runtime::InputSpec> inputs(const ir::Program& program, uint64_t seed,
                                                Values values = Values::kUsual);
  /// True if the usual inputs of a program with floats are whole numbers.
  static bool has_whole_floats(const ir::Program& program);
  /// The usual ones for people: "floats in [-1, 1), seed 7".
  static std::string describe_inputs(const ir::Program& program, uint64_t seed);
  /// What the worker fills these inputs with.
  static std::vector<ir::Tensor> tensors(const ir::Program& program, uint64_t seed,
                                         Values values = Values::kUsual);

  /// Compares a candidate's outputs on inputs(task.base, seed, values) with the reference. An
  /// unscheduled program that would run for longer than `within_s` seconds (0: as long as it takes)
  /// is left to the sample in double; so is every one on Values::kReal, and there may be no sample.
  /// Outputs of a derived task are compared with the operator's program as well, on the same inputs:
  /// as far as Task::spec_error lets them be apart.
  /// Errors: ProgramInvalid if the task's own program leaves a buffer, reads what was never
  /// written or crashes on these inputs; whatever else keeps the reference from being computed.
  Result<Comparison> compare(const search::Task& task, uint64_t seed,
                             const std::vector<std::string>& outputs, double within_s = 0,
                             Values values = Values::kUsual);

 private:
  struct Expected {
    std::vector<std::string> outputs;                    // empty: too slow to run whole
    std::vector<std::vector<int64_t>> positions;         // evaluated in double, per output
    std::vector<std::vector<ir::Reference>> references;  // of these
    double relative = 0;  // error by rounding against `outputs`, as a part of the largest value
    bool exact = false;   // there is none, as inputs are small whole numbers
    bool tf32 = false;    // factors of f32 products may be those of tf32
    double coarser = 1;   // bounds of single elements are so many times too fine
  };
  // `filled`: the program that says what inputs hold.
  Result<Comparison> compare_with(const search::Task& task, const ir::Program& filled,
                                  uint64_t seed, const std::vector<std::string>& outputs,
                                  double within_s, Values values);
  Result<const Expected*> expected(const search::Task& task, const ir::Program& filled,
                                   uint64_t seed, double within_s, Values values);
  Result<void> run_unscheduled(const search::Task& task, const ir::Program& filled, uint64_t seed,
                               double within_s, Expected* out);
  static Result<void> evaluate_sample(const search::Task& task, const ir::Program& filled,
                                      uint64_t seed, Values values, Expected* out);
  static Result<void> evaluate_all(const search::Task& task, const ir::Program& filled,
                                   uint64_t seed, Values values, Expected* out);

  runtime::Device& device_;
  std::string last_key_;  // of last_: task and seed; every verification has a seed of its own
  Expected last_;
};

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_REFERENCE_H_

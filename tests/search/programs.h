// Small operators as program text, and a measurer that answers from a formula.
#ifndef PRUNERC_TESTS_SEARCH_PROGRAMS_H_
#define PRUNERC_TESTS_SEARCH_PROGRAMS_H_

#include "search/space/task.h"
#include "search/tune/measurer.h"

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace prunerc::testing {

struct NamedProgram {
  const char* name;
  const char* text;
  /// False: GPU sketches keep conditions x % s == c or subscripts x // s, which instances simplify
  /// further than their parametric form.
  bool has_gpu_form = true;
};
/// At least a dozen operators with small, partly odd extents.
const std::vector<NamedProgram>& operator_programs();

/// The program of that name; fails the test if there is none.
ir::Program operator_program(const std::string& name);

/// A task on an AVX-512 machine of the target table.
search::Task make_test_task(const std::string& name, int num_threads = 2);

/// Answers after `delay` calls of next, in the order of submission or reversed within what is
/// pending.
class TableMeasurer : public search::Measurer {
 public:
  using Formula = std::function<search::Measurement(const search::MeasureInput&)>;
  explicit TableMeasurer(Formula formula, bool reversed = false)
      : formula_(std::move(formula)), reversed_(reversed) {}
  void submit(search::MeasureInput input) override;
  std::optional<search::MeasureOutcome> next(search::Deadline deadline) override;

  int num_timed = 0;
  int num_verified = 0;

 private:
  Formula formula_;
  bool reversed_;
  std::deque<search::MeasureInput> pending_;
};

/// A time between 1 and 2 us that depends on nothing but the program.
search::Measurement hashed_time(const search::MeasureInput& input);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SEARCH_PROGRAMS_H_

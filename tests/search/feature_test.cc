// Features of sketches: what a batch says of a candidate is what its program has, for the sketches
// that search makes of every operator.
#include "costmodel/feature/batch.h"
#include "costmodel/feature/names.h"
#include "schedule/parametric/parametric.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

namespace prunerc {
namespace {

using namespace costmodel;  // NOLINT: a test
using namespace search;     // NOLINT: a test
using namespace testing;    // NOLINT: a test

struct Count {
  int sketches = 0, candidates = 0;
  int equal = 0;         // all features to 1e-5
  double values = 0;     // of all candidates ..
  double different = 0;  // .. those off by more than 1e-5
  double most = 0;       // farthest off
  double derive_ms = 0, most_derive_ms = 0;
  int tags_differ = 0;
  std::map<std::string, int> which;  // names of different features, without the buffer
};

/// Columns of values by parameter.
struct Columns {
  explicit Columns(const std::vector<std::vector<int64_t>>& points) : data(points[0].size()) {
    for (const std::vector<int64_t>& point : points) {
      for (std::size_t p = 0; p < point.size(); ++p) {
        data[p].push_back(static_cast<double>(point[p]));
      }
    }
    for (const std::vector<double>& column : data) pointers.push_back(column.data());
  }
  std::vector<std::vector<double>> data;
  std::vector<const double*> pointers;
};

template <typename Vector>
bool compare(const Vector& got, const Vector& wanted, FeatureGroup group, Count* count) {
  bool same = true;
  for (std::size_t f = 0; f < got.size(); ++f) {
    const double off = std::abs(static_cast<double>(got[f]) - static_cast<double>(wanted[f]));
    count->values += 1;
    if (off <= 1e-5) continue;
    same = false;
    count->different += 1;
    count->most = std::max(count->most, off);
    const std::string& name = feature_names(group)[f].name;
    ++count->which[(group == FeatureGroup::kFlow ? "flow." : "") + name.substr(name.find('.') + 1)];
  }
  return same;
}

void compare(const ModelFeatures& got, const ModelFeatures& wanted, Count* count) {
  REQUIRE(got.statements.size() == wanted.statements.size());
  REQUIRE(got.flow.size() == wanted.flow.size());
  bool same = true;
  for (std::size_t s = 0; s < got.statements.size(); ++s) {
    same &= compare(got.statements[s], wanted.statements[s], FeatureGroup::kStatement, count);
  }
  for (std::size_t s = 0; s < got.flow.size(); ++s) {
    same &= compare(got.flow[s], wanted.flow[s], FeatureGroup::kFlow, count);
  }
  for (std::size_t s = 0; s < kNumPaperFlowSteps; ++s) {
    // Rows of the flow, named as these are.
    FlowFeatures one = {}, other = {};
    std::copy(got.paper_flow[s].begin(), got.paper_flow[s].end(), one.begin());
    std::copy(wanted.paper_flow[s].begin(), wanted.paper_flow[s].end(), other.begin());
    same &= compare(one, other, FeatureGroup::kFlow, count);
  }
  ++count->candidates;
  count->equal += same ? 1 : 0;
}

void compare(const Task& task, const SearchSpace& space, int sketch, int num_cases, Count* count) {
  const Sketch& from = space.sketches[static_cast<std::size_t>(sketch)];
  const Result<schedule::Parametric> made = schedule::parametrize(task.base, from.trace);
  if (from.name.ends_with("+chain")) return;  // has no parametric form
  REQUIRE_OK(made);
  const FeatureProgram program = derive_features(made->program, task.target, &task.base);
  ++count->sketches;
  count->derive_ms += program.derive_ms;
  count->most_derive_ms = std::max(count->most_derive_ms, program.derive_ms);
  std::vector<std::vector<int64_t>> points;
  for (int i = 0; i < num_cases; ++i) {
    Rng rng(first_seed(), static_cast<uint64_t>(sketch), static_cast<uint64_t>(i));
    const Genome genome = random_genome(space, sketch, rng);
    const Result<std::vector<int64_t>> values = param_values(*made, genome.decisions);
    if (values.ok() && schedule::check_values(*made, *values).ok()) points.push_back(*values);
  }
  if (points.empty()) return;
  const Columns columns(points);
  const bool has_partial_sums = schedule::print(from.trace).find("rfactor(") != std::string::npos;
  FeatureScratch scratch;
  FeatureBatch batch;
  evaluate(program, columns.pointers, points.size(), &scratch, &batch);
  REQUIRE(batch.size == points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    INFO(task.name << " " << from.name << " case " << i);
    const Result<ir::Program> instance = schedule::instantiate(*made, points[i]);
    REQUIRE_OK(instance);
    const ModelFeatures wanted = extract(*instance, task.target);
    const ModelFeatures got = batch.of(i);
    CHECK(got.tag == task_tag(task.base));
    // Partial sums by lane are one more dimension of the result.
    if (!has_partial_sums) count->tags_differ += got.tag == wanted.tag ? 0 : 1;
    CHECK(got.hardware == wanted.hardware);
    compare(got, wanted, count);
  }
}

void print(const char* what, const Count& c) {
  std::cout << what << ": " << c.sketches << " sketches derived in " << c.derive_ms / c.sketches
            << " ms (at most " << c.most_derive_ms << "); of " << c.candidates << " candidates "
            << c.equal << " equal; of " << c.values << " features " << c.different
            << " differ, by at most " << c.most << "; " << c.tags_differ << " tags differ\n";
  for (const auto& [name, n] : c.which) std::cout << "  " << name << " " << n << "\n";
}

enum class Sketches : uint8_t { kAll, kPadded, kUnpadded };

Count compare_all(const char* target_name, bool is_gpu, Sketches which = Sketches::kAll) {
  Count count;
  for (const NamedProgram& op : operator_programs()) {
    if (is_gpu && !op.has_gpu_form) continue;
    const Task task =
        is_gpu ? make_task(op.name, operator_program(op.name), *ir::target_from_string(target_name))
               : make_test_task(op.name);
    const Result<SearchSpace> space = make_space(task);
    REQUIRE_OK(space);
    for (std::size_t s = 0; s < space->sketches.size(); ++s) {
      const std::string trace = schedule::print(space->sketches[s].trace);
      const bool is_padded = trace.find("pad_einsum(") != std::string::npos;
      if (which != Sketches::kAll && is_padded != (which == Sketches::kPadded)) continue;
      compare(task, *space, static_cast<int>(s), num_cases(200) / 10, &count);
    }
  }
  print(target_name, count);
  return count;
}

TEST_CASE("a batch has the features of the candidates' programs, on a processor") {
  const Count c = compare_all("cpu", false);
  CHECK(c.equal == c.candidates);
  CHECK(c.tags_differ == 0);
}

TEST_CASE("a batch has the features of the candidates' programs, on a GPU") {
  const Count c = compare_all("cuda-host:sm_80", true, Sketches::kUnpadded);
  // Fetches of fewer elements than threads: the guard's sum is no longer to be seen in a program's
  // simplified subscripts, so the program's buffer looks larger than the sketch's.
  // Of tiles cut at a buffer's end a program's bound is the nearer one, so the sketch's buffer looks
  // larger, too (no candidate is refused for that: analyzer_test).
  CHECK(c.equal > 0.8 * c.candidates);
  CHECK(c.different < 0.0025 * c.values);
  CHECK(c.most < 4);
  CHECK(c.tags_differ == 0);
}

TEST_CASE("a batch has nearly the features of padded candidates' programs, on a GPU") {
  const Count c = compare_all("cuda-host:sm_80", true, Sketches::kPadded);
  // Where tiles divide an extent a program loses the padding's condition, which its sketch keeps.
  CHECK(c.equal > 0.6 * c.candidates);
  CHECK(c.different < 0.006 * c.values);
  CHECK(c.tags_differ == 0);
}

}  // namespace
}  // namespace prunerc

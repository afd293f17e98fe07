#include "costmodel/xgb.h"

#include "costmodel/xgb_library.h"
#include "ir/support/rng.h"
#include "tests/support/check.h"

#include <algorithm>
#include <cmath>

namespace prunerc {
namespace {

using namespace costmodel;  // NOLINT: a test
using namespace testing;    // NOLINT: a test

// Programs whose throughput hangs on two features of each statement; the rest is noise.
struct Synthetic {
  std::vector<ProgramFeatures> features;
  std::vector<float> labels;

  Synthetic(int count, uint64_t seed, std::size_t num_statements = 2) {
    Rng rng(seed);
    for (int i = 0; i < count; ++i) {
      ProgramFeatures program(num_statements);
      double cost = 0;
      for (StatementFeatures& statement : program) {
        for (float& value : statement) value = static_cast<float>(rng.uniform());
        cost +=
            (0.2 + static_cast<double>(statement[3])) * (0.2 + static_cast<double>(statement[90]));
      }
      features.push_back(std::move(program));
      labels.push_back(
          static_cast<float>(std::exp(-2 * cost / static_cast<double>(num_statements))));
    }
  }
  std::vector<const ProgramFeatures*> pointers() const {
    std::vector<const ProgramFeatures*> out;
    for (const ProgramFeatures& f : features) out.push_back(&f);
    return out;
  }
};

// Part of all pairs that are in the right order.
double concordance(const std::vector<double>& scores, const std::vector<float>& labels) {
  double right = 0, all = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (labels[i] == labels[j]) continue;
      all += 1;
      right += (labels[i] < labels[j]) == (scores[i] < scores[j]) ? 1 : 0;
    }
  }
  return right / all;
}

// Without the library there is nothing to see but the error; `./dev setup` installs it.
bool has_library() {
  const Result<void> found = check_xgboost();
  if (!found.ok()) CHECK(found.error().id() == Diag::kModelLibrary);
  return found.ok();
}

TEST_CASE("a library that is not there is an error that says what to install") {
  const Result<XgbLibrary> absent = load_xgboost("libthere_is_no_such_library.so");
  CHECK_DIAG(absent, ModelLibrary);
  CHECK(absent.error().message().find("install the Debian package libxgboost0") !=
        std::string::npos);
  // One that is no xgboost.
  CHECK_DIAG(load_xgboost("libc.so.6"), ModelLibrary);
}

TEST_CASE("trees rank programs that they have not seen") {
  if (!has_library()) return;
  const Synthetic known(400, 1), others(200, 2);
  const Result<TreeEnsemble> trees = TreeEnsemble::fit(known.pointers(), known.labels, {});
  REQUIRE_OK(trees);
  CHECK(trees->num_trees() > 5);
  std::vector<double> on_known(400), on_others(200);
  trees->predict(known.pointers(), on_known);
  trees->predict(others.pointers(), on_others);
  CHECK(concordance(on_known, known.labels) > 0.95);
  CHECK(concordance(on_others, others.labels) > 0.75);
}

TEST_CASE("programs of many statements are learned as well") {
  if (!has_library()) return;
  // A step of a fifth for each of twenty statements would be four times what is missing.
  const Synthetic known(400, 6, 20);
  const Result<TreeEnsemble> trees = TreeEnsemble::fit(known.pointers(), known.labels, {});
  REQUIRE_OK(trees);
  std::vector<double> scores(400);
  trees->predict(known.pointers(), scores);
  CHECK(concordance(scores, known.labels) > 0.9);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    CHECK(std::abs(scores[i] - static_cast<double>(known.labels[i])) < 0.5);
  }
}

TEST_CASE("a program counts as much as it weighs") {
  if (!has_library()) return;
  // The same program twice, with other labels.
  Synthetic data(1, 7);
  data.features.push_back(data.features[0]);
  const std::vector<float> labels = {-1.0F, 1.0F};
  const auto score = [&](const std::vector<float>& weights) {
    const Result<TreeEnsemble> trees =
        TreeEnsemble::fit(data.pointers(), labels, weights, trees_of_many_tasks());
    double out[2] = {0, 0};
    if (trees.ok()) trees->predict(data.pointers(), out);
    return out[0];
  };
  CHECK(score({50, 1}) < -0.8);
  CHECK(score({1, 50}) > 0.8);
  CHECK(std::abs(score({5, 5})) < 0.05);
}

TEST_CASE("equal data gives equal trees") {
  if (!has_library()) return;
  const Synthetic data(120, 3);
  std::vector<double> first(120), second(120);
  TreeEnsemble::fit(data.pointers(), data.labels, {}).value().predict(data.pointers(), first);
  TreeEnsemble::fit(data.pointers(), data.labels, {}).value().predict(data.pointers(), second);
  CHECK(first == second);
}

TEST_CASE("nothing, one program, or programs that all failed are no reason to stop") {
  if (!has_library()) return;
  CHECK_DIAG(TreeEnsemble::fit({}, {}, {}), ModelData);
  const ProgramFeatures empty;
  const ProgramFeatures* pointer = &empty;
  const float label = 1;
  CHECK_DIAG(TreeEnsemble::fit({&pointer, 1}, {&label, 1}, {}), ModelData);
  const Synthetic one(1, 4);
  const Result<TreeEnsemble> trees = TreeEnsemble::fit(one.pointers(), one.labels, {});
  REQUIRE_OK(trees);
  double score = -1;
  trees->predict(one.pointers(), {&score, 1});
  CHECK(std::isfinite(score));
  trees->predict({&pointer, 1}, {&score, 1});
  CHECK(score == 0);
  Synthetic failed(20, 5);
  std::fill(failed.labels.begin(), failed.labels.end(), 0.0f);
  std::vector<double> scores(20);
  TreeEnsemble::fit(failed.pointers(), failed.labels, {})
      .value()
      .predict(failed.pointers(), scores);
  for (const double s : scores) CHECK(std::abs(s) < 1e-3);
}

}  // namespace
}  // namespace prunerc

#include "costmodel/nn/optimizer.h"
#include "costmodel/nn/rank_loss.h"
#include "costmodel/nn/shards.h"
#include "tests/costmodel/nn_check.h"

#include <limits>
#include <numeric>

namespace prunerc {
namespace {

using namespace costmodel::nn;  // NOLINT: a test
using namespace testing;        // NOLINT: a test

// Scores that are far enough apart for no difference to change their order, and labels with ties.
template <typename T>
struct List {
  std::vector<T> scores, labels, d;

  List(Rng& rng, int size) {
    for (int i = 0; i < size; ++i) scores.push_back(static_cast<T>(0.1 * i));
    for (std::size_t i = scores.size(); i > 1; --i) std::swap(scores[i - 1], scores[rng.below(i)]);
    for (int i = 0; i < size; ++i) labels.push_back(static_cast<T>(rng.below(8)) / 7);
    d.resize(scores.size());
  }
};

TEMPLATE_TEST_CASE("gradients of both rank losses are those of differences", "", float, double) {
  using T = TestType;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Rng rng(seed);
    List<T> list(rng, static_cast<int>(rng.between(0, 24)));
    std::vector<T> unused(list.d.size());
    const std::span<const T> scores(list.scores), labels(list.labels);
    lambda_rank_published<T>(scores, labels, list.d);
    check_gradient<T>(
        rng, [&] { return lambda_rank_published<T>(scores, labels, unused); },
        std::span<T>(list.scores), list.d);
    lambda_rank<T>(scores, labels, {}, list.d);
    check_gradient<T>(
        rng, [&] { return lambda_rank<T>(scores, labels, {}, unused); }, std::span<T>(list.scores),
        list.d);
  }
}

TEST_CASE("the published loss of two candidates is what its formula gives") {
  const std::vector<double> scores = {0.5, 2}, labels = {1, 0.5};
  std::vector<double> d(2);
  const double gain = std::exp2(0.5) - 1, best = 1 + gain / std::log2(3.0);
  const double weight = (1 - 1 / std::log2(3.0)) * (1 - gain) / best;
  const double expected = weight * std::log2(1 + std::exp(1.5));
  CHECK(lambda_rank_published<double>(scores, labels, d) == Approx(expected));
  CHECK(d[0] == -d[1]);
  CHECK(d[0] < 0);
}

TEST_CASE("the published loss stops at its clamp where ours goes on") {
  const std::vector<double> scores = {-500, 500}, labels = {1, 0};
  std::vector<double> d(2);
  const double weight = (1 - 1 / std::log2(3.0));
  CHECK(lambda_rank_published<double>(scores, labels, d) == Approx(-weight * std::log2(1e-10)));
  CHECK(d == std::vector<double>{0, 0});
  CHECK(lambda_rank<double>(scores, labels, {}, d) == Approx(1000 / std::log(2.0)));
  CHECK(d[0] == Approx(-1 / std::log(2.0)));
}

TEST_CASE("equal labels ask for no order, and failed candidates alone are no list") {
  const std::vector<float> scores = {3, 1, 2}, equal = {0, 0, 0};
  std::vector<float> d(3, 1);
  CHECK(lambda_rank<float>(scores, equal, {}, d) == 0);
  CHECK(d == std::vector<float>{0, 0, 0});
  d = {1, 1, 1};
  CHECK(lambda_rank_published<float>(scores, equal, d) == 0);
  CHECK(d == std::vector<float>{0, 0, 0});
}

TEST_CASE("our loss has one scale for lists of any length") {
  double losses[2];
  for (const int size : {8, 128}) {
    std::vector<double> scores(static_cast<std::size_t>(size), 0), labels, d(scores.size());
    for (int i = 0; i < size; ++i) labels.push_back(static_cast<double>(i + 1) / size);
    losses[size == 8 ? 0 : 1] = lambda_rank<double>(scores, labels, {}, d);
    // The slopes of one pair cancel, so those of a list do.
    CHECK(std::accumulate(d.begin(), d.end(), 0.0) == Approx(0).margin(1e-12));
  }
  CHECK(losses[0] == Approx(1));
  CHECK(losses[1] == Approx(1));
}

TEST_CASE(
    "errors of log-latencies count quadratically up to the knee, failed candidates not at all") {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> predicted = {0.3, 4, 1, -2}, d(4);
  const std::vector<double> target = {0, 0, inf, 0};
  CHECK(huber<double>(predicted, target, 1, d) == Approx((0.045 + 3.5 + 1.5) / 3));
  CHECK(d[2] == 0);
  Rng rng(1);
  std::vector<double> unused(4);
  check_gradient<double>(
      rng, [&] { return huber<double>(predicted, target, 1, unused); }, predicted, d);
  const std::vector<double> none(4, inf);
  CHECK(huber<double>(predicted, none, 1, d) == 0);
}

TEST_CASE("both optimizers reach the minimum of a bowl, and decay pulls towards zero") {
  for (const OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kSgd}) {
    std::vector<double> x = {5, -3}, g(2);
    OptimizerState<double> state;
    OptimizerOptions options{.kind = kind};
    for (int step = 0; step < 2000; ++step) {
      g = {2 * (x[0] - 1), 8 * (x[1] - 2)};
      optimizer_step<double>(options, 0.05, g, &state, x);
    }
    CHECK(x[0] == Approx(1).epsilon(1e-3));
    CHECK(x[1] == Approx(2).epsilon(1e-3));
    options.weight_decay = 1;
    for (int step = 0; step < 2000; ++step) {
      g = {0, 0};
      optimizer_step<double>(options, 0.05, g, &state, x);
    }
    CHECK(std::abs(x[0]) < 1e-2);
  }
}

TEST_CASE("the first step of Adam is the learning rate, whatever the gradient's size") {
  std::vector<float> x = {0, 0};
  OptimizerState<float> state;
  optimizer_step<float>({}, 0.01, std::vector<float>{1e-3F, -1e3F}, &state, x);
  CHECK(x[0] == Approx(-0.01).epsilon(1e-4));
  CHECK(x[1] == Approx(0.01).epsilon(1e-4));
}

TEST_CASE("clipping shortens long gradients only") {
  std::vector<float> g = {3, 4};
  CHECK(clip_norm<float>(10, g) == Approx(5));
  CHECK(g == std::vector<float>{3, 4});
  CHECK(clip_norm<float>(0.5, g) == Approx(5));
  CHECK(g[0] == Approx(0.3));
  CHECK(g[1] == Approx(0.4));
  CHECK(clip_norm<float>(0, g) == Approx(0.5));
}

TEST_CASE("learning rates fall by steps or a cosine, after rising from zero") {
  const LearningSchedule step{.kind = ScheduleKind::kStep, .factor = 0.5, .period = 30};
  CHECK(learning_factor(step, 0, 900, 90) == 1);
  CHECK(learning_factor(step, 299, 900, 90) == 1);
  CHECK(learning_factor(step, 300, 900, 90) == 0.5);
  CHECK(learning_factor(step, 899, 900, 90) == 0.25);
  const LearningSchedule cosine{.kind = ScheduleKind::kCosine, .factor = 0.1, .warmup = 0.1};
  CHECK(learning_factor(cosine, 0, 100, 1) == Approx(0.1).epsilon(0.01));
  CHECK(learning_factor(cosine, 50, 100, 1) == Approx(0.55));
  CHECK(learning_factor(cosine, 100, 100, 1) == Approx(0.1));
  CHECK(learning_factor({}, 7, 10, 1) == 1);
}

TEST_CASE("the learning rate never rises above the first one, however few the steps") {
  const LearningSchedule rising{.warmup = 0.05};
  for (const int64_t num_steps : {1, 3, 10, 50, 90}) {
    for (int64_t step = 0; step < num_steps; ++step) {
      CHECK(learning_factor(rising, step, num_steps, 1) <= 1);
    }
  }
  CHECK(learning_factor(rising, 0, 1, 1) == 1);
}

TEST_CASE("a period of the learning rate ends with its epoch") {
  const LearningSchedule halving{.kind = ScheduleKind::kStep, .factor = 0.5, .period = 1};
  for (int epoch = 0; epoch < 49; ++epoch) {
    CHECK(learning_factor(halving, 3 * epoch, 3 * 49, 49) == std::exp2(-epoch));
  }
}

TEST_CASE("shards cover all items, and sums of their parts do not depend on threads") {
  for (const int count : {0, 1, 15, 16, 100, 512}) {
    const std::vector<Shard> shards = make_shards(count, 16, 8);
    int next = 0;
    for (const Shard& shard : shards) {
      CHECK(shard.first == next);
      if (count >= 16) CHECK(shard.count >= 16);
      next += shard.count;
    }
    CHECK(next == count);
    CHECK(shards.size() <= 8);
  }
  Rng rng(1);
  std::vector<Vector<float>> parts(5, Vector<float>(20000));
  for (Vector<float>& part : parts) {
    for (float& value : part) value = static_cast<float>(rng.uniform());
  }
  Vector<float> alone(20000, 0);
  add_in_order<float>(nullptr, parts, &alone);
  for (const int threads : {2, 3}) {
    ThreadPool pool(threads);
    Vector<float> together(20000, 0);
    add_in_order<float>(&pool, parts, &together);
    const bool is_same = together == alone;
    CHECK(is_same);
  }
}

}  // namespace
}  // namespace prunerc

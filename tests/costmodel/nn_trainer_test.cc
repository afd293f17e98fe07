#include "costmodel/model/trainer.h"
#include "tests/costmodel/nn_programs.h"

#include <set>

namespace prunerc {
namespace {

using namespace costmodel;         // NOLINT: a test
using namespace costmodel::model;  // NOLINT: a test
using namespace testing;           // NOLINT: a test

// Order of the programs that it was trained on.
double accuracy(const Model& model, const Dataset& data) {
  std::vector<Prediction> predictions(static_cast<std::size_t>(data.size()));
  predict(model, data.inputs, {}, nullptr, predictions);
  std::vector<int> which;
  std::vector<float> scores;
  for (const Prediction& p : predictions) {
    which.push_back(static_cast<int>(which.size()));
    scores.push_back(p.score);
  }
  return pairwise_accuracy(data, which, scores);
}

TEST_CASE("networks learn a small pool by heart") {
  for (const NetworkKind kind : kAllNetworks) {
    INFO(to_string(kind));
    NetworkOptions options = small_options(kind);
    options.statement_width = options.width = 48;
    options.flow_width = 24;
    // By running statistics, so that prediction is not training's own pass.
    options.statistics = nn::Statistics::kRunning;
    const Dataset data = random_programs(8, 48, 1, options, 1);
    Model model = make_model(options, 1, 3);
    TrainOptions train_options = kind == NetworkKind::kPacm ? TrainOptions{} : published_training();
    const bool is_pacm = kind == NetworkKind::kPacm || kind == NetworkKind::kPacmPaper;
    train_options.epochs = is_pacm ? 100 : 50;
    train_options.patience = 0;
    train_options.lr = 3e-3;
    REQUIRE_OK(train(data, train_options, nullptr, &model));
    CHECK(accuracy(model, data) > (is_pacm ? 0.99 : 0.9));
  }
}

TEST_CASE("squared errors bring scores to the labels, which ranks do not") {
  NetworkOptions options = small_options(NetworkKind::kTensetMlp);
  const Dataset data = random_programs(8, 96, 2, options, 1);
  const Targets targets = targets_of(data);
  const auto error_of = [&](TrainOptions how) {
    how.epochs = 60;
    how.patience = 0;
    how.lr = 3e-3;
    Model model = make_model(options, 1, 3);
    REQUIRE_OK(train(data, how, nullptr, &model));
    std::vector<Prediction> predictions(96);
    predict(model, data.inputs, {}, nullptr, predictions);
    double error = 0;
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      error += std::abs(static_cast<double>(predictions[i].score - targets.label[i])) / 96;
    }
    return error;
  };
  const double squares = error_of(published_squares());
  CHECK(squares < 0.15);
  CHECK(squares < 0.3 * error_of(published_training()));
}

TEST_CASE("what was learned orders programs that were held out") {
  NetworkOptions options = small_options(NetworkKind::kPacm);
  options.positions = 8;
  const Dataset data = random_programs(9, 1200, 3, options);
  Model model = make_model(options, 2, 3);
  TrainOptions train_options;
  train_options.epochs = 40;
  train_options.lr = 3e-3;
  train_options.validation = 0.2;
  const Result<TrainReport> report = train(data, train_options, nullptr, &model);
  REQUIRE_OK(report);
  CHECK(report->held_out > 200);
  CHECK(report->held_out + report->train_programs == 1200);
  for (const std::vector<EpochStats>& curve : report->members) {
    REQUIRE(curve.size() == 40);
    CHECK(curve.back().loss < 0.5 * curve.front().loss);
    CHECK(curve.back().pairwise > 0.8);
  }
  // The second output is the logarithm of the time, less the task's mean.
  std::vector<Prediction> predictions(1200);
  predict(model, data.inputs, {}, nullptr, predictions);
  const Targets targets = targets_of(data);
  double error = 0, size = 0;
  for (std::size_t i = 0; i < 1200; ++i) {
    if (std::isinf(targets.log_latency[i])) continue;
    error += std::abs(static_cast<double>(predictions[i].log_latency - targets.log_latency[i]));
    size += std::abs(static_cast<double>(targets.log_latency[i]));
  }
  CHECK(error < 0.5 * size);
}

TEST_CASE("training gives the same bits for any number of threads, others for another seed") {
  for (const NetworkKind kind : kAllNetworks) {
    INFO(to_string(kind));
    const NetworkOptions options = small_options(kind);
    const Dataset data = random_programs(8, 90, 2, options);
    for (const LossKind loss : {LossKind::kPublished, LossKind::kSquares, LossKind::kLists}) {
      TrainOptions train_options;
      train_options.loss = loss;
      train_options.epochs = 2;
      train_options.batch = 66;
      std::vector<Model> models;
      for (const int threads : {1, 2, 3, 3}) {
        ThreadPool pool(threads);
        train_options.seed = models.size() == 3 ? 1 : 0;
        models.push_back(make_model(options, 1, 3));
        REQUIRE_OK(train(data, train_options, &pool, &models.back()));
      }
      const auto is_same = [&](std::size_t i) {
        return models[0].members[0]->parameters == models[i].members[0]->parameters;
      };
      CHECK(is_same(1));
      CHECK(is_same(2));
      CHECK_FALSE(is_same(3));
      CHECK(models[0].members[0]->buffers == models[1].members[0]->buffers);
    }
  }
}

TEST_CASE("a warm start goes on from the model and keeps its normalisers") {
  const NetworkOptions options = small_options(NetworkKind::kPacm);
  const Dataset data = random_programs(8, 200, 2, options);
  Model model = make_model(options, 1, 3);
  TrainOptions first;
  first.epochs = 20;
  first.lr = 3e-3;
  const auto before = train(data, first, nullptr, &model);
  REQUIRE_OK(before);
  const Normalisers normalisers = model.normalisers;
  const Dataset more = random_programs(9, 200, 2, options);
  const auto warm = train(more, warm_update(2), nullptr, &model);
  REQUIRE_OK(warm);
  CHECK(model.normalisers == normalisers);
  CHECK(warm->members[0].front().loss < 0.8 * before->members[0].front().loss);
  TrainOptions again = warm_update(1);
  again.refit = Refit::kRefit;
  REQUIRE_OK(train(more, again, nullptr, &model));
  CHECK_FALSE(model.normalisers == normalisers);
}

TEST_CASE("training stops early where its loss does not fall") {
  const NetworkOptions options = small_options(NetworkKind::kTensetMlp);
  // Programs without statements would have equal scores, and a loss that hangs on their order.
  const Dataset data = random_programs(8, 50, 1, options, 1);
  Model model = make_model(options, 1, 3);
  TrainOptions train_options = published_training(30);
  CHECK(train_options.patience == 10);
  train_options.lr = 0;
  const auto report = train(data, train_options, nullptr, &model);
  REQUIRE_OK(report);
  CHECK(report->members[0].size() == 11);
  train_options.patience = 0;
  CHECK(train(data, train_options, nullptr, &model)->members[0].size() == 30);
}

TEST_CASE("the published recipes are those of the release") {
  const TrainOptions scratch = published_training(50);
  CHECK(scratch.lr == 7e-4);
  CHECK(scratch.optimizer.weight_decay == 1e-6);
  CHECK(scratch.clip == 0.5);
  CHECK(scratch.patience == 16);
  CHECK(scratch.schedule == nn::LearningSchedule{});
  const TrainOptions lengthy = published_training(90);
  CHECK(lengthy.patience == 30);
  CHECK(lengthy.schedule.period == 30);
  const TrainOptions tuning = published_fine_tuning();
  CHECK(tuning.optimizer.kind == nn::OptimizerKind::kSgd);
  CHECK(tuning.optimizer.weight_decay == 0);
  CHECK(tuning.clip == 0);
  CHECK(tuning.patience == 0);
}

TEST_CASE("fine-tuning by the published recipe lowers the published loss") {
  const NetworkOptions options = small_options(NetworkKind::kTensetMlp);
  const Dataset data = random_programs(8, 60, 1, options);
  Model model = make_model(options, 1, 3);
  const auto report = train(data, published_fine_tuning(), nullptr, &model);
  REQUIRE_OK(report);
  CHECK(report->members[0].back().loss < report->members[0].front().loss);
}

TEST_CASE("there is nothing to learn from other features or from single programs") {
  const NetworkOptions options = small_options(NetworkKind::kPacm);
  Model model = make_model(options, 1, 3);
  NetworkOptions other = options;
  other.statement_inputs = 13;
  CHECK_DIAG(train(random_programs(8, 20, 1, other), {}, nullptr, &model), ModelData);
  CHECK_DIAG(train({}, {}, nullptr, &model), ModelData);
  Dataset alone = random_programs(8, 3, 1, options);
  for (int i = 0; i < 3; ++i) alone.outcomes[static_cast<std::size_t>(i)].task = i;
  CHECK_DIAG(train(alone, {}, nullptr, &model), ModelData);
}

TEST_CASE("labels compare programs of one task on one platform") {
  Dataset data;
  const nn::Matrix<float> row(1, 1);
  const auto add = [&](double ns, int32_t task, int32_t platform) {
    data.add({row, row, row, row}, {.ns = ns, .task = task, .platform = platform});
  };
  add(100, 0, 0);
  add(400, 0, 0);
  add(0, 0, 0);
  add(50, 0, 1);
  add(10, 1, 0);
  const Targets targets = targets_of(data);
  CHECK(targets.label == std::vector<float>{1, 0.25, 0, 1, 1});
  CHECK(targets.log_latency[0] == Approx(-std::log(2.0)));
  CHECK(targets.log_latency[1] == Approx(std::log(2.0)));
  CHECK(std::isinf(targets.log_latency[2]));
  CHECK(targets.log_latency[3] == 0);
  CHECK(groups_of(data) == std::vector<std::vector<int>>{{0, 1, 2}, {3}, {4}});
  const std::vector<int> which = {0, 1, 2, 3, 4};
  CHECK(pairwise_accuracy(data, which, std::vector<float>{3, 2, 1, 0, 0}) == 1);
  CHECK(pairwise_accuracy(data, which, std::vector<float>{1, 2, 3, 0, 0}) == 0);
  CHECK(pairwise_accuracy(data, which, std::vector<float>{0, 0, 0, 0, 0}) == 0.5);
  CHECK(std::isnan(pairwise_accuracy(data, std::vector<int>{3, 4}, std::vector<float>{1, 2})));
}

TEST_CASE("lists hold each program once, of one group, and are of the length asked for") {
  const NetworkOptions options = small_options(NetworkKind::kPacm);
  const Dataset data = random_programs(8, 500, 3, options);
  std::vector<int> which(500);
  for (int i = 0; i < 500; ++i) which[static_cast<std::size_t>(i)] = i;
  Rng rng(1);
  std::set<int> seen;
  for (const std::vector<int>& list : draw_lists(data, which, 32, rng)) {
    CHECK(list.size() >= 16);
    CHECK(list.size() <= 48);
    std::set<std::pair<int32_t, int32_t>> groups;
    for (const int i : list) {
      seen.insert(i);
      const Outcome& o = data.outcomes[static_cast<std::size_t>(i)];
      groups.insert({o.task, o.platform});
    }
    CHECK(groups.size() == 1);
  }
  CHECK(seen.size() == 500);
}

TEST_CASE("column maxima bring positive columns to one, and leave the others") {
  Rng rng(1);
  nn::Matrix<float> m = random_matrix<float>(rng, 20, 3);
  for (int r = 0; r < 20; ++r) m(r, 1) = -1 - std::abs(m(r, 1));
  const nn::Matrix<float> old = m;
  const Normaliser normaliser = fit_normaliser(NormaliserKind::kColumnMax, m);
  normaliser.apply(m);
  float top = 0;
  for (int r = 0; r < 20; ++r) {
    top = std::max(top, m(r, 0));
    CHECK(m(r, 1) == old(r, 1));
  }
  CHECK(top == Approx(1));
}

TEST_CASE("standard normalisers centre what they were fitted to and bound what lies far off") {
  Rng rng(1);
  nn::Matrix<float> m = random_matrix<float>(rng, 200, 2);
  for (int r = 0; r < 200; ++r) {
    m(r, 0) = 1000 + 10 * m(r, 0);
    m(r, 1) = 7;  // a column that does not move
  }
  const Normaliser normaliser = fit_normaliser(NormaliserKind::kStandard, m);
  nn::Matrix<float> far(2, 2);
  far(0, 0) = 1e9F;
  far(0, 1) = 7;
  far(1, 0) = -1e9F;
  far(1, 1) = 8;
  normaliser.apply(m);
  normaliser.apply(far);
  double sum = 0;
  for (int r = 0; r < 200; ++r) {
    sum += static_cast<double>(m(r, 0));
    CHECK(std::abs(m(r, 0)) < 2);
    CHECK(m(r, 1) == 0);
  }
  CHECK(sum / 200 == Approx(0).margin(0.05));
  CHECK(far(0, 0) < 25);
  CHECK(far(1, 0) == Approx(-far(0, 0)).epsilon(1e-3));
  CHECK(far(1, 1) == Approx(std::asinh(1.0)));
  CHECK(fit_normaliser(NormaliserKind::kStandard, nn::Matrix<float>()) == Normaliser{});
}

}  // namespace
}  // namespace prunerc

// The learned models' networks in numbers: ./dev bench nn [--only infer|train] [--json OUT]
#include "costmodel/model/trainer.h"
#include "tests/bench/report.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::bench {
namespace {

using namespace costmodel::model;  // NOLINT: as the tests
namespace nn = costmodel::nn;

/// Of a usual program of the tasks that are tuned.
constexpr int kStatements = 5, kSteps = 16, kContext = 24;
constexpr int kCandidates = 512, kRecords = 2000, kTasks = 10;
/// A search wants 512 candidates in 20 ms with their features, an update on 2,000 records in 500 ms.
constexpr double kInferGoalMs = 15, kEpochGoalMs = 80;

struct Options {
  int repeats = 15;
  int members = 3;
  uint64_t seed = 1;
};

nn::Matrix<float> random_rows(Rng& rng, int rows, int cols) {
  nn::Matrix<float> m(rows, cols);
  for (std::size_t i = 0; i < m.size(); ++i) m.data()[i] = static_cast<float>(rng.uniform());
  return m;
}

Dataset random_dataset(int programs, const NetworkOptions& options, uint64_t seed) {
  Rng rng(seed);
  Dataset data;
  for (int i = 0; i < programs; ++i) {
    const auto statements = random_rows(rng, kStatements, options.statement_inputs);
    const auto flow = random_rows(rng, kSteps, options.flow_inputs);
    const auto context = random_rows(rng, 1, options.context_inputs);
    const auto tokens = random_rows(rng, options.token_length, options.token_inputs);
    data.add({statements, flow, context, tokens},
             {.ns = 1e5 * (1 + rng.uniform()), .task = static_cast<int32_t>(i % kTasks)});
  }
  return data;
}

/// Medians. CPU time is that of all threads: what is left of a measurement on a machine with other
/// work.
struct Time {
  double wall_ms, cpu_ms;
};

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Time measure(int repeats, const std::function<void()>& work) {
  work();  // memory and caches
  std::vector<double> wall, cpu;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = cpu_seconds();
    work();
    cpu.push_back(1e3 * (cpu_seconds() - cpu_start));
    wall.push_back(1e3 *
                   std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return {median(wall), median(cpu)};
}

constexpr NetworkKind kKinds[] = {NetworkKind::kPacm, NetworkKind::kPacmPaper,
                                  NetworkKind::kTensetMlp, NetworkKind::kTlp};

NetworkOptions options_of(NetworkKind kind) {
  NetworkOptions options{.kind = kind, .context_inputs = kContext};
  options.statistics = nn::Statistics::kRunning;
  return options;
}

Row make_row(const std::string& what, NetworkKind kind, int threads, const Time& time) {
  Row row;
  row.name = what + "/" + std::string(to_string(kind)) + "/t" + std::to_string(threads);
  row.value = time.wall_ms;
  row.note = fmt::format("{:.1f} ms of CPU time; ", time.cpu_ms);
  row.unit = "ms";
  row.at_most = true;
  return row;
}

std::vector<Row> infer_rows(const Options& options) {
  std::vector<Row> rows;
  for (const NetworkKind kind : kKinds) {
    const Dataset data = random_dataset(kCandidates, options_of(kind), options.seed);
    const int members = kind == NetworkKind::kPacm ? options.members : 1;
    Model model = make_model(options_of(kind), members, options.seed);
    model.normalisers = fit_normalisers(NormaliserKind::kStandard, data.inputs);
    std::vector<Prediction> predictions(kCandidates);
    for (const int threads : {1, 2}) {
      ThreadPool pool(threads);
      const Time time =
          measure(options.repeats, [&] { predict(model, data.inputs, {}, &pool, predictions); });
      Row row = make_row("infer_512_ms", kind, threads, time);
      row.note += std::to_string(members) + " members, " +
                  std::to_string(model.members[0]->parameters.values.size()) +
                  " parameters each, normalisers included";
      if (kind == NetworkKind::kPacm && threads == 2) row.goal = kInferGoalMs;
      rows.push_back(row);
    }
  }
  return rows;
}

std::vector<Row> train_rows(const Options& options) {
  std::vector<Row> rows;
  for (const NetworkKind kind : kKinds) {
    const Dataset data = random_dataset(kRecords, options_of(kind), options.seed);
    const LossKind loss = kind == NetworkKind::kPacm ? LossKind::kLists : LossKind::kPublished;
    for (const int threads : {1, 2}) {
      ThreadPool pool(threads);
      Model model = make_model(options_of(kind), 1, options.seed);
      // The difference of two trainings leaves out what they do once.
      const auto trained = [&](int epochs) {
        TrainOptions o;
        o.loss = loss;
        o.epochs = epochs;
        return [&model, &data, &pool, o] {
          if (!train(data, o, &pool, &model)) std::abort();
        };
      };
      constexpr int kFew = 1, kMany = 4;
      const Time few = measure(options.repeats / 3, trained(kFew));
      const Time many = measure(options.repeats / 3, trained(kMany));
      constexpr double share = 1.0 / (kMany - kFew);
      const Time epoch = {share * (many.wall_ms - few.wall_ms), share * (many.cpu_ms - few.cpu_ms)};
      Row row = make_row("train_epoch_2000_ms", kind, threads, epoch);
      row.note += "one member";
      if (kind == NetworkKind::kPacm && threads == 2) row.goal = kEpochGoalMs;
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace
}  // namespace prunerc::bench

int main(int argc, char** argv) {
  using namespace prunerc::bench;  // NOLINT: a main function
  Options options;
  std::string only, json;
  CLI::App app("the learned models' networks in numbers");
  app.add_option("--only", only, "one group: infer, train");
  app.add_option("--repeats", options.repeats, "timings of which the median is taken");
  app.add_option("--members", options.members, "of pacm's ensemble");
  app.add_option("--seed", options.seed, "of everything random");
  app.add_option("--json", json, "write the rows to this file");
  CLI11_PARSE(app, argc, argv);
  const Group groups[] = {
      {"infer", [&] { return infer_rows(options); }, {options.seed}},
      {"train", [&] { return train_rows(options); }, {options.seed}},
  };
  return report("nn", groups, only, json);
}

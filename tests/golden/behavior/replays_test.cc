// What every strategy asks for: replays of recorded pools and searches against modelled times, with
// seeds, reduced to a hash of the sequence of candidates. A refactoring must not move one of them.
#include "costmodel/latency/roofline.h"
#include "costmodel/model/checkpoint.h"
#include "costmodel/model/trainer.h"
#include "ir/equal.h"
#include "search/model/dataset.h"
#include "search/model/inputs.h"
#include "search/model/ranker.h"
#include "search/record/corpus.h"
#include "search/tune/replay.h"
#include "tests/golden/behavior/golden_lines.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"

#include <cstdio>
#include <optional>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test
using costmodel::model::NetworkKind;

constexpr const char* kFolder = "tests/data/pools/v3/";

struct Replayed {
  const char* pool;
  uint64_t seed;
};
/// Of the usual run; `[.slow]` adds what else there is of four pools and three seeds.
constexpr Replayed kUsual[] = {{"gemm_prime", 1}};
constexpr Replayed kOthers[] = {{"gemm_prime", 2},    {"gemm_prime", 3},   {"softmax_512", 1},
                                {"softmax_512", 2},   {"softmax_512", 3},  {"conv_3x3", 1},
                                {"conv_3x3", 2},      {"conv_3x3", 3},     {"depthwise_3x3", 1},
                                {"depthwise_3x3", 2}, {"depthwise_3x3", 3}};

/// Hands on what it is asked, and hashes which programs are timed, in order.
class RecordingMeasurer final : public Measurer {
 public:
  explicit RecordingMeasurer(Measurer& measurer) : measurer_(measurer) {}
  void submit(MeasureInput input) override {
    if (input.kind == MeasureKind::kTime) {
      const Fingerprint program = ir::fingerprint(input.program);
      sequence_ = hash_combine(sequence_, hash_combine(program.high, program.low));
      ++num_timed_;
    }
    measurer_.submit(std::move(input));
  }
  std::optional<MeasureOutcome> next(Deadline deadline) override {
    return measurer_.next(deadline);
  }
  double busy_seconds() const override { return measurer_.busy_seconds(); }

  std::string line(double best_ns) const {
    char text[80];
    std::snprintf(text, sizeof(text), "%d asked, sequence %016llx, best %.6g ns", num_timed_,
                  static_cast<unsigned long long>(sequence_), best_ns);
    return text;
  }

 private:
  Measurer& measurer_;
  uint64_t sequence_ = 0;
  int num_timed_ = 0;
};

/// Enough for each to have learnt at least twice, less where a round takes many seconds.
int64_t trials_of(StrategyKind kind) {
  switch (kind) {
    case StrategyKind::kAnsor:
    case StrategyKind::kMetaSchedule: return 192;
    case StrategyKind::kTensetOffline: return 128;
    case StrategyKind::kTlpOffline: return 8;
    case StrategyKind::kMoaPrunerPaper: return 50;
    case StrategyKind::kPrunerPaper:
    case StrategyKind::kPrunerRelease: return 30;
    default: return 96;
  }
}

std::optional<NetworkKind> needed_checkpoint(StrategyKind kind) {
  if (kind == StrategyKind::kMoaPrunerPaper) return NetworkKind::kPacmPaper;
  if (kind == StrategyKind::kTensetOffline) return NetworkKind::kTensetMlp;
  if (kind == StrategyKind::kTlpOffline) return NetworkKind::kTlp;
  return std::nullopt;
}

/// A network that has seen a hundred rows of two other pools once.
std::string small_checkpoint(NetworkKind kind) {
  const std::string path = scratch_path(std::string(to_string(kind)) + ".model");
  const std::vector<std::string> pools = {std::string(kFolder) + "gemm_256.pool",
                                          std::string(kFolder) + "reduce_rows.pool"};
  ThreadPool threads(2);
  const Result<Corpus> corpus = read_corpus(pools);
  REQUIRE_OK(corpus);
  const std::vector<CorpusRow> all = all_rows(*corpus);
  const std::vector<CorpusRow> rows =
      prune_rows(*corpus, all, PruneKind::kRandom, 100.0 / static_cast<double>(all.size()), 1);
  Recipe recipe = recipe_of(kind);
  recipe.train.epochs = 1;
  auto model = costmodel::model::make_model(recipe.network, 1, 1);
  const auto data = make_dataset(*corpus, rows, recipe.network, threads);
  REQUIRE_OK(data);
  REQUIRE_OK(costmodel::model::train(*data, recipe.train, &threads, &model));
  model.feature_set = feature_set(kind);
  REQUIRE_OK(costmodel::model::write_checkpoint(model, "golden", path));
  return path;
}

TuneOptions options_of(StrategyKind kind, uint64_t seed) {
  TuneOptions options;
  options.strategy = kind;
  options.seed = seed;
  options.trials = trials_of(kind);
  options.num_threads = 2;
  options.check = {};
  options.finals = 0;
  if (const std::optional<NetworkKind> network = needed_checkpoint(kind)) {
    static std::map<NetworkKind, std::string> made;
    if (!made.contains(*network)) made[*network] = small_checkpoint(*network);
    options.checkpoint = made[*network];
  }
  return options;
}

std::string run(std::span<const Task> tasks, Measurer& measurer, const TuneOptions& options) {
  RecordingMeasurer recording(measurer);
  Result<Database> database = Database::open(":memory:");
  REQUIRE_OK(database);
  const Result<TuneReport> report = tune(tasks, recording, *database, options);
  REQUIRE_OK(report);
  return recording.line(report->total_weighted_ns);
}

std::string case_name(StrategyKind kind, std::string_view task, uint64_t seed) {
  return std::string(to_string(kind)) + " " + std::string(task) + " seed " + std::to_string(seed);
}

/// Half a minute for one batch.
bool is_slow(StrategyKind kind) { return kind == StrategyKind::kTlpOffline; }

std::map<std::string, std::string> replay_lines(std::span<const Replayed> cases, bool with_slow) {
  std::map<std::string, std::string> lines;
  ThreadPool threads(2);
  std::map<std::string, ReplayTask> replays;
  for (const Replayed& one : cases) {
    if (!replays.contains(one.pool)) {
      const Result<Pool> pool = read_pool(kFolder + std::string(one.pool) + ".pool");
      REQUIRE_OK(pool);
      Result<ReplayTask> made = ReplayTask::make(*pool, threads);
      REQUIRE_OK(made);
      replays.emplace(one.pool, std::move(made).value());
    }
    const ReplayTask& replayed = replays.at(one.pool);
    for (int k = 0; k < kNumStrategies; ++k) {
      const auto kind = static_cast<StrategyKind>(k);
      if (is_slow(kind) && !with_slow) continue;
      TuneOptions options = options_of(kind, one.seed);
      options.clock = TuneClock::kRecorded;
      options.space = [&](const Task&) -> Result<SearchSpace> { return replayed.space; };
      ReplayMeasurer measurer({&replayed, 1});
      lines[case_name(kind, one.pool, one.seed)] = run({&replayed.task, 1}, measurer, options);
    }
  }
  return lines;
}

TEST_CASE("every strategy asks for the candidates that it asked for before, in replays") {
  check_golden_lines("tests/golden/behavior/replays.txt", replay_lines(kUsual, false));
}

TEST_CASE("and in replays of more pools, with more seeds", "[.slow]") {
  check_golden_lines("tests/golden/behavior/replays_slow.txt", replay_lines(kOthers, true));
}

// The analyzer's time, some per cent off by program, and one in 17 that does not run.
Measurement modelled_time(const MeasureInput& input) {
  const double predicted_ns =
      costmodel::estimate_latency(input.program, input.task->target).total_ns;
  const uint64_t random = ir::fingerprint(input.program).low;
  Measurement m;
  if (random % 17 == 0 && input.kind == MeasureKind::kTime) {
    m.status = MeasureStatus::kTimeout;
    return m;
  }
  m.status = MeasureStatus::kOk;
  m.samples_ns.assign(7, predicted_ns * (1 + static_cast<double>(random % 1024) / 2048));
  summarize_samples(m);
  return m;
}

// Two tasks of whole spaces in one call: what one measures the other's model sees.
TEST_CASE("every strategy asks for the candidates that it asked for before, in whole spaces") {
  std::map<std::string, std::string> lines;
  const Task tasks[] = {make_test_task("gemm"), make_test_task("conv2d_relu")};
  for (int k = 0; k < kNumStrategies; ++k) {
    const auto kind = static_cast<StrategyKind>(k);
    if (is_slow(kind)) continue;
    TuneOptions options = options_of(kind, 1);
    options.total_trials = options.trials;
    TableMeasurer measurer(modelled_time);
    lines[case_name(kind, "gemm and conv2d_relu", 1)] = run(tasks, measurer, options);
  }
  check_golden_lines("tests/golden/behavior/searches.txt", lines);
}

}  // namespace
}  // namespace prunerc

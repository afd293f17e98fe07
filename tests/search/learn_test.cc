// Learned models over pools: inputs, splits, pruning, rows files, rankers, online learning.
#include "costmodel/latency/roofline.h"
#include "costmodel/model/checkpoint.h"
#include "costmodel/xgb.h"
#include "ir/equal.h"
#include "search/model/dataset.h"
#include "search/model/inputs.h"
#include "search/model/join.h"
#include "search/model/online.h"
#include "search/model/quality.h"
#include "search/model/ranker.h"
#include "search/record/rows_file.h"
#include "search/strategy/network_use.h"
#include "search/tune/instant.h"
#include "search/tune/recorder.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test
using costmodel::model::Dataset;
using costmodel::model::NetworkKind;

// Times that follow from the program, and every 11th candidate fails.
Measurement modelled_time(const MeasureInput& input) {
  const double ns = costmodel::estimate_latency(input.program, input.task->target).total_ns;
  Measurement m = hashed_time(input);
  m.median_ns = ns;
  m.samples_ns.assign(7, m.median_ns);
  if (ir::fingerprint(input.program).low % 11 == 0 && input.kind != MeasureKind::kVerify) {
    m = {};
    m.status = MeasureStatus::kTimeout;
  }
  return m;
}

std::string recorded(const char* op, int num_threads, int64_t candidates) {
  const std::string path = scratch_path(std::string(op) + std::to_string(num_threads) + ".pool");
  if (std::filesystem::exists(path)) return path;
  const Task task = make_test_task(op, num_threads);
  Pool pool = make_pool(task, make_space(task).value());
  pool.seed = 3;
  RecordOptions options;
  options.candidates = candidates;
  options.num_threads = 1;
  options.batch = 16;
  options.finals = {.best = 4, .within = 0, .turns = 3};
  options.check = {};
  TableMeasurer measurer(modelled_time);
  REQUIRE_OK(record_pool(task, measurer, options, &pool));
  REQUIRE_OK(write_pool(pool, path));
  return path;
}

constexpr int kRows = 64;

// Five operators, two of one class, one of them on two platforms.
Corpus small_corpus() {
  const std::vector<std::string> paths = {
      recorded("gemm_odd", 1, kRows),     recorded("gemm", 1, kRows),
      recorded("dense_relu", 1, kRows),   recorded("gemm", 2, kRows),
      recorded("softmax_like", 1, kRows), recorded("conv2d_relu", 1, kRows)};
  Result<Corpus> corpus = read_corpus(paths);
  REQUIRE_OK(corpus);
  return *std::move(corpus);
}

std::set<std::pair<int, int>> as_set(const std::vector<CorpusRow>& rows) {
  std::set<std::pair<int, int>> out;
  for (const CorpusRow& r : rows) out.emplace(r.pool, r.row);
  return out;
}

TEST_CASE("a corpus tells tasks and platforms apart") {
  const Corpus corpus = small_corpus();
  CHECK(corpus.platforms.size() == 2);
  CHECK(corpus.tasks.size() == 6);
  CHECK(corpus.platform[0] == corpus.platform[1]);
  CHECK(corpus.platform[1] != corpus.platform[3]);
  CHECK(corpus.task[1] != corpus.task[3]);
  for (const CorpusRow& row : all_rows(corpus)) {
    const Pool& pool = corpus.pools[static_cast<std::size_t>(row.pool)];
    REQUIRE(static_cast<std::size_t>(row.row) < pool.rows.size());
  }
  const std::vector<std::string> none = {scratch_path("no-such.pool")};
  CHECK_DIAG(read_corpus(none), IoError);
}

TEST_CASE("operators of one name are tasks of their own") {
  Pool other = read_pool(recorded("gemm_odd", 1, kRows)).value();
  other.op = "gemm";
  const std::vector<std::string> paths = {recorded("gemm", 1, kRows), scratch_path("other.pool")};
  REQUIRE_OK(write_pool(other, paths[1]));
  const Result<Corpus> corpus = read_corpus(paths);
  REQUIRE_OK(corpus);
  CHECK(corpus->task == std::vector<int32_t>{0, 1});
  CHECK(corpus->tasks[0] == corpus->tasks[1]);
}

TEST_CASE("tasks on machines of one name are told apart") {
  const std::string path = recorded("gemm", 1, kRows);
  Pool pool = read_pool(path).value();
  pool.platform += " l3_bytes=12345678";
  const std::vector<std::string> paths = {path, scratch_path("other_cache.pool"), path};
  REQUIRE_OK(write_pool(pool, paths[1]));
  const Corpus corpus = read_corpus(paths).value();
  CHECK(corpus.platforms.size() == 1);
  CHECK(corpus.task == std::vector<int32_t>{0, 1, 0});
  REQUIRE(corpus.tasks.size() == 2);
  CHECK(corpus.tasks[0] == corpus.tasks[1]);
}

TEST_CASE("splits part the rows and nothing leaks") {
  const Corpus corpus = small_corpus();
  const std::vector<CorpusRow> rows = all_rows(corpus);
  for (const SplitKind kind : {SplitKind::kWithinTask, SplitKind::kByTask, SplitKind::kByTarget}) {
    CHECK(split_from_string(to_string(kind)) == kind);
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const Split split = split_rows(corpus, rows, kind, 0.3, {}, seed);
      INFO(to_string(kind) << ", seed " << seed);
      CHECK(split.train.size() + split.test.size() == rows.size());
      std::set<std::pair<int, int>> both = as_set(split.train);
      both.merge(as_set(split.test));
      CHECK(both.size() == rows.size());
      CHECK(!split.train.empty());
      CHECK(!split.test.empty());
      CHECK(as_set(split_rows(corpus, rows, kind, 0.3, {}, seed).test) == as_set(split.test));
      std::set<std::string> trained, tested;
      for (const CorpusRow& r : split.train) {
        const auto p = static_cast<std::size_t>(r.pool);
        trained.insert(kind == SplitKind::kByTask
                           ? corpus.pools[p].program
                           : corpus.platforms[static_cast<std::size_t>(corpus.platform[p])]);
      }
      for (const CorpusRow& r : split.test) {
        const auto p = static_cast<std::size_t>(r.pool);
        tested.insert(kind == SplitKind::kByTask
                          ? corpus.pools[p].program
                          : corpus.platforms[static_cast<std::size_t>(corpus.platform[p])]);
      }
      if (kind == SplitKind::kWithinTask) continue;
      for (const std::string& name : tested) CHECK(!trained.contains(name));
    }
  }
  // Named ones test, whatever the share.
  const std::vector<std::string> held = {"conv2d_relu"};
  const Split named = split_rows(corpus, rows, SplitKind::kByTask, 0, held, 0);
  REQUIRE(!named.test.empty());
  for (const CorpusRow& r : named.test) {
    CHECK(corpus.pools[static_cast<std::size_t>(r.pool)].op == "conv2d_relu");
  }
  CHECK(check_split(corpus, SplitKind::kByTask, held, named).ok());
  const std::vector<std::string> unknown = {"conv2d_relu", "conv3d_relu"};
  CHECK_DIAG(check_split(corpus, SplitKind::kByTask, unknown, named), SplitHeld);
  // Names of operators are none of targets, and within tasks nothing is held out by name.
  CHECK_DIAG(check_split(corpus, SplitKind::kByTarget, held, named), SplitHeld);
  CHECK_DIAG(check_split(corpus, SplitKind::kWithinTask, held, named), SplitHeld);
  CHECK_DIAG(check_split(corpus, SplitKind::kByTask, {}, {named.train, {}}), SplitOneSided);
  CHECK_DIAG(check_split(corpus, SplitKind::kByTask, {}, {{}, named.test}), SplitOneSided);
  CHECK(check_split(corpus, SplitKind::kByTarget, corpus.platforms, named).ok());
  CHECK(!split_from_string("by-luck"));
}

TEST_CASE("pruning keeps about what was asked for, and the fast ones") {
  const Corpus corpus = small_corpus();
  const std::vector<CorpusRow> rows = all_rows(corpus);
  for (const PruneKind kind : {PruneKind::kRandom, PruneKind::kQuantile, PruneKind::kClass}) {
    CHECK(prune_from_string(to_string(kind)) == kind);
    const std::vector<CorpusRow> half = prune_rows(corpus, rows, kind, 0.5, 1);
    INFO(to_string(kind));
    CHECK(half.size() > rows.size() / 4);
    CHECK(half.size() < 3 * rows.size() / 4);
    const std::set<std::pair<int, int>> all = as_set(rows);
    for (const CorpusRow& r : half) CHECK(all.contains({r.pool, r.row}));
    CHECK(half == prune_rows(corpus, rows, kind, 0.5, 1));
    if (kind != PruneKind::kQuantile) continue;
    const std::set<std::pair<int, int>> kept = as_set(half);
    for (std::size_t p = 0; p < corpus.pools.size(); ++p) {
      CHECK(kept.contains({static_cast<int>(p), corpus.pools[p].best()}));
    }
  }
  CHECK(prune_rows(corpus, rows, PruneKind::kRandom, 1, 1) == rows);
  CHECK(prune_rows(corpus, rows, PruneKind::kQuantile, 0, 1).empty());
  CHECK(!prune_from_string("worst"));
}

TEST_CASE("a pool of another build is not learned from") {
  Corpus corpus = small_corpus();
  ThreadPool threads(1);
  const auto network = network_options(NetworkKind::kPacm);
  REQUIRE_OK(make_dataset(corpus, all_rows(corpus), network, threads));
  for (PoolRow& row : corpus.pools[2].rows) row.fingerprint ^= 1;
  CHECK_DIAG(make_dataset(corpus, all_rows(corpus), network, threads), PoolStale);
}

TEST_CASE("a rows file gives the split back, and a damaged one is refused") {
  const Corpus corpus = small_corpus();
  const Split split = split_rows(corpus, all_rows(corpus), SplitKind::kWithinTask, 0.3, {}, 2);
  const std::string path = scratch_path("rows.json");
  REQUIRE_OK(write_rows(corpus, split, path));
  const std::vector<std::string> paths = {path};
  const Result<Selection> back = read_selection(paths);
  REQUIRE_OK(back);
  CHECK(as_set(back->split.train) == as_set(split.train));
  CHECK(as_set(back->split.test) == as_set(split.test));
  CHECK(back->corpus.tasks == corpus.tasks);
  // Its folder may be a link.
  const std::string folder = scratch_path("far/away"), link = scratch_path("link");
  std::filesystem::create_directories(folder);
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink(folder, link);
  const std::vector<std::string> linked = {link + "/rows.json"};
  REQUIRE_OK(write_rows(corpus, split, linked[0]));
  CHECK(read_selection(linked).ok());
  // A pool by itself trains and tests with all its rows.
  const std::vector<std::string> whole = {corpus.paths[0]};
  const Result<Selection> one = read_selection(whole);
  REQUIRE_OK(one);
  CHECK(one->split.train == one->split.test);
  // Named twice, a row would train under one name and test under the other.
  for (const std::vector<std::string>& twice :
       {std::vector{whole[0], whole[0]}, std::vector{path, whole[0]}, std::vector{path, path}}) {
    CHECK_DIAG(read_selection(twice), PoolTwice);
  }
  // So would a copy, or one that its recording went on with; not what was recorded another time.
  const std::vector<std::string> copies = {scratch_path("copy.pool"), scratch_path("more.pool")};
  Pool pool = read_pool(whole[0]).value();
  pool.created = "2026-01-01T00:00:00Z";
  REQUIRE_OK(write_pool(pool, copies[0]));
  pool.rows.pop_back();
  REQUIRE_OK(write_pool(pool, copies[1]));
  CHECK_DIAG(read_selection(copies), PoolTwice);
  pool.created = "2026-01-01T00:00:01Z";
  REQUIRE_OK(write_pool(pool, copies[1]));
  CHECK(read_selection(copies).ok());
  std::string text;
  std::getline(std::ifstream(path), text, '\0');
  const auto refused = [&](const std::string& changed) {
    const std::string bad = scratch_path("bad.json");
    std::ofstream(bad) << changed;
    const std::vector<std::string> files = {bad};
    return read_selection(files);
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string out = text;
    const std::size_t at = out.find(from);
    REQUIRE(at != std::string::npos);
    return out.replace(at, from.size(), to);
  };
  CHECK_DIAG(refused(""), RowsFile);
  CHECK_DIAG(refused("[]"), RowsFile);
  CHECK_DIAG(refused("{}"), RowsFile);
  CHECK_DIAG(refused(text.substr(0, text.size() / 2)), RowsFile);
  CHECK_DIAG(refused(replaced("prunerc.rows/1", "prunerc.rows/9")), RowsFile);
  CHECK_DIAG(refused(replaced("\"train\":[", "\"train\":[-1,")), RowsFile);
  CHECK_DIAG(refused(replaced("\"train\":[", "\"train\":[99999,")), RowsFile);
  CHECK_DIAG(refused(replaced("\"train\":", "\"strain\":")), RowsFile);
  CHECK_DIAG(refused(replaced("\"prunerc.rows/1\"", "7")), RowsFile);
  const std::string first_test = text.substr(text.find("\"test\":[") + 8);
  const std::string row = first_test.substr(0, first_test.find_first_of(",]"));
  CHECK_DIAG(refused(replaced("\"train\":[", "\"train\":[" + row + ",")), RowsFile);
  CHECK_DIAG(refused(replaced("\"rows\":64", "\"rows\":640")), RowsFile);
  CHECK_DIAG(refused(replaced("\"op\":\"gemm\",", "\"op\":\"other\",")), RowsFile);
  CHECK_DIAG(refused(replaced("gemm1.pool", "gone.pool")), IoError);
}

TEST_CASE("inputs from sketches are those of the programs") {
  const Task task = make_test_task("conv2d_relu", 1);
  const SearchSpace space = make_space(task).value();
  const InputSource source(task, space);
  ThreadPool threads(1), two(2);
  Rng rng(4);
  std::vector<Genome> genomes;
  for (int i = 0; i < 40; ++i) {
    genomes.push_back(random_genome(space, random_sketch(space, rng), rng));
  }
  const auto network = network_options(NetworkKind::kPacm);
  costmodel::model::Batch<float> batch, again;
  source.append(network, genomes, threads, &batch);
  source.append(network, genomes, two, &again);
  CHECK(batch.statements == again.statements);
  CHECK(batch.flow == again.flow);
  CHECK(batch.programs == 40);
  CHECK(batch.statements.cols() == network.statement_inputs);
  CHECK(batch.flow.cols() == network.flow_inputs);
  CHECK(batch.context.cols() == network.context_inputs);
  int compared = 0, equal = 0;
  for (std::size_t i = 0; i < genomes.size(); ++i) {
    const Result<Candidate> made =
        instantiate(task, space, genomes[i].sketch, genomes[i].decisions);
    if (!made) continue;
    const costmodel::ModelFeatures features = costmodel::extract(made->program, task.target);
    const int first = batch.statement_begin[i];
    REQUIRE(batch.statement_begin[i + 1] - first == static_cast<int>(features.statements.size()));
    bool same = true;
    for (std::size_t s = 0; s < features.statements.size(); ++s) {
      for (std::size_t f = 0; f < features.statements[s].size(); ++f) {
        const float got = batch.statements(first + static_cast<int>(s), static_cast<int>(f));
        same = same && std::abs(got - features.statements[s][f]) < 1e-3F;
      }
    }
    ++compared;
    equal += same ? 1 : 0;
  }
  CHECK(compared >= 20);
  // Guards that numbers shorten leave a few apart.
  CHECK(equal * 10 >= compared * 9);
  // What is no candidate has zeros, and says so.
  genomes.resize(1);
  REQUIRE(genomes[0].decisions.size() >= 2);
  genomes[0].decisions.pop_back();
  costmodel::model::Batch<float> none;
  CHECK(source.append(network, genomes, threads, &none) == std::vector<bool>{false});
  CHECK(none.programs == 1);
}

TEST_CASE("joined ranks follow orders and no scales, and the model's weight grows") {
  const std::vector<double> model = {5, 1, 3}, analyzer = {1e-9, 3e-9, 2e-9};
  CHECK(join_ranks(model, analyzer, 1) == std::vector<double>{1, 0, 0.5});
  CHECK(join_ranks(model, analyzer, 0) == std::vector<double>{0, 1, 0.5});
  CHECK(join_ranks(model, analyzer, 0.75) == std::vector<double>{0.75, 0.25, 0.5});
  CHECK(join_ranks({}, {}, 0.5).empty());
  // Equal scores are equal, wherever they stand.
  const std::vector<double> ties = {1, 2, 1}, none = {0, 0, 0};
  CHECK(join_ranks(ties, none, 1) == std::vector<double>{0.25, 1, 0.25});
  CHECK(join_ranks(ties, none, 0) == std::vector<double>{0.5, 0.5, 0.5});
  CHECK(join_ranks(std::vector<double>{7}, std::vector<double>{-7}, 0.5) == std::vector<double>{0});
  CHECK(model_weight(0) == 0);
  CHECK(model_weight(96) == 0.5);
  CHECK(model_weight(kHeadStart) < 0.5);
  CHECK(model_weight(1e6) > 0.999);
}

TEST_CASE("the verifier's order is joined from pacm's and the analyzer's, task by task") {
  const Corpus corpus = small_corpus();
  ThreadPool threads(2);
  const Split split = split_rows(corpus, all_rows(corpus), SplitKind::kWithinTask, 0.25, {}, 1);
  const Dataset train =
      make_dataset(corpus, split.train, inputs_of(RankerKind::kPacm), threads).value();
  const Dataset test =
      make_dataset(corpus, split.test, inputs_of(RankerKind::kPacm), threads).value();
  RankerOptions options;
  options.epochs = 1;
  options.members = 1;
  const auto scores_of = [&](RankerKind kind) {
    const std::vector<float> scores =
        train_ranker(kind, train, options, threads).value()(test, threads);
    return std::vector<double>(scores.begin(), scores.end());
  };
  const std::vector<double> model = scores_of(RankerKind::kPacm);
  const std::vector<double> analyzer = scores_of(RankerKind::kAnalyzer);
  const std::vector<double> joined = scores_of(RankerKind::kVerifier);
  for (const std::vector<int>& group : costmodel::model::groups_of(test)) {
    std::vector<double> by_model, by_analyzer, found;
    for (const int row : group) {
      by_model.push_back(model[static_cast<std::size_t>(row)]);
      by_analyzer.push_back(analyzer[static_cast<std::size_t>(row)]);
      found.push_back(joined[static_cast<std::size_t>(row)]);
    }
    const std::vector<double> expected =
        join_ranks(by_model, by_analyzer, model_weight(kHeadStart));
    for (std::size_t r = 0; r < group.size(); ++r) CHECK(found[r] == Approx(expected[r]));
  }
}

TEST_CASE("every ranker learns an easy order but the random one") {
  const Corpus corpus = small_corpus();
  ThreadPool threads(2);
  const Split split = split_rows(corpus, all_rows(corpus), SplitKind::kWithinTask, 0.25, {}, 1);
  for (int i = 0; i < kNumRankers; ++i) {
    const auto kind = static_cast<RankerKind>(i);
    CHECK(!describe(kind).empty());
    if (kind == RankerKind::kXgb && !costmodel::check_xgboost().ok()) continue;
    const Dataset train = make_dataset(corpus, split.train, inputs_of(kind), threads).value();
    const Dataset test = make_dataset(corpus, split.test, inputs_of(kind), threads).value();
    RankerOptions options;
    options.epochs = 12;
    options.members = 1;
    const Result<Ranker> ranker = train_ranker(kind, train, options, threads);
    REQUIRE_OK(ranker);
    const TaskQuality quality = mean_quality(quality_of(test, (*ranker)(test, threads)));
    INFO(to_string(kind) << ": pairwise " << quality.pairwise);
    if (kind == RankerKind::kRandom) {
      CHECK(quality.pairwise < 0.65);
    } else if (kind == RankerKind::kAnalyzer) {
      CHECK(quality.pairwise > 0.98);  // the times are its own
    } else {
      CHECK(quality.pairwise > 0.65);
    }
    CHECK(quality.top1 <= quality.top5);
  }
  const Dataset empty;
  CHECK_DIAG(train_ranker(RankerKind::kPacm, empty, {}, threads), ModelData);
}

TEST_CASE("batch statistics of the paper's model are taken from where they are said to be") {
  const Corpus corpus = small_corpus();
  ThreadPool threads(1);
  const auto network = recipe_of(NetworkKind::kPacmPaper).network;
  const Dataset data = make_dataset(corpus, all_rows(corpus), network, threads).value();
  costmodel::model::Model model = costmodel::model::make_model(network, 1, 1);
  costmodel::model::TrainOptions train = costmodel::model::published_training(3);
  REQUIRE_OK(costmodel::model::train(data, train, &threads, &model));
  // A program's score among all others and by itself.
  Dataset one;
  const costmodel::model::BatchView<float> first = slice(data.inputs, {0, 1});
  one.add({first.statements, first.flow, first.context, first.tokens}, data.outcomes[0]);
  for (const auto statistics :
       {costmodel::nn::Statistics::kRunning, costmodel::nn::Statistics::kBatch}) {
    const auto ranker = make_ranker(with_statistics(model, statistics));
    const float among = ranker(data, threads)[0];
    const float alone = ranker(one, threads)[0];
    CHECK((among == Approx(alone).epsilon(1e-4)) ==
          (statistics == costmodel::nn::Statistics::kRunning));
  }
}

TEST_CASE("quality is what its words say") {
  Dataset data;
  data.inputs.programs = 5;
  const double ns[] = {10, 20, 40, 0, 30};
  for (const double t : ns) data.outcomes.push_back({t, 0, 0});
  // The best one last but one; what did not run does not count.
  const std::vector<float> scores = {0.2F, 0.9F, 0.1F, 1.0F, 0.5F};
  const std::vector<TaskQuality> tasks = quality_of(data, scores);
  REQUIRE(tasks.size() == 1);
  CHECK(tasks[0].programs == 4);
  CHECK(tasks[0].top1 == Approx(10.0 / 20));
  CHECK(tasks[0].top5 == Approx(1));
  CHECK(tasks[0].pairwise == Approx(4.0 / 6));
}

TEST_CASE("a network is opened from a file, from the built-in model, or untrained") {
  const NetworkUse need{NetworkKind::kTensetMlp, OnlineKind::kFrozen,
                        NetworkStart::kNeedCheckpoint};
  CHECK_DIAG(open_network(need, "", ir::TargetKind::kCpu, 1), ModelMissing);
  CHECK_DIAG(open_network(need, scratch_path("none.model"), ir::TargetKind::kCpu, 1), IoError);
  costmodel::model::Model model =
      costmodel::model::make_model(network_options(NetworkKind::kTensetMlp), 1, 1);
  const std::string path = scratch_path("mlp.model");
  model.feature_set = "features of another build";
  REQUIRE_OK(costmodel::model::write_checkpoint(model, "test", path));
  CHECK_DIAG(open_network(need, path, ir::TargetKind::kCpu, 1), ModelFeatures);
  model.feature_set = feature_set(NetworkKind::kTensetMlp);
  REQUIRE_OK(costmodel::model::write_checkpoint(model, "test", path));
  // It was never trained.
  CHECK_DIAG(open_network(need, path, ir::TargetKind::kCpu, 1), ModelMissing);
  NetworkUse perhaps = need;
  perhaps.start = NetworkStart::kPreferCheckpoint;
  REQUIRE_OK(open_network(perhaps, path, ir::TargetKind::kCpu, 1));
  costmodel::model::NetworkOptions narrow = network_options(NetworkKind::kTensetMlp);
  narrow.statement_inputs = 160;
  costmodel::model::Model other_widths = costmodel::model::make_model(narrow, 1, 1);
  other_widths.feature_set = feature_set(NetworkKind::kTensetMlp);
  const std::string narrow_path = scratch_path("narrow.model");
  REQUIRE_OK(costmodel::model::write_checkpoint(other_widths, "test", narrow_path));
  CHECK_DIAG(open_network(perhaps, narrow_path, ir::TargetKind::kCpu, 1), ModelFeatures);
  NetworkUse other = perhaps;
  other.network = NetworkKind::kTlp;
  CHECK_DIAG(open_network(other, path, ir::TargetKind::kCpu, 1), ModelKind);
  // TLP's tokens are others on a GPU, and were others before.
  costmodel::model::Model tokens =
      costmodel::model::make_model(network_options(NetworkKind::kTlp, ir::TargetKind::kCpu), 1, 1);
  CHECK(tokens.options.token_length == 25);
  CHECK(tokens.options.token_inputs == 22);
  tokens.feature_set = feature_set(NetworkKind::kTlp);
  const std::string tlp_path = scratch_path("tlp.model");
  REQUIRE_OK(costmodel::model::write_checkpoint(tokens, "test", tlp_path));
  REQUIRE_OK(open_network(other, tlp_path, ir::TargetKind::kCpu, 1));
  CHECK_DIAG(open_network(other, tlp_path, ir::TargetKind::kCuda, 1), ModelFeatures);
  const auto on_gpu = network_options(NetworkKind::kTlp, ir::TargetKind::kCuda);
  CHECK(on_gpu.token_length == 40);
  CHECK(on_gpu.token_inputs == 20);
  CHECK(feature_set(NetworkKind::kTlp) != feature_set(NetworkKind::kPacm));
  // Ours knows CPUs, and starts from nothing elsewhere.
  const NetworkUse ours = *network_use(StrategyKind::kPruner);
  const Result<std::shared_ptr<OnlineModel>> cpu = open_network(ours, "", ir::TargetKind::kCpu, 1);
  const Result<std::shared_ptr<OnlineModel>> gpu = open_network(ours, "", ir::TargetKind::kCuda, 1);
  REQUIRE_OK(cpu);
  REQUIRE_OK(gpu);
  CHECK((*cpu)->is_trained());
  CHECK(!(*gpu)->is_trained());
  CHECK((*cpu)->came_trained());
  CHECK(!network_use(StrategyKind::kRandom));
}

TEST_CASE("an instant answer is a program of the space, and the same every time") {
  for (const char* op : {"gemm", "conv2d_relu", "softmax_like"}) {
    const Task task = make_test_task(op, 1);
    const SearchSpace space = make_space(task).value();
    ThreadPool one(1), two(2);
    const Result<Candidate> answer = instant_candidate(task, space, one);
    REQUIRE_OK(answer);
    CHECK(find_sketch(space, answer->trace) == answer->sketch);
    CHECK(instant_candidate(task, space, two)->fingerprint == answer->fingerprint);
  }
}

TEST_CASE("online models learn when they should, and equally for any number of threads") {
  const Corpus corpus = small_corpus();
  ThreadPool one(1), two(2);
  const std::vector<CorpusRow> rows = all_rows(corpus);
  for (const OnlineKind kind : {OnlineKind::kScratch, OnlineKind::kWarm, OnlineKind::kFineTune,
                                OnlineKind::kMoaPaper, OnlineKind::kMoa}) {
    const NetworkKind network =
        kind == OnlineKind::kMoaPaper ? NetworkKind::kPacmPaper : NetworkKind::kPacm;
    const auto options = network_options(network);
    std::vector<float> first;
    for (ThreadPool* threads : {&one, &two}) {
      OnlineOptions how = online_options(kind, options, 5);
      how.train.epochs = 2;
      OnlineModel model(costmodel::model::make_model(options, 1, 5), how);
      CHECK(!model.is_trained());
      for (std::size_t part = 1; part <= 8; ++part) {
        const auto end = rows.begin() + static_cast<std::ptrdiff_t>(rows.size() * part / 8);
        const std::vector<CorpusRow> seen(rows.begin(), end);
        model.records() = make_dataset(corpus, seen, options, *threads).value();
        model.update(*threads);
        // Nothing new, nothing learned.
        const int updates = model.num_updates();
        model.update(*threads);
        CHECK(model.num_updates() == updates);
      }
      CHECK(model.is_trained());
      CHECK(model.num_updates() == (kind == OnlineKind::kMoaPaper ? 2 : 8));
      const auto& values = model.model().members[0]->parameters.values;
      if (first.empty()) {
        first = {values.begin(), values.end()};
      } else {
        CHECK(std::equal(values.begin(), values.end(), first.begin(), first.end()));
      }
    }
  }
  OnlineModel frozen(costmodel::model::make_model(network_options(NetworkKind::kPacm), 1, 5),
                     online_options(OnlineKind::kFrozen, network_options(NetworkKind::kPacm), 5));
  frozen.records() = make_dataset(corpus, rows, network_options(NetworkKind::kPacm), one).value();
  frozen.update(one);
  CHECK(frozen.num_updates() == 0);
}

}  // namespace
}  // namespace prunerc

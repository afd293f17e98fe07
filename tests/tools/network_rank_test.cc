// Ranking within a network, with times that the tests make up for each kernel.
#include "tools/driver/network/network_rank.h"

#include "ir/equal.h"
#include "schedule/schedule.h"
#include "search/space/sampler.h"
#include "tools/driver/stored.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace prunerc {
namespace {

constexpr const char* kText = R"(
op dense<M, N, K>(X: f32[M,K], W: f32[K,N]) -> (Y: f32[M,N]) { Y[i,j] = sum[k] X[i,k] * W[k,j]; }
net mlp(x: f32[8,24]) -> (y: f32[8,32]) {
  const W1: f32[24,40]; const W2: f32[40,40]; const W3: f32[40,40]; const W4: f32[40,32];
  let a = dense(x, W1) as first;
  let b = dense(a, W2) as middle;
  let c = dense(b, W3);
  y = dense(c, W4) as last;
}
)";

net::Net load() {
  OperatorRequest request;
  request.text = kText;
  return (*load_net(request))->net;
}

Session open_session() {
  const char* const folder = std::getenv("TEST_TMPDIR");
  ::setenv("XDG_CACHE_HOME", folder == nullptr ? "/tmp" : folder, 1);
  SessionOptions options;
  options.database = ":memory:";
  options.threads = 1;
  return Session::open(options).value();
}

// Stores so many candidates as right, each slower than the one before; their fingerprints.
std::vector<std::string> store(Session& session, const Operator& op, std::size_t count) {
  const search::Task task = session.task(op);
  const search::SearchSpace space = search::make_space(task).value();
  ThreadPool pool(1);
  Rng rng(1);
  std::vector<std::string> stored;
  const int64_t id = session.database().put_task(task).value();
  while (stored.size() < count) {
    const search::Genome genome =
        search::random_genome(space, search::random_sketch(space, rng), rng);
    const auto made = search::instantiate_all(task, space, {&genome, 1}, pool);
    if (!made[0]) continue;
    search::Record record;
    record.fingerprint = ir::fingerprint(made[0]->program).to_string();
    if (std::find(stored.begin(), stored.end(), record.fingerprint) != stored.end()) continue;
    record.trace = schedule::print(made[0]->trace);
    record.measurement.status = MeasureStatus::kOk;
    record.measurement.evidence = "compared";
    record.measurement.samples_ns = {1000.0 + static_cast<double>(stored.size())};
    search::summarize_samples(record.measurement);
    REQUIRE(session.database().put_records(id, {&record, 1}).ok());
    stored.push_back(record.fingerprint);
  }
  return stored;
}

WeightSource weights_of(const net::Net& net) {
  return WeightSource::open(net, "", "rand:normal(0,0.05)").value();
}

std::string chosen(Session& session, const Operator& op) {
  return ir::fingerprint(session.choose(op)->program).to_string();
}

// A run in which a task's calls take what `ns` says of its kernel.
TimedNetworkRun timed(
    const std::function<int64_t(std::size_t task, const std::string& entry)>& ns) {
  return [ns](Network& network, std::vector<int64_t>* times) {
    times->clear();
    for (const std::size_t call : net::run_calls(network.net())) {
      const std::size_t task = network.task_of_call(call);
      times->push_back(ns(task, network.artifact(task).entry));
    }
    return Result<void>();
  };
}

bool is_of(const std::string& entry, const std::string& fingerprint) {
  return entry.find(fingerprint) != std::string::npos;
}

TEST_CASE("what is fastest in the network is chosen from then on, whatever it took alone") {
  Session session = open_session();
  const net::Net net = load();
  const std::vector<Operator> tasks = operators_of(net);
  REQUIRE(tasks.size() == 3);
  std::map<std::size_t, std::string> wanted;
  std::set<std::string> met;
  for (const std::size_t task : {0, 1}) {
    const std::vector<std::string> stored = store(session, tasks[task], 5);
    CHECK(chosen(session, tasks[task]) == stored[0]);
    wanted[task] = stored[3 + task % 2];
  }
  const TimedNetworkRun run = timed([&](std::size_t task, const std::string& entry) {
    met.insert(entry);
    const auto best = wanted.find(task);
    return best != wanted.end() && is_of(entry, best->second) ? 500 : 700;
  });
  const Result<RankReport> report = rank_in_network(session, net, weights_of(net), run, {});
  REQUIRE(report.ok());
  CHECK(report->num_changed == 2);
  CHECK(report->before_ns == 4 * 700);
  CHECK(report->after_ns == 3 * 500 + 700);
  CHECK(report->num_contenders >= 10);
  CHECK(met.size() >= 10);
  for (const auto& [task, fingerprint] : wanted) {
    CHECK(chosen(session, tasks[task]) == fingerprint);
    // What it took alone is still what is told of it alone, whatever it took beside other work.
    const double alone_ns = session.choose(tasks[task])->best_ns;
    CHECK(alone_ns >= 1003);
    const int64_t id = session.database().put_task(session.task(tasks[task])).value();
    const std::vector<search::Record> timed_alone = session.database().top_k(id, 8).value();
    for (search::Record busy : timed_alone) {
      busy.measurement.samples_ns = {5000};
      busy.measurement.disturbed = true;
      search::summarize_samples(busy.measurement);
      REQUIRE(session.database().put_records(id, {&busy, 1}).ok());
    }
    CHECK(session.choose(tasks[task])->best_ns == alone_ns);
  }
  // The same operator in another network, or in none.
  Operator other = tasks[0];
  other.network = "0123456789abcdef";
  CHECK(chosen(session, other) != wanted[0]);
  other.network.clear();
  CHECK(chosen(session, other) != wanted[0]);

  // Another day, on which all are slower and another one wins.
  const std::string before = wanted[1];
  wanted.clear();
  wanted[1] = store(session, tasks[1], 5)[2];
  const TimedNetworkRun again = timed([&](std::size_t task, const std::string& entry) {
    return task == 1 && is_of(entry, wanted[1]) ? 1000 : 1400;
  });
  const Result<RankReport> second = rank_in_network(session, net, weights_of(net), again, {});
  REQUIRE(second.ok());
  CHECK(second->num_changed == 1);
  CHECK(chosen(session, tasks[1]) == wanted[1]);
  CHECK(wanted[1] != before);
}

// The operator's stored task in its network.
search::TaskRow row_within(Session& session, const Operator& op) {
  search::TaskRow row;
  row.key = session.network_task(op).key;
  row.id = session.database().find_task(row.key).value().value();
  return row;
}

// What a ranking chooses for a task if the kernel of that fingerprint is the fastest.
RankReport rank_for(Session& session, std::size_t wanted_task, const std::string& fingerprint) {
  const net::Net net = load();
  const TimedNetworkRun run = timed([&](std::size_t task, const std::string& entry) {
    return task == wanted_task && is_of(entry, fingerprint) ? 500 : 700;
  });
  return rank_in_network(session, net, weights_of(net), run, {}).value();
}

TEST_CASE("what is looked at first of a task in a network is what is chosen there") {
  Session session = open_session();
  const Operator op = operators_of(load())[1];
  const std::vector<std::string> stored = store(session, op, 5);
  for (const std::size_t best : {3, 2}) {
    CHECK(rank_for(session, 1, stored[best]).num_changed == 1);
    CHECK(chosen(session, op) == stored[best]);
  }
  const std::vector<search::Record> first =
      chosen_first(session.database(), row_within(session, op)).value();
  REQUIRE(first.size() == 2);
  CHECK(first[0].fingerprint == stored[2]);
  CHECK(first[1].fingerprint == stored[3]);
}

TEST_CASE("what was found wrong is neither stored nor chosen in a network from then on") {
  Session session = open_session();
  const Operator op = operators_of(load())[1];
  const std::vector<std::string> stored = store(session, op, 5);
  REQUIRE(rank_for(session, 1, stored[2]).num_changed == 1);
  const search::TaskRow within = row_within(session, op);
  search::Record record = session.database().best(within.id).value().value();
  REQUIRE(record.fingerprint == stored[2]);
  const int64_t alone = session.database().find_task(session.task(op).key).value().value();
  search::Measurement verdict;
  verdict.status = MeasureStatus::kWrongResult;
  REQUIRE(session.database().put_verdict(alone, stored[2], verdict).ok());
  CHECK(chosen(session, op) == stored[0]);
  // As another process stores that was ranking just then.
  REQUIRE(session.database().put_records(within.id, {&record, 1}).ok());
  CHECK(chosen(session, op) == stored[0]);
  CHECK(chosen_first(session.database(), within).value().empty());
  // Timed alone once more, it is the fastest there, and would win a ranking.
  record.measurement.samples_ns = {900};
  search::summarize_samples(record.measurement);
  REQUIRE(session.database().put_records(alone, {&record, 1}).ok());
  CHECK(rank_for(session, 1, stored[2]).num_changed == 0);
  CHECK(session.database().records(within.id)->size() == 2);
  CHECK(chosen(session, op) == stored[0]);
}

TEST_CASE("what was found wrong takes no right kernel's place in a ranking") {
  Session session = open_session();
  const net::Net net = load();
  const std::vector<Operator> tasks = operators_of(net);
  const std::vector<std::string> first = store(session, tasks[0], 2),
                                 middle = store(session, tasks[1], 5);
  const int64_t alone = session.database().find_task(session.task(tasks[1]).key).value().value();
  const search::Record record = session.database().top_k(alone, 5).value()[2];
  REQUIRE(record.fingerprint == middle[2]);
  REQUIRE(first[0] != first[1]);
  search::Measurement verdict;
  verdict.status = MeasureStatus::kWrongResult;
  REQUIRE(session.database().put_verdict(alone, middle[2], verdict).ok());
  REQUIRE(session.database().put_records(alone, {&record, 1}).ok());
  std::string wrong = middle[2];
  bool is_found_late = false;
  const TimedNetworkRun run = timed([&](std::size_t task, const std::string& entry) {
    if (task == 0) return is_found_late && is_of(entry, first[1]) ? 500 : 700;
    if (task != 1 || !is_of(entry, wrong)) return is_of(entry, middle[3]) ? 500 : 700;
    if (is_found_late) REQUIRE(session.database().put_verdict(alone, wrong, verdict).ok());
    return 400;
  });
  const RankReport known = rank_in_network(session, net, weights_of(net), run, {}).value();
  CHECK(known.num_changed == 1);
  CHECK(known.before_ns == 4 * 700);
  CHECK(known.after_ns == 2 * 700 + 2 * 500);
  CHECK(chosen(session, tasks[1]) == middle[3]);
  // Another process says so while it is ranked: its task stays as it was, the other one changes.
  wrong = middle[4];
  is_found_late = true;
  const RankReport late = rank_in_network(session, net, weights_of(net), run, {}).value();
  CHECK(late.num_changed == 1);
  CHECK(late.before_ns == 2 * 700 + 2 * 500);
  CHECK(late.after_ns == 500 + 700 + 2 * 500);
  CHECK(chosen(session, tasks[0]) == first[1]);
  CHECK(chosen(session, tasks[1]) == middle[3]);
}

TEST_CASE(
    "winners that are no faster together change nothing, nor does a ranking that was stopped") {
  const net::Net net = load();
  const std::vector<Operator> tasks = operators_of(net);
  Session session = open_session();
  std::vector<std::string> first;
  for (const Operator& op : tasks) first.push_back(store(session, op, 4)[0]);
  // Each is fast beside the first of its neighbours alone.
  const TimedNetworkRun jealous = [&](Network& network, std::vector<int64_t>* times) {
    int num_new = 0;
    for (std::size_t task = 0; task < tasks.size(); ++task)
      num_new += is_of(network.artifact(task).entry, first[task]) ? 0 : 1;
    times->assign(net::run_calls(net).size(), num_new == 3 ? 2000 : num_new == 0 ? 1000 : 900);
    return Result<void>();
  };
  const Result<RankReport> report = rank_in_network(session, net, weights_of(net), jealous, {});
  REQUIRE(report.ok());
  CHECK(report->after_ns <= report->before_ns);
  CHECK(report->num_changed < 3);

  Session stopped = open_session();
  for (const Operator& op : tasks) store(stopped, op, 4);
  for (const int num_calls : {0, 1000, 4000}) {
    std::atomic<bool> cancel = num_calls == 0;
    RankOptions options;
    options.cancel = &cancel;
    int left = num_calls;
    const TimedNetworkRun any = timed([&](std::size_t task, const std::string& entry) {
      if (--left == 0) cancel = true;
      return is_of(entry, first[task]) ? 1000 : 500;
    });
    const Result<RankReport> none = rank_in_network(stopped, net, weights_of(net), any, options);
    REQUIRE(none.ok());
    CHECK(cancel.load());
    CHECK(none->num_changed == 0);
    CHECK(none->before_ns > 0);
    CHECK(none->after_ns == none->before_ns);
    for (std::size_t task = 0; task < tasks.size(); ++task)
      CHECK(chosen(stopped, tasks[task]) == first[task]);
  }
  // An error of a run ends it.
  const TimedNetworkRun fails = [](Network&, std::vector<int64_t>*) -> Result<void> {
    return error(Diag::kKernelFailed, int64_t{3});
  };
  const Result<RankReport> failed = rank_in_network(stopped, net, weights_of(net), fails, {});
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().id() == Diag::kKernelFailed);
}

TEST_CASE("another kernel of a task computes the same in a network") {
  Session session = open_session();
  const net::Net net = load();
  const std::vector<Operator> tasks = operators_of(net);
  const WeightSource weights = weights_of(net);
  const auto heuristic = [&](const Operator& op) -> Result<ir::Program> {
    return session.choose(op)->program;
  };
  Network network = Network::build(net, {session.target(), 1}, heuristic).value();
  struct alignas(64) Rows {
    float at[8 * 32] = {};
  };
  Rows x, before, after;
  for (std::size_t i = 0; i < 8 * 24; ++i) x.at[i] = static_cast<float>(i % 7) - 3;
  const void* const in[] = {&x};
  void* const first[] = {&before};
  void* const second[] = {&after};
  REQUIRE(network.prepare(weights).ok());
  REQUIRE(network.run(in, first).ok());
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    store(session, tasks[task], 1);
    const Choice choice = session.choose(tasks[task]).value();
    REQUIRE(network.replace(task, session.compile(choice).value()).ok());
    // Constants have to be prepared anew.
    CHECK_FALSE(network.run(in, second).ok());
    REQUIRE(network.prepare(weights).ok());
    REQUIRE(network.run(in, second).ok());
    for (std::size_t i = 0; i < 8 * 32; ++i)
      CHECK(after.at[i] == Approx(before.at[i]).margin(1e-5));
  }
}

TEST_CASE("a ranking whose time is over times the network once and leaves it as it is") {
  Session session = open_session();
  const net::Net net = load();
  for (const Operator& op : operators_of(net)) store(session, op, 2);
  int num_runs = 0;
  const TimedNetworkRun slow = [&](Network&, std::vector<int64_t>* times) {
    ++num_runs;
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    times->assign(net::run_calls(net).size(), 1000);
    return Result<void>();
  };
  RankOptions options;
  options.time_s = 1e-6;
  const Result<RankReport> report = rank_in_network(session, net, weights_of(net), slow, options);
  REQUIRE(report.ok());
  CHECK(num_runs == 3);  // two of them warm up
  CHECK(report->before_ns == 4000);
  CHECK(report->after_ns == 4000);
  CHECK(report->num_changed == 0);
}

TEST_CASE("a ranking begins no mixture that it has no time to decide about") {
  Session session = open_session();
  const net::Net net = load();
  for (const Operator& op : operators_of(net)) store(session, op, 3);
  int num_runs = 0;
  int64_t step_ns = 0;
  const TimedNetworkRun run = [&](Network&, std::vector<int64_t>* times) {
    ++num_runs;
    times->assign(net::run_calls(net).size(), step_ns);
    return Result<void>();
  };
  RankOptions options;
  options.time_s = 60;
  step_ns = 3'000'000'000;  // seven runs of four steps take 84 s
  REQUIRE(rank_in_network(session, net, weights_of(net), run, options).ok());
  CHECK(num_runs <= 33);  // of one mixture
  // Nothing to choose from: what is chosen now is timed once more, not twice.
  num_runs = 0;
  step_ns = 1000;
  options.contenders = 1;
  const RankReport alone = rank_in_network(session, net, weights_of(net), run, options).value();
  CHECK(num_runs <= 2 * 33);
  CHECK(alone.after_ns == alone.before_ns);
}

TEST_CASE("what a ranking decides by is never one run, however late it is") {
  Session session = open_session();
  const net::Net net = load();
  for (const Operator& op : operators_of(net)) store(session, op, 3);
  RankOptions options;
  options.time_s = 0;
  std::vector<std::pair<std::string, int>> stretches;  // of runs of one mixture
  const TimedNetworkRun run = [&](Network& network, std::vector<int64_t>* times) {
    std::string mixture;
    for (std::size_t task = 0; task < network.tasks().size(); ++task)
      mixture += network.artifact(task).entry + "\n";
    if (stretches.empty() || stretches.back().first != mixture) stretches.emplace_back(mixture, 0);
    ++stretches.back().second;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    // The time is over while the first other mixture is timed: options are read as the ranking runs.
    if (stretches.size() > 1) options.time_s = 1e-6;
    times->assign(net::run_calls(net).size(), 1000);
    return Result<void>();
  };
  const Result<RankReport> report = rank_in_network(session, net, weights_of(net), run, options);
  REQUIRE(report.ok());
  CHECK(stretches.size() > 1);
  CHECK(stretches.size() <= 3);
  for (const auto& [mixture, num_runs] : stretches) CHECK(num_runs >= 7);  // two of them warm up
  CHECK(report->num_changed == 0);
  CHECK(report->after_ns == report->before_ns);
}

}  // namespace
}  // namespace prunerc

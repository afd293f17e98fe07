// bench of a net: the whole, and each call within it.
#include "runtime/clock.h"
#include "runtime/measure.h"
#include "tools/driver/limits.h"
#include "tools/prunerc/display.h"
#include "tools/prunerc/heartbeat.h"
#include "tools/prunerc/json.h"
#include "tools/prunerc/network.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace prunerc::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Step {
  std::string label, op;
  Choice::Origin origin = Choice::Origin::kHeuristic;
  double median_ns = 0;
  LimitShare share;
};

struct Times {
  int threads = 1;
  std::string target;
  runtime::Measurement whole;
  double sum_alone_ns = 0;  // of the tasks' records, each measured alone; 0 unless all have one
  std::vector<Step> steps;
};

// Whole runs and runs with a clock between the calls take turns, so that both see the same machine.
Result<Times> measure(const LoadedNet& net, const OperatorRequest& request, MachineOptions machine,
                      int threads, const NetworkBench& options) {
  machine.threads = threads;
  PRUNERC_TRY(const WeightSource weights,
              open_weights(net, request, options.weights,
                           filled_const_inputs(net.net, options.seed), kAnyWeights));
  PRUNERC_TRY(PreparedNetwork prepared,
              prepare_network(net, machine, weights, NetworkPurpose::kRun));
  Network& network = prepared.network;
  PRUNERC_TRY(NetworkArrays arrays, NetworkArrays::make(net.net));
  arrays.fill_inputs(net.net, options.seed);
  const StillAt working("timing " + net.net.name);
  constexpr int kWarmups = 3;
  for (int i = 0; i < kWarmups; ++i) PRUNERC_TRY_VOID(arrays.run(network));
  Times times;
  times.threads = prepared.session.num_threads();
  times.target = prepared.session.target().name;
  const std::vector<std::size_t> calls = net::run_calls(net.net);
  std::vector<std::vector<double>> of_step(calls.size());
  for (int i = 0; i < options.samples; ++i) {
    const int64_t begin = runtime::now_ns();
    PRUNERC_TRY_VOID(arrays.run(network));
    times.whole.samples_ns.push_back(static_cast<double>(runtime::now_ns() - begin));
    std::vector<int64_t> steps_ns;
    PRUNERC_TRY_VOID(arrays.run_timed(network, &steps_ns));
    for (std::size_t s = 0; s < steps_ns.size(); ++s)
      of_step[s].push_back(static_cast<double>(steps_ns[s]));
  }
  runtime::summarize(&times.whole);
  bool all_recorded = true;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::size_t task = network.task_of_call(calls[i]);
    Step step;
    step.label = net.net.calls[calls[i]].label;
    step.op = net.net.calls[calls[i]].op;
    step.origin = prepared.origins[task];
    step.median_ns = runtime::median(of_step[i]);
    step.share = share_of_limit(prepared.chosen[task], step.median_ns,
                                remeasure_here(prepared.session.target()));
    times.steps.push_back(std::move(step));
    all_recorded &= prepared.best_ns[task] > 0;
    times.sum_alone_ns += prepared.best_ns[task];
  }
  if (!all_recorded) times.sum_alone_ns = 0;
  return times;
}

void print_table(const std::string& name, const Times& times) {
  double sum = 0;
  for (const Step& step : times.steps) sum += step.median_ns;
  fmt::print("{:<24} {:<20} {:<9} {:>11} {:>7}   {}\n", "step", "operator", "schedule", "median",
             "share", "of limit");
  for (const Step& step : times.steps) {
    fmt::print("{:<24} {:<20} {:<9} {:>11} {:>6.1f}%   {}\n", step.label.substr(0, 24),
               step.op.substr(0, 20), to_string(step.origin), time_text(step.median_ns),
               100 * step.median_ns / sum, to_string(step.share));
  }
  fmt::print("{}, {} thread{}: {} median of {} runs, spread {:.1f}%; steps add up to {}", name,
             times.threads, times.threads == 1 ? "" : "s", time_text(times.whole.median_ns),
             times.whole.samples_ns.size(), 100 * times.whole.spread, time_text(sum));
  if (times.sum_alone_ns > 0)
    fmt::print("; tasks measured alone: {}", time_text(times.sum_alone_ns));
  fmt::print("\n");
}

// Of several sizes, a row each; `prunerc bench` of one of them shows its steps.
void print_head() {
  fmt::print("{:<32} {:>3} {:>11} {:>7} {:>7}   {:>11}  {}\n", "net", "thr", "median", "spread",
             "runs", "steps", "tasks measured alone");
}

void print_row(const std::string& title, const Times& times) {
  double sum = 0;
  for (const Step& step : times.steps) sum += step.median_ns;
  fmt::print("{:<32} {:>3} {:>11} {:>6.1f}% {:>7}   {:>11}  {}\n", title, times.threads,
             time_text(times.whole.median_ns), 100 * times.whole.spread,
             times.whole.samples_ns.size(), time_text(sum),
             times.sum_alone_ns > 0 ? time_text(times.sum_alone_ns) : "-");
}

Json json_of(const SizedNet& sized, const Times& times) {
  Json row = {{"net", sized.net.net.name},
              {"sizes", sized.text},
              {"target", times.target},
              {"threads", times.threads},
              {"median_ns", times.whole.median_ns},
              {"min_ns", times.whole.min_ns},
              {"spread", times.whole.spread},
              {"samples_ns", times.whole.samples_ns},
              {"sum_alone_ns", times.sum_alone_ns},
              {"steps", Json::array()}};
  for (const Step& step : times.steps) {
    row["steps"].push_back({{"step", step.label},
                            {"op", step.op},
                            {"schedule", to_string(step.origin)},
                            {"median_ns", step.median_ns},
                            {"limit_fraction", step.share.fraction},
                            {"limit", to_string(step.share.limit.unit)}});
  }
  return row;
}

}  // namespace

int bench_network(const SizedNets& nets, const OperatorRequest& request,
                  const MachineOptions& machine, const NetworkBench& options) {
  fmt::print(stderr, "{}", nets.nets[0].net.warnings);
  const bool is_listed = !nets.dims.empty();
  Json all = {{"schema", "prunerc.bench_net/1"}, {"rows", Json::array()}};
  if (is_listed && !options.json) print_head();
  for (const SizedNet& sized : nets.nets) {
    for (const int threads : options.threads.empty() ? std::vector<int>{0} : options.threads) {
      const Result<Times> times = measure(sized.net, request, machine, threads, options);
      if (!times.ok()) return fail(times.error());
      all["rows"].push_back(json_of(sized, *times));
      if (options.json) continue;
      is_listed ? print_row(title_of(sized), *times) : print_table(sized.net.net.name, *times);
    }
  }
  if (options.json) fmt::print("{}\n", json_line(all));
  return kSuccess;
}

}  // namespace prunerc::cli

#include "tools/driver/backend.h"
#include "tools/driver/limits.h"
#include "tools/driver/reference.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/display.h"
#include "tools/prunerc/heartbeat.h"
#include "tools/prunerc/json.h"
#include "tools/prunerc/network.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace prunerc::cli {
namespace {

using Json = nlohmann::ordered_json;

struct BenchVerb {
  OperatorOptions op;
  MachineOptions machine;
  std::vector<int> threads;
  int samples = 21;
  uint64_t seed = 0;
  bool heuristic = false;
  bool cold = false;
  bool json = false;
  std::string weights;
};

// One timed kernel.
struct Row {
  std::string op;
  std::string target;
  int threads = 1;
  Choice::Origin origin = Choice::Origin::kHeuristic;
  runtime::Measurement measurement;
  search::Work work;
  double gflops = 0;
  double gbps = 0;
  LimitShare share;
};

runtime::TimingOptions timing_options(const BenchVerb& verb) {
  runtime::TimingOptions timing;
  timing.min_samples = verb.samples;
  timing.max_samples = std::max(verb.samples, timing.max_samples);
  timing.target_error = 0.002;
  timing.max_time_ns = 2'000'000'000;
  timing.cache = verb.cold ? runtime::CacheState::kFlushed : runtime::CacheState::kWarm;
  return timing;
}

std::optional<Row> measure(const BenchVerb& verb, const OperatorRequest& request, int threads,
                           int* code) {
  MachineOptions machine = verb.machine;
  machine.threads = threads;
  // An empty store has no record.
  if (verb.heuristic) machine.database = ":memory:";
  std::optional<Prepared> prepared =
      prepare(request, machine, code, Without::kFail, Claims::kSettled);
  if (!prepared) return std::nullopt;
  const search::Task task = prepared->session.task(prepared->op, prepared->choice);
  const Result<std::unique_ptr<runtime::Device>> device =
      open_device(prepared->session.target(), prepared->session.num_threads());
  if (!device.ok()) {
    *code = fail(device.error(), kDeviceProblem);
    return std::nullopt;
  }
  runtime::Job job;
  job.artifact = &prepared->artifact;
  job.inputs = References::inputs(task.base, verb.seed);
  job.timing = timing_options(verb);
  Row row;
  row.op = prepared->op.name;
  row.target = prepared->session.target().name;
  row.threads = prepared->session.num_threads();
  row.origin = prepared->choice.origin;
  const StillAt working("timing " + row.op);
  row.measurement = (*device)->run(job).measurement;
  if (!row.measurement.ok() || row.measurement.median_ns <= 0) {
    *code = not_timed(row.measurement);
    return std::nullopt;
  }
  row.work = task.work;
  row.gflops = task.flops / row.measurement.median_ns;
  row.gbps = task.work.bytes / row.measurement.median_ns;
  row.share = share_of_limit(task, row.measurement.median_ns, remeasure_here(task.target),
                             job.timing->cache);
  return row;
}

void print_table(const std::vector<Row>& rows) {
  fmt::print("{:<24} {:>3} {:<9} {:>11} {:>7} {:>15} {:>8} {:>7} {}\n", "operator", "thr",
             "schedule", "median", "spread", "rate", "GB/s", "samples", "  of limit");
  for (const Row& row : rows) {
    const runtime::Measurement& m = row.measurement;
    fmt::print("{:<24} {:>3} {:<9} {:>11} {:>6.1f}% {:>15} {:>8.2f} {:>7}   {}{}\n",
               row.op.substr(0, 24), row.threads, to_string(row.origin), time_text(m.median_ns),
               100 * m.spread, rate_text(row.work, m.median_ns), row.gbps, m.samples_ns.size(),
               to_string(row.share), m.disturbed ? "  noisy: other work took CPU time" : "");
  }
}

std::string rows_json(const BenchVerb& verb, const std::vector<Row>& rows) {
  Json all = {{"schema", "prunerc.bench/1"},
              {"cache", verb.cold ? "flushed" : "warm"},
              {"rows", Json::array()}};
  for (const Row& row : rows) {
    all["rows"].push_back({{"op", row.op},
                           {"target", row.target},
                           {"threads", row.threads},
                           {"schedule", to_string(row.origin)},
                           {"median_ns", row.measurement.median_ns},
                           {"min_ns", row.measurement.min_ns},
                           {"spread", row.measurement.spread},
                           {"samples_ns", row.measurement.samples_ns},
                           {"noisy", row.measurement.disturbed},
                           {"gflops", row.gflops},
                           {"gops", row.work.rated_ops() / row.measurement.median_ns},
                           {"gbps", row.gbps},
                           {"limit_fraction", row.share.fraction},
                           {"limit", to_string(row.share.limit.unit)},
                           {"limit_note", row.share.note}});
  }
  return json_line(all);
}

int bench(const BenchVerb& verb) {
  const Result<OperatorRequest> request = verb.op.request();
  if (!request.ok()) return fail(request.error(), kUsage);
  const Result<SizedNets> nets = load_nets(*request);
  if (!nets.ok()) return fail(nets.error());
  if (!nets->nets.empty()) {
    if (verb.cold)
      return fail(error(Diag::kUsageOption, "--cold",
                        "is of one operator: within a net each call "
                        "finds the caches as the one before left them"),
                  kUsage);
    MachineOptions machine = verb.machine;
    if (verb.heuristic) machine.database = ":memory:";
    return bench_network(*nets, *request, machine,
                         {verb.threads, verb.samples, verb.seed, verb.json, verb.weights});
  }
  if (const Result<void> fits = check_no_net_options(verb.weights); !fits.ok())
    return fail(fits.error());
  std::vector<Row> rows;
  for (const int threads : verb.threads.empty() ? std::vector<int>{0} : verb.threads) {
    int code = kSuccess;
    std::optional<Row> row = measure(verb, *request, threads, &code);
    if (!row) return code;
    rows.push_back(std::move(*row));
  }
  if (verb.json) {
    fmt::print("{}\n", rows_json(verb, rows));
  } else {
    print_table(rows);
  }
  return kSuccess;
}

}  // namespace

void add_bench(CLI::App& verb, Action& action) {
  auto args = std::make_shared<BenchVerb>();
  args->op.add_to(verb);
  args->machine.add_target_to(verb);
  verb.add_option("--threads", args->threads, "one row for each: 1,2 (default: all)")
      ->type_name("N")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  in_group(verb, "Machine");
  args->machine.add_script_to(verb);
  verb.add_flag("--heuristic", args->heuristic,
                "pass over records: time the heuristic schedule, or that of -O1");
  in_group(verb, "Schedule");
  verb.add_option("--samples", args->samples, "at least so many")
      ->type_name("N")
      ->check(CLI::Range(3, 10000))
      ->capture_default_str();
  verb.add_option("--seed", args->seed, "of the input data")->type_name("N")->capture_default_str();
  verb.add_flag("--cold", args->cold, "overwrite the caches before each run");
  in_group(verb, "Timing");
  add_weights_to(verb, &args->weights);
  verb.add_flag("--json", args->json, "one JSON object instead of the table");
  in_group(verb, "Output");
  verb.callback([args, &action] { action = [args] { return bench(*args); }; });
}

}  // namespace prunerc::cli

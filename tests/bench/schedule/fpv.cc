// What the verifier must show: no false alarm, no accepted mutant, rates and times.
#include "ir/fpv/fpv.h"

#include "ir/lang/lang.h"
#include "ir/parser.h"
#include "ir/support/check.h"
#include "schedule/schedule.h"
#include "search/space/space.h"
#include "search/tune/equality.h"
#include "tests/bench/schedule/dot_fraction.h"
#include "tests/bench/schedule/rows.h"
#include "tests/property/fpv_runs.h"
#include "tests/support/gpu_programs.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <sstream>

namespace prunerc::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void print_counts(const std::map<std::string, int>& counts) {
  for (const auto& [name, count] : counts) std::printf("  %7d  %s\n", count, name.c_str());
}

// Operators at sizes that are tuned, of all kinds.
struct Case {
  const char* file;
  const char* op;
  const char* bindings;
};
constexpr Case kCases[] = {
    {"std/gemm.prn", "gemm_nn", "M=512 N=512 K=512"},
    {"std/gemm.prn", "gemm_bias_relu", "M=128 N=768 K=3072"},
    {"std/gemm.prn", "gemm_f16_bias_gelu", "M=256 N=256 K=512"},
    {"std/gemm.prn", "batch_matmul_nt", "B=8 M=256 N=256 K=64"},
    {"std/conv.prn", "conv2d_bias_relu", ""},
    {"std/conv.prn", "depthwise_conv2d", "C=96 H=112 W=112 S=2"},
    {"std/norm.prn", "softmax", "M=1536 N=128"},
    {"std/norm.prn", "layer_norm", "M=128 N=768"},
    {"std/attention.prn", "attention", ""},
    {"std/quantized.prn", "qgemm", ""},
    {"std/pool.prn", "max_pool2d", ""},
    {"std/reduce.prn", "row_argmax", ""},
};

// The same with the schedules of tests/golden/gpu, which fit any shape.
struct GpuCase {
  const char* trace;
  Case op;
};
constexpr GpuCase kGpuCases[] = {
    {"matmul", {"std/gemm.prn", "gemm_nn", "M=512 N=500 K=512"}},
    {"matmul_bias_relu", {"std/gemm.prn", "gemm_bias_relu", "M=128 N=768 K=3072"}},
    {"batch_matmul", {"std/gemm.prn", "batch_matmul", "B=8 M=250 N=256 K=64"}},
    {"conv2d_nhwc", {"std/conv.prn", "conv2d_nhwc", ""}},
    {"depthwise_conv2d", {"std/conv.prn", "depthwise_conv2d", "C=96 H=111 W=111"}},
    {"max_pool2d", {"std/pool.prn", "max_pool2d", ""}},
    {"softmax", {"std/norm.prn", "softmax", "M=1536 N=127"}},
    {"layer_norm", {"std/norm.prn", "layer_norm", "M=128 N=768"}},
    {"row_sum", {"std/reduce.prn", "row_sum", "M=1024 N=1000"}},
    {"row_argmax", {"std/reduce.prn", "row_argmax", ""}},
    {"silu_mul", {"std/elementwise.prn", "silu_mul", "M=1024 N=1023"}},
    {"transpose", {"std/elementwise.prn", "transpose2d", "M=1000 N=1024"}},
};

ir::Program compile_case(const Case& c) {
  lang::CompileInput input;
  input.file_name = c.file;
  input.text = *lang::import_std(c.file);
  input.op = c.op;
  input.import = lang::import_std;
  std::stringstream words(c.bindings);
  std::string word;
  while (words >> word) {
    const std::size_t equals = word.find('=');
    input.bindings[word.substr(0, equals)] = word.substr(equals + 1);
  }
  lang::LangResult compiled = lang::compile(input);
  PRUNERC_CHECK(compiled.program.has_value(), "the operator compiles");
  return *compiled.program;
}

constexpr const char* kTwinProduct = R"(
program p(A: f32[48, 64], B: f32[64, 96]) -> (C: f32[48, 96]) {
  for i0 in 6 { for j0 in 3 { for k in 64 { for i1 in 8 { for j1 in 32 vectorized {
    block "C" [vi: S(48) = i0*8 + i1, vj: S(96) = j0*32 + j1, vk: R(64) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk]*B[vk, vj]
  } } } } } }
})";

double percentile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

struct TwinTally {
  std::vector<double> ms;
  std::map<std::string, int> outcomes;

  void report(const char* name, TwinTally* all) const {
    std::printf("  %-20s %3zu candidates, median %.1f ms, most %.1f ms;", name, ms.size(),
                percentile(ms, 0.5), percentile(ms, 1));
    for (const auto& [outcome, count] : outcomes) {
      std::printf(" %d %s", count, outcome.c_str());
      all->outcomes[outcome] += count;
    }
    std::printf("\n");
    all->ms.insert(all->ms.end(), ms.begin(), ms.end());
  }
};

// As search does before it builds a candidate.
void check_twin(const char* name, const ir::Program& base, const schedule::Trace& trace,
                TwinTally* tally) {
  search::Task task;
  task.base = base;
  const auto start = Clock::now();
  const ir::FpvVerdict verdict =
      search::check_on_twin(task, trace, search::kDraftLog2Error, 1).verdict;
  tally->ms.push_back(1e3 * seconds_since(start));
  ++tally->outcomes[std::string(to_string(verdict.kind))];
  if (!verdict.ok()) std::printf("%s: %s\n", name, to_string(verdict).c_str());
}

// Schedules written by hand, each once.
void check_gpu_twins(TwinTally* all) {
  const TracedProgram matmul = gpu_matmul();
  TwinTally first;
  check_twin("gpu_matmul", matmul.program, matmul.trace, &first);
  first.report("gpu_matmul", all);
  const Result<ir::Target> target = ir::target_from_string("cpu:znver4");
  PRUNERC_CHECK(target.ok(), "the target is known");
  for (const GpuCase& c : kGpuCases) {
    // A task's ids are those of the schedules.
    const search::Task task = search::make_task(c.op.op, compile_case(c.op), *target);
    const std::string name = std::string("gpu ") + c.trace;
    TwinTally own;
    check_twin(name.c_str(), task.base, testing::gpu_trace(c.trace), &own);
    own.report(name.c_str(), all);
  }
}

}  // namespace

std::vector<Row> dot_rows() {
  const Result<std::vector<DotRow>> found = dot_fraction_rows();
  if (!found.ok()) return {{"dot", 0, "", 1.0, found.error().message(), false}};
  std::vector<Row> rows;
  for (const DotRow& row : *found) {
    rows.push_back({row.name, row.fraction, "of peak", row.goal, "", false});
  }
  return rows;
}

std::vector<Row> trace_rows(const Options& options) {
  const testing::TraceTally tally = testing::run_traces(options.traces, options.seed);
  std::printf("traces with each primitive:\n");
  print_counts(tally.primitives);
  std::printf("%d of %d traces have a split that leaves a tail; %zu operators; %.2f ms a check\n",
              tally.non_dividing, tally.traces, tally.operators.size(),
              1e3 * tally.check_s / std::max(1, tally.traces));
  for (const std::string& alarm : tally.alarms) std::printf("ALARM %s\n", alarm.c_str());
  const double part = static_cast<double>(tally.non_dividing) / std::max(1, tally.traces);
  // The goal of 200 is for 10,000 traces.
  const double wanted = 0.02 * tally.traces;
  const auto rarest =
      std::min_element(tally.primitives.begin(), tally.primitives.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return {{"legal_traces", static_cast<double>(tally.traces), "traces", {}, "", false},
          {"false_alarms", static_cast<double>(tally.false_alarms), "traces", 0.0, "", true},
          {"strays_missed", static_cast<double>(tally.strays_missed), "traces", 0.0,
           std::to_string(tally.strays) +
               " more traces where threads take others' registers; data decides in " +
               std::to_string(tally.strays_unknown),
           true},
          {"traces_unsupported", static_cast<double>(tally.unsupported), "traces", 0.0, "", true},
          {"trace_operators", static_cast<double>(tally.operators.size()), "operators", 40.0, "",
           false},
          {"traces_of_rarest_primitive", static_cast<double>(rarest->second), "traces", wanted,
           rarest->first, false},
          {"traces_with_tail", part, "fraction", 0.3, "", false}};
}

std::vector<Row> mutant_rows(const Options& options) {
  const testing::MutantTally tally = testing::run_mutants(options.mutants, options.seed);
  std::printf("mutants by kind:\n");
  print_counts(tally.kinds);
  std::printf(
      "%d counted (%d of them unsupported, which is no acceptance); %d not told apart by the "
      "interpreter, %d of them rejected; the others:\n",
      tally.counted, tally.unsupported, tally.same, tally.same_caught);
  for (const std::string& text : tally.same_texts) std::printf("  %s\n", text.c_str());
  for (const std::string& text : tally.accepted_texts) std::printf("ACCEPTED %s\n", text.c_str());
  return {{"mutants", static_cast<double>(tally.counted), "mutants", {}, "", false},
          {"mutants_accepted", static_cast<double>(tally.accepted), "mutants", 0.0, "", true}};
}

std::vector<Row> rate_rows(const Options& options) {
  const Result<ir::Program> program = ir::parse(kTwinProduct);
  PRUNERC_CHECK(program.ok(), "the text parses");
  constexpr double kProducts = 48.0 * 64 * 96;
  double best = 0;
  for (int round = 0; round < 15; ++round) {
    ir::FpvOptions check;
    check.seed = options.seed + static_cast<uint64_t>(round);
    const auto start = Clock::now();
    const ir::FpvVerdict verdict = ir::check_equivalent(*program, *program, check);
    // Two programs, two fields each.
    const double rate = 4 * kProducts * verdict.tests / seconds_since(start);
    PRUNERC_CHECK(verdict.ok(), "a program equals itself");
    best = std::max(best, rate / 2);
  }
  return {{"fpv_mac_per_s", best, "1/s", 5e7, "multiply-adds a core, each in two fields", false}};
}

std::vector<Row> twin_rows(const Options& options) {
  TwinTally all;
  for (const Case& c : kCases) {
    const Result<ir::Target> target = ir::target_from_string("cpu:znver4");
    PRUNERC_CHECK(target.ok(), "the target is known");
    const search::Task task = search::make_task(c.op, compile_case(c), *target);
    const Result<search::SearchSpace> space = search::make_space(task);
    PRUNERC_CHECK(space.ok(), "the operator has a search space");
    Rng rng(options.seed, static_cast<uint64_t>(&c - kCases));
    TwinTally own;
    for (int i = 0; i < options.candidates; ++i) {
      const auto sketch = static_cast<int>(rng.below(space->sketches.size()));
      const search::Sketch& s = space->sketches[static_cast<std::size_t>(sketch)];
      std::vector<schedule::Decision> decisions;
      for (const schedule::DecisionSpace& d : s.spaces) {
        decisions.push_back(schedule::random_decision(d, rng));
      }
      const Result<search::Candidate> candidate =
          search::instantiate(task, *space, sketch, decisions);
      if (!candidate.ok()) continue;
      check_twin(c.op, task.base, candidate->trace, &own);
    }
    own.report(c.op, &all);
  }
  check_gpu_twins(&all);
  const int others = static_cast<int>(all.ms.size()) - all.outcomes["equal"];
  return {{"fpv_twin_median_ms", percentile(all.ms, 0.5), "ms", 20.0, "", true},
          {"fpv_twin_p95_ms", percentile(all.ms, 0.95), "ms", 200.0, "", true},
          {"fpv_twins", static_cast<double>(all.ms.size()), "candidates", {}, "", false},
          {"fpv_twins_not_equal", static_cast<double>(others), "candidates", 0.0, "", true}};
}

}  // namespace prunerc::bench

#include "ir/interp/tensor.h"
#include "search/algebra/derive.h"
#include "tests/bench/algebra/groups.h"
#include "tests/bench/algebra/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>

namespace prunerc::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTurns = 31;
constexpr double kSampleSeconds = 2e-3;  // one sample runs a kernel so long

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A kernel with arrays of its own.
struct Bound {
  Kernel kernel;
  std::vector<std::vector<float>> arrays;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  int repeats = 1;
  std::vector<double> samples;  // seconds a run

  double sample() {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < repeats; ++i) {
      PRUNERC_CHECK(kernel.run(inputs, outputs).ok(), "a tuned kernel runs");
    }
    return seconds_since(start) / repeats;
  }
};

void* aligned(std::vector<float>& array, int64_t size) {
  array.resize(static_cast<std::size_t>(size) + 16);
  const auto at = reinterpret_cast<std::uintptr_t>(array.data());
  return array.data() + ((64 - at % 64) % 64) / sizeof(float);
}

Bound bind(const Operator& op, Kernel kernel) {
  Bound bound{std::move(kernel), {}, {}, {}, 1, {}};
  std::mt19937 rng(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<const void*> constants;
  for (const ir::BufferId id : op.program.params()) {
    const ir::Buffer& buffer = op.program.buffer(id);
    int64_t size = 1;
    for (const int64_t extent : ir::shape_of(buffer)) size *= extent;
    bound.arrays.emplace_back();
    auto* data = static_cast<float*>(aligned(bound.arrays.back(), size));
    if (buffer.role == ir::BufferRole::kOutput) {
      bound.outputs.push_back(data);
      continue;
    }
    for (int64_t i = 0; i < size; ++i) data[i] = uniform(rng);
    (buffer.is_const ? constants : bound.inputs).push_back(data);
  }
  if (!constants.empty()) {
    PRUNERC_CHECK(bound.kernel.prepare(constants).ok(), "constants are prepared");
  }
  bound.sample();
  bound.repeats = std::max(1, static_cast<int>(kSampleSeconds / std::max(1e-7, bound.sample())));
  return bound;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<Row> rows_of(const AlgebraCase& c, Session& session) {
  const Operator op = load_case(c);
  const Result<search::algebra::DeriveReport> report =
      search::algebra::derive(op.program, session.target(), {.numerics = c.numerics});
  if (!report.ok() || report->forms.empty()) {
    return {{.name = "speed/" + c.name, .unit = "x", .goal = c.speed_aim, .note = "no form"}};
  }
  std::vector<Operator> ops = {op};
  const search::algebra::Derived& form = report->forms[0];
  ops.push_back(op);
  ops[1].name += "_derived";
  ops[1].program = form.program;
  std::vector<Bound> bound;
  for (const Operator& each : ops) {
    fmt::print(stderr, "algebra: tuning {}\n", each.name);
    search::TuneOptions options;
    options.trials = kSpeedTrials;
    options.seed = kSpeedSeed;
    const Result<search::TuneReport> tuned = session.tune({&each, 1}, options);
    Result<Kernel> kernel = session.kernel(each);
    if (!tuned.ok() || !kernel.ok()) {
      return {{.name = "speed/" + c.name, .unit = "x", .goal = c.speed_aim, .note = "not tuned"}};
    }
    bound.push_back(bind(each, std::move(*kernel)));
  }
  std::vector<double> ratios;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (Bound& b : bound) b.samples.push_back(b.sample());
    ratios.push_back(bound[0].samples.back() / bound[1].samples.back());
  }
  std::sort(ratios.begin(), ratios.end());
  return {{.name = "speed/" + c.name,
           .value = median(bound[0].samples) / median(bound[1].samples),
           .unit = "x",
           .goal = c.speed_aim,
           .note = fmt::format(
               "{:.1f} us as written, {:.1f} us derived ({:.2f}-{:.2f} in {} turns); "
               "limits {:.1f} and {:.1f} us; {}",
               median(bound[0].samples) * 1e6, median(bound[1].samples) * 1e6,
               ratios[ratios.size() / 10], ratios[ratios.size() - 1 - ratios.size() / 10], kTurns,
               report->spec_limit_ns / 1e3, form.limit_ns / 1e3, form.recipe)}};
}

}  // namespace

std::vector<Row> speed_rows() {
  SessionOptions options;
  options.database = ":memory:";
  Result<Session> session = Session::open(options);
  PRUNERC_CHECK(session.ok(), "this machine can be measured");
  std::vector<Row> rows;
  for (const AlgebraCase& c : algebra_cases()) {
    if (c.speed_aim == 0) continue;
    for (Row& row : rows_of(c, *session)) {
      fmt::print(stderr, "{}: {:.2f} x; {}\n", row.name, row.value, row.note);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace prunerc::bench

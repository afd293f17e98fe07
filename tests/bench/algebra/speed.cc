#include "search/algebra/derive.h"
#include "tests/bench/algebra/groups.h"
#include "tests/bench/algebra/programs.h"
#include "tests/bench/algebra/timed_kernel.h"

#include <fmt/format.h>

#include <cstdio>

namespace prunerc::bench {
namespace {

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
  std::vector<TimedKernel> kernels;
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
    kernels.emplace_back(each.program, std::move(*kernel));
  }
  const InTurns times = time_in_turns(kernels[0], kernels[1]);
  if (times.apart > kMostApart) {
    return {{.name = "speed/" + c.name,
             .unit = "x",
             .goal = c.speed_aim,
             .note = fmt::format("wrong values: {:.2g} of the largest apart", times.apart)}};
  }
  return {{.name = "speed/" + c.name,
           .value = times.ratio,
           .unit = "x",
           .goal = c.speed_aim,
           .note = fmt::format("{:.1f} us as written, {:.1f} us derived ({}); limits {:.1f} and "
                               "{:.1f} us; {}",
                               times.first_us, times.second_us, times.spread,
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

#include "tests/bench/algebra/groups.h"
#include "tests/bench/algebra/timed_kernel.h"
#include "tools/driver/algebra.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace prunerc::bench {
namespace {

constexpr const char* kNetworks[] = {"resnet50", "bert_base"};
constexpr double kNeverWorse = 0.98;

Session open_session() {
  SessionOptions options;
  options.database = ":memory:";
  return Session::open(options).value();
}

// The kernel that a search leaves, and what its algebra did.
struct Tuned {
  Kernel kernel;
  AlgebraOutcome outcome;
};
Tuned tune(const Operator& op, AlgebraMode mode, uint64_t seed) {
  Session session = open_session();
  search::TuneOptions options;
  options.trials = kSpeedTrials;
  options.seed = seed;
  AlgebraOptions algebra;
  algebra.mode = mode;
  AlgebraTuneReport report = session.tune({&op, 1}, options, algebra).value();
  return {session.kernel(op).value(), std::move(report.outcomes[0])};
}

// Whether `auto` has other programs of it to tune.
bool has_alternatives(const Operator& op) {
  Session session = open_session();
  const auto report = search::algebra::derive(op.program, session.target(), {});
  if (!report.ok()) return false;
  return std::any_of(report->forms.begin(), report->forms.end(), [&](const auto& form) {
    return form.limit_ns <= kWorthwhile * report->spec_limit_ns;
  });
}

Row row_of(const std::string& name, const Operator& op) {
  std::vector<double> ratios;
  std::string note;
  for (const uint64_t seed : seeds_from(kSpeedSeed, kNetworkSeeds)) {
    Tuned off = tune(op, AlgebraMode::kOff, seed), both = tune(op, AlgebraMode::kAuto, seed);
    TimedKernel first(op.program, std::move(off.kernel));
    TimedKernel second(op.program, std::move(both.kernel));
    const InTurns times = time_in_turns(first, second);
    const auto& link = both.outcome.link;
    const bool is_wrong = times.apart > kMostApart;
    ratios.push_back(is_wrong ? 0 : times.ratio);
    note +=
        fmt::format("{}seed {}: {:.1f} us off, {:.1f} us auto ({}){}, {}", note.empty() ? "" : "; ",
                    seed, times.first_us, times.second_us, times.spread,
                    is_wrong ? ", wrong values" : "", link ? link->recipe : "kept as written");
  }
  std::sort(ratios.begin(), ratios.end());
  return {.name = name,
          .value = ratios.front() > 0 ? ratios[ratios.size() / 2] : 0,
          .unit = "x",
          .goal = kNeverWorse,
          .note = fmt::format("{:.3f} to {:.3f} by seed; {}", ratios.front(), ratios.back(), note)};
}

}  // namespace

std::vector<Row> network_rows() {
  std::vector<Row> rows;
  for (const char* const network : kNetworks) {
    OperatorRequest request;
    request.file = fmt::format("tools/std/nets/{}.prn", network);
    const std::vector<Operator> ops = load_operators(request).value();
    double log_sum = 0;
    int num_changed = 0;
    for (const Operator& op : ops) {
      // Without another program it is the same search.
      if (!has_alternatives(op)) continue;
      rows.push_back(row_of(fmt::format("auto/{}/{}", network, op.name), op));
      fmt::print(stderr, "{}: {:.3f}; {}\n", rows.back().name, rows.back().value, rows.back().note);
      log_sum += std::log(rows.back().value);
      ++num_changed;
    }
    rows.push_back({.name = fmt::format("auto_geomean/{}", network),
                    .value = std::exp(log_sum / static_cast<double>(ops.size())),
                    .unit = "x",
                    .goal = 1.0,
                    .note = fmt::format("{} operators, {} of them with another program to tune",
                                        ops.size(), num_changed)});
  }
  return rows;
}

}  // namespace prunerc::bench

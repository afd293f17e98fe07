#include "tests/bench/algebra/prune.h"

#include "search/algebra/bank.h"
#include "search/algebra/form_filter.h"
#include "search/algebra/normal_form.h"
#include "search/algebra/term.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <optional>
#include <string>

namespace prunerc::bench {
namespace {

using namespace search::algebra;  // NOLINT: a benchmark

// Memory of a search without the filter: its queues hold what it will not live to evaluate.
constexpr std::size_t kUnfilteredBytes = std::size_t{2} << 30;
// What the filter is to spare, how long it may take, and the whole search.
constexpr double kFewerAtSeven = 100;
constexpr double kFilterNs = 1000;
constexpr double kSecondsAtEleven = 5;

// Y[t, n] = sum[j] X[t, j] / sqrt(sum[k] X[t, k]^2 / K + eps) * gamma[j] * W[j, n], as a program that is
// lifted has it: the axis of the mean is not that of the product.
Spec rmsnorm_linear() {
  constexpr int64_t kRows = 16, kInner = 4096, kOuter = 6144;
  Spec spec;
  spec.axes = {{"t", kRows}, {"k", kInner}, {"j", kInner}, {"n", kOuter}};
  TermGraph& g = spec.graph;
  const auto load = [&](int buffer, std::initializer_list<AxisId> at) {
    std::vector<Subscript> index;
    for (const AxisId a : at) index.push_back(plain_subscript(a));
    return g.load(ir::BufferId(buffer), index, ir::DType::kF32);
  };
  const TermId square = g.mul(load(0, {0, 1}), load(0, {0, 1}));
  const TermId sum = g.reduce(ir::ExprKind::kAdd, axis_bit(1), square);
  const TermId mean = g.div(sum, g.constant(static_cast<double>(kInner), ir::DType::kF32));
  const TermId root =
      g.call(ir::Intrinsic::kSqrt, g.add(mean, g.constant(0x1p-20, ir::DType::kF32)));
  const TermId norm = g.mul(g.div(load(0, {0, 2}), root), load(1, {2}));
  const TermId out = g.reduce(ir::ExprKind::kAdd, axis_bit(2), g.mul(norm, load(2, {2, 3})));
  spec.outputs = {{ir::BufferId(3), {plain_subscript(0), plain_subscript(3)}, out}};
  return spec;
}

BankResult search_at(int max_ops, BankFilter filter, double seconds) {
  const Spec spec = rmsnorm_linear();
  TermGraph graph = spec.graph;
  BankOptions options{.max_ops = max_ops, .seconds = seconds, .filter = filter, .seed = kPruneSeed};
  if (filter == BankFilter::kNone) {
    options.max_bytes = kUnfilteredBytes;
    options.capacity = 1 << 24;
  }
  return enumerate(spec, graph, options);
}

void add_counts(const std::string& name, const std::string& suffix, const BankResult& r,
                std::vector<Row>* rows) {
  const std::string note = r.complete ? "" : "censored: time or memory ended it";
  const auto add = [&](const char* what, double value, const char* unit) {
    rows->push_back({.name = name + "/" + what + suffix,
                     .value = value,
                     .unit = unit,
                     .goal = std::nullopt,
                     .note = note});
  };
  add("tried", static_cast<double>(r.tried), "terms");
  add("too_large", static_cast<double>(r.too_large), "terms");
  add("filtered", static_cast<double>(r.filtered), "terms");
  add("beyond", static_cast<double>(r.beyond), "terms");
  add("evaluated", static_cast<double>(r.evaluated), "terms");
  add("kept", static_cast<double>(r.kept), "terms");
  add("forms", static_cast<double>(r.forms.size()), "forms");
  add("seconds", r.seconds, "s");
}

// All pairs of subterms as products, again and again.
Row filter_row() {
  using Clock = std::chrono::steady_clock;
  constexpr int kCalls = 2'000'000;
  const Spec spec = rmsnorm_linear();
  const TermId out = spec.outputs[0].value;
  NormalForms forms;
  FormFilter filter(forms, spec.graph, std::span(&out, 1));
  std::vector<HashedForm> parts;
  for (const TermId id : reachable(spec.graph, std::span(&out, 1))) {
    parts.push_back(forms.hashed(forms.of(spec.graph, id)));
  }
  const auto start = Clock::now();
  int64_t num_passed = 0;
  int calls = 0;
  while (calls < kCalls) {
    for (const HashedForm& a : parts) {
      for (const HashedForm& b : parts) {
        num_passed += filter.passes(product(a, b)) ? 1 : 0;
        num_passed += filter.passes(sum(a, b)) ? 1 : 0;
        calls += 2;
      }
    }
  }
  const std::chrono::duration<double, std::nano> spent = Clock::now() - start;
  return {.name = "prune/filter_ns",
          .value = spent.count() / calls,
          .unit = "ns",
          .goal = kFilterNs,
          .note = fmt::format("{:.1f} % pass", 100.0 * static_cast<double>(num_passed) / calls),
          .at_most = true};
}

}  // namespace

std::vector<Row> prune_rows(const PruneOptions& options) {
  std::vector<Row> rows = {filter_row()};
  bool is_hopeless = false;  // a smaller search without the filter came to no end
  int64_t unfiltered = 0;    // a larger search evaluates what a smaller one does
  for (const int max_ops : {5, 6, 7, 9, 11}) {
    if (max_ops > options.max_ops) continue;
    const std::string name = fmt::format("prune/{}", max_ops);
    const BankResult with = search_at(max_ops, BankFilter::kForms, options.seconds);
    add_counts(name, "", with, &rows);
    if (max_ops == 11) {
      rows.back().goal = kSecondsAtEleven;
      rows.back().at_most = true;
    }
    if (is_hopeless) continue;
    const BankResult without = search_at(max_ops, BankFilter::kNone, options.seconds);
    add_counts(name, "/unfiltered", without, &rows);
    unfiltered = std::max(unfiltered, without.evaluated);
    rows.push_back({.name = name + "/fewer",
                    .value = static_cast<double>(unfiltered) /
                             static_cast<double>(std::max<int64_t>(with.evaluated, 1)),
                    .unit = "times",
                    .goal = max_ops == 7 ? std::optional(kFewerAtSeven) : std::nullopt,
                    .note = without.complete ? "" : "at least: censored"});
    is_hopeless = !without.complete && max_ops >= 7;
  }
  return rows;
}

}  // namespace prunerc::bench

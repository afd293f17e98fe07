// The bank finds other forms of an operator, cheapest first, and none that compute something else.
#include "search/algebra/bank.h"
#include "search/algebra/fingerprint.h"
#include "tests/search/algebra_terms.h"
#include "tests/support/check.h"

#include <algorithm>
#include <string>
#include <vector>

namespace prunerc {
namespace {

using namespace search::algebra;  // NOLINT: a test
using namespace testing;          // NOLINT: a test
using ir::ExprKind;

constexpr double kAmple = 120;  // seconds: nothing here takes so long, sanitizers included

struct Found {
  Terms terms;  // with the forms
  BankResult result;
  bool has(TermId id) const {
    return std::any_of(result.forms.begin(), result.forms.end(),
                       [&](const BankForm& f) { return f.outputs[0] == id; });
  }
};

Found find(const Terms& terms, std::initializer_list<TermId> outputs, BankOptions options) {
  Found out{terms, {}};
  options.seconds = kAmple;
  out.result = enumerate(terms.spec(outputs), out.terms.g, options);
  return out;
}

// All forms have the prints of the spec under another choice of fields and inputs.
void check_values(const Found& found, const std::vector<TermId>& outputs) {
  Fingerprints prints(found.terms.axes, 1234);
  for (const BankForm& form : found.result.forms) {
    REQUIRE(form.outputs.size() == outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      INFO(found.terms.text(form.outputs[i]));
      const auto wanted = prints.of(found.terms.g, outputs[i]);
      const auto got = prints.of(found.terms.g, form.outputs[i]);
      REQUIRE(got);
      CHECK(Fingerprints::print(*got) == Fingerprints::print(*wanted));
    }
  }
}

// Its sums and products with their args in a fixed order, as text.
std::string reorders(const Terms& terms, TermId id) {
  const Term& t = terms.g[id];
  if (t.args.empty()) return terms.text(id);
  std::vector<std::string> args;
  for (const TermId arg : t.args) args.push_back(reorders(terms, arg));
  const bool commutes =
      t.op == TermOp::kBinary && t.kind != ExprKind::kSub && t.kind != ExprKind::kDiv;
  if (commutes) std::sort(args.begin(), args.end());
  std::string out = std::to_string(static_cast<int>(t.op)) + to_string(t.kind).data() +
                    std::to_string(t.bound) + "(";
  for (const std::string& arg : args) out += arg + ",";
  return out + ")";
}

TEST_CASE("a variance passes although other forms of it come first") {
  Terms t;
  const AxisId i = t.axis("i", 64), k = t.axis("k", 1024);
  const TermId x = t.load(0, {i, k}), n = t.number(1024);
  const TermId centred = t.g.sub(x, t.g.div(t.sum(k, x), n));
  const TermId variance = t.g.div(t.sum(k, t.g.mul(centred, centred)), n);
  const TermId y = t.g.div(centred, t.sqrt(t.g.add(variance, t.number(0.0009765625))));
  const Found found = find(t, {y}, {.max_ops = 9});
  CHECK(found.result.reached);
  CHECK(found.result.complete);
  check_values(found, {y});
}

TEST_CASE("the cheapest form of a badly ordered product comes first") {
  Terms t;
  const AxisId i = t.axis("i", 16), k = t.axis("k", 4096), r = t.axis("r", 8),
               n = t.axis("n", 4096);
  const TermId x = t.load(0, {i, k}), a = t.load(1, {k, r}), b = t.load(2, {r, n});
  const TermId merged = t.sum(k, t.g.mul(x, t.sum(r, t.g.mul(a, b))));
  const Found found = find(t, {merged}, {.max_ops = 4});
  REQUIRE_FALSE(found.result.forms.empty());
  CHECK(found.result.complete);
  const BankForm& best = found.result.forms.front();
  INFO(found.terms.text(best.outputs[0]));
  CHECK(best.flops == 2.0 * (16 * 4096 * 8 + 16 * 8 * 4096));
  check_values(found, {merged});
}

TEST_CASE("the scale of RMSNorm moves behind the product") {
  RmsNormLinear t(16, 4096, 1024);  // fewer divisions there
  const Found found = find(t, {t.out}, {.max_ops = 8});
  REQUIRE_FALSE(found.result.forms.empty());
  CHECK(found.result.complete);
  check_values(found, {t.out});
  const Terms& f = found.terms;
  const Term& root = f.g[found.result.forms.front().outputs[0]];
  CHECK(root.kind == ExprKind::kDiv);
  CHECK(f.g[root.args[0]].op == TermOp::kReduce);
}

TEST_CASE("attention divides after the product with the values") {
  Attention t;
  const TermId weights = t.exp(t.g.sub(t.score, t.largest));
  const TermId hoisted =
      t.g.div(t.sum(t.k, t.g.mul(t.load(2, {t.k, t.e}), weights)), t.sum(t.k, weights));
  // More operations hide nothing.
  for (const int max_ops : {7, 8, 11}) {
    const Found found = find(t, {t.shifted_out}, {.max_ops = max_ops});
    check_values(found, {t.shifted_out});
    CHECK(std::any_of(found.result.forms.begin(), found.result.forms.end(), [&](const BankForm& f) {
      return reorders(found.terms, f.outputs[0]) == reorders(t, hoisted);
    }));
  }
}

TEST_CASE("a sum of products with a common factor becomes one product") {
  Terms t;
  const AxisId i = t.axis("i", 64), k = t.axis("k", 64), n = t.axis("n", 64);
  const TermId x = t.load(0, {i, k}), w = t.load(1, {k, n}), v = t.load(2, {k, n});
  const TermId spec = t.g.add(t.sum(k, t.g.mul(x, w)), t.sum(k, t.g.mul(x, v)));
  const Found found = find(t, {spec}, {.max_ops = 3});
  Found graph = found;
  const TermId merged = graph.terms.sum(k, graph.terms.g.mul(x, graph.terms.g.add(w, v)));
  REQUIRE(found.result.forms.size() == 1);
  CHECK(found.terms.text(found.result.forms[0].outputs[0]) == graph.terms.text(merged));
}

TEST_CASE("several outputs share what they have in common") {
  Terms t;
  const AxisId i = t.axis("i", 32), k = t.axis("k", 48);
  const TermId x = t.load(0, {i, k});
  const TermId mean = t.g.div(t.sum(k, x), t.number(48));
  const TermId centred = t.g.sub(x, mean);
  const TermId variance = t.g.div(t.sum(k, t.g.mul(centred, centred)), t.number(48));
  const Found found = find(t, {mean, variance}, {.max_ops = 6});
  REQUIRE_FALSE(found.result.forms.empty());
  check_values(found, {mean, variance});
}

TEST_CASE("a mask stays where it is") {
  Terms t;
  const AxisId i = t.axis("i", 8), k = t.axis("k", 8), n = t.axis("n", 8);
  Condition causal;
  causal.value = plain_subscript(k) + plain_subscript(i) * -1;
  const TermId x = t.g.select(t.g.mask({causal}), t.load(0, {i, k}), t.number(0));
  const TermId y = t.g.div(t.sum(k, t.g.mul(x, t.load(1, {k, n}))), t.load(2, {i}));
  const Found found = find(t, {y}, {.max_ops = 4});
  CHECK_FALSE(found.result.forms.empty());
  check_values(found, {y});
}

TEST_CASE("nothing is found where there is only one form") {
  Terms t;
  const AxisId i = t.axis("i", 8), k = t.axis("k", 16);
  const TermId x = t.load(0, {i, k});
  const TermId positive = t.g.binary(ExprKind::kMax, x, t.number(0));
  CHECK(find(t, {t.sum(k, positive)}, {.max_ops = 5}).result.forms.empty());
  const TermId narrow = t.g.cast(ir::DType::kF16, t.sum(k, x));
  CHECK(find(t, {narrow}, {.max_ops = 5}).result.forms.empty());
}

TEST_CASE("no form goes through a type that the spec does not go through there") {
  Terms t;
  const AxisId i = t.axis("i", 8), k = t.axis("k", 16), n = t.axis("n", 8);
  const TermId x = t.load(0, {i, k}), w = t.load(1, {k, n}), s = t.load(2, {i});
  const TermId stored = t.g.cast(ir::DType::kF16, t.g.div(x, s));
  const TermId y = t.sum(k, t.g.mul(t.g.cast(ir::DType::kF32, stored), w));
  const Found found = find(t, {y}, {.max_ops = 6});
  for (const BankForm& form : found.result.forms) {
    const std::vector<TermId> all = reachable(found.terms.g, form.outputs);
    CHECK(std::count(all.begin(), all.end(), stored) == 1);
  }
}

TEST_CASE("no term is larger than those of the spec") {
  RmsNormLinear t(16, 64, 32);
  const Found found = find(t, {t.out}, {.max_ops = 8});
  CHECK(found.result.too_large > 0);
  for (const BankForm& form : found.result.forms) {
    for (const TermId id : reachable(found.terms.g, form.outputs)) {
      const Term& term = found.terms.g[id];
      const bool is_inner = term.op == TermOp::kBinary && term.kind == ExprKind::kMul;
      INFO(found.terms.text(id));
      CHECK((is_inner || extent_of(found.terms.axes, term.free) <= 64 * 32));
    }
  }
}

TEST_CASE("the filter finds what no filter finds") {
  const auto best = [](const Terms& t, TermId out, BankFilter filter) {
    const Found found = find(t, {out}, {.max_ops = 3, .filter = filter});
    REQUIRE(found.result.complete);
    return found.result.forms.empty() ? -1.0 : found.result.forms.front().flops;
  };
  Terms t;
  const AxisId i = t.axis("i", 16), k = t.axis("k", 48), r = t.axis("r", 8);
  const TermId x = t.load(0, {i, k}), a = t.load(1, {k, r}), s = t.load(2, {i});
  for (const TermId out : {t.sum(k, t.g.mul(t.g.div(x, s), a)), t.g.div(t.sum(k, x), s),
                           t.g.mul(t.g.add(x, s), t.g.add(x, s))}) {
    INFO(t.text(out));
    CHECK(best(t, out, BankFilter::kForms) == best(t, out, BankFilter::kNone));
  }
}

TEST_CASE("the filter leaves few terms to evaluate") {
  RmsNormLinear t;
  const Found with = find(t, {t.out}, {.max_ops = 4});
  const Found without = find(t, {t.out}, {.max_ops = 4, .filter = BankFilter::kNone});
  CHECK(with.result.evaluated * 20 < without.result.evaluated);
  CHECK(without.result.filtered == 0);
  CHECK(with.result.beyond == 0);
}

TEST_CASE("the same search gives the same forms") {
  Attention t;
  const Found a = find(t, {t.raw_out}, {.max_ops = 6});
  const Found b = find(t, {t.raw_out}, {.max_ops = 6});
  REQUIRE(a.result.forms.size() == b.result.forms.size());
  for (std::size_t i = 0; i < a.result.forms.size(); ++i) {
    CHECK(a.result.forms[i].outputs == b.result.forms[i].outputs);
  }
  CHECK(a.result.evaluated == b.result.evaluated);
  CHECK(std::is_sorted(a.result.forms.begin(), a.result.forms.end(),
                       [](const BankForm& x, const BankForm& y) {
                         return x.flops + 0.25 * x.bytes < y.flops + 0.25 * y.bytes;
                       }));
}

TEST_CASE("a search that is out of time, memory or room says so") {
  RmsNormLinear t;
  Terms copy = t;
  BankOptions options{.max_ops = 11, .seconds = 0, .filter = BankFilter::kNone};
  CHECK_FALSE(enumerate(t.spec({t.out}), copy.g, options).complete);
  options = {.max_ops = 6, .seconds = kAmple, .max_bytes = 4096, .filter = BankFilter::kNone};
  CHECK_FALSE(enumerate(t.spec({t.out}), copy.g, options).complete);
  const Found full = find(t, {t.out}, {.max_ops = 8, .capacity = 12});
  CHECK(full.result.dropped > 0);
  CHECK(full.result.kept <= 12);
}

TEST_CASE("an output without a value in finite fields has no forms") {
  Terms t;
  const AxisId i = t.axis("i", 8);
  const TermId x = t.load(0, {i});
  const TermId bad = t.g.div(x, t.g.sub(x, x));
  const Found found = find(t, {bad}, {.max_ops = 3});
  CHECK(found.result.forms.empty());
  CHECK(found.result.evaluated == 0);
}

}  // namespace
}  // namespace prunerc

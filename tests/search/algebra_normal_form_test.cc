// Abstract expressions: equal for what the laws make equal, and a filter that loses nothing.
#include "search/algebra/form_filter.h"
#include "search/algebra/normal_form.h"
#include "tests/search/algebra_terms.h"
#include "tests/support/check.h"

#include <set>
#include <string>
#include <vector>

namespace prunerc {
namespace {

using namespace search::algebra;  // NOLINT: a test
using namespace testing;          // NOLINT: a test
using ir::ExprKind;

bool same_form(const Terms& terms, TermId a, TermId b, FormOptions options = {}) {
  NormalForms forms(options);
  return forms.hash(forms.of(terms.g, a)) == forms.hash(forms.of(terms.g, b));
}

bool passes(const Terms& terms, TermId output, TermId term) {
  NormalForms forms;
  FormFilter filter(forms, terms.g, std::span(&output, 1));
  return filter.passes(forms.hashed(forms.of(terms.g, term)));
}

struct Five : Terms {
  AxisId i = axis("i", 6), k = axis("k", 8), l = axis("l", 5);
  TermId a = load(0, {i, k}), b = load(1, {k}), c = load(2, {i}), d = load(3, {k}),
         e = load(4, {i});
};

TEST_CASE("forms forget the order of sums and products") {
  Five t;
  CHECK(
      same_form(t, t.g.mul(t.a, t.g.add(t.b, t.d)), t.g.add(t.g.mul(t.d, t.a), t.g.mul(t.a, t.b))));
  CHECK(same_form(t, t.g.sub(t.a, t.g.sub(t.b, t.d)), t.g.sub(t.g.add(t.d, t.a), t.b)));
  CHECK(same_form(t, t.sum(t.k, t.g.mul(t.a, t.c)), t.g.mul(t.c, t.sum(t.k, t.a))));
  const TermId both = t.g.reduce(ExprKind::kAdd, axis_bit(t.i) | axis_bit(t.k), t.a);
  CHECK(same_form(t, t.sum(t.i, t.sum(t.k, t.a)), both));
}

TEST_CASE("forms merge divisions and exponentials") {
  Five t;
  CHECK(same_form(t, t.g.div(t.g.div(t.a, t.c), t.e), t.g.div(t.a, t.g.mul(t.c, t.e))));
  CHECK(
      same_form(t, t.g.add(t.g.div(t.a, t.c), t.g.div(t.b, t.c)), t.g.div(t.g.add(t.a, t.b), t.c)));
  CHECK(same_form(t, t.exp(t.g.add(t.a, t.c)), t.g.mul(t.exp(t.a), t.exp(t.c))));
  CHECK(same_form(t, t.exp(t.g.sub(t.a, t.c)), t.g.div(t.exp(t.a), t.exp(t.c))));
  // A common factor of a denominator, and one that is a sum itself.
  const TermId p = t.g.add(t.b, t.d), q = t.g.add(t.c, t.e);
  CHECK(same_form(t, t.g.div(t.a, t.g.add(t.g.mul(t.b, t.c), t.g.mul(t.b, t.e))),
                  t.g.div(t.g.div(t.a, t.b), q)));
  CHECK(same_form(t, t.g.div(t.g.div(t.a, p), q), t.g.div(t.a, t.g.mul(q, p))));
  CHECK(same_form(t, t.g.div(t.a, t.g.sub(t.b, t.d)),
                  t.g.sub(t.number(0), t.g.div(t.a, t.g.sub(t.d, t.b)))));
}

TEST_CASE("forms differ where no law says that they are equal") {
  Five t;
  CHECK_FALSE(same_form(t, t.g.mul(t.a, t.b), t.g.mul(t.a, t.d)));
  CHECK_FALSE(same_form(t, t.g.add(t.a, t.b), t.g.sub(t.a, t.b)));
  CHECK_FALSE(same_form(t, t.g.add(t.a, t.a), t.a));
  CHECK_FALSE(same_form(t, t.sum(t.k, t.a), t.sum(t.i, t.a)));
  CHECK_FALSE(same_form(t, t.g.div(t.a, t.b), t.g.mul(t.a, t.b)));
  CHECK_FALSE(same_form(t, t.exp(t.g.mul(t.a, t.b)), t.g.mul(t.exp(t.a), t.exp(t.b))));
  CHECK_FALSE(same_form(t, t.sqrt(t.a), t.exp(t.a)));
  CHECK_FALSE(same_form(t, t.max(t.k, t.a), t.a));
  // Nothing cancels: otherwise all would be a part of all.
  CHECK_FALSE(same_form(t, t.g.div(t.g.mul(t.a, t.b), t.b), t.a));
  CHECK_FALSE(same_form(t, t.g.sub(t.g.add(t.a, t.b), t.b), t.a));
}

TEST_CASE("raw and shifted softmax are one form up to gauge") {
  Attention t;
  CHECK(same_form(t, t.raw, t.shifted, {.gauge = true}));
  CHECK(same_form(t, t.raw_out, t.shifted_out, {.gauge = true}));
  CHECK_FALSE(same_form(t, t.raw_out, t.shifted_out));
  const TermId hoisted =
      t.g.div(t.sum(t.k, t.g.mul(t.exp(t.g.sub(t.score, t.largest)), t.load(2, {t.k, t.e}))),
              t.sum(t.k, t.exp(t.g.sub(t.score, t.largest))));
  CHECK(same_form(t, hoisted, t.raw_out, {.gauge = true}));
}

TEST_CASE("gauge keeps a factor that one side of a ratio lacks or that a sum ends") {
  Attention t;
  const TermId shifted = t.exp(t.g.sub(t.score, t.largest));
  CHECK_FALSE(same_form(t, t.g.div(shifted, t.sum(t.k, t.exp(t.score))), t.raw, {.gauge = true}));
  CHECK_FALSE(same_form(t, t.g.div(t.exp(t.score), t.sum(t.k, shifted)), t.raw, {.gauge = true}));
  // exp(score) itself depends on the axis of the sum.
  CHECK_FALSE(same_form(t, t.raw, t.g.div(t.number(1), t.sum(t.k, t.number(1))), {.gauge = true}));
}

TEST_CASE("parts of an output pass") {
  RmsNormLinear t;
  for (const TermId part : reachable(t.g, std::span(&t.out, 1))) {
    INFO(t.text(part));
    CHECK(passes(t, t.out, part));
  }
  const TermId hoisted = t.sum(t.k, t.g.mul(t.g.mul(t.x, t.gamma), t.w));
  CHECK(passes(t, t.out, hoisted));
  CHECK(passes(t, t.out, t.g.mul(t.gamma, t.w)));
  CHECK(passes(t, t.out, t.g.div(t.w, t.sqrt(t.mean))));
  CHECK(passes(t, t.out, t.g.div(hoisted, t.sqrt(t.mean))));
  Attention a;
  for (const TermId part : reachable(a.g, std::span(&a.shifted_out, 1))) {
    INFO(a.text(part));
    CHECK(passes(a, a.shifted_out, part));
  }
  CHECK(passes(a, a.shifted_out, a.sum(a.k, a.exp(a.score))));
  CHECK(passes(a, a.shifted_out, a.exp(a.largest)));
}

TEST_CASE("what cannot lead to the output is filtered") {
  RmsNormLinear t;
  CHECK_FALSE(passes(t, t.out, t.g.add(t.x, t.w)));
  CHECK_FALSE(passes(t, t.out, t.g.mul(t.gamma, t.gamma)));
  CHECK_FALSE(passes(t, t.out, t.sum(t.t, t.x)));
  CHECK_FALSE(passes(t, t.out, t.g.mul(t.x, t.g.mul(t.x, t.x))));
  CHECK_FALSE(passes(t, t.out, t.g.div(t.x, t.gamma)));
  CHECK_FALSE(passes(t, t.out, t.exp(t.x)));
  CHECK_FALSE(passes(t, t.out, t.sqrt(t.x)));
  CHECK_FALSE(passes(t, t.out, t.sqrt(t.g.mul(t.x, t.x))));
  CHECK_FALSE(passes(t, t.out, t.g.sub(t.mean, t.x)));
  CHECK_FALSE(passes(t, t.out, t.max(t.k, t.x)));
  Attention a;
  CHECK_FALSE(passes(a, a.raw_out, a.largest));
  CHECK_FALSE(passes(a, a.raw_out, a.exp(a.exp(a.score))));
  CHECK_FALSE(passes(a, a.shifted_out, a.g.add(a.largest, a.largest)));
  CHECK_FALSE(passes(a, a.shifted_out, a.exp(a.load(2, {a.k, a.e}))));
}

TEST_CASE("a factor must divide all monomials alike") {
  Five t;
  const TermId out = t.g.add(t.g.mul(t.a, t.b), t.g.mul(t.c, t.d));
  CHECK(passes(t, out, t.g.mul(t.a, t.b)));
  CHECK_FALSE(passes(t, out, t.g.add(t.a, t.c)));
  CHECK_FALSE(passes(t, out, t.g.add(t.g.mul(t.a, t.b), t.g.mul(t.a, t.b))));
  const TermId square = t.g.mul(t.g.sub(t.a, t.c), t.g.sub(t.a, t.c));
  CHECK(passes(t, square, t.g.sub(t.a, t.c)));
  CHECK(passes(t, square, t.g.sub(t.c, t.a)));
  CHECK(passes(t, square, t.g.sub(t.g.mul(t.a, t.a), t.g.mul(t.a, t.c))));
  CHECK_FALSE(passes(t, square, t.g.add(t.a, t.c)));
}

TEST_CASE("a form of too many monomials passes and is counted") {
  Terms t;
  const AxisId i = t.axis("i", 4);
  TermId total = t.load(0, {i});
  for (int buffer = 1; buffer < 12; ++buffer) total = t.g.add(total, t.load(buffer, {i}));
  NormalForms forms;
  FormFilter filter(forms, t.g, std::span(&total, 1));
  CHECK(filter.passes(forms.hashed(forms.of(t.g, total))));
  CHECK(filter.passes(forms.hashed(forms.of(t.g, t.g.mul(total, total)))));
  CHECK(filter.num_beyond() == 2);
  CHECK_FALSE(filter.passes(forms.hashed(forms.of(t.g, t.load(12, {i})))));
  CHECK(filter.num_beyond() == 2);
  CHECK_FALSE(passes(t, t.load(0, {i}), total));
}

// The closure: all terms that the laws make of one, by rewriting, which knows nothing of forms.
class Closure {
 public:
  Closure(TermGraph& graph, int max_ops, std::size_t max_terms)
      : g_(graph), max_ops_(max_ops), max_terms_(max_terms) {}

  const std::vector<TermId>& of(TermId root) {
    add(root);
    for (std::size_t next = 0; next < terms_.size() && terms_.size() < max_terms_; ++next) {
      for (const TermId made : rewritten(terms_[next])) add(made);
    }
    return terms_;
  }

 private:
  void add(TermId id) {
    if (terms_.size() < max_terms_ && num_ops(id) <= max_ops_ && seen_.insert(id).second) {
      terms_.push_back(id);
    }
  }

  int num_ops(TermId id) const {
    int count = g_[id].args.empty() ? 0 : 1;
    for (const TermId arg : g_[id].args) count += num_ops(arg);
    return count;
  }

  // Of one rewriting, at the term or below.
  std::vector<TermId> rewritten(TermId id) {
    std::vector<TermId> out;
    at_root(id, &out);
    for (std::size_t i = 0; i < g_[id].args.size(); ++i) {
      for (const TermId made : rewritten(g_[id].args[i])) {
        std::vector<TermId> args = g_[id].args;
        args[i] = made;
        out.push_back(g_.with_args(id, args));
      }
    }
    return out;
  }

  bool is(TermId id, ExprKind kind) const {
    return g_[id].op == TermOp::kBinary && g_[id].kind == kind;
  }
  bool is_exp(TermId id) const { return g_[id].op == TermOp::kCall; }
  bool is_sum(TermId id) const { return g_[id].op == TermOp::kReduce; }
  TermId arg(TermId id, std::size_t i) const { return g_[id].args[i]; }
  bool is_linear(TermId id) const { return is(id, ExprKind::kAdd) || is(id, ExprKind::kSub); }

  void at_root(TermId id, std::vector<TermId>* out) {
    if (is_linear(id)) linear(id, out);
    if (is(id, ExprKind::kMul)) product(id, out);
    if (is(id, ExprKind::kDiv)) quotient(id, out);
    if (is_sum(id)) reduction(id, out);
    if (is_exp(id) && is_linear(arg(id, 0))) {
      const bool adds = is(arg(id, 0), ExprKind::kAdd);
      const TermId x = g_.call(ir::Intrinsic::kExp, arg(arg(id, 0), 0));
      const TermId y = g_.call(ir::Intrinsic::kExp, arg(arg(id, 0), 1));
      out->push_back(adds ? g_.mul(x, y) : g_.div(x, y));
    }
  }

  void linear(TermId id, std::vector<TermId>* out) {
    const ExprKind kind = g_[id].kind;
    const TermId a = arg(id, 0), b = arg(id, 1);
    const bool adds = kind == ExprKind::kAdd;
    if (adds) out->push_back(g_.add(b, a));
    if (is_linear(a)) {  // (x . y) +- b = x . (y +- b)
      const bool inner = is(a, ExprKind::kAdd);
      const TermId x = arg(a, 0), y = arg(a, 1);
      if (inner) out->push_back(g_.add(x, g_.binary(kind, y, b)));
      if (!inner) out->push_back(g_.sub(x, adds ? g_.sub(y, b) : g_.add(y, b)));
    }
    if (is_linear(b)) {  // a +- (x . y) = (a +- x) . y
      const bool inner = is(b, ExprKind::kAdd);
      const TermId x = arg(b, 0), y = arg(b, 1);
      const TermId first = g_.binary(kind, a, x);
      out->push_back(inner == adds ? g_.add(first, y) : g_.sub(first, y));
    }
    if (is(a, ExprKind::kMul) && is(b, ExprKind::kMul)) {
      for (std::size_t i : {0, 1}) {
        for (std::size_t j : {0, 1}) {
          if (arg(a, i) != arg(b, j)) continue;
          out->push_back(g_.mul(arg(a, i), g_.binary(kind, arg(a, 1 - i), arg(b, 1 - j))));
        }
      }
    }
    if (is(a, ExprKind::kDiv) && is(b, ExprKind::kDiv) && arg(a, 1) == arg(b, 1)) {
      out->push_back(g_.div(g_.binary(kind, arg(a, 0), arg(b, 0)), arg(a, 1)));
    }
    if (is_sum(a) && is_sum(b) && g_[a].bound == g_[b].bound) {
      out->push_back(g_.reduce(ExprKind::kAdd, g_[a].bound, g_.binary(kind, arg(a, 0), arg(b, 0))));
    }
  }

  void product(TermId id, std::vector<TermId>* out) {
    const TermId a = arg(id, 0), b = arg(id, 1);
    out->push_back(g_.mul(b, a));
    if (is(a, ExprKind::kMul)) out->push_back(g_.mul(arg(a, 0), g_.mul(arg(a, 1), b)));
    if (is_linear(b)) {
      out->push_back(g_.binary(g_[b].kind, g_.mul(a, arg(b, 0)), g_.mul(a, arg(b, 1))));
    }
    if (is(b, ExprKind::kDiv)) out->push_back(g_.div(g_.mul(a, arg(b, 0)), arg(b, 1)));
    if (is_exp(a) && is_exp(b)) {
      out->push_back(g_.call(ir::Intrinsic::kExp, g_.add(arg(a, 0), arg(b, 0))));
    }
    if (is_sum(b) && (g_[a].free & g_[b].bound) == 0) {
      out->push_back(g_.reduce(ExprKind::kAdd, g_[b].bound, g_.mul(a, arg(b, 0))));
    }
  }

  void quotient(TermId id, std::vector<TermId>* out) {
    const TermId a = arg(id, 0), b = arg(id, 1);
    if (is(a, ExprKind::kDiv)) out->push_back(g_.div(arg(a, 0), g_.mul(arg(a, 1), b)));
    if (is(b, ExprKind::kMul)) out->push_back(g_.div(g_.div(a, arg(b, 0)), arg(b, 1)));
    if (is(a, ExprKind::kMul)) out->push_back(g_.mul(arg(a, 0), g_.div(arg(a, 1), b)));
    if (is_linear(a)) {
      out->push_back(g_.binary(g_[a].kind, g_.div(arg(a, 0), b), g_.div(arg(a, 1), b)));
    }
    if (is_exp(a) && is_exp(b)) {
      out->push_back(g_.call(ir::Intrinsic::kExp, g_.sub(arg(a, 0), arg(b, 0))));
    }
    if (is_sum(a) && (g_[b].free & g_[a].bound) == 0) {
      out->push_back(g_.reduce(ExprKind::kAdd, g_[a].bound, g_.div(arg(a, 0), b)));
    }
  }

  void reduction(TermId id, std::vector<TermId>* out) {
    const AxisSet bound = g_[id].bound;
    const TermId x = arg(id, 0);
    const auto sum = [&](AxisSet axes, TermId of) { return g_.reduce(ExprKind::kAdd, axes, of); };
    if (is_linear(x)) {
      out->push_back(g_.binary(g_[x].kind, sum(bound, arg(x, 0)), sum(bound, arg(x, 1))));
    }
    if (is(x, ExprKind::kMul) && (g_[arg(x, 0)].free & bound) == 0) {
      out->push_back(g_.mul(arg(x, 0), sum(bound, arg(x, 1))));
    }
    if (is(x, ExprKind::kDiv) && (g_[arg(x, 1)].free & bound) == 0) {
      out->push_back(g_.div(sum(bound, arg(x, 0)), arg(x, 1)));
    }
    if (is_sum(x)) out->push_back(sum(bound | g_[x].bound, arg(x, 0)));
    for (AxisSet first = (bound - 1) & bound; first != 0; first = (first - 1) & bound) {
      out->push_back(sum(first, sum(bound & ~first, x)));
    }
  }

  TermGraph& g_;
  int max_ops_;
  std::size_t max_terms_;
  std::vector<TermId> terms_;
  std::set<TermId> seen_;
};

// Operators of up to seven operations that the laws have something to do with.
struct Closed : Five {
  std::vector<TermId> outputs;
  Closed() {
    const TermId f = load(5, {k, l}), v = load(6, {k});
    const auto both = axis_bit(i) | axis_bit(k);
    outputs = {
        sum(k, g.mul(g.div(a, c), g.mul(b, f))),
        g.div(sum(k, g.mul(exp(g.sub(a, c)), b)), sum(k, exp(g.sub(a, c)))),
        g.mul(g.add(a, b), g.sub(c, d)),
        g.div(g.mul(g.add(a, b), c), g.mul(e, g.add(c, e))),
        g.reduce(ExprKind::kAdd, both, g.mul(g.mul(a, c), g.add(b, d))),
        sum(k, g.mul(g.sub(a, c), g.sub(a, c))),
        g.mul(exp(g.add(a, g.mul(b, g.add(c, e)))), d),
        g.div(g.sub(sum(k, g.mul(a, b)), c), g.mul(g.add(c, e), g.add(c, e))),
        sum(k, g.add(g.mul(a, g.mul(b, v)), g.mul(a, d))),
        g.div(exp(g.sub(a, g.add(b, c))), g.mul(exp(d), e)),
        g.div(sum(k, g.mul(g.mul(a, b), g.mul(c, d))), g.mul(e, c)),
        g.mul(g.mul(g.add(a, b), g.sub(c, d)), e),
        g.reduce(ExprKind::kAdd, both, g.mul(g.mul(a, b), g.mul(c, g.mul(d, e)))),
        g.mul(exp(g.add(g.add(a, b), g.add(c, d))), g.mul(b, e)),
    };
  }
};

TEST_CASE("no part of any term that the laws make of an output is filtered") {
  Closed t;
  std::size_t num_terms = 0, num_parts = 0;
  for (const TermId output : t.outputs) {
    Closure closure(t.g, 12, 40'000);  // operations of a term, terms
    const std::vector<TermId> terms = closure.of(output);
    num_terms += terms.size();
    NormalForms forms;
    FormFilter filter(forms, t.g, std::span(&output, 1));
    REQUIRE_FALSE(filter.is_void());
    const uint64_t form = forms.hash(forms.of(t.g, output));
    int num_lost = 0;
    for (const TermId part : reachable(t.g, terms)) {
      ++num_parts;
      if (filter.passes(forms.hashed(forms.of(t.g, part)))) continue;
      if (++num_lost < 4) UNSCOPED_INFO("lost: " << t.text(part));
    }
    int num_changed = 0;
    for (const TermId term : terms) {
      if (forms.hash(forms.of(t.g, term)) == form) continue;
      if (++num_changed < 4) UNSCOPED_INFO("another form: " << t.text(term));
    }
    INFO(t.text(output) << ": " << terms.size() << " terms");
    CHECK(num_lost == 0);
    CHECK(num_changed == 0);
    CHECK(filter.num_beyond() == 0);
  }
  INFO(num_terms << " terms, " << num_parts << " parts");
  CHECK(num_terms >= 100'000);
}

}  // namespace
}  // namespace prunerc

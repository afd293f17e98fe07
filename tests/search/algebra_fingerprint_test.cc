// Prints: equal for equal values, different for the mistakes that searches make.
#include "search/algebra/fingerprint.h"
#include "tests/search/algebra_terms.h"
#include "tests/support/check.h"

#include <cmath>
#include <optional>

namespace prunerc {
namespace {

using namespace search::algebra;  // NOLINT: a test
using namespace testing;          // NOLINT: a test
using ir::ExprKind;

Fingerprint print_of(const Terms& terms, TermId id, uint64_t seed = 1) {
  Fingerprints prints(terms.axes, seed);
  const std::optional<TermValues> values = prints.of(terms.g, id);
  INFO(terms.text(id));
  REQUIRE(values);
  return Fingerprints::print(*values);
}

bool same_print(const Terms& terms, TermId a, TermId b) {
  const bool same = print_of(terms, a) == print_of(terms, b);
  CHECK(same == (print_of(terms, a, 7) == print_of(terms, b, 7)));
  return same;
}

struct Matrices : Terms {
  AxisId i = axis("i", 48), j = axis("j", 36), k = axis("k", 20), l = axis("l", 20);
  TermId a = load(0, {i, k}), b = load(1, {k, j}), c = load(2, {i, j}), v = load(3, {j});
};

TEST_CASE("equal values have equal prints however they are computed") {
  Matrices t;
  CHECK(same_print(t, t.sum(t.j, t.g.mul(t.sum(t.k, t.g.mul(t.a, t.b)), t.v)),
                   t.sum(t.k, t.g.mul(t.a, t.sum(t.j, t.g.mul(t.b, t.v))))));
  CHECK(same_print(t, t.g.mul(t.c, t.g.add(t.v, t.v)), t.g.mul(t.number(2), t.g.mul(t.v, t.c))));
  CHECK(same_print(t, t.g.sub(t.c, t.g.sub(t.c, t.v)), t.g.sub(t.g.add(t.v, t.c), t.c)));
  RmsNormLinear r;
  const TermId hoisted = r.g.div(r.sum(r.k, r.g.mul(r.x, r.g.mul(r.gamma, r.w))), r.sqrt(r.mean));
  CHECK(same_print(r, r.out, hoisted));
}

TEST_CASE("exponentials follow their laws") {
  Attention t;
  CHECK(same_print(t, t.raw, t.shifted));
  CHECK(same_print(t, t.raw_out, t.shifted_out));
  CHECK(
      same_print(t, t.exp(t.g.add(t.score, t.largest)), t.g.mul(t.exp(t.largest), t.exp(t.score))));
  CHECK(same_print(t, t.exp(t.g.sub(t.score, t.score)), t.g.div(t.score, t.score)));
  CHECK_FALSE(
      same_print(t, t.exp(t.g.mul(t.score, t.largest)), t.g.mul(t.exp(t.largest), t.exp(t.score))));
}

TEST_CASE("a bound axis may be renamed") {
  Matrices t;
  const TermId renamed = t.sum(t.l, t.g.mul(t.load(0, {t.i, t.l}), t.load(1, {t.l, t.j})));
  CHECK(same_print(t, t.sum(t.k, t.g.mul(t.a, t.b)), renamed));
  CHECK(same_print(t, t.max(t.k, t.a), t.max(t.l, t.load(0, {t.i, t.l}))));
  // A free one may not.
  CHECK_FALSE(same_print(t, t.a, t.load(0, {t.i, t.l})));
  CHECK_FALSE(same_print(t, t.sum(t.i, t.a), t.sum(t.i, t.load(0, {t.i, t.l}))));
}

TEST_CASE("laws about extents hold at the real extents") {
  Matrices t;
  CHECK(same_print(t, t.sum(t.k, t.v), t.g.mul(t.number(20), t.v)));
  const TermId mean = t.g.div(t.sum(t.k, t.a), t.number(20));
  const TermId centred = t.g.sub(t.a, mean);
  CHECK(same_print(t, t.g.mul(t.number(0), t.g.mul(t.sum(t.k, centred), t.v)),
                   t.g.mul(t.v, t.sum(t.k, centred))));
  CHECK(same_print(
      t, t.sum(t.k, t.g.mul(centred, centred)),
      t.g.sub(t.sum(t.k, t.g.mul(t.a, t.a)), t.g.mul(t.number(20), t.g.mul(mean, mean)))));
  CHECK_FALSE(same_print(t, t.sum(t.k, t.v), t.g.mul(t.number(2), t.v)));
}

TEST_CASE("maxima are sets") {
  Matrices t;
  const auto max = [&](TermId a, TermId b) { return t.g.binary(ExprKind::kMax, a, b); };
  CHECK(same_print(t, max(t.c, max(t.v, t.number(3))), max(max(t.number(3), t.c), t.v)));
  CHECK(same_print(t, max(t.c, t.c), t.c));
  CHECK(same_print(t, max(t.max(t.j, t.c), t.max(t.j, t.v)), t.max(t.j, max(t.v, t.c))));
  CHECK_FALSE(same_print(t, max(t.c, t.v), t.c));
  CHECK_FALSE(same_print(t, max(t.c, t.v), t.g.binary(ExprKind::kMin, t.c, t.v)));
  CHECK_FALSE(same_print(t, t.max(t.j, t.c), t.sum(t.j, t.c)));
}

TEST_CASE("infinities and masks mean what they mean in programs") {
  Attention t;
  Condition causal;
  causal.value = plain_subscript(t.k) + plain_subscript(t.t) * -1;
  const TermId mask = t.g.mask({causal});
  const TermId masked = t.g.select(mask, t.score, t.number(-INFINITY));
  const TermId zeroed = t.g.select(mask, t.exp(t.score), t.number(0));
  CHECK(same_print(t, t.exp(masked), zeroed));
  CHECK(same_print(t, t.softmax(t.exp(t.g.sub(masked, t.max(t.k, masked)))),
                   t.softmax(t.exp(masked))));
  CHECK_FALSE(same_print(t, t.softmax(t.exp(masked)), t.raw));
  Fingerprints prints(t.axes, 1);
  CHECK_FALSE(prints.of(t.g, t.g.mul(t.number(-INFINITY), t.score)));
  CHECK_FALSE(prints.of(t.g, t.g.div(t.score, t.g.sub(t.score, t.score))));
}

TEST_CASE("gate and up swapped have another print") {
  Terms t;
  const AxisId i = t.axis("i", 8), k = t.axis("k", 64), n = t.axis("n", 64);
  const TermId x = t.load(0, {i, k});
  const TermId gate = t.sum(k, t.g.mul(x, t.load(1, {k, n})));
  const TermId up = t.sum(k, t.g.mul(x, t.load(2, {k, n})));
  const auto silu = [&](TermId a) { return t.g.mul(a, t.g.call(ir::Intrinsic::kSigmoid, a)); };
  CHECK_FALSE(same_print(t, t.g.mul(silu(gate), up), t.g.mul(silu(up), gate)));
  CHECK(same_print(t, t.g.mul(silu(gate), up), t.g.mul(up, silu(gate))));
  CHECK(same_print(t, silu(gate),
                   t.g.div(gate, t.g.add(t.number(1), t.exp(t.g.sub(t.number(0), gate))))));
}

TEST_CASE("a missing or a squared rescale has another print") {
  Attention t;
  const TermId value = t.load(2, {t.k, t.e});
  const TermId shifted = t.exp(t.g.sub(t.score, t.largest));
  const TermId total = t.sum(t.k, shifted);
  const TermId raw = t.sum(t.k, t.g.mul(t.exp(t.score), value));
  CHECK_FALSE(same_print(t, t.g.div(raw, total), t.raw_out));
  CHECK(same_print(t, t.g.div(t.g.div(raw, t.exp(t.largest)), total), t.raw_out));
  CHECK_FALSE(same_print(
      t, t.g.div(t.g.div(t.g.div(raw, t.exp(t.largest)), t.exp(t.largest)), total), t.raw_out));
  CHECK_FALSE(same_print(t, t.sum(t.k, t.g.mul(shifted, value)), t.shifted_out));
}

TEST_CASE("a dropped eps or root, another axis, a hoist of what varies have other prints") {
  RmsNormLinear t;
  const TermId plain = t.sum(t.k, t.g.mul(t.x, t.g.mul(t.gamma, t.w)));
  const TermId no_eps =
      t.g.div(plain, t.sqrt(t.g.div(t.sum(t.k, t.g.mul(t.x, t.x)), t.number(4096))));
  CHECK_FALSE(same_print(t, t.out, no_eps));
  CHECK_FALSE(same_print(t, t.out, t.g.div(plain, t.mean)));
  CHECK_FALSE(same_print(t, t.out, plain));
  const TermId over_rows =
      t.g.add(t.g.div(t.sum(t.t, t.g.mul(t.x, t.x)), t.number(4096)), t.number(0.0009765625));
  CHECK_FALSE(same_print(t, t.norm, t.g.mul(t.g.div(t.x, t.sqrt(over_rows)), t.gamma)));
  CHECK_FALSE(same_print(t, t.out, t.g.mul(t.sum(t.k, t.gamma), t.sum(t.k, t.g.mul(t.x, t.w)))));
  Matrices m;
  CHECK_FALSE(same_print(m, m.sum(m.i, m.a), m.sum(m.k, m.a)));
  CHECK_FALSE(same_print(m, m.load(2, {m.k, m.l}), m.load(2, {m.l, m.k})));
}

TEST_CASE("subscripts count") {
  Terms t;
  const AxisId h = t.axis("h", 12), s = t.axis("s", 5);
  const auto head = [&](int64_t lower, int64_t extent) {
    const Subscript group{{Digit{h, lower, extent, 1}}, 0};
    return t.g.load(ir::BufferId(1), {group, plain_subscript(s)}, ir::DType::kF32);
  };
  CHECK_FALSE(same_print(t, t.sum(h, head(4, 0)), t.sum(h, head(1, 4))));
  const auto window = [&](int64_t base) {
    Subscript at = plain_subscript(s) + plain_subscript(h);
    at.base = base;
    return t.sum(s, t.g.load(ir::BufferId(2), {at}, ir::DType::kF32));
  };
  CHECK_FALSE(same_print(t, window(0), window(1)));
}

}  // namespace
}  // namespace prunerc

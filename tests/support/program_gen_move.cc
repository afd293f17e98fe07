// Operations of random programs that move elements: slices, reshapes, casts, gathers, scans.
#include "tests/support/program_gen_impl.h"

#include <algorithm>
#include <cmath>

namespace prunerc::testing::program_gen {

void Generator::slice_or_pad() {
  const Value x = choose(1);
  const auto axis = static_cast<std::size_t>(rng_.below(x.shape.size()));
  const int64_t extent = x.shape[axis];
  std::vector<int64_t> shape = x.shape;
  const bool is_slice = rng_.chance(0.5);
  const int64_t offset = is_slice ? rng_.between(0, extent - 1) : rng_.between(0, 3);
  shape[axis] = is_slice ? rng_.between(1, extent - offset) : extent + offset + rng_.between(0, 3);
  const Value out = new_result(x.dtype, shape, std::max(x.bound, 1.0), x.exact);
  BlockSpec spec;
  spec.name = is_slice ? "slice" : "pad";
  spec.out = out.id;
  spec.spatial = shape;
  spec.value = [&](const Exprs& s, const Exprs&) {
    Exprs from = s;
    if (is_slice) {
      from[axis] = b_.add(s[axis], b_.int_imm(offset));
      return load(x, from);
    }
    from[axis] = b_.sub(s[axis], b_.int_imm(offset));
    const Expr inside = b_.logical_and(b_.le(b_.int_imm(offset), s[axis]),
                                       b_.lt(s[axis], b_.int_imm(offset + extent)));
    return b_.select(inside, load(x, from), b_.constant(1, x.dtype));
  };
  emit(spec);
  finish(out);
}

void Generator::reshape() {
  const Value x = choose(1);
  const int64_t count = product(x.shape);
  std::vector<int64_t> shape;
  int64_t rest = count;
  for (int64_t p : {2, 3, 5, 7}) {
    if (rest % p == 0 && rng_.chance(0.5)) {
      shape.push_back(p);
      rest /= p;
    }
  }
  shape.push_back(rest);
  const Value out = new_result(x.dtype, shape, x.bound, x.exact);
  BlockSpec spec;
  spec.name = "reshape";
  spec.out = out.id;
  spec.spatial = shape;
  spec.value = [&](const Exprs& s, const Exprs&) {
    Expr flat = s[0];
    for (std::size_t d = 1; d < s.size(); ++d) {
      flat = b_.add(b_.mul(flat, b_.int_imm(shape[d])), s[d]);
    }
    Exprs from(x.shape.size());
    for (std::size_t d = x.shape.size(); d-- > 0;) {
      const Expr extent = b_.int_imm(x.shape[d]);
      from[d] = d == 0 ? flat : b_.floormod(flat, extent);
      flat = b_.floordiv(flat, extent);
    }
    return load(x, from);
  };
  emit(spec);
  finish(out);
}

void Generator::cast() {
  const Value x = choose();
  if (!x.exact || policy_.only_f32) return permute();
  const DType to = random_dtype();
  // Saturation and wrapping are part of what is tested, but an inexact result would not be.
  const double limit = is_float(to) ? exact_limit(to) : x.bound;
  const bool is_taken = x.bound <= limit;
  const DType target = is_taken ? to : DType::kF64;
  const double bound = is_float(target) ? x.bound : std::min(exact_limit(target), 0x1p40);
  const Value out = new_result(target, x.shape, std::max(bound, x.bound), true);
  BlockSpec spec;
  spec.name = "cast";
  spec.out = out.id;
  spec.spatial = x.shape;
  spec.value = [&](const Exprs& s, const Exprs&) { return b_.cast(target, load(x, s)); };
  emit(spec);
  finish(out);
}

void Generator::concat() {
  const Value x = choose(1);
  std::vector<int64_t> shape = x.shape;
  shape[0] *= 2;
  if (product(shape) > policy_.max_elements * 2) return permute();
  const Value out = new_result(x.dtype, shape, x.bound, x.exact);
  for (int half = 0; half < 2; ++half) {
    BlockSpec spec;
    spec.name = half == 0 ? "concat_low" : "concat_high";
    spec.out = out.id;
    spec.spatial = x.shape;
    spec.store_at = [&](const Exprs& s) {
      Exprs to = s;
      to[0] = b_.add(s[0], b_.int_imm(half * x.shape[0]));
      return to;
    };
    spec.value = [&](const Exprs& s, const Exprs&) {
      const Expr value = load(x, s);
      return half == 0 || is_bool(x.dtype) ? value : b_.min(value, b_.constant(1, x.dtype));
    };
    emit(spec);
  }
  finish(out);
}

void Generator::gather() {
  const Value x = choose(1);
  const int64_t count = random_extent();
  std::vector<int64_t> shape = x.shape;
  shape[0] = count;
  if (product(shape) > policy_.max_elements) return permute();
  // Rows by a table, rows behind one that a number says, or that row itself where another one ends.
  const auto form = rng_.below(3);
  const Value at_rows =
      new_input(DType::kI32, form == 0 ? std::vector<int64_t>{count} : std::vector<int64_t>());
  const int64_t border = rng_.between(0, count);
  const Value out = new_result(x.dtype, shape, x.bound, x.exact);
  BlockSpec spec;
  spec.name = "gather";
  spec.out = out.id;
  spec.spatial = shape;
  spec.value = [&](const Exprs& s, const Exprs&) {
    const Expr row = b_.cast(DType::kI64, load(at_rows, form == 0 ? Exprs{s[0]} : Exprs()));
    const auto clipped = [&](Expr at) {
      Exprs from = s;
      from[0] = b_.max(b_.min(at, b_.int_imm(x.shape[0] - 1)), b_.int_imm(0));
      return load(x, from);
    };
    const Expr first = clipped(form == 0 ? row : b_.add(row, s[0]));
    if (form != 2) return first;
    return b_.select(b_.lt(s[0], b_.int_imm(border)), first, clipped(row));
  };
  emit(spec);
  finish(out);
}

void Generator::scan() {
  const Value x = choose(1);
  const double bound = x.bound * static_cast<double>(x.shape[0]);
  if (is_bool(x.dtype) || !x.exact || bound > exact_limit(x.dtype)) return permute();
  const Value out = new_result(x.dtype, x.shape, bound, true);
  BlockSpec spec;
  spec.name = "scan";
  spec.out = out.id;
  spec.spatial = x.shape;
  spec.spatial_kind = IterKind::kOpaque;
  spec.value = [&](const Exprs& s, const Exprs&) {
    Exprs before = s;
    before[0] = b_.sub(s[0], b_.int_imm(1));
    const Expr previous =
        b_.select(b_.lt(b_.int_imm(0), s[0]), b_.load(out.id, before), b_.constant(0, x.dtype));
    return b_.add(previous, load(x, s));
  };
  emit(spec);
  finish(out);
}

}  // namespace prunerc::testing::program_gen

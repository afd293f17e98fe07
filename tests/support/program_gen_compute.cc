// Operations of random programs that compute: maps, reductions, products, convolutions.
#include "tests/support/program_gen_impl.h"

#include <algorithm>
#include <cmath>

namespace prunerc::testing::program_gen {

Expr Generator::unary_formula(Expr x, DType dtype, double* bound, bool* exact) {
  const bool has_transcendental = policy_.transcendental && is_float(dtype);
  const int choice = pick_int(0, has_transcendental ? 9 : 5);
  const Expr zero = b_.constant(0, dtype);
  switch (choice) {
    case 0: *bound += 3; return b_.add(x, b_.constant(3, dtype));
    case 1: *bound *= 2; return b_.mul(x, b_.constant(2, dtype));
    case 2: return b_.max(x, zero);
    case 3: return b_.sub(zero, x);
    case 4:
      if (!*exact) return b_.min(x, zero);  // a jump would turn a rounding error into a large one
      *bound += 1;
      return b_.select(b_.lt(x, b_.constant(1, dtype)), b_.add(x, b_.constant(1, dtype)), zero);
    case 5: {
      const Expr args[] = {x};
      return dtype == DType::kU8 ? x : b_.call(Intrinsic::kAbs, args);
    }
    default: break;
  }
  x = tame(x, bound, 8);
  *exact = false;
  *bound = choice == 6 ? 2981 : std::max(*bound, 1.0);
  const Intrinsic kind = pick<Intrinsic>(
      {Intrinsic::kTanh, Intrinsic::kSigmoid, Intrinsic::kSin, Intrinsic::kErf, Intrinsic::kCos});
  if (choice == 7) {
    const Expr abs_args[] = {x};
    const Expr args[] = {b_.call(Intrinsic::kAbs, abs_args)};
    return b_.call(Intrinsic::kSqrt, args);
  }
  const Expr args[] = {x};
  return b_.call(choice == 6 ? Intrinsic::kExp : kind, args);
}

void Generator::map_unary() {
  const Value x = choose();
  double bound = x.bound;
  bool exact = x.exact;
  if (is_bool(x.dtype)) return cast();
  BlockSpec spec;
  spec.name = "map";
  spec.spatial = x.shape;
  // The formula decides the bound, so it is made before the result is declared.
  const double limit = exact_limit(x.dtype) / 4;
  const Rng formula_rng = rng_;
  (void)unary_formula(tame(b_.constant(0, x.dtype), &bound, limit), x.dtype, &bound, &exact);
  const Rng after = rng_;
  const Value out = new_result(x.dtype, x.shape, bound, exact);
  spec.out = out.id;
  spec.value = [&](const Exprs& s, const Exprs&) {
    rng_ = formula_rng;
    double again = x.bound;
    bool exact_again = x.exact;
    const Expr term = tame(load(x, s), &again, limit);
    return unary_formula(term, x.dtype, &again, &exact_again);
  };
  emit(spec);
  rng_ = after;
  finish(out);
}

Value Generator::partner(const Value& x, std::vector<bool>* is_broadcast) {
  is_broadcast->assign(x.shape.size(), false);
  if (rng_.chance(0.4)) {
    for (auto it = pool_.rbegin(); it != pool_.rend(); ++it) {
      if (it->dtype == x.dtype && it->shape == x.shape) return *it;
    }
  }
  std::vector<int64_t> shape = x.shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1 && rng_.chance(0.4)) {
      (*is_broadcast)[d] = true;
      shape[d] = 1;
    }
  }
  return new_input(x.dtype, shape);
}

Expr Generator::binary_formula(Expr x, Expr y, bool exact, double x_bound, double y_bound,
                               double* bound) {
  const int choice = pick_int(0, exact ? 5 : 3);
  *bound = std::max(x_bound, y_bound);
  switch (choice) {
    case 0: *bound = x_bound + y_bound; return b_.add(x, y);
    case 1: *bound = x_bound + y_bound; return b_.sub(x, y);
    case 2: return b_.max(x, y);
    case 3: *bound = x_bound * y_bound; return b_.mul(x, y);
    case 4: return b_.select(b_.lt(x, y), y, b_.constant(1, x.dtype()));
    default: return b_.min(x, y);
  }
}

void Generator::map_binary() {
  const Value x = choose();
  if (is_bool(x.dtype)) return cast();
  std::vector<bool> is_broadcast;
  const Value y = partner(x, &is_broadcast);
  const bool exact = x.exact && y.exact;
  const double limit = std::max(1.0, std::min(32.0, exact_limit(x.dtype) / 16));
  double x_bound = std::min(x.bound, limit);
  double y_bound = std::min(y.bound, limit);
  const Rng formula_rng = rng_;
  double bound = 0;
  const Expr zero = b_.constant(0, x.dtype);
  (void)binary_formula(zero, zero, exact, x_bound, y_bound, &bound);
  const Value out = new_result(x.dtype, x.shape, bound, exact);
  const Rng after = rng_;
  BlockSpec spec;
  spec.name = "combine";
  spec.out = out.id;
  spec.spatial = x.shape;
  spec.value = [&](const Exprs& s, const Exprs&) {
    Exprs y_at = s;
    for (std::size_t d = 0; d < s.size(); ++d) {
      if (is_broadcast[d]) y_at[d] = b_.int_imm(0);
    }
    rng_ = formula_rng;
    double xb = x.bound;
    double yb = y.bound;
    const Expr x_term = tame(load(x, s), &xb, limit);
    const Expr y_term = tame(load(y, y_at), &yb, limit);
    return binary_formula(x_term, y_term, exact, xb, yb, &bound);
  };
  emit(spec);
  rng_ = after;
  finish(out);
}

void Generator::permute() {
  const Value x = choose(2);
  std::vector<int> axes;
  for (int d = 0; d < static_cast<int>(x.shape.size()); ++d) axes.push_back(d);
  for (std::size_t i = axes.size(); i > 1; --i) {
    std::swap(axes[i - 1], axes[static_cast<std::size_t>(rng_.below(i))]);
  }
  std::vector<int64_t> shape;
  for (int a : axes) shape.push_back(x.shape[static_cast<std::size_t>(a)]);
  const Value out = new_result(x.dtype, shape, x.bound, x.exact);
  BlockSpec spec;
  spec.name = "permute";
  spec.out = out.id;
  spec.spatial = shape;
  spec.value = [&](const Exprs& s, const Exprs&) {
    Exprs from(s.size());
    for (std::size_t d = 0; d < s.size(); ++d) from[static_cast<std::size_t>(axes[d])] = s[d];
    return load(x, from);
  };
  emit(spec);
  finish(out);
}

void Generator::reduce() {
  const Value x = choose(1);
  if (is_bool(x.dtype)) return cast();
  std::vector<int64_t> kept, reduced;
  std::vector<bool> is_reduced;
  const auto forced = static_cast<std::size_t>(rng_.below(x.shape.size()));
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    is_reduced.push_back(d == forced || rng_.chance(0.3));
    (is_reduced.back() ? reduced : kept).push_back(x.shape[d]);
  }
  const auto count = static_cast<double>(product(reduced));
  // Sums and products of values that are not whole numbers depend on the order.
  const int kind = pick_int(x.exact ? 0 : 2, 3);  // sum, product, max, min
  double limit = exact_limit(x.dtype);
  if (kind == 0) limit /= count;
  if (kind == 1) limit = 1;
  double bound = x.bound;
  (void)tame(b_.constant(0, x.dtype), &bound, limit);
  if (bound * (kind == 0 ? count : 1) > exact_limit(x.dtype)) return;
  const double low =
      is_float(x.dtype) ? -max_finite(x.dtype) : static_cast<double>(min_int(x.dtype));
  const double high =
      is_float(x.dtype) ? max_finite(x.dtype) : static_cast<double>(max_int(x.dtype));
  const Value out = new_result(x.dtype, kept, kind == 0 ? bound * count : bound, x.exact);
  BlockSpec spec;
  spec.name = "reduce";
  spec.out = out.id;
  spec.spatial = kept;
  spec.reduce = reduced;
  const double starts[] = {0, 1, low, high};
  spec.init = b_.constant(starts[kind], x.dtype);
  spec.value = [&](const Exprs& s, const Exprs& r) {
    Exprs from;
    std::size_t next_s = 0, next_r = 0;
    for (bool red : is_reduced) from.push_back(red ? r[next_r++] : s[next_s++]);
    double again = x.bound;
    const Expr term = tame(load(x, from), &again, limit);
    const ExprKind ops[] = {ExprKind::kAdd, ExprKind::kMul, ExprKind::kMax, ExprKind::kMin};
    return b_.binary(ops[kind], b_.load(out.id, s), term);
  };
  emit(spec);
  finish(out);
}

void Generator::contract() {
  // out[batch.., m.., n..] += x[batch.., m.., k] * y[batch.., k, n..]; the last axis of x is
  // contracted.
  const Value x = choose(1);
  if (is_bool(x.dtype) || !x.exact) return map_unary();
  const int64_t k_extent = x.shape.back();
  std::vector<int64_t> outer(x.shape.begin(), x.shape.end() - 1);
  const bool has_batch = !outer.empty() && rng_.chance(0.3);
  std::vector<int64_t> y_shape;
  if (has_batch) y_shape.push_back(outer[0]);
  y_shape.push_back(k_extent);
  std::vector<int64_t> shape = outer;
  const int64_t n = random_extent();
  const bool has_n = rng_.chance(0.8) && product(shape) * n * k_extent <= policy_.max_iterations &&
                     product(y_shape) * n <= policy_.max_elements;
  if (has_n) {
    y_shape.push_back(n);
    shape.push_back(n);
  }
  const Value y = new_input(x.dtype, y_shape);
  const DType acc = x.dtype == DType::kI8 || x.dtype == DType::kU8      ? DType::kI32
                    : x.dtype == DType::kF16 || x.dtype == DType::kBF16 ? DType::kF32
                                                                        : x.dtype;
  const double limit = std::min(exact_limit(x.dtype), 1024.0);
  double bound = std::min(x.bound, limit);
  const Value out =
      new_result(acc, shape, bound * kInputBound * static_cast<double>(k_extent), true);
  BlockSpec spec;
  spec.name = "contract";
  spec.out = out.id;
  spec.spatial = shape;
  spec.reduce = {k_extent};
  spec.init = b_.constant(0, acc);
  spec.value = [&](const Exprs& s, const Exprs& r) {
    Exprs x_at(s.begin(), s.begin() + static_cast<std::ptrdiff_t>(outer.size()));
    x_at.push_back(r[0]);
    Exprs y_at;
    if (has_batch) y_at.push_back(s[0]);
    y_at.push_back(r[0]);
    if (has_n) y_at.push_back(s.back());
    double again = x.bound;
    const Expr x_term = b_.cast(acc, tame(load(x, x_at), &again, limit));
    const Expr y_term = b_.cast(acc, load(y, y_at));
    return b_.add(b_.load(out.id, s), b_.mul(x_term, y_term));
  };
  emit(spec);
  finish(out);
}

void Generator::convolve() {
  // Along the last axis: out[.., i] += pad(x)[.., i*stride + k*dilation - pad] * w[k].
  const Value x = choose(1);
  if (is_bool(x.dtype) || !x.exact || !is_float(x.dtype)) return slice_or_pad();
  const int64_t width = x.shape.back();
  const int64_t taps = pick<int64_t>({1, 2, 3, 5});
  const int64_t stride = pick<int64_t>({1, 1, 2, 3});
  const int64_t dilation = pick<int64_t>({1, 1, 2});
  const int64_t pad = pick<int64_t>({0, 1, 2});
  const int64_t span = (taps - 1) * dilation + 1;
  if (width + 2 * pad < span) return slice_or_pad();
  std::vector<int64_t> shape = x.shape;
  shape.back() = (width + 2 * pad - span) / stride + 1;
  const bool is_pool = rng_.chance(0.3);
  const Value w = is_pool ? x : new_input(x.dtype, {taps});
  const double limit = std::max(1.0, std::min(1024.0, exact_limit(x.dtype) / (kInputBound * 5)));
  double bound = std::min(x.bound, limit);
  const double out_bound = is_pool ? bound : bound * kInputBound * static_cast<double>(taps);
  const Value out = new_result(x.dtype, shape, out_bound, true);
  BlockSpec spec;
  spec.name = is_pool ? "pool" : "conv";
  spec.out = out.id;
  spec.spatial = shape;
  spec.reduce = {taps};
  spec.init = b_.constant(is_pool ? -max_finite(x.dtype) : 0, x.dtype);
  spec.value = [&](const Exprs& s, const Exprs& r) {
    Exprs from = s;
    const Expr position =
        b_.sub(b_.add(b_.mul(s.back(), b_.int_imm(stride)), b_.mul(r[0], b_.int_imm(dilation))),
               b_.int_imm(pad));
    from.back() = position;
    double again = x.bound;
    Expr term = tame(load(x, from), &again, limit);
    if (pad > 0) {
      const Expr inside =
          b_.logical_and(b_.le(b_.int_imm(0), position), b_.lt(position, b_.int_imm(width)));
      term = b_.select(inside, term, b_.constant(is_pool ? -bound : 0, x.dtype));
    }
    const Expr acc = b_.load(out.id, s);
    if (is_pool) return b_.max(acc, term);
    const Exprs tap = {r[0]};
    return b_.add(acc, b_.mul(term, load(w, tap)));
  };
  emit(spec);
  finish(out);
}

}  // namespace prunerc::testing::program_gen

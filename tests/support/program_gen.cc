#include "tests/support/program_gen.h"

#include "tests/support/block_maker.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace prunerc::testing {
namespace {

using namespace prunerc::ir;  // NOLINT: a source file of tests

/// Whole numbers of at most this size are exact in the type, and so are sums that stay below it.
double exact_limit(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64: return 0x1p50;
    case DType::kF32: return 0x1p24;
    case DType::kI32: return 0x1p31;
    case DType::kF16: return 2048;
    case DType::kBF16: return 256;
    case DType::kI8: return 127;
    case DType::kU8: return 255;
    case DType::kBool: return 1;
  }
  return 1;
}

int64_t product(const std::vector<int64_t>& extents) {
  int64_t out = 1;
  for (int64_t e : extents) out *= e;
  return out;
}

/// A tensor of the program under construction. |elements| <= bound; exact: they are whole numbers.
struct Value {
  BufferId id;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  double bound = 0;
  bool exact = true;
};

struct TensorSpec {
  DType dtype;
  std::vector<int64_t> shape;
  BufferRole role = BufferRole::kInput;
};

/// What the first of two runs learns: buffers have to be declared as the text form has them, inputs
/// first, then outputs, then intermediates.
struct Roles {
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> results;  // by order of creation
};

constexpr double kInputBound = 4;

class Generator {
 public:
  Generator(Rng rng, const GenPolicy& policy, const Roles* known)
      : rng_(rng), policy_(policy), known_(known), b_("random") {
    if (known_ == nullptr) return;
    for (const TensorSpec& spec : known_->inputs) input_ids_.push_back(declare("I", spec));
    declared_results_.resize(known_->results.size());
    for (BufferRole role : {BufferRole::kOutput, BufferRole::kIntermediate}) {
      for (std::size_t n = 0; n < known_->results.size(); ++n) {
        if (known_->results[n].role == role)
          declared_results_[n] = declare("T", known_->results[n]);
      }
    }
  }

  Program run(Roles* learnt) {
    pool_.push_back(new_input(random_dtype(), random_shape()));
    const int num_ops = pick_int(policy_.min_ops, policy_.max_ops);
    while (static_cast<int>(is_read_.size()) < num_ops) operation();
    for (std::size_t i = 0; i < is_read_.size(); ++i) {
      // The rare intermediate that is an output too has readers and a role that primitives must
      // respect.
      const bool is_output = !is_read_[i] || rng_.chance(0.1);
      if (is_output) results_[i].role = BufferRole::kOutput;
    }
    learnt->inputs = inputs_;
    learnt->results = results_;
    return b_.finish(b_.seq(nests_));
  }

 private:
  // --- choices
  int pick_int(int64_t low, int64_t high) { return static_cast<int>(rng_.between(low, high)); }
  template <typename T>
  T pick(std::vector<T> options) {
    return options[static_cast<std::size_t>(rng_.below(options.size()))];
  }
  int64_t random_extent() {
    if (rng_.chance(policy_.odd_extents)) return pick<int64_t>({1, 1, 2, 3, 5, 7, 11, 13, 17});
    return pick<int64_t>({2, 4, 6, 8, 9, 10, 12, 16, 24, 32});
  }
  std::vector<int64_t> random_shape(int min_rank = 0) {
    std::vector<int64_t> shape;
    const int rank = std::max(min_rank, pick_int(0, policy_.max_rank));
    for (int i = 0; i < rank; ++i) {
      const int64_t room = policy_.max_elements / product(shape);
      shape.push_back(std::min(random_extent(), std::max<int64_t>(room, 1)));
    }
    return shape;
  }
  DType random_dtype() {
    if (policy_.only_f32 || rng_.chance(0.6)) return DType::kF32;
    return pick<DType>({DType::kI32, DType::kI32, DType::kF64, DType::kF16, DType::kBF16,
                        DType::kI8, DType::kU8, DType::kI64});
  }
  /// A tensor of the pool, rather a late one, so that chains and diamonds arise.
  Value choose(int min_rank = 0) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      const std::size_t from = rng_.chance(0.6) ? pool_.size() - 1 : 0;
      const auto i = static_cast<std::size_t>(
          rng_.between(static_cast<int64_t>(from), static_cast<int64_t>(pool_.size()) - 1));
      if (static_cast<int>(pool_[i].shape.size()) >= min_rank) return pool_[i];
    }
    pool_.push_back(new_input(random_dtype(), random_shape(min_rank)));
    return pool_.back();
  }

  // --- tensors
  BufferId declare(std::string_view name, const TensorSpec& spec) {
    Exprs extents;
    for (int64_t e : spec.shape) extents.push_back(b_.int_imm(e));
    return b_.add_buffer(name, spec.dtype, extents, Scope::kGlobal, spec.role);
  }
  Value new_input(DType dtype, const std::vector<int64_t>& shape) {
    inputs_.push_back({dtype, shape, BufferRole::kInput});
    const std::size_t n = inputs_.size() - 1;
    const BufferId id = known_ != nullptr ? input_ids_[n] : declare("I", inputs_[n]);
    const double bound = is_bool(dtype) ? 1 : kInputBound;
    return {id, dtype, shape, bound, true};
  }
  Value new_result(DType dtype, const std::vector<int64_t>& shape, double bound, bool exact) {
    results_.push_back({dtype, shape, BufferRole::kIntermediate});
    const std::size_t n = results_.size() - 1;
    is_read_.push_back(false);
    result_ids_.push_back(known_ != nullptr ? declared_results_[n] : declare("T", results_[n]));
    return {result_ids_[n], dtype, shape, bound, exact};
  }
  Expr load(const Value& t, const Exprs& at_indices) {
    for (std::size_t i = 0; i < result_ids_.size(); ++i) {
      if (result_ids_[i] == t.id) is_read_[i] = true;
    }
    return b_.load(t.id, at_indices);
  }
  /// x, kept within [-limit, limit] if it might not be.
  Expr tame(Expr x, double* bound, double limit) {
    limit = std::floor(limit);  // whole, so that what is cut off stays a whole number
    if (*bound <= limit) return x;
    *bound = std::max(1.0, limit);
    const double low = x.dtype() == DType::kU8 ? 0 : -*bound;
    return b_.max(b_.min(x, b_.constant(*bound, x.dtype())), b_.constant(low, x.dtype()));
  }
  void emit(BlockSpec spec) {
    std::vector<int> order;
    for (std::size_t i = 0; i < spec.spatial.size() + spec.reduce.size(); ++i) {
      order.push_back(static_cast<int>(i));
    }
    const bool may_shuffle = spec.spatial_kind == IterKind::kSpatial;
    if (may_shuffle && rng_.chance(0.25)) {
      for (std::size_t i = order.size(); i > 1; --i) {
        std::swap(order[i - 1], order[static_cast<std::size_t>(rng_.below(i))]);
      }
    }
    spec.loop_order = order;
    nests_.push_back(make_block_nest(b_, spec));
  }
  void finish(Value result) { pool_.push_back(std::move(result)); }

  // --- operations; each adds one result (concat: one result, two blocks)
  void operation();
  void map_unary();
  void map_binary();
  void permute();
  void reduce();
  void contract();
  void convolve();
  void slice_or_pad();
  void reshape();
  void cast();
  void concat();
  void gather();
  void scan();
  Expr unary_formula(Expr x, DType dtype, double* bound, bool* exact);
  Expr binary_formula(Expr x, Expr y, bool exact, double x_bound, double y_bound, double* bound);
  Value partner(const Value& x, std::vector<bool>* is_broadcast);

  Rng rng_;
  GenPolicy policy_;
  const Roles* known_;
  IrBuilder b_;
  std::vector<TensorSpec> inputs_, results_;            // as made by this run
  std::vector<BufferId> input_ids_, declared_results_;  // second run: all of them
  std::vector<BufferId> result_ids_;                    // those made so far
  std::vector<bool> is_read_;
  std::vector<Value> pool_;
  std::vector<Stmt> nests_;
};

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
  const Value at_rows = new_input(DType::kI32, {count});
  const Value out = new_result(x.dtype, shape, x.bound, x.exact);
  BlockSpec spec;
  spec.name = "gather";
  spec.out = out.id;
  spec.spatial = shape;
  spec.value = [&](const Exprs& s, const Exprs&) {
    const Exprs row_at = {s[0]};
    const Expr row = b_.cast(DType::kI64, load(at_rows, row_at));
    Exprs from = s;
    from[0] = b_.max(b_.min(row, b_.int_imm(x.shape[0] - 1)), b_.int_imm(0));
    return load(x, from);
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

void Generator::operation() {
  switch (pick_int(0, policy_.unusual ? 13 : 10)) {
    case 0:
    case 1: return map_unary();
    case 2:
    case 3: return map_binary();
    case 4: return permute();
    case 5: return reduce();
    case 6:
    case 7: return contract();
    case 8: return convolve();
    case 9: return slice_or_pad();
    case 10: return rng_.chance(0.5) ? reshape() : cast();
    case 11: return concat();
    case 12: return gather();
    default: return scan();
  }
}

}  // namespace

GenPolicy random_policy(Rng& rng) {
  GenPolicy policy;
  policy.max_ops = static_cast<int>(rng.between(1, 8));
  policy.max_rank = static_cast<int>(rng.between(1, 4));
  policy.max_elements = rng.chance(0.3) ? 32 : 256;
  policy.max_iterations = 2048;
  policy.odd_extents = rng.chance(0.3) ? 0.9 : rng.chance(0.5) ? 0.5 : 0.1;
  policy.only_f32 = rng.chance(0.4);
  policy.transcendental = rng.chance(0.5);
  policy.unusual = rng.chance(0.5);
  return policy;
}

Program random_program(Rng& rng, const GenPolicy& policy) {
  const Rng start(rng.next());
  Roles roles;
  (void)Generator(start, policy, nullptr).run(&roles);
  Roles again;
  return Generator(start, policy, &roles).run(&again);
}

std::vector<Tensor> random_inputs(const Program& program, Rng& rng) {
  std::vector<Tensor> inputs;
  for (BufferId id : program.params()) {
    const Buffer& buffer = program.buffer(id);
    if (buffer.role != BufferRole::kInput) continue;
    const auto limit = static_cast<int64_t>(kInputBound);
    const bool has_sign = buffer.dtype != DType::kU8 && !is_bool(buffer.dtype);
    inputs.push_back(random_ints(buffer.dtype, shape_of(buffer), has_sign ? -limit : 0,
                                 is_bool(buffer.dtype) ? 1 : limit, rng));
  }
  return inputs;
}

}  // namespace prunerc::testing

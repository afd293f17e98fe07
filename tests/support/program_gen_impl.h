// The generator of random programs: what its operations share. Used by program_gen*.cc alone.
#ifndef PRUNERC_TESTS_SUPPORT_PROGRAM_GEN_IMPL_H_
#define PRUNERC_TESTS_SUPPORT_PROGRAM_GEN_IMPL_H_

#include "tests/support/block_maker.h"
#include "tests/support/program_gen.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::testing::program_gen {

using namespace prunerc::ir;  // NOLINT: a source file of tests

/// Whole numbers of at most this size are exact in the type, and so are sums that stay below it.
double exact_limit(DType dtype);
int64_t product(const std::vector<int64_t>& extents);

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

}  // namespace prunerc::testing::program_gen

#endif  // PRUNERC_TESTS_SUPPORT_PROGRAM_GEN_IMPL_H_

// Is a loop nest what an intrinsic describes? The order of loops and of commutative operands is
// free; all else must agree, strides included, or the instruction would read other elements. An output
// is read and written as a whole, so that its elements must be different ones.
#include "ir/arith/linear.h"
#include "ir/map.h"
#include "ir/query.h"
#include "ir/tensor/intrinsic.h"
#include "ir/visit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::ir {
namespace {

struct NestLoop {
  const Var* var;
  int64_t extent;
};

// The loops of a nest with more than one iteration, and the store inside.
struct Nest {
  std::vector<NestLoop> loops;
  VarMap units;  // variables of single iterations: 0
  const Store* store = nullptr;
  std::string problem;
};

Nest read_nest(IrBuilder& b, const Loop& top) {
  Nest out;
  Stmt s(&top);
  while (const Loop* loop = s.as<Loop>()) {
    const IntImm* extent = loop->extent.as<IntImm>();
    if (extent == nullptr) out.problem = "an extent is not constant";
    if (extent != nullptr && extent->value == 1) {
      out.units[loop->var->id] = b.int_imm(0);
    } else if (extent != nullptr) {
      out.loops.push_back({loop->var, extent->value});
    }
    s = loop->body;
  }
  out.store = s.as<Store>();
  if (out.store == nullptr) {
    out.problem = "inside its loops is a " + std::string(to_string(s.kind())) + ", not one store";
  }
  return out;
}

std::string list(const std::vector<int64_t>& items) {
  std::string out = "[";
  for (std::size_t i = 0; i < items.size(); ++i) {
    out += (i > 0 ? ", " : "") + std::to_string(items[i]);
  }
  return out + "]";
}

class Matcher {
 public:
  Matcher(IrBuilder& b, const TensorIntrinsic& t, const Nest& nest, const VarRanges& outside)
      : b_(b), t_(t), nest_(nest), ranges_(outside) {
    for (const NestLoop& loop : nest.loops) ranges_.bind(loop.var, b.int_imm(loop.extent));
    operands_.resize(t.operands.size());
  }

  // order[i]: the nest's loop for variable i of the description.
  bool run(const std::vector<std::size_t>& order) {
    order_ = order;
    std::fill(operands_.begin(), operands_.end(), Bound{});
    const Store& wanted = t_.store();
    return access(wanted.buffer, wanted.indices, nest_.store->buffer, nest_.store->indices) &&
           same(wanted.value, nest_.store->value) && distinct();
  }

  TensorMatch result() const {
    TensorMatch out;
    for (const Bound& bound : operands_) {
      out.operands.push_back({bound.buffer, bound.base, bound.strides, bound.dims});
    }
    return out;
  }
  const std::string& problem() const { return problem_; }

 private:
  struct Bound {
    BufferId buffer;
    std::vector<Linear> indices;
    std::vector<Expr> base;
    std::vector<int64_t> strides;  // per dimension of the operand
    std::vector<int> dims;
  };

  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  // The output shares no buffer with an input, and says of no operand where it is: the instruction
  // reads before it writes.
  bool distinct() {
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (!t_.operands[i].is_output) continue;
      const BufferId output = operands_[i].buffer;
      for (std::size_t k = 0; k < operands_.size(); ++k) {
        if (i != k && operands_[k].buffer == output) {
          return fail("one buffer is both " + t_.operands[i].name + " and " + t_.operands[k].name);
        }
        const std::vector<Expr>& base = operands_[k].base;
        if (std::any_of(base.begin(), base.end(),
                        [&](Expr index) { return loads_from(index, output); })) {
          return fail("a subscript of '" + std::string(b_.buffer(operands_[k].buffer).name) +
                      "' reads the output");
        }
      }
    }
    return true;
  }

  bool same(Expr wanted, Expr found) {
    if (wanted.dtype() != found.dtype()) {
      return fail("a value has type " + std::string(to_string(found.dtype())) + " where " +
                  std::string(to_string(wanted.dtype())) + " is needed");
    }
    if (wanted.kind() != found.kind()) {
      return fail("an operation is " + std::string(to_string(found.kind())) + " where " +
                  std::string(to_string(wanted.kind())) + " is needed");
    }
    if (const Load* load = wanted.as<Load>()) {
      const Load* other = found.as<Load>();
      return access(load->buffer, load->indices, other->buffer, other->indices);
    }
    if (const Cast* cast = wanted.as<Cast>()) {
      return same(cast->operand, found.as<Cast>()->operand);
    }
    const BinaryNode* x = as_binary(wanted);
    const BinaryNode* y = as_binary(found);
    if (x == nullptr) return fail("an operation is of no kind that is compared");
    const std::vector<Bound> before = operands_;
    if (same(x->lhs, y->lhs) && same(x->rhs, y->rhs)) return true;
    const ExprKind k = x->kind;
    if (k != ExprKind::kAdd && k != ExprKind::kMul) return false;
    operands_ = before;
    const std::string first = problem_;
    if (same(x->lhs, y->rhs) && same(x->rhs, y->lhs)) return true;
    problem_ = first;
    return false;
  }

  std::size_t operand_of(BufferId id) const {
    std::size_t i = 0;
    while (t_.operands[i].buffer != id) ++i;
    return i;
  }

  bool access(BufferId wanted, std::span<const Expr> wanted_indices, BufferId found,
              std::span<const Expr> found_indices) {
    const std::size_t at = operand_of(wanted);
    const TensorOperand& operand = t_.operands[at];
    const Buffer& buffer = b_.buffer(found);
    if (buffer.dtype != t_.description.buffer(wanted).dtype) {
      return fail("buffer '" + std::string(buffer.name) + "' holds " +
                  std::string(to_string(buffer.dtype)));
    }
    Bound now{found, {}, {}, {}, {}};
    for (Expr index : found_indices) {
      now.indices.push_back(to_linear(b_, substitute(b_, index, nest_.units), ranges_));
    }
    if (operands_[at].buffer.valid()) {
      if (operands_[at].buffer == found && operands_[at].indices == now.indices) return true;
      return fail("'" + std::string(buffer.name) + "' is accessed at two places");
    }
    std::vector<int64_t> strides;
    if (!split(buffer, now, &strides)) return false;
    if (!strides_fit(operand, wanted_indices, buffer, strides)) return false;
    if (operand.is_output && !are_digits(strides)) {
      return fail("elements of '" + std::string(buffer.name) + "' lie over each other");
    }
    note_dims(wanted_indices, strides, &now);
    operands_[at] = std::move(now);
    return true;
  }

  // Base and stride in memory per loop of the nest.
  bool split(const Buffer& buffer, Bound& bound, std::vector<int64_t>* strides) {
    strides->assign(nest_.loops.size(), 0);
    int64_t step = 1;
    std::vector<int64_t> steps(buffer.shape.size());
    for (std::size_t d = buffer.shape.size(); d-- > 0;) {
      steps[d] = step;
      const IntImm* extent = buffer.shape[d].as<IntImm>();
      if (extent == nullptr) return fail("a shape is not constant");
      if (__builtin_mul_overflow(step, extent->value, &step)) return fail("a shape is too large");
    }
    for (std::size_t d = 0; d < bound.indices.size(); ++d) {
      Linear base = Linear::of(bound.indices[d].constant);
      for (const Term& term : bound.indices[d].terms) {
        std::size_t loop = nest_.loops.size();
        for (std::size_t i = 0; i < nest_.loops.size(); ++i) {
          for (Expr factor : term.factors()) {
            if (mentions(factor, nest_.loops[i].var->id)) loop = i;
          }
        }
        if (loop == nest_.loops.size()) {
          base = base + Linear::of(term);
        } else if (term.degree == 1 && term.atoms[0].as<Var>() != nullptr) {
          int64_t moved = 0;
          if (__builtin_mul_overflow(term.coef, steps[d], &moved) ||
              __builtin_add_overflow((*strides)[loop], moved, &(*strides)[loop])) {
            return fail("a stride is too large");
          }
        } else {
          return fail("a subscript of '" + std::string(buffer.name) + "' is not affine");
        }
      }
      bound.base.push_back(to_expr(b_, base));
    }
    return true;
  }

  // Along which dimension of the buffer each of the operand's runs.
  void note_dims(std::span<const Expr> wanted_indices, const std::vector<int64_t>& strides,
                 Bound* bound) const {
    const std::span<const IterVar> vars = t_.block().iters;
    for (Expr wanted : wanted_indices) {
      const Var* var = wanted.as<Var>();
      std::size_t v = 0;
      while (v < vars.size() && (var == nullptr || vars[v].var->id != var->id)) ++v;
      if (v == vars.size()) {
        bound->strides.push_back(0);
        bound->dims.push_back(-1);
        continue;
      }
      const std::size_t loop = order_[v];
      bound->strides.push_back(strides[loop]);
      bound->dims.push_back(only_dim(*bound, nest_.loops[loop].var->id));
    }
  }

  // The one dimension in which the variable counts, by 1; -1 if it is not so.
  static int only_dim(const Bound& bound, VarId id) {
    int only = -1;
    for (std::size_t d = 0; d < bound.indices.size(); ++d) {
      for (const Term& term : bound.indices[d].terms) {
        if (!mentions(term.atoms[0], id)) continue;
        if (only >= 0 || term.coef != 1) return -1;
        only = static_cast<int>(d);
      }
    }
    return only;
  }

  bool strides_fit(const TensorOperand& operand, std::span<const Expr> wanted_indices,
                   const Buffer& buffer, const std::vector<int64_t>& strides) {
    const std::span<const IterVar> vars = t_.block().iters;
    for (std::size_t v = 0; v < vars.size(); ++v) {
      int64_t wanted = 0;
      for (std::size_t d = 0; d < wanted_indices.size(); ++d) {
        const Var* var = wanted_indices[d].as<Var>();
        if (var != nullptr && var->id == vars[v].var->id) wanted = operand.strides[d];
      }
      const NestLoop& loop = nest_.loops[order_[v]];
      const int64_t found = strides[order_[v]];
      const bool any = wanted == TensorOperand::kAnyStride && found != 0;
      if (any || wanted == found) continue;
      return fail("'" + std::string(buffer.name) + "' moves by " + std::to_string(found) +
                  " elements along '" + std::string(loop.var->name) + "' where operand " +
                  operand.name + " needs " + (wanted < 0 ? "a stride" : std::to_string(wanted)));
    }
    return true;
  }

  // No two iterations of the loops with a stride are at one element: each stride reaches beyond what
  // the smaller ones span.
  bool are_digits(const std::vector<int64_t>& strides) const {
    std::vector<std::pair<int64_t, int64_t>> digits;
    for (std::size_t i = 0; i < strides.size(); ++i) {
      if (strides[i] == 0) continue;
      if (strides[i] == INT64_MIN) return false;
      digits.emplace_back(std::abs(strides[i]), nest_.loops[i].extent);
    }
    std::sort(digits.begin(), digits.end());
    int64_t span = 0;
    for (const auto& [stride, extent] : digits) {
      int64_t more = 0;
      if (stride <= span || __builtin_mul_overflow(stride, extent - 1, &more) ||
          __builtin_add_overflow(span, more, &span)) {
        return false;
      }
    }
    return true;
  }

  IrBuilder& b_;
  const TensorIntrinsic& t_;
  const Nest& nest_;
  VarRanges ranges_;
  std::vector<std::size_t> order_;
  std::vector<Bound> operands_;
  std::string problem_;
};

}  // namespace

Result<TensorMatch> match_tensor(IrBuilder& b, const Loop& top, const TensorIntrinsic& intrinsic,
                                 const VarRanges& ranges) {
  auto mismatch = [&](std::string what) {
    return error(Diag::kTensorMismatch, top.id, intrinsic.name, std::move(what));
  };
  const Nest nest = read_nest(b, top);
  if (!nest.problem.empty()) return mismatch(nest.problem);
  std::vector<int64_t> wanted, found;
  for (const IterVar& iter : intrinsic.block().iters) {
    wanted.push_back(iter.extent.as<IntImm>()->value);
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    found.push_back(nest.loops[i].extent);
    order.push_back(i);
  }
  // Tried in the loops' own order first: its problem is the one to tell.
  std::string problem =
      "its loops have extents " + list(found) + " where " + list(wanted) + " are needed";
  if (found.size() != wanted.size()) return mismatch(problem);
  Matcher matcher(b, intrinsic, nest, ranges);
  bool told = false;
  do {
    bool fits = true;
    for (std::size_t i = 0; i < order.size(); ++i) fits &= found[order[i]] == wanted[i];
    if (!fits) continue;
    if (matcher.run(order)) return matcher.result();
    if (!told) problem = matcher.problem();
    told = true;
  } while (std::next_permutation(order.begin(), order.end()));
  return mismatch(problem);
}

}  // namespace prunerc::ir

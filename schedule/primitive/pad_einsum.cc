// pad_einsum(@B, [4]): a sum of products is rounded up by operands padded with 0. Needs: a
// canonical nest; a sum from 0 of products of different buffers, whose padding is known to make
// each added product 0 (DESIGN.md, D24); padded variables alone in their subscripts. After: what is
// beyond the output is dropped; which copies there are depends on multiples, never on extents.
//   for k in 6 { block @B [v: R(6) = k] { init { C[0] = 0f32 } C[0] = C[0] + A[v]*W[v] } }
// ~>
//   block "A_pad" @B1 [v0: S(8) = ax0] { A_pad[v0] = select(v0 < 6, A[v0], 0f32) }  W_pad alike
//   for k in 8 { block @B [v: R(8) = k] { .. C[0] = C[0] + A_pad[v]*W_pad[v] } }
#include "ir/analysis/region.h"
#include "ir/arith/simplify.h"
#include "ir/map.h"
#include "ir/query.h"
#include "ir/visit.h"
#include "schedule/legality/canonical_nest.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/buffer.h"
#include "schedule/rewrite/nest.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

/// Of a dimension: its subscript is a constant; or of variables that are not padded, a window say.
constexpr int kConstant = -1, kWindow = -2;

// One operand: for each dimension the block's variable that is its subscript, or one of the above.
struct Factor {
  BufferId buffer;
  std::vector<int> iters;
  std::vector<Expr> indices;
};

struct EinsumPlan {
  LeafBlock leaf;
  std::vector<Factor> inputs;
  Factor output;
  std::unique_ptr<IrBuilder> builder;  // owns the padded extents
  std::vector<int64_t> multiples;      // with tile parameters: those of the witness
  /// By the block's variables.
  std::vector<int64_t> extents;
  std::vector<Expr> padded;

  /// Whether the operand gets a copy: that must not depend on extents, as ids would.
  bool copies(const Factor& operand) const {
    return std::any_of(operand.iters.begin(), operand.iters.end(), [&](int i) {
      return i >= 0 && multiples[static_cast<std::size_t>(i)] != 1;
    });
  }
};

class EinsumPlanner {
 public:
  explicit EinsumPlanner(const Program& program) : program_(program), flow_(program) {}
  Result<EinsumPlan> plan(const Call& call);

 private:
  Error unfit(std::string what) const {
    return error(Diag::kEinsumForm, block_->id, std::move(what));
  }
  bool is_padded_by(Expr index) const;
  Result<Factor> operand(BufferId buffer, std::span<const Expr> indices);
  Result<void> factors(Expr e);
  Result<void> find_operands();
  Result<void> check_sizes();
  Result<void> check_zeros();

  const Program& program_;
  Dataflow flow_;
  std::size_t place_ = 0;
  const Block* block_ = nullptr;
  EinsumPlan plan_;
};

// By multiples, not by extents.
bool EinsumPlanner::is_padded_by(Expr index) const {
  for (std::size_t i = 0; i < block_->iters.size(); ++i) {
    if (plan_.multiples[i] != 1 && mentions(index, block_->iters[i].var->id)) return true;
  }
  return false;
}

Result<Factor> EinsumPlanner::operand(BufferId buffer, std::span<const Expr> indices) {
  Factor out{buffer, {}, {indices.begin(), indices.end()}};
  for (Expr index : indices) {
    int found = kConstant;
    for (std::size_t i = 0; i < block_->iters.size(); ++i) {
      const Var* var = index.as<Var>();
      if (var != nullptr && var->id == block_->iters[i].var->id) found = static_cast<int>(i);
    }
    if (found < 0 && !constant(index)) {
      if (has_load(index) || is_padded_by(index)) {
        return unfit("a subscript of '" + std::string(program_.buffer(buffer).name) +
                     "' is no variable, but has one that is padded");
      }
      found = kWindow;
    }
    if (found >= 0 && std::count(out.iters.begin(), out.iters.end(), found) > 0) {
      return unfit("a variable stands twice in the subscripts of '" +
                   std::string(program_.buffer(buffer).name) + "'");
    }
    out.iters.push_back(found);
  }
  if (!constant_shape(program_.buffer(buffer))) return unfit("a shape is not constant");
  return out;
}

// The operands of a product, conversions aside.
Result<void> EinsumPlanner::factors(Expr e) {
  if (const Mul* product = e.as<Mul>()) {
    PRUNERC_TRY_VOID(factors(product->lhs));
    return factors(product->rhs);
  }
  if (const Cast* cast = e.as<Cast>()) return factors(cast->operand);
  const Load* load = e.as<Load>();
  if (load == nullptr) return unfit("it is no sum of products of elements");
  PRUNERC_TRY(Factor found, operand(load->buffer, load->indices));
  for (const Factor& other : plan_.inputs) {
    if (other.buffer == found.buffer) return unfit("a buffer stands twice in the product");
  }
  plan_.inputs.push_back(std::move(found));
  return {};
}

Result<void> EinsumPlanner::find_operands() {
  const std::optional<Reducer> reducer = match_reducer(*block_);
  const Store* init = block_->init.as<Store>();
  if (!reducer || reducer->op != ExprKind::kAdd || init == nullptr ||
      !is_identity(ExprKind::kAdd, init->value)) {
    return unfit("0 is the identity of sums from 0 alone");
  }
  PRUNERC_TRY(plan_.output, operand(reducer->store->buffer, reducer->store->indices));
  const std::vector<int>& written = plan_.output.iters;
  if (std::find(written.begin(), written.end(), kWindow) != written.end())
    return unfit("a subscript of the output is neither a variable nor a constant");
  PRUNERC_TRY_VOID(factors(reducer->update));
  for (const Factor& input : plan_.inputs) {
    for (const std::size_t writer : flow_.writers(input.buffer)) {
      if (writer > place_)
        return error(Diag::kBlockProducerLate, block_->id, flow_[writer].block->id);
    }
  }
  return {};
}

// Programs with tile parameters: the sizes of the witness.
Result<void> EinsumPlanner::check_sizes() {
  std::vector<const Factor*> all = {&plan_.output};
  for (const Factor& input : plan_.inputs) all.push_back(&input);
  for (const Factor* operand : all) {
    int64_t elements = 1;
    const std::vector<int64_t> shape = *constant_shape(program_.buffer(operand->buffer));
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const int i = operand->iters[d];
      if (i == kConstant) continue;
      int64_t padded = shape[d];
      if (i >= 0) {
        const auto at = static_cast<std::size_t>(i);
        const int64_t by = plan_.multiples[at];
        padded = (plan_.extents[at] + by - 1) / by * by;
      }
      if (padded > kMaxExtent / elements) return unfit("a padded operand is too large");
      elements *= padded;
    }
  }
  return {};
}

// What is added is 0 wherever a reduction variable is beyond its extent.
Result<void> EinsumPlanner::check_zeros() {
  const bool exact = !is_float(program_.buffer(plan_.output.buffer).dtype);
  for (std::size_t i = 0; i < block_->iters.size(); ++i) {
    const IterVar& iter = block_->iters[i];
    const bool is_padded = constant(plan_.padded[i]) != plan_.extents[i];
    const int position = static_cast<int>(i);
    if (!is_padded) continue;
    if (iter.kind == IterKind::kSpatial) {
      const std::vector<int>& written = plan_.output.iters;
      if (std::find(written.begin(), written.end(), position) != written.end()) continue;
      return unfit("'" + std::string(iter.var->name) + "' is in no subscript of the output");
    }
    std::size_t zeros = 0;
    for (const Factor& input : plan_.inputs) {
      zeros += std::count(input.iters.begin(), input.iters.end(), position) > 0 ? 1 : 0;
    }
    if (zeros < (exact ? 1 : plan_.inputs.size())) {
      return unfit("a product with '" + std::string(iter.var->name) +
                   "' beyond its extent is not known to be 0");
    }
  }
  return {};
}

Result<EinsumPlan> EinsumPlanner::plan(const Call& call) {
  const BlockId id = call.block(0);
  const std::vector<int64_t> multiples = call.integers(1);
  PRUNERC_TRY(place_, flow_.find(id));
  plan_.leaf = flow_[place_];
  block_ = plan_.leaf.block;
  const std::string fault = canonical_nest_fault(program_, plan_.leaf);
  if (!fault.empty()) return unfit(fault);
  if (multiples.size() != block_->iters.size()) {
    return unfit("it has " + std::to_string(block_->iters.size()) + " variables, found " +
                 std::to_string(multiples.size()) + " multiples");
  }
  plan_.multiples = multiples;
  for (std::size_t i = 0; i < multiples.size(); ++i) {
    if (multiples[i] < 1 || multiples[i] > kMaxExtent) return unfit("a multiple is at least 1");
    const int64_t extent = *constant(block_->iters[i].extent);
    if (extent > kMaxExtent) return unfit("an extent is too large");
    plan_.extents.push_back(extent);
    if ((extent + multiples[i] - 1) / multiples[i] * multiples[i] > kMaxExtent) {
      return unfit("an extent is too large");
    }
  }
  plan_.builder = std::make_unique<IrBuilder>(program_);
  IrBuilder& b = *plan_.builder;
  const VarRanges ranges(program_.domain());
  for (const Expr multiple : call.sizes(b, 1)) {
    const Expr extent = block_->iters[plan_.padded.size()].extent;
    const Expr padded = times(b, ceildiv(b, extent, multiple), multiple);
    plan_.padded.push_back(constant(padded) ? padded : simplify(b, padded, ranges));
  }
  const std::string order = order_fault(b, program_, *block_);
  if (!order.empty()) return error(Diag::kBlockOrderFixed, id, order);
  PRUNERC_TRY_VOID(find_operands());
  PRUNERC_TRY_VOID(check_sizes());
  PRUNERC_TRY_VOID(on_instance(program_, [&] { return check_zeros(); }));
  return std::move(plan_);
}

class EinsumRewrite {
 public:
  EinsumRewrite(const Program& program, const EinsumPlan& plan)
      : program_(program), plan_(plan), b_(*plan.builder) {}

  Applied run() {
    std::vector<Stmt> all;
    Stmt nest = top_of(plan_.leaf);
    for (const Factor& input : plan_.inputs) {
      if (!plan_.copies(input)) continue;
      const BufferId padded = add_padded(input);
      all.push_back(copy_in(input, padded));
      nest = redirect(nest, input, padded);
    }
    Stmt after;
    if (plan_.copies(plan_.output)) {
      const BufferId padded = add_padded(plan_.output);
      after = copy_out(padded);
      nest = redirect(nest, plan_.output, padded);
    }
    all.push_back(grow(nest));
    if (after.defined()) all.push_back(after);
    Site site;
    if (program_.root().as<Seq>() != nullptr) site.path.push_back(program_.root());
    site.path.push_back(top_of(plan_.leaf));
    out_.program = b_.finish(replace_at(b_, site, b_.seq(all)));
    return std::move(out_);
  }

 private:
  Expr padded_extent(const Factor& operand, std::size_t d) const {
    const int iter = operand.iters[d];
    if (iter >= 0) return plan_.padded[static_cast<std::size_t>(iter)];
    return program_.buffer(operand.buffer).shape[d];
  }
  int64_t extent(int iter) const { return plan_.extents[static_cast<std::size_t>(iter)]; }

  BufferId add_padded(const Factor& operand) {
    const Buffer& buffer = program_.buffer(operand.buffer);
    std::vector<Expr> shape;
    for (std::size_t d = 0; d < operand.iters.size(); ++d) {
      shape.push_back(padded_extent(operand, d));
    }
    return b_.add_buffer(std::string(buffer.name) + "_pad", buffer.dtype, shape, Scope::kGlobal,
                         BufferRole::kIntermediate);
  }

  // One variable per dimension but for constants, which stay.
  std::vector<Expr> indices(const Factor& operand, std::span<const Expr> vars) const {
    std::vector<Expr> out = operand.indices;
    for (std::size_t d = 0, next = 0; d < out.size(); ++d) {
      if (operand.iters[d] != kConstant) out[d] = vars[next++];
    }
    return out;
  }

  Stmt copy_in(const Factor& operand, BufferId padded) {
    const DType dtype = program_.buffer(operand.buffer).dtype;
    std::vector<Expr> extents;
    for (std::size_t d = 0; d < operand.iters.size(); ++d) {
      if (operand.iters[d] != kConstant) extents.push_back(padded_extent(operand, d));
    }
    const std::string name(b_.buffer(padded).name);
    NewNest nest = make_nest(b_, name, extents, [&](std::span<const Expr> vars) {
      const std::vector<Expr> at = indices(operand, vars);
      Expr inside;
      for (std::size_t d = 0; d < at.size(); ++d) {
        const int iter = operand.iters[d];
        if (iter < 0 || constant(padded_extent(operand, d)) == extent(iter)) continue;
        const Expr below = b_.lt(at[d], b_.int_imm(extent(iter)));
        inside = conjoin(b_, inside, below);
      }
      const Expr element = b_.load(operand.buffer, at);
      if (!inside.defined()) return b_.store(padded, at, element);
      return b_.store(padded, at, b_.select(inside, element, b_.constant(0, dtype)));
    });
    out_.outputs.push_back(nest.outputs[0]);
    return nest.stmt;
  }

  Stmt copy_out(BufferId padded) {
    const Factor& operand = plan_.output;
    std::vector<int64_t> extents;
    for (int iter : operand.iters) {
      if (iter >= 0) extents.push_back(extent(iter));
    }
    const std::string name = std::string(b_.buffer(padded).name) + "_out";
    NewNest nest = make_nest(b_, name, extents, [&](std::span<const Expr> vars) {
      const std::vector<Expr> at = indices(operand, vars);
      return b_.store(operand.buffer, at, b_.load(padded, at));
    });
    out_.outputs.push_back(nest.outputs[0]);
    return nest.stmt;
  }

  Stmt redirect(Stmt nest, const Factor& operand, BufferId padded) {
    return move_accesses(b_, nest, operand.buffer, padded,
                         [](std::span<const Expr> at, const VarRanges&) {
                           return std::vector<Expr>(at.begin(), at.end());
                         });
  }

  // The nest with the padded extents.
  Stmt grow(Stmt s) {
    if (const Loop* loop = s.as<Loop>()) {
      Loop copy = *loop;
      for (std::size_t i = 0; i < plan_.padded.size(); ++i) {
        const Var* var = plan_.leaf.block->iters[i].binding.as<Var>();
        if (var->id == loop->var->id) copy.extent = plan_.padded[i];
      }
      copy.body = grow(loop->body);
      return b_.loop(copy);
    }
    Block copy = *s.as<Block>();
    std::vector<IterVar> iters(copy.iters.begin(), copy.iters.end());
    for (std::size_t i = 0; i < iters.size(); ++i) iters[i].extent = plan_.padded[i];
    copy.iters = iters;
    rebuild_accesses(b_, copy);
    return b_.block(copy);
  }

  const Program& program_;
  const EinsumPlan& plan_;
  IrBuilder& b_;
  Applied out_;
};

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kPadEinsum>(const Program& program, const Call& call) {
  PRUNERC_TRY(const EinsumPlan plan, EinsumPlanner(program).plan(call));
  return EinsumRewrite(program, plan).run();
}

}  // namespace prunerc::schedule

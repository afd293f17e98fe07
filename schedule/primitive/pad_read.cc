// pad_read(@B, 0, "global"): a block reads through a copy that has room for all its subscripts.
// Needs: one tuple of subscripts, bounded, that leaves the buffer; final values; a select between a
// read and a constant by bounds of the buffer. After: such bounds are gone, as the copy has the
// constant around; reads behind other conditions stay behind them.
//   block @B [v: S(8) = i] { Y[v] = select(1 <= v && v < 7, X[v - 1], 0f32) }   X has 6 elements
// ~>
//   block "X_pad" [v: S(8) = ax0] { X_pad[v] = select(1 <= v && v < 7, X[v - 1], 0f32) }
//   block @B [v: S(8) = i] { Y[v] = X_pad[v] }
#include "ir/analysis/region.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "ir/map.h"
#include "schedule/legality/dataflow.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/buffer.h"
#include "schedule/rewrite/nest.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

// One subscript: what it may be, and the buffer's extent there.
struct Dim {
  Linear index;
  Interval reached;
  int64_t extent = 0;
};

struct PadPlan {
  Site site;
  BufferId buffer;
  Scope scope = Scope::kGlobal;
  std::unique_ptr<IrBuilder> builder;
  VarRanges ranges;  // of the block's variables
  std::vector<Expr> subscripts;
  std::vector<Dim> dims;
  Expr outside;  // the value around the buffer
};

// value >= 0 as a linear form; nullopt if the condition is no comparison of integers.
std::optional<Linear> nonnegative(IrBuilder& b, Expr condition, const VarRanges& ranges) {
  const BinaryNode* node = as_binary(condition);
  const bool less = condition.kind() == ExprKind::kLt;
  if (node == nullptr || (!less && condition.kind() != ExprKind::kLe)) return std::nullopt;
  if (node->lhs.dtype() != DType::kI64) return std::nullopt;
  const Linear out = to_linear(b, node->rhs, ranges) - to_linear(b, node->lhs, ranges);
  return less ? out + -1 : out;
}

// Does the condition say that a subscript is not before, or not behind, the buffer?
bool is_bound(IrBuilder& b, const std::vector<Dim>& dims, Expr condition, const VarRanges& ranges) {
  const std::optional<Linear> value = nonnegative(b, condition, ranges);
  if (!value || value->overflow) return false;
  return std::any_of(dims.begin(), dims.end(), [&](const Dim& dim) {
    return *value == dim.index || *value == Linear::of(dim.extent - 1) - dim.index;
  });
}

class PadPlanner {
 public:
  explicit PadPlanner(const Program& program) : program_(program), flow_(program) {}
  Result<PadPlan> plan(const Call& call);

 private:
  Error unfit(std::string what) const {
    return error(Diag::kReindexForm, block_->id, std::string(program_.buffer(plan_.buffer).name),
                 std::move(what));
  }
  void visit(Expr e);
  Result<void> find_subscripts();
  Result<void> find_outside();

  const Program& program_;
  Dataflow flow_;
  const Block* block_ = nullptr;
  PadPlan plan_;
  bool several_ = false, any_ = false;
};

void PadPlanner::visit(Expr e) {
  walk(e, [&](Expr part) {
    const Load* load = part.as<Load>();
    if (load == nullptr || load->buffer != plan_.buffer) return true;
    if (!any_) plan_.subscripts.assign(load->indices.begin(), load->indices.end());
    any_ = true;
    several_ |= !std::equal(load->indices.begin(), load->indices.end(), plan_.subscripts.begin(),
                            [](Expr x, Expr y) { return structural_equal(x, y); });
    return true;
  });
}

Result<void> PadPlanner::find_subscripts() {
  for (const Stmt part : {block_->init, block_->body}) {
    if (!part.defined()) continue;
    walk(
        part, [](Stmt) { return true; }, [&](Expr e) { visit(e); });
  }
  if (several_) return unfit("it reads it at several places");
  bool leaves = false;
  const std::optional<std::vector<int64_t>> shape = constant_shape(program_.buffer(plan_.buffer));
  for (const IterVar& iter : block_->iters) {
    if (!constant(iter.extent)) return unfit("an extent is not constant");
    plan_.ranges.bind(iter.var, iter.extent);
  }
  if (!shape || !any_) return unfit("its shape is not constant");
  int64_t elements = 1;
  for (std::size_t d = 0; d < shape->size(); ++d) {
    Dim dim{to_linear(*plan_.builder, plan_.subscripts[d], plan_.ranges), {}, (*shape)[d]};
    dim.reached = interval_of(dim.index, plan_.ranges);
    const bool far = dim.reached.lo < -kMaxExtent || dim.reached.hi > kMaxExtent;
    if (dim.index.overflow || dim.index.has_data || far) return unfit("a subscript has no bounds");
    const int64_t extent = dim.reached.hi - dim.reached.lo + 1;
    if (extent > kMaxExtent / elements) return unfit("the copy would be too large");
    elements *= extent;
    leaves |= dim.reached.lo < 0 || dim.reached.hi >= dim.extent;
    plan_.dims.push_back(std::move(dim));
  }
  if (!leaves) return unfit("no subscript leaves it");
  return {};
}

// The value that selects have where a bound fails.
Result<void> PadPlanner::find_outside() {
  bool differ = false;
  const auto look = [&](Expr e) {
    walk(e, [&](Expr part) {
      const Select* select = part.as<Select>();
      const Load* load = select != nullptr ? select->on_true.as<Load>() : nullptr;
      if (load == nullptr || load->buffer != plan_.buffer) return true;
      const std::vector<Expr> all = conjuncts(select->condition);
      const bool bounded = std::any_of(all.begin(), all.end(), [&](Expr c) {
        return is_bound(*plan_.builder, plan_.dims, c, plan_.ranges);
      });
      const Expr other = select->on_false;
      if (!bounded || (other.as<IntImm>() == nullptr && other.as<FloatImm>() == nullptr)) {
        return true;
      }
      differ |= plan_.outside.defined() && !structural_equal(plan_.outside, other);
      plan_.outside = other;
      return true;
    });
  };
  for (const Stmt part : {block_->init, block_->body}) {
    if (part.defined())
      walk(
          part, [](Stmt) { return true; }, look);
  }
  if (differ) return unfit("its reads have different values outside of it");
  if (!plan_.outside.defined()) return unfit("no select between it and a constant has its bounds");
  return {};
}

Result<PadPlan> PadPlanner::plan(const Call& call) {
  PRUNERC_TRY(const std::size_t place, flow_.find(call.block(0)));
  PRUNERC_TRY(plan_.site, find_block(program_, call.block(0)));
  block_ = flow_[place].block;
  PRUNERC_TRY(plan_.buffer, accessed_buffer(*block_, block_->reads, call.integer(1)));
  const std::optional<Scope> scope = scope_from_string(call.text(2));
  if (!scope) return error(Diag::kScopeUnknown, call.text(2));
  plan_.scope = *scope;
  if (writes(*block_, plan_.buffer)) {
    return error(Diag::kBlockNotSimple, block_->id, std::string("not write what it pads"));
  }
  for (const std::size_t writer : flow_.writers(plan_.buffer)) {
    if (writer > place || flow_.same_statement(writer, place)) {
      return error(Diag::kBlockProducerLate, block_->id, flow_[writer].block->id);
    }
  }
  plan_.builder = std::make_unique<IrBuilder>(program_);
  PRUNERC_TRY_VOID(find_subscripts());
  PRUNERC_TRY_VOID(find_outside());
  return std::move(plan_);
}

class PadRewrite {
 public:
  PadRewrite(const Program& program, const PadPlan& plan)
      : plan_(plan), b_(*plan.builder), original_(program.buffer(plan.buffer)) {}

  Applied run() {
    std::vector<int64_t> extents;
    std::vector<Expr> shape;
    for (const Dim& dim : plan_.dims) {
      extents.push_back(dim.reached.hi - dim.reached.lo + 1);
      shape.push_back(b_.int_imm(extents.back()));
    }
    const std::string name = std::string(original_.name) + "_pad";
    padded_ = b_.add_buffer(name, original_.dtype, shape, plan_.scope, BufferRole::kIntermediate);
    const NewNest copy = make_nest(b_, std::string(b_.buffer(padded_).name), extents,
                                   [&](std::span<const Expr> vars) { return copy_in(vars); });
    Block block = *plan_.site.block();
    const auto read = [this](Expr e) { return redirect(e); };
    if (block.init.defined()) block.init = map_exprs(b_, block.init, read);
    block.body = map_exprs(b_, block.body, read);
    rebuild_accesses(b_, block);
    const Stmt changed = replace_at(b_, plan_.site.outermost_statement(), b_.block(block));
    const Stmt both = b_.seq({copy.stmt, changed});
    return {b_.finish(replace_at(b_, plan_.site, both, plan_.site.outermost_depth())),
            copy.outputs,
            {}};
  }

 private:
  Stmt copy_in(std::span<const Expr> vars) {
    std::vector<Expr> at;
    Expr inside;
    for (std::size_t d = 0; d < vars.size(); ++d) {
      const Dim& dim = plan_.dims[d];
      const int64_t first = dim.reached.lo;
      const Expr shift = b_.int_imm(std::abs(first));
      at.push_back(first == 0  ? vars[d]
                   : first < 0 ? b_.sub(vars[d], shift)
                               : b_.add(vars[d], shift));
      if (first < 0) inside = conjoin(b_, inside, b_.le(b_.int_imm(0), at[d]));
      if (dim.reached.hi >= dim.extent) {
        inside = conjoin(b_, inside, b_.lt(at[d], b_.int_imm(dim.extent)));
      }
    }
    return b_.store(padded_, vars, b_.select(inside, b_.load(original_.id, at), plan_.outside));
  }

  Expr redirect(Expr e) {
    const Load* load = e.as<Load>();
    if (load != nullptr && load->buffer == original_.id) {
      std::vector<Expr> at;
      for (const Dim& dim : plan_.dims) {
        at.push_back(simplify(b_, to_expr(b_, dim.index + -dim.reached.lo), plan_.ranges));
      }
      return b_.load(padded_, at);
    }
    const Expr moved = map_children(b_, e, [this](Expr child) { return redirect(child); });
    const Select* select = e.as<Select>();
    const Load* guarded = select != nullptr ? select->on_true.as<Load>() : nullptr;
    if (guarded == nullptr || guarded->buffer != original_.id ||
        !structural_equal(select->on_false, plan_.outside)) {
      return moved;
    }
    Expr rest;
    for (Expr part : conjuncts(select->condition)) {
      if (is_bound(b_, plan_.dims, part, plan_.ranges)) continue;
      rest = conjoin(b_, rest, redirect(part));
    }
    const Expr value = moved.as<Select>()->on_true;
    return rest.defined() ? b_.select(rest, value, select->on_false) : value;
  }

  const PadPlan& plan_;
  IrBuilder& b_;
  const Buffer& original_;
  BufferId padded_;
};

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kPadRead>(const Program& program, const Call& call) {
  PRUNERC_TRY(const PadPlan plan, PadPlanner(program).plan(call));
  return PadRewrite(program, plan).run();
}

}  // namespace prunerc::schedule

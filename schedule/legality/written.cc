#include "schedule/legality/written.h"

#include "ir/analysis/region.h"
#include "ir/arith/prove.h"
#include "ir/arith/simplify.h"
#include "ir/map.h"
#include "ir/printer.h"
#include "ir/visit.h"
#include "schedule/legality/access_region.h"
#include "schedule/legality/lifetime.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

constexpr ProveOptions kEffort = {.max_points = 20'000};

Error invalid(const Program& program, std::string why) {
  return error(Diag::kProgramInvalid, std::string(program.name()), std::move(why));
}

// Looks for a load of one block that nothing in its iteration can have written.
class LoadChecker {
 public:
  LoadChecker(IrBuilder& b, BufferId buffer, std::vector<BufferRegion> written, VarRanges ranges)
      : b_(b), buffer_(buffer), written_(std::move(written)), ranges_(std::move(ranges)) {}

  /// The load's indices, over loops' variables; nullopt if there is none.
  std::optional<std::vector<Expr>> find(const Block& block) {
    for (const IterVar& iter : block.iters) bindings_[iter.var->id] = iter.binding;
    if (block.guard.defined()) holds_.push_back({block.guard, true});
    stmt(block.body);
    return found_;
  }

 private:
  template <typename F>
  void under(Expr condition, bool holds, F&& f) {
    holds_.push_back({substitute(b_, condition, bindings_), holds});
    f();
    holds_.pop_back();
  }

  void stmt(Stmt s) {
    if (!s.defined() || found_) return;
    if (const Loop* loop = s.as<Loop>()) {
      const VarRanges::Mark mark = ranges_.mark();
      ranges_.bind(loop->var, loop->extent);
      stmt(loop->body);
      ranges_.rewind(mark);
    } else if (const If* choice = s.as<If>()) {
      expr(choice->condition);
      under(choice->condition, true, [&] { stmt(choice->then_body); });
      under(choice->condition, false, [&] { stmt(choice->else_body); });
    } else {
      for_each_child(
          s, [&](Stmt child) { stmt(child); }, [&](Expr e) { expr(e); });
    }
  }

  // Operands that are not evaluated hold no load.
  void expr(Expr e) {
    if (found_) return;
    if (const Select* choice = e.as<Select>()) {
      expr(choice->condition);
      under(choice->condition, true, [&] { expr(choice->on_true); });
      under(choice->condition, false, [&] { expr(choice->on_false); });
      return;
    }
    if (e.kind() == ExprKind::kAnd || e.kind() == ExprKind::kOr) {
      const BinaryNode* both = as_binary(e);
      expr(both->lhs);
      under(both->lhs, e.kind() == ExprKind::kAnd, [&] { expr(both->rhs); });
      return;
    }
    for_each_child(e, [&](Expr child) { expr(child); });
    const Load* load = e.as<Load>();
    if (load != nullptr && load->buffer == buffer_) check(*load);
  }

  void check(const Load& load) {
    std::vector<Expr> at;
    for (Expr index : load.indices) {
      at.push_back(simplify(b_, substitute(b_, index, bindings_), ranges_));
      if (has_load(at.back())) return;
    }
    Expr any;
    for (const BufferRegion& box : written_) {
      Expr inside = b_.bool_imm(true);
      for (std::size_t d = 0; d < at.size(); ++d) {
        const Range& range = box.box[d];
        inside = b_.logical_and(inside, b_.le(range.min, at[d]));
        inside = b_.logical_and(inside, b_.lt(at[d], b_.add(range.min, range.extent)));
      }
      any = any.defined() ? b_.logical_or(any, inside) : inside;
    }
    if (!any.defined()) return;
    // Where the conditions around do not hold nothing is read.
    for (const auto& [condition, holds] : holds_) {
      any = b_.logical_or(holds ? b_.logical_not(condition) : condition, any);
    }
    if (prove(any, ranges_, kEffort) == Proof::kNo) found_ = std::move(at);
  }

  IrBuilder& b_;
  BufferId buffer_;
  std::vector<BufferRegion> written_;
  VarRanges ranges_;
  VarMap bindings_;
  std::vector<std::pair<Expr, bool>> holds_;  // conditions around
  std::optional<std::vector<Expr>> found_;
};

LeafBlock inside(const LeafBlock& leaf, std::size_t num_outer) {
  return {leaf.block,
          {leaf.loops.begin() + static_cast<std::ptrdiff_t>(num_outer), leaf.loops.end()}};
}

std::string text_of(const Program& program, std::span<const Expr> indices) {
  std::string out;
  for (Expr index : indices) out += (out.empty() ? "" : ", ") + print(program, index);
  return out;
}

Result<void> check_lifetime(IrBuilder& b, const Dataflow& flow, const Buffer& buffer) {
  const std::vector<const Loop*> life = life_of(flow, buffer.id);
  const std::size_t depth = life.size();
  if (depth == 0) return {};
  VarRanges ranges(flow.program().domain());
  for (const Loop* loop : life) ranges.bind(loop->var, loop->extent);
  std::vector<BufferRegion> written;
  for (const std::size_t place : flow.writers(buffer.id)) {
    const LeafBlock leaf = inside(flow[place], depth);
    for (const Access& write : leaf.block->writes) {
      if (write.buffer == buffer.id) written.push_back(access_box(b, leaf, write, ranges));
    }
  }
  for (const std::size_t place : flow.readers(buffer.id)) {
    const Block& block = *flow[place].block;
    if (!flow.find(block.id).ok()) continue;
    VarRanges all = ranges;
    for (const Loop* loop : inside(flow[place], depth).loops) all.bind(loop->var, loop->extent);
    const auto found = LoadChecker(b, buffer.id, written, std::move(all)).find(block);
    if (!found) continue;
    return invalid(flow.program(), "block @B" + std::to_string(block.id.value) + " reads " +
                                       quoted_name(flow.program(), buffer.id) + " at [" +
                                       text_of(flow.program(), *found) + "], but " +
                                       quoted_name(flow.program(), buffer.id) +
                                       " lives in one iteration of loop @L" +
                                       std::to_string(life.back()->id.value) +
                                       ", which does not always write that element");
  }
  return {};
}

}  // namespace

Result<void> verify_lifetimes(const Program& program) {
  const Dataflow flow(program);
  IrBuilder b(program);
  for (const Buffer& buffer : program.buffers()) {
    if (buffer.role != BufferRole::kIntermediate) continue;
    PRUNERC_TRY_VOID(check_lifetime(b, flow, buffer));
  }
  return {};
}

Result<void> verify_outputs_written(const Program& program) {
  const Dataflow flow(program);
  IrBuilder b(program);
  for (const Buffer& buffer : program.buffers()) {
    if (buffer.role != BufferRole::kOutput) continue;
    std::optional<BufferRegion> written;
    for (const std::size_t place : flow.writers(buffer.id)) {
      VarRanges ranges(program.domain());
      for (const Loop* loop : flow[place].loops) ranges.bind(loop->var, loop->extent);
      if (flow[place].block->guard.defined()) ranges.assume(flow[place].block->guard);
      std::vector<VarId> vars;
      for (const Loop* loop : flow[place].loops) vars.push_back(loop->var->id);
      for (const Access& write : flow[place].block->writes) {
        if (write.buffer != buffer.id) continue;
        const BufferRegion bound = bound_region(b, *flow[place].block, write);
        const BufferRegion box = relax_region(b, bound, vars, ranges);
        written = written ? hull(b, *written, box, ranges) : box;
      }
    }
    if (!written)
      return invalid(program, "output " + quoted_name(program, buffer.id) + " is never written");
    for (std::size_t d = 0; d < buffer.shape.size(); ++d) {
      const std::optional<int64_t> size = constant(buffer.shape[d]);
      const std::optional<int64_t> first = constant(written->box[d].min);
      const std::optional<int64_t> count = constant(written->box[d].extent);
      if (!size || !first || !count) continue;
      const int64_t end = *first + *count;
      if (*first <= 0 && end >= *size) continue;
      const std::string where = end < *size ? std::to_string(std::max<int64_t>(end, 0)) + " .. " +
                                                  std::to_string(*size - 1)
                                            : "0 .. " + std::to_string(*first - 1);
      return invalid(program, "elements " + where + " of dimension " + std::to_string(d) +
                                  " of output " + quoted_name(program, buffer.id) +
                                  " are never written");
    }
  }
  return {};
}

}  // namespace prunerc::schedule

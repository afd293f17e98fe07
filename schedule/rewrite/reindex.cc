#include "schedule/rewrite/reindex.h"

#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "ir/tensor/index_map.h"
#include "ir/visit.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"
#include "schedule/rewrite/buffer.h"
#include "schedule/rewrite/nest.h"

#include <algorithm>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct ReindexPlan {
  Side side = Side::kRead;
  Site site;
  BufferId buffer;
  Scope scope = Scope::kGlobal;
  std::vector<Expr> subscripts;  // over the block's variables
  std::vector<bool> used;        // by the block's variables: in the subscripts
  IndexMap map;                  // from all of the block's variables
  Layout layout;
};

class ReindexPlanner {
 public:
  explicit ReindexPlanner(const Program& program) : program_(program), flow_(program) {}
  Result<ReindexPlan> plan(const ReindexArgs& args);

 private:
  Error unfit(std::string what) const {
    return error(Diag::kReindexForm, block_->id, std::string(program_.buffer(plan_.buffer).name),
                 std::move(what));
  }
  void visit_expr(Expr e, bool conditional);
  void visit_stmt(Stmt s, bool conditional);
  void found(std::span<const Expr> indices, bool conditional);
  Result<void> find_access();
  Result<void> find_map(const ReindexArgs& args);
  Result<void> check_read();
  Result<void> check_write();
  bool stays_inside();

  const Program& program_;
  Dataflow flow_;
  std::size_t place_ = 0;
  const Block* block_ = nullptr;
  ReindexPlan plan_;
  bool several_ = false;
  bool any_ = false;
  bool conditional_ = false;
};

void ReindexPlanner::found(std::span<const Expr> indices, bool conditional) {
  conditional_ |= conditional;
  if (!any_) plan_.subscripts.assign(indices.begin(), indices.end());
  any_ = true;
  several_ |= !std::equal(indices.begin(), indices.end(), plan_.subscripts.begin(),
                          [](Expr x, Expr y) { return structural_equal(x, y); });
}

void ReindexPlanner::visit_expr(Expr e, bool conditional) {
  const Load* load = e.as<Load>();
  if (load != nullptr && load->buffer == plan_.buffer) found(load->indices, conditional);
  const ExprKind kind = e.kind();
  const bool lazy = kind == ExprKind::kSelect || kind == ExprKind::kAnd || kind == ExprKind::kOr;
  for_each_child(e, [&](Expr child) { visit_expr(child, conditional || lazy); });
}

void ReindexPlanner::visit_stmt(Stmt s, bool conditional) {
  if (!s.defined()) return;
  const Store* store = s.as<Store>();
  if (store != nullptr && store->buffer == plan_.buffer) found(store->indices, conditional);
  const bool branch = s.as<If>() != nullptr;
  for_each_child(
      s, [&](Stmt child) { visit_stmt(child, conditional || branch); },
      [&](Expr e) { visit_expr(e, conditional); });
}

Result<void> ReindexPlanner::find_access() {
  visit_stmt(block_->init, false);
  visit_stmt(block_->body, false);
  if (!any_) return unfit("it does not access it");
  if (several_) return unfit("it accesses it at several places");
  for (const IterVar& iter : block_->iters) {
    plan_.used.push_back(std::any_of(plan_.subscripts.begin(), plan_.subscripts.end(),
                                     [&](Expr e) { return mentions(e, iter.var->id); }));
    if (!constant(iter.extent)) return unfit("an extent is not constant");
  }
  bool own = true;
  for (Expr e : plan_.subscripts) {
    walk(e, [&](Expr x) {
      const Var* var = x.as<Var>();
      own &= x.as<Load>() == nullptr;
      own &= var == nullptr ||
             std::any_of(block_->iters.begin(), block_->iters.end(),
                         [&](const IterVar& iter) { return iter.var->id == var->id; });
      return true;
    });
  }
  if (!own) return unfit("its subscripts are no function of the block's variables");
  return {};
}

Result<void> ReindexPlanner::find_map(const ReindexArgs& args) {
  const auto num_iters = static_cast<int>(block_->iters.size());
  std::vector<int64_t> domain;
  for (std::size_t i = 0; i < block_->iters.size(); ++i) {
    domain.push_back(plan_.used[i] ? *constant(block_->iters[i].extent) : 1);
  }
  if (args.map.empty()) {
    // Variables that are not in the subscripts have no dimension.
    std::string inputs, outputs;
    for (int i = 0; i < num_iters; ++i) {
      const std::string name = "v" + std::to_string(i);
      inputs += (i > 0 ? ", " : "") + name;
      if (!plan_.used[static_cast<std::size_t>(i)]) continue;
      outputs += (outputs.empty() ? "" : ", ") + name;
    }
    PRUNERC_TRY(plan_.map, IndexMap::parse("(" + inputs + ") -> (" + outputs + ")"));
  } else {
    PRUNERC_TRY(plan_.map, IndexMap::parse(args.map));
  }
  PRUNERC_TRY(plan_.layout, make_layout(plan_.map, domain));
  for (int i = 0; i < num_iters; ++i) {
    bool in_map = false;
    for (int o = 0; o < plan_.map.num_outputs(); ++o) in_map |= plan_.map.uses(o, i);
    const auto at = static_cast<std::size_t>(i);
    if (constant(block_->iters[at].extent) != 1 && in_map != plan_.used[at]) {
      return unfit("the map and the subscripts use different variables");
    }
  }
  return {};
}

bool ReindexPlanner::stays_inside() {
  IrBuilder b(program_);
  const Buffer& buffer = program_.buffer(plan_.buffer);
  VarRanges ranges;
  for (const IterVar& iter : block_->iters) ranges.bind(iter.var, iter.extent);
  for (std::size_t d = 0; d < plan_.subscripts.size(); ++d) {
    const Interval reached = interval_of(to_linear(b, plan_.subscripts[d], ranges), ranges);
    const std::optional<int64_t> extent = constant(buffer.shape[d]);
    if (!extent || reached.lo < 0 || reached.hi >= *extent) return false;
  }
  return true;
}

Result<void> ReindexPlanner::check_read() {
  if (writes(*block_, plan_.buffer)) {
    return error(Diag::kBlockNotSimple, block_->id, std::string("not write what it reindexes"));
  }
  for (const std::size_t writer : flow_.writers(plan_.buffer)) {
    if (writer > place_ || flow_.same_statement(writer, place_)) {
      return error(Diag::kBlockProducerLate, block_->id, flow_[writer].block->id);
    }
  }
  IrBuilder b(program_);
  if (!conditional_ && covers_domain(b, program_, flow_[place_])) return {};
  const bool is_input = program_.buffer(plan_.buffer).role == BufferRole::kInput;
  if (is_input && stays_inside()) return {};
  return unfit("not every instance reads it, and some might not be able to");
}

Result<void> ReindexPlanner::check_write() {
  PRUNERC_TRY_VOID(check_sole_writer(flow_, place_));
  for (const std::size_t reader : flow_.readers(plan_.buffer)) {
    if (reader == place_ || !flow_.same_statement(reader, place_)) continue;
    return error(Diag::kCacheReaderInside, flow_[reader].block->id,
                 std::string(program_.buffer(plan_.buffer).name));
  }
  const bool is_store = block_->body.as<Store>() != nullptr &&
                        (!block_->init.defined() || block_->init.as<Store>() != nullptr);
  if (!is_store) return unfit("it is not one store");
  IrBuilder b(program_);
  const std::string fault = order_fault(b, program_, *block_);
  if (!fault.empty()) return error(Diag::kBlockOrderFixed, block_->id, fault);
  if (has_reduce_iters(*block_) && !block_->init.defined()) {
    return error(Diag::kBlockNoInit, block_->id);
  }
  if (!block_->init.defined() && reads(*block_, plan_.buffer)) {
    return unfit("it reads what it writes");
  }
  for (std::size_t i = 0; i < block_->iters.size(); ++i) {
    if (plan_.used[i] && block_->iters[i].kind != IterKind::kSpatial) {
      return unfit("a reduction variable is in the subscripts");
    }
  }
  if (!covers_domain(b, program_, flow_[place_])) {
    return unfit("not every instance is known to run");
  }
  return {};
}

Result<ReindexPlan> ReindexPlanner::plan(const ReindexArgs& args) {
  PRUNERC_TRY(place_, flow_.find(args.block));
  PRUNERC_TRY(plan_.site, find_block(program_, args.block));
  block_ = flow_[place_].block;
  plan_.side = args.side;
  const std::span<const Access> accesses =
      args.side == Side::kRead ? block_->reads : block_->writes;
  PRUNERC_TRY(plan_.buffer, accessed_buffer(*block_, accesses, args.index));
  const std::optional<Scope> scope = scope_from_string(args.scope);
  if (!scope) return error(Diag::kScopeUnknown, args.scope);
  plan_.scope = *scope;
  PRUNERC_TRY_VOID(find_access());
  PRUNERC_TRY_VOID(find_map(args));
  PRUNERC_TRY_VOID(args.side == Side::kRead ? check_read() : check_write());
  return std::move(plan_);
}

Applied apply_reindex(const Program& program, const ReindexPlan& plan) {
  IrBuilder b(program);
  const Block& block = *plan.site.block();
  const Buffer original = program.buffer(plan.buffer);
  std::vector<Expr> shape;
  for (int64_t extent : plan.layout.shape) shape.push_back(b.int_imm(extent));
  const BufferId cache = b.add_buffer(std::string(original.name) + "_reindex", original.dtype,
                                      shape, plan.scope, BufferRole::kIntermediate);
  std::vector<int64_t> extents;
  for (std::size_t i = 0; i < plan.used.size(); ++i) {
    if (plan.used[i]) extents.push_back(plan.layout.domain[i]);
  }
  auto place = [&](std::span<const Expr> vars, const VarRanges& ranges) {
    std::vector<Expr> out = plan.map.apply(b, vars);
    for (Expr& e : out) e = simplify(b, e, ranges);
    return out;
  };
  const std::string name = std::string(b.buffer(cache).name);
  NewNest copy = make_nest(b, name, extents, [&](std::span<const Expr> vars) {
    std::vector<Expr> all;  // by the block's variables
    VarMap values;
    VarRanges ranges;
    for (std::size_t i = 0, next = 0; i < plan.used.size(); ++i) {
      all.push_back(plan.used[i] ? vars[next++] : b.int_imm(0));
      values[block.iters[i].var->id] = all.back();
    }
    for (std::size_t i = 0; i < vars.size(); ++i) {
      ranges.bind(vars[i].as<Var>(), b.int_imm(extents[i]));
    }
    std::vector<Expr> outside;
    for (Expr e : plan.subscripts) outside.push_back(substitute(b, e, values));
    const std::vector<Expr> inside = place(all, ranges);
    if (plan.side == Side::kRead) return b.store(cache, inside, b.load(original.id, outside));
    return b.store(original.id, outside, b.load(cache, inside));
  });
  std::vector<Expr> own;
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    own.push_back(plan.used[i] ? Expr(block.iters[i].var) : b.int_imm(0));
  }
  const Stmt moved = move_accesses(
      b, plan.site.path.back(), original.id, cache,
      [&](std::span<const Expr>, const VarRanges& ranges) { return place(own, ranges); });
  const Stmt changed = replace_at(b, plan.site.outermost_statement(), moved);
  const Stmt both =
      plan.side == Side::kRead ? b.seq({copy.stmt, changed}) : b.seq({changed, copy.stmt});
  return {b.finish(replace_at(b, plan.site, both, plan.site.outermost_depth())), copy.outputs, {}};
}

}  // namespace

Result<Applied> run_reindex(const Program& program, const ReindexArgs& args) {
  PRUNERC_TRY(const ReindexPlan plan, ReindexPlanner(program).plan(args));
  return apply_reindex(program, plan);
}

}  // namespace prunerc::schedule

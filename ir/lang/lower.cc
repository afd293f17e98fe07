#include "ir/lang/lower.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "ir/builder.h"
#include "ir/lang/range.h"
#include "ir/visit.h"

namespace prunerc::lang {

using ir::DType;
using ir::Expr;
using ir::ExprKind;

namespace {

/// Where a reduction's result lies: a buffer over the indices that it depends on.
struct StageResult {
  ir::BufferId buffer;
  std::vector<const IndexVar*> indices;
};

/// The stage that is being emitted: its iteration variables.
struct StageScope {
  std::map<const IndexVar*, const ir::Var*> vars;
};

using Conditions = std::vector<Fact>;  // of a place, outermost first

bool is_position(Reducer reducer) { return reducer == Reducer::kArgMax || reducer == Reducer::kArgMin; }

class Lowerer {
 public:
  Lowerer(const BoundOp& op, const Proofs& proofs) : op_(op), proofs_(proofs), b_(op.name) {}

  LoweredOp run() {
    for (const Tensor* tensor : op_.inputs) add_buffer(*tensor, ir::BufferRole::kInput);
    for (const Tensor* tensor : op_.outputs) add_buffer(*tensor, ir::BufferRole::kOutput);
    for (const BoundStmt& stmt : op_.stmts) {
      if (stmt.target->role == TensorRole::kLet) add_buffer(*stmt.target, ir::BufferRole::kIntermediate);
    }
    for (const BoundStmt& stmt : op_.stmts) lower_stmt(stmt);
    const ir::Stmt root = b_.seq(stages_);
    return {b_.finish(root), std::move(origins_)};
  }

 private:
  void add_buffer(const Tensor& tensor, ir::BufferRole role) {
    std::vector<Expr> shape;
    for (const int64_t extent : tensor.shape) shape.push_back(b_.int_imm(extent));
    buffers_[&tensor] = b_.add_buffer(tensor.name, *tensor.dtype, shape, ir::Scope::kGlobal, role);
  }

  // Statements.

  void lower_stmt(const BoundStmt& stmt) {
    stmt_ = &stmt;
    num_temporaries_ = 0;
    const Node* value = stmt.value;
    const ir::BufferId target = buffers_.at(stmt.target);
    if (value->kind == NodeKind::kReduce && !is_empty(value) && uses_all(value, stmt.indices)) {
      hoist(value->args[0], inside(value, {}));
      if (value->condition != nullptr) hoist(value->condition, {});
      emit_reduce(value, stmt.indices, target, stmt.target->name, {});
      return;
    }
    hoist(value, {});
    StageScope scope;
    ir::Block block = open_block(stmt.target->name);
    const std::vector<ir::IterVar> iters = make_iters(stmt.indices, ir::IterKind::kSpatial, scope);
    block.body = b_.store(target, subscripts(stmt.indices, scope), emit(value, scope));
    close_block(block, iters, {target});
  }

  static bool is_empty(const Node* reduce) {
    return std::any_of(reduce->indices.begin(), reduce->indices.end(),
                       [](const IndexVar* index) { return index->extent() == 0; });
  }

  static bool uses_all(const Node* reduce, const std::vector<const IndexVar*>& indices) {
    std::set<const IndexVar*> free;
    free_indices(reduce, free);
    return std::all_of(indices.begin(), indices.end(),
                       [&](const IndexVar* index) { return free.count(index) > 0; });
  }

  static void free_indices(const Node* node, std::set<const IndexVar*>& free) {
    if (node->kind == NodeKind::kIndex) free.insert(node->index);
    for_each_child(*node, [&](const Node* child) { free_indices(child, free); });
    // Inner indices are distinct objects, so removing them cannot remove an outer one.
    for (const IndexVar* index : node->indices) free.erase(index);
  }

  // Reductions inside expressions become stages of their own, innermost first.

  static Conditions inside(const Node* reduce, Conditions conditions) {
    if (reduce->condition != nullptr) conditions.push_back({reduce->condition, true});
    return conditions;
  }

  static Conditions extend(Conditions conditions, const Node* condition, bool holds) {
    conditions.push_back({condition, holds});
    return conditions;
  }

  void hoist(const Node* node, const Conditions& place) {
    if (!has_reduction(node)) return;
    if (node->kind == NodeKind::kReduce) {
      hoist_reduce(node, place);
    } else if (node->kind == NodeKind::kIf) {
      hoist(node->args[0], place);
      hoist(node->args[1], extend(place, node->args[0], true));
      hoist(node->args[2], extend(place, node->args[0], false));
    } else if (node->kind == NodeKind::kBinary && (node->op == AstOp::kAnd || node->op == AstOp::kOr)) {
      hoist(node->args[0], place);
      hoist(node->args[1], extend(place, node->args[0], node->op == AstOp::kAnd));
    } else {
      for_each_child(*node, [&](const Node* child) { hoist(child, place); });
    }
  }

  void hoist_reduce(const Node* node, const Conditions& place) {
    if (results_.count(node) > 0 || is_empty(node)) return;
    const Conditions carried = proofs_.guarded.count(node) > 0 ? place : Conditions{};
    if (node->condition != nullptr) hoist(node->condition, carried);
    hoist(node->args[0], inside(node, carried));
    std::set<const IndexVar*> free;
    free_indices(node, free);
    for (const Fact& fact : carried) free_indices(fact.condition, free);
    for (const IndexVar* index : node->indices) free.erase(index);
    StageResult result;
    result.indices.assign(free.begin(), free.end());
    std::sort(result.indices.begin(), result.indices.end(),
              [](const IndexVar* a, const IndexVar* b) { return a->number < b->number; });
    std::string name = fmt::format("{}_{}", stmt_->target->name, to_string(node->reducer));
    if (num_temporaries_++ > 0) name += fmt::format("_{}", num_temporaries_);
    result.buffer = add_temporary(name, node->type.dtype, result.indices);
    emit_reduce(node, result.indices, result.buffer, name, carried);
    results_[node] = std::move(result);
  }

  bool has_reduction(const Node* node) {
    const auto known = has_reduction_.find(node);
    if (known != has_reduction_.end()) return known->second;
    bool found = node->kind == NodeKind::kReduce;
    for_each_child(*node, [&](const Node* child) { found = has_reduction(child) || found; });
    return has_reduction_[node] = found;
  }

  ir::BufferId add_temporary(const std::string& name, DType dtype, const std::vector<const IndexVar*>& indices) {
    std::vector<Expr> shape;
    for (const IndexVar* index : indices) shape.push_back(b_.int_imm(index->extent()));
    return b_.add_buffer(name, dtype, shape, ir::Scope::kGlobal, ir::BufferRole::kIntermediate);
  }

  void emit_reduce(const Node* node, const std::vector<const IndexVar*>& indices, ir::BufferId target,
                   std::string_view name, const Conditions& carried) {
    StageScope scope;
    ir::Block block = open_block(name);
    std::vector<ir::IterVar> iters = make_iters(indices, ir::IterKind::kSpatial, scope);
    const std::vector<ir::IterVar> reduced = make_iters(node->indices, ir::IterKind::kReduce, scope);
    iters.insert(iters.end(), reduced.begin(), reduced.end());
    const std::vector<Expr> at = positions(indices, scope);
    const Expr condition = all_of(inside(node, carried), scope);
    if (is_position(node->reducer)) {
      const ir::BufferId best =
          add_temporary(fmt::format("{}_value", name), node->accumulator, indices);
      emit_position(node, block, target, best, at, condition, scope);
      close_block(block, iters, {target, best});
      return;
    }
    const Expr identity = identity_of(node->reducer, node->accumulator);
    Expr value = emit(node->args[0], scope);
    if (condition.defined()) value = b_.select(condition, value, identity);
    block.init = b_.store(target, at, identity);
    block.body = b_.store(target, at, combine(node->reducer, b_.load(target, at), value));
    close_block(block, iters, {target});
  }

  /// Value and position in two buffers. The rule "better, or as good and earlier" does not depend on the order in
  /// which positions are visited, so the reduction may be split and reordered.
  void emit_position(const Node* node, ir::Block& block, ir::BufferId target, ir::BufferId best,
                     std::span<const Expr> at, Expr condition, const StageScope& scope) {
    const bool is_max = node->reducer == Reducer::kArgMax;
    const Expr value = emit(node->args[0], scope);
    const Expr old_value = b_.load(best, at);
    const Expr old_position = b_.load(target, at);
    Expr position;
    for (const IndexVar* index : node->indices) {
      const Expr value_of_index = index_value(index, scope);
      position = position.defined() ? b_.add(b_.mul(position, b_.int_imm(index->end)), value_of_index)
                                    : value_of_index;
    }
    const Expr better = is_max ? b_.lt(old_value, value) : b_.lt(value, old_value);
    const Expr as_good = b_.logical_and(b_.eq(value, old_value), b_.lt(position, old_position));
    Expr takes = b_.logical_or(b_.lt(old_position, b_.int_imm(0)), b_.logical_or(better, as_good));
    Expr merged = is_max ? b_.max(old_value, value) : b_.min(old_value, value);
    if (condition.defined()) {
      takes = b_.logical_and(condition, takes);
      merged = b_.select(condition, merged, old_value);
    }
    const Expr identity = identity_of(is_max ? Reducer::kMax : Reducer::kMin, node->accumulator);
    block.init = b_.seq({b_.store(target, at, b_.int_imm(-1)), b_.store(best, at, identity)});
    block.body = b_.seq({b_.store(target, at, b_.select(takes, position, old_position)),
                         b_.store(best, at, merged)});
  }

  Expr identity_of(Reducer reducer, DType dtype) {
    switch (reducer) {
      case Reducer::kSum: return b_.constant(0, dtype);
      case Reducer::kProd: return b_.constant(1, dtype);
      case Reducer::kMax:
        return ir::is_float(dtype) ? b_.float_imm(-HUGE_VAL, dtype) : b_.int_imm(ir::min_int(dtype), dtype);
      case Reducer::kMin:
        return ir::is_float(dtype) ? b_.float_imm(HUGE_VAL, dtype) : b_.int_imm(ir::max_int(dtype), dtype);
      case Reducer::kAny: return b_.bool_imm(false);
      case Reducer::kAll: return b_.bool_imm(true);
      case Reducer::kArgMax:
      case Reducer::kArgMin: return b_.int_imm(-1);
    }
    return {};
  }

  Expr combine(Reducer reducer, Expr old_value, Expr value) {
    switch (reducer) {
      case Reducer::kSum: return b_.add(old_value, value);
      case Reducer::kProd: return b_.mul(old_value, value);
      case Reducer::kMax: return b_.max(old_value, value);
      case Reducer::kMin: return b_.min(old_value, value);
      case Reducer::kAny: return b_.logical_or(old_value, value);
      case Reducer::kAll: return b_.logical_and(old_value, value);
      case Reducer::kArgMax:
      case Reducer::kArgMin: break;
    }
    return {};
  }

  /// Null for no condition.
  Expr all_of(const Conditions& conditions, const StageScope& scope) {
    Expr all;
    for (const Fact& fact : conditions) {
      Expr one = emit(fact.condition, scope);
      if (!fact.holds) one = b_.logical_not(one);
      all = all.defined() ? b_.logical_and(all, one) : one;
    }
    return all;
  }

  // Blocks.

  ir::Block open_block(std::string_view name) {
    ir::Block block{};
    block.id = b_.fresh_block_id();
    block.name = b_.copy(name);
    return block;
  }

  std::vector<ir::IterVar> make_iters(const std::vector<const IndexVar*>& indices, ir::IterKind kind,
                                      StageScope& scope) {
    std::vector<ir::IterVar> iters;
    for (const IndexVar* index : indices) {
      const ir::Var* var = b_.fresh_var("v" + index->name);
      scope.vars[index] = var;
      iters.push_back({var, b_.int_imm(index->extent()), kind, b_.fresh_var(index->name)});
    }
    return iters;
  }

  void close_block(ir::Block& block, const std::vector<ir::IterVar>& iters, std::vector<ir::BufferId> written) {
    block.iters = b_.copy(iters);
    block.reads = b_.copy(accesses_of(block, written, /*collect_writes=*/false));
    block.writes = b_.copy(accesses_of(block, written, /*collect_writes=*/true));
    origins_.push_back({std::string(block.name), stmt_->range});
    ir::Stmt stage = b_.block(block);
    std::vector<ir::LoopId> ids;  // outermost first, as people count
    for (size_t i = 0; i < iters.size(); ++i) ids.push_back(b_.fresh_loop_id());
    for (auto it = iters.rbegin(); it != iters.rend(); ++it) {
      ir::Loop loop{};
      loop.id = ids.back();
      ids.pop_back();
      loop.var = it->binding.as<ir::Var>();
      loop.extent = it->extent;
      loop.loop_kind = ir::LoopKind::kSerial;
      loop.body = stage;
      stage = b_.loop(loop);
    }
    stages_.push_back(stage);
  }

  // Expressions.

  Expr index_value(const IndexVar* index, const StageScope& scope) {
    const Expr var = scope.vars.at(index);
    return index->begin == 0 ? var : b_.add(var, b_.int_imm(index->begin));
  }

  std::vector<Expr> subscripts(const std::vector<const IndexVar*>& indices, const StageScope& scope) {
    std::vector<Expr> result;
    for (const IndexVar* index : indices) result.push_back(index_value(index, scope));
    return result;
  }

  /// Places in a temporary, whose dimensions start at 0 wherever the index starts.
  std::vector<Expr> positions(const std::vector<const IndexVar*>& indices, const StageScope& scope) {
    std::vector<Expr> result;
    for (const IndexVar* index : indices) result.push_back(scope.vars.at(index));
    return result;
  }

  Expr emit(const Node* node, const StageScope& scope) {
    switch (node->kind) {
      case NodeKind::kInt: return b_.int_imm(node->int_value, node->type.dtype);
      case NodeKind::kFloat: return b_.float_imm(node->float_value, node->type.dtype);
      case NodeKind::kBool: return b_.bool_imm(node->int_value != 0);
      case NodeKind::kIndex: return index_value(node->index, scope);
      case NodeKind::kRead: return emit_read(node, scope);
      case NodeKind::kUnary: return emit_unary(node, scope);
      case NodeKind::kBinary: return emit_binary(node, scope);
      case NodeKind::kMin: return b_.min(emit(node->args[0], scope), emit(node->args[1], scope));
      case NodeKind::kMax: return b_.max(emit(node->args[0], scope), emit(node->args[1], scope));
      case NodeKind::kIf:
      case NodeKind::kSelect: {
        const Expr condition = emit(node->args[0], scope);
        return b_.select(condition, emit(node->args[1], scope), emit(node->args[2], scope));
      }
      case NodeKind::kCall: {
        std::vector<Expr> args;
        for (const Node* arg : node->args) args.push_back(emit(arg, scope));
        return b_.call(node->intrinsic, args);
      }
      case NodeKind::kCast: return b_.cast(node->type.dtype, emit(node->args[0], scope));
      case NodeKind::kReduce: {
        if (is_empty(node)) return identity_of(node->reducer, node->accumulator);
        const StageResult& result = results_.at(node);
        return b_.load(result.buffer, positions(result.indices, scope));
      }
    }
    return {};
  }

  Expr emit_unary(const Node* node, const StageScope& scope) {
    const Expr operand = emit(node->args[0], scope);
    if (node->op == AstOp::kNot) return b_.logical_not(operand);
    // -0.0 - x keeps the sign of a zero; 0 - x would not.
    return b_.sub(b_.constant(ir::is_float(operand.dtype()) ? -0.0 : 0, operand.dtype()), operand);
  }

  Expr emit_binary(const Node* node, const StageScope& scope) {
    const Expr lhs = emit(node->args[0], scope);
    const Expr rhs = emit(node->args[1], scope);
    const bool is_float = node->type.is_float();
    if (const std::optional<Expr> same = drop_neutral(node->op, lhs, rhs)) return *same;
    switch (node->op) {
      case AstOp::kAdd: return b_.add(lhs, rhs);
      case AstOp::kSub: return b_.sub(lhs, rhs);
      case AstOp::kMul: return b_.mul(lhs, rhs);
      case AstOp::kDiv: return is_float ? b_.div(lhs, rhs) : b_.floordiv(lhs, rhs);
      case AstOp::kMod: return b_.floormod(lhs, rhs);
      case AstOp::kEq: return b_.eq(lhs, rhs);
      case AstOp::kNe: return b_.ne(lhs, rhs);
      case AstOp::kLt: return b_.lt(lhs, rhs);
      case AstOp::kLe: return b_.le(lhs, rhs);
      case AstOp::kGt: return b_.lt(rhs, lhs);
      case AstOp::kGe: return b_.le(rhs, lhs);
      case AstOp::kAnd: return b_.logical_and(lhs, rhs);
      case AstOp::kOr: return b_.logical_or(lhs, rhs);
      case AstOp::kNeg:
      case AstOp::kNot: break;
    }
    return {};
  }

  /// Strides of 1 and paddings of 0 leave no trace: x * 1, x + 0, x - 0, x / 1 over integers.
  static std::optional<Expr> drop_neutral(AstOp op, Expr lhs, Expr rhs) {
    const auto is = [](Expr e, int64_t value) {
      const ir::IntImm* imm = e.as<ir::IntImm>();
      return imm != nullptr && imm->value == value;
    };
    const bool is_factor = op == AstOp::kMul || op == AstOp::kDiv;
    const bool is_summand = op == AstOp::kAdd || op == AstOp::kSub;
    if ((is_factor && is(rhs, 1)) || (is_summand && is(rhs, 0))) return lhs;
    if ((op == AstOp::kMul && is(lhs, 1)) || (op == AstOp::kAdd && is(lhs, 0))) return rhs;
    return std::nullopt;
  }

  Expr emit_read(const Node* node, const StageScope& scope) {
    std::vector<Expr> indices;
    for (const Node* arg : node->args) indices.push_back(emit(arg, scope));
    const Expr value = b_.load(buffers_.at(node->tensor), indices);
    const auto doubts = proofs_.doubts.find(node);
    if (node->or_value == nullptr || doubts == proofs_.doubts.end()) return value;
    Expr in_range;
    const auto require = [&](Expr condition) {
      in_range = in_range.defined() ? b_.logical_and(in_range, condition) : condition;
    };
    for (size_t d = 0; d < indices.size(); ++d) {
      const Doubt& doubt = doubts->second[d];
      if (doubt.below) require(b_.le(b_.int_imm(0), indices[d]));
      if (doubt.above) require(b_.lt(indices[d], b_.int_imm(node->tensor->shape[d])));
    }
    if (!in_range.defined()) return value;
    return b_.select(in_range, value, emit(node->or_value, scope));
  }

  // Regions: one element per load or store.

  std::vector<ir::Access> accesses_of(const ir::Block& block, const std::vector<ir::BufferId>& written,
                                      bool collect_writes) {
    std::vector<ir::Access> accesses;
    const auto add = [&](ir::BufferId buffer, std::span<const Expr> indices) {
      const bool is_written = std::find(written.begin(), written.end(), buffer) != written.end();
      if (is_written != collect_writes) return;
      for (const ir::Access& known : accesses) {
        if (known.buffer == buffer && same_point(known, indices)) return;
      }
      std::vector<ir::Range> region;
      for (const Expr index : indices) region.push_back({index, b_.int_imm(1)});
      accesses.push_back({buffer, b_.copy(region)});
    };
    const auto visit_expr = [&](Expr e) {
      ir::walk(e, [&](Expr part) {
        if (const ir::Load* load = part.as<ir::Load>()) add(load->buffer, load->indices);
        return true;
      });
    };
    std::vector<ir::Stmt> stores = {block.init, block.body};
    for (size_t i = 0; i < stores.size(); ++i) {
      const ir::Stmt stmt = stores[i];
      if (const ir::Seq* seq = stmt.as<ir::Seq>()) stores.insert(stores.end(), seq->stmts.begin(), seq->stmts.end());
      const ir::Store* store = stmt.as<ir::Store>();
      if (store == nullptr) continue;
      add(store->buffer, store->indices);
      for (const Expr index : store->indices) visit_expr(index);
      visit_expr(store->value);
    }
    return accesses;
  }

  static bool same_point(const ir::Access& access, std::span<const Expr> indices) {
    for (size_t d = 0; d < indices.size(); ++d) {
      if (access.region[d].min.hash() != indices[d].hash()) return false;
    }
    return true;
  }

  const BoundOp& op_;
  const Proofs& proofs_;
  ir::IrBuilder b_;
  std::map<const Tensor*, ir::BufferId> buffers_;
  std::unordered_map<const Node*, StageResult> results_;
  std::unordered_map<const Node*, bool> has_reduction_;
  std::vector<ir::Stmt> stages_;
  std::vector<StageOrigin> origins_;
  const BoundStmt* stmt_ = nullptr;
  int num_temporaries_ = 0;
};

}  // namespace

LoweredOp lower_operator(const BoundOp& op, const Proofs& proofs) { return Lowerer(op, proofs).run(); }

}  // namespace prunerc::lang

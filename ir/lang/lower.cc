#include "ir/lang/lower.h"

#include "ir/builder.h"
#include "ir/equal.h"
#include "ir/lang/emit.h"
#include "ir/lang/limits.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace prunerc::lang {

using ir::DType;
using ir::Expr;

namespace {

bool is_position(Reducer reducer) {
  return reducer == Reducer::kArgMax || reducer == Reducer::kArgMin;
}

/// A padded copy may be this much larger than its tensor, and small ones may always be made.
constexpr double kMaxPadding = 2.5;
constexpr double kSmallPadding = 4096;

/// A padded copy that exists.
struct Padded {
  const Tensor* tensor = nullptr;
  std::vector<ir::Interval> box;
  Expr fill;
  ir::BufferId buffer;
};

class Lowerer {
 public:
  Lowerer(const BoundOp& op, const Proofs& proofs, DiagSink& sink)
      : op_(op), proofs_(proofs), sink_(sink), b_(op.name), emit_(b_, proofs, buffers_, results_) {}

  LoweredOp run() {
    for (const Tensor* tensor : op_.inputs) add_buffer(*tensor, ir::BufferRole::kInput);
    for (const Tensor* tensor : op_.outputs) add_buffer(*tensor, ir::BufferRole::kOutput);
    for (const BoundStmt& stmt : op_.stmts) {
      if (stmt.target->role == TensorRole::kLet)
        add_buffer(*stmt.target, ir::BufferRole::kIntermediate);
    }
    for (const BoundStmt& stmt : op_.stmts) lower_stmt(stmt);
    const ir::Stmt root = b_.seq(stages_);
    return {b_.finish(root), std::move(origins_)};
  }

 private:
  void add_buffer(const Tensor& tensor, ir::BufferRole role) {
    std::vector<Expr> shape;
    for (const int64_t extent : tensor.shape) shape.push_back(b_.int_imm(extent));
    const ir::BufferId id =
        b_.add_buffer(tensor.name, *tensor.dtype, shape, ir::Scope::kGlobal, role);
    if (tensor.is_const) b_.mark_const(id);
    buffers_[&tensor] = id;
  }

  // Statements.

  void lower_stmt(const BoundStmt& stmt) {
    stmt_ = &stmt;
    temporaries_.clear();
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
    block.body = b_.store(target, emit_.subscripts(stmt.indices, scope), emit_.emit(value, scope));
    close_block(block, iters, {target});
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
    } else if (node->kind == NodeKind::kBinary &&
               (node->op == AstOp::kAnd || node->op == AstOp::kOr)) {
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
    if (const int earlier = temporaries_[name]++; earlier > 0) {
      name += fmt::format("_{}", earlier + 1);
    }
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

  ir::BufferId add_temporary(const std::string& name, DType dtype,
                             const std::vector<const IndexVar*>& indices) {
    std::vector<Expr> shape;
    double bytes = static_cast<double>(ir::byte_size(dtype));
    std::string elements;
    for (const IndexVar* index : indices) {
      shape.push_back(b_.int_imm(index->extent()));
      bytes *= static_cast<double>(index->extent());
      elements += fmt::format("{}{}", elements.empty() ? "" : " * ", index->extent());
    }
    if (bytes >= static_cast<double>(kMaxTensorBytes)) {
      sink_.report<LangDiag::kTensorTooLarge>(stmt_->range, name, elements, ir::to_string(dtype));
    }
    return b_.add_buffer(name, dtype, shape, ir::Scope::kGlobal, ir::BufferRole::kIntermediate);
  }

  void emit_reduce(const Node* node, const std::vector<const IndexVar*>& indices,
                   ir::BufferId target, std::string_view name, const Conditions& carried) {
    StageScope scope;
    ir::Block block = open_block(name);
    std::vector<ir::IterVar> iters = make_iters(indices, ir::IterKind::kSpatial, scope);
    const std::vector<ir::IterVar> reduced =
        make_iters(node->indices, ir::IterKind::kReduce, scope);
    iters.insert(iters.end(), reduced.begin(), reduced.end());
    const std::vector<Expr> at = emit_.positions(indices, scope);
    const Expr condition = emit_.all_of(inside(node, carried), scope);
    if (is_position(node->reducer)) {
      const ir::BufferId best =
          add_temporary(fmt::format("{}_value", name), node->accumulator, indices);
      emit_position(node, block, target, best, at, condition, scope);
      close_block(block, iters, {target, best});
      return;
    }
    const Expr identity = emit_.identity_of(node->reducer, node->accumulator);
    ir::VarRanges ranges;
    for (const ir::IterVar& iter : iters) ranges.bind(iter.var, iter.extent);
    emit_.set_padding([this](const Tensor* tensor, std::span<const ir::Interval> box,
                             Expr fill) { return pad(tensor, box, fill); },
                      &ranges);
    Expr value = emit_.emit(node->args[0], scope);
    emit_.set_padding(nullptr, nullptr);
    if (condition.defined()) value = b_.select(condition, value, identity);
    block.init = b_.store(target, at, identity);
    block.body = b_.store(target, at, combine(node->reducer, b_.load(target, at), value));
    close_block(block, iters, {target});
  }

  // A window reads each element many times: its padding is made once, as a stage of its own, which
  // a schedule may still inline. Not where the copy would be far larger than what it copies.
  std::optional<ir::BufferId> pad(const Tensor* tensor, std::span<const ir::Interval> box,
                                  Expr fill) {
    double own = 1;
    double padded = 1;
    for (size_t d = 0; d < box.size(); ++d) {
      own *= static_cast<double>(tensor->shape[d]);
      padded *= static_cast<double>(box[d].hi) - static_cast<double>(box[d].lo) + 1;
    }
    if (padded > kMaxPadding * own + kSmallPadding) return std::nullopt;
    std::vector<Expr> shape;
    for (const ir::Interval& side : box) shape.push_back(b_.int_imm(side.hi - side.lo + 1));
    for (const Padded& known : padded_) {
      if (known.tensor == tensor && ir::structural_equal(known.fill, fill) &&
          std::equal(known.box.begin(), known.box.end(), box.begin(), box.end())) {
        return known.buffer;
      }
    }
    const std::string name = tensor->name + "_pad";
    const ir::BufferId target = b_.add_buffer(name, *tensor->dtype, shape, ir::Scope::kGlobal,
                                              ir::BufferRole::kIntermediate);
    ir::Block block = open_block(name);
    std::vector<ir::IterVar> iters;
    std::vector<Expr> at, source;
    Expr inside;
    for (size_t d = 0; d < box.size(); ++d) {
      const std::string axis = "p" + std::to_string(d);
      const ir::Var* var = b_.fresh_var("v" + axis);
      iters.push_back({var, shape[d], ir::IterKind::kSpatial, b_.fresh_var(axis)});
      at.push_back(var);
      source.push_back(box[d].lo == 0 ? Expr(var) : b_.sub(var, b_.int_imm(-box[d].lo)));
      const auto require = [&](Expr test) {
        inside = inside.defined() ? b_.logical_and(inside, test) : test;
      };
      if (box[d].lo < 0) require(b_.le(b_.int_imm(0), source[d]));
      if (box[d].hi >= tensor->shape[d]) {
        require(b_.lt(source[d], b_.int_imm(tensor->shape[d])));
      }
    }
    const Expr value = b_.load(buffers_.at(tensor), source);
    block.body = b_.store(target, at, inside.defined() ? b_.select(inside, value, fill) : value);
    close_block(block, iters, {target});
    padded_.push_back({tensor, {box.begin(), box.end()}, fill, target});
    return target;
  }

  /// Value and position in two buffers. The rule "better, or as good and earlier" does not depend
  /// on the order in which positions are visited, so the reduction may be split and reordered.
  void emit_position(const Node* node, ir::Block& block, ir::BufferId target, ir::BufferId best,
                     std::span<const Expr> at, Expr condition, const StageScope& scope) {
    const bool is_max = node->reducer == Reducer::kArgMax;
    const Expr value = emit_.emit(node->args[0], scope);
    const Expr old_value = b_.load(best, at);
    const Expr old_position = b_.load(target, at);
    Expr position;
    for (const IndexVar* index : node->indices) {
      const Expr value_of_index = emit_.index_value(index, scope);
      position = position.defined()
                     ? b_.add(b_.mul(position, b_.int_imm(index->end)), value_of_index)
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
    const Expr identity =
        emit_.identity_of(is_max ? Reducer::kMax : Reducer::kMin, node->accumulator);
    block.init = b_.seq({b_.store(target, at, b_.int_imm(-1)), b_.store(best, at, identity)});
    block.body = b_.seq({b_.store(target, at, b_.select(takes, position, old_position)),
                         b_.store(best, at, merged)});
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

  // Blocks.

  ir::Block open_block(std::string_view name) {
    ir::Block block{};
    block.id = b_.fresh_block_id();
    block.name = b_.copy(name);
    return block;
  }

  std::vector<ir::IterVar> make_iters(const std::vector<const IndexVar*>& indices,
                                      ir::IterKind kind, StageScope& scope) {
    std::vector<ir::IterVar> iters;
    for (const IndexVar* index : indices) {
      const ir::Var* var = b_.fresh_var("v" + index->name);
      scope.vars[index] = var;
      iters.push_back({var, b_.int_imm(index->extent()), kind, b_.fresh_var(index->name)});
    }
    return iters;
  }

  void close_block(ir::Block& block, const std::vector<ir::IterVar>& iters,
                   std::vector<ir::BufferId> written) {
    block.iters = b_.copy(iters);
    block.reads = b_.copy(accesses_of(b_, block, written, AccessKind::kReads));
    block.writes = b_.copy(accesses_of(b_, block, written, AccessKind::kWrites));
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

  const BoundOp& op_;
  const Proofs& proofs_;
  DiagSink& sink_;
  ir::IrBuilder b_;
  std::map<const Tensor*, ir::BufferId> buffers_;
  std::unordered_map<const Node*, StageResult> results_;
  Emitter emit_;
  std::unordered_map<const Node*, bool> has_reduction_;
  std::vector<ir::Stmt> stages_;
  std::vector<Padded> padded_;
  std::vector<StageOrigin> origins_;
  const BoundStmt* stmt_ = nullptr;
  std::map<std::string, int> temporaries_;  // of the statement, by name
};

}  // namespace

LoweredOp lower_operator(const BoundOp& op, const Proofs& proofs, DiagSink& sink) {
  return Lowerer(op, proofs, sink).run();
}

}  // namespace prunerc::lang

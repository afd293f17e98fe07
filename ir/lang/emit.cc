#include "ir/lang/emit.h"

#include "ir/arith/simplify.h"
#include "ir/visit.h"

#include <algorithm>
#include <cmath>

namespace prunerc::lang {

using ir::DType;
using ir::Expr;

namespace {

/// Strides of 1 and paddings of 0 leave no trace: x * 1, x + 0, x - 0, x / 1 over integers.
std::optional<Expr> drop_neutral(AstOp op, Expr lhs, Expr rhs) {
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

// A number, or an element that is the same at all places: a zero point, say.
bool is_one_for_all(Expr fill) {
  const auto is_number = [](Expr e) {
    return e.as<ir::FloatImm>() != nullptr || e.as<ir::IntImm>() != nullptr;
  };
  const auto* load = fill.as<ir::Load>();
  return is_number(fill) ||
         (load != nullptr && std::all_of(load->indices.begin(), load->indices.end(), is_number));
}

bool same_point(const ir::Access& access, std::span<const Expr> indices) {
  for (size_t d = 0; d < indices.size(); ++d) {
    if (access.region[d].min.hash() != indices[d].hash()) return false;
  }
  return true;
}

}  // namespace

bool is_empty(const Node* reduce) {
  return std::any_of(reduce->indices.begin(), reduce->indices.end(),
                     [](const IndexVar* index) { return index->extent() == 0; });
}

Expr Emitter::index_value(const IndexVar* index, const StageScope& scope) {
  const Expr var = scope.vars.at(index);
  return index->begin == 0 ? var : b_.add(var, b_.int_imm(index->begin));
}

std::vector<Expr> Emitter::subscripts(const std::vector<const IndexVar*>& indices,
                                      const StageScope& scope) {
  std::vector<Expr> result;
  for (const IndexVar* index : indices) result.push_back(index_value(index, scope));
  return result;
}

std::vector<Expr> Emitter::positions(const std::vector<const IndexVar*>& indices,
                                     const StageScope& scope) {
  std::vector<Expr> result;
  for (const IndexVar* index : indices) result.push_back(scope.vars.at(index));
  return result;
}

Expr Emitter::emit(const Node* node, const StageScope& scope) {
  switch (node->kind) {
    case NodeKind::kInt: return b_.int_imm(node->int_value, node->type.dtype);
    case NodeKind::kFloat:
      return node->from_int ? b_.cast(node->type.dtype, b_.int_imm(node->int_value))
                            : b_.float_imm(node->float_value, node->type.dtype);
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

Expr Emitter::emit_unary(const Node* node, const StageScope& scope) {
  const Expr operand = emit(node->args[0], scope);
  if (node->op == AstOp::kNot) return b_.logical_not(operand);
  // -0.0 - x keeps the sign of a zero; 0 - x would not.
  return b_.sub(b_.constant(ir::is_float(operand.dtype()) ? -0.0 : 0, operand.dtype()), operand);
}

Expr Emitter::emit_binary(const Node* node, const StageScope& scope) {
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

Expr Emitter::emit_read(const Node* node, const StageScope& scope) {
  std::vector<Expr> indices;
  for (const Node* arg : node->args) {
    indices.push_back(ir::simplify(b_, emit(arg, scope), ir::VarRanges()));
  }
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
  const Expr fill = emit(node->or_value, scope);
  if (pad_ != nullptr) {
    if (const std::optional<Expr> padded = padded_read(node, indices, fill)) return *padded;
  }
  return b_.select(in_range, value, fill);
}

// The read of a copy of the tensor that is large enough for every subscript.
std::optional<Expr> Emitter::padded_read(const Node* node, std::vector<Expr> indices, Expr fill) {
  if (!is_one_for_all(fill)) return std::nullopt;
  const std::vector<Doubt>& doubts = proofs_.doubts.at(node);
  std::vector<ir::Interval> box;
  for (size_t d = 0; d < indices.size(); ++d) {
    indices[d] = ir::simplify(b_, indices[d], *ranges_);
    if (!doubts[d].below && !doubts[d].above) {
      box.push_back({0, node->tensor->shape[d] - 1});
      continue;
    }
    bool affine = true;
    ir::walk(indices[d], [&](Expr e) {
      affine = affine && (e.as<ir::Add>() != nullptr || e.as<ir::Sub>() != nullptr ||
                          e.as<ir::Mul>() != nullptr || e.as<ir::Var>() != nullptr ||
                          e.as<ir::IntImm>() != nullptr);
      return affine;
    });
    box.push_back(ir::interval_of(indices[d], *ranges_));
    if (!affine || !box.back().is_bounded()) return std::nullopt;
  }
  const std::optional<ir::BufferId> buffer = pad_(node->tensor, box, fill);
  if (!buffer) return std::nullopt;
  std::vector<Expr> at;
  for (size_t d = 0; d < indices.size(); ++d) {
    const Expr moved = b_.add(indices[d], b_.int_imm(-box[d].lo));
    at.push_back(box[d].lo == 0 ? indices[d] : ir::simplify(b_, moved, *ranges_));
  }
  return b_.load(*buffer, at);
}

Expr Emitter::identity_of(Reducer reducer, DType dtype) {
  switch (reducer) {
    case Reducer::kSum: return b_.constant(0, dtype);
    case Reducer::kProd: return b_.constant(1, dtype);
    case Reducer::kMax:
      return ir::is_float(dtype) ? b_.float_imm(-HUGE_VAL, dtype)
                                 : b_.int_imm(ir::min_int(dtype), dtype);
    case Reducer::kMin:
      return ir::is_float(dtype) ? b_.float_imm(HUGE_VAL, dtype)
                                 : b_.int_imm(ir::max_int(dtype), dtype);
    case Reducer::kAny: return b_.bool_imm(false);
    case Reducer::kAll: return b_.bool_imm(true);
    case Reducer::kArgMax:
    case Reducer::kArgMin: return b_.int_imm(-1);
  }
  return {};
}

Expr Emitter::all_of(const Conditions& conditions, const StageScope& scope) {
  Expr all;
  for (const Fact& fact : conditions) {
    Expr one = emit(fact.condition, scope);
    if (!fact.holds) one = b_.logical_not(one);
    all = all.defined() ? b_.logical_and(all, one) : one;
  }
  return all;
}

std::vector<ir::Access> accesses_of(ir::IrBuilder& builder, const ir::Block& block,
                                    std::span<const ir::BufferId> written, AccessKind kind) {
  std::vector<ir::Access> accesses;
  const auto add = [&](ir::BufferId buffer, std::span<const Expr> indices) {
    const bool is_written = std::find(written.begin(), written.end(), buffer) != written.end();
    if (is_written != (kind == AccessKind::kWrites)) return;
    for (const ir::Access& known : accesses) {
      if (known.buffer == buffer && same_point(known, indices)) return;
    }
    std::vector<ir::Range> region;
    for (const Expr index : indices) region.push_back({index, builder.int_imm(1)});
    accesses.push_back({buffer, builder.copy(region)});
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
    if (const ir::Seq* seq = stmt.as<ir::Seq>())
      stores.insert(stores.end(), seq->stmts.begin(), seq->stmts.end());
    const ir::Store* store = stmt.as<ir::Store>();
    if (store == nullptr) continue;
    add(store->buffer, store->indices);
    for (const Expr index : store->indices) visit_expr(index);
    visit_expr(store->value);
  }
  return accesses;
}

}  // namespace prunerc::lang

#include "costmodel/latency/nest.h"

#include "ir/equal.h"
#include "ir/visit.h"

#include <algorithm>
#include <cmath>

namespace prunerc::costmodel {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Intrinsic;
using ir::Stmt;

int64_t constant_or_one(Expr e) {
  const auto* imm = e.as<ir::IntImm>();
  return imm != nullptr ? std::max<int64_t>(1, imm->value) : 1;
}

// Cost of an intrinsic on one vector in simple operations: lengths of the usual range reductions
// and polynomials.
double intrinsic_cost(Intrinsic intrinsic) {
  switch (intrinsic) {
    case Intrinsic::kExp: return 14;
    case Intrinsic::kLog: return 18;
    case Intrinsic::kTanh: return 24;
    case Intrinsic::kErf: return 26;
    case Intrinsic::kSigmoid: return 22;
    case Intrinsic::kSin:
    case Intrinsic::kCos: return 22;
    case Intrinsic::kPow: return 40;
    case Intrinsic::kRsqrt: return 10;
    case Intrinsic::kSqrt:
    case Intrinsic::kFloor:
    case Intrinsic::kCeil:
    case Intrinsic::kRound:
    case Intrinsic::kFma:
    case Intrinsic::kAbs: return 1;
  }
  PRUNERC_UNREACHABLE("intrinsic");
}

// Gathers operations and accesses of one body.
struct BodyReader {
  const ir::Program& program;
  Nest& nest;

  void access(ir::BufferId buffer, std::span<const Expr> indices, bool write, bool masked) {
    for (NestAccess& known : nest.accesses) {
      if (known.buffer != buffer || !same(known.indices, indices)) continue;
      (write ? known.is_write : known.is_read) = true;
      return;
    }
    NestAccess a;
    a.buffer = buffer;
    a.indices.assign(indices.begin(), indices.end());
    a.element_bytes = ir::byte_size(program.buffer(buffer).dtype);
    (write ? a.is_write : a.is_read) = true;
    a.is_masked = masked;
    nest.widest_bytes =
        nest.accesses.empty() ? a.element_bytes : std::max(nest.widest_bytes, a.element_bytes);
    nest.accesses.push_back(std::move(a));
  }

  static bool same(const std::vector<Expr>& a, std::span<const Expr> b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!ir::structural_equal(a[i], b[i])) return false;
    }
    return true;
  }

  void expr(Expr e, bool masked) {
    if (const auto* load = e.as<ir::Load>()) {
      // A subscript may itself load (gather); plain index arithmetic costs nothing here.
      for (Expr index : load->indices) {
        ir::walk(index, [&](Expr part) {
          if (part.as<ir::Load>() == nullptr) return true;
          expr(part, masked);
          return false;
        });
      }
      access(load->buffer, load->indices, false, masked);
      return;
    }
    if (const auto* select = e.as<ir::Select>()) {
      condition(select->condition, masked);
      expr(select->on_true, true);
      expr(select->on_false, true);
      return;
    }
    count(e);
    ir::for_each_child(e, [&](Expr child) { expr(child, masked); });
  }

  void condition(Expr e, bool masked) {
    const NestOps before = nest.ops;
    expr(e, masked);
    NestCondition found = {e, 1 + nest.ops.simple - before.simple};
    nest.ops.simple = before.simple;
    nest.conditions.push_back(found);
  }

  void count(Expr e) {
    NestOps& ops = nest.ops;
    switch (e.kind()) {
      case ExprKind::kAdd:
      case ExprKind::kSub: (ir::is_float(e.dtype()) ? ops.add : ops.simple) += 1; return;
      case ExprKind::kMul: (ir::is_float(e.dtype()) ? ops.mul : ops.simple) += 1; return;
      case ExprKind::kDiv: ops.divide += 1; return;
      case ExprKind::kFloorDiv:
      case ExprKind::kFloorMod:
      case ExprKind::kMin:
      case ExprKind::kMax:
      case ExprKind::kEq:
      case ExprKind::kNe:
      case ExprKind::kLt:
      case ExprKind::kLe:
      case ExprKind::kAnd:
      case ExprKind::kOr:
      case ExprKind::kNot:
      case ExprKind::kSelect:
      case ExprKind::kCast: ops.simple += 1; return;
      case ExprKind::kCall: {
        const Intrinsic intrinsic = e.as<ir::Call>()->intrinsic;
        if (intrinsic == Intrinsic::kSqrt)
          ops.divide += 1;
        else if (intrinsic == Intrinsic::kFma)
          ops.add += 1, ops.mul += 1;
        else
          ops.special += intrinsic_cost(intrinsic);
        return;
      }
      case ExprKind::kVar:
      case ExprKind::kTileParam:
      case ExprKind::kIntImm:
      case ExprKind::kFloatImm:
      case ExprKind::kLoad: return;
    }
  }

  void stmt(Stmt s) {
    if (!s.defined()) return;
    if (const auto* store = s.as<ir::Store>()) {
      expr(store->value, false);
      access(store->buffer, store->indices, true, false);
    } else if (const auto* branch = s.as<ir::If>()) {
      expr(branch->condition, false);
      stmt(branch->then_body);
      stmt(branch->else_body);
    } else {
      ir::for_each_child(
          s, [&](Stmt child) { stmt(child); }, [](Expr) {});
    }
  }
};

bool holds_block(Stmt s) {
  bool found = false;
  ir::walk(
      s,
      [&](Stmt part) {
        found = found || part.as<ir::Block>() != nullptr;
        return !found;
      },
      [](Expr) {});
  return found;
}

}  // namespace

NestTable::NestTable(const ir::Program& program) : program_(&program) {
  binding_.resize(static_cast<std::size_t>(program.next_ids().var));
  collect(program.root(), nullptr);
  place_buffers();
}

void NestTable::collect(Stmt s, const ir::Block* block) {
  if (!s.defined()) return;
  if (const auto* loop = s.as<ir::Loop>()) {
    stack_.push_back({loop->id, loop->var->id, constant_or_one(loop->extent), loop->loop_kind});
    collect(loop->body, block);
    stack_.pop_back();
  } else if (const auto* inner = s.as<ir::Block>()) {
    collect_block(*inner);
  } else if (s.as<ir::Store>() != nullptr) {
    add_nest(block, s, false);
  } else {
    ir::for_each_child(
        s, [&](Stmt child) { collect(child, block); }, [](Expr) {});
  }
}

void NestTable::collect_block(const ir::Block& block) {
  for (const ir::IterVar& iter : block.iters) {
    binding_[static_cast<std::size_t>(iter.var->id.value)] = iter.binding;
  }
  if (block.init.defined()) add_nest(&block, block.init, true);
  if (holds_block(block.body) || block.body.as<ir::Loop>() != nullptr) {
    collect(block.body, &block);
  } else {
    add_nest(&block, block.body, false);
  }
}

void NestTable::add_nest(const ir::Block* block, Stmt body, bool is_init) {
  Nest nest;
  nest.block = block;
  nest.loops = stack_;
  nest.is_init = is_init;
  BodyReader{*program_, nest}.stmt(body);
  if (is_init) {
    // The init runs in the first reduction iteration only.
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
      for (const ir::IterVar& iter : block->iters) {
        if (iter.kind != ir::IterKind::kSpatial &&
            depends(nest, iter.binding, static_cast<int>(i))) {
          nest.loops[i].extent = 1;
        }
      }
    }
  }
  nests_.push_back(std::move(nest));
}

int NestTable::loop_at(const Nest& nest, ir::VarId var) const {
  for (std::size_t i = nest.loops.size(); i > 0; --i) {
    if (nest.loops[i - 1].var == var) return static_cast<int>(i - 1);
  }
  return -1;
}

double NestTable::span(const Nest& nest, Expr e, int depth) const {
  if (!e.defined()) return 0;
  if (const auto* var = e.as<ir::Var>()) {
    const int at = loop_at(nest, var->id);
    if (at >= 0) {
      return at >= depth ? static_cast<double>(nest.loops[static_cast<std::size_t>(at)].extent - 1)
                         : 0;
    }
    return span(nest, binding_[static_cast<std::size_t>(var->id.value)], depth);
  }
  if (const ir::BinaryNode* binary = ir::as_binary(e)) {
    const double lhs = span(nest, binary->lhs, depth);
    const double rhs = span(nest, binary->rhs, depth);
    const auto* constant = binary->rhs.as<ir::IntImm>();
    const double scale = constant != nullptr ? std::abs(static_cast<double>(constant->value)) : 0;
    switch (e.kind()) {
      case ExprKind::kMul: {
        const auto* left = binary->lhs.as<ir::IntImm>();
        if (constant != nullptr) return lhs * scale;
        return left != nullptr ? rhs * std::abs(static_cast<double>(left->value)) : lhs + rhs;
      }
      case ExprKind::kFloorDiv: return scale > 0 ? std::floor(lhs / scale) : lhs;
      case ExprKind::kFloorMod: return scale > 0 ? std::min(lhs, scale - 1) : lhs;
      default: return lhs + rhs;
    }
  }
  if (const auto* load = e.as<ir::Load>()) {
    // Data-dependent: anywhere, once something it depends on moves.
    double moved = 0;
    for (Expr index : load->indices) moved += span(nest, index, depth);
    return moved > 0 ? 1e6 : 0;
  }
  double total = 0;
  ir::for_each_child(e, [&](Expr child) { total += span(nest, child, depth); });
  return total;
}

double NestTable::distinct(const Nest& nest, Expr e, int depth) const {
  const double reach = span(nest, e, depth) + 1;
  double iterations = 1;
  for (int i = depth; i < static_cast<int>(nest.loops.size()) && iterations < reach; ++i) {
    if (depends(nest, e, i)) {
      iterations *= static_cast<double>(nest.loops[static_cast<std::size_t>(i)].extent);
    }
  }
  return std::min(reach, iterations);
}

double NestTable::step(const Nest& nest, Expr e, int depth) const {
  if (!e.defined()) return 0;
  if (const auto* var = e.as<ir::Var>()) {
    const int at = loop_at(nest, var->id);
    if (at >= 0) return at == depth ? 1 : 0;
    return step(nest, binding_[static_cast<std::size_t>(var->id.value)], depth);
  }
  if (const ir::BinaryNode* binary = ir::as_binary(e)) {
    const double lhs = step(nest, binary->lhs, depth);
    const double rhs = step(nest, binary->rhs, depth);
    const auto* constant = binary->rhs.as<ir::IntImm>();
    const double scale = constant != nullptr ? static_cast<double>(constant->value) : 0;
    switch (e.kind()) {
      case ExprKind::kSub: return lhs - rhs;
      case ExprKind::kMul: {
        const auto* left = binary->lhs.as<ir::IntImm>();
        if (constant != nullptr) return lhs * scale;
        return left != nullptr ? rhs * static_cast<double>(left->value) : lhs + rhs;
      }
      case ExprKind::kFloorDiv: return scale != 0 ? lhs / scale : lhs;
      case ExprKind::kFloorMod: return lhs;
      default: return lhs + rhs;
    }
  }
  if (e.as<ir::Load>() != nullptr) return depends(nest, e, depth) ? 4096 : 0;
  if (const auto* select = e.as<ir::Select>()) return step(nest, select->on_true, depth);
  double total = 0;
  ir::for_each_child(e, [&](Expr child) { total += step(nest, child, depth); });
  return total;
}

bool NestTable::depends(const Nest& nest, Expr e, int depth) const {
  if (!e.defined()) return false;
  bool found = false;
  ir::walk(e, [&](Expr part) {
    if (const auto* var = part.as<ir::Var>()) {
      const int at = loop_at(nest, var->id);
      if (at >= 0) {
        found = found || at == depth;
      } else {
        found = found || depends(nest, binding_[static_cast<std::size_t>(var->id.value)], depth);
      }
    }
    return !found;
  });
  return found;
}

void NestTable::place_buffers() {
  const std::size_t num_buffers = program_->buffers().size();
  std::vector<const Nest*> first(num_buffers, nullptr);
  home_depth_.assign(num_buffers, 0);
  for (const Nest& nest : nests_) {
    for (const NestAccess& access : nest.accesses) {
      const auto b = static_cast<std::size_t>(access.buffer.value);
      const int num_loops = static_cast<int>(nest.loops.size());
      if (first[b] == nullptr) {
        first[b] = &nest;
        home_depth_[b] = num_loops;
      }
      int common = 0;
      const int limit = std::min(home_depth_[b], num_loops);
      while (common < limit && first[b]->loops[static_cast<std::size_t>(common)].id ==
                                   nest.loops[static_cast<std::size_t>(common)].id) {
        ++common;
      }
      home_depth_[b] = common;
    }
  }
  shapes_.resize(num_buffers);
  for (std::size_t b = 0; b < num_buffers; ++b) {
    const ir::Buffer& buffer = program_->buffers()[b];
    const bool compact = buffer.role == ir::BufferRole::kIntermediate;
    if (!compact) home_depth_[b] = 0;
    for (const Expr extent : buffer.shape) {
      shapes_[b].push_back(compact ? 1 : static_cast<double>(constant_or_one(extent)));
    }
  }
  for (const Nest& nest : nests_) {
    for (const NestAccess& access : nest.accesses) {
      const auto b = static_cast<std::size_t>(access.buffer.value);
      const ir::Buffer& buffer = program_->buffers()[b];
      if (buffer.role != ir::BufferRole::kIntermediate) continue;
      for (std::size_t d = 0; d < access.indices.size(); ++d) {
        const double full = static_cast<double>(constant_or_one(buffer.shape[d]));
        const double used = span(nest, access.indices[d], home_depth_[b]) + 1;
        shapes_[b][d] = std::max(shapes_[b][d], std::min(full, used));
      }
    }
  }
}

}  // namespace prunerc::costmodel

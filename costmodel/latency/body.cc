#include "costmodel/latency/body.h"

#include "ir/equal.h"
#include "ir/visit.h"

#include <algorithm>

namespace prunerc::costmodel {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Intrinsic;
using ir::Stmt;

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

  // A subscript may itself load; plain index arithmetic costs nothing here.
  void gathers(std::span<const Expr> indices, bool masked) {
    for (const Expr index : indices) {
      ir::walk(index, [&](Expr part) {
        if (part.as<ir::Load>() == nullptr) return true;
        expr(part, masked);
        return false;
      });
    }
  }

  void expr(Expr e, bool masked) {
    if (const auto* load = e.as<ir::Load>()) {
      gathers(load->indices, masked);
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
    NestCondition found = {e, 1 + nest.ops.simple - before.simple, {}};
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
        else {
          ops.special += intrinsic_cost(intrinsic);
          ops.calls += 1;
        }
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
      gathers(store->indices, false);
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

}  // namespace

void read_body(const ir::Program& program, Stmt body, Nest* nest) {
  BodyReader{program, *nest}.stmt(body);
}

}  // namespace prunerc::costmodel

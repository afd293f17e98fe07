#include "costmodel/latency/body.h"

#include "ir/equal.h"
#include "ir/visit.h"

#include <algorithm>
#include <utility>

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
  std::vector<ir::BufferId> stored;
  bool in_condition = false;

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
    NestOps own = ops_of(e);
    add(own, &nest.ops);
    if (in_condition) own.simple = 0;  // counted there
    if (own.add + own.mul + own.simple + own.divide + own.special > 0) add(own, &work_of(e).ops);
    ir::for_each_child(e, [&](Expr child) { expr(child, masked); });
  }

  void condition(Expr e, bool masked) {
    const NestOps before = nest.ops;
    const bool was_inside = std::exchange(in_condition, true);
    expr(e, masked);
    in_condition = was_inside;
    nest.conditions.push_back({e, 1 + nest.ops.simple - before.simple, {}});
    nest.ops.simple = before.simple;
  }

  static NestOps ops_of(Expr e) {
    NestOps ops;
    switch (e.kind()) {
      case ExprKind::kAdd:
      case ExprKind::kSub: (ir::is_float(e.dtype()) ? ops.add : ops.simple) = 1; break;
      case ExprKind::kMul: (ir::is_float(e.dtype()) ? ops.mul : ops.simple) = 1; break;
      case ExprKind::kDiv: ops.divide = 1; break;
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
      case ExprKind::kCast: ops.simple = 1; break;
      case ExprKind::kCall: {
        const Intrinsic intrinsic = e.as<ir::Call>()->intrinsic;
        if (intrinsic == Intrinsic::kSqrt)
          ops.divide = 1;
        else if (intrinsic == Intrinsic::kFma)
          ops.add = 1, ops.mul = 1;
        else {
          ops.special = intrinsic_cost(intrinsic);
          ops.calls = 1;
        }
        break;
      }
      case ExprKind::kVar:
      case ExprKind::kTileParam:
      case ExprKind::kIntImm:
      case ExprKind::kFloatImm:
      case ExprKind::kLoad: break;
    }
    return ops;
  }

  static void add(const NestOps& part, NestOps* sum) {
    sum->add += part.add;
    sum->mul += part.mul;
    sum->simple += part.simple;
    sum->divide += part.divide;
    sum->special += part.special;
    sum->calls += part.calls;
  }

  // Of what an operation reads: at most a few sets in one body.
  NestWork& work_of(Expr e) {
    std::vector<Expr> variables;
    bool is_carried = false;
    ir::walk(e, [&](Expr part) {
      const auto* var = part.as<ir::Var>();
      const auto* load = part.as<ir::Load>();
      is_carried = is_carried || (load != nullptr && is_stored(load->buffer));
      if (var != nullptr && !stands_still(*var) && !contains(variables, *var)) {
        variables.push_back(part);
      }
      return true;
    });
    const auto at = std::find_if(nest.work.begin(), nest.work.end(), [&](const NestWork& known) {
      return known.variables.size() == variables.size() &&
             std::all_of(variables.begin(), variables.end(),
                         [&](Expr v) { return contains(known.variables, *v.as<ir::Var>()); });
    });
    NestWork& work = at != nest.work.end() ? *at : nest.work.emplace_back();
    work.variables = std::move(variables);
    work.is_carried = work.is_carried || is_carried;
    return work;
  }

  bool is_stored(ir::BufferId buffer) const {
    return std::find(stored.begin(), stored.end(), buffer) != stored.end();
  }

  bool stands_still(const ir::Var& var) const {
    if (nest.block == nullptr) return false;
    return std::any_of(nest.block->iters.begin(), nest.block->iters.end(), [&](const auto& iter) {
      const auto* extent = iter.extent.template as<ir::IntImm>();
      return iter.var->id == var.id && extent != nullptr && extent->value == 1;
    });
  }

  static bool contains(const std::vector<Expr>& variables, const ir::Var& var) {
    return std::any_of(variables.begin(), variables.end(),
                       [&](Expr v) { return v.as<ir::Var>()->id == var.id; });
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
  BodyReader reader{program, *nest, {}};
  ir::walk(
      body,
      [&](Stmt s) {
        if (const auto* store = s.as<ir::Store>()) reader.stored.push_back(store->buffer);
        return true;
      },
      [](Expr) {});
  reader.stmt(body);
}

}  // namespace prunerc::costmodel

#include "ir/interp/code.h"

#include "ir/interp/tensor.h"
#include "ir/query.h"
#include "ir/thread_axis.h"

#include <unordered_map>

namespace prunerc::ir {
namespace {

class Compiler {
 public:
  Compiler(const Program& program, std::span<const int64_t> params)
      : program_(program), params_(params) {}

  Result<void> buffers(int64_t max_elements);
  int32_t stmt(Stmt s);
  Code take() { return std::move(code_); }
  void set_root(int32_t root) { code_.root = root; }

 private:
  int32_t expr(Expr e);
  int32_t put(CodeExpr node) {
    code_.exprs.push_back(node);
    return static_cast<int32_t>(code_.exprs.size()) - 1;
  }
  int32_t put(CodeStmt node) {
    code_.stmts.push_back(node);
    return static_cast<int32_t>(code_.stmts.size()) - 1;
  }
  int32_t slot(const Var& var);
  int32_t access(BufferId buffer, std::span<const Expr> indices);
  int32_t binary(const BinaryNode& n);
  int32_t cast(const Cast& n);
  int32_t call(const Call& n);
  int32_t block(const Block& n);

  const Program& program_;
  std::span<const int64_t> params_;
  std::unordered_map<int32_t, int32_t> slots_;
  Code code_;
};

int32_t Compiler::slot(const Var& var) {
  const auto next = static_cast<int32_t>(code_.slot_names.size());
  const auto [found, is_new] = slots_.emplace(var.id.value, next);
  if (is_new) code_.slot_names.emplace_back(var.name);
  return found->second;
}

int32_t Compiler::access(BufferId buffer, std::span<const Expr> indices) {
  std::vector<int32_t> compiled;
  for (Expr index : indices) compiled.push_back(expr(index));
  CodeAccess a;
  a.buffer = buffer.value;
  a.first = static_cast<int32_t>(code_.index_exprs.size());
  a.rank = static_cast<int32_t>(indices.size());
  code_.index_exprs.insert(code_.index_exprs.end(), compiled.begin(), compiled.end());
  code_.accesses.push_back(a);
  return static_cast<int32_t>(code_.accesses.size()) - 1;
}

Op binary_op(ExprKind kind, bool floats) {
  switch (kind) {
    case ExprKind::kAdd: return floats ? Op::kAddF : Op::kAddI;
    case ExprKind::kSub: return floats ? Op::kSubF : Op::kSubI;
    case ExprKind::kMul: return floats ? Op::kMulF : Op::kMulI;
    case ExprKind::kDiv: return Op::kDivF;
    case ExprKind::kFloorDiv: return Op::kFloorDiv;
    case ExprKind::kFloorMod: return Op::kFloorMod;
    case ExprKind::kMin: return floats ? Op::kMinF : Op::kMinI;
    case ExprKind::kMax: return floats ? Op::kMaxF : Op::kMaxI;
    case ExprKind::kEq: return floats ? Op::kEqF : Op::kEqI;
    case ExprKind::kNe: return floats ? Op::kNeF : Op::kNeI;
    case ExprKind::kLt: return floats ? Op::kLtF : Op::kLtI;
    case ExprKind::kLe: return floats ? Op::kLeF : Op::kLeI;
    case ExprKind::kAnd: return Op::kAnd;
    case ExprKind::kOr: return Op::kOr;
    case ExprKind::kVar:
    case ExprKind::kTileParam:
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kNot:
    case ExprKind::kSelect:
    case ExprKind::kCast:
    case ExprKind::kLoad:
    case ExprKind::kCall: break;
  }
  PRUNERC_UNREACHABLE("binary kind");
}

int32_t Compiler::binary(const BinaryNode& n) {
  CodeExpr out;
  out.op = binary_op(n.kind, is_float(n.lhs.dtype()));
  out.dtype = n.dtype;
  out.a = expr(n.lhs);
  out.b = expr(n.rhs);
  return put(out);
}

int32_t Compiler::cast(const Cast& n) {
  const bool from_float = is_float(n.operand.dtype());
  CodeExpr out;
  out.dtype = n.dtype;
  out.a = expr(n.operand);
  if (is_float(n.dtype)) {
    out.op = from_float ? Op::kRoundF : Op::kRoundI;
  } else if (is_bool(n.dtype)) {
    out.op = from_float ? Op::kTruth : Op::kToBool;
  } else {
    out.op = from_float ? Op::kSaturate : Op::kWrap;
  }
  return put(out);
}

int32_t Compiler::call(const Call& n) {
  CodeExpr out;
  out.op = is_float(n.dtype) ? Op::kCallF : Op::kAbsI;
  out.dtype = n.dtype;
  out.intrinsic = n.intrinsic;
  out.a = expr(n.args[0]);
  out.b = n.args.size() > 1 ? expr(n.args[1]) : -1;
  out.c = n.args.size() > 2 ? expr(n.args[2]) : -1;
  return put(out);
}

int32_t Compiler::expr(Expr e) {
  if (const BinaryNode* b = as_binary(e)) return binary(*b);
  CodeExpr out;
  out.dtype = e.dtype();
  if (const Var* v = e.as<Var>()) {
    out.op = Op::kVar;
    out.a = slot(*v);
  } else if (const TileParam* p = e.as<TileParam>()) {
    out.value = params_[static_cast<std::size_t>(p->id.value)];
  } else if (const IntImm* i = e.as<IntImm>()) {
    out.value = i->value;
  } else if (const FloatImm* f = e.as<FloatImm>()) {
    out.op = Op::kConstF;
    out.real = f->value;
  } else if (const Not* n = e.as<Not>()) {
    out.op = Op::kNot;
    out.a = expr(n->operand);
  } else if (const Select* s = e.as<Select>()) {
    out.op = is_float(s->dtype) ? Op::kSelectF : Op::kSelectI;
    out.a = expr(s->condition);
    out.b = expr(s->on_true);
    out.c = expr(s->on_false);
  } else if (const Cast* c = e.as<Cast>()) {
    return cast(*c);
  } else if (const Load* l = e.as<Load>()) {
    out.op = is_float(l->dtype) ? Op::kLoadF : Op::kLoadI;
    out.a = access(l->buffer, l->indices);
  } else if (const Call* call_node = e.as<Call>()) {
    return call(*call_node);
  }
  return put(out);
}

int32_t Compiler::block(const Block& n) {
  CodeStmt out;
  out.kind = StmtKind::kBlock;
  out.block = n.id.value;
  out.expr = n.guard.defined() ? expr(n.guard) : -1;
  std::vector<CodeIter> iters;
  for (const IterVar& iter : n.iters) {
    CodeIter compiled;
    compiled.extent = expr(iter.extent);
    compiled.binding = expr(iter.binding);
    compiled.slot = slot(*iter.var);
    compiled.is_reduce = iter.kind == IterKind::kReduce;
    iters.push_back(compiled);
  }
  out.first = static_cast<int32_t>(code_.iters.size());
  out.count = static_cast<int32_t>(iters.size());
  code_.iters.insert(code_.iters.end(), iters.begin(), iters.end());
  out.other = stmt(n.init);
  out.body = stmt(n.body);
  return put(out);
}

int32_t Compiler::stmt(Stmt s) {
  if (!s.defined()) return -1;
  CodeStmt out;
  out.kind = s.kind();
  if (const Seq* seq = s.as<Seq>()) {
    std::vector<int32_t> compiled;
    for (Stmt child : seq->stmts) compiled.push_back(stmt(child));
    out.first = static_cast<int32_t>(code_.children.size());
    out.count = static_cast<int32_t>(compiled.size());
    code_.children.insert(code_.children.end(), compiled.begin(), compiled.end());
  } else if (const Loop* loop = s.as<Loop>()) {
    // Threads that combine partial results have no order of their own; the init must come first.
    out.is_serial = !is_concurrent(loop->loop_kind) || carries_reduction(*loop);
    out.expr = expr(loop->extent);
    out.slot = slot(*loop->var);
    out.body = stmt(loop->body);
  } else if (const Block* n = s.as<Block>()) {
    return block(*n);
  } else if (const Store* store = s.as<Store>()) {
    out.is_float = is_float(store->value.dtype());
    out.expr = expr(store->value);
    out.slot = access(store->buffer, store->indices);
  } else if (const If* branch = s.as<If>()) {
    out.expr = expr(branch->condition);
    out.body = stmt(branch->then_body);
    out.other = stmt(branch->else_body);
  } else if (const Alloc* alloc = s.as<Alloc>()) {
    out.slot = alloc->buffer.value;
    out.body = stmt(alloc->body);
  }
  return put(out);
}

Result<void> Compiler::buffers(int64_t max_elements) {
  int64_t total = 0;
  for (const Buffer& buffer : program_.buffers()) {
    CodeBuffer out;
    out.name = std::string(buffer.name);
    out.dtype = buffer.dtype;
    out.role = buffer.role;
    out.shape = shape_of(buffer, params_);
    for (int64_t extent : out.shape) {
      if (extent < 1 || extent > max_elements / out.num_elements) {
        return error(Diag::kInterpTooLarge, out.name, max_elements);
      }
      out.num_elements *= extent;
    }
    total += out.num_elements;
    if (total > max_elements) return error(Diag::kInterpTooLarge, out.name, max_elements);
    code_.buffers.push_back(std::move(out));
  }
  return {};
}

}  // namespace

Result<Code> compile_code(const Program& program, std::span<const int64_t> params,
                          int64_t max_elements) {
  const std::size_t num_params = program.domain().names.size();
  if (params.size() != num_params) {
    return error(Diag::kInterpParams, static_cast<int64_t>(num_params),
                 static_cast<int64_t>(params.size()));
  }
  Compiler compiler(program, params);
  PRUNERC_TRY_VOID(compiler.buffers(max_elements));
  compiler.set_root(compiler.stmt(program.root()));
  return compiler.take();
}

}  // namespace prunerc::ir

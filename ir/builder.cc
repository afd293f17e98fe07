#include "ir/builder.h"

#include "ir/int_math.h"
#include "ir/support/check.h"
#include "ir/support/hash.h"

#include <cmath>
#include <string>

namespace prunerc::ir {
namespace {

uint64_t start_hash(ExprKind kind, DType dtype) {
  return hash_combine(static_cast<uint64_t>(kind) + 1, static_cast<uint64_t>(dtype));
}
uint64_t start_hash(StmtKind kind) { return mix64(static_cast<uint64_t>(kind) + 101); }
uint64_t with(uint64_t h, Expr e) { return hash_combine(h, e.defined() ? e.hash() : 0); }
uint64_t with(uint64_t h, Stmt s) { return hash_combine(h, s.defined() ? s.hash() : 0); }
uint64_t with(uint64_t h, int64_t v) { return hash_combine(h, static_cast<uint64_t>(v)); }

uint64_t with(uint64_t h, std::span<const Expr> items) {
  for (Expr e : items) h = with(h, e);
  return with(h, static_cast<int64_t>(items.size()));
}
uint64_t with(uint64_t h, std::span<const Attr> attrs) {
  for (const Attr& a : attrs) h = with(hash_combine(h, hash_bytes(a.key)), a.value);
  return h;
}
uint64_t with(uint64_t h, std::span<const Access> accesses) {
  for (const Access& a : accesses) {
    h = with(h, static_cast<int64_t>(a.buffer.value));
    for (const Range& r : a.region) h = with(with(h, r.min), r.extent);
  }
  return with(h, static_cast<int64_t>(accesses.size()));
}

bool is_compare(ExprKind k) { return k >= ExprKind::kEq && k <= ExprKind::kLe; }
bool is_logic(ExprKind k) { return k == ExprKind::kAnd || k == ExprKind::kOr; }

// The operation on exact integers; false if it has no value (division by zero) or is not an integer
// operation.
bool fold_int(ExprKind kind, int64_t a, int64_t b, int64_t* out) {
  switch (kind) {
    case ExprKind::kAdd: *out = wrapping_add(a, b); return true;
    case ExprKind::kSub: *out = wrapping_sub(a, b); return true;
    case ExprKind::kMul: *out = wrapping_mul(a, b); return true;
    case ExprKind::kFloorDiv: return b != 0 && (*out = floor_div(a, b), true);
    case ExprKind::kFloorMod: return b != 0 && (*out = floor_mod(a, b), true);
    case ExprKind::kMin: *out = a < b ? a : b; return true;
    case ExprKind::kMax: *out = a > b ? a : b; return true;
    case ExprKind::kEq: *out = a == b; return true;
    case ExprKind::kNe: *out = a != b; return true;
    case ExprKind::kLt: *out = a < b; return true;
    case ExprKind::kLe: *out = a <= b; return true;
    case ExprKind::kAnd: *out = a != 0 && b != 0; return true;
    case ExprKind::kOr: *out = a != 0 || b != 0; return true;
    default: return false;
  }
}

}  // namespace

Result<DType> binary_type(ExprKind kind, DType lhs, DType rhs) {
  if (lhs != rhs) {
    return error(Diag::kTypeMismatch, std::string(to_string(kind)), std::string(to_string(lhs)),
                 std::string(to_string(rhs)));
  }
  const bool fits = is_logic(kind)                                               ? is_bool(lhs)
                    : is_compare(kind)                                           ? true
                    : kind == ExprKind::kDiv                                     ? is_float(lhs)
                    : kind == ExprKind::kFloorDiv || kind == ExprKind::kFloorMod ? is_int(lhs)
                                                                                 : !is_bool(lhs);
  if (!fits) {
    return error(Diag::kTypeUnexpected, std::string(to_string(kind)), std::string(to_string(lhs)));
  }
  return is_compare(kind) || is_logic(kind) ? DType::kBool : lhs;
}

IrBuilder::IrBuilder(std::string_view program_name) : arena_(std::make_shared<Arena>()) {
  name_ = arena_->copy(program_name);
}

IrBuilder::IrBuilder(const Program& base)
    : arena_(std::make_shared<Arena>(base.arena())),
      name_(base.name()),
      buffers_(base.buffers().begin(), base.buffers().end()),
      params_(base.params().begin(), base.params().end()),
      param_names_(base.domain().names.begin(), base.domain().names.end()),
      tiles_(base.domain().tiles.begin(), base.domain().tiles.end()),
      choices_(base.domain().choices.begin(), base.domain().choices.end()),
      constraints_(base.domain().constraints.begin(), base.domain().constraints.end()),
      next_(base.next_ids()) {}

template <typename N>
const N* IrBuilder::put(N node) {
  return arena_->make<N>(node);
}

Expr IrBuilder::int_imm(int64_t value, DType dtype) {
  PRUNERC_CHECK(!is_float(dtype), "int_imm of a float type");
  IntImm n;
  n.kind = ExprKind::kIntImm;
  n.dtype = dtype;
  n.value = wrap_to(dtype, value);
  n.hash = with(start_hash(n.kind, dtype), n.value);
  return put(n);
}

Expr IrBuilder::float_imm(double value, DType dtype) {
  PRUNERC_CHECK(is_float(dtype), "float_imm of an integer type");
  FloatImm n;
  n.kind = ExprKind::kFloatImm;
  n.dtype = dtype;
  n.value = round_to(dtype, value);
  n.hash = hash_combine(start_hash(n.kind, dtype), hash_double(n.value));
  return put(n);
}

Expr IrBuilder::constant(double value, DType dtype) {
  return is_float(dtype)
             ? float_imm(value, dtype)
             : int_imm(is_bool(dtype) ? (value != 0 ? 1 : 0) : saturate_to(dtype, value), dtype);
}

const Var* IrBuilder::fresh_var(std::string_view name, DType dtype) {
  Var n;
  n.kind = ExprKind::kVar;
  n.dtype = dtype;
  n.id = VarId(next_.var++);
  n.name = name;
  n.hash = with(start_hash(n.kind, n.dtype), static_cast<int64_t>(n.id.value));
  return copy_var(n);
}

const Var* IrBuilder::copy_var(const Var& var) {
  Var n = var;
  n.name = arena_->copy(var.name);
  return put(n);
}

Expr IrBuilder::param(ParamId id) {
  TileParam n;
  n.kind = ExprKind::kTileParam;
  n.dtype = DType::kI64;
  n.id = id;
  n.hash = with(start_hash(n.kind, n.dtype), static_cast<int64_t>(id.value));
  return put(n);
}

Expr IrBuilder::binary(ExprKind kind, Expr lhs, Expr rhs) {
  const Result<DType> type = binary_type(kind, lhs.dtype(), rhs.dtype());
  PRUNERC_CHECK(type.ok(), "operand types of a binary operation");
  const IntImm* a = lhs.as<IntImm>();
  const IntImm* b = rhs.as<IntImm>();
  int64_t folded = 0;
  if (a != nullptr && b != nullptr && fold_int(kind, a->value, b->value, &folded)) {
    return int_imm(folded, *type);
  }
  if (is_logic(kind) && (a != nullptr || b != nullptr)) {
    // A constant side decides or vanishes; the other side is pure.
    const bool constant = (a != nullptr ? a : b)->value != 0;
    const bool keeps = constant == (kind == ExprKind::kAnd);
    return keeps ? (a != nullptr ? rhs : lhs) : bool_imm(constant);
  }
  BinaryNode n;
  n.kind = kind;
  n.dtype = *type;
  n.lhs = lhs;
  n.rhs = rhs;
  n.hash = with(with(start_hash(kind, n.dtype), lhs), rhs);
  n.hash = with(n.hash, static_cast<int64_t>(lhs.dtype()));
  return put(n);
}

Expr IrBuilder::logical_not(Expr a) {
  PRUNERC_CHECK(is_bool(a.dtype()), "not of a bool");
  if (const IntImm* c = a.as<IntImm>()) return bool_imm(c->value == 0);
  if (const Not* inner = a.as<Not>()) return inner->operand;
  Not n;
  n.kind = ExprKind::kNot;
  n.dtype = DType::kBool;
  n.operand = a;
  n.hash = with(start_hash(n.kind, n.dtype), a);
  return put(n);
}

Expr IrBuilder::select(Expr condition, Expr on_true, Expr on_false) {
  PRUNERC_CHECK(is_bool(condition.dtype()) && on_true.dtype() == on_false.dtype(),
                "types of a select");
  if (const IntImm* c = condition.as<IntImm>()) return c->value != 0 ? on_true : on_false;
  Select n;
  n.kind = ExprKind::kSelect;
  n.dtype = on_true.dtype();
  n.condition = condition;
  n.on_true = on_true;
  n.on_false = on_false;
  n.hash = with(with(with(start_hash(n.kind, n.dtype), condition), on_true), on_false);
  return put(n);
}

Expr IrBuilder::cast(DType dtype, Expr operand) {
  if (operand.dtype() == dtype) return operand;
  if (const IntImm* c = operand.as<IntImm>()) {
    if (!is_float(dtype)) return int_imm(c->value, dtype);
    return float_imm(float_of(dtype, c->value), dtype);
  }
  if (const FloatImm* c = operand.as<FloatImm>()) {
    if (is_float(dtype)) return float_imm(c->value, dtype);
    if (!is_bool(dtype)) return int_imm(saturate_to(dtype, c->value), dtype);
    return bool_imm(c->value != 0);
  }
  Cast n;
  n.kind = ExprKind::kCast;
  n.dtype = dtype;
  n.operand = operand;
  n.hash = with(start_hash(n.kind, dtype), operand);
  return put(n);
}

Expr IrBuilder::load(BufferId buffer_id, std::span<const Expr> indices) {
  const Buffer& target = buffer(buffer_id);
  PRUNERC_CHECK(indices.size() == target.shape.size(), "rank of a load");
  Load n;
  n.kind = ExprKind::kLoad;
  n.dtype = target.dtype;
  n.buffer = buffer_id;
  n.indices = arena_->copy(indices);
  n.hash =
      with(with(start_hash(n.kind, n.dtype), static_cast<int64_t>(buffer_id.value)), n.indices);
  return put(n);
}

Expr IrBuilder::call(Intrinsic intrinsic, std::span<const Expr> args) {
  PRUNERC_CHECK(static_cast<int>(args.size()) == num_args(intrinsic), "arguments of a call");
  for (Expr arg : args) PRUNERC_CHECK(arg.dtype() == args[0].dtype(), "argument types of a call");
  Call n;
  n.kind = ExprKind::kCall;
  n.dtype = args[0].dtype();
  PRUNERC_CHECK(is_float(n.dtype) || (intrinsic == Intrinsic::kAbs && is_int(n.dtype)),
                "argument type of a call");
  n.intrinsic = intrinsic;
  n.args = arena_->copy(args);
  n.hash = with(with(start_hash(n.kind, n.dtype), static_cast<int64_t>(intrinsic)), n.args);
  return put(n);
}

BufferId IrBuilder::add_buffer(std::string_view name, DType dtype, std::span<const Expr> shape,
                               Scope scope, BufferRole role) {
  auto taken = [&](std::string_view candidate) {
    for (const Buffer& other : buffers_) {
      if (other.name == candidate) return true;
    }
    return false;
  };
  std::string unique(name);
  for (int suffix = 1; taken(unique); ++suffix) {
    unique = std::string(name) + "_" + std::to_string(suffix);
  }
  Buffer buffer;
  buffer.id = BufferId(static_cast<int32_t>(buffers_.size()));
  buffer.name = arena_->copy(std::string_view(unique));
  buffer.dtype = dtype;
  buffer.shape = arena_->copy(shape);
  buffer.scope = scope;
  buffer.role = role;
  buffers_.push_back(buffer);
  if (role != BufferRole::kIntermediate) params_.push_back(buffer.id);
  return buffer.id;
}

void IrBuilder::set_buffer(const Buffer& description) {
  Buffer& target = buffers_[static_cast<std::size_t>(description.id.value)];
  target = description;
  target.name = arena_->copy(description.name);
  target.shape = arena_->copy(description.shape);
}

void IrBuilder::mark_const(BufferId input) {
  Buffer& target = buffers_[static_cast<std::size_t>(input.value)];
  PRUNERC_CHECK(target.role == BufferRole::kInput, "only an input is const");
  target.is_const = true;
}

ParamId IrBuilder::add_param(std::string_view name) {
  param_names_.push_back(arena_->copy(name));
  return ParamId(static_cast<int32_t>(param_names_.size()) - 1);
}

void IrBuilder::add_tiles(const TileVector& tiles) {
  TileVector copied = tiles;
  copied.params = arena_->copy(tiles.params);
  tiles_.push_back(copied);
}

void IrBuilder::add_choice(const Choice& choice) {
  choices_.push_back({choice.param, arena_->copy(choice.values)});
}

void IrBuilder::add_constraint(Expr constraint) {
  PRUNERC_CHECK(is_bool(constraint.dtype()), "a constraint is a bool");
  constraints_.push_back(constraint);
}

void IrBuilder::clear_domain() {
  param_names_.clear();
  tiles_.clear();
  choices_.clear();
  constraints_.clear();
}

Stmt IrBuilder::seq(std::span<const Stmt> stmts) {
  std::vector<Stmt> flat;
  for (Stmt s : stmts) {
    if (!s.defined()) continue;
    if (const Seq* inner = s.as<Seq>()) {
      flat.insert(flat.end(), inner->stmts.begin(), inner->stmts.end());
    } else {
      flat.push_back(s);
    }
  }
  if (flat.empty()) return {};
  if (flat.size() == 1) return flat[0];
  Seq n;
  n.kind = StmtKind::kSeq;
  n.stmts = arena_->copy(std::span<const Stmt>(flat));
  n.hash = start_hash(n.kind);
  for (Stmt s : flat) n.hash = with(n.hash, s);
  return put(n);
}

Stmt IrBuilder::loop(const Loop& description) {
  PRUNERC_CHECK(description.body.defined() && description.var != nullptr, "a loop has a body");
  PRUNERC_CHECK(description.extent.dtype() == DType::kI64, "a loop's extent is i64");
  Loop n = description;
  n.kind = StmtKind::kLoop;
  n.attrs = arena_->copy(description.attrs);
  n.hash = with(start_hash(n.kind), static_cast<int64_t>(n.id.value));
  n.hash = with(n.hash, static_cast<int64_t>(n.var->id.value));
  n.hash = with(n.hash, n.extent);
  n.hash = with(n.hash, static_cast<int64_t>(n.loop_kind));
  n.hash = with(with(n.hash, n.attrs), n.body);
  return put(n);
}

Stmt IrBuilder::block(const Block& description) {
  PRUNERC_CHECK(description.body.defined(), "a block has a body");
  Block n = description;
  n.kind = StmtKind::kBlock;
  n.name = arena_->copy(description.name);
  n.iters = arena_->copy(description.iters);
  n.attrs = arena_->copy(description.attrs);
  auto copy_accesses = [&](std::span<const Access> accesses) {
    std::vector<Access> copied(accesses.begin(), accesses.end());
    for (Access& a : copied) a.region = arena_->copy(a.region);
    return arena_->copy(std::span<const Access>(copied));
  };
  n.reads = copy_accesses(description.reads);
  n.writes = copy_accesses(description.writes);
  if (const IntImm* c = n.guard.as<IntImm>(); c != nullptr && c->value != 0) n.guard = Expr();
  // It says how results from the init on combine.
  if (!n.init.defined()) n.combiner = nullptr;
  n.hash = with(start_hash(n.kind), static_cast<int64_t>(n.id.value));
  for (const IterVar& iter : n.iters) {
    n.hash = with(n.hash, static_cast<int64_t>(iter.var->id.value));
    n.hash = with(with(n.hash, iter.extent), iter.binding);
    n.hash = with(n.hash, static_cast<int64_t>(iter.kind));
  }
  n.hash = with(with(n.hash, n.reads), n.writes);
  n.hash = with(with(with(n.hash, n.guard), n.init), n.body);
  n.hash = with(n.hash, n.attrs);
  if (n.combiner != nullptr) n.hash = with(n.hash, n.combiner->results);
  return put(n);
}

const Combiner* IrBuilder::combiner(const Combiner& description) {
  PRUNERC_CHECK(description.left.size() == description.results.size() &&
                    description.right.size() == description.results.size(),
                "a combiner has two variables for each result");
  Combiner n;
  n.left = arena_->copy(description.left);
  n.right = arena_->copy(description.right);
  n.results = arena_->copy(description.results);
  return arena_->copy(std::span<const Combiner>(&n, 1)).data();
}

Stmt IrBuilder::store(BufferId buffer_id, std::span<const Expr> indices, Expr value) {
  const Buffer& target = buffer(buffer_id);
  PRUNERC_CHECK(indices.size() == target.shape.size(), "rank of a store");
  PRUNERC_CHECK(value.dtype() == target.dtype, "type of a stored value");
  Store n;
  n.kind = StmtKind::kStore;
  n.buffer = buffer_id;
  n.indices = arena_->copy(indices);
  n.value = value;
  n.hash = with(with(start_hash(n.kind), static_cast<int64_t>(buffer_id.value)), n.indices);
  n.hash = with(n.hash, value);
  return put(n);
}

Stmt IrBuilder::if_then(Expr condition, Stmt then_body, Stmt else_body) {
  PRUNERC_CHECK(is_bool(condition.dtype()), "a condition is a bool");
  if (const IntImm* c = condition.as<IntImm>()) return c->value != 0 ? then_body : else_body;
  if (!then_body.defined() && !else_body.defined()) return {};
  if (!then_body.defined()) return if_then(logical_not(condition), else_body);
  If n;
  n.kind = StmtKind::kIf;
  n.condition = condition;
  n.then_body = then_body;
  n.else_body = else_body;
  n.hash = with(with(with(start_hash(n.kind), condition), then_body), else_body);
  return put(n);
}

Stmt IrBuilder::alloc(BufferId buffer_id, Stmt body) {
  if (!body.defined()) return {};
  Alloc n;
  n.kind = StmtKind::kAlloc;
  n.buffer = buffer_id;
  n.body = body;
  n.hash = with(with(start_hash(n.kind), static_cast<int64_t>(buffer_id.value)), body);
  return put(n);
}

void IrBuilder::reserve_ids(IdCounters at_least) {
  next_.var = std::max(next_.var, at_least.var);
  next_.loop = std::max(next_.loop, at_least.loop);
  next_.block = std::max(next_.block, at_least.block);
}

Program IrBuilder::finish(Stmt root) {
  ProgramNode n;
  n.name = name_;
  n.buffers = arena_->copy(std::span<const Buffer>(buffers_));
  n.params = arena_->copy(std::span<const BufferId>(params_));
  n.domain.names = arena_->copy(std::span<const std::string_view>(param_names_));
  n.domain.tiles = arena_->copy(std::span<const TileVector>(tiles_));
  n.domain.choices = arena_->copy(std::span<const Choice>(choices_));
  n.domain.constraints = arena_->copy(std::span<const Expr>(constraints_));
  n.root = root;
  n.next = next_;
  const ProgramNode* node = arena_->make<ProgramNode>(n);
  return Program(node, std::move(arena_));
}

}  // namespace prunerc::ir

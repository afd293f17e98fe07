#include "ir/fpv/compiler.h"
#include "ir/query.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <algorithm>

namespace prunerc::ir {
namespace {

std::optional<int64_t> constant_value(Expr e, std::span<const int64_t> params) {
  const IntImm* i = e.as<IntImm>();
  if (i != nullptr) return i->value;
  return evaluate_params(e, params);
}

bool holds_loop(Stmt s) {
  bool found = false;
  walk(
      s,
      [&](Stmt x) {
        const Loop* loop = x.as<Loop>();
        const IntImm* extent = loop != nullptr ? loop->extent.as<IntImm>() : nullptr;
        // A kernel is more than its iterations.
        found = found || (loop != nullptr && (extent == nullptr || extent->value != 1 ||
                                              is_thread_axis(loop->loop_kind)));
        return !found;
      },
      [](Expr) {});
  return found;
}

bool same_place(const FpAccess& a, const FpAccess& b) {
  return a.buffer == b.buffer && a.flat == b.flat;
}

}  // namespace

Concurrency concurrency_of(LoopKind kind) {
  switch (kind) {
    case LoopKind::kSerial:
    case LoopKind::kVectorized:
    case LoopKind::kUnrolled:
    // Iterations of one thread, interleaved.
    case LoopKind::kVThreadX:
    case LoopKind::kVThreadY:
    case LoopKind::kVThreadZ: return Concurrency::kNone;
    case LoopKind::kParallel:
    case LoopKind::kBlockX:
    case LoopKind::kBlockY:
    case LoopKind::kBlockZ: return Concurrency::kGrid;
    case LoopKind::kThreadX:
    case LoopKind::kThreadY:
    case LoopKind::kThreadZ: return Concurrency::kThread;
  }
  PRUNERC_UNREACHABLE("loop kind");
}

const FpWindow* window_of(const FpCode& code, int32_t buffer) {
  for (const FpWindow& window : code.windows) {
    if (window.buffer == buffer) return &window;
  }
  return nullptr;
}

int axis_of(LoopKind kind) {
  switch (kind) {
    case LoopKind::kSerial:
    case LoopKind::kVectorized:
    case LoopKind::kUnrolled:
    case LoopKind::kParallel:
    case LoopKind::kBlockX:
    case LoopKind::kThreadX:
    case LoopKind::kVThreadX: return 0;
    case LoopKind::kBlockY:
    case LoopKind::kThreadY:
    case LoopKind::kVThreadY: return 1;
    case LoopKind::kBlockZ:
    case LoopKind::kThreadZ:
    case LoopKind::kVThreadZ: return 2;
  }
  PRUNERC_UNREACHABLE("loop kind");
}

FpCompiler::FpCompiler(const Program& program, std::span<const int64_t> params, Roundings roundings)
    : program_(program),
      params_(params),
      roundings_(roundings),
      alloc_points_(find_alloc_points(program)),
      warp_wide_(find_warp_wide(program)) {}

Result<void> FpCompiler::buffers(int64_t max_elements) {
  int64_t total = 0;
  for (const Buffer& buffer : program_.buffers()) {
    FpBuffer out;
    out.name = std::string(buffer.name);
    out.dtype = buffer.dtype;
    out.role = buffer.role;
    for (Expr extent : buffer.shape) {
      const int64_t value = constant_value(extent, params_).value_or(0);
      if (value < 1 || value > max_elements / out.num_elements) {
        return error(Diag::kUnsupported,
                     "a check of more than " + std::to_string(max_elements) + " elements");
      }
      out.shape.push_back(value);
      out.num_elements *= value;
      code_.largest_extent = std::max(code_.largest_extent, value);
      if (buffer.role != BufferRole::kIntermediate) {
        code_.largest_param_extent = std::max(code_.largest_param_extent, value);
      }
    }
    total += out.num_elements;
    if (total > max_elements) {
      return error(Diag::kUnsupported,
                   "a check of more than " + std::to_string(max_elements) + " elements");
    }
    code_.buffers.push_back(std::move(out));
  }
  return {};
}

int32_t FpCompiler::put(const FpStmt& node) {
  code_.stmts.push_back(node);
  return static_cast<int32_t>(code_.stmts.size()) - 1;
}

int32_t FpCompiler::seq(const std::vector<int32_t>& children) {
  if (children.empty()) return -1;
  if (children.size() == 1) return children[0];
  FpStmt out;
  out.kind = FpStmtKind::kSeq;
  out.first = static_cast<int32_t>(code_.children.size());
  out.count = static_cast<int32_t>(children.size());
  code_.children.insert(code_.children.end(), children.begin(), children.end());
  return put(out);
}

int32_t FpCompiler::new_slot(Interval range) {
  code_.slots.emplace_back();
  slot_ranges_.push_back(range);
  return static_cast<int32_t>(code_.slots.size()) - 1;
}

// The loop's body, in front of it what its iterations start with: storage of their own.
int32_t FpCompiler::with_resets(const Loop& n) {
  std::vector<int32_t> own;
  for (const FpBuffer& buffer : code_.buffers) {
    const auto id = static_cast<int32_t>(&buffer - code_.buffers.data());
    const auto point = alloc_points_.find(BufferId(id));
    if (point != alloc_points_.end() && !point->second.empty() && point->second.back() == &n) {
      own.push_back(id);
    }
  }
  if (own.empty()) return stmt(n.body);
  FpStmt forget;
  forget.kind = FpStmtKind::kForget;
  forget.first = static_cast<int32_t>(code_.children.size());
  forget.count = static_cast<int32_t>(own.size());
  code_.children.insert(code_.children.end(), own.begin(), own.end());
  if (lane_slot_ >= 0) forgotten_.insert(forgotten_.end(), own.begin(), own.end());
  const int32_t first = put(forget);
  const int32_t body = stmt(n.body);
  return body < 0 ? -1 : seq({first, body});
}

int32_t FpCompiler::loop(const Loop& n) {
  const bool starts_kernel =
      is_thread_axis(n.loop_kind) && std::none_of(loops_.begin(), loops_.end(), [](const Loop* l) {
        return is_thread_axis(l->loop_kind);
      });
  const int32_t body = loop_alone(n);
  if (!starts_kernel || body < 0) return body;
  FpStmt kernel;
  kernel.kind = FpStmtKind::kKernel;
  kernel.body = body;
  return put(kernel);
}

int32_t FpCompiler::loop_alone(const Loop& n) {
  const std::optional<int64_t> extent = constant_value(n.extent, params_);
  loops_.push_back(&n);
  int32_t result = -1;
  if (extent == 1) {
    vars_[n.var->id.value] = FpAffine{};
    result = with_resets(n);
    loops_.pop_back();
    return result;
  }
  FpStmt out;
  out.concurrency = concurrency_of(n.loop_kind);
  out.axis = static_cast<int8_t>(axis_of(n.loop_kind));
  out.has_order = carries_reduction(n);
  if (out.concurrency != Concurrency::kNone) {
    int64_t& most =
        code_.axes[static_cast<std::size_t>(out.concurrency)][static_cast<std::size_t>(out.axis)];
    most = std::max(most, extent.value_or(code_.largest_extent));
  }
  out.expr = expr(n.extent, 0);
  const int64_t last = extent.value_or(0) - 1;
  // An extent that is not constant: nothing is known of the variable.
  out.slot = new_slot(extent ? Interval{0, std::max<int64_t>(last, 0)} : Interval{1, 0});
  if (lane_slot_ < 0 && !holds_loop(n.body)) {
    result = lanes(n, out);
  } else {
    out.kind = FpStmtKind::kLoop;
    FpAffine var;
    var.terms.push_back({out.slot, 1});
    vars_[n.var->id.value] = var;
    out.body = with_resets(n);
    result = out.body < 0 ? -1 : put(out);
  }
  loops_.pop_back();
  return result;
}

int32_t FpCompiler::lanes(const Loop& n, FpStmt out) {
  out.kind = FpStmtKind::kLanes;
  lane_slot_ = out.slot;
  touches_.clear();
  forgotten_.clear();
  FpAffine var;
  var.terms.push_back({out.slot, 1});
  var.lane_coefficient = 1;
  vars_[n.var->id.value] = var;
  out.body = with_resets(n);
  if (out.body >= 0) find_dependences(&out);
  lane_slot_ = -1;
  touches_.clear();
  return out.body < 0 ? -1 : put(out);
}

// Lanes run statement by statement. Where that might differ from iteration by iteration, they are
// compared when the loop runs, or it goes one lane at a time.
void FpCompiler::find_dependences(FpStmt* out) {
  out->first_pair = static_cast<int32_t>(code_.pairs.size());
  for (const Touch& store : touches_) {
    if (!store.is_store) continue;
    for (const Touch& other : touches_) {
      if (other.access == store.access) continue;
      if (may_overlap(store, other, out)) code_.pairs.emplace_back(store.access, other.access);
    }
  }
  out->num_pairs = static_cast<int32_t>(code_.pairs.size()) - out->first_pair;
}

// Whether the addresses must be compared; sets one_at_a_time if that would not help.
bool FpCompiler::may_overlap(const Touch& store, const Touch& other, FpStmt* out) {
  const FpAccess& a = code_.accesses[static_cast<std::size_t>(store.access)];
  const FpAccess& b = code_.accesses[static_cast<std::size_t>(other.access)];
  if (a.buffer != b.buffer) return false;
  const bool is_regular = a.flat.varying.empty() && b.flat.varying.empty();
  if (is_regular && same_place(a, b)) {
    if (a.flat.lane_coefficient != 0) return false;
    // One element for all lanes: only as a reduction that its init leads.
    const bool own = other.owner == store.access || store.owner == other.access ||
                     (store.owner >= 0 && store.owner == other.owner);
    const auto leads = [](const Touch& t) { return !t.is_init || t.leads; };
    if (own && leads(store) && leads(other)) return false;
    out->one_at_a_time = true;
    return false;
  }
  const bool forgets =
      std::find(forgotten_.begin(), forgotten_.end(), a.buffer) != forgotten_.end();
  if (!is_regular || forgets) {
    out->one_at_a_time = true;
    return false;
  }
  return true;
}

int32_t FpCompiler::block(const Block& n) {
  FpStmt out;
  out.kind = FpStmtKind::kBlock;
  out.block = n.id.value;
  out.expr = n.guard.defined() ? expr(n.guard, 0) : -1;
  std::vector<FpIter> iters;
  bool init_is_first_lane = false;
  for (const IterVar& iter : n.iters) {
    FpIter compiled;
    compiled.binding = affine(iter.binding, 0);
    compiled.extent = expr(iter.extent, 0);
    compiled.is_reduce = iter.kind == IterKind::kReduce;
    compiled.name = static_cast<int32_t>(code_.names.size());
    code_.names.emplace_back(iter.var->name);
    const std::optional<Interval> known = range(compiled.binding);
    const std::optional<int64_t> extent = constant_value(iter.extent, params_);
    compiled.needs_check = !known || !extent || known->low < 0 || known->high >= *extent;
    init_is_first_lane |= compiled.is_reduce && compiled.binding.varying.empty() &&
                          compiled.binding.lane_coefficient > 0;
    vars_[iter.var->id.value] = compiled.binding;
    iters.push_back(std::move(compiled));
  }
  out.first = static_cast<int32_t>(code_.iters.size());
  out.count = static_cast<int32_t>(iters.size());
  for (FpIter& iter : iters) code_.iters.push_back(std::move(iter));
  const std::size_t first_touch = touches_.size();
  const Block* const around = std::exchange(block_, &n);
  in_init_ = true;
  out.other = stmt(n.init);
  in_init_ = false;
  const std::size_t after_init = touches_.size();
  out.body = stmt(n.body);
  block_ = around;
  // An init belongs to the reduction into the same element.
  for (std::size_t i = first_touch; i < after_init; ++i) {
    touches_[i].leads = init_is_first_lane;
    for (std::size_t j = after_init; j < touches_.size(); ++j) {
      const Touch& main = touches_[j];
      if (main.is_store && main.owner == main.access &&
          same_place(code_.accesses[static_cast<std::size_t>(main.access)],
                     code_.accesses[static_cast<std::size_t>(touches_[i].access)])) {
        touches_[i].owner = main.access;
      }
    }
  }
  return put(out);
}

int32_t FpCompiler::store(const Store& n) {
  FpStmt out;
  out.kind = FpStmtKind::kStore;
  out.is_float = is_float(n.value.dtype());
  const std::size_t first_touch = touches_.size();
  out.expr = expr(n.value, 0);
  out.slot = access(n.buffer, n.indices, /*is_store=*/true, 0);
  const FpExpr& value = code_.exprs[static_cast<std::size_t>(out.expr)];
  switch (value.op) {
    case FpOp::kAddF:
    case FpOp::kMulF:
    case FpOp::kMaxF:
    case FpOp::kMinF:
    case FpOp::kAddI:
    case FpOp::kMulI:
    case FpOp::kMaxI:
    case FpOp::kMinI: break;
    default: return put(out);  // NOLINT: all others are no reductions
  }
  for (const auto& [self, rest] : {std::pair(value.a, value.b), std::pair(value.b, value.a)}) {
    const FpExpr& x = code_.exprs[static_cast<std::size_t>(self)];
    if (x.op != FpOp::kLoadF && x.op != FpOp::kLoadI) continue;
    const FpAccess& own = code_.accesses[static_cast<std::size_t>(x.a)];
    if (!same_place(own, code_.accesses[static_cast<std::size_t>(out.slot)])) continue;
    out.reduce_op = value.op;
    out.rest = rest;
    for (std::size_t i = first_touch; i < touches_.size(); ++i) {
      if (touches_[i].access == x.a || touches_[i].access == out.slot) {
        touches_[i].owner = out.slot;
      }
    }
    break;
  }
  return put(out);
}

int32_t FpCompiler::stmt(Stmt s) {
  if (!s.defined()) return -1;
  FpStmt out;
  switch (s.kind()) {
    case StmtKind::kSeq: {
      std::vector<int32_t> compiled;
      for (Stmt child : s.as<Seq>()->stmts) {
        const int32_t c = stmt(child);
        if (c >= 0) compiled.push_back(c);
      }
      return seq(compiled);
    }
    case StmtKind::kLoop: return loop(*s.as<Loop>());
    case StmtKind::kBlock: return block(*s.as<Block>());
    case StmtKind::kStore: return store(*s.as<Store>());
    case StmtKind::kIf: {
      const If& branch = *s.as<If>();
      out.kind = FpStmtKind::kIf;
      out.expr = expr(branch.condition, 0);
      out.body = stmt(branch.then_body);
      out.other = stmt(branch.else_body);
      return put(out);
    }
    case StmtKind::kAlloc: {
      const Alloc& alloc = *s.as<Alloc>();
      out.kind = FpStmtKind::kForget;
      out.first = static_cast<int32_t>(code_.children.size());
      out.count = 1;
      code_.children.push_back(alloc.buffer.value);
      if (lane_slot_ >= 0) forgotten_.push_back(alloc.buffer.value);
      const int32_t first = put(out);
      const int32_t body = stmt(alloc.body);
      return body < 0 ? -1 : seq({first, body});
    }
  }
  PRUNERC_UNREACHABLE("statement kind");
}

Result<FpCode> compile_fp(const Program& program, std::span<const int64_t> params,
                          int64_t max_elements, Roundings roundings) {
  if (params.size() != program.domain().names.size()) {
    return error(Diag::kUnsupported, "a check of a sketch without values for its parameters");
  }
  FpCompiler compiler(program, params, roundings);
  PRUNERC_TRY_VOID(compiler.buffers(max_elements));
  compiler.set_root(compiler.stmt(program.root()));
  return compiler.take();
}

}  // namespace prunerc::ir

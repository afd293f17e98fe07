#include "codegen/lower/analysis/kernel.h"

#include "codegen/lower/analysis/statements.h"
#include "ir/thread_axis.h"

#include <string>

namespace prunerc::codegen {

using namespace ir;

int axis_of(LoopKind kind) {
  return (static_cast<int>(kind) - static_cast<int>(LoopKind::kBlockX)) % kNumThreadDims;
}

std::optional<int64_t> attr_of(const Loop& loop, std::string_view key) {
  for (const Attr& attr : loop.attrs) {
    if (attr.key == key) return attr.value;
  }
  return std::nullopt;
}

Expr exchange_partner(IrBuilder& b, Expr lane, int64_t step) {
  const Expr both = b.int_imm(2 * step);
  return b.add(b.mul(b.floordiv(lane, both), both), b.floormod(b.add(lane, b.int_imm(step)), both));
}

namespace {

bool has_axis(Stmt s) {
  return any_loop(s, [](const Loop& loop) { return is_thread_axis(loop.loop_kind); });
}

class KernelFinder {
 public:
  Result<void> add(Stmt s) {
    if (!s.defined()) return {};
    if (const Alloc* alloc = s.as<Alloc>()) return add(alloc->body);
    if (const Seq* seq = s.as<Seq>()) {
      for (Stmt child : seq->stmts) PRUNERC_TRY_VOID(add(child));
      return {};
    }
    const Loop* loop = s.as<Loop>();
    if (has_axis(s) && (loop == nullptr || !is_thread_axis(loop->loop_kind))) {
      return error(Diag::kThreadKernel, loop != nullptr ? loop->id : first_axis(s),
                   "it stands around or beside of thread axes in a statement that is none");
    }
    Kernel kernel;
    kernel.body = s;
    PRUNERC_TRY_VOID(peel_grid(&kernel));
    PRUNERC_TRY_VOID(thread_extents(&kernel));
    kernels_.push_back(std::move(kernel));
    return {};
  }

  std::vector<Kernel> take() { return std::move(kernels_); }

 private:
  static LoopId first_axis(Stmt s) {
    LoopId id;
    any_loop(s, [&](const Loop& loop) {
      if (is_thread_axis(loop.loop_kind)) id = loop.id;
      return id.valid();
    });
    return id;
  }

  static Result<int64_t> extent_of(const Loop& loop) {
    const IntImm* extent = loop.extent.as<IntImm>();
    if (extent != nullptr) return extent->value;
    return error(Diag::kThreadKernel, loop.id, "its extent is not constant");
  }

  static Result<void> peel_grid(Kernel* kernel) {
    const Loop* loop = kernel->body.as<Loop>();
    while (loop != nullptr && is_block_axis(loop->loop_kind)) {
      PRUNERC_TRY(kernel->blocks[static_cast<std::size_t>(axis_of(loop->loop_kind))],
                  extent_of(*loop));
      kernel->grid.push_back(loop);
      kernel->body = loop->body;
      loop = kernel->body.as<Loop>();
    }
    LoopId inner;
    any_loop(kernel->body, [&](const Loop& x) {
      if (is_block_axis(x.loop_kind)) inner = x.id;
      return inner.valid();
    });
    if (!inner.valid()) return {};
    return error(Diag::kThreadKernel, inner, "block axes must stand directly inside each other");
  }

  static Result<void> thread_extents(Kernel* kernel) {
    Result<void> status;
    any_loop(kernel->body, [&](const Loop& loop) {
      if (!is_lane_axis(loop.loop_kind)) return false;
      const Result<int64_t> extent = extent_of(loop);
      if (!extent.ok()) {
        status = extent.error();
        return true;
      }
      kernel->threads[static_cast<std::size_t>(axis_of(loop.loop_kind))] = *extent;
      return false;
    });
    return status;
  }

  std::vector<Kernel> kernels_;
};

}  // namespace

Result<std::vector<Kernel>> find_kernels(const Program& program) {
  PRUNERC_TRY_VOID(check_thread_axes(program.root()));
  KernelFinder finder;
  PRUNERC_TRY_VOID(finder.add(program.root()));
  return finder.take();
}

Result<Program> map_kernels(const Program& program,
                            const std::function<Result<Stmt>(IrBuilder&, const Kernel&)>& f) {
  PRUNERC_TRY(const std::vector<Kernel> kernels, find_kernels(program));
  IrBuilder b(program);
  Stmt root = program.root();
  for (const Kernel& kernel : kernels) {
    PRUNERC_TRY(const Stmt body, f(b, kernel));
    if (!body.is(kernel.body)) root = replace_stmt(b, root, kernel.body, body);
  }
  return b.finish(root);
}

bool has_thread_loop(Stmt s) {
  return any_loop(s, [](const Loop& loop) { return is_lane_axis(loop.loop_kind); });
}

Stmt guard_phases(IrBuilder& b, Expr condition, Stmt s) {
  const Loop* loop = s.as<Loop>();
  if (loop == nullptr || !(is_lane_axis(loop->loop_kind) || has_thread_loop(loop->body))) {
    return b.if_then(condition, s);
  }
  Loop copy = *loop;
  copy.body = guard_phases(b, condition, loop->body);
  return b.loop(copy);
}

bool is_phase(const Loop& loop) {
  if (!is_lane_axis(loop.loop_kind)) return false;
  const Loop* inner = loop.body.as<Loop>();
  if (inner != nullptr && is_lane_axis(inner->loop_kind)) return is_phase(*inner);
  return !has_thread_loop(loop.body);
}

}  // namespace prunerc::codegen

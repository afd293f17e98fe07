// Rings: tiles that the copy engine brings while earlier ones are computed with.
//     for k in N {software_pipeline = 3} { alloc A { for i {bulk_copy}: A[..] = f(k)
//                                                    for y bind(thread.y) { .. A[..] } } }
// ~>  alloc A[3, ..] { for k in N {ring = 3} { for i {bulk_copy}: A[k % 3, ..] = f(k)
//                                              for y { .. A[k % 3, ..] } } }
// The program stays sequential: the printer makes two of it, one that brings tiles and one that
// computes, which wait for each other at one pair of mbarriers for each of the three places. So a
// loop around the ring may go on bringing tiles while results of the last ones are written.
#include "codegen/lower/gpu.h"
#include "codegen/lower/kernel.h"
#include "codegen/lower/util.h"
#include "ir/map.h"
#include "ir/tensor/bulk_copy.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <algorithm>
#include <set>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

class Rings {
 public:
  explicit Rings(IrBuilder& b) : b_(b) {}

  Result<Stmt> run(const Kernel& kernel) {
    Stmt body = go(kernel.body);
    if (failed_) return *failed_;
    // Memory of a ring is never anything else: the engine writes it whenever a place is free.
    for (BufferId id : buffers_) body = b_.alloc(id, body);
    return body;
  }

 private:
  Stmt refuse(Stmt s, const Loop& loop, const char* why) {
    if (!failed_) failed_ = error(Diag::kThreadKernel, loop.id, std::string(why));
    return s;
  }

  Stmt go(Stmt s) {
    if (!s.defined() || failed_ || !holds_bulk_copy(s)) return s;
    if (const Loop* loop = s.as<Loop>()) {
      if (is_bulk_copy(*loop)) return refuse(s, *loop, "a bulk copy stands in no serial loop");
      if (loop->loop_kind != LoopKind::kSerial || loop->extent.as<IntImm>() == nullptr) {
        return refuse(s, *loop, "bulk copies stand in serial loops of constant length");
      }
      if (brings(*loop)) return ring(*loop);
    }
    return map_children(
        b_, s, [&](Stmt child) { return go(child); }, [](Expr e) { return e; });
  }

  // The statements of the loop, below Allocs.
  static std::vector<Stmt> parts(const Loop& loop, std::vector<BufferId>* allocs) {
    Stmt body = loop.body;
    while (const Alloc* alloc = body.as<Alloc>()) {
      allocs->push_back(alloc->buffer);
      body = alloc->body;
    }
    if (const Seq* seq = body.as<Seq>()) return {seq->stmts.begin(), seq->stmts.end()};
    return {body};
  }

  static bool is_copy(Stmt s) {
    const Loop* loop = s.as<Loop>();
    return loop != nullptr && is_bulk_copy(*loop);
  }

  static bool brings(const Loop& loop) {
    std::vector<BufferId> allocs;
    const std::vector<Stmt> all = parts(loop, &allocs);
    return std::any_of(all.begin(), all.end(), is_copy);
  }

  Stmt ring(const Loop& loop) {
    std::vector<BufferId> allocs;
    const std::vector<Stmt> all = parts(loop, &allocs);
    std::set<BufferId> brought;
    for (Stmt s : all) {
      if (is_copy(s)) brought.merge(stored_buffers(s));
      if (!is_copy(s) && holds_bulk_copy(s)) {
        return refuse(Stmt(&loop), loop, "bulk copies stand both in it and deeper inside");
      }
    }
    for (BufferId id : brought) {
      if (std::find(allocs.begin(), allocs.end(), id) == allocs.end()) {
        return refuse(Stmt(&loop), loop, "what it copies in bulk outlives the iteration");
      }
    }
    return rewrite(loop, all, allocs, brought);
  }

  Stmt rewrite(const Loop& loop, const std::vector<Stmt>& all, const std::vector<BufferId>& allocs,
               const std::set<BufferId>& brought) {
    const int64_t places = std::max<int64_t>(1, attr_of(loop, kPipelineAttr).value_or(1));
    for (BufferId id : brought) {
      Buffer buffer = b_.buffer(id);
      std::vector<Expr> shape = {b_.int_imm(places)};
      shape.insert(shape.end(), buffer.shape.begin(), buffer.shape.end());
      buffer.shape = b_.copy(shape);
      b_.set_buffer(buffer);
      buffers_.push_back(id);
    }
    Expr place = b_.floormod(Expr(loop.var), b_.int_imm(places));
    Stmt body = map_indices(b_, b_.seq(all), brought, [&](std::span<const Expr> indices) {
      std::vector<Expr> out = {place};
      out.insert(out.end(), indices.begin(), indices.end());
      return out;
    });
    for (std::size_t i = allocs.size(); i-- > 0;) {
      if (brought.count(allocs[i]) == 0) body = b_.alloc(allocs[i], body);
    }
    Loop out = loop;
    std::vector<Attr> attrs = {{kRingAttr, places}};
    for (const Attr& attr : loop.attrs) {
      if (attr.key != kPipelineAttr) attrs.push_back(attr);
    }
    out.attrs = b_.copy(attrs);
    out.body = body;
    return b_.loop(out);
  }

  IrBuilder& b_;
  std::vector<BufferId> buffers_;
  std::optional<Error> failed_;
};

}  // namespace

Result<Program> lower_rings(const Program& program, const Target&) {
  PRUNERC_TRY(const std::vector<Kernel> kernels, find_kernels(program));
  IrBuilder b(program);
  Stmt root = program.root();
  for (const Kernel& kernel : kernels) {
    PRUNERC_TRY(Stmt body, Rings(b).run(kernel));
    if (!body.is(kernel.body)) root = replace_stmt(b, root, kernel.body, body);
  }
  return b.finish(root);
}

}  // namespace prunerc::codegen

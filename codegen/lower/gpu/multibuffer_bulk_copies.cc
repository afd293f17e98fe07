// What bulk copies bring gets a ring buffer of several stages.
// Before: a serial loop copies tiles and computes with them. After: the tile of iteration k is in
// stage k % n of a buffer that lives as long as the kernel. The program stays sequential; the
// printer makes a producer and a consumer of it, which may be several tiles apart.
//     for k in 8 {software_pipeline = 3} { alloc T {
//       for i in 64 {bulk_copy = 1} { T[i] = A[k*64 + i] }  for t .. { .. T[t] } } }
// ~>  alloc T { for k in 8 {ring_buffer = 3} {
//       for i in 64 {bulk_copy = 1} { T[k % 3, i] = A[k*64 + i] }  for t .. { .. T[k % 3, t] } } }
#include "codegen/lower/analysis/kernel.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"
#include "ir/tensor/bulk_copy.h"

#include <algorithm>
#include <set>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

/// The printer counts phases in one bit for each stage.
constexpr int64_t kMostStages = 32;

class Multibuffering {
 public:
  explicit Multibuffering(IrBuilder& b) : b_(b) {}

  Result<Stmt> run(const Kernel& kernel) {
    Stmt body = go(kernel.body);
    if (failed_) return *failed_;
    // Memory of a ring buffer is nothing else: the engine writes it whenever a stage is free.
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
      // Producer and consumer count iterations each for itself.
      if (loop->loop_kind != LoopKind::kSerial || reads_memory(loop->extent)) {
        return refuse(s, *loop, "bulk copies stand in serial loops whose length no data decide");
      }
      if (copies_directly(*loop)) return multibuffer(*loop);
    }
    return map_stmts(b_, s, [&](Stmt child) { return go(child); });
  }

  static bool reads_memory(Expr e) {
    bool found = false;
    walk(e, [&](Expr x) {
      found = found || x.as<Load>() != nullptr;
      return !found;
    });
    return found;
  }

  // The statements of the loop, below Allocs.
  static std::vector<Stmt> parts(const Loop& loop, std::vector<BufferId>* allocs) {
    const Stmt body = below_allocs(loop.body, allocs);
    if (const Seq* seq = body.as<Seq>()) return {seq->stmts.begin(), seq->stmts.end()};
    return {body};
  }

  static bool is_copy(Stmt s) {
    const Loop* loop = s.as<Loop>();
    return loop != nullptr && is_bulk_copy(*loop);
  }

  static bool copies_directly(const Loop& loop) {
    std::vector<BufferId> allocs;
    const std::vector<Stmt> all = parts(loop, &allocs);
    return std::any_of(all.begin(), all.end(), is_copy);
  }

  Stmt multibuffer(const Loop& loop) {
    std::vector<BufferId> allocs;
    const std::vector<Stmt> all = parts(loop, &allocs);
    std::set<BufferId> copied;
    for (Stmt s : all) {
      if (is_copy(s)) copied.merge(stored_buffers(s));
      if (!is_copy(s) && holds_bulk_copy(s)) {
        return refuse(Stmt(&loop), loop, "bulk copies stand both in it and deeper inside");
      }
    }
    for (BufferId id : copied) {
      if (std::find(allocs.begin(), allocs.end(), id) == allocs.end()) {
        return refuse(Stmt(&loop), loop, "what it copies in bulk outlives the iteration");
      }
    }
    return rewrite(loop, all, allocs, copied);
  }

  Stmt rewrite(const Loop& loop, const std::vector<Stmt>& all, const std::vector<BufferId>& allocs,
               const std::set<BufferId>& copied) {
    const int64_t asked = attr_of(loop, kPipelineAttr).value_or(1);
    const int64_t num_stages = std::clamp<int64_t>(asked, 1, kMostStages);
    for (BufferId id : copied) {
      add_leading_dims(b_, id, {b_.int_imm(num_stages)});
      buffers_.push_back(id);
    }
    const Expr stage = b_.floormod(Expr(loop.var), b_.int_imm(num_stages));
    Stmt body = add_leading_indices(b_, b_.seq(all), copied, {stage});
    for (std::size_t i = allocs.size(); i-- > 0;) {
      if (copied.count(allocs[i]) == 0) body = b_.alloc(allocs[i], body);
    }
    Loop out = loop;
    // What threads fetch beside them is pipelined next (pipeline_loops).
    std::vector<Attr> attrs = {{kRingAttr, num_stages}};
    attrs.insert(attrs.end(), loop.attrs.begin(), loop.attrs.end());
    out.attrs = b_.copy(attrs);
    out.body = body;
    return b_.loop(out);
  }

  IrBuilder& b_;
  std::vector<BufferId> buffers_;
  std::optional<Error> failed_;
};

}  // namespace

Result<Program> multibuffer_bulk_copies(const Program& program, const Target&) {
  return map_kernels(
      program, [](IrBuilder& b, const Kernel& kernel) { return Multibuffering(b).run(kernel); });
}

}  // namespace prunerc::codegen

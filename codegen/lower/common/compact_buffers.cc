// Intermediates shrink to the hull of what is accessed below their Allocs.
// Before: a buffer has the shape that the program declares. After: that of one execution of its
// Alloc, as far as regions are known. A guard cuts off what lies beyond it, except from buffers
// that may become registers: rows of whole vectors must not overlap. Swizzled tiles keep whole
// eights of rows.
//     buffer T: f32[8, 4] local  for i in 8 { alloc T { for j in 4 { T[i, j] = A[i, j] }  .. } }
// ~>  buffer T: f32[1, 4] local  for i in 8 { alloc T { for j in 4 { T[0, j] = A[i, j] }  .. } }
#include "codegen/gpu_storage.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"
#include "ir/analysis/region.h"
#include "ir/arith/simplify.h"
#include "ir/int_math.h"
#include "ir/tensor/bulk_copy.h"

#include <set>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

class Compaction {
 public:
  // On a GPU registers are packed already, and no row of theirs may be moved: compact_registers.
  Compaction(const Program& program, const Target& target)
      : b_(program), skips_local_(target.kind != TargetKind::kCpu) {}

  Program run(const Program& program) { return b_.finish(go(program.root())); }

 private:
  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    const VarRanges::Mark mark = ranges_.mark();
    if (const Loop* loop = s.as<Loop>()) {
      ranges_.bind(loop->var, loop->extent);
      for (const Attr& attr : loop->attrs) {
        if (const auto id = buffer_named_by(attr, kSwizzleAttr)) swizzled_.insert(*id);
      }
    }
    if (const Alloc* alloc = s.as<Alloc>()) {
      const bool keep = skips_local_ && b_.buffer(alloc->buffer).scope == Scope::kLocal;
      Stmt body = keep ? alloc->body : shrink(*alloc);
      body = go(body);
      return body.is(alloc->body) ? s : b_.alloc(alloc->buffer, body);
    }
    Stmt r = map_stmts(b_, s, [&](Stmt child) { return go(child); });
    ranges_.rewind(mark);
    return r;
  }

  // The body with the buffer's new indices; its new shape is recorded.
  Stmt shrink(const Alloc& alloc) {
    // A register tile is as large as its vectors, guarded or not: rows that overlap would not
    // become registers.
    std::optional<BufferRegion> region = touched(alloc, {false, false});
    if (!region) return alloc.body;
    Buffer buffer = b_.buffer(alloc.buffer);
    std::vector<std::optional<Expr>> extents = region_extents(b_, *region, ranges_);
    for (std::size_t d = 0; d < extents.size(); ++d) {
      // region_extents stops at the shape.
      const Expr unguarded = simplify(b_, region->box[d].extent, ranges_);
      if (unguarded.as<IntImm>() != nullptr) extents[d] = unguarded;
    }
    // On a GPU only memory comes here.
    const bool is_tile = !skips_local_ && bytes_of(extents, buffer.dtype) <= kMaxRegisterTileBytes;
    if (!is_tile) {
      region = touched(alloc, {true, false});
      extents = region_extents(b_, *region, ranges_);
    }
    if (swizzled_.count(alloc.buffer) != 0) keep_eights(&extents);
    std::vector<Expr> shape(buffer.shape.begin(), buffer.shape.end());
    std::vector<Expr> starts(shape.size());
    bool changed = false;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const IntImm* now = shape[d].as<IntImm>();
      const IntImm* then = extents[d] ? extents[d]->as<IntImm>() : nullptr;
      if (now == nullptr || then == nullptr || then->value < 1) continue;
      if (is_tile ? then->value == now->value : then->value >= now->value) continue;
      shape[d] = b_.int_imm(then->value);
      starts[d] = region->box[d].min;
      changed = true;
    }
    if (!changed) return alloc.body;
    buffer.shape = b_.copy(shape);
    b_.set_buffer(buffer);
    return rebase(alloc.body, alloc.buffer, starts);
  }

  // A swizzle repeats after eight rows, of which panels are made.
  void keep_eights(std::vector<std::optional<Expr>>* extents) {
    if (extents->size() < 2) return;
    std::optional<Expr>& rows = (*extents)[extents->size() - 2];
    const IntImm* imm = rows ? rows->as<IntImm>() : nullptr;
    if (imm != nullptr) rows = b_.int_imm(ceil_div(imm->value, kSwizzleRows) * kSwizzleRows);
  }

  static int64_t bytes_of(const std::vector<std::optional<Expr>>& extents, DType dtype) {
    int64_t bytes = byte_size(dtype);
    for (const std::optional<Expr>& extent : extents) {
      const IntImm* imm = extent ? extent->as<IntImm>() : nullptr;
      if (imm == nullptr || imm->value < 1 || __builtin_mul_overflow(bytes, imm->value, &bytes))
        return INT64_MAX;
    }
    return bytes;
  }

  std::optional<BufferRegion> touched(const Alloc& alloc, const RegionOptions& options) {
    const Regions regions = touched_regions(b_, alloc.body, ranges_, options);
    std::optional<BufferRegion> all;
    for (const auto& list : {regions.reads, regions.writes}) {
      for (const BufferRegion& region : list) {
        if (region.buffer != alloc.buffer) continue;
        all = all ? hull(b_, *all, region, ranges_) : region;
      }
    }
    return all;
  }

  std::span<const Expr> shifted(std::span<const Expr> indices, const std::vector<Expr>& starts) {
    std::vector<Expr> moved;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      moved.push_back(starts[d].defined() ? simplify(b_, b_.sub(indices[d], starts[d]), ranges_)
                                          : indices[d]);
    }
    return b_.copy(moved);
  }

  Stmt rebase(Stmt s, BufferId id, const std::vector<Expr>& starts) {
    if (!s.defined()) return s;
    const VarRanges::Mark mark = ranges_.mark();
    if (const Loop* loop = s.as<Loop>()) ranges_.bind(loop->var, loop->extent);
    Stmt r = map_children(
        b_, s, [&](Stmt child) { return rebase(child, id, starts); },
        [&](Expr e) { return rebase(e, id, starts); });
    if (const Store* store = r.as<Store>(); store != nullptr && store->buffer == id) {
      r = b_.store(id, shifted(store->indices, starts), store->value);
    }
    ranges_.rewind(mark);
    return r;
  }

  Expr rebase(Expr e, BufferId id, const std::vector<Expr>& starts) {
    Expr r = map_children(b_, e, [&](Expr child) { return rebase(child, id, starts); });
    const Load* load = r.as<Load>();
    return load != nullptr && load->buffer == id ? b_.load(id, shifted(load->indices, starts)) : r;
  }

  IrBuilder b_;
  VarRanges ranges_;
  bool skips_local_;
  std::set<BufferId> swizzled_;
};

}  // namespace

Result<Program> compact_buffers(const Program& program, const Target& target) {
  return Compaction(program, target).run(program);
}

}  // namespace prunerc::codegen

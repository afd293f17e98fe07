// Loops that index small stack buffers are unrolled, so that these become registers.
// Before: a tile may be indexed by serial loops. After: as far as code stays small, by none. What
// tile registers of the CPU are loaded from is memory.
//     alloc T { for i in 4 { T[i] = 0f32 }  .. }
// ~>  alloc T { for i in 4 unrolled { T[i] = 0f32 }  .. }
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"
#include "codegen/storage_plan.h"
#include "ir/tensor/intrinsic.h"

#include <algorithm>
#include <set>

namespace prunerc::codegen {
namespace {

using namespace ir;

/// One loop is unrolled up to this extent, and one buffer's loops together up to this many copies.
constexpr int64_t kMaxTileExtent = 64;
constexpr int64_t kMaxTileCode = 400;

// Loops below an Alloc whose variables occur in the indices of its buffer.
struct TileLoops {
  BufferId buffer;
  std::vector<const Loop*> loops;  // around the current statement, below the Alloc
  std::set<LoopId> indexing;
  bool ok = true;

  void access(BufferId id, std::span<const Expr> indices) {
    if (id != buffer) return;
    for (Expr index : indices) {
      if (has_load(index)) ok = false;
      for (const Loop* loop : loops) {
        if (!mentions(index, loop->var->id)) continue;
        const int64_t extent = constant_or(loop->extent, 0);
        // Parallel loops and the rest stay what they are: such a buffer is not a tile.
        const bool is_serial = loop->loop_kind == LoopKind::kSerial;
        ok = ok && (is_serial || is_tile_loop(*loop)) && extent >= 1 &&
             (!is_serial || extent <= kMaxTileExtent);
        indexing.insert(loop->id);
      }
    }
  }

  bool touches(Stmt s) const {
    return stored_buffers(s).count(buffer) != 0 || loaded_buffers(s).count(buffer) != 0;
  }

  void expr(Expr e) {
    walk(e, [&](Expr x) {
      if (const Load* load = x.as<Load>()) access(load->buffer, load->indices);
      return true;
    });
  }

  void stmt(Stmt s) {
    if (const Loop* loop = s.as<Loop>()) {
      if (tile_product_of(*loop) != nullptr && touches(s)) ok = false;
      loops.push_back(loop);
      stmt(loop->body);
      loops.pop_back();
      return;
    }
    if (const Store* store = s.as<Store>()) access(store->buffer, store->indices);
    for_each_child(
        s, [&](Stmt child) { stmt(child); }, [&](Expr e) { expr(e); });
  }
};

class TileUnrolling {
 public:
  explicit TileUnrolling(const Program& program) : program_(program), b_(program) {}

  Program run() {
    find(program_.root());
    return b_.finish(rebuild(program_.root()));
  }

 private:
  void find(Stmt s) {
    if (!s.defined()) return;
    if (const Alloc* alloc = s.as<Alloc>()) {
      const Result<int64_t> bytes = buffer_bytes(program_.buffer(alloc->buffer));
      if (bytes.ok() && *bytes <= kMaxRegisterTileBytes) {
        TileLoops tile{alloc->buffer, {}, {}, true};
        tile.stmt(alloc->body);
        if (tile.ok && fits(alloc->body, tile.indexing))
          unrolled_.insert(tile.indexing.begin(), tile.indexing.end());
      }
    }
    for_each_child(
        s, [&](Stmt child) { find(child); }, [](Expr) {});
  }

  static bool fits(Stmt body, const std::set<LoopId>& loops) {
    return size_with(body, loops) <= kMaxTileCode;
  }

  // code_size as if `loops` were unrolled.
  static int64_t size_with(Stmt s, const std::set<LoopId>& loops) {
    if (!s.defined()) return 0;
    int64_t copies = 1;
    if (const Loop* loop = s.as<Loop>()) {
      if (tensor_of(*loop)) return 1;
      const bool unrolls = loop->loop_kind == LoopKind::kUnrolled ||
                           (loop->loop_kind == LoopKind::kSerial && loops.count(loop->id) != 0);
      if (unrolls) copies = std::clamp<int64_t>(constant_or(loop->extent, 1), 1, 1024);
    }
    int64_t inside = s.as<Store>() != nullptr ? 1 : 0;
    for_each_child(
        s, [&](Stmt child) { inside += size_with(child, loops); }, [](Expr) {});
    return std::min<int64_t>(copies * inside, int64_t{1} << 40);
  }

  Stmt rebuild(Stmt s) {
    if (!s.defined()) return s;
    Stmt r = map_stmts(b_, s, [&](Stmt child) { return rebuild(child); });
    const Loop* loop = r.as<Loop>();
    if (loop == nullptr || loop->loop_kind != LoopKind::kSerial || unrolled_.count(loop->id) == 0)
      return r;
    Loop changed = *loop;
    changed.loop_kind = LoopKind::kUnrolled;
    return b_.loop(changed);
  }

  const Program& program_;
  IrBuilder b_;
  std::set<LoopId> unrolled_;
};

}  // namespace

Result<Program> unroll_register_tiles(const Program& program, const Target&) {
  return TileUnrolling(program).run();
}

}  // namespace prunerc::codegen

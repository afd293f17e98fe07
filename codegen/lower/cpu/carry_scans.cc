// Running reductions keep the element before in registers.
// Before: an element is made of the one before it, read back from memory. After: copies of a tile
// carry theirs in a buffer of their own, as far as registers hold it.
//     for j in 64 { for i in 4 unrolled { T[i, j] = select(1 <= j, T[i, j - 1], 0f32) + X[i, j] } }
// ~>  alloc C { for i in 4 unrolled { C[i] = 0f32 }
//       for j in 64 { for i in 4 unrolled { C[i] = C[i] + X[i, j] }
//                     for i in 4 unrolled { T[i, j] = C[i] } } }
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"
#include "ir/arith/linear.h"

#include <optional>
#include <string>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

/// Half of what registers hold, as updates need some.
constexpr int64_t kMaxCarriedBytes = kMaxRegisterTileBytes / 2;

// A serial loop around a tile around one store, which reads its own buffer once: behind `1 <= j`.
struct Scan {
  const Loop* loop = nullptr;
  std::vector<const Loop*> tile;
  const If* guard = nullptr;  // null: none; does not mention the loop
  const Store* store = nullptr;
  const Select* before = nullptr;
};

class ScanCarrying {
 public:
  explicit ScanCarrying(const Program& program) : b_(program) {}

  Program run(const Program& program) { return b_.finish(go(program.root())); }

 private:
  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    const Loop* loop = s.as<Loop>();
    // Lanes that each run a scan do so in step; a buffer inside would part them.
    if (loop != nullptr && loop->loop_kind == LoopKind::kVectorized) return s;
    if (loop != nullptr && loop->loop_kind == LoopKind::kSerial) {
      if (const std::optional<Scan> scan = find_scan(*loop)) return carried(*scan);
    }
    return map_stmts(b_, s, [this](Stmt child) { return go(child); });
  }

  std::optional<Scan> find_scan(const Loop& loop) {
    Scan scan;
    scan.loop = &loop;
    Stmt s = loop.body;
    int64_t copies = 1;
    for (const Loop* tile = s.as<Loop>(); tile != nullptr; tile = s.as<Loop>()) {
      const int64_t extent = constant_or(tile->extent, 0);
      if (!is_tile_loop(*tile) || extent < 1 || extent > kMaxCarriedBytes) return std::nullopt;
      copies *= extent;
      if (copies > kMaxCarriedBytes) return std::nullopt;
      scan.tile.push_back(tile);
      s = tile->body;
    }
    if (const If* branch = s.as<If>(); branch != nullptr && !branch->else_body.defined()) {
      if (has_load(branch->condition) || mentions(branch->condition, loop.var->id)) {
        return std::nullopt;
      }
      scan.guard = branch;
      s = branch->then_body;
    }
    scan.store = s.as<Store>();
    if (scan.store == nullptr || !find_before(&scan)) return std::nullopt;
    if (copies * byte_size(b_.buffer(scan.store->buffer).dtype) > kMaxCarriedBytes) {
      return std::nullopt;
    }
    for (const Loop* tile : scan.tile) {
      if (!mentions(scan.store->indices, tile->var->id)) return std::nullopt;
      // Copies in dimensions of their own never meet, whatever the step.
      for (Expr index : scan.store->indices) {
        if (mentions(index, tile->var->id) && mentions(index, loop.var->id)) return std::nullopt;
      }
    }
    return scan;
  }

  // The select around the element before; false unless the store reads its buffer there alone.
  bool find_before(Scan* scan) {
    int num_loads = 0;
    walk(scan->store->value, [&](Expr e) {
      const Load* load = e.as<Load>();
      num_loads += load != nullptr && load->buffer == scan->store->buffer ? 1 : 0;
      const Select* select = e.as<Select>();
      const Load* element = select != nullptr ? select->on_true.as<Load>() : nullptr;
      if (element != nullptr && element->buffer == scan->store->buffer) scan->before = select;
      return true;
    });
    if (num_loads != 1 || scan->before == nullptr) return false;
    if (has_load(scan->before->on_false) || may_trap(scan->before->on_false)) return false;
    const Le* from = scan->before->condition.as<Le>();
    const Var* var = from != nullptr ? from->rhs.as<Var>() : nullptr;
    if (var == nullptr || var->id != scan->loop->var->id || constant_or(from->lhs, 0) != 1) {
      return false;
    }
    const Load& element = *scan->before->on_true.as<Load>();
    const VarMap earlier = {{var->id, b_.sub(Expr(var), b_.int_imm(1))}};
    for (std::size_t d = 0; d < element.indices.size(); ++d) {
      const Expr index = scan->store->indices[d];
      if (has_load(index)) return false;
      const Linear difference =
          to_linear(b_, element.indices[d], {}) - to_linear(b_, substitute(b_, index, earlier), {});
      if (!difference.is_constant(0)) return false;
    }
    return mentions(scan->store->indices, var->id);
  }

  // The tile's loops, guard included, around s.
  Stmt in_tile(const Scan& scan, Stmt s) {
    if (scan.guard != nullptr) s = b_.if_then(scan.guard->condition, s);
    for (std::size_t i = scan.tile.size(); i-- > 0;) {
      Loop loop = *scan.tile[i];
      loop.body = s;
      s = b_.loop(loop);
    }
    return clone_with_fresh_ids(b_, s);
  }

  Stmt carried(const Scan& scan) {
    const Buffer& result = b_.buffer(scan.store->buffer);
    const DType dtype = result.dtype;
    const std::string name = std::string(result.name) + "_carried";
    std::vector<Expr> shape, at;
    for (const Loop* tile : scan.tile) {
      shape.push_back(tile->extent);
      at.push_back(Expr(tile->var));
    }
    const BufferId carry =
        b_.add_buffer(name, dtype, shape, Scope::kLocal, BufferRole::kIntermediate);
    const Expr held = b_.load(carry, at);
    const Expr nothing =
        substitute(b_, scan.before->on_false, VarMap{{scan.loop->var->id, b_.int_imm(0)}});
    const Stmt start = in_tile(scan, b_.store(carry, at, nothing));
    const Stmt step = in_tile(scan, b_.store(carry, at, replaced(scan.store->value, scan, held)));
    const Stmt keep = in_tile(scan, b_.store(scan.store->buffer, scan.store->indices, held));
    Loop loop = *scan.loop;
    loop.body = b_.seq({step, keep});
    return b_.alloc(carry, b_.seq({start, b_.loop(loop)}));
  }

  Expr replaced(Expr e, const Scan& scan, Expr held) {
    if (e.as<Select>() == scan.before) return held;
    return map_children(b_, e, [&](Expr child) { return replaced(child, scan, held); });
  }

  IrBuilder b_;
};

}  // namespace

Result<Program> carry_scans(const Program& program, const Target&) {
  return ScanCarrying(program).run(program);
}

}  // namespace prunerc::codegen

// Intermediates get their Allocs, and the scope that follows from the place.
// Before: the program has no Allocs. After: what begins inside of a thread's iteration is local;
// inside of a block shared, or one tile per thread if it was declared local; elsewhere global. What
// storage_align and swizzle have asked of a block is an attribute of the loop around the Alloc.
//     for b in 8 bind(block.x) {
//       for t in 32 bind(thread.x) { block "T" [..] {swizzle_0 = 128} { T[..] = A[..] } }  .. }
// ~>  for b in 8 bind(block.x) {swizzle_2 = 128} { alloc T { .. } }      T, buffer 2, is now shared
#include "codegen/gpu_storage.h"
#include "codegen/lower/analysis/alloc_points.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"
#include "ir/thread_axis.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

std::optional<int64_t> attr_of(const Block& block, const std::string& key) {
  for (const Attr& attr : block.attrs) {
    if (attr.key == key) return attr.value;
  }
  return std::nullopt;
}

// What the block asks of the layout of its write number w, as attributes of a loop.
std::vector<Attr> layout_attrs(IrBuilder& b, const Block& block, std::size_t w) {
  std::vector<Attr> out;
  const BufferId id = block.writes[w].buffer;
  const std::string number = std::to_string(w);
  const auto add = [&](std::string_view prefix, int64_t value) {
    const std::string key = std::string(prefix) + std::to_string(id.value);
    out.push_back({b.copy(std::string_view(key)), value});
  };
  // Only the last dimension can be padded: strides of the axes outside of the last but one follow.
  const int rank = static_cast<int>(b.buffer(id).shape.size());
  const std::string at = number + "_" + std::to_string(rank - 2);
  const int64_t factor = attr_of(block, "align_factor_" + at).value_or(0);
  const int64_t offset = attr_of(block, "align_offset_" + at).value_or(0);
  // storage_align sets no others; a program's text may.
  const bool fits = 0 <= offset && offset < factor && factor <= std::numeric_limits<int32_t>::max();
  if (fits) add(kAlignAttr, factor << 32 | offset);
  if (const std::optional<int64_t> bytes = attr_of(block, std::string(kSwizzleAttr) + number)) {
    add(kSwizzleAttr, *bytes);
  }
  return out;
}

// Blocks vanish before shapes are known: what they ask for goes to the loop around the Alloc.
Stmt note_layouts(IrBuilder& b, const AllocPoints& points, Stmt root) {
  std::map<LoopId, std::vector<Attr>> by_loop;
  walk(
      root,
      [&](Stmt s) {
        const Block* block = s.as<Block>();
        for (std::size_t w = 0; block != nullptr && w < block->writes.size(); ++w) {
          const auto point = points.find(block->writes[w].buffer);
          if (point == points.end() || point->second.empty()) continue;
          std::vector<Attr>& attrs = by_loop[point->second.back()->id];
          for (const Attr& attr : layout_attrs(b, *block, w)) attrs.push_back(attr);
        }
        return true;
      },
      [](Expr) {});
  const StmtFn go = [&](Stmt s) -> Stmt {
    Stmt r = map_stmts(b, s, go);
    const Loop* loop = r.as<Loop>();
    const auto it = loop != nullptr ? by_loop.find(loop->id) : by_loop.end();
    return it == by_loop.end() || it->second.empty() ? r : add_attrs(b, *loop, it->second);
  };
  return go(root);
}

}  // namespace

Result<Program> place_gpu_allocs(const Program& program, const Target&) {
  IrBuilder b(program);
  AllocPoints points = find_alloc_points(program);
  for (auto& [id, loops] : points) {
    Buffer buffer = b.buffer(id);
    const bool in_thread = std::any_of(
        loops.begin(), loops.end(), [](const Loop* loop) { return is_lane_axis(loop->loop_kind); });
    const bool in_block = std::any_of(loops.begin(), loops.end(), [](const Loop* loop) {
      return is_block_axis(loop->loop_kind);
    });
    if (in_thread) {
      buffer.scope = Scope::kLocal;
    } else if (in_block) {
      if (buffer.scope != Scope::kLocal) buffer.scope = Scope::kShared;
    } else {
      // Several kernels, or one without blocks: memory outlives a launch only if it is global.
      loops.clear();
      buffer.scope = Scope::kGlobal;
    }
    b.set_buffer(buffer);
  }
  Stmt root = insert_allocs(b, program, points);
  return b.finish(note_layouts(b, points, root));
}

}  // namespace prunerc::codegen

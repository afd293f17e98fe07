#include "codegen/gpu_storage.h"
#include "codegen/lower/gpu.h"
#include "codegen/lower/homes.h"
#include "codegen/lower/kernel.h"
#include "ir/analysis/ownership.h"
#include "ir/map.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::codegen {

using namespace ir;

namespace {

constexpr std::string_view kFactorAttr = "align_factor_";
constexpr std::string_view kOffsetAttr = "align_offset_";
constexpr std::string_view kAlignAttr = "align_";

// "2_0" ~> 2, 0
std::optional<std::pair<int, int>> two_numbers(std::string_view text) {
  std::pair<int, int> out;
  const std::size_t bar = text.find('_');
  if (bar == std::string_view::npos) return std::nullopt;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), text.data() + bar, out.first);
  const auto second = std::from_chars(text.data() + bar + 1, end, out.second);
  const bool ok = first.ec == std::errc() && second.ec == std::errc() && second.ptr == end;
  return ok ? std::optional(out) : std::nullopt;
}

struct Alignment {
  BufferId buffer;
  int axis;
  int64_t factor, offset;
};

// What storage_align has asked for.
std::vector<Alignment> alignments(const Program& program) {
  std::vector<Alignment> out;
  auto in_block = [&](const Block& block) {
    for (const Attr& factor : block.attrs) {
      if (factor.key.substr(0, kFactorAttr.size()) != kFactorAttr) continue;
      const std::string_view place = factor.key.substr(kFactorAttr.size());
      const std::optional<std::pair<int, int>> at = two_numbers(place);
      if (!at || at->first >= static_cast<int>(block.writes.size())) continue;
      int64_t offset = 0;
      for (const Attr& attr : block.attrs) {
        if (attr.key == std::string(kOffsetAttr) + std::string(place)) offset = attr.value;
      }
      out.push_back({block.writes[static_cast<std::size_t>(at->first)].buffer, at->second,
                     factor.value, offset});
    }
  };
  walk(
      program.root(),
      [&](Stmt s) {
        if (const Block* block = s.as<Block>()) in_block(*block);
        return true;
      },
      [](Expr) {});
  return out;
}

// What swizzle has asked for.
std::map<BufferId, int64_t> swizzles(const Program& program) {
  std::map<BufferId, int64_t> out;
  walk(
      program.root(),
      [&](Stmt s) {
        const Block* block = s.as<Block>();
        for (std::size_t w = 0; block != nullptr && w < block->writes.size(); ++w) {
          const std::string key = std::string(kSwizzleAttr) + std::to_string(w);
          for (const Attr& attr : block->attrs) {
            if (attr.key == key) out[block->writes[w].buffer] = attr.value;
          }
        }
        return true;
      },
      [](Expr) {});
  return out;
}

// Blocks vanish before shapes are known: what they ask for goes to the loop around the Alloc, as
// attribute align_<buffer>_<axis> with both numbers in its value, or swizzle_<buffer>.
Stmt note_layouts(IrBuilder& b, const Program& program, const Homes& homes, Stmt root) {
  std::map<LoopId, std::vector<Attr>> by_loop;
  for (const Alignment& a : alignments(program)) {
    const auto home = homes.find(a.buffer);
    if (home == homes.end() || home->second.empty()) continue;
    const std::string key =
        std::string(kAlignAttr) + std::to_string(a.buffer.value) + "_" + std::to_string(a.axis);
    by_loop[home->second.back()->id].push_back(
        {b.copy(std::string_view(key)), (a.factor << 32) | a.offset});
  }
  for (const auto& [id, bytes] : swizzles(program)) {
    const auto home = homes.find(id);
    if (home == homes.end() || home->second.empty()) continue;
    const std::string key = std::string(kSwizzleAttr) + std::to_string(id.value);
    by_loop[home->second.back()->id].push_back({b.copy(std::string_view(key)), bytes});
  }
  if (by_loop.empty()) return root;
  const StmtFn go = [&](Stmt s) -> Stmt {
    Stmt r = map_children(b, s, go, [](Expr e) { return e; });
    const Loop* loop = r.as<Loop>();
    const auto it = loop != nullptr ? by_loop.find(loop->id) : by_loop.end();
    if (it == by_loop.end()) return r;
    Loop changed = *loop;
    std::vector<Attr> attrs(loop->attrs.begin(), loop->attrs.end());
    attrs.insert(attrs.end(), it->second.begin(), it->second.end());
    changed.attrs = b.copy(attrs);
    return b.loop(changed);
  };
  return go(root);
}

// Lengthens rows until the stride of the axis is as asked for. Only the last dimension can give:
// strides of outer axes follow from it.
bool align(IrBuilder& b, const Attr& attr) {
  if (attr.key.substr(0, kAlignAttr.size()) != kAlignAttr) return false;
  const std::optional<std::pair<int, int>> at = two_numbers(attr.key.substr(kAlignAttr.size()));
  if (!at) return false;
  Buffer buffer = b.buffer(BufferId(at->first));
  const int rank = static_cast<int>(buffer.shape.size());
  if (buffer.scope != Scope::kShared || at->second != rank - 2) return false;
  const int64_t factor = attr.value >> 32;
  const int64_t offset = (attr.value & 0xffffffff) % factor;
  std::vector<Expr> shape(buffer.shape.begin(), buffer.shape.end());
  const int64_t now = shape.back().as<IntImm>()->value;
  const int64_t padded = now + ((offset - now) % factor + factor) % factor;
  if (padded == now) return false;
  shape.back() = b.int_imm(padded);
  buffer.shape = b.copy(shape);
  b.set_buffer(buffer);
  return true;
}

}  // namespace

Result<Program> check_owners(const Program& program, const Target&) {
  PRUNERC_TRY_VOID(check_thread_ownership(program));
  return program;
}

Result<Program> place_gpu_buffers(const Program& program, const Target&) {
  IrBuilder b(program);
  Homes homes = find_homes(program);
  for (auto& [id, loops] : homes) {
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
  Stmt root = insert_allocs(b, program, homes);
  return b.finish(note_layouts(b, program, homes, root));
}

Result<Program> align_shared(const Program& program, const Target&) {
  IrBuilder b(program);
  bool changed = false;
  walk(
      program.root(),
      [&](Stmt s) {
        const Loop* loop = s.as<Loop>();
        if (loop == nullptr) return true;
        for (const Attr& attr : loop->attrs) changed = align(b, attr) || changed;
        return true;
      },
      [](Expr) {});
  return changed ? b.finish(program.root()) : program;
}

}  // namespace prunerc::codegen

// Which accesses of concurrent iterations must be watched: of elements that they share, and of
// registers that several threads might take for theirs.
#include "ir/fpv/compiler.h"
#include "ir/query.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

namespace prunerc::ir {
namespace {

bool stores_to(const Block& block, BufferId buffer) {
  bool found = false;
  walk(
      Stmt(&block),
      [&](Stmt s) {
        const Store* store = s.as<Store>();
        found = found || (store != nullptr && store->buffer == buffer);
        return !found;
      },
      [](Expr) {});
  return found;
}

}  // namespace

// Whether the iterations of a concurrent loop around share the buffer.
std::array<bool, kNumConcurrencies> FpCompiler::races(BufferId buffer) const {
  std::array<bool, kNumConcurrencies> out = {};
  const BufferRole role = program_.buffer(buffer).role;
  if (role == BufferRole::kInput) return out;
  for (std::size_t i = alloc_depth(buffer); i < loops_.size(); ++i) {
    const Concurrency c = concurrency_of(loops_[i]->loop_kind);
    if (c == Concurrency::kNone) continue;
    // Who waits for whom there is not the threads' to say.
    if (combines(*loops_[i], buffer)) {
      out[static_cast<std::size_t>(c)] = false;
      return out;
    }
    // A buffer with an Alloc inside of the loop is not in alloc_points_; its shadow is forgotten
    // there.
    out[static_cast<std::size_t>(c)] = true;
  }
  return out;
}

std::size_t FpCompiler::alloc_depth(BufferId buffer) const {
  const auto point = alloc_points_.find(buffer);
  return point != alloc_points_.end() ? point->second.size() : 0;
}

// Whether threads along the loop combine what they reduce together.
bool FpCompiler::combines(const Loop& loop, BufferId buffer) const {
  return is_lane_axis(loop.loop_kind) && block_ != nullptr && reduces_over(*block_, loop) &&
         stores_to(*block_, buffer);
}

namespace {

uint8_t bit_of(LoopKind kind) { return static_cast<uint8_t>(1 << axis_of(kind)); }

void note_all(Stmt body, uint8_t axes, std::map<BufferId, uint8_t>* out) {
  const auto note = [&](BufferId id) {
    uint8_t& all = (*out)[id];
    all = static_cast<uint8_t>(all | axes);
  };
  walk(
      body,
      [&](Stmt s) {
        if (const Store* store = s.as<Store>()) note(store->buffer);
        return true;
      },
      [&](Expr e) {
        walk(e, [&](Expr x) {
          if (const Load* load = x.as<Load>()) note(load->buffer);
          return true;
        });
      });
}

// A shuffle is along thread.x; the threads of a tensor instruction are along the axes that it does not stand in.
void find_wide(Stmt s, uint8_t around, std::map<BufferId, uint8_t>* out) {
  if (!s.defined()) return;
  if (const Loop* loop = s.as<Loop>()) {
    for (const Attr& attr : loop->attrs) {
      if (attr.key == "shuffle" || attr.key == "shuffle_xor")
        note_all(loop->body, bit_of(LoopKind::kThreadX), out);
      if (attr.key.substr(0, 7) != "tensor_") continue;
      // Lanes are thread.x; those of a warpgroup may be rows of it (ir/thread_axis.h).
      const bool is_group = attr.key.find("wgmma") != attr.key.npos;
      const int rows = is_group ? bit_of(LoopKind::kThreadY) & ~around : 0;
      note_all(loop->body, static_cast<uint8_t>(bit_of(LoopKind::kThreadX) | rows), out);
    }
    if (is_lane_axis(loop->loop_kind))
      around = static_cast<uint8_t>(around | bit_of(loop->loop_kind));
  }
  for_each_child(
      s, [&](Stmt child) { find_wide(child, around, out); }, [](Expr) {});
}

}  // namespace

std::map<BufferId, uint8_t> find_warp_wide(const Program& program) {
  std::map<BufferId, uint8_t> out;
  find_wide(program.root(), 0, &out);
  return out;
}

// Scope local is every thread's own: whoever reads an element must have written it.
void FpCompiler::find_owners(BufferId buffer, FpAccess* access) {
  const Buffer& info = program_.buffer(buffer);
  if (info.scope != Scope::kLocal || info.role != BufferRole::kIntermediate) return;
  const auto wide = warp_wide_.find(buffer);
  if (wide != warp_wide_.end()) access->combined_axes |= wide->second;
  for (std::size_t i = alloc_depth(buffer); i < loops_.size(); ++i) {
    if (!is_thread_axis(loops_[i]->loop_kind)) continue;
    code_.buffers[static_cast<std::size_t>(buffer.value)].has_owners = true;
    if (combines(*loops_[i], buffer)) {
      access->combined_axes |= static_cast<uint8_t>(1 << axis_of(loops_[i]->loop_kind));
    }
  }
}

}  // namespace prunerc::ir

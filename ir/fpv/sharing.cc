// Which accesses of concurrent iterations must be watched: of elements that they share, and of
// registers that several threads might take for theirs.
#include "ir/fpv/compiler.h"
#include "ir/query.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <algorithm>

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

// Registers that instructions pass between the lanes of a warp: operands of tensor loops and what
// is shuffled (codegen's lowering marks both by attributes). Along thread.x they are everyone's.
std::set<BufferId> FpCompiler::find_warp_wide(const Program& program) {
  std::set<BufferId> out;
  auto note = [&](Stmt body) {
    walk(
        body,
        [&](Stmt s) {
          if (const Store* store = s.as<Store>()) out.insert(store->buffer);
          return true;
        },
        [&](Expr e) {
          walk(e, [&](Expr x) {
            if (const Load* load = x.as<Load>()) out.insert(load->buffer);
            return true;
          });
        });
  };
  walk(
      program.root(),
      [&](Stmt s) {
        const Loop* loop = s.as<Loop>();
        if (loop == nullptr) return true;
        for (const Attr& attr : loop->attrs) {
          if (attr.key == "shuffle" || attr.key.substr(0, 7) == "tensor_") note(loop->body);
        }
        return true;
      },
      [](Expr) {});
  return out;
}

// Scope local is every thread's own: whoever reads an element must have written it.
void FpCompiler::find_owners(BufferId buffer, FpAccess* access) {
  const Buffer& info = program_.buffer(buffer);
  if (info.scope != Scope::kLocal || info.role != BufferRole::kIntermediate) return;
  if (warp_wide_.count(buffer) != 0) {
    access->combined_axes |= static_cast<uint8_t>(1 << axis_of(LoopKind::kThreadX));
  }
  for (std::size_t i = alloc_depth(buffer); i < loops_.size(); ++i) {
    if (!is_thread_axis(loops_[i]->loop_kind)) continue;
    code_.buffers[static_cast<std::size_t>(buffer.value)].has_owners = true;
    if (combines(*loops_[i], buffer)) {
      access->combined_axes |= static_cast<uint8_t>(1 << axis_of(loops_[i]->loop_kind));
    }
  }
}

}  // namespace prunerc::ir

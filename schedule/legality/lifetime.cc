#include "schedule/legality/lifetime.h"

#include "schedule/legality/loop_dependence.h"

#include <cstddef>
#include <string>
#include <utility>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

std::vector<const Loop*> life_of(const Dataflow& flow, BufferId buffer) {
  std::vector<const Loop*> life;
  bool any = false;
  for (const LeafBlock& leaf : flow.blocks()) {
    const bool written = writes(*leaf.block, buffer);
    if (!written && !reads(*leaf.block, buffer)) continue;
    std::vector<const Loop*> here;
    for (const Loop* loop : leaf.loops) {
      if (loop->loop_kind == LoopKind::kVectorized) break;
      if (written && feeds_reduction(*loop, *leaf.block)) break;
      here.push_back(loop);
    }
    if (any) here.resize(shared_loops(life, here));
    life = std::move(here);
    any = true;
  }
  return life;
}

namespace {

// Looks for values that pass from an iteration of the innermost loops of a life to a later one.
class LostValues {
 public:
  /// `depth`: loops of the life that were there before.
  LostValues(IrBuilder& b, const Dataflow& flow, BufferId buffer, std::size_t depth)
      : b_(b), flow_(flow), buffer_(buffer), depth_(depth), life_(life_of(flow, buffer)) {
    for (std::size_t i = 0; i < depth; ++i) outside_.bind(life_[i]->var, life_[i]->extent);
  }

  std::optional<LostValue> find(BlockId but) {
    for (const std::size_t reader : flow_.readers(buffer_)) {
      if (flow_[reader].block->id == but) continue;
      for (const std::size_t writer : flow_.writers(buffer_)) {
        if (!passes(flow_[writer], flow_[reader])) continue;
        const Site site = find_loop_in(flow_.program().root(), life_.back()->id);
        if (lives_in_iteration(b_, flow_.program(), site, buffer_)) return std::nullopt;
        return LostValue{flow_[reader].block->id, flow_[writer].block->id, buffer_,
                         life_.back()->id};
      }
    }
    return std::nullopt;
  }

 private:
  bool passes(const LeafBlock& writer, const LeafBlock& reader) {
    for (const Access& write : writer.block->writes) {
      for (const Access& read : reader.block->reads) {
        if (write.buffer != buffer_ || read.buffer != buffer_) continue;
        if (share_element(touch(writer, write), touch(reader, read), PointOrder::kBefore, outside_,
                          kTouchEffort) != Proof::kNo) {
          return true;
        }
      }
    }
    return false;
  }

  Touch touch(const LeafBlock& leaf, const Access& access) {
    const std::span<const Loop* const> loops = leaf.loops;
    return touch_of(b_, leaf, access, loops.subspan(depth_, life_.size() - depth_),
                    loops.subspan(life_.size()));
  }

  IrBuilder& b_;
  const Dataflow& flow_;
  BufferId buffer_;
  std::size_t depth_;
  std::vector<const Loop*> life_;
  VarRanges outside_;
};

}  // namespace

std::optional<LostValue> lost_value(const Program& before, const Program& after, BlockId but) {
  const Dataflow flow_before(before), flow(after);
  IrBuilder b(after);
  for (const Buffer& buffer : before.buffers()) {
    if (buffer.role != BufferRole::kIntermediate) continue;
    const std::size_t depth = life_of(flow_before, buffer.id).size();
    if (life_of(flow, buffer.id).size() <= depth) continue;
    if (const auto found = LostValues(b, flow, buffer.id, depth).find(but)) return found;
  }
  return std::nullopt;
}

Result<void> check_nothing_lost(const Program& before, const Program& after, BlockId but) {
  if (is_parametric(after)) return {};
  const std::optional<LostValue> lost = lost_value(before, after, but);
  if (!lost) return {};
  return error(Diag::kRegionNotCovered, lost->reader, std::string(after.buffer(lost->buffer).name),
               lost->loop);
}

}  // namespace prunerc::schedule

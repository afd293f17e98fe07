// Registers that live in several thread loops have the thread as leading dimensions. In CUDA each
// thread has its own, so these dimensions vanish.
#include "codegen/cuda/printer.h"
#include "codegen/lower/analysis/kernel.h"
#include "ir/arith/prove.h"
#include "ir/thread_axis.h"

#include <algorithm>

namespace prunerc::codegen {

using namespace ir;

std::size_t KernelPrinter::num_lane_dims(BufferId id) const {
  const auto it = lane_dims_.find(id);
  return it != lane_dims_.end() ? it->second : 0;
}

// As many leading indices as are, in every access, the thread in one of its axes.
void KernelPrinter::note_lanes(BufferId id, std::span<const Expr> indices, Expr shuffled) {
  if (buffer(id).scope != Scope::kLocal) return;
  std::size_t n = 0;
  std::array<bool, kNumThreadDims> used{};
  while (n < indices.size()) {
    const IntImm* extent = buffer(id).shape[n].as<IntImm>();
    bool found = extent != nullptr && extent->value == 1;
    for (std::size_t a = 0; a < lanes_.size() && !found; ++a) {
      if (lanes_[a] == nullptr || used[a]) continue;
      Expr thread(lanes_[a]->var);
      const ProveOptions cheap{.max_points = 4096};
      found =
          prove_equal(indices[n], thread, ranges_, cheap) == Proof::kYes ||
          (shuffled.defined() && prove_equal(indices[n], shuffled, ranges_, cheap) == Proof::kYes);
      used[a] = found;
    }
    if (!found) break;
    ++n;
  }
  const auto [it, is_new] = lane_dims_.emplace(id, n);
  if (!is_new) it->second = std::min(it->second, n);
}

void KernelPrinter::find_lane_dims(Expr e) {
  walk(e, [&](Expr x) {
    if (const Load* load = x.as<Load>()) note_lanes(load->buffer, load->indices, shuffled_);
    return true;
  });
}

void KernelPrinter::find_lane_dims(Stmt s) {
  if (!s.defined()) return;
  const VarRanges::Mark mark = ranges_.mark();
  const auto saved = lanes_;
  const Expr saved_shuffled = shuffled_;
  if (const If* branch = s.as<If>()) {
    find_lane_dims(branch->condition);
    ranges_.assume(branch->condition);
    find_lane_dims(branch->then_body);
    ranges_.rewind(mark);
    ranges_.assume_not(branch->condition);
    find_lane_dims(branch->else_body);
    return ranges_.rewind(mark);
  }
  if (const Loop* loop = s.as<Loop>()) {
    ranges_.bind(loop->var, loop->extent);
    if (is_lane_axis(loop->loop_kind)) {
      lanes_[static_cast<std::size_t>(axis_of(loop->loop_kind))] = loop;
      shuffled_ = shuffled_lane(*loop);
    }
  }
  if (const Store* store = s.as<Store>()) note_lanes(store->buffer, store->indices, {});
  for_each_child(
      s, [&](Stmt child) { find_lane_dims(child); }, [&](Expr e) { find_lane_dims(e); });
  lanes_ = saved;
  shuffled_ = saved_shuffled;
  ranges_.rewind(mark);
}

}  // namespace prunerc::codegen

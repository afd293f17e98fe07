#include "ir/thread_axis.h"

#include "ir/equal.h"
#include "ir/visit.h"

#include <string>
#include <vector>

namespace prunerc::ir {
namespace {

bool conflicts(LoopKind outer, LoopKind inner) {
  if (!is_thread_axis(outer) && !is_thread_axis(inner)) return false;
  if (outer == inner) return true;
  if (outer == LoopKind::kParallel || outer == LoopKind::kVectorized) return true;
  if (inner == LoopKind::kParallel) return true;
  return is_block_axis(inner) && is_thread_axis(outer) && !is_block_axis(outer);
}

class Checker {
 public:
  Result<void> run(Stmt s) {
    if (!s.defined()) return {};
    const Loop* loop = s.as<Loop>();
    if (loop == nullptr) return children(s);
    PRUNERC_TRY_VOID(check(*loop));
    around_.push_back(loop);
    PRUNERC_TRY_VOID(children(s));
    around_.pop_back();
    if (!in_kernel()) seen_.clear();
    return {};
  }

 private:
  Result<void> children(Stmt s) {
    Result<void> out;
    for_each_child(
        s,
        [&](Stmt child) {
          if (out.ok()) out = run(child);
        },
        [](Expr) {});
    return out;
  }

  bool in_kernel() const {
    for (const Loop* loop : around_) {
      if (is_thread_axis(loop->loop_kind)) return true;
    }
    return false;
  }

  Result<void> check(const Loop& loop) {
    for (const Loop* outer : around_) {
      if (!conflicts(outer->loop_kind, loop.loop_kind)) continue;
      return error(Diag::kLoopNestedParallel, loop.id, std::string(to_string(loop.loop_kind)),
                   outer->id);
    }
    if (!is_block_axis(loop.loop_kind) && !is_lane_axis(loop.loop_kind)) return {};
    for (const Loop* other : seen_) {
      if (other->loop_kind != loop.loop_kind) continue;
      if (structural_equal(other->extent, loop.extent)) continue;
      return error(Diag::kThreadAxisExtent, loop.id, std::string(to_string(loop.loop_kind)),
                   other->id);
    }
    seen_.push_back(&loop);
    return {};
  }

  std::vector<const Loop*> around_;
  std::vector<const Loop*> seen_;  // bound loops of the kernel so far
};

}  // namespace

std::optional<LoopKind> loop_kind_from_string(std::string_view name) {
#define PRUNERC_LOOP_KIND(Name, text) \
  if (name == (text)) return LoopKind::k##Name;
#include "ir/loop_kind.def"
#undef PRUNERC_LOOP_KIND
  return std::nullopt;
}

Result<void> check_thread_axes(Stmt root) { return Checker().run(root); }

}  // namespace prunerc::ir

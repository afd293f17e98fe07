#include "ir/analysis/ownership.h"

#include "ir/analysis/carried.h"
#include "ir/analysis/registers.h"

#include <string>
#include <utility>
#include <vector>

namespace prunerc::ir {
namespace {

// Asks whether a read may take what another thread, or another kernel, has written.
class Question {
 public:
  Question(IrBuilder& b, const Program& program, const Registers& registers)
      : b_(b), program_(program), registers_(registers) {}

  /// No: certainly not, at no point of the program.
  Proof strays(const RegisterUse& write, const RegisterUse& read) {
    alloc_depth_ = registers_.alloc_points.at(write.buffer).size();
    chain_.clear();
    const std::size_t from = kernel_of(write.path);
    const std::size_t to = kernel_of(read.path);
    const bool in_kernel = from < write.path.size();
    if (!in_kernel && to == read.path.size()) return Proof::kNo;
    if (alloc_depth_ <= from) {
      if (!in_kernel || to == read.path.size() || write.path[from] != read.path[to]) {
        return meet(write, read);
      }
      // Each run of loops around the kernel starts it anew.
      for (std::size_t i = alloc_depth_; i < from; ++i)
        chain_.emplace_back(write.path[i], write.path[i]);
    }
    for (std::size_t i = alloc_depth_; i < write.path.size(); ++i) {
      const Loop& loop = *write.path[i];
      if (!has_owner(loop) || write.combined[i]) continue;
      const Loop* same = axis_in(read, loop.loop_kind);
      if (same == nullptr) return meet(write, read);
      chain_.emplace_back(&loop, same);
    }
    return chain_.empty() ? Proof::kNo : differ(write, read);
  }

 private:
  const Loop* axis_in(const RegisterUse& use, LoopKind kind) const {
    for (std::size_t i = alloc_depth_; i < use.path.size(); ++i) {
      if (use.path[i]->loop_kind == kind) return use.path[i];
    }
    return nullptr;
  }

  VarRanges outside(const RegisterUse& use) const {
    VarRanges ranges(program_.domain());
    for (std::size_t i = 0; i < alloc_depth_; ++i)
      ranges.bind(use.path[i]->var, use.path[i]->extent);
    return ranges;
  }

  template <typename IsChained>
  Touch touch(const RegisterUse& use, const IsChained& is_chained) {
    Touch out;
    for (std::size_t i = alloc_depth_; i < use.path.size(); ++i) {
      if (!is_chained(use.path[i])) out.inner.push_back({use.path[i]->var, use.path[i]->extent});
    }
    out.conditions = use.conditions;
    out.region.buffer = use.buffer;
    for (Expr index : use.element) out.region.box.push_back({index, b_.int_imm(1)});
    return out;
  }

  // At different indices of the chained loops.
  Proof differ(const RegisterUse& write, const RegisterUse& read) {
    Touch x = touch(write, [&](const Loop* loop) {
      for (const auto& [own, other] : chain_) {
        if (own == loop) return true;
      }
      return false;
    });
    Touch y = touch(read, [&](const Loop* loop) {
      for (const auto& [own, other] : chain_) {
        if (other == loop) return true;
      }
      return false;
    });
    for (const auto& [own, other] : chain_) {
      x.chain.push_back({own->var, own->extent});
      y.chain.push_back({other->var, other->extent});
    }
    return share(x, y, PointOrder::kDifferent, write);
  }

  // At all: at different values of a variable that neither mentions.
  Proof meet(const RegisterUse& write, const RegisterUse& read) {
    const auto none = [](const Loop*) { return false; };
    Touch x = touch(write, none);
    Touch y = touch(read, none);
    const Axis any = {b_.fresh_var("any"), b_.int_imm(2)};
    x.chain = {any};
    y.chain = {any};
    return share(x, y, PointOrder::kBefore, write);
  }

  // Guards matter to few, and make the question much longer.
  Proof share(Touch& x, Touch& y, PointOrder order, const RegisterUse& write) {
    const VarRanges ranges = outside(write);
    const std::vector<Expr> x_conditions = std::exchange(x.conditions, {});
    const std::vector<Expr> y_conditions = std::exchange(y.conditions, {});
    if (share_element(x, y, order, ranges) == Proof::kNo) return Proof::kNo;
    x.conditions = x_conditions;
    y.conditions = y_conditions;
    return share_element(x, y, order, ranges);
  }

  IrBuilder& b_;
  const Program& program_;
  const Registers& registers_;
  std::size_t alloc_depth_ = 0;
  std::vector<std::pair<const Loop*, const Loop*>> chain_;  // of the write, of the read
};

}  // namespace

OwnershipCheck check_ownership(const Program& program, const ProveOptions& options) {
  IrBuilder b(program);
  const Registers registers = find_registers(b, program);
  Question question(b, program, registers);
  // Buffers of which that was not shown.
  RegisterAllocPoints doubtful;
  for (const RegisterUse& write : registers.uses) {
    for (const RegisterUse& read : registers.uses) {
      if (!write.writes || read.writes || write.buffer != read.buffer) continue;
      if (doubtful.count(write.buffer) > 0) continue;
      if (question.strays(write, read) == Proof::kNo) continue;
      doubtful.emplace(write.buffer, registers.alloc_points.at(write.buffer));
    }
  }
  if (doubtful.empty()) return {};
  return replay_registers(program, doubtful, options.max_points);
}

Result<void> check_thread_ownership(const Program& program, Doubt doubt) {
  const OwnershipCheck check = check_ownership(program);
  if (check.proof == Proof::kYes) return {};
  if (check.proof == Proof::kUnknown && doubt == Doubt::kAllowed) return {};
  const Buffer& buffer = program.buffer(check.buffer);
  return error(Diag::kThreadOwner, std::string(buffer.name), std::string(to_string(buffer.scope)),
               ": " + check.reason);
}

}  // namespace prunerc::ir

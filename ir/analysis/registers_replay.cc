// Runs a program's loops and subscripts, without its arithmetic, and follows who wrote each
// register last.
#include "ir/analysis/registers.h"
#include "ir/arith/evaluate.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace prunerc::ir {
namespace {

constexpr LoopKind kAxes[] = {LoopKind::kBlockX,  LoopKind::kBlockY,  LoopKind::kBlockZ,
                              LoopKind::kThreadX, LoopKind::kThreadY, LoopKind::kThreadZ};
constexpr std::size_t kNumAxes = std::size(kAxes);

std::size_t axis_of(LoopKind kind) {
  return static_cast<std::size_t>(std::find(std::begin(kAxes), std::end(kAxes), kind) - kAxes);
}

// A thread or all those that have something in common.
struct Holder {
  int64_t kernel = 0;                        // counts launches; 0: none runs
  std::array<int64_t, kNumAxes> index = {};  // by axis, from 1 on; 0: outside of it
};

bool holds(const Holder& owner, const Holder& reader) {
  if (owner.kernel != reader.kernel) return false;
  for (std::size_t a = 0; a < kNumAxes; ++a) {
    if (owner.index[a] != 0 && owner.index[a] != reader.index[a]) return false;
  }
  return true;
}

std::string name(const Holder& holder) {
  if (holder.kernel == 0) return "outside of kernels";
  std::string out;
  for (std::size_t a = 0; a < kNumAxes; ++a) {
    if (holder.index[a] == 0) continue;
    out += (out.empty() ? "at " : ", ") + std::string(to_string(kAxes[a])) + " " +
           std::to_string(holder.index[a] - 1);
  }
  return out.empty() ? "in every thread" : out;
}

class Replay {
 public:
  Replay(const Program& program, const RegisterAllocPoints& alloc_points, int64_t max_points)
      : program_(program), alloc_points_(alloc_points), left_(max_points) {}

  OwnershipCheck run() {
    stmt(program_.root());
    return result_;
  }

 private:
  bool ended() const { return result_.proof != Proof::kYes; }
  void end(Proof proof, BufferId buffer, std::string reason) {
    if (!ended()) result_ = {proof, buffer, std::move(reason)};
  }
  // Nothing is known of what the program does to registers.
  void give_up(const char* why) {
    const auto first = std::min_element(
        alloc_points_.begin(), alloc_points_.end(),
        [](const auto& a, const auto& b) { return a.first.value < b.first.value; });
    end(Proof::kUnknown, first->first, std::string("this is not excluded, as ") + why);
  }
  bool step() {
    if (--left_ < 0) give_up("there are too many iterations");
    return !ended();
  }

  // Whether registers are used below.
  bool matters(Stmt s) {
    const auto [at, is_new] = matters_.emplace(s.node(), false);
    if (!is_new) return at->second;
    bool found = false;
    walk(
        s,
        [&](Stmt x) {
          const Store* store = x.as<Store>();
          found = found || (store != nullptr && alloc_points_.count(store->buffer) > 0);
          return !found;
        },
        [&](Expr e) { found = found || matters(e); });
    return matters_[s.node()] = found;
  }
  bool matters(Expr e) {
    const auto [at, is_new] = matters_.emplace(e.node(), false);
    if (!is_new) return at->second;
    bool found = false;
    walk(e, [&](Expr x) {
      const Load* load = x.as<Load>();
      found = found || (load != nullptr && alloc_points_.count(load->buffer) > 0);
      return !found;
    });
    return matters_[e.node()] = found;
  }

  void stmt(Stmt s) {
    if (!s.defined() || ended() || !matters(s)) return;
    if (const Loop* n = s.as<Loop>()) return loop(*n);
    if (const Block* n = s.as<Block>()) return block(*n);
    if (const Store* n = s.as<Store>()) return store(*n);
    if (const If* n = s.as<If>()) {
      reads(n->condition);
      const std::optional<int64_t> holds = evaluate(n->condition, at_);
      if (!holds) return give_up("a condition depends on data");
      return stmt(*holds != 0 ? n->then_body : n->else_body);
    }
    if (const Alloc* n = s.as<Alloc>()) owners_.erase(n->buffer);
    for_each_child(
        s, [&](Stmt child) { stmt(child); }, [](Expr) {});
  }

  void loop(const Loop& n) {
    const std::optional<int64_t> extent = evaluate(n.extent, at_);
    if (!extent) return give_up("an extent is no constant");
    const Holder around = me_;
    if (is_thread_axis(n.loop_kind) && me_.kernel == 0) me_.kernel = ++num_kernels_;
    std::vector<BufferId> fresh;
    for (const auto& [buffer, loops] : alloc_points_) {
      if (!loops.empty() && loops.back() == &n) fresh.push_back(buffer);
    }
    loops_.push_back(&n);
    at_.vars.emplace_back(n.var->id, 0);
    for (int64_t i = 0; i < *extent && step(); ++i) {
      at_.vars.back().second = i;
      if (has_owner(n)) me_.index[axis_of(n.loop_kind)] = i + 1;
      for (BufferId buffer : fresh) owners_.erase(buffer);
      stmt(n.body);
    }
    at_.vars.pop_back();
    loops_.pop_back();
    me_ = around;
  }

  void block(const Block& n) {
    if (!step()) return;
    const std::optional<int64_t> runs = n.guard.defined() ? evaluate(n.guard, at_) : 1;
    if (!runs) return give_up("a guard depends on data");
    if (*runs == 0) return;
    const std::size_t around = at_.vars.size();
    std::vector<std::pair<VarId, int64_t>> values;
    bool starts = true;
    for (const IterVar& iter : n.iters) {
      reads(iter.binding);
      const std::optional<int64_t> value = evaluate(iter.binding, at_);
      if (!value) return give_up("a binding depends on data");
      starts = starts && (iter.kind != IterKind::kReduce || *value == 0);
      values.emplace_back(iter.var->id, *value);
    }
    at_.vars.insert(at_.vars.end(), values.begin(), values.end());
    const Block* const outer = block_;
    block_ = &n;
    if (starts) stmt(n.init);
    stmt(n.body);
    block_ = outer;
    at_.vars.resize(around);
  }

  // Of the element in its buffer; nullopt if the subscripts are not known.
  std::optional<int64_t> position(BufferId id, std::span<const Expr> indices) {
    const Buffer& buffer = program_.buffer(id);
    int64_t out = 0;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      const std::optional<int64_t> index = evaluate(indices[d], at_);
      const std::optional<int64_t> extent = evaluate(buffer.shape[d], at_);
      if (!index || !extent) return std::nullopt;
      out = out * *extent + *index;
    }
    return out;
  }

  void reads(Expr e) {
    if (ended() || !matters(e)) return;
    if (const Select* n = e.as<Select>()) {
      reads(n->condition);
      const std::optional<int64_t> holds = evaluate(n->condition, at_);
      if (holds) return reads(*holds != 0 ? n->on_true : n->on_false);
      const bool was_certain = std::exchange(certain_, false);
      reads(n->on_true);
      reads(n->on_false);
      certain_ = was_certain;
      return;
    }
    for_each_child(e, [&](Expr child) { reads(child); });
    const Load* load = e.as<Load>();
    if (load != nullptr && alloc_points_.count(load->buffer) > 0) read(*load);
  }

  void read(const Load& load) {
    const auto& known = owners_[load.buffer];
    const std::optional<int64_t> at = position(load.buffer, load.indices);
    if (!at) return read_any(load.buffer);
    const auto owner = known.find(*at);
    if (owner == known.end() || holds(owner->second, me_)) return;
    if (!certain_) return give_up("a selection depends on data");
    std::string element;
    for (Expr index : load.indices) {
      element += (element.empty() ? "" : ", ") + std::to_string(*evaluate(index, at_));
    }
    stray(load.buffer, "[" + element + "]", owner->second);
  }

  void stray(BufferId buffer, const std::string& element, const Holder& owner) {
    const bool stays = owner.kernel == me_.kernel;
    end(Proof::kNo, buffer,
        element + " is written " + name(owner) + " and read " +
            (stays ? name(me_) : "in another kernel"));
  }

  // Some element of those that were written.
  void read_any(BufferId buffer) {
    const auto& known = owners_[buffer];
    const auto fits = [&](const auto& entry) { return holds(entry.second, me_); };
    if (std::all_of(known.begin(), known.end(), fits)) return;
    if (certain_ && std::none_of(known.begin(), known.end(), fits)) {
      return stray(buffer, "any element", known.begin()->second);
    }
    give_up("a subscript depends on data");
  }

  void store(const Store& n) {
    for (Expr index : n.indices) reads(index);
    reads(n.value);
    if (!step() || alloc_points_.count(n.buffer) == 0) return;
    const std::optional<int64_t> at = position(n.buffer, n.indices);
    if (!at) return give_up("a subscript depends on data");
    Holder owner = me_;
    for (const Loop* loop : combined_loops()) owner.index[axis_of(loop->loop_kind)] = 0;
    owners_[n.buffer][*at] = owner;
  }

  // Loops across which the threads combine what the block around stores.
  const std::vector<const Loop*>& combined_loops() {
    const BlockId id = block_ != nullptr ? block_->id : BlockId();
    const auto [at, is_new] = combined_.try_emplace(id);
    for (std::size_t i = 0; is_new && block_ != nullptr && i < loops_.size(); ++i) {
      const bool combines = is_lane_axis(loops_[i]->loop_kind) && reduces_over(*block_, *loops_[i]);
      if (combines) at->second.push_back(loops_[i]);
    }
    return at->second;
  }

  const Program& program_;
  const RegisterAllocPoints& alloc_points_;
  int64_t left_;  // iterations and stores that may still be looked at
  Point at_;
  std::vector<const Loop*> loops_;
  const Block* block_ = nullptr;
  bool certain_ = true;  // that what is evaluated is
  Holder me_;
  int64_t num_kernels_ = 0;
  std::unordered_map<BufferId, std::unordered_map<int64_t, Holder>> owners_;
  std::unordered_map<BlockId, std::vector<const Loop*>> combined_;
  std::unordered_map<const void*, bool> matters_;
  OwnershipCheck result_;
};

}  // namespace

OwnershipCheck replay_registers(const Program& program, const RegisterAllocPoints& alloc_points,
                                int64_t max_points) {
  return Replay(program, alloc_points, max_points).run();
}

}  // namespace prunerc::ir

// Barriers where a thread may touch what another one touched since the last one.
// Before: threads are taken to meet after every loop over them. After: an attribute of such loops
// says whether they meet before it, or those of each warp do, where no element is two warps'.
// Memory is planned first: buffers that share bytes are one.
//     for t in 32 bind(thread.x) { T[t] = A[t] }  for t in 32 bind(thread.x) { B[t] = T[31 - t] }
// ~>  for t in 32 bind(thread.x) {sync = 0} { T[t] = A[t] }
//     for t in 32 bind(thread.x) {sync = 1} { B[t] = T[31 - t] }
#include "codegen/gpu_storage.h"
#include "codegen/lower/analysis/kernel.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"
#include "ir/analysis/carried.h"
#include "ir/arith/linear.h"
#include "ir/tensor/bulk_copy.h"
#include "ir/thread_axis.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

// Memory that threads of a block share, as bytes: touched since the last barrier, and by which
// statements, each with the number of warps' barriers before it.
struct Touched {
  std::set<BufferId> reads, writes;
  std::map<const StmtNode*, int64_t> by;
  void add(const Touched& other) {
    reads.insert(other.reads.begin(), other.reads.end());
    writes.insert(other.writes.begin(), other.writes.end());
    for (const auto& [node, step] : other.by) by[node] = std::max(by[node], step);
  }
};

// What a statement touches; each access by the warp, whose place in the block is the chain.
struct Uses {
  struct Use {
    Touch touch;
    bool is_write;
  };
  Touched all;
  std::vector<Use> each;
  bool is_known = false;  // `each` has all of them, and none is under way for longer
};

// How far a walk has come.
struct Progress {
  Touched open;
  Touched ahead;                              // by fetches for later iterations
  std::map<const StmtNode*, int64_t> synced;  // values of kSyncAttr
  int64_t step = 0;                           // barriers of warps so far
  std::ptrdiff_t num_blocks_met() const {
    return std::count_if(synced.begin(), synced.end(),
                         [](const auto& at) { return at.second == kBlockSync; });
  }
};

class Barriers {
 public:
  Barriers(IrBuilder& b, const GpuStorage& storage, const Kernel& kernel)
      : b_(b),
        storage_(storage),
        kernel_(kernel),
        has_warps_(kernel.threads[0] == kWarpSize && kernel.num_threads() > kWarpSize) {
    for (const Loop* loop : kernel.grid) ranges_.bind(loop->var, loop->extent);
    walk(
        kernel.body,
        [&](Stmt s) {
          const Loop* loop = s.as<Loop>();
          if (loop == nullptr || !is_bulk_copy(*loop)) return true;
          rings_.merge(stored_buffers(s));
          return false;
        },
        [](Expr) {});
    // What threads write as well they wait for.
    walk(
        kernel.body,
        [&](Stmt s) {
          const Loop* loop = s.as<Loop>();
          if (loop != nullptr && is_bulk_copy(*loop)) return false;
          if (const Store* store = s.as<Store>()) rings_.erase(store->buffer);
          return true;
        },
        [](Expr) {});
  }

  Result<Stmt> run() {
    if (kernel_.num_threads() == 1) return kernel_.body;
    visit(kernel_.body);
    if (divergent_.valid()) {
      return error(Diag::kThreadKernel, divergent_,
                   "the threads of a block must meet there, but only some reach it");
    }
    return mark(kernel_.body);
  }

 private:
  // Inside of a unit no thread waits for another.
  bool is_unit(Stmt s) {
    const Loop* loop = s.as<Loop>();
    if (!has_thread_loop(s) || (loop != nullptr && is_phase(*loop))) return true;
    if (loop == nullptr) return false;
    const auto [it, is_new] = independent_.emplace(s.node(), false);
    if (is_new) it->second = has_independent_iterations(*loop);
    return independent_.at(s.node());
  }

  // Do the iterations of a loop around phases leave each other alone? They do if nothing that they
  // write is read and each element is written once: threads that fetch a tile in several rounds.
  bool has_independent_iterations(const Loop& loop) {
    std::vector<Touch> writes;
    Touch here;
    if (!collect(Stmt(&loop), &here, &writes)) return false;
    const std::set<BufferId> read = shared(loaded_buffers(Stmt(&loop)));
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (read.count(writes[i].region.buffer) != 0) return false;
      for (std::size_t j = 0; j < i; ++j) {
        if (meets({writes[i].region.buffer}, {writes[j].region.buffer})) return false;
      }
      const ProveOptions cheap{.max_points = 10'000};
      if (share_element(writes[i], writes[i], PointOrder::kDifferent, ranges_, cheap) !=
              Proof::kNo &&
          !moves_by_tiles(writes[i], cheap)) {
        return false;
      }
    }
    return true;
  }

  // Does every iteration of the loops around phases write a box of its own? An index is where the
  // box begins plus a rest that is smaller than the distance of boxes.
  bool moves_by_tiles(const Touch& touch, const ProveOptions& options) {
    const VarRanges::Mark mark = ranges_.mark();
    for (const Axis& axis : touch.chain) ranges_.bind(axis.var, axis.extent);
    Touch boxes{.chain = {}, .inner = {}, .conditions = {}, .region = {touch.region.buffer, {}}};
    std::set<VarId> phase;
    for (const Axis& axis : touch.chain) {
      if (around_phases_.count(axis.var->id) != 0) {
        boxes.chain.push_back(axis);
      } else {
        phase.insert(axis.var->id);
      }
    }
    bool ok = true;
    for (const Range& range : touch.region.box) {
      const Linear index = to_linear(b_, range.min, ranges_);
      Linear begin = Linear::of(0), rest = Linear::of(0);
      for (const Term& term : index.terms) {
        const bool inside = std::any_of(phase.begin(), phase.end(),
                                        [&](VarId id) { return mentions(to_expr(b_, term), id); });
        Linear& part = inside ? rest : begin;
        part = part + Linear::of(term);
      }
      const Interval within = interval_of(rest, ranges_);
      const int64_t distance = coefficient_gcd(begin);
      ok = ok && !index.overflow && !index.has_data && within.is_bounded() &&
           (distance == 0 || within.hi - within.lo < distance);
      boxes.region.box.push_back({to_expr(b_, begin), b_.int_imm(1)});
    }
    ranges_.rewind(mark);
    return ok &&
           share_element(boxes, boxes, PointOrder::kDifferent, ranges_, options) == Proof::kNo;
  }

  // The stores to shared memory with the loops and conditions around them; false if there is
  // something that they do not describe.
  bool collect(Stmt s, Touch* here, std::vector<Touch>* writes) {
    if (!s.defined()) return true;
    if (const Seq* seq = s.as<Seq>()) {
      return std::all_of(seq->stmts.begin(), seq->stmts.end(),
                         [&](Stmt child) { return collect(child, here, writes); });
    }
    if (const Loop* loop = s.as<Loop>()) {
      if (is_bulk_copy(*loop)) return true;  // as in unit
      here->chain.push_back({loop->var, loop->extent});
      if (has_thread_loop(loop->body) && !is_lane_axis(loop->loop_kind)) {
        around_phases_.insert(loop->var->id);
      }
      const bool ok = collect(loop->body, here, writes);
      here->chain.pop_back();
      return ok;
    }
    if (const If* branch = s.as<If>()) {
      here->conditions.push_back(branch->condition);
      const bool ok = !branch->else_body.defined() && collect(branch->then_body, here, writes);
      here->conditions.pop_back();
      return ok;
    }
    if (const Alloc* alloc = s.as<Alloc>()) {
      return b_.buffer(alloc->buffer).scope == Scope::kLocal && collect(alloc->body, here, writes);
    }
    const Store* store = s.as<Store>();
    if (store == nullptr) return false;
    if (b_.buffer(store->buffer).scope == Scope::kLocal) return true;
    Touch touch = *here;
    touch.region.buffer = store->buffer;
    for (Expr index : store->indices) touch.region.box.push_back({index, b_.int_imm(1)});
    writes->push_back(std::move(touch));
    return true;
  }

  void visit(Stmt s) {
    if (!s.defined()) return;
    if (is_unit(s)) return unit(s);
    const VarRanges::Mark mark = ranges_.mark();
    const Loop* loop = s.as<Loop>();
    if (loop != nullptr) {
      ranges_.bind(loop->var, loop->extent);
      path_.push_back(loop);
    }
    if (loop != nullptr && attr_of(*loop, kSyncAttr).value_or(0) != 0) meet();
    const bool was_ahead = is_ahead_;
    is_ahead_ = is_ahead_ || (loop != nullptr && attr_of(*loop, kAheadAttr));
    visit_parts(s);
    is_ahead_ = was_ahead;
    if (loop != nullptr) path_.pop_back();
    ranges_.rewind(mark);
  }

  void visit_parts(Stmt s) {
    if (const If* branch = s.as<If>()) return visit_if(*branch);
    if (const Loop* loop = s.as<Loop>()) return visit_loop(*loop);
    for_each_child(
        s, [&](Stmt child) { visit(child); }, [](Expr) {});
  }

  // Where the first iteration alone must wait for the block, all meet in front of the loop.
  void visit_loop(const Loop& loop) {
    const bool repeats = !is_lane_axis(loop.loop_kind) && constant_value(loop.extent) != 1;
    const bool is_plain = loop.attrs.empty() && !any_loop(loop.body, is_bulk_copy);
    if (!has_warps_ || !repeats || !is_plain || is_ahead_ || num_divergent_ > 0 ||
        stays_inside_.count(&loop) != 0) {
      return visit_iterations(loop);
    }
    const Progress before = now_;
    visit_iterations(loop);
    if (now_.num_blocks_met() == before.num_blocks_met()) return;
    Progress inside = std::exchange(now_, before);
    now_.synced[&loop] = kBlockSync;
    meet();
    const std::ptrdiff_t num_met = now_.num_blocks_met();
    visit_iterations(loop);
    if (now_.num_blocks_met() > num_met) {
      now_ = std::move(inside);
      stays_inside_.insert(&loop);
    }
  }

  void visit_iterations(const Loop& loop) {
    const bool is_lane = is_lane_axis(loop.loop_kind);
    if (is_lane) lanes_.insert(loop.var->id);
    const IntImm* extent = loop.extent.as<IntImm>();
    const bool is_pipeline = attr_of(loop, kPipelineAttr).has_value();
    const int64_t step = now_.step;
    visit(loop.body);
    // What one iteration leaves open meets the next one.
    if (is_pipeline) arrive();
    if (!is_lane && (extent == nullptr || extent->value > 1)) visit(loop.body);
    if (is_pipeline) arrive();
    if (is_lane) lanes_.erase(loop.var->id);
    if (extent == nullptr && now_.step != step) forget_warps();  // it may run no time
  }

  void visit_if(const If& branch) {
    std::set<VarId> vars;
    collect_vars(branch.condition, &vars);
    const bool diverges =
        std::any_of(vars.begin(), vars.end(), [&](VarId id) { return lanes_.count(id) != 0; });
    // All threads read it, before any of them goes on.
    Touched read{shared(loads_of(branch.condition)), {}, {}};
    if (conflicts(now_.open, read)) {
      now_.synced[&branch] = kBlockSync;
      meet();
    }
    uses_[&branch].all = read;
    read.by[&branch] = now_.step;
    now_.open.add(read);
    num_divergent_ += diverges ? 1 : 0;
    const Touched before = now_.open;
    const int64_t step = now_.step;
    visit(branch.then_body);
    const Touched after = std::exchange(now_.open, before);
    const int64_t then_step = std::exchange(now_.step, step);
    visit(branch.else_body);
    now_.open.add(after);
    now_.step = std::max(then_step, now_.step);
    if (now_.step != step) forget_warps();
    num_divergent_ -= diverges ? 1 : 0;
  }

  static std::set<BufferId> loads_of(Expr e) {
    std::set<BufferId> out;
    walk(e, [&](Expr x) {
      if (const Load* load = x.as<Load>()) out.insert(load->buffer);
      return true;
    });
    return out;
  }

  // Barriers of warps that one way has and another has not are none.
  void forget_warps() {
    for (auto& at : now_.open.by) at.second = now_.step;
  }

  // All threads meet.
  void meet() { now_.open = now_.ahead = {}; }
  // What was fetched for later iterations counts from here on.
  void arrive() { now_.open.add(std::exchange(now_.ahead, {})); }

  bool conflicts(const Touched& before, const Touched& here) const {
    return meets(before.writes, here.reads) || meets(before.writes, here.writes) ||
           meets(before.reads, here.writes);
  }

  // A statement inside of which no thread waits for another.
  void unit(Stmt s) {
    const Loop* loop = s.as<Loop>();
    if (loop != nullptr && is_bulk_copy(*loop)) return;
    const bool is_ahead = is_ahead_ || (loop != nullptr && attr_of(*loop, kAheadAttr));
    const bool is_synced = loop != nullptr && attr_of(*loop, kSyncAttr).value_or(0) != 0;
    Touched here{shared(loaded_buffers(s)), shared(stored_buffers(s)), {}};
    if (has_warps_) note_uses(s, here);
    const bool meets_ahead = is_ahead && conflicts(now_.ahead, here);
    if (is_synced) {
      meet();
    } else {
      wait_before(s, meets_ahead ? kBlockSync : needed_sync(s, here));
    }
    if (now_.synced.count(s.node()) + (is_synced ? 1 : 0) > 0 && num_divergent_ > 0) {
      divergent_ = first_loop(s);
    }
    here.by[s.node()] = now_.step;
    (is_ahead ? now_.ahead : now_.open).add(here);
  }

  void wait_before(Stmt s, int64_t sync) {
    if (sync == 0) return;
    int64_t& marked = now_.synced[s.node()];
    if (marked != kBlockSync) marked = sync;
    if (sync == kBlockSync) meet();
    if (sync == kWarpSync) ++now_.step;
  }

  // 0: nobody waits.
  int64_t needed_sync(Stmt s, const Touched& here) {
    if (!conflicts(now_.open, here)) return 0;
    if (!has_warps_ || num_divergent_ > 0) return kBlockSync;
    int64_t sync = 0;
    for (const auto& [node, step] : now_.open.by) {
      if (!conflicts(uses_.at(node).all, here)) continue;
      if (!stay_in_warps(node, s.node())) return kBlockSync;
      if (step == now_.step) sync = kWarpSync;
    }
    return sync;
  }

  // Is no element, of which one of both writes, touched by two warps?
  bool stay_in_warps(const StmtNode* first, const StmtNode* second) {
    const auto [it, is_new] = stays_.emplace(std::pair(first, second), false);
    if (!is_new) return it->second;
    const Uses &x = uses_.at(first), &y = uses_.at(second);
    if (!x.is_known || !y.is_known || share_bytes(x.all, y.all)) return false;
    const ProveOptions cheap{.max_points = 10'000};
    const auto apart = [&](const Uses::Use& a, const Uses::Use& b) {
      return a.touch.region.buffer != b.touch.region.buffer || (!a.is_write && !b.is_write) ||
             share_element(a.touch, b.touch, PointOrder::kDifferent, ranges_, cheap) == Proof::kNo;
    };
    it->second = std::all_of(x.each.begin(), x.each.end(), [&](const Uses::Use& a) {
      return std::all_of(y.each.begin(), y.each.end(),
                         [&](const Uses::Use& b) { return apart(a, b); });
    });
    return it->second;
  }

  // Have different buffers of both the same bytes?
  bool share_bytes(const Touched& x, const Touched& y) const {
    std::set<BufferId> all = x.reads;
    all.insert(x.writes.begin(), x.writes.end());
    const auto meets_other = [&](BufferId id) {
      const auto is_other = [&](BufferId other) { return other != id && overlap(id, other); };
      return std::any_of(y.reads.begin(), y.reads.end(), is_other) ||
             std::any_of(y.writes.begin(), y.writes.end(), is_other);
    };
    return std::any_of(all.begin(), all.end(), meets_other);
  }

  void note_uses(Stmt s, const Touched& here) {
    const auto [it, is_new] = uses_.try_emplace(s.node());
    if (!is_new) return;
    it->second.all = here;
    it->second.is_known = true;
    collect_uses(s, &it->second);
  }

  void collect_uses(Stmt s, Uses* out) {
    if (!s.defined()) return;
    const Loop* loop = s.as<Loop>();
    if (loop != nullptr) path_.push_back(loop);
    if (const Store* store = s.as<Store>()) add_use(store->buffer, store->indices, true, out);
    for_each_child(
        s, [&](Stmt child) { collect_uses(child, out); },
        [&](Expr e) {
          walk(e, [&](Expr x) {
            if (const Load* load = x.as<Load>()) add_use(load->buffer, load->indices, false, out);
            return true;
          });
        });
    if (loop != nullptr) path_.pop_back();
  }

  // Loops around it may be at different iterations in two warps.
  void add_use(BufferId id, std::span<const Expr> indices, bool is_write, Uses* out) const {
    if (shared({id}).empty()) return;
    Touch touch{.chain = {}, .inner = {}, .conditions = {}, .region = {id, {}}};
    for (const Loop* loop : path_) {
      const bool stays_open = attr_of(*loop, kAsyncAttr).has_value() ||
                              attr_of(*loop, kAheadAttr).has_value() || is_bulk_copy(*loop);
      if (stays_open) out->is_known = false;
      const bool is_warp = is_lane_axis(loop->loop_kind) && axis_of(loop->loop_kind) > 0;
      if (!is_warp) touch.inner.push_back({loop->var, loop->extent});
    }
    for (int axis = 1; axis < kNumThreadDims; ++axis) {
      if (kernel_.threads[static_cast<std::size_t>(axis)] == 1) continue;
      const auto at = std::find_if(path_.begin(), path_.end(), [&](const Loop* loop) {
        return is_lane_axis(loop->loop_kind) && axis_of(loop->loop_kind) == axis;
      });
      if (at == path_.end()) {
        out->is_known = false;
        return;
      }
      touch.chain.push_back({(*at)->var, (*at)->extent});
    }
    for (Expr index : indices) touch.region.box.push_back({index, b_.int_imm(1)});
    out->each.push_back({std::move(touch), is_write});
  }

  static LoopId first_loop(Stmt s) {
    const Loop* loop = s.as<Loop>();
    return loop != nullptr ? loop->id : LoopId(0);
  }

  // Who reads a stage of a ring buffer, and who overwrites it, waits at its mbarriers.
  std::set<BufferId> shared(const std::set<BufferId>& all) const {
    std::set<BufferId> out;
    for (BufferId id : all) {
      if (b_.buffer(id).scope != Scope::kLocal && rings_.count(id) == 0) out.insert(id);
    }
    return out;
  }

  bool meets(const std::set<BufferId>& a, const std::set<BufferId>& b) const {
    return std::any_of(a.begin(), a.end(), [&](BufferId x) {
      return std::any_of(b.begin(), b.end(), [&](BufferId y) { return x == y || overlap(x, y); });
    });
  }

  bool overlap(BufferId x, BufferId y) const {
    if (b_.buffer(x).scope != b_.buffer(y).scope) return false;
    const auto a = storage_.extents.find(x);
    const auto b = storage_.extents.find(y);
    if (a == storage_.extents.end() || b == storage_.extents.end()) return false;
    return a->second.offset < b->second.offset + b->second.size_bytes &&
           b->second.offset < a->second.offset + a->second.size_bytes;
  }

  Stmt mark(Stmt s) {
    if (!s.defined()) return s;
    const auto at = now_.synced.find(s.node());
    const int64_t sync = at == now_.synced.end() ? 0 : at->second;
    if (!is_unit(s)) {
      Stmt r = map_stmts(b_, s, [&](Stmt child) { return mark(child); });
      return sync != 0 ? after_barrier(r, sync) : r;
    }
    const Loop* loop = s.as<Loop>();
    if (loop == nullptr || !has_thread_loop(s)) return sync != 0 ? after_barrier(s, sync) : s;
    if (attr_of(*loop, kSyncAttr)) return s;
    return add_attrs(b_, *loop, std::array{Attr{kSyncAttr, sync}});
  }

  // What all threads run gets a loop of one iteration that carries the barrier.
  Stmt after_barrier(Stmt s, int64_t sync) {
    Loop loop = make_loop(b_, "u", 1);
    loop.body = s;
    return add_attrs(b_, loop, std::array{Attr{kSyncAttr, sync}});
  }

  IrBuilder& b_;
  const GpuStorage& storage_;
  const Kernel& kernel_;
  std::set<VarId> around_phases_;  // serial loops with thread loops inside
  std::set<BufferId> rings_;       // what bulk copies fill
  const bool has_warps_;           // several, each with a place along thread.y and thread.z
  Progress now_;
  bool is_ahead_ = false;
  std::vector<const Loop*> path_;  // around the statement at hand
  std::map<const StmtNode*, Uses> uses_;
  std::map<std::pair<const StmtNode*, const StmtNode*>, bool> stays_;  // stay_in_warps
  std::map<const StmtNode*, bool> independent_;
  VarRanges ranges_;
  std::set<VarId> lanes_;  // of thread loops that hold phases
  int num_divergent_ = 0;
  std::set<const Loop*> stays_inside_;  // loops with a barrier of the block in each iteration
  LoopId divergent_;
};

}  // namespace

Result<Program> insert_barriers(const Program& program, const Target&) {
  PRUNERC_TRY(const GpuStorage storage, plan_gpu_storage(program));
  return map_kernels(program, [&](IrBuilder& b, const Kernel& kernel) {
    return Barriers(b, storage, kernel).run();
  });
}

}  // namespace prunerc::codegen

#include "tests/support/gpu_bugs.h"

#include "ir/builder.h"
#include "ir/map.h"
#include "ir/support/check.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <vector>

namespace prunerc::testing {

using namespace ir;

namespace {

// Walks all sites of a bug; changes the one with the given number.
class Planting {
 public:
  Planting(const Program& program, GpuBug bug, int site) : b_(program), bug_(bug), site_(site) {}

  Program run(const Program& program) {
    Stmt root = go(program.root());
    if (released_.valid()) root = with_less_copies(root);
    return b_.finish(root);
  }
  int num_sites() const { return next_; }

 private:
  bool is_chosen() { return next_++ == site_; }

  static const Attr* attr(const Loop& loop, std::string_view key) {
    for (const Attr& a : loop.attrs) {
      if (a.key == key) return &a;
    }
    return nullptr;
  }

  bool fetches(Stmt s) const {
    bool shared = false, global = false;
    walk(
        s,
        [&](Stmt x) {
          const Store* store = x.as<Store>();
          shared = shared || (store != nullptr && b_.buffer(store->buffer).scope == Scope::kShared);
          return true;
        },
        [&](Expr e) {
          walk(e, [&](Expr x) {
            const Load* load = x.as<Load>();
            global = global || (load != nullptr && b_.buffer(load->buffer).scope == Scope::kGlobal);
            return true;
          });
        });
    return shared && global;
  }

  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    const bool was_ahead = is_ahead_;
    const Loop* loop = s.as<Loop>();
    const int64_t outer_threads = num_threads_;
    if (loop != nullptr && attr(*loop, "ahead") != nullptr) is_ahead_ = true;
    if (loop != nullptr && is_lane_axis(loop->loop_kind)) {
      const IntImm* extent = loop->extent.as<IntImm>();
      num_threads_ *= extent != nullptr ? extent->value : 1;
    }
    Stmt r = map_children(
        b_, s, [&](Stmt child) { return go(child); }, [](Expr e) { return e; });
    num_threads_ = outer_threads;
    if (const Loop* now = r.as<Loop>()) r = in_loop(r, *now);
    if (const If* now = r.as<If>()) r = in_if(r, *now);
    if (const Store* now = r.as<Store>()) r = in_store(r, *now);
    is_ahead_ = was_ahead;
    return r;
  }

  Stmt with_attr(const Loop& loop, std::string_view key, int64_t value) {
    Loop changed = loop;
    std::vector<Attr> attrs(loop.attrs.begin(), loop.attrs.end());
    for (Attr& a : attrs) {
      if (a.key == key) a.value = value;
    }
    changed.attrs = b_.copy(attrs);
    return b_.loop(changed);
  }

  Stmt in_loop(Stmt s, const Loop& loop) {
    const Attr* sync = attr(loop, "sync");
    const Attr* wait = attr(loop, "async_wait");
    const Attr* shuffle = attr(loop, "shuffle");
    if (bug_ == GpuBug::kLostBarrier && sync != nullptr && sync->value != 0 &&
        num_threads_ * own_threads(s) > 1 && is_chosen()) {
      return with_attr(loop, "sync", 0);
    }
    if (bug_ == GpuBug::kWeakWait && wait != nullptr && is_chosen()) {
      return with_attr(loop, "async_wait", wait->value + 1);
    }
    const bool shuffles = shuffle != nullptr && !picks(loop);
    if (bug_ == GpuBug::kLostShuffle && shuffles && is_chosen()) return {};
    if (bug_ == GpuBug::kWrongLane && shuffles && is_chosen()) {
      return with_attr(wrong_lane(loop, shuffle->value), "shuffle", shuffle->value - 1);
    }
    const IntImm* extent = loop.extent.as<IntImm>();
    const bool is_own =
        !is_thread_axis(loop.loop_kind) && attr(loop, "software_pipeline") == nullptr;
    if (bug_ == GpuBug::kShortFetch && is_own && extent != nullptr && extent->value > 1 &&
        fetches(s) && is_chosen()) {
      Loop changed = loop;
      changed.extent = b_.int_imm(extent->value - 1);
      return b_.loop(changed);
    }
    return s;
  }

  // Is it the largest or smallest of some values that is combined? One that is missed seldom
  // matters, and never where it only keeps exp of a softmax small.
  static bool picks(const Loop& loop) {
    bool found = true;
    walk(
        loop.body,
        [&](Stmt x) {
          const Store* store = x.as<Store>();
          if (store == nullptr) return true;
          const ExprKind kind = store->value.kind();
          found = found && (kind == ExprKind::kMax || kind == ExprKind::kMin);
          return found;
        },
        [](Expr) {});
    return found;
  }

  // Threads of the axes from here inwards.
  static int64_t own_threads(Stmt s) {
    int64_t n = 1;
    for (const Loop* loop = s.as<Loop>(); loop != nullptr; loop = loop->body.as<Loop>()) {
      const IntImm* extent = loop->extent.as<IntImm>();
      if (is_lane_axis(loop->loop_kind) && extent != nullptr) n *= extent->value;
    }
    return n;
  }

  // T[t + step, ..] ~> T[t + step - 1, ..]
  Loop wrong_lane(const Loop& loop, int64_t step) {
    const ExprFn in_expr = [&](Expr e) -> Expr {
      const Load* load = e.as<Load>();
      if (load == nullptr) return map_children(b_, e, in_expr);
      std::vector<Expr> indices(load->indices.begin(), load->indices.end());
      for (Expr& index : indices) {
        const Add* sum = index.as<Add>();
        const IntImm* distance = sum != nullptr ? sum->rhs.as<IntImm>() : nullptr;
        if (distance != nullptr && distance->value == step) {
          index = b_.add(sum->lhs, b_.int_imm(step - 1));
        }
      }
      return b_.load(load->buffer, indices);
    };
    Loop changed = loop;
    changed.body = map_exprs(b_, loop.body, in_expr);
    return changed;
  }

  Stmt in_if(Stmt s, const If& branch) {
    bool in_memory = false;
    walk(
        branch.then_body,
        [&](Stmt x) {
          const Store* store = x.as<Store>();
          in_memory |= store != nullptr && b_.buffer(store->buffer).scope != Scope::kLocal;
          return !in_memory;
        },
        [](Expr) {});
    const bool fits = bug_ == GpuBug::kLostGuard && in_memory && !branch.else_body.defined();
    return fits && is_chosen() ? branch.then_body : s;
  }

  const IntImm* copies_of(BufferId id) const {
    const Buffer& buffer = b_.buffer(id);
    if (buffer.scope != Scope::kShared || buffer.shape.empty()) return nullptr;
    return buffer.shape[0].as<IntImm>();
  }

  Stmt in_store(Stmt s, const Store& store) {
    const IntImm* copies = copies_of(store.buffer);
    if (bug_ == GpuBug::kNoZeroFill && copies != nullptr) {
      const Select* select = store.value.as<Select>();
      const bool pads = select != nullptr && select->on_true.as<Load>() != nullptr &&
                        select->on_false.as<Load>() == nullptr;
      if (pads && is_chosen()) return b_.store(store.buffer, store.indices, select->on_true);
    }
    if (!is_ahead_ || copies == nullptr || store.indices.empty()) return s;
    // T[(k + d) % n, ..] ~> T[(k + d + 1) % n, ..]
    if (bug_ == GpuBug::kWrongStage && is_chosen()) {
      std::vector<Expr> indices(store.indices.begin(), store.indices.end());
      indices[0] = b_.floormod(b_.add(indices[0], b_.int_imm(1)), b_.int_imm(copies->value));
      return b_.store(store.buffer, indices, store.value);
    }
    if (bug_ == GpuBug::kEarlyRelease && copies->value > 1 && is_chosen()) {
      released_ = store.buffer;
    }
    return s;
  }

  // T[e % n, ..] ~> T[e % (n - 1), ..] wherever the buffer is touched.
  Stmt with_less_copies(Stmt s) {
    const int64_t left = copies_of(released_)->value - 1;
    const auto moved = [&](std::span<const Expr> old) {
      std::vector<Expr> indices(old.begin(), old.end());
      const FloorMod* turn = indices[0].as<FloorMod>();
      indices[0] = b_.floormod(turn != nullptr ? turn->lhs : indices[0], b_.int_imm(left));
      return indices;
    };
    const ExprFn in_expr = [&](Expr e) -> Expr {
      const Expr r = map_children(b_, e, in_expr);
      const Load* load = r.as<Load>();
      if (load == nullptr || load->buffer != released_) return r;
      return b_.load(load->buffer, moved(load->indices));
    };
    const StmtFn in_stmt = [&](Stmt x) -> Stmt {
      const Stmt r = map_children(b_, x, in_stmt, in_expr);
      const Store* store = r.as<Store>();
      if (store == nullptr || store->buffer != released_) return r;
      return b_.store(store->buffer, moved(store->indices), store->value);
    };
    return in_stmt(s);
  }

  IrBuilder b_;
  const GpuBug bug_;
  const int site_;
  int next_ = 0;
  bool is_ahead_ = false;
  int64_t num_threads_ = 1;  // of the axes around
  BufferId released_;
};

}  // namespace

std::string_view to_string(GpuBug bug) {
  switch (bug) {
    case GpuBug::kLostBarrier: return "lost barrier";
    case GpuBug::kWeakWait: return "weak wait";
    case GpuBug::kWrongStage: return "wrong stage";
    case GpuBug::kEarlyRelease: return "early release";
    case GpuBug::kShortFetch: return "short fetch";
    case GpuBug::kLostGuard: return "lost guard";
    case GpuBug::kNoZeroFill: return "no zero fill";
    case GpuBug::kLostShuffle: return "lost shuffle";
    case GpuBug::kWrongLane: return "wrong lane";
  }
  PRUNERC_UNREACHABLE("bug");
}

int count_sites(const Program& lowered, GpuBug bug) {
  Planting counting(lowered, bug, -1);
  counting.run(lowered);
  return counting.num_sites();
}

Program plant(const Program& lowered, GpuBug bug, int site) {
  return Planting(lowered, bug, site).run(lowered);
}

}  // namespace prunerc::testing

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

  Program run(const Program& program) { return b_.finish(go(program.root())); }
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
    if (loop != nullptr && attr(*loop, "ahead") != nullptr) is_ahead_ = true;
    Stmt r = map_children(
        b_, s, [&](Stmt child) { return go(child); }, [](Expr e) { return e; });
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
    if (bug_ == GpuBug::kLostBarrier && sync != nullptr && sync->value != 0 && is_chosen()) {
      return with_attr(loop, "sync", 0);
    }
    if (bug_ == GpuBug::kWeakWait && wait != nullptr && is_chosen()) {
      return with_attr(loop, "async_wait", wait->value + 1);
    }
    if (bug_ == GpuBug::kLostShuffle && attr(loop, "shuffle") != nullptr && is_chosen()) return {};
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

  Stmt in_if(Stmt s, const If& branch) {
    const bool fits = bug_ == GpuBug::kLostGuard && !branch.else_body.defined();
    return fits && is_chosen() ? branch.then_body : s;
  }

  // T[(k + d) % n, ..] ~> T[(k + d + 1) % n, ..]
  Stmt in_store(Stmt s, const Store& store) {
    if (bug_ != GpuBug::kWrongStage || !is_ahead_ || store.indices.empty()) return s;
    const IntImm* copies = b_.buffer(store.buffer).shape[0].as<IntImm>();
    if (copies == nullptr || b_.buffer(store.buffer).scope != Scope::kShared || !is_chosen()) {
      return s;
    }
    std::vector<Expr> indices(store.indices.begin(), store.indices.end());
    indices[0] = b_.floormod(b_.add(indices[0], b_.int_imm(1)), b_.int_imm(copies->value));
    return b_.store(store.buffer, indices, store.value);
  }

  IrBuilder b_;
  const GpuBug bug_;
  const int site_;
  int next_ = 0;
  bool is_ahead_ = false;
};

}  // namespace

std::string_view to_string(GpuBug bug) {
  switch (bug) {
    case GpuBug::kLostBarrier: return "lost barrier";
    case GpuBug::kWeakWait: return "weak wait";
    case GpuBug::kWrongStage: return "wrong stage";
    case GpuBug::kShortFetch: return "short fetch";
    case GpuBug::kLostGuard: return "lost guard";
    case GpuBug::kLostShuffle: return "lost shuffle";
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

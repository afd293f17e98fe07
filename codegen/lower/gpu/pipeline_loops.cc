// Fetches into shared memory run iterations ahead of what is computed with them.
// Before: stages of an iteration follow each other. After: stage 0 is ahead, in copies of what it
// stores. One barrier an iteration: behind it, what was fetched for k has arrived everywhere, and
// nobody reads the copy of k - 1 any more. (for t: over threads, of stages 0 and 2.)
//     for k in 8 {software_pipeline = 3} { alloc T { for t .. { T[t] = A[k, t] }  for t .. {S} } }
// ~>  alloc T { for p in 2 .. { for t .. {async = 1, ..} { if p < 8 { T[p % 3, t] = A[p, t] } } }
//       for k .. { for t .. {sync = 1, ..} { if k + 2 < 8 { T[(k + 2) % 3, t] = .. } }  .. } }
// Bulk copies beside the fetches stay where they are, in the stages of their ring buffer.
#include "codegen/lower/analysis/kernel.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"
#include "ir/arith/simplify.h"
#include "ir/tensor/bulk_copy.h"

#include <algorithm>
#include <set>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

constexpr std::string_view kStageAttr = "pipeline_stage";

// A pipelined loop, taken apart.
struct Pipeline {
  const Loop* loop = nullptr;
  std::vector<BufferId> allocs;    // around the statements, outermost first
  std::vector<const Loop*> bulk;   // copies by the engine, which runs ahead by itself
  std::vector<const Loop*> fetch;  // of stage 0, in order
  std::vector<Stmt> rest;          // of the last stage
  int64_t depth = 0;               // iterations that a fetch is ahead
};

// Does a fetch read or write what the engine brings in the same iteration? Of a later one that is not there yet.
bool touches_bulk(const Pipeline& p) {
  std::set<BufferId> brought;
  for (const Loop* copy : p.bulk) brought.merge(stored_buffers(Stmt(copy)));
  return std::any_of(p.fetch.begin(), p.fetch.end(), [&](const Loop* fetch) {
    std::set<BufferId> touched = loaded_buffers(Stmt(fetch));
    touched.merge(stored_buffers(Stmt(fetch)));
    return std::any_of(touched.begin(), touched.end(),
                       [&](BufferId id) { return brought.count(id) != 0; });
  });
}

// Of a loop, or of all loops in Allocs of their own.
std::optional<int64_t> stage_of(Stmt s) {
  std::vector<BufferId> allocs;
  s = below_allocs(s, &allocs);
  if (const Loop* loop = s.as<Loop>()) return attr_of(*loop, kStageAttr);
  const Seq* seq = s.as<Seq>();
  if (seq == nullptr || allocs.empty()) return std::nullopt;
  const std::optional<int64_t> first = stage_of(seq->stmts[0]);
  const bool all_same = std::all_of(seq->stmts.begin(), seq->stmts.end(),
                                    [&](Stmt part) { return stage_of(part) == first; });
  return all_same ? first : std::nullopt;
}

// Does a fetch have nothing to do with what stands in front of it? Then it may come first.
bool may_pass(Stmt fetch, const std::vector<Stmt>& before) {
  const auto meet = [](const std::set<BufferId>& x, const std::set<BufferId>& y) {
    return std::any_of(x.begin(), x.end(), [&](BufferId id) { return y.count(id) != 0; });
  };
  const std::set<BufferId> stored = stored_buffers(fetch), loaded = loaded_buffers(fetch);
  return std::none_of(before.begin(), before.end(), [&](Stmt s) {
    const std::set<BufferId> stores = stored_buffers(s);
    return meet(stored, stores) || meet(stored, loaded_buffers(s)) || meet(loaded, stores);
  });
}

// Nothing if the loop's annotations do not describe fetches that run ahead of everything else: an
// annotation is a permission, and the loop as it stands is right.
std::optional<Pipeline> read_pipeline(const Loop& loop) {
  Pipeline out;
  out.loop = &loop;
  out.depth = attr_of(loop, kPipelineAttr).value_or(1) - 1;
  if (out.depth < 1) return std::nullopt;
  const Seq* seq = below_allocs(loop.body, &out.allocs).as<Seq>();
  if (seq == nullptr) return std::nullopt;
  for (Stmt child : seq->stmts) {
    const Loop* part = child.as<Loop>();
    const std::optional<int64_t> stage = stage_of(child);
    if (!stage || (*stage != 0 && *stage != out.depth)) return std::nullopt;
    if (*stage == 0 && (part == nullptr || !may_pass(child, out.rest))) return std::nullopt;
    if (*stage != 0) {
      out.rest.push_back(child);
    } else {
      (is_bulk_copy(*part) ? out.bulk : out.fetch).push_back(part);
    }
  }
  if (out.fetch.empty() || out.rest.empty() || touches_bulk(out)) return std::nullopt;
  // What threads share out among themselves alone: else one of them would wait for all others.
  const bool all_share = std::all_of(out.fetch.begin(), out.fetch.end(), [](const Loop* fetch) {
    return has_thread_loop(Stmt(fetch));
  });
  return all_share ? std::optional(out) : std::nullopt;
}

class Pipelining {
 public:
  explicit Pipelining(const Program& program) : b_(program) {}

  Program run(const Program& program) { return b_.finish(go(program.root())); }

 private:
  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    const Loop* loop = s.as<Loop>();
    std::optional<Pipeline> pipeline =
        loop != nullptr && attr_of(*loop, kPipelineAttr) ? read_pipeline(*loop) : std::nullopt;
    const VarRanges::Mark mark = ranges_.mark();
    if (loop != nullptr) ranges_.bind(loop->var, loop->extent);
    if (pipeline) pipeline->depth = depth_inside(*pipeline);
    Stmt r = pipeline && pipeline->depth > 0 && fetches_shared(*pipeline)
                 ? rewrite(*pipeline)
                 : map_stmts(b_, s, [&](Stmt child) { return go(child); });
    ranges_.rewind(mark);
    return r;
  }

  // A fetch that is further ahead than the loop is long would never run inside of it, and what is
  // waited for stands there.
  int64_t depth_inside(const Pipeline& p) {
    int64_t depth = p.depth;
    while (depth > 0 && constant_value(simplify(b_, exists(p, later(p, depth)), ranges_)) == 0) {
      --depth;
    }
    return depth;
  }

  Expr later(const Pipeline& p, int64_t depth) {
    return b_.add(Expr(p.loop->var), b_.int_imm(depth));
  }
  Expr exists(const Pipeline& p, Expr at) { return b_.lt(at, p.loop->extent); }

  // Registers that a fetch fills have no copies: they stay with their iteration.
  bool fetches_shared(const Pipeline& p) const {
    for (const Loop* loop : p.fetch) {
      for (const BufferId id : stored_buffers(Stmt(loop))) {
        const bool is_own = std::find(p.allocs.begin(), p.allocs.end(), id) != p.allocs.end();
        if (is_own && b_.buffer(id).scope != Scope::kShared) return false;
      }
    }
    return true;
  }

  // Whether copies may be under way beyond the fetch: nothing of the same step reads them or stores there again.
  static bool may_be_async(const Pipeline& p, const Loop& fetch) {
    for (const BufferId stored : stored_buffers(Stmt(&fetch))) {
      if (num_stores(Stmt(&fetch), stored) > 1) return false;
      for (const Loop* other : p.fetch) {
        if (loaded_buffers(Stmt(other)).count(stored) != 0) return false;
        if (other != &fetch && num_stores(Stmt(other), stored) > 0) return false;
      }
    }
    return true;
  }

  // The shared buffers that pass from the fetches to the rest: each gets depth + 1 copies.
  std::set<BufferId> add_copies(const Pipeline& p) {
    std::set<BufferId> fetched;
    for (const Loop* loop : p.fetch) {
      for (BufferId id : stored_buffers(Stmt(loop))) {
        const bool is_own = std::find(p.allocs.begin(), p.allocs.end(), id) != p.allocs.end();
        if (is_own && b_.buffer(id).scope == Scope::kShared) fetched.insert(id);
      }
    }
    for (BufferId id : fetched) add_leading_dims(b_, id, {b_.int_imm(p.depth + 1)});
    return fetched;
  }

  Stmt in_copy(const Pipeline& p, const std::set<BufferId>& fetched, Stmt s) {
    const Expr copy = b_.floormod(Expr(p.loop->var), b_.int_imm(p.depth + 1));
    return add_leading_indices(b_, s, fetched, {copy});
  }

  Stmt with_attrs(const Loop& loop, std::vector<Attr> more) {
    Loop copy = loop;
    for (const Attr& attr : loop.attrs) more.push_back(attr);
    copy.attrs = b_.copy(more);
    return b_.loop(copy);
  }

  // The fetches of iteration `at`, if there is such an iteration.
  Stmt fetch(const Pipeline& p, const std::set<BufferId>& fetched, Expr at, std::vector<Attr> first,
             const std::vector<Attr>& all) {
    std::vector<Stmt> out;
    for (std::size_t i = 0; i < p.fetch.size(); ++i) {
      std::vector<Attr> attrs;
      if (may_be_async(p, *p.fetch[i])) attrs.push_back({kAsyncAttr, 1});
      attrs.insert(attrs.end(), all.begin(), all.end());
      if (i == 0) attrs.insert(attrs.end(), first.begin(), first.end());
      if (i + 1 == p.fetch.size()) attrs.push_back({kCommitAttr, 1});
      Stmt s = with_attrs(*p.fetch[i], attrs);
      s = substitute(b_, in_copy(p, fetched, s), {{p.loop->var->id, at}});
      out.push_back(clone_with_fresh_ids(b_, guard_phases(b_, exists(p, at), s)));
    }
    return b_.seq(out);
  }

  Stmt rewrite(const Pipeline& p) {
    const std::set<BufferId> fetched = add_copies(p);
    Loop prologue = make_loop(b_, "p", p.depth, LoopKind::kUnrolled);
    prologue.body = fetch(p, fetched, Expr(prologue.var), {}, {});
    std::vector<Stmt> body;
    for (const Loop* loop : p.bulk) body.push_back(Stmt(loop));
    body.push_back(fetch(p, fetched, later(p, p.depth), {{kWaitAttr, p.depth - 1}, {kSyncAttr, 1}},
                         {{kAheadAttr, 1}}));
    for (Stmt s : p.rest) body.push_back(go(in_copy(p, fetched, s)));
    Loop main = *p.loop;
    main.body = b_.seq(body);
    std::vector<BufferId> outside;
    for (std::size_t i = p.allocs.size(); i-- > 0;) {
      if (fetched.count(p.allocs[i]) != 0) {
        outside.push_back(p.allocs[i]);
      } else {
        main.body = b_.alloc(p.allocs[i], main.body);
      }
    }
    Stmt r = b_.seq({b_.loop(prologue), b_.loop(main)});
    for (BufferId id : outside) r = b_.alloc(id, r);
    return r;
  }

  IrBuilder b_;
  VarRanges ranges_;
};

}  // namespace

Result<Program> pipeline_loops(const Program& program, const Target&) {
  return Pipelining(program).run(program);
}

}  // namespace prunerc::codegen

// Software pipelines: while one tile is computed with, later ones are on their way.
//     for k in N {software_pipeline = 3} { alloc A { F {pipeline_stage = 0}: A[..] = f(k)
//                                                    C {pipeline_stage = 2}: .. A[..] } }
// ~>  alloc A[3, ..] { for p in 2 { if (p < N) F(p), commit }
//                      for k in N { wait; barrier; if (k + 2 < N) F(k + 2), commit;  C(k) } }
// with A[k % 3, ..] in place of A[..]. One barrier an iteration does for both: after it, what F(k)
// wrote has arrived everywhere, and nobody reads the copy of iteration k - 1 any more.
#include "codegen/lower/gpu.h"
#include "codegen/lower/kernel.h"
#include "codegen/lower/util.h"
#include "ir/map.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

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
  std::vector<const Loop*> fetch;  // of stage 0, in order
  std::vector<const Loop*> rest;   // of the last stage
  int64_t depth = 0;               // iterations that a fetch is ahead
  int64_t extent = 0;
};

// Nothing if the loop's annotations do not describe fetches that run ahead of everything else: an
// annotation is a permission, and the loop as it stands is right.
std::optional<Pipeline> read_pipeline(const Loop& loop) {
  Pipeline out;
  out.loop = &loop;
  out.depth = attr_of(loop, kPipelineAttr).value_or(1) - 1;
  const IntImm* extent = loop.extent.as<IntImm>();
  if (out.depth < 1 || extent == nullptr) return std::nullopt;
  out.extent = extent->value;
  // A fetch that is further ahead than the loop is long would never run inside of it, and what is
  // waited for stands there.
  const int64_t last_stage = out.depth;
  out.depth = std::min(out.depth, out.extent - 1);
  if (out.depth < 1) return std::nullopt;
  Stmt body = loop.body;
  while (const Alloc* alloc = body.as<Alloc>()) {
    out.allocs.push_back(alloc->buffer);
    body = alloc->body;
  }
  const Seq* seq = body.as<Seq>();
  if (seq == nullptr) return std::nullopt;
  for (Stmt child : seq->stmts) {
    const Loop* part = child.as<Loop>();
    const std::optional<int64_t> stage =
        part != nullptr ? attr_of(*part, kStageAttr) : std::nullopt;
    if (!stage || (*stage != 0 && *stage != last_stage)) return std::nullopt;
    if (*stage == 0 && !out.rest.empty()) return std::nullopt;
    (*stage == 0 ? out.fetch : out.rest).push_back(part);
  }
  if (out.fetch.empty() || out.rest.empty()) return std::nullopt;
  return out;
}

class Pipelining {
 public:
  explicit Pipelining(const Program& program) : b_(program) {}

  Program run(const Program& program) { return b_.finish(go(program.root())); }

 private:
  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    const Loop* loop = s.as<Loop>();
    const std::optional<Pipeline> pipeline =
        loop != nullptr && attr_of(*loop, kPipelineAttr) ? read_pipeline(*loop) : std::nullopt;
    if (pipeline) return rewrite(*pipeline);
    return map_children(
        b_, s, [&](Stmt child) { return go(child); }, [](Expr e) { return e; });
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
    for (BufferId id : fetched) {
      Buffer buffer = b_.buffer(id);
      std::vector<Expr> shape = {b_.int_imm(p.depth + 1)};
      shape.insert(shape.end(), buffer.shape.begin(), buffer.shape.end());
      buffer.shape = b_.copy(shape);
      b_.set_buffer(buffer);
    }
    return fetched;
  }

  Stmt in_copy(const Pipeline& p, const std::set<BufferId>& fetched, Stmt s) {
    Expr copy = b_.floormod(Expr(p.loop->var), b_.int_imm(p.depth + 1));
    return map_indices(b_, s, fetched, [&](std::span<const Expr> indices) {
      std::vector<Expr> out = {copy};
      out.insert(out.end(), indices.begin(), indices.end());
      return out;
    });
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
    Expr exists = b_.lt(at, b_.int_imm(p.extent));
    std::vector<Stmt> out;
    for (std::size_t i = 0; i < p.fetch.size(); ++i) {
      std::vector<Attr> attrs = all;
      if (i == 0) attrs.insert(attrs.end(), first.begin(), first.end());
      if (i + 1 == p.fetch.size()) attrs.push_back({kCommitAttr, 1});
      Stmt s = with_attrs(*p.fetch[i], attrs);
      s = substitute(b_, in_copy(p, fetched, s), {{p.loop->var->id, at}});
      out.push_back(clone_with_fresh_ids(b_, guard_phases(b_, exists, s)));
    }
    return b_.seq(out);
  }

  Stmt rewrite(const Pipeline& p) {
    const std::set<BufferId> fetched = add_copies(p);
    Loop prologue{};
    prologue.id = b_.fresh_loop_id();
    prologue.var = b_.fresh_var("p");
    prologue.extent = b_.int_imm(p.depth);
    prologue.loop_kind = LoopKind::kUnrolled;
    prologue.body = fetch(p, fetched, Expr(prologue.var), {}, {{kAsyncAttr, 1}});
    Expr later = b_.add(Expr(p.loop->var), b_.int_imm(p.depth));
    std::vector<Stmt> body = {fetch(p, fetched, later, {{kWaitAttr, p.depth - 1}, {kSyncAttr, 1}},
                                    {{kAsyncAttr, 1}, {kAheadAttr, 1}})};
    for (const Loop* loop : p.rest) body.push_back(in_copy(p, fetched, go(Stmt(loop))));
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
};

}  // namespace

Result<Program> lower_pipelines(const Program& program, const Target&) {
  return Pipelining(program).run(program);
}

}  // namespace prunerc::codegen

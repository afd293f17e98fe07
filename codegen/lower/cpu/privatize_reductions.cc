// Sums over a vectorized inner and a serial outer loop get one accumulator per lane.
// Before: lanes accumulate into one element. After: into vectors of their own, as many as hide the
// latency of an addition; they are added up once, behind the loops.
//     for ko in 8 { for ki in 16 vectorized { C[i] = C[i] + A[ko*16 + ki] } }
// ~>  alloc C_lanes { for w in 4 unrolled { for ki in 16 vectorized { C_lanes[w, ki] = -0f32 } }
//       for ko in 2 { for w in 4 unrolled { for ki in 16 vectorized {
//         C_lanes[w, ki] = C_lanes[w, ki] + A[(ko*4 + w)*16 + ki] } } }
//       ..  for ki in 16 vectorized { C[i] = C[i] + C_lanes[0, ki] } }
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/analysis/vectorization.h"
#include "codegen/lower/passes.h"
#include "ir/analysis/accumulator.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

/// Elements accumulated side by side; more copies of the vector would not stay in registers.
constexpr int64_t kMaxCopies = 16;
/// Independent accumulators that hide the latency of an addition.
constexpr int64_t kLatencyCopies = 4;

// A perfect nest of loops, the outermost serial and the innermost vectorized, around one
// accumulation.
struct Nest {
  std::vector<const Loop*> loops;
  const If* guard = nullptr;
  const Store* store = nullptr;
};

bool find_nest(Stmt s, Nest* nest) {
  while (const Loop* loop = s.as<Loop>()) {
    const bool is_serial_or_tile = loop->loop_kind == LoopKind::kSerial || is_tile_loop(*loop);
    if (!is_serial_or_tile || loop->extent.as<IntImm>() == nullptr) return false;
    nest->loops.push_back(loop);
    s = loop->body;
  }
  if (const If* branch = s.as<If>(); branch != nullptr && !branch->else_body.defined()) {
    nest->guard = branch;
    s = branch->then_body;
  }
  nest->store = s.as<Store>();
  return nest->store != nullptr;
}

class Privatization {
 public:
  explicit Privatization(const Program& program) : b_(program) {}

  Program run(const Program& program) { return b_.finish(go(program.root())); }

 private:
  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    if (const Loop* loop = s.as<Loop>(); loop != nullptr && loop->loop_kind == LoopKind::kSerial) {
      Nest nest;
      if (find_nest(s, &nest)) {
        Stmt r = privatize(nest);
        if (r.defined()) return r;
      }
    }
    return map_stmts(b_, s, [&](Stmt child) { return go(child); });
  }

  // -0 + x is x for every x, -0 included.
  Expr identity(ExprKind kind, DType t) {
    return kind == ExprKind::kAdd && is_float(t) ? b_.float_imm(-0.0, t) : identity_of(b_, kind, t);
  }

  // One loop of the new nests: a fresh variable over the extent of `like`.
  struct NewLoop {
    const Var* var;
    int64_t extent;
    LoopKind kind;
  };
  Stmt wrap(const std::vector<NewLoop>& loops, Stmt body) {
    for (std::size_t i = loops.size(); i-- > 0;) {
      Loop loop;
      loop.id = b_.fresh_loop_id();
      loop.var = loops[i].var;
      loop.extent = b_.int_imm(loops[i].extent);
      loop.loop_kind = loops[i].kind;
      loop.body = body;
      body = b_.loop(loop);
    }
    return body;
  }

  Stmt privatize(const Nest& nest) {
    const Store& store = *nest.store;
    const std::optional<Accumulation> acc = accumulation(store);
    const Loop* const lanes = nest.loops.back();
    const Loop* const outer = nest.loops.front();
    if (!acc || nest.loops.size() < 2 || lanes->loop_kind != LoopKind::kVectorized) return {};
    if (mentions(store.indices, lanes->var->id) || mentions(store.indices, outer->var->id))
      return {};
    // The element's index may move with loops inside: those give copies.
    std::vector<const Loop*> spatial;
    int64_t copies = 1;
    for (const Loop* loop : nest.loops) {
      if (!mentions(store.indices, loop->var->id)) continue;
      spatial.push_back(loop);
      copies *= constant_or(loop->extent, 1);
      if (copies > kMaxCopies) return {};
    }
    for (Expr index : store.indices) {
      if (has_load(index)) return {};
    }
    Expr guard;
    if (!element_guard(nest, spatial, &guard)) return {};
    return build(nest, *acc, spatial, copies, guard);
  }

  // The part of the guard that decides whether the element exists at all (null: nothing does): the
  // element is only touched under it. False if that part cannot be told from the rest.
  bool element_guard(const Nest& nest, const std::vector<const Loop*>& spatial, Expr* guard) {
    if (nest.guard == nullptr) return true;
    std::set<VarId> element_vars;
    for (Expr index : nest.store->indices) collect_vars(index, &element_vars);
    for (Expr condition : conjuncts(nest.guard->condition)) {
      if (has_load(condition) || may_trap(condition)) return false;
      std::set<VarId> vars;
      collect_vars(condition, &vars);
      const bool on_element = std::any_of(vars.begin(), vars.end(),
                                          [&](VarId id) { return element_vars.count(id) > 0; });
      const bool on_reduction =
          std::any_of(nest.loops.begin(), nest.loops.end(), [&](const Loop* loop) {
            return vars.count(loop->var->id) > 0 &&
                   std::find(spatial.begin(), spatial.end(), loop) == spatial.end();
          });
      if (on_reduction && on_element) return false;
      if (on_reduction) continue;
      *guard = conjunction(b_, *guard, condition);
    }
    return true;
  }

  Stmt build(const Nest& nest, const Accumulation& acc, const std::vector<const Loop*>& spatial,
             int64_t copies, Expr guard) {
    const Store& store = *nest.store;
    const Loop& lanes = *nest.loops.back();
    const Loop& outer = *nest.loops.front();
    const DType t = store.value.dtype();
    const int64_t width = constant_or(lanes.extent, 1);
    const int64_t trips = constant_or(outer.extent, 1);
    int64_t ways = 1;
    while (copies * ways < kLatencyCopies && trips % (ways * 2) == 0 && trips > ways * 2) ways *= 2;

    std::vector<Expr> shape = {b_.int_imm(ways)};
    for (const Loop* loop : spatial) shape.push_back(loop->extent);
    shape.push_back(b_.int_imm(width));
    const std::string name = std::string(b_.buffer(store.buffer).name) + "_lanes";
    const BufferId partial =
        b_.add_buffer(name, t, shape, Scope::kLocal, BufferRole::kIntermediate);

    // The same index tuple over the variables of each nest: [way, spatial..., lane].
    auto indices = [&](Expr way, const std::vector<NewLoop>& vars, Expr lane) {
      std::vector<Expr> r = {way};
      for (const NewLoop& v : vars) r.push_back(Expr(v.var));
      r.push_back(lane);
      return r;
    };
    auto fresh = [&](const Loop& like, LoopKind kind) {
      return NewLoop{b_.fresh_var(like.var->name), constant_or(like.extent, 1), kind};
    };
    auto fresh_spatial = [&] {
      std::vector<NewLoop> r;
      for (const Loop* loop : spatial) r.push_back(fresh(*loop, LoopKind::kUnrolled));
      return r;
    };
    auto with = [](std::vector<NewLoop> loops, std::initializer_list<NewLoop> more) {
      loops.insert(loops.end(), more);
      return loops;
    };

    // 1. every lane starts with the identity
    std::vector<NewLoop> s1 = fresh_spatial();
    const NewLoop w1{b_.fresh_var("way"), ways, LoopKind::kUnrolled};
    const NewLoop l1 = fresh(lanes, LoopKind::kVectorized);
    Stmt start = b_.store(partial, indices(Expr(w1.var), s1, Expr(l1.var)), identity(acc.kind, t));
    start = wrap(with(s1, {w1, l1}), start);

    // 2. the loops themselves, the outermost split by the number of ways
    std::vector<Expr> at = {b_.int_imm(0)};
    const NewLoop way{b_.fresh_var("way"), ways, LoopKind::kUnrolled};
    if (ways > 1) at[0] = Expr(way.var);
    for (const Loop* loop : spatial) at.push_back(Expr(loop->var));
    at.push_back(Expr(lanes.var));
    Stmt inner = b_.store(partial, at, b_.binary(acc.kind, b_.load(partial, at), acc.term));
    if (nest.guard != nullptr) inner = b_.if_then(nest.guard->condition, inner);
    for (std::size_t i = nest.loops.size(); i-- > 1;) {
      Loop loop = *nest.loops[i];
      loop.body = inner;
      inner = b_.loop(loop);
    }
    Loop main = outer;
    if (ways > 1) {
      const Var* step = b_.fresh_var(outer.var->name);
      const Expr value = b_.add(b_.mul(Expr(step), b_.int_imm(ways)), Expr(way.var));
      inner = substitute(b_, inner, VarMap{{outer.var->id, value}});
      inner = wrap({way}, inner);
      main.var = step;
      main.extent = b_.int_imm(trips / ways);
    }
    main.body = inner;

    // 3. the ways into the first one, then its lanes into the element
    std::vector<Stmt> all = {start, b_.loop(main)};
    if (ways > 1) {
      std::vector<NewLoop> s3 = fresh_spatial();
      const NewLoop w3{b_.fresh_var("way"), ways - 1, LoopKind::kUnrolled};
      const NewLoop l3 = fresh(lanes, LoopKind::kVectorized);
      const std::vector<Expr> first = indices(b_.int_imm(0), s3, Expr(l3.var));
      const std::vector<Expr> next = indices(b_.add(Expr(w3.var), b_.int_imm(1)), s3, Expr(l3.var));
      Stmt join = b_.store(partial, first,
                           b_.binary(acc.kind, b_.load(partial, first), b_.load(partial, next)));
      all.push_back(wrap(with(s3, {w3, l3}), join));
    }
    std::vector<NewLoop> s4 = fresh_spatial();
    const NewLoop l4 = fresh(lanes, LoopKind::kVectorized);
    VarMap renamed;
    for (std::size_t i = 0; i < spatial.size(); ++i) renamed[spatial[i]->var->id] = Expr(s4[i].var);
    std::vector<Expr> element;
    for (Expr index : store.indices) element.push_back(substitute(b_, index, renamed));
    Stmt last = b_.store(store.buffer, element,
                         b_.binary(acc.kind, b_.load(store.buffer, element),
                                   b_.load(partial, indices(b_.int_imm(0), s4, Expr(l4.var)))));
    last = wrap({l4}, last);
    if (guard.defined()) last = b_.if_then(substitute(b_, guard, renamed), last);
    all.push_back(wrap(s4, last));
    return b_.alloc(partial, b_.seq(all));
  }

  IrBuilder b_;
};

}  // namespace

Result<Program> privatize_reductions(const Program& program, const Target&) {
  return Privatization(program).run(program);
}

}  // namespace prunerc::codegen

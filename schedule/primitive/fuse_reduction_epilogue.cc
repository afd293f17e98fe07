// fuse_reduction_epilogue(@R, @E): terms that an epilogue adds to a result become its start.
// Needs: @R accumulates an intermediate T by a known reducer; @E alone reads T, is elementwise over
// all of it, joins T once with terms free of T by the reducer's operation (DESIGN.md, D18); no two
// concurrent iterations make one element. After: a term comes first; floats may round otherwise.
//   block @R [v: S(4) = i, r: R(8) = k] { init { T[v] = 0f32 } T[v] = T[v] + X[v, r] }
//   block @E [v: S(4) = j] { Y[v] = T[v] + Z[v] }
// ~>
//   block @R [v: S(4) = i, r: R(8) = k] { init { Y[v] = Z[v] } Y[v] = Y[v] + X[v, r] }
#include "ir/analysis/region.h"
#include "ir/visit.h"
#include "schedule/legality/concurrency.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/elementwise.h"
#include "schedule/legality/instance_order.h"
#include "schedule/primitive.h"

#include <algorithm>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct EpiloguePlan {
  Site reduction, epilogue;
  std::optional<Reducer> reducer;
  std::vector<Expr> terms;
  /// For each variable of E the variable of R; null for one of a single value.
  std::vector<const Var*> reduction_vars;
};

class EpiloguePlanner {
 public:
  explicit EpiloguePlanner(const Program& program) : program_(program), flow_(program) {}
  Result<EpiloguePlan> plan(BlockId reduction, BlockId epilogue);

 private:
  const Block& r() const { return *flow_[r_].block; }
  const Block& e() const { return *flow_[e_].block; }
  Error unfit(const char* what) const {
    return error(Diag::kEpilogueForm, e().id, r().id, std::string(what));
  }
  Result<void> check_reduction();
  Result<void> check_epilogue();
  Result<void> match_terms();
  Result<void> match_vars();
  Result<void> check_sources();
  void collect_terms(Expr value);

  const Program& program_;
  Dataflow flow_;
  std::size_t r_ = 0, e_ = 0;
  BufferId result_;
  EpiloguePlan plan_;
};

Result<void> EpiloguePlanner::check_reduction() {
  if (!r().init.defined()) return error(Diag::kBlockNoInit, r().id);
  plan_.reducer = match_reducer(r());
  const Store* init = r().init.as<Store>();
  if (!plan_.reducer || init == nullptr) return error(Diag::kReducerUnknown, r().id);
  result_ = plan_.reducer->store->buffer;
  const Buffer& buffer = program_.buffer(result_);
  if (buffer.role != BufferRole::kIntermediate) {
    return error(Diag::kBufferNotIntermediate, std::string(buffer.name));
  }
  return check_sole_writer(flow_, r_);
}

Result<void> EpiloguePlanner::check_epilogue() {
  if (e_ < r_ || !reads(e(), result_)) return unfit("read its result");
  if (flow_.readers(result_).size() > (reads(r(), result_) ? 2u : 1u)) {
    return unfit("be the only reader of its result");
  }
  PRUNERC_TRY_VOID(check_pure_store(flow_, e_));
  IrBuilder b(program_);
  PRUNERC_TRY_VOID(check_sources_final(b, flow_, e_));
  return check_movable(b, flow_, e_);
}

void EpiloguePlanner::collect_terms(Expr value) {
  const BinaryNode* node = as_binary(value);
  if (node == nullptr || value.kind() != plan_.reducer->op) {
    plan_.terms.push_back(value);
    return;
  }
  collect_terms(node->lhs);
  collect_terms(node->rhs);
}

Result<void> EpiloguePlanner::match_terms() {
  collect_terms(e().body.as<Store>()->value);
  auto reads_result = [&](Expr term) {
    bool found = false;
    walk(term, [&](Expr part) {
      const Load* load = part.as<Load>();
      found |= load != nullptr && load->buffer == result_;
      return !found;
    });
    return found;
  };
  std::vector<Expr> free;
  for (Expr term : plan_.terms) {
    if (!reads_result(term)) free.push_back(term);
    if (reads_result(term) && term.as<Load>() == nullptr) {
      return unfit("join its result to other terms by the operation of the reduction");
    }
  }
  if (free.size() + 1 != plan_.terms.size()) return unfit("use its result once");
  plan_.terms = std::move(free);
  return {};
}

Result<void> EpiloguePlanner::match_vars() {
  const Store& sink = *e().body.as<Store>();
  if (!variable_subscripts(e(), sink.indices)) return unfit("write at distinct variables");
  PRUNERC_TRY(const std::vector<int> mine, load_subscripts(e(), result_));
  const std::span<const Expr> stored = plan_.reducer->store->indices;
  plan_.reduction_vars.assign(e().iters.size(), nullptr);
  std::vector<VarId> used;
  for (std::size_t d = 0; d < stored.size(); ++d) {
    const Var* var = stored[d].as<Var>();
    const auto iter = std::find_if(r().iters.begin(), r().iters.end(), [&](const IterVar& it) {
      return var != nullptr && it.var->id == var->id && it.kind == IterKind::kSpatial;
    });
    const bool is_new =
        var == nullptr || std::find(used.begin(), used.end(), var->id) == used.end();
    const bool known = iter != r().iters.end() || constant(stored[d]) == 0;
    const std::optional<int64_t> made =
        iter == r().iters.end() ? std::optional<int64_t>(1) : constant(iter->extent);
    const std::optional<int64_t> wanted =
        mine[d] < 0 ? std::optional<int64_t>(1)
                    : constant(e().iters[static_cast<std::size_t>(mine[d])].extent);
    if (!known || !is_new || !made || made != wanted) return unfit("use all of its result");
    if (var != nullptr) used.push_back(var->id);
    if (mine[d] >= 0) plan_.reduction_vars[static_cast<std::size_t>(mine[d])] = var;
  }
  for (const IterVar& iter : r().iters) {
    const bool is_used = std::find(used.begin(), used.end(), iter.var->id) != used.end();
    if (iter.kind == IterKind::kSpatial && !is_used && constant(iter.extent) != 1) {
      return unfit("use all of its result");
    }
  }
  return {};
}

Result<void> EpiloguePlanner::check_sources() {
  for (const Access& access : e().reads) {
    if (access.buffer == result_) continue;
    for (const std::size_t source : flow_.writers(access.buffer)) {
      if (source >= r_ || shared_loops(flow_[source].loops, flow_[r_].loops) > 0) {
        return error(Diag::kBlockProducerLate, r().id, flow_[source].block->id);
      }
    }
  }
  for (const std::size_t reader : flow_.readers(e().body.as<Store>()->buffer)) {
    if (reader < e_) return error(Diag::kBlockProducerLate, flow_[reader].block->id, e().id);
  }
  return {};
}

Result<EpiloguePlan> EpiloguePlanner::plan(BlockId reduction, BlockId epilogue) {
  PRUNERC_TRY(r_, flow_.find(reduction));
  PRUNERC_TRY(e_, flow_.find(epilogue));
  PRUNERC_TRY(plan_.reduction, find_block(program_, reduction));
  PRUNERC_TRY(plan_.epilogue, find_block(program_, epilogue));
  PRUNERC_TRY_VOID(check_reduction());
  PRUNERC_TRY_VOID(check_epilogue());
  PRUNERC_TRY_VOID(match_terms());
  PRUNERC_TRY_VOID(match_vars());
  PRUNERC_TRY_VOID(check_sources());
  return std::move(plan_);
}

Applied apply_epilogue(const Program& program, const EpiloguePlan& plan) {
  IrBuilder b(program);
  const Block& epilogue = *plan.epilogue.block();
  const Store& sink = *epilogue.body.as<Store>();
  VarMap map;
  for (std::size_t i = 0; i < epilogue.iters.size(); ++i) {
    const Var* var = plan.reduction_vars[i];
    map[epilogue.iters[i].var->id] = var == nullptr ? b.int_imm(0) : Expr(var);
  }
  std::vector<Expr> indices;
  for (Expr index : sink.indices) indices.push_back(substitute(b, index, map));
  const Reducer& reducer = *plan.reducer;
  Block block = *plan.reduction.block();
  Expr start = block.init.as<Store>()->value;
  for (std::size_t i = 0; i < plan.terms.size(); ++i) {
    const Expr term = substitute(b, plan.terms[i], map);
    start = i == 0 && is_identity(reducer.op, start) ? term : b.binary(reducer.op, start, term);
  }
  block.init = b.store(sink.buffer, indices, start);
  block.body = b.store(sink.buffer, indices,
                       b.binary(reducer.op, b.load(sink.buffer, indices), reducer.update));
  rebuild_accesses(b, block);
  StmtFn rewrite = [&](Stmt s) -> Stmt {
    const Block* at = s.as<Block>();
    if (at == nullptr) return map_children(b, s, rewrite, [](Expr e) { return e; });
    return at->id == block.id ? b.block(block) : s;
  };
  return {b.finish(rewrite(replace_at(b, plan.epilogue, {}))), {}, {}};
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kFuseReductionEpilogue>(const Program& program,
                                                           const Call& call) {
  PRUNERC_TRY(const EpiloguePlan plan, EpiloguePlanner(program).plan(call.block(0), call.block(1)));
  Applied out = apply_epilogue(program, plan);
  // What was each iteration's own is now the epilogue's target.
  PRUNERC_TRY_VOID(recheck_concurrent_around(out.program, plan.reduction));
  return out;
}

}  // namespace prunerc::schedule

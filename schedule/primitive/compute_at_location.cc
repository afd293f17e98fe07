// compute_at_location(@P, code): the place that sample_compute_location chose.
// Needs: the code is one of compute_locations: -2 is compute_inline(@P), -1 leaves @P where it is,
// k is compute_at(@P, the k-th loop around the first consumer). After: as that primitive leaves it.
//   for i in 8 { block @P [v: S(8) = i] { T[v] = X[v] } }
//   for j in 8 { block @C [v: S(8) = j] { Y[v] = T[v] } }
// ~> compute_at_location(@P, 0)
//   for j in 8 { for ax0 in 1 { block @P [v: S(8) = j] { T[v] = X[v] } }
//                block @C [v: S(8) = j] { Y[v] = T[v] } }
#include "schedule/legality/dataflow.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/site.h"

#include <string>
#include <vector>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

constexpr int64_t kInline = -2;
constexpr int64_t kStay = -1;

// Loops around the first reader of what the block writes.
std::vector<const Loop*> consumer_loops(const Dataflow& flow, BlockId id) {
  for (std::size_t place = 0; place < flow.blocks().size(); ++place) {
    if (flow[place].block->id != id) continue;
    for (std::size_t reader = place + 1; reader < flow.blocks().size(); ++reader) {
      for (const Access& write : flow[place].block->writes) {
        if (reads(*flow[reader].block, write.buffer)) return flow[reader].loops;
      }
    }
  }
  return {};
}

Result<Applied> compute_at(const Program& program, BlockId block, LoopId loop) {
  const std::vector<Operand> operands = {block, loop};
  return run<PrimitiveKind::kComputeAt>(program, Call{operands});
}

Result<Applied> inlined(const Program& program, BlockId block) {
  const std::vector<Operand> operands = {block};
  return run<PrimitiveKind::kComputeInline>(program, Call{operands});
}

}  // namespace

std::vector<int64_t> compute_locations(const Program& program, BlockId block) {
  std::vector<int64_t> out;
  if (inlined(program, block).ok()) out.push_back(kInline);
  out.push_back(kStay);
  const Dataflow flow(program);
  const std::vector<const Loop*> loops = consumer_loops(flow, block);
  for (std::size_t k = 0; k < loops.size(); ++k) {
    // A loop of one iteration is the same place as the one outside it.
    if (constant(loops[k]->extent) == 1) continue;
    if (compute_at(program, block, loops[k]->id).ok()) out.push_back(static_cast<int64_t>(k));
  }
  return out;
}

template <>
Result<Applied> run<PrimitiveKind::kComputeAtLocation>(const Program& program, const Call& call) {
  const int64_t code = call.integer(1);
  PRUNERC_TRY_VOID(find_block(program, call.block(0)));
  if (code == kStay) return Applied{program, {}, {}};
  Applied out;
  if (code == kInline) {
    PRUNERC_TRY(out, inlined(program, call.block(0)));
    return out;
  }
  const Dataflow flow(program);
  const std::vector<const Loop*> loops = consumer_loops(flow, call.block(0));
  if (code < 0 || code >= static_cast<int64_t>(loops.size())) {
    return error(Diag::kDecisionMismatch, std::to_string(code), std::string("compute_at_location"));
  }
  PRUNERC_TRY(out, compute_at(program, call.block(0), loops[static_cast<std::size_t>(code)]->id));
  // Which loops are new depends on the code, so nobody may refer to them.
  out.outputs.clear();
  return out;
}

}  // namespace prunerc::schedule

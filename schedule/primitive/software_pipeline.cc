// software_pipeline(@L, [0, 1], [0, 1]): statement c of iteration k may run in step k + stage(c).
// Needs: @L serial; one stage and place per statement; of two of which one writes what the other
// touches, the writer stays first, and if the buffer outlives an iteration their stages are equal.
// After: within an iteration writes still precede reads; equal stages keep their order.
//   for k in 4 @L { for i in 8 { block @P .. } for i in 8 { block @C .. } }
// ~>
//   for k in 4 {software_pipeline = 2} { for i in 8 {pipeline_stage = 0, pipeline_order = 0} ..
//                                        for i in 8 {pipeline_stage = 1, pipeline_order = 1} .. }
#include "schedule/legality/dataflow.h"
#include "schedule/legality/loop_dependence.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/attributes.h"

#include <algorithm>
#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

/// Deeper pipelines have no use; each stage costs a copy of what passes through.
constexpr int64_t kMaxStage = 15;

struct PipelineArgs {
  LoopId loop;
  std::vector<int64_t> stages, orders;
};

struct PipelinePlan {
  Site site;
  PipelineArgs args;
};

Error shape(const PipelineArgs& args, const std::string& wanted, int64_t found) {
  return error(Diag::kPipelineShape, args.loop, wanted, found);
}

Result<void> check_shape(const PipelineArgs& args, const std::vector<Stmt>& children) {
  const std::size_t n = children.size();
  for (const std::vector<int64_t>* list : {&args.stages, &args.orders}) {
    if (list->size() == n) continue;
    return shape(args, "one number for each of " + std::to_string(n) + " statements",
                 static_cast<int64_t>(list->size()));
  }
  for (const int64_t stage : args.stages) {
    if (stage < 0 || stage > kMaxStage) {
      return shape(args, "stages from 0 to " + std::to_string(kMaxStage), stage);
    }
  }
  std::vector<bool> seen(n, false);
  for (const int64_t place : args.orders) {
    if (place < 0 || place >= static_cast<int64_t>(n) || seen[static_cast<std::size_t>(place)]) {
      return error(Diag::kPermutationInvalid, static_cast<int64_t>(n), place);
    }
    seen[static_cast<std::size_t>(place)] = true;
  }
  return {};
}

// Do statements `x` and `y` of the body, in this order of the program, keep what they owe each
// other through the accesses of two of their blocks?
Result<void> check_pair(const Program& program, const Site& site, const PipelineArgs& args,
                        std::size_t x, std::size_t y, const Block& from, const Block& to) {
  const bool same_stage = args.stages[x] == args.stages[y];
  const bool later =
      args.stages[x] < args.stages[y] || (same_stage && args.orders[x] < args.orders[y]);
  auto check = [&](BufferId buffer) -> Result<void> {
    IrBuilder b(program);
    const bool own = lives_in_iteration(b, program, site, buffer);
    if (later && (own || same_stage)) return {};
    return error(Diag::kPipelineOrder, to.id, from.id);
  };
  for (const Access& write : from.writes) {
    if (reads(to, write.buffer) || writes(to, write.buffer)) {
      PRUNERC_TRY_VOID(check(write.buffer));
    }
  }
  for (const Access& write : to.writes) {
    if (reads(from, write.buffer)) PRUNERC_TRY_VOID(check(write.buffer));
  }
  return {};
}

Result<void> check_pairs(const Program& program, const Site& site, const PipelineArgs& args,
                         const std::vector<Stmt>& children) {
  for (std::size_t x = 0; x < children.size(); ++x) {
    for (std::size_t y = x + 1; y < children.size(); ++y) {
      for (const Block* from : leaf_blocks(children[x])) {
        for (const Block* to : leaf_blocks(children[y])) {
          PRUNERC_TRY_VOID(check_pair(program, site, args, x, y, *from, *to));
        }
      }
    }
  }
  return {};
}

Result<PipelinePlan> plan_pipeline(const Program& program, const PipelineArgs& args) {
  PipelinePlan plan;
  plan.args = args;
  PRUNERC_TRY(plan.site, find_loop(program, args.loop));
  const Loop& loop = *plan.site.loop();
  PRUNERC_TRY_VOID(check_serial(loop));
  PRUNERC_TRY_VOID(check_extent(loop));
  PRUNERC_TRY_VOID(check_holds_blocks(loop));
  const std::vector<Stmt> children = children_of(loop.body);
  PRUNERC_TRY_VOID(check_shape(args, children));
  PRUNERC_TRY_VOID(
      on_instance(program, [&] { return check_pairs(program, plan.site, args, children); }));
  return plan;
}

Applied apply_pipeline(const Program& program, const PipelinePlan& plan) {
  IrBuilder b(program);
  const PipelineArgs& args = plan.args;
  std::vector<Stmt> children = children_of(plan.site.loop()->body);
  for (std::size_t i = 0; i < children.size(); ++i) {
    children[i] = with_attr(b, children[i], kPipelineStage, args.stages[i]);
    children[i] = with_attr(b, children[i], kPipelineOrder, args.orders[i]);
  }
  Loop copy = *plan.site.loop();
  copy.body = b.seq(children);
  const int64_t depth = 1 + *std::max_element(args.stages.begin(), args.stages.end());
  return {b.finish(replace_at(b, plan.site, with_attr(b, b.loop(copy), kPipeline, depth))), {}, {}};
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kSoftwarePipeline>(const Program& program, const Call& call) {
  PRUNERC_TRY(const PipelinePlan plan,
              plan_pipeline(program, {call.loop(0), call.integers(1), call.integers(2)}));
  return apply_pipeline(program, plan);
}

}  // namespace prunerc::schedule

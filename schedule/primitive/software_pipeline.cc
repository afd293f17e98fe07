// software_pipeline(loop, stages, orders):             double_buffer(B, i):
//     for k in N @L { P: T[..] = f(k)                     for k in N @L { B: T[..] = f(k)
//                     C: Y[..] = g(T[..]) }                               C: Y[..] = g(T[..]) }
//   ~>  software_pipeline(@L, [0, 1], [0, 1])           ~>
//     for k in N @L {software_pipeline = 2} {             for k in N @L { B: {double_buffer = i} ..
//       P {pipeline_stage = 0, pipeline_order = 0}                        C: .. }
//       C {pipeline_stage = 1, pipeline_order = 1} }
//
// Annotations that promise what a target's lowering needs: statement c of iteration k may run in
// time step k + stage(c), at place order(c) of it; two copies of a buffer may alternate from one
// iteration to the next. The meaning of the program stays as it is.
//
// Requires, pipeline: the loop is serial; one stage and one place per statement of its body; stages
// from 0 upwards; the order is a permutation. For each two statements of which one writes what the
// other touches: if the buffer lives within one iteration, writer before reader also in the
// pipelined order (each stage gets copies of its own); else equal stages and the order of the
// program. double_buffer: the buffer lives within one iteration of a loop around B.
// Legal because: within a buffer's iteration the order of writes and reads stays; other buffers are
// touched in the old order altogether, as equal stages do not overtake each other.
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

class PipelinePlan {
 public:
  const Site& site() const { return site_; }
  const PipelineArgs& args() const { return args_; }

 private:
  friend Result<PipelinePlan> plan_pipeline(const Program&, const PipelineArgs&);
  Site site_;
  PipelineArgs args_;
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
  plan.args_ = args;
  PRUNERC_TRY(plan.site_, find_loop(program, args.loop));
  const Loop& loop = *plan.site_.loop();
  PRUNERC_TRY_VOID(check_plain(loop));
  PRUNERC_TRY_VOID(check_extent(loop));
  PRUNERC_TRY_VOID(check_holds_blocks(loop));
  const std::vector<Stmt> children = children_of(loop.body);
  PRUNERC_TRY_VOID(check_shape(args, children));
  PRUNERC_TRY_VOID(
      on_instance(program, [&] { return check_pairs(program, plan.site_, args, children); }));
  return plan;
}

Applied apply_pipeline(const Program& program, const PipelinePlan& plan) {
  IrBuilder b(program);
  const PipelineArgs& args = plan.args();
  std::vector<Stmt> children = children_of(plan.site().loop()->body);
  for (std::size_t i = 0; i < children.size(); ++i) {
    children[i] = with_attr(b, children[i], kPipelineStage, args.stages[i]);
    children[i] = with_attr(b, children[i], kPipelineOrder, args.orders[i]);
  }
  Loop copy = *plan.site().loop();
  copy.body = b.seq(children);
  const int64_t depth = 1 + *std::max_element(args.stages.begin(), args.stages.end());
  Applied out;
  out.program = b.finish(replace_at(b, plan.site(), with_attr(b, b.loop(copy), kPipeline, depth)));
  return out;
}

class DoubleBufferPlan {
 public:
  const Site& site() const { return site_; }
  int64_t index() const { return index_; }

 private:
  friend Result<DoubleBufferPlan> plan_double_buffer(const Program&, BlockId, int64_t);
  Site site_;
  int64_t index_ = 0;
};

Result<DoubleBufferPlan> plan_double_buffer(const Program& program, BlockId id, int64_t index) {
  DoubleBufferPlan plan;
  plan.index_ = index;
  PRUNERC_TRY(plan.site_, find_block(program, id));
  const std::span<const Access> writes = plan.site_.block()->writes;
  if (index < 0 || index >= static_cast<int64_t>(writes.size())) {
    return error(Diag::kAccessIndexRange, id, static_cast<int64_t>(writes.size()), index);
  }
  const BufferId buffer = writes[static_cast<std::size_t>(index)].buffer;
  if (is_open(program)) return plan;
  if (program.buffer(buffer).role != BufferRole::kIntermediate) {
    return error(Diag::kBufferNotIntermediate, std::string(program.buffer(buffer).name));
  }
  IrBuilder b(program);
  for (const Loop* loop : plan.site_.outer_loops()) {
    const Site site = find_loop_in(program.root(), loop->id);
    if (check_holds_blocks(*loop).ok() && lives_in_iteration(b, program, site, buffer)) {
      return plan;
    }
  }
  return error(Diag::kBlockNotSimple, id,
               std::string("write a buffer that lives within an iteration of a loop around"));
}

Applied apply_double_buffer(const Program& program, const DoubleBufferPlan& plan) {
  IrBuilder b(program);
  Applied out;
  out.program = b.finish(replace_at(
      b, plan.site(), with_attr(b, plan.site().path.back(), kDoubleBuffer, plan.index())));
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kSoftwarePipeline>(const Program& program, const Call& call) {
  PRUNERC_TRY(const PipelinePlan plan,
              plan_pipeline(program, {call.loop(0), call.integers(1), call.integers(2)}));
  return apply_pipeline(program, plan);
}

template <>
Result<Applied> run<PrimitiveKind::kDoubleBuffer>(const Program& program, const Call& call) {
  PRUNERC_TRY(const DoubleBufferPlan plan,
              plan_double_buffer(program, call.block(0), call.integer(1)));
  return apply_double_buffer(program, plan);
}

}  // namespace prunerc::schedule

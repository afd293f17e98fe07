#include "search/space/space.h"

#include "costmodel/latency/roofline.h"
#include "ir/equal.h"
#include "ir/visit.h"
#include "schedule/legality/gpu_limits.h"
#include "schedule/schedule.h"
#include "search/space/members.h"
#include "search/space/sketch_rule/chain.h"
#include "search/space/sketch_rule/gpu/gpu.h"
#include "search/space/sketch_rule/group.h"
#include "search/space/sketch_rule/rule.h"

#include <limits>

namespace prunerc::search {
namespace {

using ir::BlockId;

/// Structures in the order in which they are tried.
std::vector<Variant> variants() {
  std::vector<Variant> out;
  auto add = [&](const char* name, auto&& change) {
    Variant v;
    v.name = name;
    change(v);
    out.push_back(std::move(v));
  };
  add("base", [](Variant&) {});
  add("pack", [](Variant& v) { v.pack = true; });
  add("rotate", [](Variant& v) { v.rotate_reduction = true; });
  add("pack+rotate", [](Variant& v) { v.pack = true, v.rotate_reduction = true; });
  add("block", [](Variant& v) { v.block_reduction = true; });
  add("pack+block", [](Variant& v) { v.pack = true, v.block_reduction = true; });
  add("compute_at", [](Variant& v) { v.compute_at_reader = true; });
  add("compute_at+rotate",
      [](Variant& v) { v.compute_at_reader = true, v.rotate_reduction = true; });
  add("transpose", [](Variant& v) { v.transpose_operand = true; });
  add("transposition", [](Variant& v) { v.transposition = true; });
  // Maps are text in a trace, so that a size of blocks is a sketch and no decision.
  add("prepack", [](Variant& v) { v.prepack_vectors = 1; });
  add("prepack2", [](Variant& v) { v.prepack_vectors = 2; });
  add("prepack4", [](Variant& v) { v.prepack_vectors = 4; });
  add("prepack+block", [](Variant& v) { v.prepack_vectors = 1, v.block_reduction = true; });
  add("prepack2+block", [](Variant& v) { v.prepack_vectors = 2, v.block_reduction = true; });
  add("fused", [](Variant& v) { v.fuse_axes = true; });
  add("fused+pack", [](Variant& v) { v.fuse_axes = true, v.pack = true; });
  add("fused+block", [](Variant& v) { v.fuse_axes = true, v.block_reduction = true; });
  add("fused+prepack", [](Variant& v) { v.fuse_axes = true, v.prepack_vectors = 1; });
  add("fused+prepack2", [](Variant& v) { v.fuse_axes = true, v.prepack_vectors = 2; });
  add("fused+prepack4", [](Variant& v) { v.fuse_axes = true, v.prepack_vectors = 4; });
  add("fused+prepack2+block",
      [](Variant& v) { v.fuse_axes = true, v.prepack_vectors = 2, v.block_reduction = true; });
  add("narrow", [](Variant& v) { v.narrow = true; });
  add("narrow+block", [](Variant& v) { v.narrow = true, v.block_reduction = true; });
  add("amx", [](Variant& v) { v.narrow = v.amx = true; });
  add("amx+block", [](Variant& v) { v.narrow = v.amx = v.block_reduction = true; });
  add("chain", [](Variant& v) { v.chain = true, v.transpose_operand = true; });
  add("stages", [](Variant& v) { v.inline_stages = false; });
  add("split", [](Variant& v) { v.fuse_rows = false; });
  add("no rfactor", [](Variant& v) { v.rfactor = false; });
  add("one row", [](Variant& v) { v.unit_rows = true; });
  add("prepack+one row", [](Variant& v) { v.prepack_vectors = 1, v.unit_rows = true; });
  add("prepack2+one row", [](Variant& v) { v.prepack_vectors = 2, v.unit_rows = true; });
  add("prepack4+one row", [](Variant& v) { v.prepack_vectors = 4, v.unit_rows = true; });
  add("transpose+one row", [](Variant& v) { v.transpose_operand = true, v.unit_rows = true; });
  return out;
}

// Does the variant ask for anything that this program has no use for? Then its sketch would be a
// copy of another one.
Result<void> apply_variant(SketchContext& context, const Variant& variant) {
  inline_stages(context, variant);
  split_phases(context);
  // The axes of a chain are those that its blocks have in common.
  if (!variant.chain) recover_axes(context);
  bool tiled = variant.chain;
  const bool wants_tile = variant.pack || variant.rotate_reduction || variant.compute_at_reader ||
                          variant.block_reduction || variant.transpose_operand ||
                          variant.transposition;
  std::vector<BlockId> scans;
  for (const BlockId id : context.schedule.blocks()) {
    if (schedule_scan(context, id).ok()) scans.push_back(id);
  }
  if (!variant.chain && !variant.compute_at_reader) fuse_axes(context, variant.fuse_axes);
  std::vector<Group> groups = group_blocks(context.schedule, scans);
  if (variant.chain) PRUNERC_TRY_VOID(schedule_chain(context, variant, &groups));
  if (variant.compute_at_reader) leave_stages_to_readers(context.schedule, &groups);
  for (const Group& group : groups) {
    if (group.contracts() && tile_group(context, group, variant)) {
      tiled = tiled || group.tiled || variant.transpose_operand;
      continue;
    }
    if (variant.transposition && group.blocks.size() == 1 &&
        tile_transposition(context, group.blocks[0]).ok()) {
      tiled = true;
      continue;
    }
    // A block that nothing can be done with stays as it is.
    static_cast<void>(schedule_rows(context, group.blocks, variant).ok());
  }
  if (wants_tile && !tiled) {
    return error(Diag::kUnsupported, std::string("this structure for this program"));
  }
  return {};
}

int64_t saturating_multiply(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<int64_t>::max() : out;
}

}  // namespace

Sketch make_sketch(std::string name, schedule::Trace trace) {
  Sketch sketch;
  sketch.name = std::move(name);
  for (int i = 0; i < trace.num_decisions(); ++i) sketch.spaces.push_back(trace.decision_space(i));
  sketch.trace = std::move(trace);
  return sketch;
}

int64_t SearchSpace::size() const {
  if (members != nullptr) return members->size();
  int64_t total = 0;
  for (const Sketch& sketch : sketches) {
    int64_t count = 1;
    for (const schedule::DecisionSpace& s : sketch.spaces) {
      count = saturating_multiply(count, s.count());
    }
    if (__builtin_add_overflow(total, count, &total)) return std::numeric_limits<int64_t>::max();
  }
  return total;
}

Result<SearchSpace> make_space(const Task& task) {
  SearchSpace space;
  if (!task.base.defined()) {
    return error(Diag::kNoSketch, task.name, std::string("the program is empty"));
  }
  const auto add = [&](const std::string& name, auto&& apply) {
    SketchContext context{schedule::Schedule(task.base), task.target};
    if (!apply(context)) return;
    if (context.schedule.trace().instructions.empty()) return;
    if (find_sketch(space, context.schedule.trace()) >= 0) return;
    space.sketches.push_back(make_sketch(name, context.schedule.trace()));
  };
  if (task.target.kind != ir::TargetKind::kCpu) {
    for (const GpuVariant& variant : gpu_variants()) {
      add(variant.name, [&](SketchContext& c) { return apply_gpu_variant(c, variant); });
    }
    // Statements outside of kernels are nobody's to run.
    if (space.sketches.empty()) {
      return error(Diag::kNoSketch, task.name, std::string("no rule gives it kernels"));
    }
    return space;
  }
  for (const Variant& variant : variants()) {
    // Without matrix tiles these are the sketches "narrow" once more.
    if (variant.amx && !has_matrix_tiles(task.target)) continue;
    add(variant.name, [&](SketchContext& c) { return apply_variant(c, variant); });
  }
  // The program as written: slow, but an answer.
  if (space.sketches.empty()) space.sketches.push_back(make_sketch("as written", {}));
  return space;
}

Result<Candidate> instantiate(const Task& task, const SearchSpace& space, int sketch,
                              std::span<const schedule::Decision> decisions) {
  const Sketch& from = space.sketches[static_cast<std::size_t>(sketch)];
  if (space.members != nullptr) {
    const int member =
        space.members->find(sketch, decisions.empty() ? from.trace.decisions : decisions);
    if (member >= 0) return space.members->candidate(member);
    return error(Diag::kUnsupported, "a candidate that the pool has no time of");
  }
  Candidate candidate;
  candidate.sketch = sketch;
  candidate.trace = from.trace;
  if (!decisions.empty()) candidate.trace.decisions.assign(decisions.begin(), decisions.end());
  PRUNERC_TRY(const schedule::Schedule replayed, schedule::replay(task.base, candidate.trace));
  candidate.program = ir::compact(replayed.program());
  candidate.fingerprint = ir::fingerprint(candidate.program);
  PRUNERC_TRY_VOID(schedule::check_gpu_limits(candidate.program, task.target));
  const costmodel::LatencyEstimate estimate =
      costmodel::estimate_latency(candidate.program, task.target);
  if (estimate.code_size > kMaxCodeSize) {
    return error(Diag::kCandidateTooLarge, static_cast<int64_t>(estimate.code_size),
                 static_cast<int64_t>(kMaxCodeSize));
  }
  candidate.predicted_ns = estimate.total_ns;
  return candidate;
}

Result<Candidate> heuristic_candidate(const Task& task, const SearchSpace& space) {
  Result<Candidate> best = error(Diag::kNoSketch, task.name, std::string("no sketch is legal"));
  for (std::size_t i = 0; i < space.sketches.size(); ++i) {
    Result<Candidate> made = instantiate(task, space, static_cast<int>(i), {});
    if (!made) {
      if (!best) best = made.error();
      continue;
    }
    if (!best || made->predicted_ns < best->predicted_ns) best = std::move(made);
  }
  return best;
}

int find_sketch(const SearchSpace& space, const schedule::Trace& trace) {
  for (std::size_t i = 0; i < space.sketches.size(); ++i) {
    if (space.sketches[i].trace.instructions == trace.instructions) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace prunerc::search

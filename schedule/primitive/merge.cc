// merge([@L0, @L1]): loops that follow each other become one, with their bodies in that order.
// Needs: one extent, serial, without attributes, only loops and blocks inside; iteration j of the
// second owes nothing to an iteration i > j of the first, which it now precedes (DESIGN.md, D17).
// After: what a block reads of an intermediate of that loop is written in the same iteration.
//   for i in 8 @L0 { block @P [v: S(8) = i] { T[v] = X[v] } }
//   for j in 8 @L1 { block @C [v: S(8) = j] { Y[v] = T[v] } }
// ~>
//   for i in 8 @L { block @P [v: S(8) = i] { T[v] = X[v] } block @C [v: S(8) = i] { Y[v] = T[v] } }
#include "ir/analysis/carried.h"
#include "ir/arith/prove.h"
#include "ir/equal.h"
#include "ir/thread_axis.h"
#include "schedule/legality/access_region.h"
#include "schedule/legality/lifetime.h"
#include "schedule/primitive.h"

#include <algorithm>
#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct MergePlan {
  Site site;
  std::vector<const Loop*> loops;
  Expr extent;
};

Error misshapen(const Loop& loop, const char* what, const Loop& other) {
  return error(Diag::kMergeShape, loop.id, std::string(what), other.id);
}

// The sequence that holds the first loop, with all of them side by side in it.
Result<void> check_neighbours(const Site& site, const std::vector<const Loop*>& loops) {
  const Seq* seq = site.path.size() < 2 ? nullptr : site.path[site.path.size() - 2].as<Seq>();
  for (std::size_t i = 1; i < loops.size(); ++i) {
    const auto first = seq == nullptr ? nullptr : seq->stmts.data();
    const auto last = first + (seq == nullptr ? 0 : seq->stmts.size());
    const auto at = std::find_if(first, last, [&](Stmt s) { return s.is(Stmt(loops[i - 1])); });
    if (at == last || at + 1 == last || !(at + 1)->is(Stmt(loops[i]))) {
      return misshapen(*loops[i], "directly follow", *loops[i - 1]);
    }
  }
  return {};
}

// Two statements, the second of which gets ahead of the first.
class MergeDependence {
 public:
  MergeDependence(const Program& program, const Site& site, const Loop& first, const Loop& second,
                  int64_t extent)
      : b_(program),
        first_(first),
        second_(second),
        before_(leaves(first.body)),
        after_(leaves(second.body)),
        ranges_(ranges_around_loop(program, site)) {
    // i = j + 1 + d: all pairs of iterations with j < i, and a few with i outside its extent.
    const Var* j = b_.fresh_var("j");
    const Var* d = b_.fresh_var("d");
    const int64_t steps = std::max<int64_t>(extent - 1, 1);
    ranges_.bind(first.var, first.extent);
    ranges_.bind(second.var, second.extent);
    ranges_.bind(j, b_.int_imm(steps));
    ranges_.bind(d, b_.int_imm(steps));
    const Expr later = b_.add(b_.add(j, d), b_.int_imm(1));
    ranges_.assume(b_.lt(later, b_.int_imm(extent)));
    early_ = {{second.var->id, j}};
    late_ = {{first.var->id, later}};
  }

  Result<void> check() {
    for (const LeafBlock& from : before_) {
      for (const LeafBlock& to : after_) PRUNERC_TRY_VOID(check(from, to));
    }
    return {};
  }

 private:
  static VarRanges ranges_around_loop(const Program& program, const Site& site) {
    Site outer = site;
    outer.path.pop_back();
    return ranges_at(program, outer);
  }

  BufferRegion region(const LeafBlock& leaf, const Access& access, const VarMap& map) {
    BufferRegion box = access_box(b_, leaf, access, ranges_);
    for (Range& range : box.box) {
      range.min = substitute(b_, range.min, map);
      range.extent = substitute(b_, range.extent, map);
    }
    return box;
  }

  bool apart(const BufferRegion& x, const BufferRegion& y) {
    for (std::size_t d = 0; d < x.box.size(); ++d) {
      const Expr x_end = b_.add(x.box[d].min, x.box[d].extent);
      const Expr y_end = b_.add(y.box[d].min, y.box[d].extent);
      if (prove_less_equal(x_end, y.box[d].min, ranges_) == Proof::kYes) return true;
      if (prove_less_equal(y_end, x.box[d].min, ranges_) == Proof::kYes) return true;
    }
    return false;
  }

  // The same element by element, for subscripts that boxes do not separate.
  bool never_meet(const LeafBlock& from, const Access& x, const LeafBlock& to, const Access& y) {
    constexpr ProveOptions kEffort = {.max_points = 20'000};
    return share_element(touch(to, y, second_), touch(from, x, first_), PointOrder::kBefore,
                         ranges_, kEffort) == Proof::kNo;
  }

  Touch touch(const LeafBlock& leaf, const Access& access, const Loop& around) {
    const Loop* const chain[] = {&around};
    return touch_of(b_, leaf, access, chain, leaf.loops);
  }

  Result<void> check(const LeafBlock& from, const LeafBlock& to) {
    auto check_lists = [&](std::span<const Access> of_from,
                           std::span<const Access> of_to) -> Result<void> {
      for (const Access& x : of_from) {
        for (const Access& y : of_to) {
          if (x.buffer != y.buffer) continue;
          if (apart(region(from, x, late_), region(to, y, early_))) continue;
          if (never_meet(from, x, to, y)) continue;
          return error(Diag::kMergeDepends, to.block->id, from.block->id,
                       "'" + std::string(b_.buffer(x.buffer).name) + "'");
        }
      }
      return {};
    };
    PRUNERC_TRY_VOID(check_lists(from.block->writes, to.block->reads));
    PRUNERC_TRY_VOID(check_lists(from.block->writes, to.block->writes));
    return check_lists(from.block->reads, to.block->writes);
  }

  IrBuilder b_;
  const Loop& first_;
  const Loop& second_;
  std::vector<LeafBlock> before_, after_;
  VarRanges ranges_;
  VarMap early_, late_;
};

Result<void> check_dependences(const Program& program, const MergePlan& plan) {
  PRUNERC_TRY(const int64_t extent, constant_extent(*plan.loops[0]));
  for (std::size_t x = 0; x < plan.loops.size() && extent > 1; ++x) {
    for (std::size_t y = x + 1; y < plan.loops.size(); ++y) {
      PRUNERC_TRY_VOID(
          MergeDependence(program, plan.site, *plan.loops[x], *plan.loops[y], extent).check());
    }
  }
  return {};
}

Result<MergePlan> plan_merge(const Program& program, const std::vector<LoopId>& ids) {
  if (ids.empty()) return error(Diag::kLoopListEmpty, std::string("merge"));
  MergePlan plan;
  PRUNERC_TRY(plan.site, find_loop(program, ids[0]));
  for (const LoopId id : ids) {
    PRUNERC_TRY(const Site site, find_loop(program, id));
    const Loop* loop = site.loop();
    PRUNERC_TRY_VOID(check_serial(*loop));
    PRUNERC_TRY_VOID(check_holds_blocks(*loop));
    PRUNERC_TRY_VOID(check_extent(*loop));
    if (plan.loops.empty()) plan.extent = loop->extent;
    plan.loops.push_back(loop);
    if (!structural_equal(loop->extent, plan.extent)) {
      return misshapen(*loop, "have the same extent as", *plan.loops[0]);
    }
  }
  PRUNERC_TRY_VOID(check_neighbours(plan.site, plan.loops));
  PRUNERC_TRY_VOID(on_instance(program, [&] { return check_dependences(program, plan); }));
  return plan;
}

Applied apply_merge(const Program& program, const MergePlan& plan) {
  IrBuilder b(program);
  const Var* var = b.fresh_var(plan.loops[0]->var->name);
  const LoopId id = b.fresh_loop_id();
  VarRanges ranges = ranges_at(program, plan.site);
  ranges.bind(var, plan.extent);
  std::vector<Stmt> bodies;
  for (const Loop* loop : plan.loops) {
    bodies.push_back(rebind(b, loop->body, {{loop->var->id, Expr(var)}}, {}, ranges));
  }
  const Stmt merged = make_loop(b, var, plan.extent, b.seq(bodies), id);
  Applied out;
  out.outputs = {id};
  if (plan.loops.size() == 1) {
    out.program = b.finish(replace_at(b, plan.site, merged));
    return out;
  }
  const std::size_t depth = plan.site.path.size() - 2;
  std::vector<Stmt> statements;
  for (Stmt s : plan.site.path[depth].as<Seq>()->stmts) {
    const auto at = std::find_if(plan.loops.begin(), plan.loops.end(),
                                 [&](const Loop* loop) { return s.is(Stmt(loop)); });
    if (at == plan.loops.end()) statements.push_back(s);
    if (at == plan.loops.begin()) statements.push_back(merged);
  }
  out.program = b.finish(replace_at(b, plan.site, b.seq(statements), depth));
  return out;
}

// Intermediates that live in the merged loop from now on hold nothing of its earlier iterations.
Result<void> check_lives(const Program& before, const Program& merged) {
  const std::optional<LostValue> lost = lost_value(before, merged);
  if (!lost) return {};
  return error(Diag::kMergeDepends, lost->reader, lost->writer, quoted_name(merged, lost->buffer));
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kMerge>(const Program& program, const Call& call) {
  PRUNERC_TRY(const MergePlan plan, plan_merge(program, call.loops(0)));
  Applied out = apply_merge(program, plan);
  // Kernels that were apart may now be one.
  PRUNERC_TRY_VOID(check_thread_axes(out.program.root()));
  PRUNERC_TRY_VOID(on_instance(program, [&] { return check_lives(program, out.program); }));
  return out;
}

}  // namespace prunerc::schedule

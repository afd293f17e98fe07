// loop_partition(@L, [3, -1]): a range is cut into consecutive loops; the first keeps the ids
// inside. Needs: @L serial, without attributes; sizes that add up to the extent, at most one
// inferred (-1); concurrent loops inside hold no private intermediate, which the copies would
// share. After: the same instances in the same order.
//   for i in 10 @L { block @B [v: S(10) = i] { T[v] = X[v] } }
// ~>
//   for i_0 in 3 @L0 { block @B [v: S(10) = i_0] { T[v] = X[v] } }
//   for i_1 in 7 @L1 { block @B1 [v: S(10) = i_1 + 3] { T[v] = X[v] } }
#include "ir/visit.h"
#include "schedule/legality/concurrency.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/site.h"

#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

/// Partitions of partitions multiply; a program of more statements than this is of no use.
constexpr int64_t kMaxStatements = 1024;

struct PartitionPlan {
  Site site;
  std::vector<int64_t> sizes;
};

Result<std::vector<int64_t>> complete_sizes(LoopId loop, std::vector<int64_t> sizes,
                                            int64_t extent) {
  const auto bad = [&](int64_t found) { return error(Diag::kPartitionSizes, loop, extent, found); };
  int64_t sum = 0;
  int64_t* inferred = nullptr;
  for (int64_t& size : sizes) {
    if (size == -1 && inferred == nullptr) {
      inferred = &size;
    } else if (size < 1 || size > extent - sum) {
      return bad(size);
    } else {
      sum += size;
    }
  }
  if (inferred != nullptr) *inferred = extent - sum;
  if (inferred != nullptr && *inferred < 1) return bad(*inferred);
  if (inferred == nullptr && sum != extent) return bad(sum);
  return sizes;
}

int64_t num_statements(Stmt s) {
  int64_t count = 0;
  walk(
      s,
      [&](Stmt) {
        ++count;
        return true;
      },
      [](Expr) {});
  return count;
}

Result<PartitionPlan> plan_partition(const Program& program, LoopId id,
                                     std::vector<int64_t> sizes) {
  PartitionPlan plan;
  PRUNERC_TRY(plan.site, find_loop(program, id));
  const Loop& loop = *plan.site.loop();
  PRUNERC_TRY_VOID(check_serial(loop));
  PRUNERC_TRY(const int64_t extent, constant_extent(loop));
  if (sizes.empty()) return error(Diag::kPartitionSizes, id, extent, int64_t{0});
  const int64_t copies = num_statements(loop.body) * static_cast<int64_t>(sizes.size()) +
                         num_statements(program.root());
  if (copies > kMaxStatements) return error(Diag::kCandidateTooLarge, copies, kMaxStatements);
  PRUNERC_TRY(plan.sizes, complete_sizes(id, std::move(sizes), extent));
  return plan;
}

Applied apply_partition(const Program& program, const PartitionPlan& plan) {
  IrBuilder b(program);
  const Loop& loop = *plan.site.loop();
  Applied out;
  std::vector<Stmt> parts;
  int64_t start = 0;
  for (std::size_t p = 0; p < plan.sizes.size(); ++p) {
    const int64_t size = plan.sizes[p];
    const Var* var = b.fresh_var(std::string(loop.var->name) + "_" + std::to_string(p));
    const LoopId id = b.fresh_loop_id();
    out.outputs.emplace_back(id);
    VarRanges ranges = ranges_at(program, plan.site);
    ranges.bind(var, b.int_imm(size));
    const Expr index = start == 0 ? Expr(var) : b.add(var, b.int_imm(start));
    const Stmt body = p == 0 ? loop.body : clone_with_fresh_ids(b, loop.body);
    parts.push_back(
        make_loop(b, var, size, rebind(b, body, {{loop.var->id, index}}, {}, ranges), id));
    start += size;
  }
  out.program = b.finish(replace_at(b, plan.site, b.seq(parts)));
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kLoopPartition>(const Program& program, const Call& call) {
  PRUNERC_TRY(const PartitionPlan plan, plan_partition(program, call.loop(0), call.integers(1)));
  Applied out = apply_partition(program, plan);
  // What an iteration of a concurrent loop inside had to itself, all copies of that loop now share.
  for (const Output& part : out.outputs) {
    PRUNERC_TRY(const Site site, find_loop(out.program, std::get<LoopId>(part)));
    PRUNERC_TRY_VOID(recheck_concurrent(out.program, concurrent_loops_in(site.loop()->body)));
  }
  return out;
}

}  // namespace prunerc::schedule

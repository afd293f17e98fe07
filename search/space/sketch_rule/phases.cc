// Rule "phases": a reduction of which a congruence lets through every s-th step becomes s reductions
// without conditions, one for each remainder of the output's variable.
//
//     block "Y" [o: S(32), k: R(4)] { Y[o] += select((o + 1 - k) % 2 == 0, X[(o + 1 - k) // 2]*F[k], 0) }
//   ~>
//     block "Y" [p: S(2), o: S(16), k: R(2)] {
//       T[p, o] += X_pad[o + (p + 1) // 2 - k + 1]*F[k*2 + (p + 1) % 2] }
//     block "T_out" [o: S(32)] { Y[o] = T[o % 2, o // 2] }
//
// That is a transposed convolution, of any rank. The phases go outermost, where each is a
// convolution of its own, and T has their order, so that tiles are contiguous. Whoever reads Y, an
// epilogue say, reads T instead; stores of a tile that leave out every other element cost more than
// that pass.
#include "ir/analysis/accumulator.h"
#include "search/space/sketch_rule/rule.h"

#include <optional>
#include <string>
#include <vector>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::Expr;

// Variables, by position, that stand in one condition x % period == constant.
struct Congruence {
  int64_t period = 1;
  std::vector<int> spatial, reduce;
};

std::vector<Congruence> congruences_of(const ir::Block& block) {
  std::vector<Congruence> found;
  const std::optional<ir::Reducer> reducer = ir::match_reducer(block);
  const auto* update = reducer ? reducer->update.as<ir::Select>() : nullptr;
  if (update == nullptr) return found;
  for (Expr condition : ir::conjuncts(update->condition)) {
    const auto* equal = condition.as<ir::Eq>();
    const auto* mod = equal != nullptr ? equal->lhs.as<ir::FloorMod>() : nullptr;
    const std::optional<int64_t> period =
        mod != nullptr ? ir::constant_value(mod->rhs) : std::nullopt;
    if (!period) continue;
    Congruence congruence{*period, {}, {}};
    for (std::size_t i = 0; i < block.iters.size(); ++i) {
      if (!ir::mentions(mod->lhs, block.iters[i].var->id)) continue;
      const bool spatial = block.iters[i].kind == ir::IterKind::kSpatial;
      (spatial ? congruence.spatial : congruence.reduce).push_back(static_cast<int>(i));
    }
    found.push_back(std::move(congruence));
  }
  return found;
}

// "(a0, a1, a2) -> (a1 % 2, a0, a1 // 2, a2)": phases first. `periods` by variable, 1 for none.
std::string phase_map(const std::vector<int64_t>& periods) {
  std::string from, phases, rest;
  for (std::size_t i = 0; i < periods.size(); ++i) {
    const std::string name = "a" + std::to_string(i);
    const std::string period = std::to_string(periods[i]);
    from += (i > 0 ? ", " : "") + name;
    if (periods[i] > 1) phases += name + " % " + period + ", ";
    rest += (i > 0 ? ", " : "") + name + (periods[i] > 1 ? " // " + period : "");
  }
  return "(" + from + ") -> (" + phases + rest + ")";
}

// The block that copies by phases gets the order of the output again: "(p, a, b) -> (a, b*2 + p)".
// It has those of the block's variables that are in the output's subscripts.
std::string output_map(const std::vector<bool>& written, const std::vector<int64_t>& periods) {
  const std::size_t num_phases = written.size() - periods.size();
  std::string from, to;
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (written[i]) from += (from.empty() ? "" : ", ") + ("a" + std::to_string(i));
  }
  std::size_t phase = 0;
  for (std::size_t i = 0; i < periods.size(); ++i) {
    std::string term = "a" + std::to_string(num_phases + i);
    if (periods[i] > 1) {
      term += "*" + std::to_string(periods[i]) + " + a" + std::to_string(phase++);
    }
    if (written[num_phases + i]) to += (to.empty() ? "" : ", ") + term;
  }
  return "(" + from + ") -> (" + to + ")";
}

// The block writes by phase; readers of the result read that.
Result<void> write_by_phase(SketchContext& context, BlockId id,
                            const std::vector<int64_t>& periods) {
  const ir::Block* block = find_block(context.program(), id);
  std::vector<bool> written;
  for (const ir::IterVar& iter : block->iters) {
    written.push_back(mentions(block->writes[0], iter.var->id));
  }
  PRUNERC_TRY(const BlockId copy, write_by_variable(context, id));
  if (context.schedule.compute_inline(copy).ok()) return {};
  PRUNERC_TRY_VOID(context.schedule.transform_block_layout(copy, output_map(written, periods)));
  return {};
}

void pad_reads(SketchContext& context, BlockId id) {
  const std::size_t num_reads = find_block(context.program(), id)->reads.size();
  for (std::size_t i = 0; i < num_reads; ++i) {
    static_cast<void>(context.schedule.pad_read(id, static_cast<int>(i), ir::Scope::kGlobal).ok());
  }
}

Result<void> split_phases_of(SketchContext& context, BlockId id) {
  const ir::Block* block = find_block(context.program(), id);
  std::vector<int64_t> periods(block->iters.size(), 1);
  bool any = false;
  for (const Congruence& congruence : congruences_of(*block)) {
    bool narrowed = false;
    for (const int iter : congruence.reduce) {
      narrowed = narrowed || context.schedule.narrow_reduction(id, iter).ok();
    }
    if (!narrowed) continue;
    any = true;
    for (const int iter : congruence.spatial) {
      periods[static_cast<std::size_t>(iter)] = congruence.period;
    }
  }
  if (!any) return {};
  pad_reads(context, id);
  block = find_block(context.program(), id);
  // Every phase has the same extent, or lanes would go on disagreeing about which one they are of.
  for (std::size_t i = 0; i < periods.size(); ++i) {
    const std::optional<int64_t> extent = ir::constant_value(block->iters[i].extent);
    if (periods[i] == 1) continue;
    if (!extent || *extent % periods[i] != 0 || *extent == periods[i]) {
      return error(Diag::kUnsupported, std::string("phases of this extent"));
    }
  }
  PRUNERC_TRY_VOID(context.schedule.transform_block_layout(id, phase_map(periods)));
  return write_by_phase(context, id, periods);
}

}  // namespace

void split_phases(SketchContext& context) {
  for (const BlockId id : context.schedule.blocks()) {
    const ir::Block* block = find_block(context.program(), id);
    if (block == nullptr || context.keeps(id) || !is_reduction(*block)) continue;
    const schedule::Schedule before = context.schedule.fork();
    if (!split_phases_of(context, id).ok()) context.schedule = before;
  }
}

}  // namespace prunerc::search

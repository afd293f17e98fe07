// Rule "recover axes": a variable that an operand's subscripts take apart becomes its parts.
//
//     block [co: S(128), ..] { Y[co] += X[co // 32*16 + ci] * F[co, ci] }
//   ~>
//     block [g: S(4), c: S(32), ..] { Y[g*32 + c] += X[g*16 + ci] * F[g*32 + c, ci] }
//
// Compound, co moves with all operands and no tile shares anything along it; c moves with F alone.
// So do the groups of a convolution, a depthwise convolution's multiplier, heads that share keys, and
// the window of a product that was written as one axis (k // 9, k % 9 // 3, k % 3).
//
// Of a stage that reads one value for several of its rows (Y[c, x] = X[c, x] - mean[c // 4]), the rows
// that share it become an axis: then all that belongs to one mean is one row of the chain.
#include "ir/equal.h"
#include "search/space/sketch_rule/rule.h"

#include <algorithm>
#include <optional>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::Expr;
using ir::ExprKind;

// v // lower % extent; extent 0: no remainder is taken.
struct Part {
  int64_t lower = 1;
  int64_t extent = 0;
};

std::optional<Part> part_of(Expr e, ir::VarId var) {
  if (const auto* v = e.as<ir::Var>()) return v->id == var ? std::optional(Part{}) : std::nullopt;
  const ir::BinaryNode* node = ir::as_binary(e);
  const bool divides = e.kind() == ExprKind::kFloorDiv;
  if (node == nullptr || (!divides && e.kind() != ExprKind::kFloorMod)) return std::nullopt;
  const std::optional<int64_t> divisor = ir::constant_value(node->rhs);
  const std::optional<Part> of = part_of(node->lhs, var);
  if (!divisor || *divisor < 2 || !of || (of->extent % *divisor != 0)) return std::nullopt;
  if (!divides) return Part{of->lower, *divisor};
  int64_t lower = 0;
  if (__builtin_mul_overflow(of->lower, *divisor, &lower)) return std::nullopt;
  return Part{lower, of->extent / *divisor};
}

// Where subscripts cut the variable: c for v // c and v % c. Each divides the next one and the extent.
std::vector<int64_t> cuts_of(const std::vector<ir::Access>& accesses, const Axis& axis) {
  std::vector<int64_t> found;
  const auto add = [&](int64_t cut) {
    if (cut > 1 && cut < axis.extent) found.push_back(cut);
  };
  for (const ir::Access& access : accesses) {
    for (const ir::Range& range : access.region) {
      ir::walk(range.min, [&](Expr e) {
        const std::optional<Part> part = part_of(e, axis.var);
        if (!part) return true;
        add(part->lower);
        int64_t upper = 0;
        if (!__builtin_mul_overflow(part->lower, part->extent, &upper)) add(upper);
        return false;
      });
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<int64_t> chain;
  for (const int64_t cut : found) {
    const int64_t last = chain.empty() ? 1 : chain.back();
    if (cut != last && cut % last == 0 && axis.extent % cut == 0) chain.push_back(cut);
  }
  return chain;
}

std::vector<ir::Access> operands_of(const ir::Block& block) {
  std::vector<ir::Access> all(block.reads.begin(), block.reads.end());
  all.insert(all.end(), block.writes.begin(), block.writes.end());
  return all;
}

// Of a stage: intermediates with a value for each row, or for some rows, of the axis and those before it.
std::vector<ir::Access> rows_read(const ir::Program& program, const BlockFacts& facts,
                                  const Axis& axis) {
  std::vector<ir::Access> out;
  for (const ir::Access& access : facts.block->reads) {
    if (program.buffer(access.buffer).role != ir::BufferRole::kIntermediate) continue;
    const bool has_rows =
        std::all_of(facts.spatial.begin(), facts.spatial.end(), [&](const Axis& other) {
          return other.extent == 1 || mentions(access, other.var) == (other.iter <= axis.iter);
        });
    if (has_rows) out.push_back(access);
  }
  return out;
}

// Would vectors that run along the variable get shorter than a register by this cut?
bool narrows_vectors(const SketchContext& context, const BlockFacts& facts, const Axis& axis,
                     int64_t innermost) {
  if (innermost >= context.target.lanes(facts.element_bytes)) return false;
  const ir::Block& block = *facts.block;
  const ir::Program& program = context.program();
  if (is_contiguous(program, block.writes[0], axis.var)) return true;
  return block.iters[static_cast<std::size_t>(axis.iter)].kind == ir::IterKind::kReduce &&
         reads_contiguously(program, block, axis.var) && !can_tile(context.schedule, block.id);
}

// "a // 32, a % 32 // 4, a % 4" for the cuts 4 and 32.
std::string parts_text(const std::string& name, const std::vector<int64_t>& cuts) {
  if (cuts.empty()) return name;
  std::string out;
  for (std::size_t i = cuts.size(); i-- > 0;) {
    const bool first = i + 1 == cuts.size();
    out += name + (first ? "" : " % " + std::to_string(cuts[i + 1])) + " // " +
           std::to_string(cuts[i]) + ", ";
  }
  return out + name + " % " + std::to_string(cuts[0]);
}

// The map that takes the block's variables apart; `cuts` by variable. Of its spatial ones alone if
// an epilogue follows: those are all that it has.
std::string map_text(const ir::Block& block, const std::vector<std::vector<int64_t>>& cuts,
                     bool spatial_only) {
  std::string from, to;
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    if (spatial_only && block.iters[i].kind != ir::IterKind::kSpatial) continue;
    const std::string name = "a" + std::to_string(i);
    from += (from.empty() ? "" : ", ") + name;
    to += (to.empty() ? "" : ", ") + parts_text(name, cuts[i]);
  }
  return "(" + from + ") -> (" + to + ")";
}

bool is_epilogue(SketchContext& context, BlockId id) {
  const std::vector<BlockId> sources = context.schedule.producers(id);
  return std::any_of(sources.begin(), sources.end(),
                     [&](BlockId source) { return epilogue_of(context.schedule, source) == id; });
}

Result<void> recover_axes_of(SketchContext& context, BlockId id) {
  const BlockFacts facts = facts_of(context.schedule, id);
  if (facts.block == nullptr || !facts.trivial || facts.block->writes.size() != 1) return {};
  const bool sums = is_reduction(*facts.block);
  // What reads a stage goes by its axes, and what finishes a product's tiles by the product's.
  if (!sums && (!context.schedule.consumers(id).empty() || is_epilogue(context, id))) return {};
  std::vector<std::vector<int64_t>> cuts(facts.block->iters.size());
  bool any = false;
  for (const auto& axes : {facts.spatial, facts.reduce}) {
    for (const Axis& axis : axes) {
      std::vector<int64_t> chain = cuts_of(
          sums ? operands_of(*facts.block) : rows_read(context.program(), facts, axis), axis);
      if (chain.empty() || narrows_vectors(context, facts, axis, chain[0])) continue;
      cuts[static_cast<std::size_t>(axis.iter)] = std::move(chain);
      any = true;
    }
  }
  if (!any) return {};
  const BlockId epilogue = sums ? epilogue_of(context.schedule, id) : BlockId();
  const std::string whole = map_text(*facts.block, cuts, false);
  const std::string shared = map_text(*facts.block, cuts, true);
  PRUNERC_TRY_VOID(context.schedule.transform_block_layout(id, whole));
  if (!epilogue.valid()) return {};
  PRUNERC_TRY_VOID(context.schedule.transform_block_layout(epilogue, shared));
  // Between the two each variable is a dimension, so that tiles are found without numbers.
  PRUNERC_TRY(const BlockId copy, write_by_variable(context, id));
  return context.schedule.compute_inline(copy);
}

}  // namespace

void recover_axes(SketchContext& context) {
  for (const BlockId id : context.schedule.blocks()) {
    const ir::Block* block = find_block(context.program(), id);
    if (block == nullptr || context.keeps(id)) continue;
    const schedule::Schedule before = context.schedule.fork();
    if (!recover_axes_of(context, id).ok()) context.schedule = before;
  }
}

}  // namespace prunerc::search

#include "search/space/sketch_rule/tile_axes.h"

#include <algorithm>
#include <cstddef>

namespace prunerc::search {
namespace {

// How much the rows of a register tile along `row` share. 2: the vectors that are loaded (a
// product's columns; the pixels of a convolution for all its output channels), so a vector serves
// every row. 1: only scalars. 0: nothing.
int row_rank(const ir::Block& block, ir::VarId row, ir::VarId vector) {
  if (!is_reused(block, row)) return 0;
  return shares_vectors(block, row, vector) ? 2 : 1;
}

// One variable, or several as the digits of a number: v*32 + w, with w below 32; of one kind, if that is
// wanted.
bool is_digits(const ir::Block& block, ir::Expr index, bool of_one_kind) {
  struct Term {
    int64_t scale, extent;
  };
  std::vector<Term> terms;
  ir::IterKind kind = ir::IterKind::kSpatial;
  for (const ir::IterVar& iter : block.iters) {
    const auto* extent = iter.extent.as<ir::IntImm>();
    const bool single = extent != nullptr && extent->value == 1;
    if (single || !mentions(index, iter.var->id)) continue;
    if (extent == nullptr) return false;
    if (of_one_kind && !terms.empty() && iter.kind != kind) return false;
    kind = iter.kind;
    terms.push_back({step_of(index, iter.var->id), extent->value});
  }
  std::sort(terms.begin(), terms.end(),
            [](const Term& x, const Term& y) { return x.scale < y.scale; });
  int64_t scale = 1;
  for (const Term& term : terms) {
    if (term.scale != scale) return false;
    scale *= term.extent;
  }
  return true;
}

// Whether every subscript is a constant, one variable or digits: then any order of the variables is
// a layout.
bool has_digit_subscripts(const ir::Block& block, const ir::Access& access) {
  return std::all_of(access.region.begin(), access.region.end(), [&](const ir::Range& range) {
    return is_digits(block, range.min, /*of_one_kind=*/true);
  });
}

// Some operand that moves along `var` is read through a window: patches side by side are one along their own axis,
// tiles of a summed axis are none.
bool has_window(const ir::Block& block, ir::VarId var) {
  return std::any_of(block.reads.begin(), block.reads.end(), [&](const ir::Access& access) {
    if (access.buffer == block.writes[0].buffer || !mentions(access, var)) return false;
    return std::any_of(access.region.begin(), access.region.end(), [&](const ir::Range& range) {
      return !is_digits(block, range.min, /*of_one_kind=*/mentions(range.min, var));
    });
  });
}

}  // namespace

bool shares_vectors(const ir::Block& block, ir::VarId row, ir::VarId vector) {
  return std::all_of(block.reads.begin(), block.reads.end(), [&](const ir::Access& access) {
    return access.buffer == block.writes[0].buffer || !mentions(access, vector) ||
           !mentions(access, row);
  });
}

std::optional<TileAxes> find_axes(const ir::Program& program, const BlockFacts& facts) {
  if (facts.block == nullptr || !facts.trivial || facts.block->writes.size() != 1) {
    return std::nullopt;
  }
  if (facts.reduce.empty() || facts.spatial.empty()) return std::nullopt;
  TileAxes axes;
  bool found = false;
  for (const Axis& axis : facts.spatial) {
    if (axis.extent > 1 && is_contiguous(program, facts.block->writes[0], axis.var)) {
      axes.vector = axis;
      found = true;
    }
  }
  if (!found) return std::nullopt;
  int best = -1;
  for (const Axis& axis : facts.spatial) {
    if (axis.iter == axes.vector.iter || axis.extent == 1) continue;
    const int rank = row_rank(*facts.block, axis.var, axes.vector.var);
    // The innermost of the best: its rows share at least addresses.
    if (rank >= best) axes.row = axis;
    best = std::max(best, rank);
  }
  for (const Axis& axis : facts.spatial) {
    const bool taken = axis.iter == axes.vector.iter || (axes.row && axis.iter == axes.row->iter);
    if (!taken) axes.outer.push_back(axis);
  }
  return axes;
}

int transposed_operand(const ir::Block& block, ir::VarId var) {
  int found = -1;
  for (std::size_t i = 0; i < block.reads.size(); ++i) {
    const ir::Access& access = block.reads[i];
    if (access.buffer == block.writes[0].buffer || !mentions(access, var)) continue;
    if (found >= 0 || !has_digit_subscripts(block, access)) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

std::vector<int> gathered_operands(const ir::Program& program, const ir::Block& block,
                                   ir::VarId var) {
  std::vector<int> found;
  for (std::size_t i = 0; i < block.reads.size(); ++i) {
    const ir::Access& access = block.reads[i];
    const bool moves = mentions(without_unit_tail(program, access), var);
    if (access.buffer == block.writes[0].buffer || !moves) continue;
    if (is_contiguous(program, access, var)) continue;
    if (!has_digit_subscripts(block, access)) return {};
    found.push_back(static_cast<int>(i));
  }
  return found;
}

std::optional<TileAxes> find_transposed_axes(const ir::Program& program, const BlockFacts& facts) {
  const std::optional<TileAxes> usual = find_axes(program, facts);
  if (!usual || !has_window(*facts.block, usual->vector.var)) return std::nullopt;
  if (!has_digit_subscripts(*facts.block, facts.block->writes[0])) return std::nullopt;
  TileAxes axes;
  axes.row = usual->vector;
  axes.vector.extent = 1;
  for (const Axis& axis : facts.spatial) {
    if (axis.iter == axes.row->iter || axis.extent <= axes.vector.extent) continue;
    if (transposed_operand(*facts.block, axis.var) >= 0) axes.vector = axis;
  }
  if (axes.vector.extent == 1) return std::nullopt;
  for (const Axis& axis : facts.spatial) {
    if (axis.iter != axes.vector.iter && axis.iter != axes.row->iter) axes.outer.push_back(axis);
  }
  return axes;
}

bool reads_panels_once(const ir::Program& program, const ir::Block& block, const TileAxes& axes,
                       const ir::Target& target) {
  const int operand = transposed_operand(block, axes.vector.var);
  if (operand < 0) return false;
  const ir::Access& access = block.reads[static_cast<std::size_t>(operand)];
  const bool moves = std::any_of(axes.outer.begin(), axes.outer.end(),
                                 [&](const Axis& axis) { return mentions(access, axis.var); });
  const auto bytes_of = [&](const ir::Access& read) {
    const ir::Buffer& buffer = program.buffer(read.buffer);
    double bytes = static_cast<double>(ir::byte_size(buffer.dtype));
    for (const ir::Expr extent : buffer.shape) {
      bytes *= static_cast<double>(ir::constant_value(extent).value_or(1));
    }
    return bytes;
  };
  double others = 0;
  for (const ir::Access& read : block.reads) {
    if (!mentions(read, axes.vector.var)) others += bytes_of(read);
  }
  return !moves && bytes_of(access) > static_cast<double>(target.l2_bytes) &&
         others <= static_cast<double>(target.l3_bytes) / 2;
}

std::string transposing_map(const ir::Block& block, const ir::Access& access, ir::VarId last) {
  std::string from, to, end;
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    const ir::VarId var = block.iters[i].var->id;
    const std::string name = "a" + std::to_string(i);
    from += (from.empty() ? "" : ", ") + name;
    if (var == last) {
      end = name;
    } else if (mentions(access, var)) {
      to += name + ", ";
    }
  }
  return "(" + from + ") -> (" + to + end + ")";
}

}  // namespace prunerc::search

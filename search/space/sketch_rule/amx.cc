// Products on matrix tiles (AMX): C[i,j] += i32(A[i,k])*i32(B[k,j]) with bytes, or bf16 into f32.
//
//     for k0 { for v unrolled { for r unrolled {
//       for i in R { for j in 16 { for g in K/4 { for k in 4 {                  one instruction
//         C[r*R + i, v*16 + j] += A[r*R + i, k0*K + g*4 + k]*P[v, k0*K/4 + g, j, k]
//     } } } } } } }
//
// One instruction multiplies R rows of A, K elements each, by a panel of B (narrow.cc) as it lies: a
// row of the panel is a row of a tile register. Accumulators stay in tile registers while k0 runs, if
// there are few. What is chosen here are the sizes of an instruction, which name it: rows that divide
// their axis and, where that is taken apart in A (pixels), its digits, so that A is read as it lies;
// else A is copied, and rows of zeros fill its last tile.
#include "search/space/sketch_rule/narrow.h"
#include "search/space/sketch_rule/tile_axes.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace prunerc::search {
namespace {

/// Of a tile register.
constexpr int64_t kMaxTileRows = 16, kRowBytes = 64, kTileColumns = 16;
/// Fewer rows, or elements of k, leave most of an instruction idle.
constexpr int64_t kMinTileRows = 4, kMinDepth = 16;
/// An instruction of fewer rows takes as long: measured on a Sapphire Rapids core.
constexpr int64_t kMinBusyRows = 10;
/// Rows of a copy, which is there anyway: as many as leave no tile half empty.
constexpr int64_t kMinCopiedRows = 12;
/// A depth of so many halves of a row is read by halves, and A as it lies: one instruction more costs
/// less than a copy with zeros.
constexpr int64_t kOddHalves = 3;

// Whether a subscript moves with `var` within tiles of `size`, by the same step everywhere in each;
// nullopt if that is not so. Digits of the variable (v // 56, v % 56) are even where no tile crosses from
// one number to the next.
std::optional<bool> even_move(ir::Expr index, ir::VarId var, int64_t size) {
  if (!mentions(index, var)) return false;
  if (index.as<ir::Var>() != nullptr) return true;
  const ir::BinaryNode* binary = ir::as_binary(index);
  if (binary == nullptr) return std::nullopt;
  const std::optional<bool> lhs = even_move(binary->lhs, var, size);
  const std::optional<bool> rhs = even_move(binary->rhs, var, size);
  if (!lhs || !rhs) return std::nullopt;
  if (!*lhs && !*rhs) return false;
  const std::optional<int64_t> left = ir::constant_value(binary->lhs);
  const std::optional<int64_t> right = ir::constant_value(binary->rhs);
  const bool is_digit =
      binary->lhs.as<ir::Var>() != nullptr && right && *right > 0 && *right % size == 0;
  switch (index.kind()) {
    case ir::ExprKind::kAdd:
    case ir::ExprKind::kSub: return true;
    case ir::ExprKind::kMul: return left || right ? std::optional(true) : std::nullopt;
    case ir::ExprKind::kFloorDiv: return is_digit ? std::optional(false) : std::nullopt;
    case ir::ExprKind::kFloorMod: return is_digit ? std::optional(true) : std::nullopt;
    default: return std::nullopt;
  }
}

bool moves_evenly(const ir::Access& access, ir::VarId var, int64_t size) {
  return std::all_of(access.region.begin(), access.region.end(), [&](const ir::Range& range) {
    return even_move(range.min, var, size).has_value();
  });
}

// Whether the subscripts that have the variable are it, so that it can be padded.
bool stands_alone(const ir::Access& access, ir::VarId var) {
  return std::all_of(access.region.begin(), access.region.end(), [&](const ir::Range& range) {
    return range.min.as<ir::Var>() != nullptr || !mentions(range.min, var);
  });
}

// Whether a copy with an element for each value of the variables in the subscripts has no more of them
// than the buffer: that of overlapping windows has.
bool is_small_copy(const ir::Program& program, const ir::Block& block, const ir::Access& access) {
  double copied = 1, whole = 1;
  for (const ir::IterVar& iter : block.iters) {
    if (!mentions(access, iter.var->id)) continue;
    copied *= static_cast<double>(ir::constant_value(iter.extent).value_or(1));
  }
  for (const ir::Expr extent : program.buffer(access.buffer).shape) {
    whole *= static_cast<double>(ir::constant_value(extent).value_or(1));
  }
  return copied <= whole;
}

int64_t step_of_depth(int64_t depth, int64_t element_bytes) {
  const int64_t whole = kRowBytes / element_bytes, half = whole / 2;
  return depth <= half || depth == kOddHalves * half ? half : whole;
}

// The most rows of at least so many that divide the axis and fit; 0 if none do.
template <typename Fits>
int64_t most_rows(int64_t extent, int64_t least, const Fits& fits) {
  for (int64_t rows = std::min(extent, kMaxTileRows); rows >= least; --rows) {
    if (extent % rows == 0 && fits(rows)) return rows;
  }
  return 0;
}

// Sets rows and whether A is copied for them; rows are 0 if there is no way.
void choose_rows(const ir::Program& program, const ir::Block& block, const ir::Access& a,
                 NarrowProduct* product) {
  const ir::VarId row = product->row.var, depth = product->depth.var;
  const int64_t extent = product->row.extent;
  const auto as_it_lies = [&](int64_t rows) { return moves_evenly(a, row, rows); };
  const bool lies_well = is_contiguous(a, depth) && moves_evenly(a, depth, product->step) &&
                         (product->depth.extent % product->step == 0 || stands_alone(a, depth));
  if (lies_well) product->rows = most_rows(extent, std::min(extent, kMinBusyRows), as_it_lies);
  if (product->is_tile()) return;
  int64_t rows = most_rows(extent, kMinCopiedRows, [](int64_t) { return true; });
  if (rows == 0) rows = ceil_div(extent, ceil_div(extent, kMaxTileRows));
  const bool pads = extent % rows != 0;
  const bool copies = !lies_well || !as_it_lies(rows) || (pads && !stands_alone(a, row));
  if (!copies || is_small_copy(program, block, a)) {
    product->rows = rows;
    product->copies_rows = copies;
  } else if (lies_well) {
    product->rows = most_rows(extent, kMinTileRows, as_it_lies);
  }
}

// Of the instruction: the signs of A and B.
std::string_view letters_of(ir::DType a, ir::DType b, ir::DType c) {
  using ir::DType;
  if (c == DType::kF32) return a == DType::kBF16 && b == DType::kBF16 ? "bf16ps" : "";
  if (c != DType::kI32) return "";
  if (a == DType::kI8) return b == DType::kI8 ? "bssd" : b == DType::kU8 ? "bsud" : "";
  if (a == DType::kU8) return b == DType::kI8 ? "busd" : b == DType::kU8 ? "buud" : "";
  return "";
}

}  // namespace

bool has_matrix_tiles(const ir::Target& target) {
  return ir::has_feature(target, "amx-int8") || ir::has_feature(target, "amx-bf16");
}

std::optional<NarrowProduct> find_amx(const schedule::Schedule& schedule, ir::BlockId id,
                                      const ir::Target& target) {
  if (!has_matrix_tiles(target)) return {};
  std::optional<NarrowProduct> product = find_product(schedule, id);
  const BlockFacts facts = facts_of(schedule, id);
  const std::optional<TileAxes> axes = find_axes(schedule.program(), facts);
  if (!product || !axes || !axes->row || axes->vector.iter != product->vector.iter) return {};
  const ir::Block& block = *facts.block;
  const auto read = [&](int index) -> const ir::Access& {
    return block.reads[static_cast<std::size_t>(index)];
  };
  const ir::Access& a = read(shared_operand(block, product->vector.var));
  const ir::Access& b = read(moving_operand(block, product->vector.var));
  const ir::Access& c = block.writes[0];
  product->row = *axes->row;
  const ir::VarId row = product->row.var;
  if (!mentions(a, row) || mentions(b, row) || !has_variable_subscripts(c)) return {};
  if (product->row.extent < kMinTileRows || product->depth.extent < kMinDepth) return {};
  const auto dtype = [&](const ir::Access& access) {
    return schedule.program().buffer(access.buffer).dtype;
  };
  const std::string_view letters = letters_of(dtype(a), dtype(b), dtype(c));
  if (letters.empty()) return {};
  const int64_t element_bytes = ir::byte_size(dtype(a));
  product->lanes = kTileColumns;
  product->group = ir::byte_size(dtype(c)) / element_bytes;
  product->step = step_of_depth(product->depth.extent, element_bytes);
  choose_rows(schedule.program(), block, a, &*product);
  if (!product->is_tile()) return {};
  const std::string name = "x86_tdp" + std::string(letters) + "_" + std::to_string(product->rows) +
                           "x16x" + std::to_string(product->step);
  const Result<const ir::TensorIntrinsic*> found = ir::find_tensor(name);
  if (!found.ok() || !ir::has_feature(target, (*found)->features.substr(1))) return {};
  product->tensor = *found;
  return product;
}

}  // namespace prunerc::search

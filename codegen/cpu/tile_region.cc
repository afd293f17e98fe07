#include "codegen/cpu/tile_region.h"

#include "codegen/lower/analysis/statements.h"
#include "ir/map.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

/// Of a row of sums, whatever their number of rows is.
constexpr int64_t kSumsOfRow = 16;

// The first dimension of an operand is the rows of its tile, the others are one row.
TileShape shape_of(const TensorIntrinsic& tensor, const TensorOperand& operand) {
  const Buffer& buffer = tensor.description.buffer(operand.buffer);
  TileShape shape{static_cast<int>(constant_or(buffer.shape[0], 0)),
                  static_cast<int>(byte_size(buffer.dtype))};
  for (Expr extent : buffer.shape.subspan(1))
    shape.bytes *= static_cast<int>(constant_or(extent, 0));
  return shape;
}

bool has_vars(const Linear& linear, const std::set<VarId>& vars) {
  return std::any_of(linear.terms.begin(), linear.terms.end(), [&](const Term& term) {
    const std::span<const Expr> factors = term.factors();
    return std::any_of(factors.begin(), factors.end(), [&](Expr factor) {
      return any_var(factor, [&](VarId id) { return vars.count(id) != 0; });
    });
  });
}

// From the buffer's first element, whose extents are constants with a product that fits.
Linear flat_offset(IrBuilder& b, const Buffer& buffer, std::span<const Expr> indices,
                   const VarRanges& ranges) {
  Linear offset;
  int64_t step = 1;
  for (std::size_t d = indices.size(); d-- > 0;) {
    offset = offset + to_linear(b, indices[d], ranges) * step;
    step *= constant_or(buffer.shape[d], 1);
  }
  return offset;
}

bool is_zero(Expr e) {
  const FloatImm* real = e.as<FloatImm>();
  if (real != nullptr) return real->value == 0 && !std::signbit(real->value);
  return constant_value(e) == 0;
}

// Loops around one store of 0, and the elements that it reaches.
class ZeroFill {
 public:
  // False if it is none, or reaches more than sums can be.
  bool read(IrBuilder& b, Stmt s, VarRanges ranges) {
    std::vector<const Loop*> loops;
    for (; s.as<Loop>() != nullptr; s = loops.back()->body) {
      const Loop& loop = *loops.emplace_back(s.as<Loop>());
      const bool is_plain = loop.loop_kind == LoopKind::kSerial || is_tile_loop(loop);
      if (!is_plain || tensor_of(loop) || constant_or(loop.extent, 0) < 1) return false;
      ranges.bind(loop.var, loop.extent);
    }
    const Store* store = s.as<Store>();
    if (store == nullptr || !is_zero(store->value)) return false;
    buffer_ = store->buffer;
    const Linear offset = flat_offset(b, b.buffer(buffer_), store->indices, ranges);
    return !offset.overflow && !offset.has_data && separate(offset, loops);
  }

  // Those of the sums, each once, and no others?
  bool is_exactly(const TileRegion& region, int64_t element_bytes) const {
    std::vector<int64_t> sums;
    for (const TilePlace& sum : region.sums) {
      const Linear from = sum.offset - base_;
      if (sum.buffer != buffer_ || !from.is_constant()) return false;
      for (int64_t i = 0; i < region.sum.rows; ++i) {
        const int64_t row = from.constant + i * (sum.pitch_bytes / element_bytes);
        for (int64_t j = 0; j < kSumsOfRow; ++j) sums.push_back(row + j);
      }
    }
    std::sort(sums.begin(), sums.end());
    return sums == reached_;
  }

 private:
  // What the loops add to a base, element by element.
  bool separate(const Linear& offset, const std::vector<const Loop*>& loops) {
    constexpr std::size_t kMost = kMostTileSums * 16 * 16;
    std::set<VarId> vars;
    for (const Loop* loop : loops) vars.insert(loop->var->id);
    base_ = Linear::of(offset.constant);
    std::map<VarId, int64_t> steps;
    for (const Term& term : offset.terms) {
      if (!has_vars(Linear::of(term), vars)) {
        base_ = base_ + Linear::of(term);
        continue;
      }
      const Var* var = term.degree == 1 ? term.atoms[0].as<Var>() : nullptr;
      if (var == nullptr) return false;
      steps[var->id] = term.coef;
    }
    reached_ = {0};
    for (const Loop* loop : loops) {
      const int64_t extent = constant_or(loop->extent, 0), step = steps[loop->var->id];
      if (extent > static_cast<int64_t>(kMost) || std::abs(step) > INT32_MAX ||
          reached_.size() * static_cast<std::size_t>(extent) > kMost) {
        return false;
      }
      const std::vector<int64_t> before = std::exchange(reached_, {});
      for (const int64_t at : before) {
        for (int64_t i = 0; i < extent; ++i) reached_.push_back(at + i * step);
      }
    }
    std::sort(reached_.begin(), reached_.end());
    return true;
  }

  BufferId buffer_;
  Linear base_;
  std::vector<int64_t> reached_;  // from base_, sorted
};

bool is_same(const TilePlace& x, const TilePlace& y) {
  return x.buffer == y.buffer && x.pitch_bytes == y.pitch_bytes && x.offset == y.offset;
}

// Whether it is shown that two tiles of sums share no element.
bool are_apart(const TilePlace& x, const TilePlace& y, int64_t rows, int64_t element_bytes) {
  if (x.buffer != y.buffer) return true;
  const Linear difference = x.offset - y.offset;
  if (x.pitch_bytes != y.pitch_bytes || !difference.is_constant()) return false;
  const int64_t pitch = x.pitch_bytes / element_bytes;
  for (int64_t row = 1 - rows; row < rows; ++row) {
    int64_t moved = 0, gap = 0;
    if (__builtin_mul_overflow(row, pitch, &moved) ||
        __builtin_sub_overflow(difference.constant, moved, &gap)) {
      return false;
    }
    if (-kSumsOfRow < gap && gap < kSumsOfRow) return false;
  }
  return true;
}

class RegionFinder {
 public:
  RegionFinder(IrBuilder& b, const VarRanges& ranges, const TileRegionOptions& options)
      : b_(b), ranges_(ranges), options_(options) {}

  bool loop(const Loop& loop, std::vector<TileItem>* out) {
    if (const TensorIntrinsic* tensor = tile_product_of(loop)) {
      return nest(loop, *tensor, out).ok() && ok_;
    }
    // What does not run must not store its sums either; what is stored must not say how often it runs.
    const bool runs = interval_of(loop.extent, ranges_).lo >= 1 && !has_load(loop.extent);
    if (tensor_of(loop) || !runs) return false;
    const int64_t extent = constant_or(loop.extent, INT64_MAX);
    const bool is_task =
        loop.loop_kind == LoopKind::kParallel && options_.parallel == ParallelLoops::kTasks;
    if (is_task && extent > 1) return false;
    const bool unrolls =
        loop.loop_kind == LoopKind::kUnrolled && extent <= options_.most_copies / copies_;
    if (extent > 1 && !unrolls) return serial(loop, out);
    const int64_t copies = std::exchange(copies_, copies_ * extent);
    for (int64_t i = 0; i < extent; ++i) {
      const Stmt copy = substitute(b_, loop.body, VarMap{{loop.var->id, b_.int_imm(i)}});
      if (!stmt(copy, out)) return false;
    }
    copies_ = copies;
    return true;
  }

  // A product; the first one decides on the shapes.
  Result<void> nest(const Loop& nest, const TensorIntrinsic& tensor, std::vector<TileItem>* out) {
    PRUNERC_TRY(const TensorMatch match, match_tensor(b_, nest, tensor, ranges_));
    const TileShape shapes[] = {shape_of(tensor, tensor.operands[0]),
                                shape_of(tensor, tensor.operands[1]),
                                shape_of(tensor, tensor.operands[2])};
    if (region_.sums.empty()) {
      region_.sum = shapes[0];
      region_.a = shapes[1];
      region_.b = shapes[2];
    }
    ok_ = ok_ && region_.sum == shapes[0] && region_.a == shapes[1] && region_.b == shapes[2];
    TileProduct product{&tensor};
    product.sum = add_sum(place(match.operands[0]));
    product.a = add_operand(place(match.operands[1]));
    product.b = add_operand(place(match.operands[2]));
    out->push_back({.product = product});
    return {};
  }

  bool is_ok() const { return ok_; }
  bool has_data() const { return has_data_; }
  TileRegion take(std::vector<TileItem> items) {
    region_.items = std::move(items);
    return std::move(region_);
  }

 private:
  bool stmt(Stmt s, std::vector<TileItem>* out) {
    if (const Loop* inner = s.as<Loop>()) return loop(*inner, out);
    const Seq* seq = s.as<Seq>();
    return seq != nullptr && std::all_of(seq->stmts.begin(), seq->stmts.end(),
                                         [&](Stmt child) { return stmt(child, out); });
  }

  bool serial(const Loop& loop, std::vector<TileItem>* out) {
    const VarRanges::Mark mark = ranges_.mark();
    ranges_.bind(loop.var, loop.extent);
    serial_.insert(loop.var->id);
    TileItem item{&loop};
    const bool is_ok = stmt(loop.body, &item.body);
    serial_.erase(loop.var->id);
    ranges_.rewind(mark);
    out->push_back(std::move(item));
    return is_ok;
  }

  TilePlace place(const TensorMatch::Operand& operand) {
    const Buffer& buffer = b_.buffer(operand.buffer);
    TilePlace out;
    out.buffer = operand.buffer;
    out.pitch_bytes = operand.strides[0] * byte_size(buffer.dtype);
    out.offset = flat_offset(b_, buffer, operand.base, ranges_);
    ok_ = ok_ && !out.offset.overflow;
    has_data_ = has_data_ || out.offset.has_data;
    out.start = to_expr(b_, out.offset);
    return out;
  }

  std::size_t add_sum(TilePlace place) {
    ok_ = ok_ && !has_vars(place.offset, serial_);
    const int64_t bytes = byte_size(b_.buffer(place.buffer).dtype);
    for (std::size_t i = 0; i < region_.sums.size(); ++i) {
      if (is_same(region_.sums[i], place)) return i;
      ok_ = ok_ && are_apart(region_.sums[i], place, region_.sum.rows, bytes);
    }
    ok_ = ok_ && region_.sums.size() < kMostTileSums;
    region_.sums.push_back(std::move(place));
    return region_.sums.size() - 1;
  }

  std::size_t add_operand(TilePlace place) {
    const auto known = std::find_if(region_.operands.begin(), region_.operands.end(),
                                    [&](const TilePlace& other) { return is_same(other, place); });
    if (known != region_.operands.end())
      return static_cast<std::size_t>(known - region_.operands.begin());
    region_.operands.push_back(std::move(place));
    return region_.operands.size() - 1;
  }

  IrBuilder& b_;
  VarRanges ranges_;
  TileRegionOptions options_;
  TileRegion region_;
  std::set<VarId> serial_;  // of the loops around
  int64_t copies_ = 1;
  bool ok_ = true;
  bool has_data_ = false;  // subscripts read memory, which the sums may be
};

}  // namespace

std::optional<TileRegion> find_tile_region(IrBuilder& b, const Loop& loop, const VarRanges& ranges,
                                           const TileRegionOptions& options) {
  RegionFinder finder(b, ranges, options);
  std::vector<TileItem> items;
  // Types keep sums and factors in different buffers.
  const bool is_region = finder.loop(loop, &items) && !finder.has_data() && !items.empty();
  if (!is_region) return std::nullopt;
  return finder.take(std::move(items));
}

bool fills_sums_with_zero(IrBuilder& b, Stmt s, const TileRegion& region, const VarRanges& ranges) {
  ZeroFill fill;
  return fill.read(b, s, ranges) && fill.is_exactly(region, region.sum.bytes / kSumsOfRow);
}

Result<TileRegion> tile_region_of(IrBuilder& b, const Loop& nest, const TensorIntrinsic& tensor,
                                  const VarRanges& ranges) {
  RegionFinder finder(b, ranges, {});
  std::vector<TileItem> items;
  PRUNERC_TRY_VOID(finder.nest(nest, tensor, &items));
  if (!finder.is_ok())
    return error(Diag::kTensorMismatch, nest.id, tensor.name,
                 std::string("an offset is too large"));
  return finder.take(std::move(items));
}

bool has_tile_products(Stmt s, ParallelLoops parallel) {
  bool found = false;
  walk(
      s,
      [&](Stmt part) {
        const Loop* loop = part.as<Loop>();
        if (loop == nullptr || found) return !found;
        found = tile_product_of(*loop) != nullptr;
        const bool is_task =
            loop->loop_kind == LoopKind::kParallel && parallel == ParallelLoops::kTasks;
        return !found && (!is_task || constant_or(loop->extent, 0) == 1);
      },
      [](Expr) {});
  return found;
}

}  // namespace prunerc::codegen

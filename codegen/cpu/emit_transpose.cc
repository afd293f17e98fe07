// Loads of a tile that is read across its rows:
//     for r in 8 unrolled { for v in 8 vectorized { Y[r, v] = f(X[v, r]) } }
// reads eight rows of eight elements, which are eight vectors as they lie. They are loaded once, and shuffles
// of pairs make the eight columns of them: n log2(n) of these instead of n * n loads. Stores that cross a tile's
// rows go the same way back.
#include "codegen/cpu/emitter.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/analysis/vectorization.h"
#include "ir/tensor/intrinsic.h"
#include "ir/visit.h"

#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace prunerc::codegen {

using namespace ir;
using llvm::Value;

namespace {

/// Below that a gather or scatter is as good.
constexpr int64_t kMinTile = 4;

// Every load of it runs, in every lane.
bool is_unconditional(Expr e) {
  bool is = true;
  const auto visit_expr = [&](Expr child) { is = is && is_unconditional(child); };
  switch (e.kind()) {
    case ExprKind::kSelect:
    case ExprKind::kAnd:
    case ExprKind::kOr: return false;
    default: for_each_child(e, visit_expr); return is;
  }
}

bool is_straight_line(Stmt s) {
  if (const auto* seq = s.as<Seq>()) {
    return std::all_of(seq->stmts.begin(), seq->stmts.end(), is_straight_line);
  }
  const auto* store = s.as<Store>();
  return store != nullptr && is_unconditional(store->value) &&
         std::all_of(store->indices.begin(), store->indices.end(), is_unconditional);
}

// The masks of one exchange between two vectors: blocks of `block` elements in which groups of `group` of
// both alternate, the first or the second half of each.
std::vector<int> interleave(int n, int block, int group, bool second) {
  std::vector<int> mask;
  for (int b = 0; b < n; b += block) {
    const int half = b + (second ? block / 2 : 0);
    for (int j = half; j < half + block / 2; j += group) {
      for (int of = 0; of < 2; ++of) {
        for (int k = 0; k < group; ++k) mask.push_back(of * n + j + k);
      }
    }
  }
  return mask;
}

// Blocks of one vector, then those of the other, every second one.
std::vector<int> deal(int n, int block, bool second) {
  std::vector<int> mask;
  for (int of = 0; of < 2; ++of) {
    for (int b = second ? block : 0; b < n; b += 2 * block) {
      for (int k = 0; k < block; ++k) mask.push_back(of * n + b + k);
    }
  }
  return mask;
}

/// Where an element of the tile comes from.
struct Origin {
  int64_t row = 0, column = 0;
};

}  // namespace

// The loop runs a tile's rows: what the vectors inside of it read across rows may come from shuffles.
std::optional<Emitter::TileRows> Emitter::tile_rows(const Loop& loop, int64_t extent) const {
  const auto* inner = loop.body.as<Loop>();
  if (lanes_ != 0 || extent < kMinTile || inner == nullptr) return std::nullopt;
  if (inner->loop_kind != LoopKind::kVectorized || !is_straight_line(inner->body)) {
    return std::nullopt;
  }
  return TileRows{loop.var->id, extent, stored_buffers(loop.body), {}};
}

// The load's lanes in row i of the loop, which is column i of what lies in memory; null if the load is no
// such one. The columns are made with the first row and stay in registers for the others.
Value* Emitter::load_column(const Load& node, const Affine& offset) {
  if (!tile_rows_ || mask_ != nullptr || lanes_ < kMinTile) return nullptr;
  TileRows& rows = *tile_rows_;
  if (rows.stored.count(node.buffer) != 0) return nullptr;
  const std::size_t last = innermost_dim(program_.buffer(node.buffer));
  for (std::size_t d = 0; d < node.indices.size(); ++d) {
    if (step_of(node.indices[d], rows.var) != (d == last ? 1 : 0)) return nullptr;
  }
  const int64_t row = vars_.at(rows.var).lo;
  const int64_t column = row % lanes_, count = std::min(lanes_, rows.extent - (row - column));
  // Of what is no whole tile masks read the rest.
  if (count < lanes_ && (!has_avx512_ || 4 * count < lanes_)) return nullptr;
  const TileKey key = {&node, vars_.at(lane_var_).lo, row - column};
  auto at = rows.columns.find(key);
  if (at == rows.columns.end()) {
    if (column != 0) return nullptr;
    at = rows.columns.emplace(key, Columns{ir_.GetInsertBlock(), load_columns(node, offset, count)})
             .first;
  }
  // What another block of code computed may not have run.
  if (at->second.block != ir_.GetInsertBlock() || at->second.values.empty()) return nullptr;
  return at->second.values[static_cast<std::size_t>(column)];
}

// Vectors that lie `offset.stride` apart, of which `count` elements are read, and their columns.
std::vector<Value*> Emitter::load_columns(const Load& node, const Affine& offset, int64_t count) {
  const DType dtype = program_.buffer(node.buffer).dtype;
  auto* type = llvm::FixedVectorType::get(memory_type(dtype), static_cast<unsigned>(lanes_));
  const llvm::Align align(static_cast<uint64_t>(byte_size(dtype)));
  std::vector<Value*> vectors;
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    Value* start = ir_.CreateAdd(offset.base, i64(lane * offset.stride), "", false, true);
    Value* pointer = element(node.buffer, start, count == lanes_);
    Value* vector = count == lanes_
                        ? static_cast<Value*>(ir_.CreateAlignedLoad(type, pointer, align))
                        : ir_.CreateMaskedLoad(type, pointer, align, first_lanes(count));
    vectors.push_back(tag(vector, node.buffer));
  }
  return transposed(std::move(vectors), byte_size(dtype));
}

// The columns of as many vectors as each has elements.
std::vector<Value*> Emitter::transposed(std::vector<Value*> vectors, int64_t element_bytes) {
  const int n = static_cast<int>(vectors.size());
  std::vector<std::vector<Origin>> places;
  for (int64_t row = 0; row < n; ++row) {
    places.emplace_back();
    for (int64_t i = 0; i < n; ++i) places.back().push_back({row, i});
  }
  const auto exchange = [&](int distance, const std::vector<int>& first,
                            const std::vector<int>& second) {
    for (int i = 0; i < n; ++i) {
      if ((i & distance) != 0) continue;
      const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(i + distance);
      const std::vector<Origin> pa = places[a], pb = places[b];
      Value *va = vectors[a], *vb = vectors[b];
      const auto make = [&](std::size_t to, const std::vector<int>& mask) {
        vectors[to] = ir_.CreateShuffleVector(va, vb, mask);
        for (int k = 0; k < n; ++k) {
          const int from = mask[static_cast<std::size_t>(k)];
          places[to][static_cast<std::size_t>(k)] = from < n
                                                        ? pa[static_cast<std::size_t>(from)]
                                                        : pb[static_cast<std::size_t>(from - n)];
        }
      };
      make(a, first);
      make(b, second);
    }
  };
  // Inside of 16 bytes, where a shuffle takes one cycle, then between those.
  const int block = static_cast<int>(std::min<int64_t>(n, 16 / element_bytes));
  for (int group = 1; group < block; group *= 2) {
    exchange(group, interleave(n, block, group, false), interleave(n, block, group, true));
  }
  for (int distance = block; distance < n; distance *= 2) {
    exchange(distance, deal(n, block, false), deal(n, block, true));
  }
  std::vector<Value*> columns(vectors.size());
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    for (std::size_t k = 0; k < vectors.size(); ++k) {
      PRUNERC_CHECK(
          places[i][k].row == static_cast<int64_t>(k) && places[i][k].column == places[i][0].column,
          "a column of a tile is made of other elements");
    }
    columns[static_cast<std::size_t>(places[i][0].column)] = vectors[i];
  }
  return columns;
}

// for r in 14 unrolled { for v in 16 vectorized { Y[v, r] = f(v, r) } }: what each lane stores side by side in
// r leaves as a row, and no vector is scattered. False for other loops, which are as before.
bool Emitter::emit_columns(const Loop& loop, int64_t extent) {
  const auto* inner = loop.body.as<Loop>();
  const auto* store = inner == nullptr ? nullptr : inner->body.as<Store>();
  if (lanes_ != 0 || mask_ != nullptr || store == nullptr || !is_whole_vector(*inner)) return false;
  const int64_t lanes = constant_or(inner->extent, 0);
  if (extent < kMinTile || 4 * extent < lanes || loads_from(store->value, store->buffer))
    return false;
  const Expr place = joined_index(program_.buffer(store->buffer), store->indices);
  if (!place.defined() || step_of(place, loop.var->id) != 1) return false;
  std::optional<TileRows> rows = tile_rows(loop, extent);
  bind_var(loop.var->id, i64(0), 0, 0, 0);
  bind_var(inner->var->id, i64(0), 0, 0, lanes - 1);
  lane_var_ = inner->var->id;
  lanes_ = lanes;
  const std::optional<Affine> at = affine(place);
  // Rows of lanes must not overlap: the last copy's store would count.
  const bool is_apart = at && at->stride >= extent;
  if (is_apart) {
    std::swap(rows, tile_rows_);
    around_.push_back(inner->body);
    for (int64_t first = 0; first < extent; first += lanes) {
      store_columns(loop, *store, *at, first, std::min(lanes, extent - first));
    }
    around_.pop_back();
    tile_rows_ = std::move(rows);
  }
  lanes_ = 0;
  lane_var_ = {};
  return is_apart;
}

// The loop runs as one vector without a mask.
bool Emitter::is_whole_vector(const Loop& loop) const {
  const int64_t lanes = constant_or(loop.extent, 0);
  return loop.loop_kind == LoopKind::kVectorized && !tensor_of(loop) && lanes >= kMinTile &&
         std::has_single_bit(static_cast<uint64_t>(lanes)) &&
         lanes * widest_bytes(loop.body) <= vector_bytes_ && can_vectorize(program_, loop);
}

// The vectors of copies first .. first + count, stored as rows, of which lane 0 has the one at `at`.
void Emitter::store_columns(const Loop& loop, const Store& store, const Affine& at, int64_t first,
                            int64_t count) {
  const DType dtype = program_.buffer(store.buffer).dtype;
  std::vector<Value*> vectors;
  for (int64_t r = first; r < first + count; ++r) {
    const VarRanges::Mark mark = ranges_.mark();
    bind_var(loop.var->id, i64(r), r, r, r);
    vectors.push_back(to_memory(splat(eval(store.value)), dtype));
    ranges_.rewind(mark);
  }
  vectors.resize(static_cast<std::size_t>(lanes_), llvm::PoisonValue::get(vectors[0]->getType()));
  const std::vector<Value*> rows = transposed(std::move(vectors), byte_size(dtype));
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    Value* start = ir_.CreateAdd(at.base, i64(lane * at.stride + first), "", false, true);
    store_row(store.buffer, start, rows[static_cast<std::size_t>(lane)], count);
  }
}

// A mask of the first `count` lanes.
Value* Emitter::first_lanes(int64_t count) const {
  std::vector<llvm::Constant*> lanes;
  for (int64_t i = 0; i < lanes_; ++i) lanes.push_back(ir_.getInt1(i < count));
  return llvm::ConstantVector::get(lanes);
}

// The first `count` elements of a vector: at once where masks cost nothing, else in powers of two.
void Emitter::store_row(BufferId id, Value* offset, Value* row, int64_t count) {
  const llvm::Align align(static_cast<uint64_t>(byte_size(program_.buffer(id).dtype)));
  if (has_avx512_ && !std::has_single_bit(static_cast<uint64_t>(count))) {
    tag(ir_.CreateMaskedStore(row, element(id, offset, false), align, first_lanes(count)), id);
    return;
  }
  for (int64_t done = 0; done < count;) {
    const auto size = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count - done)));
    std::vector<int> part(static_cast<std::size_t>(size));
    std::iota(part.begin(), part.end(), static_cast<int>(done));
    Value* piece = ir_.CreateShuffleVector(row, part);
    Value* at = ir_.CreateAdd(offset, i64(done), "", false, true);
    tag(ir_.CreateAlignedStore(piece, element(id, at, true), align), id);
    done += size;
  }
}

}  // namespace prunerc::codegen

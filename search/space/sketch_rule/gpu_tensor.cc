// Rule "tensor" for GPUs: products of matrices by mma.sync, a tile of 16 x 8 results for each warp
// and instruction.
//
//     for o, m, n, k { C[o, m, n] += A[o, m, k]*B[o, k, n] }   (gpu_matrix.h)
//   ~>
//     for o bind(block.z), m_b bind(block.y), n_b bind(block.x) {
//       for w bind(thread.y) { C_init }
//       for k0 {software_pipeline} {
//         for .. w bind(thread.y) lane bind(thread.x) v vectorized { fetch A' }    the same for B'
//         for w bind(thread.y) { for k1 {
//           for m1 { ldmatrix A" }  for n1 { ldmatrix B" }
//           for m1, n1, n2 { mma }
//         } }
//       }
//       for w bind(thread.y) { consumer, or copy-out: the lanes take what they hold }
//     }
// Staged: the consumer writes a tile in shared memory, from where all threads copy it in vectors.
// Split k: the sum has parts, each a matrix of its own and blocks of its own; a second kernel adds.
//
// m = (block, warp, tile, 16), n = (block, warp, tile, pair, 8): ldmatrix loads B for two
// instructions at once, so tiles along n are pairs where there are more than 8 columns. Extents are
// rounded up to a block's tile by zeros, which a fetch writes. Rows in shared memory are odd
// multiples of 16 bytes, so that eight of them meet eight different banks.
#include "search/space/sketch_rule/gpu.h"
#include "search/space/sketch_rule/gpu_matrix.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;

constexpr int64_t kLanes = 32;
constexpr int64_t kFetchBytes = 16;
/// The narrowest swizzle: every tile is whole panels of it, and eight rows meet no bank twice.
constexpr int64_t kPanelBytes = 32;
constexpr int64_t kSmall = 256;  // extents from here on get larger tiles by default
const std::vector<int64_t> kWarps = {1, 2, 4};
const std::vector<int64_t> kRowTiles = {1, 2, 4};
const std::vector<int64_t> kColumnTiles = {1, 2, 4};
const std::vector<int64_t> kDepthTiles = {1, 2, 4};
const std::vector<int64_t> kParts = {2, 4, 8, 16};       // of a sum
const std::vector<int64_t> kPipeline = {0, 1, 2, 3, 4};  // iterations that a fetch is ahead

struct Product {
  const char* name;
  int64_t capability;  // least one with an instruction for it, or with halves of it
};
constexpr Product kProducts[] = {{"mma_m16n8k16_f16", 75},
                                 {"mma_m16n8k16_bf16", 80},
                                 {"mma_m16n8k32_s8", 75},
                                 {"mma_m16n8k8_tf32", 80}};

// The instruction that fills registers from shared memory; "" where elements come one by one.
std::string load_of(std::string_view dtype, bool is_a, bool k_last, bool is_pair) {
  const std::string type(dtype);
  const bool is_half = type == "f16" || type == "bf16";
  if (is_half && is_a) return (k_last ? "ldmatrix_x4_" : "ldmatrix_x4_trans_a_") + type;
  if (is_half && k_last) return (is_pair ? "ldmatrix_x4_b_" : "ldmatrix_x2_") + type;
  if (is_half) return (is_pair ? "ldmatrix_x4_trans_" : "ldmatrix_x2_trans_") + type;
  if (type != "i8" || !k_last) return "";
  return is_a ? "ldmatrix_x4_i8" : is_pair ? "ldmatrix_x4_b_i8" : "ldmatrix_x2_i8";
}

// A dimension cut for blocks, warps and instructions.
struct Cut {
  int64_t unit = 1;  // of the instructions that are loaded for at once
  Int warps = 1, tiles = 1;
  std::vector<LoopId> loops;
};

class GpuTensor {
 public:
  GpuTensor(SketchContext& context, const schedule::TensorMapping& mapping, MatrixProduct* product,
            const GpuVariant& variant)
      : context_(context),
        s_(context.schedule),
        mapping_(mapping),
        p_(*product),
        variant_(variant) {}

  Result<void> run() {
    const std::span<const ir::IterVar> iters = p_.tensor->block().iters;
    for (std::size_t t = 0; t < 3; ++t) tile_[t] = iters[t].extent.as<ir::IntImm>()->value;
    PRUNERC_TRY_VOID(decide());
    if (variant_.split_reduction) PRUNERC_TRY_VOID(split_reduction());
    PRUNERC_TRY_VOID(s_.set_scope(p_.block, 0, ir::Scope::kLocal));
    PRUNERC_TRY_VOID(s_.set_scope(p_.a.copy, 0, ir::Scope::kShared));
    PRUNERC_TRY_VOID(s_.set_scope(p_.b.copy, 0, ir::Scope::kShared));
    PRUNERC_TRY_VOID(cut());
    PRUNERC_TRY_VOID(take_out());
    PRUNERC_TRY_VOID(load_registers());
    PRUNERC_TRY_VOID(fetch(p_.a));
    PRUNERC_TRY_VOID(fetch(p_.b));
    PRUNERC_TRY_VOID(start());
    PRUNERC_TRY_VOID(s_.tensorize(m_.loops[3], p_.tensor->name));
    PRUNERC_TRY_VOID(fill_registers());
    return bind_all();
  }

 private:
  Int pick_units(const std::vector<int64_t>& values, int64_t extent, int64_t unit, int64_t wanted) {
    return context_.pick(up_to(values, power_of_two(ceil_div(extent, unit))), wanted);
  }

  Result<void> decide() {
    const auto& [m, n, k] = p_.extents;
    const bool large = m >= kSmall && n >= kSmall;
    m_.unit = tile_[0];
    n_.unit = n > tile_[1] ? 2 * tile_[1] : tile_[1];
    m_.warps = pick_units(kWarps, m, m_.unit, 2);
    m_.tiles = pick_units(kRowTiles, m, m_.unit, large ? 4 : 2);
    n_.warps = pick_units(kWarps, n, n_.unit, large ? 4 : 2);
    n_.tiles = pick_units(kColumnTiles, n, n_.unit, 2);
    steps_ = pick_units(kDepthTiles, k, tile_[2], 2);
    PRUNERC_TRY(warps_, s_.product({m_.warps, n_.warps}));
    PRUNERC_TRY(m_rows_, s_.product({m_.tiles, Int(m_.unit)}));
    PRUNERC_TRY(n_rows_, s_.product({n_.tiles, Int(n_.unit)}));
    PRUNERC_TRY(const Int block_m, s_.product({m_.warps, m_rows_}));
    PRUNERC_TRY(const Int block_n, s_.product({n_.warps, n_rows_}));
    if (variant_.split_reduction) {
      const int64_t most = k / (2 * tile_[2]);
      if (most < kParts[0]) return error(Diag::kUnsupported, std::string("parts of this sum"));
      parts_ = context_.pick(up_to(kParts, most), 4);
    }
    PRUNERC_TRY(const Int block_k, s_.product({parts_, steps_, Int(tile_[2])}));
    return pad_operands(context_, mapping_, {block_m, block_n, block_k}, &p_);
  }

  //     for m, n, k { C }  ~>  for part, m, n, k' { P[part, m, n] += .. }
  //                            for m, n { for part { C[m, n] += P[part, m, n] } }
  // The second nest is left to the rules for rows; the parts are blocks of the first one's grid.
  Result<void> split_reduction() {
    PRUNERC_TRY(const std::vector<LoopId> k, s_.split(p_.k, {parts_, Int(-1)}));
    std::vector<LoopId> order = {k[0]};
    for (const std::vector<LoopId>& loops : {p_.spatial, {p_.m, p_.n}, p_.reduce, {k[1]}}) {
      order.insert(order.end(), loops.begin(), loops.end());
    }
    PRUNERC_TRY_VOID(s_.reorder(order));
    PRUNERC_TRY(const BlockId parts, s_.rfactor(k[0], 0));
    const ir::Block* block = find_block(s_.program(), parts);
    for (std::size_t d = 0; d < block->writes[0].region.size(); ++d) {
      const ir::Expr at = block->writes[0].region[d].min;
      const std::size_t first = mapping_.outer.size();
      if (mentions(at, block->iters[first].var->id)) p_.out_m = d;
      if (mentions(at, block->iters[first + 1].var->id)) p_.out_n = d;
    }
    PRUNERC_TRY(p_.out, s_.cache_write(parts, 0, ir::Scope::kLocal));
    p_.block = parts;
    p_.spatial.insert(p_.spatial.begin(), k[0]);
    p_.k = k[1];
    return {};
  }

  Result<void> cut() {
    PRUNERC_TRY(m_.loops, s_.split(p_.m, {Int(-1), m_.warps, m_.tiles, Int(tile_[0])}));
    PRUNERC_TRY(n_.loops, s_.split(p_.n, {Int(-1), n_.warps, n_.tiles, Int(n_.unit / tile_[1]),
                                          Int(tile_[1])}));
    PRUNERC_TRY(k_, s_.split(p_.k, {Int(-1), steps_, Int(tile_[2])}));
    std::vector<LoopId> order = p_.spatial;
    const auto add = [&](std::initializer_list<LoopId> loops) {
      order.insert(order.end(), loops.begin(), loops.end());
    };
    add({m_.loops[0], n_.loops[0]});
    order.insert(order.end(), p_.reduce.begin(), p_.reduce.end());
    add({k_[0], m_.loops[1], n_.loops[1], k_[1], m_.loops[2], n_.loops[2], n_.loops[3], m_.loops[3],
         n_.loops[4], k_[2]});
    PRUNERC_TRY_VOID(s_.reorder(order));
    PRUNERC_TRY(top_, fuse(p_.spatial));
    std::vector<LoopId> depth = p_.reduce;
    depth.push_back(k_[0]);
    PRUNERC_TRY(k_[0], fuse(depth));
    PRUNERC_TRY(warp_, s_.fuse({m_.loops[1], n_.loops[1]}));
    return {};
  }

  // Invalid for no loops.
  Result<LoopId> fuse(const std::vector<LoopId>& loops) {
    if (loops.empty()) return LoopId();
    return loops.size() == 1 ? Result<LoopId>(loops[0]) : s_.fuse(loops);
  }

  // The lanes of a warp take out what they hold.
  Result<void> take_out() {
    BlockId copy;
    if (variant_.staged) {
      PRUNERC_TRY(copy, s_.cache_write(p_.out, 0, ir::Scope::kShared));
    }
    PRUNERC_TRY_VOID(leave_registers());
    return copy.valid() ? leave_shared(copy) : Result<void>();
  }

  // Rows of the result in vectors, by all threads together.
  Result<void> leave_shared(BlockId copy) {
    const ir::Block* block = find_block(s_.program(), copy);
    const ir::Buffer& result = s_.program().buffer(block->writes[0].buffer);
    const auto* row = result.shape.back().as<ir::IntImm>();
    const int64_t bytes = ir::byte_size(result.dtype);
    const int64_t wide = kFetchBytes / bytes;
    const int64_t width = row != nullptr ? std::gcd(row->value, wide) : 1;
    const int rank = static_cast<int>(result.shape.size());
    PRUNERC_TRY(const std::vector<LoopId> loops, s_.reverse_compute_at(copy, n_.loops[0]));
    PRUNERC_TRY(const LoopId fused, s_.fuse(loops));
    PRUNERC_TRY(const std::vector<LoopId> parts,
                s_.split(fused, {Int(-1), warps_, Int(kLanes), Int(width)}));
    PRUNERC_TRY_VOID(s_.unroll(parts[0]));
    PRUNERC_TRY_VOID(s_.vectorize(parts[3]));
    PRUNERC_TRY_VOID(s_.bind(parts[2], "thread.x"));
    PRUNERC_TRY_VOID(s_.bind(parts[1], "thread.y"));
    return s_.storage_align(p_.out, 0, rank - 2, 2 * wide, wide);
  }

  Result<void> leave_registers() {
    PRUNERC_TRY(const std::vector<LoopId> loops, s_.reverse_compute_at(p_.out, n_.loops[0]));
    PRUNERC_TRY(const std::vector<LoopId> m, s_.split(loops[p_.out_m], {m_.warps, m_rows_}));
    PRUNERC_TRY(const std::vector<LoopId> n, s_.split(loops[p_.out_n], {n_.warps, n_rows_}));
    std::vector<LoopId> order;
    for (std::size_t i = 0; i < loops.size(); ++i) {
      if (i != p_.out_m && i != p_.out_n) order.push_back(loops[i]);
    }
    order.insert(order.end(), {m[0], n[0], m[1], n[1]});
    PRUNERC_TRY_VOID(s_.reorder(order));
    PRUNERC_TRY(const LoopId warp, s_.fuse({m[0], n[0]}));
    return s_.bind(warp, "thread.y");
  }

  struct Registers {
    std::vector<LoopId> loops;
    std::string load;
  };

  Result<void> load_registers() {
    std::vector<BlockId> copies;
    for (const MatrixOperand* operand : {&p_.a, &p_.b}) {
      const int index = read_index(s_, p_.block, operand->copy);
      PRUNERC_TRY(const BlockId copy, s_.cache_read(p_.block, index, ir::Scope::kLocal));
      copies.push_back(copy);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      PRUNERC_TRY(registers_[i].loops, s_.compute_at(copies[i], k_[1]));
      const MatrixOperand& operand = i == 0 ? p_.a : p_.b;
      registers_[i].load = load_of(dtype_of(operand), i == 0, operand.k_last, n_.unit > tile_[1]);
    }
    return {};
  }

  const ir::Buffer& buffer_of(const MatrixOperand& operand) const {
    return s_.program().buffer(find_block(s_.program(), operand.copy)->writes[0].buffer);
  }
  std::string_view dtype_of(const MatrixOperand& operand) const {
    return ir::to_string(buffer_of(operand).dtype);
  }

  // The nest of a load over one instruction's operand: rows of A by k, k by columns of B.
  Result<void> fill_registers() {
    for (std::size_t i = 0; i < 2; ++i) {
      const Registers& here = registers_[i];
      if (here.load.empty()) continue;
      const bool is_a = i == 0;
      const bool k_last = (is_a ? p_.a : p_.b).k_last;
      const std::size_t rank = here.loops.size();
      const LoopId k = here.loops[k_last ? rank - 1 : rank - 2];
      const LoopId other = here.loops[k_last ? rank - 2 : rank - 1];
      PRUNERC_TRY(const std::vector<LoopId> parts,
                  s_.split(other, {Int(-1), Int(is_a ? m_.unit : n_.unit)}));
      PRUNERC_TRY_VOID(s_.reorder(is_a ? std::vector<LoopId>{parts[0], parts[1], k}
                                       : std::vector<LoopId>{parts[0], k, parts[1]}));
      PRUNERC_TRY_VOID(s_.tensorize(is_a ? parts[1] : k, here.load));
    }
    return {};
  }

  // All threads of the block fetch a tile together, a vector each.
  Result<void> fetch(const MatrixOperand& operand) {
    const int64_t bytes = ir::byte_size(buffer_of(operand).dtype);
    const int64_t most = std::min(operand.widest, kFetchBytes / bytes);
    std::vector<int64_t> widths;
    for (int64_t width = 1; width <= most; width *= 2) widths.push_back(width);
    PRUNERC_TRY(const std::vector<LoopId> loops, s_.compute_at(operand.copy, k_[0]));
    PRUNERC_TRY(const LoopId fused, s_.fuse(loops));
    PRUNERC_TRY(const std::vector<LoopId> parts,
                s_.split(fused, {Int(-1), warps_, Int(kLanes), context_.pick(widths, most)}));
    PRUNERC_TRY_VOID(s_.unroll(parts[0]));
    PRUNERC_TRY_VOID(s_.vectorize(parts[3]));
    PRUNERC_TRY_VOID(s_.bind(parts[2], "thread.x"));
    PRUNERC_TRY_VOID(s_.bind(parts[1], "thread.y"));
    const int64_t unit = operand.k_last ? tile_[2] : &operand == &p_.a ? m_.unit : n_.unit;
    if (variant_.swizzled && unit * bytes % kPanelBytes == 0) {
      return s_.swizzle(operand.copy, 0, kPanelBytes);
    }
    // Eight rows of 16 bytes for ldmatrix; four of eight elements where lanes walk down columns.
    const bool down = bytes == 4 && !operand.k_last;
    const int64_t offset = (down ? 2 : 1) * kFetchBytes / bytes;
    return s_.storage_align(operand.copy, 0, operand.rank - 2, 2 * offset, offset);
  }

  Result<void> start() {
    PRUNERC_TRY(const BlockId init, s_.decompose_reduction(p_.block, k_[0]));
    // [outside, blocks along m and n, warps, ..]
    return s_.bind(s_.loops_of(init)[top_.valid() ? 3 : 2], "thread.y");
  }

  Result<void> bind_all() {
    PRUNERC_TRY_VOID(s_.bind(warp_, "thread.y"));
    PRUNERC_TRY_VOID(s_.unroll(k_[1]));
    if (top_.valid()) PRUNERC_TRY_VOID(s_.bind(top_, "block.z"));
    PRUNERC_TRY_VOID(s_.bind(m_.loops[0], "block.y"));
    PRUNERC_TRY_VOID(s_.bind(n_.loops[0], "block.x"));
    const Int depth = context_.pick(kPipeline, 2);
    return s_.software_pipeline(k_[0], {Int(0), Int(0), depth}, {0, 1, 2});
  }

  SketchContext& context_;
  schedule::Schedule& s_;
  const schedule::TensorMapping& mapping_;
  MatrixProduct& p_;
  const GpuVariant& variant_;
  std::array<int64_t, 3> tile_ = {1, 1, 1};  // of the instruction: m, n, k
  Cut m_, n_;
  std::vector<LoopId> k_;  // iterations, instructions of one iteration, the instruction's own
  Int steps_, warps_, m_rows_, n_rows_;  // of k; of a block; of a warp
  Int parts_ = 1;                        // of the sum, in blocks of their own
  LoopId top_, warp_;
  std::array<Registers, 2> registers_;  // of A and B
};

}  // namespace

std::vector<std::string_view> tensor_products(const ir::Target& target) {
  std::vector<std::string_view> out;
  for (const Product& product : kProducts) {
    const std::string_view name = product.name;
    const bool lossy = name.substr(name.size() - 4) == "tf32";
    if (target.compute_capability >= product.capability && (!lossy || target.allow_tf32 != 0)) {
      out.push_back(name);
    }
  }
  return out;
}

Result<void> gpu_tensor(SketchContext& context, const schedule::TensorMapping& mapping,
                        MatrixProduct product, const GpuVariant& variant) {
  const schedule::Schedule before = context.schedule.fork();
  const Result<void> done = GpuTensor(context, mapping, &product, variant).run();
  if (!done) context.schedule = before;
  return done;
}

}  // namespace prunerc::search

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
// rounded up to a block's tile by zeros, which a fetch writes; bytes across k it turns. Rows in
// shared memory are odd multiples of 16 bytes, or swizzled in panels as wide as rows are, up to 128
// bytes: eight of them meet eight different banks.
#include "search/space/sketch_rule/gpu/gpu.h"
#include "search/space/sketch_rule/gpu/gpu_warp.h"

#include <numeric>
#include <string>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;

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

class GpuTensor {
 public:
  GpuTensor(SketchContext& context, const schedule::TensorMapping& mapping, MatrixProduct* product,
            const GpuVariant& variant)
      : context_(context),
        s_(context.schedule),
        mapping_(mapping),
        p_(*product),
        variant_(variant),
        warp_(context, product, variant.swizzled ? RowSpread::kSwizzled : RowSpread::kPadded) {}

  Result<void> run() {
    PRUNERC_TRY_VOID(decide());
    if (variant_.split_reduction) PRUNERC_TRY_VOID(split_reduction());
    PRUNERC_TRY_VOID(s_.set_scope(p_.block, 0, ir::Scope::kLocal));
    PRUNERC_TRY_VOID(s_.set_scope(p_.a.copy, 0, ir::Scope::kShared));
    PRUNERC_TRY_VOID(s_.set_scope(p_.b.copy, 0, ir::Scope::kShared));
    PRUNERC_TRY_VOID(cut());
    PRUNERC_TRY_VOID(take_out());
    PRUNERC_TRY_VOID(warp_.load_registers());
    for (const MatrixOperand* operand : {&p_.a, &p_.b}) {
      PRUNERC_TRY_VOID(warp_.fetch(*operand, warp_.k[0], pick_width(*operand)));
    }
    PRUNERC_TRY_VOID(warp_.multiply_tile());
    PRUNERC_TRY_VOID(warp_.fill_registers());
    return bind_all();
  }

 private:
  Int pick_units(const std::vector<int64_t>& values, int64_t extent, int64_t unit, int64_t wanted) {
    return context_.pick(up_to(values, power_of_two(ceil_div(extent, unit))), wanted);
  }

  Int pick_width(const MatrixOperand& operand) {
    const int64_t most = warp_.widest(operand);
    std::vector<int64_t> widths;
    for (int64_t width = 1; width <= most; width *= 2) widths.push_back(width);
    return context_.pick(widths, most);
  }

  Result<void> decide() {
    const auto& [m, n, k] = p_.extents;
    const bool large = m >= kSmall && n >= kSmall;
    warp_.m.warps = pick_units(kWarps, m, warp_.m.unit, 2);
    warp_.m.tiles = pick_units(kRowTiles, m, warp_.m.unit, large ? 4 : 2);
    warp_.n.warps = pick_units(kWarps, n, warp_.n.unit, large ? 4 : 2);
    warp_.n.tiles = pick_units(kColumnTiles, n, warp_.n.unit, 2);
    warp_.steps = pick_units(kDepthTiles, k, warp_.tile[2], 2);
    PRUNERC_TRY_VOID(warp_.combine_cuts());
    PRUNERC_TRY(const Int block_m, s_.product({warp_.m.warps, warp_.m.of_warp}));
    PRUNERC_TRY(const Int block_n, s_.product({warp_.n.warps, warp_.n.of_warp}));
    if (variant_.split_reduction) {
      const int64_t most = k / (2 * warp_.tile[2]);
      if (most < kParts[0]) return error(Diag::kUnsupported, std::string("parts of this sum"));
      parts_ = context_.pick(up_to(kParts, most), 4);
    }
    PRUNERC_TRY(const Int block_k, s_.product({parts_, warp_.steps, Int(warp_.tile[2])}));
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
    PRUNERC_TRY_VOID(warp_.cut(p_.spatial));
    PRUNERC_TRY(top_, fuse_all(context_, p_.spatial));
    return {};
  }

  // The lanes of a warp take out what they hold.
  Result<void> take_out() {
    BlockId copy;
    if (variant_.staged) {
      PRUNERC_TRY(copy, s_.cache_write(p_.out, 0, ir::Scope::kShared));
    }
    PRUNERC_TRY(const std::vector<LoopId> loops, s_.reverse_compute_at(p_.out, warp_.n.loops[0]));
    PRUNERC_TRY_VOID(warp_.leave_registers(loops, p_.out_m, p_.out_n));
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
    PRUNERC_TRY(const std::vector<LoopId> loops, s_.reverse_compute_at(copy, warp_.n.loops[0]));
    PRUNERC_TRY(const LoopId fused, s_.fuse(loops));
    PRUNERC_TRY(const std::vector<LoopId> parts,
                s_.split(fused, {Int(-1), warp_.warps, Int(kWarpLanes), Int(width)}));
    PRUNERC_TRY_VOID(s_.unroll(parts[0]));
    PRUNERC_TRY_VOID(s_.vectorize(parts[3]));
    PRUNERC_TRY_VOID(s_.bind(parts[2], "thread.x"));
    PRUNERC_TRY_VOID(s_.bind(parts[1], "thread.y"));
    return s_.storage_align(p_.out, 0, rank - 2, 2 * wide, wide);
  }

  Result<void> bind_all() {
    if (top_.valid()) PRUNERC_TRY_VOID(s_.bind(top_, "block.z"));
    PRUNERC_TRY_VOID(s_.bind(warp_.m.loops[0], "block.y"));
    PRUNERC_TRY_VOID(s_.bind(warp_.n.loops[0], "block.x"));
    const Int depth = context_.pick(kPipeline, 2);
    return s_.software_pipeline(warp_.k[0], {Int(0), Int(0), depth}, {0, 1, 2});
  }

  SketchContext& context_;
  schedule::Schedule& s_;
  const schedule::TensorMapping& mapping_;
  MatrixProduct& p_;
  const GpuVariant& variant_;
  WarpProduct warp_;
  Int parts_ = 1;  // of the sum, in blocks of their own
  LoopId top_;
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

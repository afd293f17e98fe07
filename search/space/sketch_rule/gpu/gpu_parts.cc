// Rule "parts" for GPUs: few long rows would leave processors idle, so each part of a row has a block of its own.
//
//     for i { for k { A: reduction } }
//   ~>
//     for p bind(block.y) { for i bind(block.x) {
//       for k0 { for k1 unrolled { for k2 bind(thread.x) { for v unrolled { A_rf[p, i] } } } } } }
//     for i { for p { A } }                                  a kernel by other rules
//
// Of sums over columns neighbours are thread.x and places in the part thread.y, as in rule "rows". A part's length
// is a decision, the last part is guarded.
#include "search/space/sketch_rule/gpu/gpu.h"

#include <algorithm>
#include <string>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;

const std::vector<int64_t> kThreads = {128, 256, 512};
const std::vector<int64_t> kColumnThreads = {8, 16};
constexpr int64_t kColumns = 32;
constexpr int64_t kAtOnce = 4;            // vectors that a thread asks for at once
constexpr int64_t kLeastPart = 4096;      // elements: all threads have something to ask for
constexpr int64_t kMostParts = 4096;      // for the second kernel
constexpr int64_t kBlocksPerSm = 4;       // wanted
constexpr int64_t kMostRowsPerSm = 2;     // more rows keep the machine busy
constexpr int64_t kLeastInnerAxis = 128;  // that threads share, rather than the part's own axis

class GpuParts {
 public:
  GpuParts(SketchContext& context, BlockId block)
      : context_(context), s_(context.schedule), block_(block) {}

  Result<BlockId> run() {
    const BlockFacts facts = facts_of(s_, block_);
    if (facts.block == nullptr || !facts.trivial || facts.reduce.empty()) return unsupported();
    by_columns_ = is_along_columns(facts);
    num_rows_ = facts.spatial.size();
    reduce_ = facts.reduce;
    std::stable_partition(reduce_.begin(), reduce_.end(),
                          [](const Axis& axis) { return axis.extent > 1; });
    const std::vector<int64_t> lengths = part_lengths(facts);
    if (lengths.empty()) return unsupported();
    find_cut(facts, lengths);
    const Int length = context_.pick(lengths, lengths.front());
    PRUNERC_TRY(const std::vector<LoopId> k, s_.split(reduce_.front().loop, {Int(-1), length}));
    std::vector<LoopId> order = {k[0]};
    for (const Axis& axis : facts.spatial) order.push_back(axis.loop);
    order.push_back(k[1]);
    for (std::size_t i = 1; i < reduce_.size(); ++i) order.push_back(reduce_[i].loop);
    PRUNERC_TRY_VOID(s_.reorder(order));
    PRUNERC_TRY(const BlockId parts, s_.rfactor(k[0], 0));
    PRUNERC_TRY_VOID(bind(s_.loops_of(parts)));
    return parts;
  }

 private:
  static Error unsupported() { return error(Diag::kUnsupported, std::string("parts of this sum")); }

  // In steps of the outermost summed axis, for enough blocks on all processors; none if rows alone are enough.
  std::vector<int64_t> part_lengths(const BlockFacts& facts) const {
    int64_t rows = 1, step = 1;
    for (const Axis& axis : facts.spatial) rows *= axis.extent;
    for (std::size_t i = 1; i < reduce_.size(); ++i) step *= reduce_[i].extent;
    const int64_t width = by_columns_ ? kColumns : 1;
    const int64_t blocks = ceil_div(rows, width), depth = reduce_.front().extent;
    if (blocks > kMostRowsPerSm * context_.target.num_sms) return {};
    const int64_t wanted = ceil_div(kBlocksPerSm * context_.target.num_sms, blocks);
    std::vector<int64_t> out;
    const int64_t least = ceil_div(kLeastPart, step * width);
    const int64_t near = power_of_two(std::max(ceil_div(depth, wanted), least));
    for (const int64_t length : {near / 2, near, 2 * near, 4 * near}) {
      const int64_t parts = ceil_div(depth, std::max<int64_t>(length, 1));
      if (length >= least && parts > 1 && parts <= kMostParts) out.push_back(length);
    }
    return out;
  }

  // Which axis the threads of a block share, and its neighbours in one access.
  void find_cut(const BlockFacts& facts, const std::vector<int64_t>& lengths) {
    for (std::size_t i = 1; i < reduce_.size() && !by_columns_; ++i) {
      if (reduce_[i].extent >= kLeastInnerAxis) cut_ = i;
    }
    extent_ = cut_ == 0 ? lengths.front() : reduce_[cut_].extent;
    width_ = access_width(s_, *facts.block, reduce_[cut_].var);
  }

  // [parts, rows.., the part, what else is summed..]
  Result<void> bind(const std::vector<LoopId>& loops) {
    const auto part = loops.begin() + 1 + static_cast<std::ptrdiff_t>(num_rows_);
    const std::vector<LoopId> rows(loops.begin() + 1, part);
    const std::vector<LoopId> inner(part, loops.end());
    if (rows.empty()) {
      PRUNERC_TRY_VOID(share_part(inner[cut_]));
      return s_.bind(loops[0], "block.x");
    }
    LoopId row = rows[0];
    if (rows.size() > 1) {
      PRUNERC_TRY(row, s_.fuse(rows));
    }
    if (by_columns_) {
      PRUNERC_TRY(row, share_columns(row, inner));
    } else {
      PRUNERC_TRY_VOID(share_part(inner[cut_]));
    }
    PRUNERC_TRY_VOID(s_.bind(row, "block.x"));
    return s_.bind(loops[0], "block.y");
  }

  Result<void> share_part(LoopId cut) {
    const Int threads =
        context_.pick(up_to(kThreads, power_of_two(ceil_div(extent_, width_))), 256);
    PRUNERC_TRY(const std::vector<LoopId> k,
                s_.split(cut, {Int(-1), Int(kAtOnce), threads, Int(width_)}));
    PRUNERC_TRY_VOID(s_.unroll(k[1]));
    if (width_ > 1) PRUNERC_TRY_VOID(s_.unroll(k[3]));
    return s_.bind(k[2], "thread.x");
  }

  // The loop over blocks of columns.
  Result<LoopId> share_columns(LoopId column, const std::vector<LoopId>& inner) {
    const Int threads = context_.pick(kColumnThreads, 16);
    PRUNERC_TRY(const std::vector<LoopId> j, s_.split(column, {Int(-1), Int(kColumns)}));
    PRUNERC_TRY(const std::vector<LoopId> k, s_.split(inner[0], {Int(-1), Int(kAtOnce), threads}));
    std::vector<LoopId> order = {j[0], k[0], k[1], k[2]};
    order.insert(order.end(), inner.begin() + 1, inner.end());
    order.push_back(j[1]);
    PRUNERC_TRY_VOID(s_.reorder(order));
    PRUNERC_TRY_VOID(s_.unroll(k[1]));
    PRUNERC_TRY_VOID(s_.bind(j[1], "thread.x"));
    PRUNERC_TRY_VOID(s_.bind(k[2], "thread.y"));
    return j[0];
  }

  SketchContext& context_;
  schedule::Schedule& s_;
  BlockId block_;
  std::vector<Axis> reduce_;  // as they are nested in the end, of extent 1 last
  bool by_columns_ = false;
  std::size_t num_rows_ = 0;  // axes
  std::size_t cut_ = 0;       // of the summed axes
  int64_t extent_ = 1, width_ = 1;
};

}  // namespace

Result<BlockId> gpu_parts(SketchContext& context, BlockId block) {
  const schedule::Schedule before = context.schedule.fork();
  Result<BlockId> done = GpuParts(context, block).run();
  if (!done.ok()) context.schedule = before;
  return done;
}

}  // namespace prunerc::search

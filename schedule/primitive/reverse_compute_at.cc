// reverse_compute_at(@C, @L): a consumer moves under a loop of its producers, to what they make.
// Needs: what rewrite/move.h says; @C follows @L, and no writer of its sources does. After: @C's
// variables run over what one iteration of @L has made (D11), also if it reads at (i // 4, i % 4).
//   for o in 4 @L { for i in 4 { block @P [v: S(16) = o*4 + i] { T[v] = X[v] } } }
//   for j in 16 { block @C [v: S(16) = j] { Y[v] = T[v] } }
// ~>
//   for o in 4 @L { for i in 4 { block @P [v: S(16) = o*4 + i] { T[v] = X[v] } }
//                   for ax0 in 4 { block @C [v: S(16) = o*4 + ax0] { Y[v] = T[v] } } }
#include "ir/analysis/region.h"
#include "schedule/legality/access_region.h"
#include "schedule/rewrite/move.h"

#include <optional>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

class ReverseComputeAt : public Move {
 public:
  /// `witness`: null if the program has no tile parameters.
  ReverseComputeAt(const Program& program, const Program* witness)
      : Move(program, Direction::kConsumer), witness_(witness) {}

 private:
  // A read, and where its block's variables run if it decides.
  struct Decided {
    std::size_t read = 0;
    std::vector<IterRange> ranges;
  };
  Result<void> check_neighbours() override;
  Result<std::vector<IterRange>> iter_ranges() override;
  bool decides(const Access& read);
  std::optional<Decided> deciding_read();
  Result<std::optional<Decided>> as_witness();

  const Program* witness_;
};

Result<void> ReverseComputeAt::check_neighbours() {
  const Block& mine = *block().block;
  bool any = false;
  for (const Access& access : mine.reads) {
    for (const std::size_t writer : dataflow_.writers(access.buffer)) {
      if (writer == place_) continue;
      any |= writer >= span_.first && writer < span_.last;
      if (writer >= span_.last) {
        return error(Diag::kBlockProducerLate, mine.id, dataflow_[writer].block->id);
      }
    }
  }
  if (!any || place_ < span_.last) {
    return error(Diag::kBlockNoConsumer, mine.id, std::string("producer"), loop());
  }
  return {};
}

// Does every instance of the consumer find the elements of `read` written in some iteration of the
// loop? Then it may run there and nowhere else. An instance that reads nothing (a padded border)
// would be lost otherwise.
bool ReverseComputeAt::decides(const Access& read) {
  bool whole = false;
  for (const std::size_t place : dataflow_.writers(read.buffer)) {
    if (place < span_.first || place >= span_.last) return false;
    const LeafBlock& writer = dataflow_[place];
    for (const Access& write : writer.block->writes) {
      if (whole || write.buffer != read.buffer) continue;
      whole = covers_domain(b(), program_, writer) &&
              writes_whole_domain_box(b(), *writer.block, write) &&
              covers(b(), domain_box(b(), *writer.block, write),
                     domain_box(b(), *block().block, read), VarRanges()) == Proof::kYes;
    }
  }
  return whole;
}

// One read decides for all variables, so that every instance finds its iteration; the others are
// checked afterwards.
std::optional<ReverseComputeAt::Decided> ReverseComputeAt::deciding_read() {
  const Block& mine = *block().block;
  std::optional<Decided> best;
  int64_t fewest = -1;
  BufferRegion box;
  for (std::size_t r = 0; r < mine.reads.size(); ++r) {
    const Access& access = mine.reads[r];
    if (!decides(access) || !box_under_loop(access.buffer, Touches::kWrites, &box)) continue;
    std::vector<IterRange> found = solve_iters(b(), mine, access, box, ranges_);
    int64_t whole = 0;
    for (const IterRange& range : found) whole += range.min.defined() ? 0 : 1;
    if (fewest < 0 || whole < fewest) {
      fewest = whole;
      best = {r, std::move(found)};
    }
  }
  return best;
}

// Which read decides is structure.
Result<std::optional<ReverseComputeAt::Decided>> ReverseComputeAt::as_witness() {
  ReverseComputeAt there(*witness_, nullptr);
  PRUNERC_TRY_VOID(there.find(block().block->id, loop()));
  std::optional<Decided> decided = there.deciding_read();
  if (!decided) return decided;
  PRUNERC_TRY_VOID(check_open(decided->ranges));
  const Block& mine = *block().block;
  const Access& access = mine.reads[decided->read];
  BufferRegion box;
  box_under_loop(access.buffer, Touches::kWrites, &box);
  decided->ranges = solve_iters(b(), mine, access, box, ranges_);
  return decided;
}

Result<std::vector<IterRange>> ReverseComputeAt::iter_ranges() {
  std::optional<Decided> decided;
  if (witness_ == nullptr) {
    decided = deciding_read();
  } else {
    PRUNERC_TRY(decided, as_witness());
  }
  if (decided) return std::move(decided->ranges);
  std::vector<IterRange> whole;
  for (const IterVar& iter : block().block->iters) whole.push_back({Expr(), iter.extent});
  return whole;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kReverseComputeAt>(const Program& program, const Call& call) {
  const Program* witness = call.open == nullptr ? nullptr : call.open->witness;
  return ReverseComputeAt(program, witness).run(call.block(0), call.loop(1));
}

}  // namespace prunerc::schedule

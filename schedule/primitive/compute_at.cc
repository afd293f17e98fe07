// compute_at(@P, @L): a producer moves under a loop of its consumers and computes what they need.
// Needs: what rewrite/move.h says; @P writes one intermediate, whose readers are under @L. After:
// spatial variables run over the hull of what is read, halos again; never all tiles in each.
//   for i in 16 { block @P [v: S(16) = i] { T[v] = X[v] } }
//   for o in 4 @L { for i in 4 { block @C [v: S(16) = o*4 + i] { Y[v] = T[v] } } }
// ~>
//   for o in 4 @L { for ax0 in 4 { block @P [v: S(16) = o*4 + ax0] { T[v] = X[v] } }
//                   for i in 4 { block @C [v: S(16) = o*4 + i] { Y[v] = T[v] } } }
#include "ir/visit.h"
#include "schedule/legality/access_region.h"
#include "schedule/rewrite/move.h"

#include <optional>
#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

class ComputeAt : public Move {
 public:
  /// `witness`: null if the program has no tile parameters.
  ComputeAt(const Program& program, const Program* witness)
      : Move(program, Direction::kProducer), witness_(witness) {}

 private:
  Result<void> check_neighbours() override;
  Result<std::vector<IterRange>> iter_ranges() override;
  std::vector<IterRange> needed(const BufferRegion& box);
  Result<void> check_repeated(const BufferRegion& box, const std::vector<IterRange>& ranges);

  const Program* witness_;
};

Result<void> ComputeAt::check_neighbours() {
  const Block& mine = *block().block;
  if (mine.writes.size() != 1) {
    return error(Diag::kBlockNotSimple, mine.id, std::string("write one buffer"));
  }
  const Buffer& buffer = program_.buffer(mine.writes[0].buffer);
  if (buffer.role != BufferRole::kIntermediate) {
    return error(Diag::kBufferNotIntermediate, std::string(buffer.name));
  }
  bool any = false;
  for (const std::size_t reader : dataflow_.readers(buffer.id)) {
    if (reader == place_) continue;
    any = true;
    if (reader < span_.first || reader >= span_.last || reader < place_) {
      return error(Diag::kBlockConsumerOutside, dataflow_[reader].block->id, mine.id, loop());
    }
  }
  if (!any) return error(Diag::kBlockNoConsumer, mine.id, std::string("consumer"), loop());
  return {};
}

std::vector<IterRange> ComputeAt::needed(const BufferRegion& box) {
  const Block& mine = *block().block;
  std::vector<IterRange> found = solve_iters(b(), mine, mine.writes[0], box, ranges_);
  for (std::size_t i = 0; i < found.size(); ++i) {
    // A position that is read from a buffer is defined only where its reader's guard holds.
    if (!found[i].min.defined() || !has_load(found[i].min)) continue;
    found[i] = {Expr(), mine.iters[i].extent};
  }
  return found;
}

// All instances run in each iteration although it needs a part of what they write, since nothing
// tells which ones: a loss without an end to it, which nobody asks for.
Result<void> ComputeAt::check_repeated(const BufferRegion& box,
                                       const std::vector<IterRange>& ranges) {
  const Block& mine = *block().block;
  const Access& write = mine.writes[0];
  const BufferRegion all = domain_box(b(), mine, write);
  double times = 1;
  for (const Loop* loop : outer_) times *= static_cast<double>(constant(loop->extent).value_or(1));
  bool unsolved = false;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (mine.iters[i].kind != IterKind::kSpatial) continue;
    if (ranges[i].by_map && !ranges[i].min.defined()) continue;
    if (ranges[i].min.defined()) {
      times *= static_cast<double>(constant(ranges[i].extent).value_or(1)) /
               static_cast<double>(constant(mine.iters[i].extent).value_or(1));
      continue;
    }
    for (std::size_t d = 0; d < box.box.size() && !is_one(mine.iters[i].extent); ++d) {
      const std::optional<int64_t> wanted = constant(box.box[d].extent);
      const std::optional<int64_t> written = constant(all.box[d].extent);
      unsolved |= wanted && written && *wanted < *written && !has_load(box.box[d].min) &&
                  mentions(write.region[d].min, mine.iters[i].var->id);
    }
  }
  if (!unsolved || times < 2) return {};
  return with_detail(
      error(Diag::kTileRecomputed, mine.id, std::string(program_.buffer(box.buffer).name), loop()),
      std::to_string(static_cast<int64_t>(times)));
}

Result<std::vector<IterRange>> ComputeAt::iter_ranges() {
  BufferRegion box;
  box_under_loop(block().block->writes[0].buffer, Touches::kReads, &box);
  std::vector<IterRange> found = needed(box);
  if (witness_ == nullptr) {
    PRUNERC_TRY_VOID(check_repeated(box, found));
    return found;
  }
  ComputeAt there(*witness_, nullptr);
  PRUNERC_TRY_VOID(there.find(block().block->id, loop()));
  PRUNERC_TRY(const std::vector<IterRange> closed, there.iter_ranges());
  PRUNERC_TRY_VOID(check_open(closed));
  return found;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kComputeAt>(const Program& program, const Call& call) {
  const Program* witness = call.open == nullptr ? nullptr : call.open->witness;
  return ComputeAt(program, witness).run(call.block(0), call.loop(1));
}

}  // namespace prunerc::schedule

// compute_at(@P, @L): a producer moves under a loop of its consumers and computes what they need.
// Needs: what rewrite/move.h says; @P writes one intermediate, whose readers are under @L. After:
// @P's spatial variables run over the hull of what those readers touch; halos are computed again.
//   for i in 16 { block @P [v: S(16) = i] { T[v] = X[v] } }
//   for o in 4 @L { for i in 4 { block @C [v: S(16) = o*4 + i] { Y[v] = T[v] } } }
// ~>
//   for o in 4 @L { for ax0 in 4 { block @P [v: S(16) = o*4 + ax0] { T[v] = X[v] } }
//                   for i in 4 { block @C [v: S(16) = o*4 + i] { Y[v] = T[v] } } }
#include "ir/visit.h"
#include "schedule/rewrite/move.h"

#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

class ComputeAt : public Move {
 public:
  explicit ComputeAt(const Program& program) : Move(program, Direction::kProducer) {}

 private:
  Result<void> check_neighbours() override;
  std::vector<IterRange> iter_ranges() override;
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

std::vector<IterRange> ComputeAt::iter_ranges() {
  const Block& mine = *block().block;
  BufferRegion box;
  box_under_loop(mine.writes[0].buffer, Touches::kReads, &box);
  std::vector<IterRange> found = solve_iters(b(), mine, mine.writes[0], box, ranges_);
  for (std::size_t i = 0; i < found.size(); ++i) {
    // A position that is read from a buffer is defined only where its reader's guard holds.
    if (!found[i].min.defined() || !has_load(found[i].min)) continue;
    found[i] = {Expr(), mine.iters[i].extent};
  }
  return found;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kComputeAt>(const Program& program, const Call& call) {
  return ComputeAt(program).run(call.block(0), call.loop(1));
}

}  // namespace prunerc::schedule

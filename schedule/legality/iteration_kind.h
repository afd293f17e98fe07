// Are a block's declared iteration kinds true?
#ifndef PRUNERC_SCHEDULE_LEGALITY_ITERATION_KIND_H_
#define PRUNERC_SCHEDULE_LEGALITY_ITERATION_KIND_H_

#include "ir/arith/prove.h"
#include "ir/program.h"
#include "ir/support/result.h"

#include <string>
#include <vector>

namespace prunerc::schedule {

/// kYes: true. kNo: some two instances that run certainly contradict. kUnknown: neither was shown.
struct KindCheck {
  ir::Proof proof = ir::Proof::kYes;
  std::string reason;  // empty if kYes
};

/// What the kinds claim: instances that differ in a spatial variable write different elements and
/// do not read what the others write; along reduction variables one element (or tuple) accumulates
/// by an associative and commutative operation, or instances have nothing in common. Opaque
/// variables claim nothing. Declared regions are taken for what is touched. Primitives do not ask
/// this: they prove what they need (DESIGN.md, D8).
/// Cost: microseconds where subscripts are sums of variables; up to max_points points otherwise.
KindCheck check_iteration_kinds(const ir::Program& program, const ir::Block& block,
                                const ir::ProveOptions& options = {.max_points = 1'000'000});

struct DoubtfulKinds {
  ir::BlockId block;
  KindCheck check;  // kNo or kUnknown
};
/// All blocks whose kinds are not shown to be true, in program order.
std::vector<DoubtfulKinds> doubtful_kinds(const ir::Program& program,
                                          const ir::ProveOptions& options = {
                                              .max_points = 1'000'000});

/// What is shown to be false, with little effort, is refused, and a reduction that starts twice: for
/// programs that people wrote.
/// Errors: IterationKind. Cost: some milliseconds, at worst about 0.1 s a block.
Result<void> verify_iteration_kinds(const ir::Program& program);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_ITERATION_KIND_H_

// Are a block's declared iteration kinds true?
#ifndef PRUNERC_SCHEDULE_ITERATION_KIND_H_
#define PRUNERC_SCHEDULE_ITERATION_KIND_H_

#include "ir/analysis/prove.h"
#include "ir/program.h"

#include <string>

namespace prunerc::schedule {

/// kYes: true. kNo: some two instances certainly contradict. kUnknown: neither was shown.
struct KindCheck {
  ir::Proof proof = ir::Proof::kYes;
  std::string reason;  // empty if kYes
};

/// What the kinds claim: instances that differ in a spatial variable write different elements and
/// do not read what the others write; along reduction variables one element (or tuple) accumulates
/// by an associative and commutative operation, or instances have nothing in common. Opaque
/// variables claim nothing. Declared regions are taken for what is touched. Primitives do not ask
/// this: they prove what they need (DESIGN.md, D8).
KindCheck check_iteration_kinds(const ir::Program& program, const ir::Block& block,
                                const ir::ProveOptions& options = {.max_points = 1'000'000});

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_ITERATION_KIND_H_

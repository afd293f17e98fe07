// Bound operator -> Program: one block per stage, a stage per assignment and per reduction.
#ifndef PRUNERC_IR_LANG_LOWER_H_
#define PRUNERC_IR_LANG_LOWER_H_

#include "ir/lang/check.h"
#include "ir/lang/typed.h"
#include "ir/program.h"

namespace prunerc::lang {

/// The block of one stage and the statement that it came from.
struct StageOrigin {
  std::string block;
  SourceRange range;
};

struct LoweredOp {
  ir::Program program;
  std::vector<StageOrigin> stages;
};

/// What can be wrong was reported before, but for the size of what inner reductions are kept in: the
/// program is of no use if that is reported.
LoweredOp lower_operator(const BoundOp& op, const Proofs& proofs, DiagSink& sink);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_LOWER_H_

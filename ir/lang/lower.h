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

/// Total: everything that can be wrong was reported before.
LoweredOp lower_operator(const BoundOp& op, const Proofs& proofs);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_LOWER_H_

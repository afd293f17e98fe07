// What of a program follows from its const inputs alone, and so need not be computed in every call.
#ifndef PRUNERC_IR_ANALYSIS_PROLOGUE_H_
#define PRUNERC_IR_ANALYSIS_PROLOGUE_H_

#include "ir/program.h"
#include "ir/target.h"

#include <cstddef>
#include <vector>

namespace prunerc::ir {

struct Prologue {
  std::vector<std::size_t> stmts;  ///< positions among the statements at the root, ascending
  std::vector<BufferId> results;   ///< intermediates that they write and others read, ascending
};

/// The largest set of statements at the root that read const inputs and each other's results only
/// and write nothing that another statement writes, or that one before them reads. Empty without
/// const inputs. Cost: O(size of the program * statements at the root).
Prologue find_prologue(const Program& program);

/// The statements at the root; none for a program that does nothing.
std::vector<Stmt> root_stmts(const Program& program);

/// The program without its prologue: results of that are const inputs behind the others, and const
/// inputs that only it reads are none any more. All ids stay. A program without a prologue comes back
/// as it is.
Program without_prologue(const Program& program);

/// What one call runs on the target: cost models, features and counts of operations look at this. A
/// GPU prepares nothing, so there it is the whole program.
Program repeated_part(const Program& program, const Target& target);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_PROLOGUE_H_

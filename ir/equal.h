// Three notions of sameness besides identity: equal expressions, structurally equal statements,
// equal fingerprints.
#ifndef PRUNERC_IR_EQUAL_H_
#define PRUNERC_IR_EQUAL_H_

#include "ir/program.h"
#include "ir/support/hash.h"

#include <span>

namespace prunerc::ir {

/// Same structure with the same ids; hashes reject first. Cost: O(size) when equal.
bool structural_equal(Expr a, Expr b);
bool structural_equal(Stmt a, Stmt b);
/// As many, and each pair.
bool structural_equal(std::span<const Expr> a, std::span<const Expr> b);

/// Same programs: names and variables apart, everything agrees, loop, block and buffer ids
/// included.
bool structural_equal(const Program& a, const Program& b);

/// Invariant under renaming and renumbering of everything; differs (with overwhelming probability)
/// otherwise. Buffers count in the order of their first appearance, parameters first.
Fingerprint fingerprint(const Program& program);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_EQUAL_H_

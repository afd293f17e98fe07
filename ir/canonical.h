// Programs apart from names and numbering: what a store of records compares.
#ifndef PRUNERC_IR_CANONICAL_H_
#define PRUNERC_IR_CANONICAL_H_

#include "ir/program.h"

#include <string>

namespace prunerc::ir {

/// The program's text with names and ids by order of appearance: the same for programs that differ
/// in names and loop, block and variable ids alone. Reads back as a program of the same
/// fingerprint.
std::string print_canonical(const Program& program);

/// The same program with loops and blocks numbered 0, 1, .. in program order, and counters right
/// after them, so that a trace means the same whatever the text's own numbers were. Names stay. The
/// program itself if that is so already.
Program renumber(const Program& program);

/// Whether two programs take and give the same: parameters of the same types, shapes and roles in the
/// same order, const where the other's are.
bool same_parameters(const Program& a, const Program& b);

/// The program with the name and the parameters' names of another one of the same parameters; other
/// buffers give way. Cost: O(number of buffers).
Program with_names_of(const Program& program, const Program& of);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_CANONICAL_H_

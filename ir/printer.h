// Programs as text (.prc). What print writes, parse reads back to a structurally equal program.
#ifndef PRUNERC_IR_PRINTER_H_
#define PRUNERC_IR_PRINTER_H_

#include "ir/program.h"

#include <string>

namespace prunerc::ir {

/// The whole program. print(parse(print(p))) == print(p).
std::string print(const Program& program);
/// A part of `program`, for messages and tests. Variables appear under their own names.
std::string print(const Program& program, Stmt stmt);
std::string print(const Program& program, Expr expr);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_PRINTER_H_

// `show --stage mappings`: the ways to compute an operator with tensor instructions.
#ifndef PRUNERC_TOOLS_PRUNERC_MAPPINGS_H_
#define PRUNERC_TOOLS_PRUNERC_MAPPINGS_H_

#include "ir/program.h"

#include <string>

namespace prunerc::cli {

struct MappingOptions {
  std::string target;  // whose instructions, unless one is named
  std::string tensor;  // an intrinsic's name; empty: all of the target's kind
  int rank = 1;        // with `tensor`: whose script is printed
};

/// Prints, for every block, what maps it onto each intrinsic, best first: which variables become
/// which, padding, copies. With a named intrinsic the lines are comments over a script that applies
/// the mapping of the wanted rank. Returns the exit code.
int show_mappings(const ir::Program& program, const MappingOptions& options);

}  // namespace prunerc::cli

#endif  // PRUNERC_TOOLS_PRUNERC_MAPPINGS_H_

// The instruction set that the compiler itself is built for.
#ifndef PRUNERC_TOOLS_PRUNERC_BASELINE_H_
#define PRUNERC_TOOLS_PRUNERC_BASELINE_H_

namespace prunerc::cli {

/// The first part of x86-64-v3 that this CPU lacks ("avx2"), or null.
const char* missing_instructions();

}  // namespace prunerc::cli

#endif  // PRUNERC_TOOLS_PRUNERC_BASELINE_H_

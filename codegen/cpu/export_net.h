// C text of a library of a net: its plans, its sizes, its weights.
#ifndef PRUNERC_CODEGEN_CPU_EXPORT_NET_H_
#define PRUNERC_CODEGEN_CPU_EXPORT_NET_H_

#include "codegen/cpu/export.h"

#include <span>
#include <string>

namespace prunerc::codegen {

/// One, or one for each plan.
std::size_t num_sizes(const CpuLibrary& library);
/// "batch = 1, 2; seq = 32, 64", for a comment in a header, too.
std::string listed_sizes(const NetParts& net);
/// "batch=1,seq=32".
std::string bindings_of(const NetParts& net, const NetPlan& plan);
double flops_of(const NetParts& net, const NetPlan& plan);

/// param_comment with the names of sizes that shapes follow; those that differ otherwise as "8|16".
std::string net_param_comment(const NetParts& net);

/// What stands in front of launcher.c, and what stands behind it.
std::string net_macros(const NetParts& net);
std::string net_text(const CpuLibrary& library);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CPU_EXPORT_NET_H_

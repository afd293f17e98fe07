// Where the shared libraries of a CUDA toolkit may lie: they are opened at run time, never linked.
#ifndef PRUNERC_IR_SUPPORT_CUDA_PATHS_H_
#define PRUNERC_IR_SUPPORT_CUDA_PATHS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc {

/// What to try to open, best first: only what the environment variable `variable` names if it is
/// set, else files
/// called one of `names` that exist in a toolkit ($CUDA_HOME, $CUDA_PATH, /usr/local/cuda), in what
/// `./dev setup --cuda` installed ($XDG_CACHE_HOME/prunerc/cuda or ~/.cache/prunerc/cuda) and in
/// the packages of $VIRTUAL_ENV, and then the bare names, for the system's own search.
std::vector<std::string> cuda_library_candidates(const char* variable,
                                                 std::span<const std::string_view> names);

}  // namespace prunerc

#endif  // PRUNERC_IR_SUPPORT_CUDA_PATHS_H_

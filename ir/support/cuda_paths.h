// Where the shared libraries of a CUDA toolkit may lie: they are opened at run time, never linked.
#ifndef PRUNERC_IR_SUPPORT_CUDA_PATHS_H_
#define PRUNERC_IR_SUPPORT_CUDA_PATHS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc {

/// What to try to open, best first. If the environment variable `variable` is set, only what it
/// names; else each of `names`
///   - in a toolkit: $CUDA_HOME, $CUDA_PATH, /usr/local/cuda;
///   - where `./dev setup --cuda` put it: $XDG_CACHE_HOME/prunerc/cuda or ~/.cache/prunerc/cuda;
///   - in the packages of $VIRTUAL_ENV;
/// as far as the files exist, and then the bare names, for the system's own search.
std::vector<std::string> cuda_library_candidates(const char* variable,
                                                 std::span<const std::string_view> names);

}  // namespace prunerc

#endif  // PRUNERC_IR_SUPPORT_CUDA_PATHS_H_

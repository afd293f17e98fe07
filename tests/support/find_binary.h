// Binaries that tests and benchmarks start.
#ifndef PRUNERC_TESTS_SUPPORT_FIND_BINARY_H_
#define PRUNERC_TESTS_SUPPORT_FIND_BINARY_H_

#include <string>

namespace prunerc::testing {

/// `path` below the current folder, where tests start, or below a folder above the running binary,
/// where benchmarks are; `path` itself if it is in neither.
std::string find_binary(const std::string& path);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SUPPORT_FIND_BINARY_H_

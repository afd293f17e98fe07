// What checking a kernel needs wherever it runs: poison, and a comparison of two runs.
#ifndef PRUNERC_RUNTIME_WORKER_CHECK_H_
#define PRUNERC_RUNTIME_WORKER_CHECK_H_

#include "codegen/artifact.h"

#include <cstdint>
#include <optional>
#include <string>

namespace prunerc::runtime {

/// A NaN in every float type, and an odd number in every other type.
inline constexpr unsigned char kPoisonA = 0xFF;
inline constexpr unsigned char kPoisonB = 0x5A;

/// Finds the first element of an output that differs between two checking runs, the first on
/// kPoisonA, the second on kPoisonB, and says which kind it is.
std::optional<std::string> find_difference(const codegen::ArtifactParam& param,
                                           const unsigned char* first, const unsigned char* second);

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_WORKER_CHECK_H_

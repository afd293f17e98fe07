// The target as a vector: what tells one machine from another for a model that learns from several.
#ifndef PRUNERC_COSTMODEL_FEATURE_HARDWARE_H_
#define PRUNERC_COSTMODEL_FEATURE_HARDWARE_H_

#include "ir/target.h"

#include <array>

namespace prunerc::costmodel {

inline constexpr int kNumHardwareFeatures = 16;

/// In the order of feature.def.
using HardwareFeatures = std::array<float, kNumHardwareFeatures>;

HardwareFeatures hardware_features(const ir::Target& target);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_FEATURE_HARDWARE_H_

// Names of all features, with their units: feature.def.
#ifndef PRUNERC_COSTMODEL_FEATURE_NAMES_H_
#define PRUNERC_COSTMODEL_FEATURE_NAMES_H_

#include <cstdint>
#include <span>
#include <string>

namespace prunerc::costmodel {

enum class FeatureGroup : uint8_t { kStatement, kTag, kFlow, kHardware };

struct FeatureName {
  std::string name;  // "float_mul", "B2.unique_bytes"
  std::string unit;  // "log2", "flag", "ratio"
};

/// By index of the group's vector.
std::span<const FeatureName> feature_names(FeatureGroup group);
/// Index of a name in its group; -1 if there is none.
int find_feature(FeatureGroup group, std::string_view name);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_FEATURE_NAMES_H_

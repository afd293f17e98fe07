#include "costmodel/feature/names.h"

#include "costmodel/feature/features.h"
#include "ir/support/check.h"

#include <array>
#include <vector>

namespace prunerc::costmodel {
namespace {

constexpr std::size_t kNumGroups = 4;
constexpr std::size_t kLengths[kNumGroups] = {kNumStatementFeatures, kNumTagFeatures,
                                              kNumFlowFeatures, kNumHardwareFeatures};

/// The list's groups in its order: the rows of Access stand for five buffers each.
enum class Group : uint8_t { Statement, Access, Tag, Flow, Hardware };  // NOLINT: as in the list

FeatureGroup group_of(Group group) {
  switch (group) {
    case Group::Statement:
    case Group::Access: return FeatureGroup::kStatement;
    case Group::Tag: return FeatureGroup::kTag;
    case Group::Flow: return FeatureGroup::kFlow;
    case Group::Hardware: return FeatureGroup::kHardware;
  }
  PRUNERC_UNREACHABLE("group of features");
}

class Names {
 public:
  Names() {
#define PRUNERC_FEATURE(group, name, unit) add(Group::group, {#name, #unit});
#include "costmodel/feature/feature.def"
#undef PRUNERC_FEATURE
    for (std::size_t g = 0; g < kNumGroups; ++g) {
      PRUNERC_CHECK(groups_[g].size() == kLengths[g], "feature.def and its vectors agree");
    }
  }
  std::span<const FeatureName> of(FeatureGroup group) const {
    return groups_[static_cast<std::size_t>(group)];
  }

 private:
  void add(Group group, FeatureName name) {
    if (group == Group::Access) {
      of_buffer_.push_back(std::move(name));
      return;
    }
    for (int i = 0; i < kNumFeatureBuffers && !of_buffer_.empty(); ++i) {
      for (const FeatureName& f : of_buffer_) {
        groups_[0].push_back({"B" + std::to_string(i) + "." + f.name, f.unit});
      }
    }
    of_buffer_.clear();
    groups_[static_cast<std::size_t>(group_of(group))].push_back(std::move(name));
  }

  std::array<std::vector<FeatureName>, kNumGroups> groups_;
  std::vector<FeatureName> of_buffer_;
};

}  // namespace

std::span<const FeatureName> feature_names(FeatureGroup group) {
  static const Names names;
  return names.of(group);
}

int find_feature(FeatureGroup group, std::string_view name) {
  const std::span<const FeatureName> names = feature_names(group);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace prunerc::costmodel

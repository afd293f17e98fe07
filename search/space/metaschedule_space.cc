#include "search/space/metaschedule_space.h"

#include "search/space/sketch_rule/gpu/gpu.h"

#include <algorithm>
#include <string_view>

namespace prunerc::search {
namespace {

// What wmma of 16 x 16 x 16 is made of since sm_80: the driver's compiler makes two of the first
// from one of f16. Fragments come by ldmatrix in its mma rule, by loads that are no instruction of
// their own in its wmma rule.
constexpr std::string_view kProducts[] = {"mma_m16n8k16_f16", "mma_m16n8k32_s8"};
constexpr std::string_view kLoads = "ldmatrix_";
constexpr std::string_view kLoadTypes[] = {"_f16", "_i8"};

bool has_intrinsic(std::string_view name) {
  if (std::find(std::begin(kProducts), std::end(kProducts), name) != std::end(kProducts)) {
    return true;
  }
  return name.starts_with(kLoads) &&
         std::any_of(std::begin(kLoadTypes), std::end(kLoadTypes),
                     [&](std::string_view type) { return name.ends_with(type); });
}

bool has_sketch(const Sketch& sketch, const std::vector<GpuVariant>& variants) {
  for (const schedule::Instruction& i : sketch.trace.instructions) {
    if (i.primitive != schedule::PrimitiveKind::kTensorize) continue;
    if (!has_intrinsic(std::get<std::string>(i.operands[1]))) return false;
  }
  const auto variant = std::find_if(variants.begin(), variants.end(),
                                    [&](const GpuVariant& v) { return v.name == sketch.name; });
  if (variant == variants.end()) return true;
  // One mapping is proposed; sums are not cut for more blocks; no instructions of warpgroups; two
  // products are two kernels.
  return variant->mapping <= 1 && !variant->split_reduction && variant->wgmma.warpgroups == 0 &&
         !variant->chain && !variant->parts;
}

}  // namespace

SearchSpace metaschedule_space(SearchSpace space) {
  const std::vector<GpuVariant> variants = gpu_variants();
  std::erase_if(space.sketches, [&](const Sketch& s) { return !has_sketch(s, variants); });
  return space;
}

}  // namespace prunerc::search

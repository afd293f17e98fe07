#include "codegen/cpu/features.h"

#include <algorithm>

namespace prunerc::codegen {
namespace {

constexpr auto kA = CpuidRegister::kEax, kB = CpuidRegister::kEbx, kC = CpuidRegister::kEcx,
               kD = CpuidRegister::kEdx;
constexpr uint64_t kYmm = 0x6, kZmm = 0xe6, kTiles = 0x60000, kApx = uint64_t{1} << 19;
constexpr uint32_t kExtended = 0x80000001;

// Source: Intel 64 and IA-32 Software Developer's Manual, CPUID; AMD64 Programmer's Manual 3, E.3.
constexpr CpuFeature kFeatures[] = {
    {"sse3", 1, 0, kC, 0, 0},
    {"ssse3", 1, 0, kC, 9, 0},
    {"sse4.1", 1, 0, kC, 19, 0},
    {"sse4.2", 1, 0, kC, 20, 0},
    {"popcnt", 1, 0, kC, 23, 0},
    {"movbe", 1, 0, kC, 22, 0},
    {"lzcnt", kExtended, 0, kC, 5, 0},
    {"sse4a", kExtended, 0, kC, 6, 0},
    {"avx", 1, 0, kC, 28, kYmm},
    {"f16c", 1, 0, kC, 29, kYmm},
    {"fma", 1, 0, kC, 12, kYmm},
    {"xop", kExtended, 0, kC, 11, kYmm},
    {"fma4", kExtended, 0, kC, 16, kYmm},
    {"tbm", kExtended, 0, kC, 21, 0},
    {"bmi", 7, 0, kB, 3, 0},
    {"bmi2", 7, 0, kB, 8, 0},
    {"avx2", 7, 0, kB, 5, kYmm},
    {"gfni", 7, 0, kC, 8, 0},
    {"avxvnni", 7, 1, kA, 4, kYmm},
    {"avxifma", 7, 1, kA, 23, kYmm},
    {"avxneconvert", 7, 1, kD, 5, kYmm},
    {"avxvnniint8", 7, 1, kD, 4, kYmm},
    {"avxvnniint16", 7, 1, kD, 10, kYmm},
    {"avx512f", 7, 0, kB, 16, kZmm},
    {"avx512dq", 7, 0, kB, 17, kZmm},
    {"avx512ifma", 7, 0, kB, 21, kZmm},
    {"avx512cd", 7, 0, kB, 28, kZmm},
    {"avx512bw", 7, 0, kB, 30, kZmm},
    {"avx512vl", 7, 0, kB, 31, kZmm},
    {"avx512vbmi", 7, 0, kC, 1, kZmm},
    {"avx512vbmi2", 7, 0, kC, 6, kZmm},
    {"avx512vnni", 7, 0, kC, 11, kZmm},
    {"avx512bitalg", 7, 0, kC, 12, kZmm},
    {"avx512vpopcntdq", 7, 0, kC, 14, kZmm},
    {"avx512fp16", 7, 0, kD, 23, kZmm},
    {"avx512bf16", 7, 1, kA, 5, kZmm},
    {"avx10.1-256", 7, 1, kD, 19, kYmm},
    {"avx10.1-512", 7, 1, kD, 19, kZmm},
    {"egpr", 7, 1, kD, 21, kApx},
};

constexpr CpuFeature kTileFeatures[] = {
    {"amx-tile", 7, 0, kD, 24, kTiles},
    {"amx-int8", 7, 0, kD, 25, kTiles},
    {"amx-bf16", 7, 0, kD, 22, kTiles},
};

}  // namespace

std::vector<CpuFeature> needed_features(const std::vector<std::string>& enabled,
                                        const std::vector<std::string>& tiles) {
  std::vector<CpuFeature> needed;
  const auto add = [&](const auto& table, const std::vector<std::string>& names) {
    for (const CpuFeature& feature : table) {
      if (std::find(names.begin(), names.end(), feature.name) != names.end())
        needed.push_back(feature);
    }
  };
  add(kFeatures, enabled);
  add(kTileFeatures, tiles);
  return needed;
}

}  // namespace prunerc::codegen

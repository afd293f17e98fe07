// Features of x86-64 CPUs: which ones code needs, and where CPUID tells of them.
#ifndef PRUNERC_CODEGEN_CPU_FEATURES_H_
#define PRUNERC_CODEGEN_CPU_FEATURES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::codegen {

enum class CpuidRegister : uint8_t { kEax, kEbx, kEcx, kEdx };

struct CpuFeature {
  std::string_view name;  ///< LLVM's
  uint32_t leaf = 0;
  uint32_t subleaf = 0;
  CpuidRegister where = CpuidRegister::kEax;
  int bit = 0;
  uint64_t registers = 0;  ///< bits of XCR0 that the operating system must have set
};

/// Those of LLVM's features that code can depend on without having asked for them by name, in a
/// fixed order; behind them those of `tiles`. What LLVM emits only for intrinsics is no need: AES and
/// random numbers we never write, and what uses tile registers (AMX) says so (Artifact::tile_features).
std::vector<CpuFeature> needed_features(const std::vector<std::string>& enabled,
                                        const std::vector<std::string>& tiles = {});

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CPU_FEATURES_H_

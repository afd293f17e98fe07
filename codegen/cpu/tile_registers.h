// Which of the eight tile registers holds what, and when it must be loaded.
#ifndef PRUNERC_CODEGEN_CPU_TILE_REGISTERS_H_
#define PRUNERC_CODEGEN_CPU_TILE_REGISTERS_H_

#include "codegen/cpu/tile_region.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace prunerc::codegen {

/// Sizes of all registers.
using TileConfig = std::array<TileShape, kNumTileRegisters>;

/// The memory that the instruction ldtilecfg reads.
/// Source: Intel 64 and IA-32 Software Developer's Manual 1, 18.2.
std::array<uint8_t, 64> config_bytes(const TileConfig& config);

/// Where the factors of a product are, and whether they are loaded for it.
struct TileUse {
  int a = 0, b = 0;
  bool loads_a = true, loads_b = true;
};

struct TilePlan {
  TileConfig config{};
  /// The sizes in force do not do: they change for the region.
  bool has_own_config = false;
  std::vector<int> sums;  ///< by TileRegion::sums
  /// By product, in the order of the items, those of loops where the loops are. What a loop's iteration
  /// loads is gone in the next one.
  std::vector<TileUse> uses;
};

/// Registers for all sums, and of the rest so many for either factor that the fewest loads are left:
/// of products without a loop between them each finds what another one loaded, and what is wanted
/// again latest makes room. `in_force` (null: nothing) are the sizes that registers have so far; some
/// may still be free.
TilePlan plan_tiles(const TileRegion& region, const TileConfig* in_force);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CPU_TILE_REGISTERS_H_

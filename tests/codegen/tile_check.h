// Compiles programs with matrix tiles (AMX), and runs them where the CPU has them.
#ifndef PRUNERC_TESTS_CODEGEN_TILE_CHECK_H_
#define PRUNERC_TESTS_CODEGEN_TILE_CHECK_H_

#include "ir/program.h"
#include "ir/target.h"

#include <cstdint>
#include <string>

namespace prunerc::testing {

ir::Target sapphire_rapids();

/// Whether this process may use them; warns if not.
bool has_tiles(const char* feature = "+amx-int8");

/// What is compiled of `scheduled` computes what `reference` means: compiled anywhere, run where the tiles
/// are.
void check_tiles(const ir::Program& reference, const ir::Program& scheduled, uint64_t seed,
                 const char* feature = "+amx-int8");

/// For sapphire_rapids().
std::string tile_assembly(const ir::Program& program);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_CODEGEN_TILE_CHECK_H_

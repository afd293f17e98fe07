// Do threads of a block meet where they must? A replay of what a lowered GPU program touches.
#ifndef PRUNERC_CODEGEN_RACES_H_
#define PRUNERC_CODEGEN_RACES_H_

#include "ir/program.h"
#include "ir/support/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::codegen {

struct RaceOptions {
  /// Of each kernel's grid, spread evenly from the first to the last.
  int64_t max_blocks = 2;
  /// Then the replay ends. Cost: some hundred nanoseconds each.
  int64_t max_accesses = 20'000'000;
  int max_races = 10;
};

struct RaceReport {
  /// "As[8, 3] is written by thread (3, 0, 0) and read by thread (35, 0, 0) with no barrier
  /// between".
  std::vector<std::string> races;
  int64_t num_accesses = 0;
  int64_t num_blocks = 0;
  /// Places that depend on data, which were not followed.
  int64_t num_unknown = 0;
  bool is_complete = true;  ///< all accesses of the chosen blocks were seen
};

/// Replays the addresses, not the values, of a program that lower_gpu has made, barriers included:
/// two threads of a block that touch one byte of shared or global memory between two barriers, one
/// of them writing, race; so does whoever touches what an asynchronous copy has not delivered yet.
/// Bytes are those of the storage plan, so buffers that share memory are seen to. Independent of
/// insert_barriers, which decides by sets of buffers. Errors: those of find_kernels and
/// plan_gpu_storage.
Result<RaceReport> find_races(const ir::Program& lowered, const RaceOptions& options = {});

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_RACES_H_

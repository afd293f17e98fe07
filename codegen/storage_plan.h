// Where the intermediate buffers of a lowered program live: on a thread's stack or at an offset of
// the workspace.
#ifndef PRUNERC_CODEGEN_STORAGE_PLAN_H_
#define PRUNERC_CODEGEN_STORAGE_PLAN_H_

#include "ir/program.h"
#include "ir/support/result.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace prunerc::codegen {

/// Stack: one per execution of the Alloc. Shared: in the part of the workspace that all workers
/// see. Worker: in the part of the worker that runs the enclosing parallel loop's iteration.
enum class Place : uint8_t { kStack, kShared, kWorker };

struct Slot {
  Place place = Place::kStack;
  /// From the start of the part; a multiple of kStorageAlignment; 0 on the stack. Units: bytes.
  int64_t offset = 0;
  int64_t size_bytes = 0;  // of the buffer itself
  bool operator==(const Slot&) const = default;
};

/// Where a kernel finds a parameter: so many bytes behind the address that one of its arguments is.
struct ParamPlace {
  int32_t argument = 0;
  int64_t offset_bytes = 0;
  bool operator==(const ParamPlace&) const = default;
};

struct StoragePlan {
  std::vector<ParamPlace> params;  // by parameter; empty: each is the argument of its number
  std::unordered_map<ir::BufferId, Slot> slots;  // of every buffer with an Alloc
  int64_t workspace_bytes = 0;
  int64_t workspace_bytes_per_worker = 0;
};

inline constexpr int64_t kStorageAlignment = 64;
/// A thread's stack holds the buffers up to this size; larger ones would risk small thread stacks.
inline constexpr int64_t kMaxStackBufferBytes = 16 * 1024;
/// All stack buffers of one kernel together, each counted once.
inline constexpr int64_t kMaxStackBytes = 64 * 1024;
/// Beside them, what copies of unrolled loops may have of their own in one function, so that it
/// becomes registers.
inline constexpr int64_t kMaxTileStackBytes = kMaxStackBytes / 2;

/// Number of elements and bytes of a buffer with constant shape. Errors: Unsupported (a shape that
/// is not constant, or a size beyond 2^46 bytes).
Result<int64_t> buffer_elems(const ir::Buffer& buffer);
Result<int64_t> buffer_bytes(const ir::Buffer& buffer);

/// Plans every Alloc of a lowered program: small buffers go to the stack, large ones to the lowest
/// offset at which they overlap none that holds values at the same time. Cost: O(size of the
/// program + square of the number of large buffers). Errors: Unsupported.
Result<StoragePlan> plan_storage(const ir::Program& lowered);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_STORAGE_PLAN_H_

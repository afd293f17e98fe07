// How near a kernel comes to what its machine can do. Every share of a limit that is printed is
// made here.
#ifndef PRUNERC_TOOLS_DRIVER_LIMITS_H_
#define PRUNERC_TOOLS_DRIVER_LIMITS_H_

#include "ir/target.h"
#include "runtime/measurement.h"
#include "search/space/task.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc {

/// What bounds a kernel's time from below.
enum class LimitUnit : uint8_t { kNone, kArithmetic, kL1, kL2, kL3, kMemory };
/// "L2 bandwidth".
std::string_view to_string(LimitUnit unit);

/// The innermost memory level that holds an operator's `bytes`: each core's share of them for L1
/// and L2. Warm data stay there from one run to the next; on a GPU, whose L2 is cleared before each
/// run, and with flushed caches they come from memory.
LimitUnit memory_level(double bytes, const ir::Target& target, runtime::CacheState cache);

struct TaskLimit {
  LimitUnit unit = LimitUnit::kNone;
  double ns = 0;  ///< 0 if the target knows no rate
};

/// The larger of the times that arithmetic and compulsory traffic take at the target's rates, by
/// Task::work. None where integer arithmetic is what bounds: its rate is measured nowhere.
/// Elements narrower than f32 have as many more lanes; products of f16 and bf16 on a GPU have its
/// tensor instructions, those of bytes and bf16 on a CPU its matrix tiles, at the target's clock.
TaskLimit limit_of(const search::Task& task,
                   runtime::CacheState cache = runtime::CacheState::kWarm);

/// No kernel can be this fast: twice the arithmetic rate that one thread showed, on every thread (all
/// of them together may have been measured beside other work). A CPU that was busy all the time while
/// it was measured gets what two vectors a cycle at the highest clock that is sold make, and its matrix
/// tiles at that clock, if the program has elements that these multiply; a GPU, twice what its tensor
/// instructions do, where the elements allow them. Units: ns.
double impossible_ns(const search::Task& task);

/// A line of the roofline: what a task's machine does at most per ns, in operations for arithmetic,
/// else in bytes.
struct Roof {
  LimitUnit unit = LimitUnit::kNone;
  double per_ns = 0;
};
/// Those that are known (of integer arithmetic none is), arithmetic first, then from L1 to memory.
std::vector<Roof> roofs_of(const search::Task& task);

/// Measures the limits of the task's machine anew; null if that is not this machine.
using Remeasure = std::function<ir::Platform()>;

struct LimitShare {
  TaskLimit limit;      ///< the one that `fraction` is of
  double fraction = 0;  ///< of the limit's rate, at most 1; 0 if there is no limit
  std::string note;     ///< empty unless the kernel beat the limit that was kept
};

/// The share of its limit that a kernel reaches. One that beats the limit shows that it was
/// measured too low: it is measured again ("limit remeasured"), and if the kernel beats that too,
/// what the kernel reached is the limit.
LimitShare share_of_limit(const search::Task& task, double measured_ns, const Remeasure& remeasure,
                          runtime::CacheState cache = runtime::CacheState::kWarm);

/// "97% (L2 bandwidth)", "100% (arithmetic, limit remeasured)", "-" without a limit.
std::string to_string(const LimitShare& share);

/// Measures again at most once in a process, for targets whose limits are this machine's; else
/// null.
Remeasure remeasure_here(const ir::Target& target);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_LIMITS_H_

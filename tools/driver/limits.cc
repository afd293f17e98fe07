#include "tools/driver/limits.h"

#include "tools/driver/gpu_platform.h"
#include "tools/driver/platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

namespace prunerc {
namespace {

constexpr double kF32Bytes = 4;
/// Products in a cycle on the matrix tiles (AMX) of a core.
constexpr double kTileBytes = 1024, kTileHalves = 512;

double threads_of(const ir::Target& target) {
  return static_cast<double>(std::max<int64_t>(1, target.num_threads));
}

// Cores that the threads run on: each has an L1 and an L2.
double cores_of(const ir::Target& target) {
  return std::clamp(static_cast<double>(target.num_cores), 1.0, threads_of(target));
}

// Of elements that are read or written. Units: bytes. Masks are not computed with.
double narrower(double bytes, ir::DType dtype) {
  return dtype == ir::DType::kBool ? bytes
                                   : std::min(bytes, static_cast<double>(ir::byte_size(dtype)));
}

double narrowest_param(const search::Task& task) {
  double bytes = kF32Bytes;
  for (const ir::BufferId id : task.base.params()) {
    bytes = narrower(bytes, task.base.buffer(id).dtype);
  }
  return bytes;
}

// Wide parameters may become narrow ones before they are multiplied.
double narrowest_buffer(const search::Task& task) {
  double bytes = kF32Bytes;
  for (const ir::Buffer& buffer : task.base.buffers()) bytes = narrower(bytes, buffer.dtype);
  return bytes;
}

bool has_buffer_of(const search::Task& task, ir::DType dtype) {
  const auto buffers = task.base.buffers();
  return std::any_of(buffers.begin(), buffers.end(),
                     [&](const ir::Buffer& buffer) { return buffer.dtype == dtype; });
}

// Operations in a cycle of a core's matrix tiles on the task's bytes, or on its bf16; 0 without these.
double tile_ops_on_bytes(const search::Task& task) {
  const bool has = has_buffer_of(task, ir::DType::kI8) || has_buffer_of(task, ir::DType::kU8);
  return has && ir::has_feature(task.target, "amx-int8") ? 2 * kTileBytes : 0;
}
double tile_ops_on_halves(const search::Task& task) {
  const bool has = has_buffer_of(task, ir::DType::kBF16);
  return has && ir::has_feature(task.target, "amx-bf16") ? 2 * kTileHalves : 0;
}

// On elements of so many bytes.
double gpu_gflops(const ir::Target& target, double element_bytes) {
  const double lanes = kF32Bytes / element_bytes;
  const double tensor = 2.0 * static_cast<double>(target.num_sms * target.tensor_macs_per_sm) *
                        target.platform.clock_ghz;
  const bool uses_tensor = lanes > 1 || target.allow_tf32 != 0;
  // Tensor rates are those of elements of two bytes.
  return uses_tensor && tensor > 0 ? tensor * lanes / 2 : target.peak_gflops() * lanes;
}

double arithmetic_gflops(const search::Task& task) {
  const ir::Target& target = task.target;
  if (target.kind != ir::TargetKind::kCpu) return gpu_gflops(target, narrowest_param(task));
  const bool all = target.num_threads > 1;
  const double measured = all ? target.platform.fma_gflops_all : target.platform.fma_gflops;
  const double vectors = measured > 0 ? measured : target.peak_gflops() * threads_of(target);
  // Weights of bytes are widened to what they are multiplied with.
  const double tile_ops =
      task.work.is_integer() ? tile_ops_on_bytes(task) : tile_ops_on_halves(task);
  const double tiles = tile_ops * target.platform.clock_ghz * cores_of(target);
  return std::max(vectors * kF32Bytes / narrowest_param(task), tiles);
}

// Bytes per second of all threads together; 0 if nobody measured it.
double bandwidth(LimitUnit level, const ir::Target& target) {
  const ir::Platform& p = target.platform;
  const bool all = target.kind == ir::TargetKind::kCpu && target.num_threads > 1;
  const auto both = [&](double one, double together) {
    return !all ? one : together > 0 ? together : one * cores_of(target);
  };
  switch (level) {
    case LimitUnit::kL1: return both(p.l1_bandwidth, 0);
    case LimitUnit::kL2: return both(p.l2_bandwidth, p.l2_bandwidth_all);
    case LimitUnit::kL3: return both(p.l3_bandwidth, p.l3_bandwidth_all);
    case LimitUnit::kMemory: return both(p.memory_bandwidth, p.memory_bandwidth_all);
    default: return 0;
  }
}

// A level that was not measured is bounded by the next one towards the core.
LimitUnit measured_level(LimitUnit level, const ir::Target& target) {
  while (level != LimitUnit::kArithmetic && bandwidth(level, target) <= 0) {
    level = static_cast<LimitUnit>(static_cast<int>(level) - 1);
  }
  return level;
}

}  // namespace

std::string_view to_string(LimitUnit unit) {
  constexpr std::array<std::string_view, 6> kNames = {
      "none", "arithmetic", "L1 bandwidth", "L2 bandwidth", "L3 bandwidth", "memory bandwidth"};
  return kNames[static_cast<std::size_t>(unit)];
}

LimitUnit memory_level(double bytes, const ir::Target& target, runtime::CacheState cache) {
  if (target.kind != ir::TargetKind::kCpu || cache == runtime::CacheState::kFlushed) {
    return LimitUnit::kMemory;
  }
  const double share = bytes / cores_of(target);
  if (share <= static_cast<double>(target.l1d_bytes)) return LimitUnit::kL1;
  if (share <= static_cast<double>(target.l2_bytes)) return LimitUnit::kL2;
  return bytes <= static_cast<double>(target.l3_bytes) ? LimitUnit::kL3 : LimitUnit::kMemory;
}

TaskLimit limit_of(const search::Task& task, runtime::CacheState cache) {
  TaskLimit limit;
  const auto raise = [&](LimitUnit unit, double work, double per_ns) {
    if (per_ns > 0 && work / per_ns > limit.ns) limit = {unit, work / per_ns};
  };
  const search::Work& work = task.work;
  raise(LimitUnit::kArithmetic, work.rated_ops(), arithmetic_gflops(task));
  const LimitUnit level = measured_level(memory_level(work.bytes, task.target, cache), task.target);
  raise(level, work.bytes, bandwidth(level, task.target) / 1e9);
  const auto far_bytes = static_cast<double>(task.target.constants_bytes);
  if (far_bytes > 0) {
    const LimitUnit far = measured_level(memory_level(far_bytes, task.target, cache), task.target);
    raise(far, search::const_bytes(task), bandwidth(far, task.target) / 1e9);
  }
  // Nobody measured multiply-adds of integers here: what they bound has no limit that is known.
  if (work.is_integer() && limit.unit == LimitUnit::kArithmetic) return {};
  return limit;
}

double impossible_ns(const search::Task& task) {
  constexpr double kMostGhz = 6.5;
  constexpr double kVectorsPerCycle = 2;
  const ir::Target& target = task.target;
  const bool is_cpu = target.kind == ir::TargetKind::kCpu;
  double gflops = 2 * (is_cpu ? target.peak_gflops() : gpu_gflops(target, narrowest_buffer(task)));
  if (gflops <= 0) return 0;
  if (is_cpu) {
    const double lanes = static_cast<double>(target.vector_bytes) / kF32Bytes;
    gflops = std::max(gflops, 2 * lanes * kVectorsPerCycle * kMostGhz);
    // A lane of dot products takes as many narrow elements as fit it.
    gflops *= kF32Bytes / narrowest_buffer(task);
    const double tile_ops = std::max(tile_ops_on_bytes(task), tile_ops_on_halves(task));
    gflops = std::max(gflops, tile_ops * kMostGhz);
  }
  return std::min(task.flops, task.work.rated_ops()) / (threads_of(target) * gflops);
}

std::vector<Roof> roofs_of(const search::Task& task) {
  std::vector<Roof> roofs;
  if (!task.work.is_integer()) roofs.push_back({LimitUnit::kArithmetic, arithmetic_gflops(task)});
  for (const LimitUnit level :
       {LimitUnit::kL1, LimitUnit::kL2, LimitUnit::kL3, LimitUnit::kMemory}) {
    roofs.push_back({level, bandwidth(level, task.target) / 1e9});
  }
  std::erase_if(roofs, [](const Roof& roof) { return roof.per_ns <= 0; });
  return roofs;
}

LimitShare share_of_limit(const search::Task& task, double measured_ns, const Remeasure& remeasure,
                          runtime::CacheState cache) {
  LimitShare share;
  share.limit = limit_of(task, cache);
  if (measured_ns <= 0 || share.limit.ns <= 0) return share;
  if (share.limit.ns > measured_ns) {
    if (remeasure) {
      search::Task again = task;
      again.target.platform = remeasure();
      share.limit = limit_of(again, cache);
    }
    share.note = remeasure ? "limit remeasured" : "limit raised to what ran";
  }
  share.limit.ns = std::min(share.limit.ns, measured_ns);
  share.fraction = share.limit.ns / measured_ns;
  return share;
}

std::string to_string(const LimitShare& share) {
  if (share.fraction <= 0) return "-";
  return fmt::format("{:.0f}% ({}{}{})", 100 * share.fraction, to_string(share.limit.unit),
                     share.note.empty() ? "" : ", ", share.note);
}

Remeasure remeasure_here(const ir::Target& target) {
  const bool on_cpu = target.kind == ir::TargetKind::kCpu;
  if (!runs_here(target) || target.kind == ir::TargetKind::kCudaHost) return nullptr;
  return [on_cpu, width = target.vector_bytes, old = target.platform] {
    if (!on_cpu) {
      const Result<GpuPlatform> gpu = gpu_platform(true);
      return gpu.ok() ? gpu->target.platform : old;
    }
    static std::mutex mutex;
    static std::map<int64_t, ir::Platform> done;
    const std::lock_guard lock(mutex);
    const auto found = done.find(width);
    if (found != done.end()) return found->second;
    return done.emplace(width, measure_host(width, host_limits(width)).best).first->second;
  };
}

}  // namespace prunerc

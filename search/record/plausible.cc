#include "search/record/plausible.h"

#include "ir/analysis/in_bounds.h"
#include "ir/canonical.h"
#include "ir/equal.h"
#include "ir/parser.h"
#include "ir/verify.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace prunerc::search {

Result<Task> task_of_key(const TaskKey& key) {
  PRUNERC_TRY(ir::Program program, ir::parse(key.program));
  PRUNERC_TRY_VOID(ir::verify(program));
  PRUNERC_TRY_VOID(ir::verify_in_bounds(program));
  PRUNERC_TRY(ir::Target target, ir::target_from_string(key.target));
  return make_task("imported", std::move(program), std::move(target));
}

bool is_own_hash(const TaskKey& key, const ir::Program& program) {
  const ir::Program base = ir::renumber(program);
  if (ir::print_canonical(base) != key.program) return false;
  FingerprintBuilder hash;
  const Fingerprint print = ir::fingerprint(base);
  hash.add(print.high);
  hash.add(print.low);
  hash.add(std::string_view(key.target));
  return hash.finish().to_string() == key.hash;
}

namespace {

// Whether the program has elements that the target's matrix tiles multiply, parameters or not.
bool may_use_tiles(const Task& task) {
  const auto multiplies = [&](const ir::Buffer& buffer) {
    const bool is_byte = buffer.dtype == ir::DType::kI8 || buffer.dtype == ir::DType::kU8;
    return (is_byte && ir::has_feature(task.target, "amx-int8")) ||
           (buffer.dtype == ir::DType::kBF16 && ir::has_feature(task.target, "amx-bf16"));
  };
  const auto buffers = task.base.buffers();
  return std::any_of(buffers.begin(), buffers.end(), multiplies);
}

}  // namespace

double least_possible_ns(const Task& task) {
  // A thread: two vectors of 64 bytes a cycle at 6 GHz, each lane a fused multiply-add, four
  // products of bytes in it; on matrix tiles eight times as many. A GPU: beyond any that is sold.
  constexpr double kThreadOpsPerNs = 2 * 16 * 2 * 4 * 6;
  constexpr double kMatrixTiles = 8;
  constexpr double kThreadBytesPerNs = 1024;
  constexpr double kGpuOpsPerNs = 2e7;
  constexpr double kGpuBytesPerNs = 1e5;
  // A call alone takes longer.
  constexpr double kLeastNs = 1;
  const bool on_cpu = task.target.kind == ir::TargetKind::kCpu;
  const auto threads = static_cast<double>(std::max<int64_t>(1, task.target.num_threads));
  const double thread_ops = kThreadOpsPerNs * (may_use_tiles(task) ? kMatrixTiles : 1);
  const double ops = on_cpu ? threads * thread_ops : kGpuOpsPerNs;
  const double bytes = on_cpu ? threads * kThreadBytesPerNs : kGpuBytesPerNs;
  // Of inputs a gather may need little; outputs are all written.
  double written = 0;
  for (const ir::Buffer& buffer : task.base.buffers()) {
    if (buffer.role != ir::BufferRole::kOutput) continue;
    auto elements = static_cast<double>(ir::byte_size(buffer.dtype));
    for (const ir::Expr extent : buffer.shape) {
      const ir::IntImm* constant = extent.as<ir::IntImm>();
      if (constant != nullptr) elements *= static_cast<double>(constant->value);
    }
    written += elements;
  }
  return std::max({kLeastNs, std::min(task.flops, task.work.rated_ops()) / ops, written / bytes});
}

}  // namespace prunerc::search

#include "search/space/task.h"

#include "ir/analysis/flops.h"
#include "ir/analysis/prologue.h"
#include "ir/canonical.h"
#include "ir/equal.h"

#include <algorithm>

namespace prunerc::search {

std::string target_key(const ir::Target& target) {
  ir::Target fixed = target;
  const Result<ir::Target> named = ir::target_from_string(target.name);
  fixed.platform = named.ok() ? named->platform : ir::Platform{};
  // Measured too, where the GPU is at hand.
  if (named.ok()) fixed.tensor_macs_per_sm = named->tensor_macs_per_sm;
  return ir::to_string(fixed);
}

Task make_task(std::string name, ir::Program base, ir::Target target) {
  Task task;
  task.name = std::move(name);
  // A record holds ids, and names must not matter: both are brought into one form.
  base = ir::renumber(base);
  task.key.program = ir::print_canonical(base);
  task.key.target = target_key(target);
  FingerprintBuilder hash;
  const Fingerprint program = ir::fingerprint(base);
  hash.add(program.high);
  hash.add(program.low);
  hash.add(std::string_view(task.key.target));
  task.key.hash = hash.finish().to_string();
  const ir::Program repeated = ir::repeated_part(base, target);
  if (const Result<ir::OpCounts> ops = ir::count_ops(repeated)) {
    // An integer operator is rated by its integer operations.
    task.flops = ops->flops() > 0 ? ops->flops() : ops->integer;
  }
  if (const Result<int64_t> bytes = ir::compulsory_bytes(repeated)) {
    task.bytes = static_cast<double>(*bytes);
  }
  task.work = work_of(repeated);
  task.base = std::move(base);
  task.target = std::move(target);
  return task;
}

Task derived_task(const Task& spec, const ir::Program& program, std::string recipe) {
  Task task =
      make_task(spec.name + ", " + recipe, ir::with_names_of(program, spec.base), spec.target);
  task.op_text = spec.op_text;
  task.bindings = spec.bindings;
  task.weight = spec.weight;
  task.spec = spec.base;
  task.recipe = std::move(recipe);
  return task;
}

double const_bytes(const Task& task) {
  double sum = 0;
  for (const ir::BufferId id : task.base.params()) {
    const ir::Buffer& buffer = task.base.buffer(id);
    if (!buffer.is_const) continue;
    auto bytes = static_cast<double>(ir::byte_size(buffer.dtype));
    for (const ir::Expr extent : buffer.shape)
      bytes *= static_cast<double>(extent.as<ir::IntImm>()->value);
    sum += bytes;
  }
  return sum;
}

double limit_ns(const Task& task) {
  const ir::Platform& platform = task.target.platform;
  const bool one_thread = task.target.num_threads <= 1;
  double gflops = task.target.peak_gflops();
  if (!one_thread && task.target.kind == ir::TargetKind::kCpu) {
    gflops = platform.fma_gflops_all > 0 ? platform.fma_gflops_all
                                         : gflops * static_cast<double>(task.target.num_threads);
  }
  // Data that fits into the last cache stays there between the runs of a measurement.
  const bool cached = task.bytes < static_cast<double>(task.target.l3_bytes) / 2;
  double bandwidth = 0;
  if (one_thread) {
    bandwidth = cached ? platform.l3_bandwidth : platform.memory_bandwidth;
  } else {
    bandwidth = cached ? platform.l3_bandwidth_all : platform.memory_bandwidth_all;
  }
  if (cached && task.bytes < static_cast<double>(task.target.l2_bytes) / 2) {
    bandwidth = one_thread ? platform.l2_bandwidth : platform.l2_bandwidth_all;
  }
  const double compute = gflops > 0 ? task.flops / gflops : 0;
  const double traffic = bandwidth > 0 ? task.bytes / bandwidth * 1e9 : 0;
  return std::max(compute, traffic);
}

}  // namespace prunerc::search

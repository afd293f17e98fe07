#include "tools/driver/t4/t4.h"

#include "ir/equal.h"
#include "ir/support/parallel.h"
#include "schedule/schedule.h"
#include "search/record/restore.h"
#include "tools/driver/prunerc.h"
#include "tools/driver/t4/t4_kernel.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace prunerc {
namespace {

/// Devices as their drivers call them.
struct DeviceName {
  std::string_view theirs, ours;
};
constexpr DeviceName kDevices[] = {
    {"NVIDIA GeForce RTX 2080 Ti", "cuda:rtx2080ti"},
    {"NVIDIA TITAN RTX", "cuda:titan-rtx"},
    {"NVIDIA GeForce RTX 3090", "cuda:rtx3090"},
    {"NVIDIA GeForce RTX 3060 Laptop GPU", "cuda:rtx3060-laptop"},
    {"NVIDIA RTX A4000", "cuda:a4000"},
    {"NVIDIA RTX A6000", "cuda:a6000"},
    {"NVIDIA A100-PCIE-40GB", "cuda:a100-40"},
};

Error no_schedule(const std::string& path, std::size_t row, std::string_view op) {
  return error(
      Diag::kT4Damaged, path,
      fmt::format("row {}: no configuration of {} that can be written as a schedule", row + 1, op));
}

Result<search::PoolRow> pool_row(const T4Kernel& kernel,
                                 const std::vector<search::Sketch>& sketches, const T4File& file,
                                 std::size_t at, const std::string& path) {
  const T4Row& from = file.rows[at];
  T4Values values;
  for (std::size_t i = 0; i < file.params.size(); ++i) values[file.params[i]] = from.values[i];
  const std::optional<T4Point> point = kernel.point(values);
  std::optional<std::vector<schedule::Decision>> decisions;
  if (point) {
    decisions = t4_decisions(sketches[static_cast<std::size_t>(point->sketch)], *point);
  }
  if (!decisions) return no_schedule(path, at, kernel.op);
  search::PoolRow row;
  row.sketch = point->sketch;
  row.decisions = *std::move(decisions);
  const search::Measurement& m = from.measurement;
  row.status = m.status;
  row.num_samples = static_cast<int>(m.samples_ns.size());
  row.median_ns = m.median_ns;
  row.spread = m.spread;
  row.build_s = m.build_s;
  row.measure_s = m.measure_s;
  return row;
}

// The low bits of each row's program: what `instantiate` makes, whose limits are the target's
// business and not the data's. Nothing where the schedule is refused.
std::vector<std::optional<uint32_t>> fingerprints(const ir::Program& base,
                                                  const search::Pool& pool) {
  ThreadPool threads(0);
  return threads.map<std::optional<uint32_t>>(pool.rows.size(), [&](std::size_t i) {
    const search::PoolRow& row = pool.rows[i];
    const schedule::Trace& trace = pool.sketches[static_cast<std::size_t>(row.sketch)].trace;
    const Result<schedule::Schedule> made =
        schedule::replay(base, trace, {.decisions = row.decisions});
    std::optional<uint32_t> bits;
    if (made.ok()) bits = search::low_bits(ir::fingerprint(ir::compact(made->program())));
    return bits;
  });
}

}  // namespace

Result<ir::Target> t4_device(const std::string& name) {
  for (const DeviceName& device : kDevices) {
    if (device.theirs == name) return ir::target_from_string(device.ours);
  }
  Result<ir::Target> target = ir::target_from_string(name);
  const bool is_gpu = target.ok() && target->kind == ir::TargetKind::kCuda;
  if (!is_gpu) return error(Diag::kT4Device, name);
  return target;
}

Result<search::Pool> import_t4(const T4File& file, const std::string& path,
                               const std::string& device) {
  PRUNERC_TRY(const T4Kernel* const kernel, find_t4_kernel(file.params));
  PRUNERC_TRY(ir::Target target, t4_device(device.empty() ? file.device : device));
  if (!file.problem_size.empty() && file.problem_size != kernel->problem_size) {
    return error(Diag::kT4Damaged, path, fmt::format("another size than that of {}", kernel->op));
  }
  PRUNERC_TRY(const ir::Program base, t4_program(*kernel));
  search::Task task = search::make_task(std::string(kernel->op), base, std::move(target));
  task.op_text = kernel->text;
  search::SearchSpace space;
  PRUNERC_TRY(space.sketches, kernel->sketches(task.base));
  search::Pool pool = search::make_pool(task, space);
  pool.timer = "as the file's autotuner timed it; median of its samples";
  pool.version = kVersion;
  for (std::size_t i = 0; i < file.rows.size(); ++i) {
    PRUNERC_TRY(search::PoolRow row, pool_row(*kernel, pool.sketches, file, i, path));
    std::string& example = pool.examples[static_cast<std::size_t>(row.status)];
    if (!row.ok() && example.empty()) example = file.rows[i].measurement.detail;
    pool.rows.push_back(std::move(row));
  }
  const std::vector<std::optional<uint32_t>> prints = fingerprints(task.base, pool);
  for (std::size_t i = 0; i < prints.size(); ++i) {
    if (!prints[i]) return no_schedule(path, i, kernel->op);
    pool.rows[i].fingerprint = *prints[i];
  }
  return pool;
}

}  // namespace prunerc

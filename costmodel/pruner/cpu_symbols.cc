// The analyzer's symbols of a CPU.
#include "costmodel/latency/levels.h"
#include "costmodel/pruner/symbols.h"

namespace prunerc::costmodel {
namespace {

constexpr double kFloatBytes = 4;

}  // namespace

StatementSymbols cpu_symbols(const NestTable& table, const Nest& nest, const PrunerDevice& device,
                             const StatementSymbols& before) {
  const CpuLevels levels(table, nest, device.vector_bytes, device.transaction_bytes);
  StatementSymbols s;
  s.buffer = levels.result();
  s.accesses = before.accesses;
  s.blocks = levels.tasks();
  // A lane of the register that its type fills: the device's lanes are those of f32.
  s.threads = levels.lanes() * (static_cast<double>(nest.widest_bytes) / kFloatBytes);
  const double ops = count_pruner_ops(nest);
  s.flops = levels.iterations() * ops;
  for (const ir::BufferId id : levels.buffers()) {
    const auto element = static_cast<double>(ir::byte_size(table.program().buffer(id).dtype));
    const TaskTile tile = levels.task_tile(id);
    const Sym global = levels.is_global(id);
    s.shared_bytes += levels.live_bytes(id);
    s.shared += levels.live_bytes(id) / element;
    s.dram_bytes += select(global, tile.bytes * tile.outside, 0);
    s.dram += select(global, tile.bytes * tile.outside / element, 0);
    s.useful_bytes += select(global, tile.bytes, 0);
    s.transferred_bytes += select(global, tile.line_bytes, 0);
    if (ops == 0) continue;
    s.registers += levels.held(id);
    s.accesses += levels.visited(id);
  }
  if (ops == 0) return s;
  s.flops_per_thread = levels.visit_instances() * ops;
  s.reuse = 1 + s.flops_per_thread / s.accesses;
  return s;
}

}  // namespace prunerc::costmodel

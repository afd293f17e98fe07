#include "costmodel/latency/roofline.h"

#include "costmodel/latency/symbols.h"

namespace prunerc::costmodel {

LatencyEstimate estimate_latency(const ir::Program& program, const ir::Target& target) {
  const LatencySymbols s = latency_symbols(program, target);
  PRUNERC_CHECK(s.total_ns.is_constant(), "a program without parameters has numbers");
  return {.total_ns = s.total_ns.value(),
          .core_ns = s.core_ns.value(),
          .l2_ns = s.l2_ns.value(),
          .l3_ns = s.l3_ns.value(),
          .memory_ns = s.memory_ns.value(),
          .latency_ns = s.latency_ns.value(),
          .launch_ns = s.launch_ns.value(),
          .code_size = s.code_size.value(),
          .max_tile_registers = s.max_tile_registers.value()};
}

}  // namespace prunerc::costmodel

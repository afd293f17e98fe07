#include "costmodel/latency/symbols.h"

#include "costmodel/latency/cpu.h"
#include "costmodel/latency/gpu.h"
#include "costmodel/latency/nest.h"
#include "ir/analysis/prologue.h"

namespace prunerc::costmodel {

LatencySymbols latency_symbols(const ir::Program& whole, const ir::Target& target,
                               Coefficients coefficients, std::span<const OpenAttr> attrs) {
  const ir::Program program = ir::repeated_part(whole, target);
  ParamSpace space(program.domain(), attrs);
  LatencySymbols out;
  out.graph = space.shared_graph();
  const NestTable table(program, space);
  const TermModel model(*out.graph, target.kind, coefficients);
  if (target.kind == ir::TargetKind::kCpu) {
    add_cpu_terms(table, target, model, &out);
  } else {
    add_gpu_terms(table, target, model, &out);
  }
  for (const ir::Expr constraint : program.domain().constraints) {
    out.is_feasible = logical_and(out.is_feasible, space.value(constraint).value_or(1));
  }
  for (const LatencyLimit& limit : out.limits) {
    out.is_feasible = logical_and(out.is_feasible, less_equal(limit.have, limit.most));
  }
  return out;
}

}  // namespace prunerc::costmodel

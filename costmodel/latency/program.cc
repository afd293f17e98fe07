#include "costmodel/latency/program.h"

#include "costmodel/latency/symbols.h"

#include <chrono>

namespace prunerc::costmodel {

SymbolProgram derive(const ir::Program& sketch, const ir::Target& target,
                     const DeriveOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const LatencySymbols symbols =
      latency_symbols(sketch, target, Coefficients::kSymbolic, options.attrs);
  SymbolProgram out;
  Sym is_feasible = symbols.is_feasible;
  if (options.max_code_size > 0) {
    is_feasible = logical_and(is_feasible, less_equal(symbols.code_size, options.max_code_size));
  }
  std::vector<Sym> outputs = {symbols.total_ns, is_feasible};
  out.score = SymbolCode(outputs);
  outputs.push_back(symbols.launch_ns);
  for (const LatencyTerm& term : symbols.terms) {
    out.terms.push_back({term.name, outputs.size(), term.parts_ns.size()});
    outputs.insert(outputs.end(), term.parts_ns.begin(), term.parts_ns.end());
  }
  out.parts = SymbolCode(outputs);
  const CoefficientValues hand = hand_coefficients(target.kind);
  out.score.set_defaults(hand);
  out.parts.set_defaults(hand);
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  out.derive_ms = spent.count();
  return out;
}

}  // namespace prunerc::costmodel

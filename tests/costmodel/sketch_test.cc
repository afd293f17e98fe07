// The analyzers over sketches: the numbers of every candidate are those of its program.
#include "costmodel/latency/program.h"
#include "costmodel/latency/roofline.h"
#include "costmodel/latency/symbols.h"
#include "costmodel/pruner/analyzer.h"
#include "ir/printer.h"
#include "ir/tile_space.h"
#include "tests/costmodel/sketches.h"
#include "tests/support/check.h"

#include <cmath>

namespace prunerc::costmodel {
namespace {

ir::Target target_of(const NamedSketch& sketch) {
  return ir::target_from_string(sketch.target).value();
}

std::vector<std::vector<int64_t>> candidates(const ir::Program& sketch, int n, uint64_t seed) {
  const ir::DomainSpace space(sketch.domain());
  Rng rng(seed);
  std::vector<std::vector<int64_t>> out;
  while (static_cast<int>(out.size()) < n) {
    std::vector<int64_t> point = space.sample(rng);
    if (ir::satisfies_constraints(sketch.domain(), point)) out.push_back(std::move(point));
  }
  return out;
}

struct Columns {
  explicit Columns(const std::vector<std::vector<int64_t>>& points) : data(points[0].size()) {
    for (const auto& point : points) {
      for (std::size_t p = 0; p < point.size(); ++p) {
        data[p].push_back(static_cast<double>(point[p]));
      }
    }
    for (const auto& column : data) pointers.push_back(column.data());
  }
  std::vector<std::vector<double>> data;
  std::vector<const double*> pointers;
};

bool near(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

}  // namespace

TEST_CASE("a sketch's numbers at each candidate are those of the candidate's program") {
  for (const NamedSketch& sketch : all_sketches()) {
    const ir::Target target = target_of(sketch);
    if (target.kind != ir::TargetKind::kCpu) continue;
    const LatencySymbols symbols = latency_symbols(sketch.program, target);
    const Sym wanted[] = {symbols.total_ns,  symbols.core_ns,   symbols.l2_ns,
                          symbols.l3_ns,     symbols.memory_ns, symbols.latency_ns,
                          symbols.launch_ns, symbols.code_size, symbols.max_tile_registers};
    int wrong = 0;
    for (const std::vector<int64_t>& point : candidates(sketch.program, 150, 7)) {
      const std::vector<double> params(point.begin(), point.end());
      const std::vector<double> got = evaluate(wanted, params);
      const ir::Program program = instance(sketch.program, point);
      const LatencyEstimate e = estimate_latency(program, target);
      const double expected[] = {e.total_ns,  e.core_ns,   e.l2_ns,
                                 e.l3_ns,     e.memory_ns, e.latency_ns,
                                 e.launch_ns, e.code_size, e.max_tile_registers};
      for (std::size_t o = 0; o < got.size(); ++o) {
        if (near(got[o], expected[o])) continue;
        if (++wrong > 3) continue;
        std::string values;
        for (const int64_t v : point) values += std::to_string(v) + " ";
        UNSCOPED_INFO(sketch.name << " " << values << "output " << o << ": " << got[o] << " for "
                                  << expected[o] << "\n"
                                  << ir::print(program));
      }
    }
    INFO(sketch.name);
    CHECK(wrong == 0);
  }
}

TEST_CASE("a code that is too large is no candidate") {
  const ir::Program sketch = cpu_gemm(96, 192, 128);
  const ir::Target target = ir::target_from_string("cpu:icelake-server").value();
  const LatencySymbols symbols = latency_symbols(sketch, target);
  const SymbolProgram program = derive(sketch, target, {.max_code_size = 8});
  const auto points = candidates(sketch, 200, 5);
  const Columns columns(points);
  std::vector<double> feasible(points.size());
  double* const outputs[] = {nullptr, feasible.data()};
  SymbolScratch scratch;
  program.score.evaluate(columns.pointers, points.size(), outputs, scratch);
  int num_large = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::vector<double> params(points[i].begin(), points[i].end());
    const bool is_large = evaluate({&symbols.code_size, 1}, params)[0] > 8;
    CHECK(feasible[i] == (is_large ? 0 : 1));
    num_large += is_large ? 1 : 0;
  }
  CHECK(num_large > 10);
  CHECK(num_large < 190);
}

}  // namespace prunerc::costmodel

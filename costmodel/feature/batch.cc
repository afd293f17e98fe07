#include "costmodel/feature/batch.h"

#include "costmodel/latency/nest.h"
#include "ir/analysis/prologue.h"

#include <algorithm>
#include <chrono>

namespace prunerc::costmodel {
namespace {

/// Columns become rows by as many candidates as fill a cache line with their values.
constexpr std::size_t kRows = 8;

}  // namespace

std::size_t FeatureProgram::num_steps() const { return num_flow_steps(layout); }

ModelFeatures FeatureBatch::of(std::size_t candidate) const {
  ModelFeatures out;
  const auto part = [&](const auto& all, std::size_t count, auto* to) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(candidate * count);
    to->assign(first, first + static_cast<std::ptrdiff_t>(count));
  };
  part(statements, num_statements, &out.statements);
  part(flow, num_steps, &out.flow);
  if (!paper_flow.empty()) out.paper_flow = paper_flow[candidate];
  out.tag = tag;
  out.hardware = hardware;
  return out;
}

FeatureProgram derive_features(const ir::Program& whole, const ir::Target& target,
                               const ir::Program* base) {
  const ir::Program sketch = ir::repeated_part(whole, target);
  const auto start = std::chrono::steady_clock::now();
  ParamSpace space(sketch.domain());
  const NestTable table(sketch, space);
  const StoreTable stores(table);
  LayoutBuilder builder;
  add_statements(stores, target, &builder);
  add_flow(stores, target, &builder);
  FeatureProgram out;
  out.code = SymbolCode(builder.outputs);
  out.layout = std::move(builder.layout);
  out.tag = task_tag(base != nullptr ? ir::repeated_part(*base, target) : sketch);
  out.hardware = hardware_features(target);
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  out.derive_ms = spent.count();
  return out;
}

void evaluate(const FeatureProgram& program, std::span<const double* const> columns, std::size_t n,
              FeatureScratch* scratch, FeatureBatch* out) {
  constexpr std::size_t kBlock = SymbolCode::kBlock;
  const FeatureLayout& layout = program.layout;
  const std::size_t num_values = layout.values.size(), num_open = layout.open.size();
  out->size = n;
  out->num_statements = program.num_statements();
  out->num_steps = program.num_steps();
  out->statements.resize(n * out->num_statements);
  out->flow.resize(n * out->num_steps);
  out->paper_flow.resize(layout.paper_steps.empty() ? 0 : n);
  out->tag = program.tag;
  out->hardware = program.hardware;

  scratch->outputs.resize(num_open * kBlock);
  scratch->rows.resize(num_values * kRows);
  for (std::size_t r = 0; r < kRows; ++r) {
    std::copy(layout.values.begin(), layout.values.end(),
              scratch->rows.begin() + static_cast<std::ptrdiff_t>(r * num_values));
  }
  std::vector<double*> outputs(num_open);
  for (std::size_t o = 0; o < num_open; ++o) outputs[o] = scratch->outputs.data() + o * kBlock;
  std::vector<const double*> block(columns.begin(), columns.end());
  for (std::size_t first = 0; first < n; first += kBlock) {
    const std::size_t size = std::min(kBlock, n - first);
    for (std::size_t p = 0; p < columns.size(); ++p) {
      block[p] = columns[p] == nullptr ? nullptr : columns[p] + first;
    }
    program.code.evaluate(block, size, outputs, scratch->symbols);
    for (std::size_t from = 0; from < size; from += kRows) {
      const std::size_t rows = std::min(kRows, size - from);
      for (std::size_t o = 0; o < num_open; ++o) {
        float* to = scratch->rows.data() + layout.open[o];
        for (std::size_t r = 0; r < rows; ++r) {
          to[r * num_values] = static_cast<float>(outputs[o][from + r]);
        }
      }
      for (std::size_t r = 0; r < rows; ++r) {
        const float* const values = scratch->rows.data() + r * num_values;
        const std::size_t candidate = first + from + r;
        StatementFeatures* statement = out->statements.data() + candidate * out->num_statements;
        for (const StoreLayout& store : layout.stores) write_statement(store, values, statement++);
        write_flow(layout, values, out->flow.data() + candidate * out->num_steps);
        if (!out->paper_flow.empty()) write_paper_flow(layout, values, &out->paper_flow[candidate]);
      }
    }
  }
}

}  // namespace prunerc::costmodel

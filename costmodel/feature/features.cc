#include "costmodel/feature/features.h"

#include "costmodel/feature/layout.h"
#include "costmodel/latency/nest.h"
#include "ir/analysis/prologue.h"
#include "ir/support/check.h"

namespace prunerc::costmodel {

ModelFeatures extract(const ir::Program& whole, const ir::Target& target) {
  const ir::Program program = ir::repeated_part(whole, target);
  ParamSpace space(program.domain());
  const NestTable table(program, space);
  const StoreTable stores(table);
  LayoutBuilder builder;
  add_statements(stores, target, &builder);
  add_flow(stores, target, &builder);
  PRUNERC_CHECK(builder.outputs.empty(), "a program without parameters");
  const FeatureLayout& layout = builder.layout;
  ModelFeatures out;
  out.tag = task_tag(program);
  out.hardware = hardware_features(target);
  out.statements.resize(layout.stores.size());
  for (std::size_t i = 0; i < out.statements.size(); ++i) {
    write_statement(layout.stores[i], layout.values.data(), &out.statements[i]);
  }
  out.flow.resize(num_flow_steps(layout));
  write_flow(layout, layout.values.data(), out.flow.data());
  write_paper_flow(layout, layout.values.data(), &out.paper_flow);
  return out;
}

}  // namespace prunerc::costmodel

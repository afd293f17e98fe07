// Made-up programs whose time hangs on their features, for tests of networks and training.
#ifndef PRUNERC_TESTS_COSTMODEL_NN_PROGRAMS_H_
#define PRUNERC_TESTS_COSTMODEL_NN_PROGRAMS_H_

#include "costmodel/model/dataset.h"
#include "costmodel/model/options.h"
#include "tests/costmodel/nn_check.h"

#include <algorithm>
#include <cmath>

namespace prunerc::testing {

/// Small inputs and widths, so that tests are quick; the published networks have their own widths.
inline costmodel::model::NetworkOptions small_options(costmodel::model::NetworkKind kind) {
  return {.kind = kind,
          .statement_inputs = 12,
          .flow_inputs = 7,
          .context_inputs = 3,
          .token_length = 5,
          .token_inputs = 6,
          .statement_width = 16,
          .flow_width = 12,
          .context_width = 5,
          .width = 16,
          .heads = 2,
          .positions = 4,
          .blocks = 2};
}

/// `count` programs of `tasks` tasks on two platforms, one in 20 failed. Statements number
/// `least_statements` to 4, steps 0 to 6.
inline costmodel::model::Dataset random_programs(uint64_t seed, int count, int tasks,
                                                 const costmodel::model::NetworkOptions& o,
                                                 int least_statements = 0) {
  costmodel::model::Dataset data;
  Rng rng(seed);
  for (int i = 0; i < count; ++i) {
    const auto task = static_cast<int32_t>(rng.below(static_cast<uint64_t>(tasks)));
    auto statements = random_matrix<float>(rng, static_cast<int>(rng.between(least_statements, 4)),
                                           o.statement_inputs);
    auto flow = random_matrix<float>(rng, static_cast<int>(rng.between(0, 6)), o.flow_inputs);
    const auto context = random_matrix<float>(rng, 1, o.context_inputs);
    auto tokens = random_matrix<float>(rng, o.token_length, o.token_inputs);
    double cost = 0;
    for (int r = 0; r < statements.rows(); ++r) {
      statements(r, 0) = static_cast<float>(task);
      cost += 1 + static_cast<double>(statements(r, 3));
    }
    for (int r = 0; r < flow.rows(); ++r) cost += static_cast<double>(flow(r, 2)) * (r % 2);
    tokens(0, 1) = static_cast<float>(cost);
    const bool failed = rng.chance(0.05);
    data.add({statements, flow, context, tokens},
             {.ns = failed ? 0 : 1000 * (task + 1) * std::exp(cost),
              .task = task,
              .platform = static_cast<int32_t>(rng.below(2))});
  }
  return data;
}

constexpr costmodel::model::NetworkKind kAllNetworks[] = {
    costmodel::model::NetworkKind::kPacmPaper, costmodel::model::NetworkKind::kPacm,
    costmodel::model::NetworkKind::kTensetMlp, costmodel::model::NetworkKind::kTlp};

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_COSTMODEL_NN_PROGRAMS_H_

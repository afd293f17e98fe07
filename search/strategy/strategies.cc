#include "search/strategy/strategies.h"

#include "ir/support/check.h"
#include "search/space/metaschedule_space.h"
#include "search/strategy/evolution.h"
#include "search/strategy/network_use.h"

namespace prunerc::search {
namespace {

StrategyOptions options_of(const StrategyContext& context) {
  StrategyOptions options;
  options.seed = context.seed;
  options.stream = context.stream;
  return options;
}

}  // namespace

std::string_view to_string(StrategyKind kind) {
  switch (kind) {
#define PRUNERC_STRATEGY(Name, text, make, batch, in_flight, first, words) \
  case StrategyKind::k##Name:                                              \
    return text;
#include "search/strategy/strategy.def"
#undef PRUNERC_STRATEGY
  }
  PRUNERC_UNREACHABLE("strategy");
}

std::string_view describe(StrategyKind kind) {
  switch (kind) {
#define PRUNERC_STRATEGY(Name, text, make, batch, in_flight, first, words) \
  case StrategyKind::k##Name:                                              \
    return words;
#include "search/strategy/strategy.def"
#undef PRUNERC_STRATEGY
  }
  PRUNERC_UNREACHABLE("strategy");
}

StrategyRhythm rhythm_of(StrategyKind kind) {
  switch (kind) {
#define PRUNERC_STRATEGY(Name, text, make, batch, in_flight, first, words) \
  case StrategyKind::k##Name:                                              \
    return {batch, in_flight, first};
#include "search/strategy/strategy.def"
#undef PRUNERC_STRATEGY
  }
  PRUNERC_UNREACHABLE("strategy");
}

std::optional<StrategyKind> strategy_from_string(std::string_view text) {
  for (int i = 0; i < kNumStrategies; ++i) {
    const auto kind = static_cast<StrategyKind>(i);
    if (to_string(kind) == text) return kind;
  }
  return std::nullopt;
}

SearchSpace space_of(StrategyKind kind, const Task& task, SearchSpace space) {
  const bool is_cut =
      kind == StrategyKind::kMetaSchedule && task.target.kind != ir::TargetKind::kCpu;
  return is_cut ? metaschedule_space(std::move(space)) : std::move(space);
}

Result<std::unique_ptr<Strategy>> make_strategy(StrategyKind kind, const StrategyContext& given) {
  StrategyContext context = given;
  if (const std::optional<NetworkUse> use = network_use(kind); use && context.network == nullptr) {
    PRUNERC_TRY(context.network, open_network(*use, "", context.task.target.kind, context.seed));
  }
  switch (kind) {
#define PRUNERC_STRATEGY(Name, text, make, batch, in_flight, first, words) \
  case StrategyKind::k##Name:                                              \
    return make(context);
#include "search/strategy/strategy.def"
#undef PRUNERC_STRATEGY
  }
  PRUNERC_UNREACHABLE("strategy");
}

Result<std::unique_ptr<Strategy>> make_random(const StrategyContext& context) {
  StrategyOptions options = options_of(context);
  options.use_model = false;
  return make_evolution(context.task, context.space, context.model, context.pool, options);
}

Result<std::unique_ptr<Strategy>> make_default_evolution(const StrategyContext& context) {
  return make_evolution(context.task, context.space, context.model, context.pool,
                        options_of(context));
}

}  // namespace prunerc::search

#include "search/strategy/strategies.h"

#include "costmodel/xgb.h"
#include "ir/support/check.h"
#include "search/space/metaschedule_space.h"
#include "search/strategy/draft.h"
#include "search/strategy/genetic.h"
#include "search/strategy/network_use.h"

namespace prunerc::search {
namespace {

struct StrategyRow {
  std::string_view name, words;
  StrategyRhythm rhythm;
  Proposes proposes;
  Ranks ranks;
};
constexpr StrategyRow kRows[] = {
#define PRUNERC_STRATEGY(Name, text, batch, in_flight, first, proposes, ranks, learns, starts, \
                         words)                                                                \
  {text, words, {batch, in_flight, first}, Proposes::k##proposes, Ranks::k##ranks},
#include "search/strategy/strategy.def"
#undef PRUNERC_STRATEGY
};

const StrategyRow& row_of(StrategyKind kind) { return kRows[static_cast<std::size_t>(kind)]; }

}  // namespace

std::string_view to_string(StrategyKind kind) { return row_of(kind).name; }
std::string_view describe(StrategyKind kind) { return row_of(kind).words; }
StrategyRhythm rhythm_of(StrategyKind kind) { return row_of(kind).rhythm; }

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
  const StrategyRow& row = row_of(kind);
  if (row.ranks == Ranks::kTrees) PRUNERC_TRY_VOID(costmodel::check_xgboost());
  switch (row.proposes) {
    case Proposes::kDraws: return make_population_strategy(context, {}, nullptr, nullptr);
    case Proposes::kGrid: return make_grid(context);
    case Proposes::kEvolution: return make_evolution(context);
    case Proposes::kAnsor: return make_learned(context, ansor_options());
    case Proposes::kMetaSchedule: return make_learned(context, metaschedule_options());
    case Proposes::kDraft: return make_draft(context, {});
    case Proposes::kPaperDraft:
      return make_draft(context, published_draft(Analyzer::kPruner, VerifySet::kDraft));
    case Proposes::kReleaseDraft:
      return make_draft(context,
                        published_draft(Analyzer::kPrunerRelease, VerifySet::kDraftAndRandom));
  }
  PRUNERC_UNREACHABLE("proposes");
}

}  // namespace prunerc::search

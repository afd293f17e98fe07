#include "search/strategy/strategies.h"

#include "costmodel/xgb.h"
#include "ir/support/check.h"
#include "search/model/analyzer_scorer.h"
#include "search/model/network_scorer.h"
#include "search/model/tree_scorer.h"
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

// When trees are trained again, always from scratch: Ansor every round, MetaSchedule from 100
// measurements on for a fifth more, ours for more than a twentieth more.
TreeScorerOptions trees_of(Proposes proposes) {
  TreeScorerOptions out;
  if (proposes == Proposes::kMetaSchedule) {
    out.first_training = 100;
    out.growth = 0.2;
  } else if (proposes == Proposes::kDraft) {
    out.growth = 0.05;
    out.beyond_growth = true;
  }
  return out;
}

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
  PRUNERC_TRY(std::unique_ptr<Scorer> scorer, make_scorer(kind, context));
  switch (row_of(kind).proposes) {
    case Proposes::kDraws:
      return make_population_strategy(context, {}, nullptr, std::make_unique<AnalyzerScorer>());
    case Proposes::kGrid: return make_grid(context);
    case Proposes::kEvolution: return make_genetic(context, {}, std::move(scorer));
    case Proposes::kAnsor: return make_genetic(context, ansor_options(), std::move(scorer));
    case Proposes::kMetaSchedule:
      return make_genetic(context, metaschedule_options(), std::move(scorer));
    case Proposes::kDraft: return make_draft_strategy(context, std::move(scorer), {});
    case Proposes::kPaperDraft:
      return make_genetic(context, pruner_paper_options(), std::move(scorer));
    case Proposes::kReleaseDraft:
      return make_genetic(context, pruner_release_options(), std::move(scorer));
  }
  PRUNERC_UNREACHABLE("proposes");
}

Result<std::unique_ptr<Scorer>> make_scorer(StrategyKind kind, const StrategyContext& context) {
  const StrategyRow& row = row_of(kind);
  switch (row.ranks) {
    case Ranks::kNone: return std::unique_ptr<Scorer>();
    case Ranks::kAnalyzer: return std::unique_ptr<Scorer>(std::make_unique<AnalyzerScorer>());
    case Ranks::kTrees:
      PRUNERC_TRY_VOID(costmodel::check_xgboost());
      return std::unique_ptr<Scorer>(
          std::make_unique<TreeScorer>(context.task, context.pool, trees_of(row.proposes)));
    case Ranks::kPacm:
    case Ranks::kPacmPaper:
    case Ranks::kPacmBatch:
    case Ranks::kTensetMlp:
    case Ranks::kTlp:
      PRUNERC_CHECK(context.network != nullptr, "make_strategy opens one");
      return std::unique_ptr<Scorer>(
          std::make_unique<NetworkScorer>(context.task, context.space, context.network,
                                          static_cast<int32_t>(context.stream), context.pool));
  }
  PRUNERC_UNREACHABLE("ranks");
}

}  // namespace prunerc::search

// The list of search strategies: what `--strategy` names. A new one is a row of strategy.def.
#ifndef PRUNERC_SEARCH_STRATEGY_STRATEGIES_H_
#define PRUNERC_SEARCH_STRATEGY_STRATEGIES_H_

#include "ir/support/parallel.h"
#include "ir/support/result.h"
#include "search/space/space.h"
#include "search/space/task.h"
#include "search/strategy/strategy.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace prunerc::search {

class Calibrator;
class OnlineModel;
class Scorer;

enum class StrategyKind : uint8_t {
#define PRUNERC_STRATEGY(Name, text, batch, in_flight, first, proposes, ranks, learns, starts, \
                         words)                                                                \
  k##Name,
#include "search/strategy/strategy.def"
#undef PRUNERC_STRATEGY
};

inline constexpr int kNumStrategies = 0
#define PRUNERC_STRATEGY(Name, text, batch, in_flight, first, proposes, ranks, learns, starts, \
                         words)                                                                \
  +1
#include "search/strategy/strategy.def"
#undef PRUNERC_STRATEGY
    ;

/// "evolution".
std::string_view to_string(StrategyKind kind);
/// For people.
std::string_view describe(StrategyKind kind);
std::optional<StrategyKind> strategy_from_string(std::string_view text);

/// Who makes a strategy's candidates, and who orders them: columns of strategy.def.
enum class Proposes : uint8_t {
  kDraws,
  kGrid,
  kEvolution,
  kAnsor,
  kMetaSchedule,
  kDraft,
  kPaperDraft,
  kReleaseDraft,
};
enum class Ranks : uint8_t {
  kNone,
  kAnalyzer,
  kTrees,
  kPacm,
  kPacmPaper,
  kPacmBatch,
  kTensetMlp,
  kTlp,
};

/// How a strategy wants to be asked.
struct StrategyRhythm {
  int batch = 16;     // candidates of one ask
  int in_flight = 2;  // batches that are asked for before the first is answered
  int first = 16;  // candidates of the first ask of a task among several: less than a batch where
                   // the strategy knows something before it has measured anything
};
StrategyRhythm rhythm_of(StrategyKind kind);

/// The part of a task's space that a strategy may have: all of it, but for `metaschedule` on GPUs
/// (metaschedule_space.h; the dot rules of processors are its own).
SearchSpace space_of(StrategyKind kind, const Task& task, SearchSpace space);

/// What a strategy is made from. All of it outlives the strategy.
struct StrategyContext {
  const Task& task;
  const SearchSpace& space;
  ThreadPool& pool;
  uint64_t seed = 0;
  uint64_t stream = 0;  // tells tasks of one call apart
  /// Shared by all tasks of a target: what one measures, the others' analyzers know. Null: each
  /// strategy has its own.
  Calibrator* calibrator = nullptr;
  /// Shared as well; null for strategies that ask no network (network_use.h).
  std::shared_ptr<OnlineModel> network = nullptr;
  /// Whether the sketches' heuristic decisions are measured first. Unset: as the strategy's settings say.
  std::optional<bool> heuristics = std::nullopt;
};

/// A network that the strategy asks and the context lacks is opened for it alone. Errors:
/// ModelLibrary for those that learn by a library that is not installed; ModelMissing.
Result<std::unique_ptr<Strategy>> make_strategy(StrategyKind kind, const StrategyContext& context);

/// What orders candidates by the strategy's column of strategy.def: without the analyzer that a draft
/// joins to it; null where nothing is ranked. Errors: ModelLibrary.
Result<std::unique_ptr<Scorer>> make_scorer(StrategyKind kind, const StrategyContext& context);

/// All candidates of all sketches in turn, in mixed radix (grid.cc).
std::unique_ptr<Strategy> make_grid(const StrategyContext& context);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_STRATEGY_STRATEGIES_H_

// Corpus: the rows of many pools, split for training and testing, and thinned out.
#ifndef PRUNERC_SEARCH_RECORD_CORPUS_H_
#define PRUNERC_SEARCH_RECORD_CORPUS_H_

#include "ir/support/result.h"
#include "search/record/pool.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::search {

/// A row of one of several pools.
struct CorpusRow {
  int pool = 0;
  int row = 0;
  bool operator==(const CorpusRow&) const = default;
};

/// Pools with what tells their tasks and platforms apart.
struct Corpus {
  std::vector<std::string> paths;
  std::vector<Pool> pools;
  std::vector<int32_t> task;      // by pool: equal for one program, by one name, on one target
  std::vector<int32_t> platform;  // by pool
  std::vector<std::string> tasks, platforms;  // their names

  const PoolRow& row(const CorpusRow& at) const {
    return pools[static_cast<std::size_t>(at.pool)].rows[static_cast<std::size_t>(at.row)];
  }
};

/// "cpu:x86-64-v3/2": the target's name and its threads. A target that is this machine is told by
/// its CPU: "cpu:znver5/1".
std::string platform_of(const Pool& pool);
/// What stands before the first "_" of the operator's name: pools name their classes so.
std::string class_of(const Pool& pool);

/// Errors: those of read_pool, and of the texts in a pool.
Result<Corpus> read_corpus(std::span<const std::string> paths);

/// Indices of the rows of each pool.
std::map<int, std::vector<std::size_t>> rows_by_pool(std::span<const CorpusRow> rows);

/// All rows that ran, and of those that did not at most a twentieth as many for each pool.
std::vector<CorpusRow> all_rows(const Corpus& corpus);

/// What is kept from training. Within tasks: a part of each pool's rows; by task: all rows of some
/// tasks, on whatever platform; by target: all rows of some platforms.
enum class SplitKind : uint8_t { kWithinTask, kByTask, kByTarget };
std::string_view to_string(SplitKind kind);
std::optional<SplitKind> split_from_string(std::string_view text);

struct Split {
  std::vector<CorpusRow> train, test;
};
/// Each class of operators gives its share of tasks, at least one if it has two. By target, `held`
/// names the platforms; without names the share is drawn.
Split split_rows(const Corpus& corpus, std::span<const CorpusRow> rows, SplitKind kind,
                 double test_share, std::span<const std::string> held, uint64_t seed);
/// Errors: SplitHeld if a held name is of no operator (by task) or platform (by target) of the
/// rows; SplitOneSided if nothing trains or nothing tests.
Result<void> check_split(const Corpus& corpus, SplitKind kind, std::span<const std::string> held,
                         const Split& split);

/// How a corpus is thinned out: at random; along the quantiles of each task's times,
/// which keeps the fast ones and what they are told from; the same for a limited number of tasks of
/// each class.
enum class PruneKind : uint8_t { kRandom, kQuantile, kClass };
std::string_view to_string(PruneKind kind);
std::optional<PruneKind> prune_from_string(std::string_view text);

/// About `keep` of the rows, in their order.
std::vector<CorpusRow> prune_rows(const Corpus& corpus, std::span<const CorpusRow> rows,
                                  PruneKind kind, double keep, uint64_t seed);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_RECORD_CORPUS_H_

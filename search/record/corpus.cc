#include "search/record/corpus.h"

#include "ir/support/rng.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace prunerc::search {
namespace {

/// Failures say what does not run; more of them say nothing more.
constexpr std::size_t kRowsForFailure = 20;

int32_t number_of(const std::string& name, std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) names.push_back(name);
  return static_cast<int32_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

template <typename T>
void shuffle(std::vector<T>& items, Rng& rng) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.below(i)]);
}

/// What may be left over of a few names.
enum class Least : uint8_t {
  kOneOther,  // one at least if there are two, never all: something must be left to train on
  kOne,       // one at least
};

// A share of `names`, drawn.
std::set<std::string> drawn(std::vector<std::string> names, double share, Least least, Rng& rng) {
  if (names.empty()) return {};
  shuffle(names, rng);
  const auto n = static_cast<double>(names.size());
  const double most = least == Least::kOne ? n : n - 1;
  const double wanted = std::clamp(std::round(share * n), std::min(1.0, most), most);
  return {names.begin(), names.begin() + static_cast<std::ptrdiff_t>(wanted)};
}

// Tasks kept for testing, or by pruning: a share of each class. The operator counts, whatever the
// platforms it was measured on.
std::set<std::string> drawn_operators(const Corpus& corpus, std::span<const CorpusRow> rows,
                                      double share, Least least, Rng& rng) {
  std::map<std::string, std::set<std::string>> classes;
  for (const auto& [pool, which] : rows_by_pool(rows)) {
    const Pool& p = corpus.pools[static_cast<std::size_t>(pool)];
    classes[class_of(p)].insert(p.program);
  }
  std::set<std::string> out;
  for (const auto& [name, programs] : classes) {
    out.merge(drawn({programs.begin(), programs.end()}, share, least, rng));
  }
  return out;
}

std::vector<std::string> platforms_of(const Corpus& corpus, std::span<const CorpusRow> rows) {
  std::set<std::string> out;
  for (const auto& [pool, which] : rows_by_pool(rows)) {
    const int32_t platform = corpus.platform[static_cast<std::size_t>(pool)];
    out.insert(corpus.platforms[static_cast<std::size_t>(platform)]);
  }
  return {out.begin(), out.end()};
}

// By what a pool can be held out.
std::vector<std::string> names_of(const Corpus& corpus, int32_t pool, SplitKind kind) {
  const auto p = static_cast<std::size_t>(pool);
  switch (kind) {
    case SplitKind::kWithinTask: return {};
    case SplitKind::kByTask: return {corpus.pools[p].program, corpus.pools[p].op};
    case SplitKind::kByTarget:
      return {corpus.platforms[static_cast<std::size_t>(corpus.platform[p])]};
  }
  PRUNERC_UNREACHABLE("split");
}

// So many of the rows `which`, evenly over the order of their times; failures stand at the end.
std::vector<std::size_t> along_quantiles(const Corpus& corpus, std::span<const CorpusRow> rows,
                                         std::vector<std::size_t> which, std::size_t wanted) {
  std::stable_sort(which.begin(), which.end(), [&](std::size_t a, std::size_t b) {
    const PoolRow& x = corpus.row(rows[a]);
    const PoolRow& y = corpus.row(rows[b]);
    return x.ok() && (!y.ok() || x.median_ns < y.median_ns);
  });
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < wanted; ++i) out.push_back(which[i * which.size() / wanted]);
  return out;
}

}  // namespace

std::string platform_of(const Pool& pool) {
  const Result<ir::Target> target = ir::target_from_string(pool.platform);
  if (!target) return "?";
  const std::string name = target->name == "cpu" ? "cpu:" + target->llvm_cpu : target->name;
  return fmt::format("{}/{}", name, target->num_threads);
}

std::string class_of(const Pool& pool) { return pool.op.substr(0, pool.op.find('_')); }

Result<Corpus> read_corpus(std::span<const std::string> paths) {
  Corpus out;
  // By task: machines of one name differ, as GPUs of one architecture do.
  std::vector<std::string> hashes;
  for (const std::string& path : paths) {
    PRUNERC_TRY(Pool pool, read_pool(path));
    PRUNERC_TRY(const Task task, pool.task());
    const std::string platform = platform_of(pool);
    out.paths.push_back(path);
    out.platform.push_back(number_of(platform, out.platforms));
    const std::string bound = pool.bindings.empty() ? "" : " " + pool.bindings;
    const std::string name = fmt::format("{}{} on {}", pool.op, bound, platform);
    out.task.push_back(number_of(name + task.key.hash, hashes));
    if (out.tasks.size() < hashes.size()) out.tasks.push_back(name);
    out.pools.push_back(std::move(pool));
  }
  return out;
}

std::map<int, std::vector<std::size_t>> rows_by_pool(std::span<const CorpusRow> rows) {
  std::map<int, std::vector<std::size_t>> out;
  for (std::size_t i = 0; i < rows.size(); ++i) out[rows[i].pool].push_back(i);
  return out;
}

std::vector<CorpusRow> all_rows(const Corpus& corpus) {
  std::vector<CorpusRow> out;
  for (std::size_t p = 0; p < corpus.pools.size(); ++p) {
    const std::vector<PoolRow>& rows = corpus.pools[p].rows;
    std::size_t failures = rows.size() / kRowsForFailure;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (!rows[r].ok() && failures == 0) continue;
      if (!rows[r].ok()) --failures;
      out.push_back({static_cast<int>(p), static_cast<int>(r)});
    }
  }
  return out;
}

std::string_view to_string(SplitKind kind) {
  switch (kind) {
    case SplitKind::kWithinTask: return "within-task";
    case SplitKind::kByTask: return "by-task";
    case SplitKind::kByTarget: return "by-target";
  }
  PRUNERC_UNREACHABLE("split");
}

std::optional<SplitKind> split_from_string(std::string_view text) {
  for (const SplitKind kind : {SplitKind::kWithinTask, SplitKind::kByTask, SplitKind::kByTarget}) {
    if (to_string(kind) == text) return kind;
  }
  return std::nullopt;
}

Split split_rows(const Corpus& corpus, std::span<const CorpusRow> rows, SplitKind kind,
                 double test_share, std::span<const std::string> held, uint64_t seed) {
  Rng rng(seed, 0x5711, 0);
  std::vector<bool> is_test(rows.size());
  if (kind == SplitKind::kWithinTask) {
    for (auto& [pool, which] : rows_by_pool(rows)) {
      shuffle(which, rng);
      const auto wanted =
          static_cast<std::size_t>(std::round(test_share * static_cast<double>(which.size())));
      for (std::size_t i = 0; i < wanted; ++i) is_test[which[i]] = true;
    }
  } else {
    const bool by_task = kind == SplitKind::kByTask;
    std::set<std::string> names(held.begin(), held.end());
    if (names.empty()) {
      names = by_task ? drawn_operators(corpus, rows, test_share, Least::kOneOther, rng)
                      : drawn(platforms_of(corpus, rows), test_share, Least::kOneOther, rng);
    }
    for (const auto& [pool, which] : rows_by_pool(rows)) {
      const std::vector<std::string> own = names_of(corpus, pool, kind);
      const bool tests = std::any_of(own.begin(), own.end(),
                                     [&](const std::string& name) { return names.contains(name); });
      for (const std::size_t i : which) is_test[i] = tests;
    }
  }
  Split out;
  for (std::size_t i = 0; i < rows.size(); ++i)
    (is_test[i] ? out.test : out.train).push_back(rows[i]);
  return out;
}

Result<void> check_split(const Corpus& corpus, SplitKind kind, std::span<const std::string> held,
                         const Split& split) {
  std::set<std::string> names;
  for (const std::vector<CorpusRow>* rows : {&split.train, &split.test}) {
    for (const auto& [pool, which] : rows_by_pool(*rows)) {
      for (std::string& name : names_of(corpus, pool, kind)) names.insert(std::move(name));
    }
  }
  for (const std::string& name : held) {
    if (!names.contains(name)) return error(Diag::kSplitHeld, std::string(to_string(kind)), name);
  }
  if (split.train.empty()) return error(Diag::kSplitOneSided, std::string("trains"));
  if (split.test.empty()) return error(Diag::kSplitOneSided, std::string("tests"));
  return {};
}

std::string_view to_string(PruneKind kind) {
  switch (kind) {
    case PruneKind::kRandom: return "random";
    case PruneKind::kQuantile: return "quantile";
    case PruneKind::kClass: return "class";
  }
  PRUNERC_UNREACHABLE("pruning");
}

std::optional<PruneKind> prune_from_string(std::string_view text) {
  for (const PruneKind kind : {PruneKind::kRandom, PruneKind::kQuantile, PruneKind::kClass}) {
    if (to_string(kind) == text) return kind;
  }
  return std::nullopt;
}

std::vector<CorpusRow> prune_rows(const Corpus& corpus, std::span<const CorpusRow> rows,
                                  PruneKind kind, double keep, uint64_t seed) {
  Rng rng(seed, 0x9207, 0);
  std::vector<bool> kept(rows.size());
  if (kind == PruneKind::kRandom) {
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    shuffle(order, rng);
    order.resize(static_cast<std::size_t>(std::round(keep * static_cast<double>(rows.size()))));
    for (const std::size_t i : order) kept[i] = true;
  } else {
    // Half of the saving by fewer tasks, half by fewer rows of each.
    const std::set<std::string> chosen =
        drawn_operators(corpus, rows, std::sqrt(keep), Least::kOne, rng);
    const auto is_chosen = [&](int pool) {
      return kind != PruneKind::kClass ||
             chosen.contains(corpus.pools[static_cast<std::size_t>(pool)].program);
    };
    std::size_t left = 0;
    for (const CorpusRow& row : rows) left += is_chosen(row.pool) ? 1 : 0;
    const double share = std::min(1.0, keep * static_cast<double>(rows.size()) /
                                           static_cast<double>(std::max<std::size_t>(1, left)));
    for (const auto& [pool, which] : rows_by_pool(rows)) {
      if (!is_chosen(pool)) continue;
      const auto wanted =
          static_cast<std::size_t>(std::round(share * static_cast<double>(which.size())));
      for (const std::size_t i : along_quantiles(corpus, rows, which, wanted)) kept[i] = true;
    }
  }
  std::vector<CorpusRow> out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (kept[i]) out.push_back(rows[i]);
  }
  return out;
}

}  // namespace prunerc::search

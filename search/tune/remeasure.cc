#include "search/tune/remeasure.h"

#include "search/record/restore.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace prunerc::search {
namespace {

/// Turns in which nothing else took the CPU; a row that has fewer counts with all of its turns.
constexpr int kEnoughQuietTurns = 3;

struct Contender {
  std::size_t row = 0;
  Candidate candidate;
  std::vector<Measurement> turns;
  Measurement wrong;         // the first answer that says so
  bool is_verified = false;  // before, or now
};

std::ptrdiff_t num_quiet(const Contender& c) {
  return std::count_if(c.turns.begin(), c.turns.end(),
                       [](const Measurement& m) { return m.ok() && !m.disturbed; });
}

bool counts(const Contender& c, const Measurement& turn) {
  const auto enough = std::min<std::size_t>(kEnoughQuietTurns, (c.turns.size() + 1) / 2);
  const bool quiet_alone = num_quiet(c) >= static_cast<std::ptrdiff_t>(enough);
  return turn.ok() && !(turn.disturbed && quiet_alone);
}

Result<std::vector<Contender>> restore(const Task& task, const Pool& pool,
                                       std::span<const std::size_t> rows) {
  const SearchSpace space = pool.space();
  std::vector<Contender> out;
  for (const std::size_t row : rows) {
    std::optional<Candidate> made = restore_row(task, space, pool.rows[row]);
    if (!made) return error(Diag::kPoolStale, pool.op);
    out.push_back({row, *std::move(made), {}, {}, pool.rows[row].verified});
  }
  return out;
}

// Asks each of these once and takes what comes in whatever order. False if the inbox ended
// meanwhile.
template <typename OnAnswer>
bool ask_all(const Task& task, uint64_t seed, MeasureKind kind, std::span<Contender* const> asked,
             Inbox& inbox, OnAnswer&& on_answer) {
  std::size_t waiting = asked.size();
  std::vector<int64_t> ids;
  for (Contender* const c : asked) {
    MeasureInput input;
    input.kind = kind;
    input.task = &task;
    input.program = c->candidate.program;
    input.trace = c->candidate.trace;
    input.seed = seed;
    ids.push_back(inbox.submit(std::move(input), [&, c](Measurement m) {
      --waiting;
      if (m.status == MeasureStatus::kWrongResult && c->wrong.status != m.status) c->wrong = m;
      on_answer(*c, std::move(m));
    }));
  }
  inbox.wait_until([&] { return waiting == 0; });
  for (const int64_t id : ids) inbox.forget(id);
  return !inbox.has_ended();
}

void take_turn(Contender& c, Measurement m) { c.turns.push_back(std::move(m)); }
void take_verdict(Contender& c, const Measurement& m) { c.is_verified = m.ok(); }

std::vector<TurnTime> times_of(std::span<const Contender> all, int num_turns) {
  std::vector<std::vector<double>> turns(static_cast<std::size_t>(num_turns));
  for (std::size_t t = 0; t < turns.size(); ++t) {
    for (const Contender& c : all) {
      turns[t].push_back(counts(c, c.turns[t]) ? c.turns[t].median_ns : 0);
    }
  }
  return join_turns(turns);
}

void fail(const Measurement& why, Pool* pool, PoolRow* row) {
  row->status = why.status;
  row->median_ns = 0;
  row->verified = false;
  std::string& example = pool->examples[static_cast<std::size_t>(why.status)];
  if (example.empty()) example = why.detail;
}

void finish(const Contender& c, double median_ns, double spread, Pool* pool) {
  PoolRow& row = pool->rows[c.row];
  row.is_final = true;
  row.verified = c.is_verified;
  row.median_ns = median_ns;
  row.spread = spread;
  row.num_samples = 0;
  std::ptrdiff_t counting = 0;
  for (const Measurement& m : c.turns) {
    if (!counts(c, m)) continue;
    row.num_samples += static_cast<int>(m.samples_ns.size());
    ++counting;
  }
  row.disturbed = 2 * num_quiet(c) < counting;
  if (c.wrong.status == MeasureStatus::kWrongResult) {
    fail(c.wrong, pool, &row);
  } else if (counting == 0) {
    fail(c.turns.back(), pool, &row);
  }
  row = rounded(std::move(row));
}

// What brings the new times to the old ones' level; 0 if there are none.
double scale_of(const Pool& pool, std::span<const Contender> all, std::span<const TurnTime> times) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (times[i].median_ns > 0) {
      ratios.push_back(pool.rows[all[i].row].median_ns / times[i].median_ns);
    }
  }
  return median_of(std::move(ratios));
}

}  // namespace

std::vector<std::size_t> contenders(const Pool& pool, const RemeasureOptions& options) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < pool.rows.size(); ++i) {
    if (pool.rows[i].ok()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return pool.rows[a].median_ns < pool.rows[b].median_ns;
  });
  if (order.empty()) return order;
  const double limit = (1 + options.within) * pool.rows[order.front()].median_ns;
  auto size = std::min(order.size(), static_cast<std::size_t>(std::max(0, options.best)));
  while (size < order.size() && pool.rows[order[size]].median_ns <= limit) ++size;
  order.resize(size);
  return order;
}

std::vector<TurnTime> join_turns(std::span<const std::vector<double>> turns) {
  const std::size_t n = turns.empty() ? 0 : turns.front().size();
  std::vector<double> levels(turns.size(), 1);
  const auto levelled = [&](std::size_t i) {
    std::vector<double> times;
    for (std::size_t t = 0; t < turns.size(); ++t) {
      if (turns[t][i] > 0) times.push_back(turns[t][i] / levels[t]);
    }
    return times;
  };
  std::vector<double> first;
  for (std::size_t i = 0; i < n; ++i) first.push_back(median_of(levelled(i)));
  for (std::size_t t = 0; t < turns.size(); ++t) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < n; ++i) {
      if (turns[t][i] > 0) ratios.push_back(turns[t][i] / first[i]);
    }
    if (!ratios.empty()) levels[t] = median_of(std::move(ratios));
  }
  std::vector<TurnTime> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> times = levelled(i);
    if (times.empty()) continue;
    out[i].median_ns = median_of(times);
    for (double& time : times) time = std::abs(time - out[i].median_ns);
    out[i].spread = median_of(std::move(times)) / out[i].median_ns;
  }
  return out;
}

Result<RemeasureEnd> remeasure(const Task& task, Inbox& inbox, const RemeasureOptions& options,
                               Pool* pool) {
  const std::vector<std::size_t> rows = contenders(*pool, options);
  PRUNERC_TRY(std::vector<Contender> all, restore(task, *pool, rows));
  if (all.empty() || options.turns < 1) return RemeasureEnd::kNothingRan;
  std::vector<Contender*> each, unverified;
  for (Contender& c : all) {
    each.push_back(&c);
    if (!c.is_verified) unverified.push_back(&c);
  }
  bool is_whole = true;
  for (int turn = 0; is_whole && turn < options.turns; ++turn) {
    is_whole = ask_all(task, pool->seed, MeasureKind::kTime, each, inbox, take_turn);
  }
  is_whole =
      is_whole && ask_all(task, pool->seed, MeasureKind::kVerify, unverified, inbox, take_verdict);
  if (inbox.has_lost_device()) return RemeasureEnd::kDeviceLost;
  if (!is_whole) return RemeasureEnd::kCancelled;
  const std::vector<TurnTime> times = times_of(all, options.turns);
  const double scale = scale_of(*pool, all, times);
  // That all of them fail says something of the machine, nothing of them.
  if (scale == 0) return RemeasureEnd::kNothingRan;
  for (std::size_t i = 0; i < all.size(); ++i) {
    finish(all[i], scale * times[i].median_ns, times[i].spread, pool);
  }
  return RemeasureEnd::kComplete;
}

}  // namespace prunerc::search

#include "search/record/restore.h"

#include "ir/equal.h"
#include "schedule/schedule.h"

#include <fmt/format.h>

#include <utility>

namespace prunerc::search {

Result<RestoredRecord> restore_record(const ir::Program& base, const Record& record) {
  const auto stale = [&](const std::string& why) {
    const std::string of = record.version.empty() ? "" : " of prunerc " + record.version;
    return error(Diag::kRecordStale, record.id, of, why);
  };
  Result<schedule::Trace> trace = schedule::parse_trace(record.trace);
  if (!trace.ok()) return stale(trace.error().message());
  const Result<schedule::Schedule> replayed = schedule::replay(base, *trace);
  if (!replayed.ok()) return stale(replayed.error().message());
  // What was measured and verified was that program.
  if (ir::fingerprint(replayed->program()).to_string() != record.fingerprint)
    return stale("its schedule does not make the program that it names");
  return RestoredRecord{std::move(trace).value(), replayed->program()};
}

void LeftAside::add(const Error& stale) {
  if (num++ == 0) why = stale.message();
}

void LeftAside::add(const LeftAside& others) {
  if (num == 0) why = others.why;
  num += others.num;
}

std::string to_string(const LeftAside& left) {
  return left.num == 0 ? "" : fmt::format("{} stored record(s) left aside: {}", left.num, left.why);
}

uint32_t low_bits(const Fingerprint& print) { return static_cast<uint32_t>(print.low); }

std::optional<Candidate> restore_row(const Task& task, const SearchSpace& space,
                                     const PoolRow& row) {
  Result<Candidate> made = instantiate(task, space, row.sketch, row.decisions);
  if (!made || low_bits(made->fingerprint) != row.fingerprint) return std::nullopt;
  made->score = 0;
  return std::move(made).value();
}

std::vector<std::optional<Candidate>> restore_rows(const Pool& pool, const Task& task,
                                                   ThreadPool& threads) {
  const SearchSpace space = pool.space();
  return threads.map<std::optional<Candidate>>(
      pool.rows.size(), [&](std::size_t i) { return restore_row(task, space, pool.rows[i]); });
}

Result<Members> restore_members(const Pool& pool, const Task& task, ThreadPool& threads) {
  Members members(pool.sketches, restore_rows(pool, task, threads));
  if (members.size() == 0) return error(Diag::kPoolStale, pool.op);
  return members;
}

}  // namespace prunerc::search

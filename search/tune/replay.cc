#include "search/tune/replay.h"

#include "ir/equal.h"
#include "search/record/restore.h"

namespace prunerc::search {
namespace {

/// Lets a row win that nobody has compared.
constexpr const char* kNotVerified = "recorded, not verified";

}  // namespace

Result<ReplayTask> ReplayTask::make(const Pool& pool, ThreadPool& threads) {
  ReplayTask replay;
  PRUNERC_TRY(replay.task, pool.task());
  PRUNERC_TRY(Members members, restore_members(pool, replay.task, threads));
  replay.space = pool.space();
  replay.space.members = std::make_shared<const Members>(std::move(members));
  replay.rows = pool.rows;
  return replay;
}

Measurement ReplayMeasurer::recorded(const MeasureInput& input) const {
  Measurement m;
  for (const ReplayTask& replay : tasks_) {
    if (!(replay.task.key == input.task->key)) continue;
    const Members& members = *replay.space.members;
    const int member = members.find(ir::fingerprint(input.program));
    if (member < 0) break;
    const PoolRow& row = replay.rows[static_cast<std::size_t>(members.row(member))];
    m.status = row.status;
    if (input.kind == MeasureKind::kVerify) {
      m.evidence = row.verified ? "verified when the pool was recorded" : kNotVerified;
      return m;
    }
    if (row.ok()) m.samples_ns = {row.median_ns};
    summarize_samples(m);
    m.spread = row.spread;
    m.disturbed = row.disturbed;
    m.build_s = row.build_s;
    m.measure_s = row.measure_s;
    return m;
  }
  m.detail = "the pool has no time of this candidate";
  return m;
}

void ReplayMeasurer::submit(MeasureInput input) { done_.push_back({input.id, recorded(input)}); }

std::optional<MeasureOutcome> ReplayMeasurer::next(Deadline) {
  if (done_.empty()) return std::nullopt;
  MeasureOutcome outcome = std::move(done_.front());
  done_.pop_front();
  return outcome;
}

Result<TuneReport> replay(std::span<const ReplayTask> tasks, TuneOptions options) {
  std::vector<Task> own;
  for (const ReplayTask& replay : tasks) own.push_back(replay.task);
  ReplayMeasurer measurer(tasks);
  PRUNERC_TRY(Database database, Database::open(":memory:"));
  options.space = [&](const Task& task) -> Result<SearchSpace> {
    for (const ReplayTask& replay : tasks) {
      if (replay.task.key == task.key) return replay.space;
    }
    return error(Diag::kNoSketch, task.name, std::string("it is in no pool"));
  };
  options.clock = TuneClock::kRecorded;
  options.check = {};
  options.finals = 0;
  if (options.timer.empty()) options.timer = "recorded";
  PRUNERC_TRY(TuneReport report, tune(own, measurer, database, options));
  for (TaskReport& row : report.tasks) {
    if (row.evidence == kNotVerified) row.verified = false;
  }
  return report;
}

}  // namespace prunerc::search

#include "search/record/pool.h"

#include "ir/equal.h"
#include "search/record/restore.h"
#include "search/tune/recorder.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

Pool empty_pool(const Task& task, double share_searched = 0.3) {
  Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  Pool pool = make_pool(task, *space);
  pool.seed = 5;
  pool.share_searched = share_searched;
  return pool;
}

// Some of the candidates fail, by a rule that depends on nothing but the program.
Measurement partly_failing(const MeasureInput& input) {
  Measurement m = hashed_time(input);
  m.samples_ns.assign(7, m.samples_ns[0]);
  const uint64_t low = ir::fingerprint(input.program).low;
  if (low % 17 != 0 || input.kind == MeasureKind::kVerify) return m;
  m = {};
  m.status = low % 2 == 0 ? MeasureStatus::kTimeout : MeasureStatus::kBuildError;
  m.detail = "made to fail";
  return m;
}

RecordOptions small_options(int64_t candidates) {
  RecordOptions options;
  options.candidates = candidates;
  options.num_threads = 1;
  options.batch = 8;
  options.finals = {.best = 10, .within = 0, .turns = 3};
  options.check = {};
  return options;
}

// Asking the search takes a second: only tests that are about it do.
Pool recorded(const Task& task, int64_t candidates, double share_searched = 0) {
  Pool pool = empty_pool(task, share_searched);
  TableMeasurer measurer(partly_failing);
  const Result<RecordEnd> end = record_pool(task, measurer, small_options(candidates), &pool);
  REQUIRE_OK(end);
  CHECK(*end == RecordEnd::kComplete);
  return pool;
}

void check_same(const Pool& a, const Pool& b) {
  CHECK(a.op == b.op);
  CHECK(a.program == b.program);
  CHECK(a.platform == b.platform);
  CHECK(a.bindings == b.bindings);
  CHECK(a.timer == b.timer);
  CHECK(a.seed == b.seed);
  CHECK(a.share_searched == b.share_searched);
  CHECK(a.num_batches == b.num_batches);
  CHECK(a.draws == b.draws);
  CHECK(a.examples == b.examples);
  CHECK(a.rows == b.rows);
  REQUIRE(a.sketches.size() == b.sketches.size());
  for (std::size_t i = 0; i < a.sketches.size(); ++i) {
    CHECK(a.sketches[i].name == b.sketches[i].name);
    CHECK(a.sketches[i].trace == b.sketches[i].trace);
  }
}

TEST_CASE("a pool survives its file, and the file is small") {
  for (const char* name : {"gemm", "conv2d_relu", "softmax_like"}) {
    const Task task = make_test_task(name);
    Pool pool = recorded(task, 60);
    pool.bindings = "N=3";
    pool.timer = "a table";
    const std::string path = scratch_path("a.pool");
    REQUIRE_OK(write_pool(pool, path));
    const Result<Pool> back = read_pool(path);
    REQUIRE_OK(back);
    check_same(pool, *back);
    CHECK(!std::filesystem::exists(path + ".part"));
    // What does not repeat is a checksum of four bytes a row; the rest is a few bytes.
    Pool header = pool;
    header.rows.clear();
    CHECK(serialize(pool).size() - serialize(header).size() < 30 * pool.rows.size());
  }
}

TEST_CASE("the task of a pool is the one that was recorded") {
  Task task = make_test_task("dense_relu");
  task.bindings = "M=12";
  task.op_text = "op ...";
  const Pool pool = recorded(task, 8);
  const Result<Task> back = pool.task();
  REQUIRE_OK(back);
  CHECK(back->key == task.key);
  CHECK(back->name == task.name);
  CHECK(back->bindings == "M=12");
  CHECK(back->op_text == "op ...");
  CHECK(back->flops == task.flops);
  CHECK(pool.space().sketches.size() == pool.sketches.size());
}

TEST_CASE("times are kept to what measuring is worth") {
  PoolRow row;
  row.status = MeasureStatus::kOk;
  for (double ns = 1; ns < 1e12; ns *= 1.37) {
    row.median_ns = ns;
    row.build_s = ns * 1e-9;
    row.measure_s = 3 * ns * 1e-9;
    row.spread = 0.0123;
    const PoolRow kept = rounded(row);
    CHECK(std::abs(kept.median_ns / ns - 1) < 0.0005);
    CHECK(std::abs(kept.build_s / row.build_s - 1) < 0.015);
    CHECK(std::abs(kept.measure_s / row.measure_s - 1) < 0.015);
    CHECK(kept.spread == Approx(0.012));
    CHECK(rounded(kept) == kept);
  }
}

TEST_CASE("whatever happens to a file, reading it gives a pool or says what is wrong") {
  const std::string bytes = serialize(recorded(make_test_task("gemm"), 12));
  for (std::size_t size = 0; size < bytes.size(); size += 1 + size / 40) {
    CHECK_DIAG(parse_pool(std::string_view(bytes).substr(0, size), "p"), PoolDamaged);
  }
  for (std::size_t at = 0; at < bytes.size(); at += 1 + at / 40) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    const Result<Pool> pool = parse_pool(flipped, "p");
    REQUIRE(!pool.ok());
    const bool typed =
        pool.error().id() == Diag::kPoolDamaged || pool.error().id() == Diag::kPoolVersion;
    CHECK(typed);
  }
  CHECK_DIAG(parse_pool(bytes + "x", "p"), PoolDamaged);
  std::string newer = bytes;
  newer[8] = kPoolFormat + 1;
  CHECK_DIAG(parse_pool(newer, "p"), PoolVersion);
  CHECK_DIAG(read_pool(scratch_path("there is no such file")), IoError);
  CHECK_DIAG(write_pool(recorded(make_test_task("gemm"), 4), scratch_path("no/such/folder/p")),
             IoError);
}

TEST_CASE("columns that do not fit their sketches, and odd counts, are refused, checksum or not") {
  const Pool pool = recorded(make_test_task("gemm"), 12);
  const auto is_refused = [&](auto&& change) {
    Pool other = pool;
    change(other);
    CHECK_DIAG(parse_pool(serialize(other), "p"), PoolDamaged);
  };
  is_refused([](Pool& p) {
    p.rows[3].sketch = 1000;
    p.rows[3].decisions.clear();
  });
  is_refused([](Pool& p) { p.rows[3].decisions[0][0] = 1 << 20; });
  is_refused([](Pool& p) { p.rows[3].status = static_cast<MeasureStatus>(kNumMeasureStatuses); });
  is_refused([](Pool& p) { p.rows[3].status = MeasureStatus::kOk, p.rows[3].median_ns = 0; });
  // What a recording that goes on would count with.
  is_refused([](Pool& p) { p.share_searched = 1e300; });
  is_refused([](Pool& p) { p.share_searched = -0.5; });
  is_refused([](Pool& p) { p.num_batches = -1; });
  is_refused([](Pool& p) { p.num_batches = std::numeric_limits<int64_t>::max(); });
}

TEST_CASE("a recording has the rows that were asked for, each candidate once, every outcome") {
  const Task task = make_test_task("conv2d_relu");
  const Pool pool = recorded(task, 96, 0.25);
  CHECK(pool.rows.size() == 96);
  ThreadPool threads(1);
  std::set<Fingerprint> programs;
  int num_searched = 0, num_final = 0;
  std::map<MeasureStatus, int> statuses;
  for (const std::optional<Candidate>& candidate : restore_rows(pool, task, threads)) {
    REQUIRE(candidate);
    programs.insert(candidate->fingerprint);
  }
  for (const PoolRow& row : pool.rows) {
    num_searched += row.origin == PoolOrigin::kSearched ? 1 : 0;
    num_final += row.is_final ? 1 : 0;
    ++statuses[row.status];
    if (row.is_final) CHECK(row.verified);
    if (row.is_final) CHECK(row.num_samples >= 20);
  }
  CHECK(programs.size() == 96);
  CHECK(num_searched >= 16);
  CHECK(num_searched <= 32);
  CHECK(num_final == 10);
  CHECK(statuses[MeasureStatus::kTimeout] + statuses[MeasureStatus::kBuildError] > 0);
  CHECK(statuses[MeasureStatus::kOk] > 70);
  CHECK(pool.rows[static_cast<std::size_t>(pool.best())].is_final);
}

TEST_CASE("uniform rows are spread over the sketches") {
  const Pool pool = recorded(make_test_task("gemm"), 90, 0);
  std::vector<int> rows(pool.sketches.size());
  for (const PoolRow& row : pool.rows) ++rows[static_cast<std::size_t>(row.sketch)];
  const auto [fewest, most] = std::minmax_element(rows.begin(), rows.end());
  CHECK(*fewest * 3 >= *most);
  int64_t drawn = 0, lost = 0;
  for (const SketchDraws& d : pool.draws) drawn += d.drawn, lost += d.rejected + d.repeated;
  CHECK(drawn - lost == 90);
}

TEST_CASE("a recording that was stopped goes on, with other candidates") {
  const Task task = make_test_task("gemm");
  Pool pool = empty_pool(task);
  std::atomic<bool> cancel = false;
  TableMeasurer measurer(partly_failing);
  RecordOptions options = small_options(64);
  options.cancel = &cancel;
  int num_saves = 0;
  Pool kept;
  options.save = [&](const Pool& p) {
    kept = p;
    if (++num_saves == 3) cancel = true;
    return Result<void>();
  };
  const Result<RecordEnd> first = record_pool(task, measurer, options, &pool);
  REQUIRE_OK(first);
  CHECK(*first == RecordEnd::kCancelled);
  CHECK(kept.rows.size() >= 24);
  CHECK(kept.rows.size() < 64);
  // As after a kill: only what was saved is there.
  const std::string path = scratch_path("killed.pool");
  REQUIRE_OK(write_pool(kept, path));
  Result<Pool> again = read_pool(path);
  REQUIRE_OK(again);
  const Result<RecordEnd> second = record_pool(task, measurer, small_options(64), &*again);
  REQUIRE_OK(second);
  CHECK(*second == RecordEnd::kComplete);
  CHECK(again->rows.size() == 64);
  for (std::size_t i = 0; i < kept.rows.size(); ++i) {
    CHECK(again->rows[i].fingerprint == kept.rows[i].fingerprint);
  }
  std::set<uint32_t> prints;
  for (const PoolRow& row : again->rows) prints.insert(row.fingerprint);
  CHECK(prints.size() == 64);
  // Nothing is left to do.
  const int num_timed = measurer.num_timed;
  REQUIRE_OK(record_pool(task, measurer, small_options(64), &*again));
  CHECK(measurer.num_timed == num_timed);
}

TEST_CASE("a small space ends a recording; a save that fails ends it, too") {
  const Task task = make_test_task("gemm");
  Pool pool = empty_pool(task, 0);
  // One sketch without alternatives.
  pool.sketches.resize(1);
  pool.draws.resize(1);
  for (schedule::DecisionSpace& space : pool.sketches[0].spaces) {
    if (space.values.size() > 1) space.values.resize(1), space.weights.resize(1);
    space.extent = 1;
  }
  TableMeasurer measurer(hashed_time);
  const Result<RecordEnd> end = record_pool(task, measurer, small_options(1000), &pool);
  REQUIRE_OK(end);
  CHECK(*end == RecordEnd::kExhausted);
  CHECK(pool.rows.size() == 1);
  Pool other = empty_pool(task);
  RecordOptions options = small_options(50);
  options.save = [](const Pool&) -> Result<void> {
    return error(Diag::kIoError, std::string("write"), std::string("p"), std::string("full"));
  };
  CHECK_DIAG(record_pool(task, measurer, options, &other), IoError);
}

TEST_CASE("rows that this build makes other programs of are told") {
  const Task task = make_test_task("gemm");
  Pool pool = recorded(task, 16);
  pool.rows[7].fingerprint ^= 1;
  TableMeasurer measurer(hashed_time);
  CHECK_DIAG(record_pool(task, measurer, small_options(32), &pool), PoolStale);
  ThreadPool threads(1);
  const std::vector<std::optional<Candidate>> rows = restore_rows(pool, task, threads);
  CHECK(!rows[7]);
  CHECK(rows[8]);
}

TEST_CASE("candidates that are not equal to the operator are rows without a time") {
  const Task task = make_test_task("gemm");
  Pool pool = empty_pool(task);
  TableMeasurer measurer(hashed_time);
  RecordOptions options = small_options(24);
  options.check = [](const Task&, const schedule::Trace& trace, double, uint64_t) {
    EqualityResult result;
    const bool wrong = !trace.decisions.empty() && trace.decisions[0][0] % 2 == 0;
    result.verdict.kind = wrong ? ir::VerdictKind::kNotEqual : ir::VerdictKind::kEqual;
    return result;
  };
  REQUIRE_OK(record_pool(task, measurer, options, &pool));
  int num_refuted = 0;
  for (const PoolRow& row : pool.rows) {
    const bool wrong = !row.decisions.empty() && row.decisions[0][0] % 2 == 0;
    CHECK(wrong == (row.status == MeasureStatus::kNotEqual));
    if (wrong) CHECK(row.median_ns == 0);
    num_refuted += wrong ? 1 : 0;
  }
  CHECK(num_refuted > 0);
  CHECK(!pool.examples[static_cast<std::size_t>(MeasureStatus::kNotEqual)].empty());
}

}  // namespace
}  // namespace prunerc

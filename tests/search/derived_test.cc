// Links of derived tasks in the store: kept, checked, exchanged as claims, never believed when damaged.
#include "ir/canonical.h"
#include "search/record/database.h"
#include "tests/search/programs.h"
#include "tests/search/records.h"
#include "tests/support/check.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

DerivedLink make_link(const std::string& recipe = "B*A first") {
  DerivedLink link;
  link.recipe = recipe;
  link.rules = 5;
  link.numerics = "normal";
  link.flops = 1234.5;
  link.limit_ns = 67.125;
  link.log2_error = -70.5;
  link.tests = 3;
  link.assumes = "orders";
  return link;
}

/// Two tasks of one target, stored.
struct Pair {
  Database db;
  int64_t spec = 0, derived = 0;
};

Pair open_pair(const std::string& path = ":memory:") {
  Pair pair = {open_or_die(path)};
  pair.spec = pair.db.put_task(make_test_task("gemm_nt")).value();
  pair.derived = pair.db.put_task(make_test_task("gemm_odd")).value();
  return pair;
}

void change(const std::string& path, const std::string& statement) {
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &raw) == SQLITE_OK);
  CHECK(sqlite3_exec(raw, statement.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  CHECK(sqlite3_changes(raw) > 0);
  sqlite3_close(raw);
}

TEST_CASE("a link comes back as it was from both ends, and a second one changes nothing") {
  Pair pair = open_pair(fresh_path("link"));
  const DerivedLink link = make_link();
  REQUIRE_OK(pair.db.put_derived(pair.spec, pair.derived, link));
  REQUIRE_OK(pair.db.put_derived(pair.spec, pair.derived, make_link("another recipe")));
  const std::vector<DerivedRow> derived = pair.db.derived_of(pair.spec).value();
  const std::vector<DerivedRow> specs = pair.db.specs_of(pair.derived).value();
  REQUIRE(derived.size() == 1);
  REQUIRE(specs.size() == 1);
  CHECK(derived[0].task.id == pair.derived);
  CHECK(derived[0].task.key == make_test_task("gemm_odd").key);
  CHECK(specs[0].task.key == make_test_task("gemm_nt").key);
  CHECK(derived[0].link.created.size() == 20);
  DerivedLink found = derived[0].link;
  CHECK(found == specs[0].link);
  found.created.clear();
  CHECK(found == link);
  CHECK(pair.db.derived_of(pair.derived)->empty());
  CHECK(pair.db.specs_of(pair.spec)->empty());
  CHECK(pair.db.stats()->num_derived == 1);
  CHECK(pair.db.stats()->num_damaged == 0);
  CHECK(pair.db.validate()->empty());
}

TEST_CASE("an operator has several derived tasks, in the order they were linked") {
  Pair pair = open_pair();
  const int64_t third = pair.db.put_task(make_test_task("scores")).value();
  REQUIRE_OK(pair.db.put_derived(pair.spec, third, make_link("one")));
  REQUIRE_OK(pair.db.put_derived(pair.spec, pair.derived, make_link("two")));
  REQUIRE_OK(pair.db.put_derived(third, pair.derived, make_link("three")));
  const std::vector<DerivedRow> derived = pair.db.derived_of(pair.spec).value();
  REQUIRE(derived.size() == 2);
  CHECK(derived[0].link.recipe == "one");
  CHECK(derived[1].link.recipe == "two");
  CHECK(pair.db.specs_of(pair.derived)->size() == 2);
}

TEST_CASE("what is no link is refused") {
  Pair pair = open_pair();
  const int64_t other_target = pair.db.put_task(make_test_task("gemm_odd", 1)).value();
  CHECK_DIAG(pair.db.put_derived(pair.spec, pair.spec, make_link()), DatabaseQuery);
  CHECK_DIAG(pair.db.put_derived(pair.spec, 99, make_link()), DatabaseQuery);
  CHECK_DIAG(pair.db.put_derived(99, pair.derived, make_link()), DatabaseQuery);
  CHECK_DIAG(pair.db.put_derived(pair.spec, other_target, make_link()), DatabaseQuery);
  CHECK_DIAG(pair.db.put_derived(pair.spec, pair.derived, make_link("")), DatabaseQuery);
  CHECK(pair.db.derived_of(pair.spec)->empty());
  CHECK(pair.db.stats()->num_derived == 0);
}

TEST_CASE("what was shown here replaces a claim, and a claim replaces nothing") {
  Pair pair = open_pair();
  DerivedLink claim = make_link("claimed");
  claim.imported = true;
  REQUIRE_OK(pair.db.put_derived(pair.spec, pair.derived, claim));
  const std::vector<Finding> findings = pair.db.validate().value();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].is_claim);
  CHECK(findings[0].problem.find("not checked here") != std::string::npos);
  REQUIRE_OK(pair.db.put_derived(pair.spec, pair.derived, make_link("shown")));
  REQUIRE_OK(pair.db.put_derived(pair.spec, pair.derived, claim));
  const std::vector<DerivedRow> derived = pair.db.derived_of(pair.spec).value();
  REQUIRE(derived.size() == 1);
  CHECK(derived[0].link.recipe == "shown");
  CHECK_FALSE(derived[0].link.imported);
  CHECK(pair.db.validate()->empty());
}

TEST_CASE("a link is taken away without its records") {
  Pair pair = open_pair();
  const Record record = make_record(1, 100);
  REQUIRE_OK(pair.db.put_records(pair.derived, {&record, 1}));
  REQUIRE_OK(pair.db.put_derived(pair.spec, pair.derived, make_link()));
  REQUIRE_OK(pair.db.drop_derived(pair.spec, pair.derived));
  CHECK(pair.db.derived_of(pair.spec)->empty());
  CHECK(pair.db.records(pair.derived)->size() == 1);
  REQUIRE_OK(pair.db.drop_derived(pair.spec, pair.derived));
}

TEST_CASE("a damaged link is skipped, counted and reported, and may be put anew") {
  const char* const damages[] = {
      "UPDATE derived SET recipe = 'other'",
      "UPDATE derived SET log2_error = -99",
      "UPDATE derived SET imported = 1",
      "UPDATE derived SET task = (SELECT MAX(id) FROM task)",
      // The program that would be used, of which nothing else keeps a checksum.
      "UPDATE task SET program = replace(program, '+', '-') WHERE id = 2",
      "UPDATE task SET program = replace(program, '+', '-') WHERE id = 1",
  };
  for (const char* damage : damages) {
    INFO(damage);
    const std::string path = fresh_path("damaged");
    {
      Pair pair = open_pair(path);
      REQUIRE_OK(pair.db.put_task(make_test_task("scores")));
      REQUIRE_OK(pair.db.put_derived(pair.spec, pair.derived, make_link()));
    }
    change(path, damage);
    Database db = open_or_die(path);
    CHECK(db.derived_of(1)->empty());
    CHECK(db.specs_of(2)->empty());
    CHECK(db.stats()->num_damaged == 1);
    CHECK(db.stats()->num_derived == 1);
    const std::vector<Finding> findings = db.validate().value();
    std::string all;
    for (const Finding& finding : findings) all += finding.problem + "\n";
    CHECK(all.find("link of a derived task does not fit its checksum") != std::string::npos);
    if (std::string(damage).find("SET task") != std::string::npos) continue;
    REQUIRE_OK(db.put_derived(1, 2, make_link("anew")));
    CHECK(db.derived_of(1).value()[0].link.recipe == "anew");
    CHECK(db.stats()->num_damaged == 0);
  }
}

TEST_CASE("a killed writer of links loses none that was acknowledged") {
  const std::string path = fresh_path("killed_links");
  { open_pair(path); }
  const std::vector<std::string> names = {"gemm", "scores", "conv2d", "row_sum", "depthwise"};
  for (std::size_t round = 0; round < names.size(); ++round) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
      Result<Database> db = Database::open(path);
      for (std::size_t i = 0; db.ok(); i = (i + 1) % names.size()) {
        const Result<int64_t> id = db->put_task(make_test_task(names[i]));
        if (!id || !db->put_derived(1, *id, make_link(names[i]))) _exit(1);
        if (write(ends[1], "x", 1) != 1) _exit(1);
      }
      _exit(1);
    }
    close(ends[1]);
    char acknowledged = 0;
    for (std::size_t i = 0; i <= round; ++i) REQUIRE(read(ends[0], &acknowledged, 1) == 1);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    close(ends[0]);
    REQUIRE(WIFSIGNALED(status));
    Database db = open_or_die(path);
    CHECK(db.derived_of(1)->size() >= round + 1);
    CHECK(db.validate()->empty());
  }
}

TEST_CASE("lines carry what a task is derived from, and what comes back is a claim") {
  Pair from = open_pair(fresh_path("export_link"));
  const Record record = make_record(1, 100000);
  REQUIRE_OK(from.db.put_records(from.derived, {&record, 1}));
  REQUIRE_OK(from.db.put_records(from.spec, {&record, 1}));
  REQUIRE_OK(from.db.put_derived(from.spec, from.derived, make_link()));
  const std::string lines = lines_of(from.db);
  CHECK(lines.find("\"derived_from\":[{") != std::string::npos);
  CHECK(lines_of(from.db, Export::kBest) == lines);

  Database to = open_or_die(fresh_path("import_link"));
  CHECK(import_text(to, lines)->num_records == 2);
  CHECK(import_text(to, lines)->num_known == 2);
  const int64_t spec = to.find_task(make_test_task("gemm_nt").key).value().value();
  const std::vector<DerivedRow> derived = to.derived_of(spec).value();
  REQUIRE(derived.size() == 1);
  CHECK(derived[0].link.imported);
  CHECK(derived[0].task.key == make_test_task("gemm_odd").key);
  DerivedLink claim = derived[0].link;
  claim.imported = false;
  CHECK(claim == from.db.derived_of(from.spec).value()[0].link);
  // Who has the link as its own keeps it so.
  REQUIRE_OK(import_text(from.db, lines));
  CHECK_FALSE(from.db.derived_of(from.spec).value()[0].link.imported);
  std::string again = lines_of(to);
  const std::string mark = ",\"imported\":true";
  for (std::size_t at = 0; (at = again.find(mark)) != std::string::npos;)
    again.erase(at, mark.size());
  // The derived task's line came second, and so it does again.
  CHECK(again == lines);
}

TEST_CASE("a line whose derivation cannot be read is refused, and nothing is stored") {
  Pair from = open_pair();
  const Record record = make_record(1, 100000);
  REQUIRE_OK(from.db.put_records(from.derived, {&record, 1}));
  REQUIRE_OK(from.db.put_derived(from.spec, from.derived, make_link()));
  const std::string good = lines_of(from.db);
  const auto with = [&](const std::string& key, const std::string& value) {
    const std::size_t list = good.find("\"derived_from\":");
    const std::size_t at = good.find("\"" + key + "\":", list) + key.size() + 3;
    const std::size_t end = std::min(good.find(",\"", at), good.find("}]", at));
    return good.substr(0, at) + value + good.substr(end);
  };
  const std::size_t list = good.find("\"derived_from\":") + 15;
  const std::size_t list_end = good.find("}]", list) + 2;
  const std::string one = good.substr(list + 1, list_end - list - 2);
  std::string many = "[" + one;
  for (int i = 0; i < 8; ++i) many += "," + one;
  const auto with_list = [&](const std::string& text) {
    return good.substr(0, list) + text + good.substr(list_end);
  };
  const std::string own = "\"" + make_test_task("gemm_odd").key.hash + "\"";
  const struct {
    std::string line, why;
  } cases[] = {
      {with_list("7"), "'derived_from' is no list"},
      {with_list("[7]"), "'derived_from' is no list of objects"},
      {with_list("[{}]"), "of 'derived_from': there is no 'op'"},
      {with_list(many + "]"), "'derived_from' has too many entries"},
      {with("recipe", "\"\""), "'recipe' is empty"},
      {with("recipe", "\"a\\u001b[2J\""), "'recipe' has control characters"},
      {with("rules", "-1"), "'rules' is no whole number"},
      {with("log2_error", "\"-70\""), "'log2_error' is no number"},
      {with("flops", "-5"), "'flops' is negative"},
      {with("hash", "\"" + std::string(32, '0') + "\""), "'hash' is not that"},
      {with("hash", own), "'hash' is not that"},
      {with("program", "\"program p( {\""), "its program or target: "},
  };
  for (const auto& bad : cases) {
    INFO(bad.why);
    Database db = open_or_die(":memory:");
    const Result<ImportCounts> counts = import_text(db, bad.line);
    CHECK_DIAG(counts, RecordImport);
    if (counts.ok()) continue;
    INFO(counts.error().message());
    CHECK(counts.error().message().find(bad.why) != std::string::npos);
    CHECK(db.list_tasks()->empty());
  }
}

TEST_CASE("a program takes the names of another one of the same parameters, and its own give way") {
  const ir::Program of = parse_or_die(
      "program scale(A: f32[8], T: f32[8]) -> (B: f32[8]) { for i in 8 { B[i] = A[i] * T[i] } }");
  const ir::Program other = parse_or_die(
      "program p(x: f32[8], y: f32[8]) -> (z: f32[8]) { buffer T: f32[8] global "
      "for i in 8 { T[i] = y[i] } for j in 8 { z[j] = x[j] * T[j] } }");
  REQUIRE(ir::same_parameters(of, other));
  const ir::Program named = ir::with_names_of(other, of);
  CHECK(named.name() == "scale");
  std::vector<std::string> names;
  for (const ir::Buffer& buffer : named.buffers()) names.emplace_back(buffer.name);
  CHECK(names == std::vector<std::string>{"A", "T", "B", "T_"});
  CHECK(ir::print_canonical(named) == ir::print_canonical(other));
}

TEST_CASE("programs of other shapes, types, roles or constants have other parameters") {
  const auto program = [](const std::string& params) {
    return parse_or_die("program p(" + params + ") -> (z: f32[8]) { for i in 8 { z[i] = 1f32 } }");
  };
  const ir::Program base = program("x: f32[8], y: f32[4]");
  CHECK(ir::same_parameters(base, program("a: f32[8], b: f32[4]")));
  for (const char* params : {"x: f32[8]", "x: f32[4], y: f32[8]", "x: f32[8], y: f32[4, 1]",
                             "x: f32[8], const y: f32[4]", "x: i32[8], y: f32[4]"}) {
    INFO(params);
    CHECK_FALSE(ir::same_parameters(base, program(params)));
  }
}

}  // namespace
}  // namespace prunerc

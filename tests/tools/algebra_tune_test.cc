// Derived programs in a session: tuned, chosen, compiled, run and verified, and refused where they are wrong.
#include "ir/equal.h"
#include "runtime/cpu/device.h"
#include "schedule/schedule.h"
#include "search/space/sampler.h"
#include "tests/support/check.h"
#include "tools/driver/algebra.h"
#include "tools/driver/backend.h"
#include "tools/driver/export.h"
#include "tools/driver/network/network_rank.h"
#include "tools/driver/reference.h"
#include "tools/driver/stored.h"

#include <atomic>
#include <cstdlib>

namespace prunerc {
namespace {

using search::algebra::Derived;
using search::algebra::DeriveReport;

constexpr const char* kText = R"(
op lora(X: f32[6,16], A: f32[16,4], B: f32[4,24]) -> (Y: f32[6,24]) {
  let W[i,j] = sum[k] A[i,k] * B[k,j];
  Y[i,j] = sum[k] X[i,k] * W[k,j];
}
)";

std::string other_order(const std::string& term = "T[wi, wk] * b[wk, wj]") {
  return R"(program p(x: f32[6, 16], a: f32[16, 4], b: f32[4, 24]) -> (y: f32[6, 24]) {
  buffer T: f32[6, 4] global
  for i in 6 { for j in 4 { for k in 16 {
    block "T" [vi: S(6) = i, vj: S(4) = j, vk: R(16) = k] {
      init { T[vi, vj] = 0f32 } T[vi, vj] = T[vi, vj] + x[vi, vk] * a[vk, vj] } } } }
  for i2 in 6 { for j2 in 24 { for k2 in 4 {
    block "y" [wi: S(6) = i2, wj: S(24) = j2, wk: R(4) = k2] {
      init { y[wi, wj] = 0f32 } y[wi, wj] = y[wi, wj] + )" +
         term + " } } } } }";
}

Operator lora() {
  OperatorRequest request;
  request.text = kText;
  return load_operator(request).value();
}

Session open_session(int threads = 1) {
  const char* const folder = std::getenv("TEST_TMPDIR");
  ::setenv("XDG_CACHE_HOME", folder == nullptr ? "/tmp" : folder, 1);
  SessionOptions options;
  options.database = ":memory:";
  options.threads = threads;
  Result<Session> session = Session::open(options);
  REQUIRE_OK(session);
  return std::move(session).value();
}

Derived form(const std::string& text, const std::string& recipe, double limit_ns = 10) {
  Derived out;
  out.program = testing::parse_or_die(text);
  out.recipe = recipe;
  out.flops = 1000;
  out.limit_ns = limit_ns;
  out.verdict.kind = ir::VerdictKind::kEqual;
  return out;
}

Deriver gives(std::vector<Derived> forms) {
  return [forms = std::move(forms)](const ir::Program&, const ir::Target&,
                                    const search::algebra::DeriveOptions&) {
    DeriveReport report;
    report.spec_limit_ns = 100;
    report.forms = forms;
    return Result<DeriveReport>(report);
  };
}

search::TuneOptions few_trials(int64_t trials = 9) {
  search::TuneOptions options;
  options.trials = trials;
  options.finals = 2;
  options.strategy = search::StrategyKind::kRandom;
  return options;
}

AlgebraTuneReport tune(Session& session, const Deriver& derive, AlgebraMode mode = AlgebraMode::kOn,
                       int64_t trials = 9) {
  const Operator op = lora();
  Result<AlgebraTuneReport> report = session.tune({&op, 1}, few_trials(trials), {mode, derive});
  REQUIRE_OK(report);
  return std::move(report).value();
}

/// The derived task of the operator, linked in the store.
search::algebra::Alternative put_link(Session& session, bool imported = false,
                                      const std::string& text = other_order()) {
  const search::Task spec = session.task(lora());
  search::algebra::Alternative made;
  made.link.recipe = "X*A first";
  made.link.numerics = "normal";
  made.link.log2_error = -70;
  made.link.imported = imported;
  made.task = search::algebra::task_of_link(spec, testing::parse_or_die(text), made.link);
  const int64_t spec_id = session.database().put_task(spec).value();
  const int64_t id = session.database().put_task(made.task).value();
  REQUIRE_OK(session.database().put_derived(spec_id, id, made.link));
  return made;
}

/// A record of some candidate of the task.
std::string put_record(Session& session, const search::Task& task, double ns, bool imported = false,
                       uint64_t seed = 1) {
  const search::SearchSpace space = search::make_space(task).value();
  ThreadPool pool(1);
  Rng rng(seed);
  while (true) {
    const search::Genome genome =
        search::random_genome(space, search::random_sketch(space, rng), rng);
    const auto made = search::instantiate_all(task, space, {&genome, 1}, pool);
    if (!made[0]) continue;
    search::Record record;
    record.fingerprint = ir::fingerprint(made[0]->program).to_string();
    record.trace = schedule::print(made[0]->trace);
    record.measurement.status = MeasureStatus::kOk;
    record.measurement.evidence = "compared";
    record.measurement.samples_ns = {ns};
    search::summarize_samples(record.measurement);
    record.imported = imported;
    const int64_t id = session.database().put_task(task).value();
    REQUIRE_OK(session.database().put_records(id, {&record, 1}));
    return record.fingerprint;
  }
}

struct alignas(64) Array {
  float at[6 * 24] = {};
};

// What the kernel gives, and what the operator is.
void check_kernel(Session& session, const Choice& choice) {
  const Result<codegen::Artifact> artifact = session.compile(choice);
  REQUIRE_OK(artifact);
  Result<Kernel> kernel = Kernel::load(*artifact, session.num_threads());
  REQUIRE_OK(kernel);
  Array x, a, b, y;
  for (int i = 0; i < 96; ++i) x.at[i] = static_cast<float>(i % 5) - 2;
  for (int i = 0; i < 64; ++i) a.at[i] = static_cast<float>(i % 7) - 3;
  for (int i = 0; i < 96; ++i) b.at[i] = static_cast<float>(i % 3) - 1;
  const void* const inputs[] = {x.at, a.at, b.at};
  void* const outputs[] = {y.at};
  REQUIRE_OK(kernel->run(inputs, outputs));
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 24; ++j) {
      float want = 0;
      for (int k = 0; k < 16; ++k) {
        for (int r = 0; r < 4; ++r) want += x.at[16 * i + k] * a.at[4 * k + r] * b.at[24 * r + j];
      }
      CHECK(y.at[24 * i + j] == want);
    }
  }
}

// --- tuning

TEST_CASE("an operator and a derived program share its trials, and the store links them") {
  Session session = open_session();
  const AlgebraTuneReport report = tune(session, gives({form(other_order(), "X*A first")}));
  REQUIRE(report.outcomes.size() == 1);
  REQUIRE(report.tune.tasks.size() == 1);
  CHECK(report.outcomes[0].num_tuned == 1);
  CHECK(report.outcomes[0].note.empty());
  CHECK(report.tune.tasks[0].name == "lora");
  CHECK(report.tune.tasks[0].trials == 9);
  CHECK(report.tune.tasks[0].verified);
  CHECK(report.outcomes[0].winner_ns == report.tune.tasks[0].best_ns);
  search::Database& db = session.database();
  const int64_t spec = db.find_task(session.task(lora()).key).value().value();
  const std::vector<search::DerivedRow> derived = db.derived_of(spec).value();
  REQUIRE(derived.size() == 1);
  CHECK(derived[0].link.log2_error <= search::kStoredLog2Error);
  const std::vector<search::Record> records = db.records(derived[0].task.id).value();
  REQUIRE_FALSE(records.empty());
  // A derived program's evidence names both programs.
  const std::optional<search::Record> best = db.best(derived[0].task.id).value();
  REQUIRE(best);
  CHECK(best->measurement.evidence.find("of the operator as written") != std::string::npos);
  const Result<Choice> choice = session.choose(lora());
  REQUIRE_OK(choice);
  CHECK(choice->origin == Choice::Origin::kRecord);
  // Of kernels so short either may win.
  CHECK((choice->recipe.empty() || choice->recipe == "X*A first"));
  check_kernel(session, *choice);
}

TEST_CASE("a wrong derived program is refused by name, and leaves no trace in the store") {
  Session session = open_session();
  const Derived wrong = form(other_order("T[wi, wk] * b[3 - wk, wj]"), "lucky");
  const AlgebraTuneReport report = tune(session, gives({wrong, form(other_order(), "X*A first")}));
  CHECK(report.outcomes[0].num_tuned == 1);
  CHECK(report.outcomes[0].note.find("'lucky' is refused: not equal") == 0);
  CHECK(session.database().stats()->num_derived == 1);
  CHECK(session.database().stats()->num_tasks == 2);
}

TEST_CASE("auto takes what is clearly cheaper by its limit, on takes all, off none") {
  const Deriver derive = gives(
      {form(other_order(), "cheap", 95), form(other_order("b[wk, wj] * T[wi, wk]"), "dear", 96)});
  const struct {
    AlgebraMode mode;
    int64_t links;
  } cases[] = {{AlgebraMode::kOff, 0}, {AlgebraMode::kAuto, 1}, {AlgebraMode::kOn, 2}};
  for (const auto& one : cases) {
    INFO(to_string(one.mode));
    Session session = open_session();
    const AlgebraTuneReport report = tune(session, derive, one.mode, 6);
    CHECK(report.outcomes[0].num_tuned == one.links);
    CHECK(session.database().stats()->num_derived == one.links);
    CHECK(report.tune.tasks[0].trials == 6);
    CHECK(algebra_mode_from_string(to_string(one.mode)) == one.mode);
  }
  CHECK_FALSE(algebra_mode_from_string("maybe"));
}

TEST_CASE("where nothing can be derived the operator is tuned as it is, and the note says why") {
  const Deriver fails = [](const ir::Program&, const ir::Target&,
                           const search::algebra::DeriveOptions&) -> Result<DeriveReport> {
    return error(Diag::kUnsupported, "a program with more than 64 axes");
  };
  for (const Deriver& derive : {fails, gives({}), Deriver()}) {
    Session session = open_session();
    const AlgebraTuneReport report = tune(session, derive, AlgebraMode::kOn, 4);
    CHECK(report.tune.tasks[0].trials == 4);
    CHECK(report.tune.tasks[0].verified);
    CHECK_FALSE(report.outcomes[0].link);
    CHECK(report.outcomes[0].spec_ns == report.tune.tasks[0].best_ns);
    CHECK(session.choose(lora())->recipe.empty());
  }
  Session session = open_session();
  CHECK(tune(session, fails, AlgebraMode::kOn, 3).outcomes[0].note.find("64 axes") !=
        std::string::npos);
}

TEST_CASE("who cancels does not wait until every operator's programs are derived") {
  Session session = open_session();
  const std::vector<Operator> ops = {lora(), lora(), lora()};
  std::atomic<bool> cancel = false;
  int num_derived = 0;
  const Deriver derive = [&](const ir::Program& spec, const ir::Target& target,
                             const search::algebra::DeriveOptions& options) {
    ++num_derived;
    cancel = true;
    return gives({form(other_order(), "X*A first")})(spec, target, options);
  };
  search::TuneOptions options = few_trials();
  options.cancel = &cancel;
  const Result<AlgebraTuneReport> report = session.tune(ops, options, {AlgebraMode::kOn, derive});
  REQUIRE_OK(report);
  CHECK(num_derived == 1);
  CHECK(report->tune.cancelled);
  CHECK(report->tune.tasks.size() == 3);
}

TEST_CASE("of several operators each has its row, and all have their trials together") {
  Session session = open_session();
  OperatorRequest request;
  request.text = std::string(kText) + "op scale(A: f32[40]) -> (B: f32[40]) { B[i] = A[i] * 2; }";
  const std::vector<Operator> ops = load_operators(request).value();
  const Deriver derive = [](const ir::Program& spec, const ir::Target& target,
                            const search::algebra::DeriveOptions& options) {
    return spec.params().size() == 4
               ? gives({form(other_order(), "X*A first")})(spec, target, options)
               : gives({})(spec, target, options);
  };
  search::TuneOptions options = few_trials(0);
  options.total_trials = 16;
  std::vector<std::string> rows;
  int64_t last_done = 0;
  options.on_progress = [&](const search::TuneProgress& p) {
    rows.clear();
    for (const search::TaskReport& row : p.tasks) rows.push_back(row.name);
    CHECK(p.trials_done >= last_done);
    last_done = p.trials_done;
    CHECK(p.trials_total == 16);
  };
  const Result<AlgebraTuneReport> report = session.tune(ops, options, {AlgebraMode::kOn, derive});
  REQUIRE_OK(report);
  CHECK(rows == std::vector<std::string>{"lora", "scale"});
  REQUIRE(report->tune.tasks.size() == 2);
  CHECK(report->outcomes[0].num_tuned == 1);
  CHECK(report->outcomes[1].num_tuned == 0);
  CHECK(report->tune.tasks[0].trials + report->tune.tasks[1].trials <= 16);
  CHECK(report->tune.tasks[0].trials == 8);
  CHECK(report->tune.tasks[1].verified);
  const double sum = report->tune.tasks[0].best_ns + report->tune.tasks[1].best_ns;
  CHECK(report->tune.total_weighted_ns == Approx(sum));
}

// --- choosing

TEST_CASE("the stored best of all programs is chosen, with what is known of it, and runs") {
  Session session = open_session();
  const search::algebra::Alternative made = put_link(session);
  put_record(session, session.task(lora()), 1000);
  const std::string fingerprint = put_record(session, made.task, 500);
  const Result<Choice> choice = session.choose(lora());
  REQUIRE_OK(choice);
  CHECK(choice->recipe == "X*A first");
  CHECK(choice->best_ns == 500);
  REQUIRE(choice->derivation);
  CHECK(choice->derivation->spec_ns == 1000);
  CHECK(choice->derivation->link.numerics == "normal");
  CHECK(ir::fingerprint(choice->program).to_string() == fingerprint);
  CHECK(session.task(lora(), *choice).key == made.task.key);
  check_kernel(session, *choice);
  Result<Kernel> kernel = session.kernel(lora());
  REQUIRE_OK(kernel);
  // Callers know the operator's names.
  Result<Exported> exported = Exported::make(session, lora(), *choice);
  REQUIRE_OK(exported);
  CHECK(exported->file(ExportForm::kHeader)
            ->find("int op_lora(const float* X, const float* A, const float* B, float* Y);") !=
        std::string::npos);
  const Result<search::Measurement> verdict = session.verify(lora(), *choice);
  REQUIRE_OK(verdict);
  CHECK(verdict->ok());
  CHECK(verdict->evidence.find("of the operator as written") != std::string::npos);
}

TEST_CASE("as written stays the choice within 2 %, and where the derived program has no record") {
  Session session = open_session();
  const search::algebra::Alternative made = put_link(session);
  put_record(session, session.task(lora()), 1000);
  CHECK(session.choose(lora())->recipe.empty());
  put_record(session, made.task, 990);
  CHECK(session.choose(lora())->recipe.empty());
  CHECK(session.choose(lora())->best_ns == 1000);
  put_record(session, made.task, 970, false, 2);
  CHECK(session.choose(lora())->recipe == "X*A first");
  // Without one of the operator there is nothing to stay with.
  Session other = open_session();
  put_record(other, put_link(other).task, 990);
  CHECK(other.choose(lora())->recipe == "X*A first");
  CHECK(other.choose(lora())->derivation->spec_ns == 0);
}

TEST_CASE("a link that is not sure enough is not used") {
  Session session = open_session();
  const search::Task spec = session.task(lora());
  search::DerivedLink link;
  link.recipe = "hearsay";
  link.log2_error = -40;
  const search::Task task =
      search::algebra::task_of_link(spec, testing::parse_or_die(other_order()), link);
  search::Database& db = session.database();
  REQUIRE_OK(db.put_derived(db.put_task(spec).value(), db.put_task(task).value(), link));
  put_record(session, task, 10);
  CHECK(session.choose(lora())->origin == Choice::Origin::kHeuristic);
}

TEST_CASE("an imported link is shown before it is used, and a wrong one is taken away") {
  for (const bool right : {true, false}) {
    Session session = open_session();
    const std::string text = right ? other_order() : other_order("T[wi, wk] * b[3 - wk, wj]");
    const search::algebra::Alternative made = put_link(session, /*imported=*/true, text);
    put_record(session, made.task, 10, /*imported=*/true);
    const Result<Choice> choice = session.choose(lora());
    REQUIRE_OK(choice);
    search::Database& db = session.database();
    const int64_t spec = db.find_task(session.task(lora()).key).value().value();
    const std::vector<search::DerivedRow> links = db.derived_of(spec).value();
    if (right) {
      CHECK(choice->recipe == "X*A first");
      CHECK(choice->note.find("imported, equal") == 0);
      CHECK(choice->best_ns == 0);
      REQUIRE(links.size() == 1);
      CHECK_FALSE(links[0].link.imported);
      check_kernel(session, *choice);
      // Verified and timed here, it is a record.
      CHECK(session.settle_claims(lora()).value() == 1);
      CHECK(session.choose(lora())->best_ns > 0);
    } else {
      CHECK(choice->origin == Choice::Origin::kHeuristic);
      CHECK(links.empty());
      CHECK(session.settle_claims(lora()).value() == 0);
    }
  }
}

TEST_CASE("a link of a program that is not the operator's does not pass verification") {
  Session session = open_session();
  const search::algebra::Alternative wrong =
      put_link(session, false, other_order("T[wi, wk] * b[3 - wk, wj]"));
  put_record(session, wrong.task, 10);
  // The store says that it was shown, so it is chosen.
  const Choice choice = session.choose(lora()).value();
  REQUIRE(choice.recipe == "X*A first");
  const Result<search::Measurement> verdict = session.verify(lora(), choice);
  REQUIRE_OK(verdict);
  CHECK_FALSE(verdict->ok());
}

// --- numbers

TEST_CASE("outputs of a derived program are compared with the operator as well") {
  runtime::CpuDevice device({.num_threads = 1});
  References references(device);
  Session session = open_session();
  const search::Task spec = session.task(lora());
  search::DerivedLink link;
  link.recipe = "some";
  for (const bool right : {true, false}) {
    const std::string text = right ? other_order() : other_order("T[wi, wk] * b[3 - wk, wj]");
    const search::Task task =
        search::algebra::task_of_link(spec, testing::parse_or_die(text), link);
    const Result<codegen::Artifact> artifact = build_kernel(task.base, task.target);
    REQUIRE_OK(artifact);
    runtime::Job job;
    job.artifact = &*artifact;
    job.inputs = References::inputs(task.base, 5);
    job.want_outputs = true;
    const runtime::JobOutcome ran = device.run(job);
    REQUIRE(ran.measurement.ok());
    // It is what it says, whatever the operator is.
    search::Task alone = task;
    alone.spec = {};
    const Result<Comparison> own = references.compare(alone, 5, ran.outputs);
    REQUIRE_OK(own);
    CHECK(own->ok);
    const Result<Comparison> both = references.compare(task, 5, ran.outputs);
    REQUIRE_OK(both);
    CHECK(both->ok == right);
    INFO(both->what);
    CHECK(both->what.find("of the operator as written: ") != std::string::npos);
  }
}

// --- networks

constexpr const char* kNet = R"(
net two(x: f32[6,16]) -> (y: f32[6,24]) {
  const A: f32[16,4]; const B: f32[4,24];
  y = lora(x, A, B) as only;
}
)";

TEST_CASE("a call of a net runs by a derived program, and the network may prefer another one") {
  Session session = open_session();
  OperatorRequest request;
  request.text = std::string(kText) + kNet;
  const net::Net net = (*load_net(request))->net;
  const std::vector<Operator> ops = operators_of(net);
  REQUIRE(ops.size() == 1);
  const WeightSource weights = WeightSource::open(net, "", "rand:normal(0,0.05)").value();
  const search::Task spec = session.task(ops[0]);
  search::DerivedLink link;
  link.recipe = "X*A first";
  link.log2_error = -70;
  std::string text = other_order();
  text.replace(text.find("a: f32"), 2, "const a:");
  text.replace(text.find("b: f32"), 2, "const b:");
  const search::Task derived =
      search::algebra::task_of_link(spec, testing::parse_or_die(text), link);
  search::Database& db = session.database();
  REQUIRE_OK(db.put_derived(db.put_task(spec).value(), db.put_task(derived).value(), link));
  const std::string own = put_record(session, spec, 700);
  const std::string fast = put_record(session, derived, 500);
  CHECK(session.choose(ops[0])->recipe == "X*A first");

  struct alignas(64) Rows {
    float at[6 * 24] = {};
  };
  Rows x, first, second;
  for (int i = 0; i < 96; ++i) x.at[i] = static_cast<float>(i % 7) - 3;
  const void* const in[] = {&x};
  const auto run = [&](const Network::Schedules& schedules, Rows* out) {
    Network network = Network::build(net, {session.target(), 1}, schedules).value();
    REQUIRE_OK(network.prepare(weights));
    void* const outputs[] = {out};
    REQUIRE_OK(network.run(in, outputs));
  };
  run([&](const Operator& op) -> Result<ir::Program> { return session.choose(op)->program; },
      &first);
  run(
      [&](const Operator& op) -> Result<ir::Program> {
        return session.choose(op, Effort::kO1)->program;
      },
      &second);
  for (int i = 0; i < 6 * 24; ++i) CHECK(first.at[i] == Approx(second.at[i]).margin(1e-5));

  // Within the network the operator as written is faster; then, another day, the derived one again.
  const auto rank = [&](const std::string& winner) {
    const TimedNetworkRun timed = [&](Network& network, std::vector<int64_t>* times) {
      const bool wins = network.artifact(0).entry.find(winner) != std::string::npos;
      times->assign(1, wins ? 500 : 700);
      return Result<void>();
    };
    const Result<RankReport> report = rank_in_network(session, net, weights, timed, {});
    REQUIRE_OK(report);
    CHECK(report->num_changed == 1);
    return session.choose(ops[0]).value();
  };
  const Choice written = rank(own);
  CHECK(written.recipe.empty());
  CHECK(ir::fingerprint(written.program).to_string() == own);
  CHECK(written.best_ns == 700);
  const Choice again = rank(fast);
  CHECK(again.recipe == "X*A first");
  CHECK(ir::fingerprint(again.program).to_string() == fast);
  CHECK(again.best_ns == 500);
}

}  // namespace
}  // namespace prunerc

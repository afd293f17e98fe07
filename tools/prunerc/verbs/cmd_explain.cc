#include "costmodel/latency/nest.h"
#include "costmodel/latency/symbols.h"
#include "costmodel/pruner/analyzer.h"
#include "ir/parser.h"
#include "schedule/schedule.h"
#include "search/record/pool.h"
#include "search/tune/task_state.h"
#include "tools/driver/backend.h"
#include "tools/driver/limits.h"
#include "tools/driver/reference.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/display.h"
#include "tools/prunerc/heartbeat.h"
#include "tools/prunerc/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>

namespace prunerc::cli {
namespace {

struct ExplainVerb {
  std::string what;  // number of a record, a pool, or an operator file
  OperatorOptions op;
  MachineOptions machine;
  int64_t row = -1;  // of a pool; -1: the best
  int top = 1;
};

/// A candidate and what is known of its time.
struct Subject {
  std::string title;
  search::Task task;
  ir::Program program;
  double measured_ns = 0;  // 0: not measured
  double spread = 0;
  Remeasure remeasure = nullptr;              // null: measured elsewhere or long ago
  std::vector<std::string> derivations = {};  // lines about how the program was derived
};

// What a derived program is, and the stored best of the operator beside this one.
std::string derivation_text(const search::DerivedLink& link, double spec_ns, double measured_ns) {
  std::string beside = "nothing stored as written";
  if (spec_ns > 0) {
    beside = fmt::format("as written {}", time_text(spec_ns));
    if (measured_ns > 0) beside += fmt::format(", {:.2f} times this", spec_ns / measured_ns);
  }
  return fmt::format("  derived         '{}': {}{}; {}\n", link.recipe,
                     link.imported ? "imported, says to be " : "", proof_text(link), beside);
}

std::string share_text(double ns, double measured_ns) {
  return measured_ns > 0 ? fmt::format("{:.0f}%", 100 * ns / measured_ns) : "-";
}

// What each unit would take alone, nest by nest; columns of zeros are left out.
void print_parts(const costmodel::LatencySymbols& symbols) {
  std::vector<std::size_t> used;
  for (std::size_t part = 0; part < costmodel::kNumTermParts; ++part) {
    const bool any = std::any_of(symbols.terms.begin(), symbols.terms.end(), [&](const auto& term) {
      return part < term.parts_ns.size() && term.parts_ns[part].value() > 0;
    });
    if (any) used.push_back(part);
  }
  std::string line = fmt::format("  {:<16}{:>12}", "nest", "total");
  for (const std::size_t part : used) {
    line += fmt::format("{:>12}", to_string(static_cast<costmodel::TermPart>(part)));
  }
  fmt::print("{}\n", line);
  // Records keep no names of blocks, so nests are numbered.
  for (std::size_t i = 0; i < symbols.terms.size(); ++i) {
    const costmodel::LatencyTerm& term = symbols.terms[i];
    line = fmt::format("  {:<16}{:>12}", fmt::format("{} {}", i + 1, term.name).substr(0, 16),
                       time_text(term.total_ns.value()));
    for (const std::size_t part : used) {
      line += fmt::format("{:>12}", time_text(term.parts_ns[part].value()));
    }
    fmt::print("{}\n", line);
  }
  fmt::print("  {:<16}{:>12}\n", "launch", time_text(symbols.launch_ns.value()));
}

void print_estimate(const Subject& subject) {
  const costmodel::LatencySymbols symbols =
      costmodel::latency_symbols(subject.program, subject.task.target);
  const double measured = subject.measured_ns, predicted = symbols.total_ns.value();
  const LimitShare share = share_of_limit(subject.task, measured, subject.remeasure);
  fmt::print("  {:<16}{:>12}{:>8}\n", "", "time", "of it");
  if (measured > 0) {
    fmt::print("  {:<16}{:>12}{:>8}  spread {:.1f}%\n", "measured", time_text(measured),
               share_text(measured, measured), 100 * subject.spread);
  }
  fmt::print("  {:<16}{:>12}{:>8}  by the analyzer\n", "predicted", time_text(predicted),
             share_text(predicted, measured));
  const std::string unit = share.limit.unit == LimitUnit::kNone
                               ? "nobody measured integer arithmetic here"
                               : fmt::format("{} alone", to_string(share.limit.unit));
  fmt::print("  {:<16}{:>12}{:>8}  {}{}\n", "limit", time_text(share.limit.ns),
             share.limit.ns > 0 ? share_text(share.limit.ns, measured) : "-", unit,
             share.note.empty() ? "" : ", " + share.note);
  print_parts(symbols);
  for (const costmodel::LatencyLimit& l : symbols.limits) {
    fmt::print("  {:<16}{:>12.0f} of at most {:.0f}\n", l.what, l.have.value(), l.most);
  }
  fmt::print("  code {:.0f} statements, largest tile {:.0f} vector registers\n",
             symbols.code_size.value(), symbols.max_tile_registers.value());
}

// The published penalties, as factors of a rate; for GPUs alone.
void print_penalties(const Subject& subject) {
  if (subject.task.target.kind == ir::TargetKind::kCpu) return;
  const costmodel::PrunerDevice device = costmodel::pruner_device(subject.task.target);
  for (const auto version :
       {costmodel::PrunerVersion::kRelease, costmodel::PrunerVersion::kPaper}) {
    costmodel::ParamSpace space(subject.program.domain());
    const costmodel::NestTable table(subject.program, space);
    const costmodel::PrunerLatency latency = costmodel::pruner_latency(
        costmodel::pruner_symbols(table, device), device, {.version = version});
    fmt::print("  Pruner, as {}: {}\n",
               version == costmodel::PrunerVersion::kRelease ? "released" : "published",
               time_text(1e6 * latency.ms.value()));
    fmt::print("  {:<16}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>12}{:>12}\n", "statement",
               "registers", "reuse", "shared", "warps", "waves", "transact.", "aligned", "compute",
               "memory");
    for (const costmodel::PrunerTerm& t : latency.terms) {
      const costmodel::PrunerPenalties& p = t.penalties;
      fmt::print(
          "  {:<16}{:>10.3f}{:>10.3f}{:>10.3f}{:>10.3f}{:>10.3f}{:>10.3f}{:>10.3f}{:>12}{:>12}\n",
          std::string(subject.program.buffer(t.buffer).name).substr(0, 16), p.registers.value(),
          p.reuse.value(), p.shared.value(), p.warps.value(), p.waves.value(),
          p.transactions.value(), p.alignment.value(), time_text(1e6 * t.compute_ms.value()),
          time_text(1e6 * t.memory_ms.value()));
    }
  }
}

int explain(const std::vector<Subject>& subjects) {
  for (const Subject& subject : subjects) {
    fmt::print("{}\n", subject.title);
    for (const std::string& line : subject.derivations) fmt::print("{}", line);
    print_estimate(subject);
    print_penalties(subject);
  }
  return kSuccess;
}

int of_another_build(const std::string& what, const Error& error) {
  return fail(fmt::format("{} gives no program in this build: {}", what, error.message()),
              "it is of another build: tune or record its operator again", kBadInput);
}

// --- records

Result<Subject> from_record(const search::TaskRow& row, const search::Record& record) {
  PRUNERC_TRY(ir::Program base, ir::parse(row.key.program));
  PRUNERC_TRY(ir::Target target, ir::target_from_string(record.platform));
  PRUNERC_TRY(const schedule::Trace trace, schedule::parse_trace(record.trace));
  Subject subject;
  subject.task = search::make_task(row.name, std::move(base), std::move(target));
  PRUNERC_TRY(const schedule::Schedule replayed, schedule::replay(subject.task.base, trace));
  subject.program = replayed.program();
  subject.measured_ns = record.measurement.median_ns;
  subject.spread = record.measurement.spread;
  subject.title = fmt::format("record {}: {} {}, sketch {}, {}", record.id, row.name, row.bindings,
                              record.sketch, describe(record.measurement.status));
  return subject;
}

// What the record's task is derived from, if it is.
Result<std::vector<std::string>> derivations_of(search::Database& database, int64_t task,
                                                double measured_ns) {
  PRUNERC_TRY(const std::vector<search::DerivedRow> specs, database.specs_of(task));
  std::vector<std::string> lines;
  for (const search::DerivedRow& spec : specs) {
    PRUNERC_TRY(const std::optional<search::Record> best, database.best(spec.task.id));
    lines.push_back(
        derivation_text(spec.link, best ? best->measurement.median_ns : 0, measured_ns));
  }
  return lines;
}

int explain_record(const ExplainVerb& verb, int64_t id) {
  Result<search::Database> database = search::Database::open_to_read(
      verb.machine.database.empty() ? default_database() : verb.machine.database);
  if (!database.ok()) return fail(database.error());
  const Result<std::vector<search::TaskRow>> tasks = database->list_tasks();
  if (!tasks.ok()) return fail(tasks.error());
  for (const search::TaskRow& row : *tasks) {
    const Result<std::vector<search::Record>> records = database->records(row.id);
    if (!records.ok()) return fail(records.error());
    for (const search::Record& record : *records) {
      if (record.id != id) continue;
      Result<Subject> subject = from_record(row, record);
      if (!subject.ok()) return of_another_build(verb.what, subject.error());
      Result<std::vector<std::string>> derivations =
          derivations_of(*database, row.id, subject->measured_ns);
      if (!derivations.ok()) return fail(derivations.error());
      subject->derivations = *std::move(derivations);
      return explain({*subject});
    }
  }
  return fail(fmt::format("no record {} in '{}'", id, database->path()),
              "`prunerc db best` prints the numbers of records", kCacheMiss);
}

// --- pools

int explain_pool(const ExplainVerb& verb) {
  const Result<search::Pool> pool = search::read_pool(verb.what);
  if (!pool.ok()) return fail(pool.error());
  const Result<search::Task> task = pool->task();
  if (!task.ok()) return fail(task.error());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < pool->rows.size(); ++i) {
    const bool wanted = verb.row < 0 ? pool->rows[i].ok() : static_cast<int64_t>(i) == verb.row;
    if (wanted) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return pool->rows[a].median_ns < pool->rows[b].median_ns;
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(verb.top)));
  std::vector<Subject> subjects;
  for (const std::size_t i : order) {
    const search::PoolRow& row = pool->rows[i];
    const Result<search::Candidate> made =
        search::instantiate(*task, pool->space(), row.sketch, row.decisions);
    if (!made.ok())
      return of_another_build(fmt::format("row {} of {}", i, verb.what), made.error());
    const std::string title =
        fmt::format("row {}: {} {}, sketch {}, {}, {}", i, pool->op, pool->bindings,
                    pool->sketches[static_cast<std::size_t>(row.sketch)].name, describe(row.status),
                    search::describe_choice(*made));
    subjects.push_back({title, *task, made->program, row.median_ns, row.spread, nullptr, {}});
  }
  if (!subjects.empty()) return explain(subjects);
  return fail(error(Diag::kUsageOption, "--row",
                    fmt::format("'{}' has {} rows, and none that is meant ran", verb.what,
                                pool->rows.size())),
              kUsage);
}

// --- operators: the stored, chosen or scripted schedule, timed now

std::string title_of(const Operator& op, const Choice& choice) {
  return fmt::format("{} {}, {} schedule", op.name, op.bindings, to_string(choice.origin));
}

// For a device that is not here: nothing is measured.
int explain_elsewhere(const ExplainVerb& verb, const OperatorRequest& request, Session session) {
  const Result<Operator> op = load_operator(request);
  if (!op.ok()) return fail(op.error());
  const Result<Choice> choice = choose(session, *op, verb.machine);
  if (!choice.ok()) return fail(choice.error(), choice_code(choice.error(), verb.machine));
  print_note(*op, *choice);
  Subject subject;
  subject.title = title_of(*op, *choice) + ", not timed: its device is not here";
  subject.task = session.task(*op, *choice);
  subject.program = choice->program;
  return explain({subject});
}

int explain_operator(ExplainVerb verb) {
  verb.op.file = verb.what;
  const Result<OperatorRequest> request = verb.op.request();
  if (!request.ok()) return fail(request.error(), kUsage);
  Result<Session> described = verb.machine.open_unmeasured();
  if (!described.ok()) return fail(described.error());
  if (!runs_here(described->target())) {
    return explain_elsewhere(verb, *request, std::move(described).value());
  }
  int code = kSuccess;
  std::optional<Prepared> prepared = prepare(*request, verb.machine, &code);
  if (!prepared) return code;
  Subject subject;
  subject.task = prepared->session.task(prepared->op, prepared->choice);
  subject.program = prepared->choice.program;
  const Result<std::unique_ptr<runtime::Device>> device =
      open_device(prepared->session.target(), prepared->session.num_threads());
  if (!device.ok()) return fail(device.error(), kDeviceProblem);
  runtime::Job job;
  job.artifact = &prepared->artifact;
  job.inputs = References::inputs(subject.task.base, 0);
  job.timing = runtime::TimingOptions{};
  const StillAt working("timing " + prepared->op.name);
  const runtime::Measurement m = (*device)->run(job).measurement;
  if (!m.ok()) return not_timed(m);
  subject.measured_ns = m.median_ns;
  subject.spread = m.spread;
  subject.remeasure = remeasure_here(subject.task.target);
  subject.title = title_of(prepared->op, prepared->choice);
  if (const std::optional<Derivation>& derivation = prepared->choice.derivation) {
    subject.derivations.push_back(
        derivation_text(derivation->link, derivation->spec_ns, subject.measured_ns));
  }
  return explain({subject});
}

int run_explain(const ExplainVerb& verb) {
  int64_t id = 0;
  const char* const end = verb.what.data() + verb.what.size();
  const auto [stop, code] = std::from_chars(verb.what.data(), end, id);
  if (code == std::errc() && stop == end) return explain_record(verb, id);
  if (verb.what.ends_with(".pool")) return explain_pool(verb);
  return explain_operator(verb);
}

}  // namespace

void add_explain(CLI::App& verb, Action& action) {
  auto args = std::make_shared<ExplainVerb>();
  verb.add_option("what", args->what,
                  "number of a record (`prunerc db best`), a .pool, or an operator file, whose "
                  "schedule is timed now")
      ->type_name("ID|FILE.prn|prc|pool")
      ->required();
  args->op.add_choice_to(verb);
  in_group(verb, "Candidate");
  args->machine.add_to(verb);
  args->machine.add_script_to(verb);
  verb.add_option("--row", args->row, "of a pool (default: the best)")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  verb.add_option("--top", args->top, "so many of a pool's best")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  in_group(verb, "Pools");
  verb.callback([args, &action] { action = [args] { return run_explain(*args); }; });
}

}  // namespace prunerc::cli

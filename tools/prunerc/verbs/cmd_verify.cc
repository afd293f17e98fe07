#include "ir/parser.h"
#include "ir/verify.h"
#include "schedule/legality/iteration_kind.h"
#include "search/algebra/alternatives.h"
#include "search/record/plausible.h"
#include "search/record/restore.h"
#include "search/tune/sampled.h"
#include "tools/driver/against.h"
#include "tools/driver/backend.h"
#include "tools/driver/platform.h"
#include "tools/driver/reference.h"
#include "tools/driver/stored.h"
#include "tools/driver/validity.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/json.h"
#include "tools/prunerc/network.h"
#include "tools/prunerc/verdict.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace prunerc::cli {
namespace {

using Json = nlohmann::ordered_json;

struct VerifyVerb {
  OperatorOptions op;
  MachineOptions machine;
  KernelCheck kernel;
  std::string against;
  bool json = false;
  bool cuts = false;
  std::string weights;
  std::string timeout;
};

// Whether blocks are what they declare.
void check_kinds(const ir::Program& program, Verdict* verdict) {
  for (const schedule::DoubtfulKinds& one : schedule::doubtful_kinds(program)) {
    if (one.check.proof == ir::Proof::kNo) verdict->kind = Verdict::Kind::kWrong;
    const std::string line =
        one.check.proof == ir::Proof::kNo
            ? error(Diag::kIterationKind, one.block, one.check.reason).message()
            : fmt::format("not shown of block @B{}: {}", one.block.value, one.check.reason);
    verdict->kinds.push_back(line);
  }
}

// Whether the threads of a GPU meet where they must.
void check_threads(const ir::Program& program, const ir::Target& target, Verdict* verdict) {
  if (target.kind == ir::TargetKind::kCpu) return;
  const Result<codegen::RaceReport> report = check_races(program, target);
  if (!report.ok()) {
    verdict->races = report.error().message();
    return;
  }
  verdict->races =
      report->races.empty()
          ? fmt::format("none among {} accesses in {} blocks{}", report->num_accesses,
                        report->num_blocks, report->is_complete ? "" : ", where the replay ended")
          : report->races.front();
  if (report->num_unknown > 0)
    verdict->races += fmt::format("; {} depend on data", report->num_unknown);
  if (!report->races.empty()) verdict->kind = Verdict::Kind::kWrong;
}

// A verdict in finite fields, or that there is none.
void take_equality(const search::SampledVerdict& found, Verdict* verdict) {
  verdict->equality = search::to_string(found);
  if (found.verdict.kind == ir::VerdictKind::kSpecInvalid)
    verdict->kind = Verdict::Kind::kInvalid;
  else if (search::is_refuted(found.verdict))
    verdict->kind = Verdict::Kind::kWrong;
  else if (found.verdict.kind == ir::VerdictKind::kUnsupported)
    verdict->equality = fmt::format("no verdict ({})", found.verdict.text);
}

// The schedule against the unscheduled program in finite fields, whatever the kernel gave.
void check_schedule(const VerifyVerb& verb, const search::Task& task, const Choice& choice,
                    Verdict* verdict) {
  search::SampleOptions options;
  options.seed = verb.kernel.seed;
  const search::SampledVerdict found =
      search::check_schedule(task, choice.trace, choice.program, options);
  take_equality(found, verdict);
  if (found.verdict.kind == ir::VerdictKind::kUnsupported) {
    verdict->equality +=
        fmt::format("; compared were the values above alone, on {} of {}",
                    verdict->num_seeds == 1 ? "1 set" : fmt::format("{} sets", verdict->num_seeds),
                    References::describe_inputs(task.base, verb.kernel.seed));
  }
  check_kinds(choice.program, verdict);
}

// A derived program against what its operator is written as.
void check_derived(const VerifyVerb& verb, const search::Task& spec, const search::Task& derived,
                   bool imported, Verdict* verdict) {
  const search::SampledVerdict found =
      imported ? search::algebra::check_link(spec, derived, verb.kernel.seed)
               : search::algebra::check_own_link(spec, derived, verb.kernel.seed);
  const std::string recipe = derived.recipe.empty() ? derived.name : derived.recipe;
  verdict->derived = fmt::format("'{}': {}", recipe, search::to_string(found));
  if (search::is_refuted(found.verdict)) {
    verdict->kind = Verdict::Kind::kWrong;
  } else if (!search::algebra::is_shown(found) && verdict->kind == Verdict::Kind::kRight) {
    verdict->kind = Verdict::Kind::kNotChecked;
  }
}

// The values of a kernel and of the program of --against; false if there were none to compare.
bool check_values(const VerifyVerb& verb, const ir::Program& spec, const search::Task& task,
                  const codegen::Artifact& artifact, Verdict* verdict) {
  const ir::Target target = with_device(task.target);
  const int num_threads = static_cast<int>(std::max<int64_t>(1, task.target.num_threads));
  const Result<std::unique_ptr<runtime::Device>> device =
      open_device(target, num_threads, {}, patient_limit_ns(verb.kernel, target));
  return take_values(device.ok() ? compare_values(spec, artifact, **device, verb.kernel.seed)
                                 : Result<ValueVerdict>(device.error()),
                     verdict);
}

// The program of --against, with which the operator has no trace in common.
void check_against(const VerifyVerb& verb, const ir::Program& spec, const search::Task& task,
                   const Prepared& prepared, Verdict* verdict) {
  if (const Result<void> valid = check_valid(spec); !valid.ok()) {
    verdict->kind = Verdict::Kind::kInvalid;
    verdict->equality = "reference invalid: " + valid.error().message();
    return;
  }
  search::SampleOptions options;
  options.seed = verb.kernel.seed;
  const search::SampledVerdict found =
      search::check_against(spec, task, prepared.choice.trace, prepared.choice.program, options);
  take_equality(found, verdict);
  check_kinds(prepared.choice.program, verdict);
  // Programs of other parameters have no values in common.
  if (verdict->kind != Verdict::Kind::kRight) return;
  const bool has_values = check_values(verb, spec, task, prepared.artifact, verdict);
  if (!has_values && !found.verdict.ok() && verdict->kind == Verdict::Kind::kRight)
    verdict->kind = Verdict::Kind::kNotChecked;
}

Verdict not_checked(const std::string& name, const std::string& why) {
  return {Verdict::Kind::kNotChecked, name, "record", 0, why, {}};
}

Verdict history(const std::string& name, const std::string& why) {
  Verdict verdict = not_checked(name, why);
  verdict.is_history = true;
  return verdict;
}

// The best record of a stored task, replayed and checked on this machine.
Verdict check_stored(const VerifyVerb& verb, const search::TaskRow& row,
                     const search::Record& best) {
  Result<ir::Program> base = ir::parse(row.key.program);
  if (!base.ok()) return not_checked(row.name, base.error().message());
  if (const Result<void> sound = ir::verify(*base); !sound.ok()) {
    return not_checked(row.name, sound.error().message());
  }
  if (const Result<void> valid = check_valid(*base); !valid.ok()) {
    return {Verdict::Kind::kInvalid, row.name, "record", 0, valid.error().message(), {}};
  }
  Result<ir::Target> target = ir::target_from_string(row.key.target);
  if (!target.ok()) return not_checked(row.name, target.error().message());
  if (!runs_here(with_device(*target))) return not_checked(row.name, "made for " + target->name);
  const Result<search::RestoredRecord> restored = search::restore_record(*base, best);
  if (!restored.ok()) return history(row.name, restored.error().message());
  const search::Task task =
      search::make_task(row.name, std::move(base).value(), std::move(target).value());
  const Result<codegen::Artifact> artifact =
      build_kernel(restored->program, with_device(task.target));
  if (!artifact.ok()) return not_checked(row.name, artifact.error().message());
  Verdict verdict = check_kernel(verb.kernel, task, *artifact);
  verdict.schedule = fmt::format("{}record {}", best.imported ? "imported " : "", best.id);
  check_schedule(verb, task,
                 {Choice::Origin::kRecord, restored->program, restored->trace, 0, best.id, ""},
                 &verdict);
  check_threads(restored->program, task.target, &verdict);
  return verdict;
}

// The program of a stored task beside that of a task which it is derived from.
Verdict check_link(const VerifyVerb& verb, const search::TaskRow& row,
                   const search::DerivedRow& spec) {
  const Result<search::Task> from = search::task_of_key(spec.task.key);
  if (!from.ok()) return not_checked(row.name, from.error().message());
  search::DerivedRow link = spec;
  link.task = row;
  const std::optional<search::Task> derived = search::algebra::stored_task(*from, link);
  if (!derived) return not_checked(row.name, "this build makes another program of its texts");
  Verdict verdict;
  verdict.name = row.name;
  verdict.schedule =
      fmt::format("{}link to {}", spec.link.imported ? "imported " : "", spec.task.name);
  check_derived(verb, *from, *derived, spec.link.imported, &verdict);
  return verdict;
}

int report(const VerifyVerb& verb, const std::vector<Verdict>& verdicts) {
  Json all = {{"schema", "prunerc.verify/1"}, {"results", Json::array()}};
  bool wrong = false;
  bool invalid = false;
  bool unknown = false;
  for (const Verdict& v : verdicts) {
    wrong |= v.kind == Verdict::Kind::kWrong;
    invalid |= v.kind == Verdict::Kind::kInvalid;
    unknown |= v.kind == Verdict::Kind::kNotChecked;
    if (verb.json) {
      all["results"].push_back({{"op", v.name},
                                {"schedule", v.schedule},
                                {"verdict", to_string(v.kind)},
                                {"seeds", v.num_seeds},
                                {"evidence", v.what},
                                {"equality", v.equality},
                                {"derived", v.derived},
                                {"values", v.values},
                                {"ran_on", v.ran_on},
                                {"races", v.races},
                                {"kinds", v.kinds}});
      continue;
    }
    // Nothing was run; an invalid program of --against is told below.
    if (v.kind == Verdict::Kind::kInvalid && v.equality.empty()) {
      fmt::print("{} ({}): invalid: {}\n", v.name, v.schedule, v.what);
      continue;
    }
    // No kernel ran: two programs were compared.
    if (v.num_seeds == 0 && !v.derived.empty() && v.what.empty()) {
      fmt::print("{} ({}): {}: {}\n", v.name, v.schedule, to_string(v.kind), v.derived);
      continue;
    }
    const std::string said =
        v.kind == Verdict::Kind::kRight ? std::string() : fmt::format("{}: ", to_string(v.kind));
    fmt::print("{} ({}): {}right on {} of {} inputs; {}\n", v.name, v.schedule, said, v.num_seeds,
               verb.kernel.num_seeds, v.what);
    const std::string what = verb.against.empty() ? "schedule" : "against " + verb.against;
    if (!v.equality.empty()) fmt::print("  {}, in finite fields: {}\n", what, v.equality);
    if (!v.derived.empty()) fmt::print("  derived program, in finite fields: {}\n", v.derived);
    if (!v.values.empty()) fmt::print("  {}, in numbers: {}\n", what, v.values);
    if (v.ran_on == "gpu") fmt::print("  its kernels ran on the GPU\n");
    if (v.ran_on == "host") fmt::print("  its kernels ran on this CPU, in place of a GPU\n");
    if (!v.races.empty()) fmt::print("  races between threads: {}\n", v.races);
    for (const std::string& line : v.kinds) fmt::print("  iteration kinds: {}\n", line);
  }
  if (verb.json) fmt::print("{}\n", json_line(all));
  if (wrong) {
    return fail(
        "a result differs from that of the unscheduled program",
        "`prunerc tune` finds another schedule, and `prunerc verify DATABASE` marks what is wrong "
        "in it; please report this one: `prunerc db best` prints it",
        kVerificationFailed);
  }
  if (invalid) {
    return fail("a program is not valid: nothing can be equal to it",
                "the line above says which access or element is at fault; ir/README.md says what a "
                "program may do",
                kVerificationFailed);
  }
  return unknown ? kDeviceProblem : kSuccess;
}

/// Of a task's imported records that give no program any more, so many are told of one by one.
constexpr int64_t kMostHistory = 4;

// What is asked of an operator and means nothing for records.
Result<void> check_of_database(const VerifyVerb& verb) {
  const std::pair<bool, const char*> given[] = {{!verb.op.bindings.empty(), "-D"},
                                                {!verb.op.expression.empty(), "-e"},
                                                {!verb.machine.script.empty(), "--schedule"},
                                                {verb.machine.effort != 0, "-O"},
                                                {verb.machine.threads != 0, "--threads"},
                                                {verb.machine.target != "cpu", "--target"},
                                                {!verb.machine.database.empty(), "--db"},
                                                {!verb.against.empty(), "--against"},
                                                {!verb.weights.empty(), "--weights"},
                                                {verb.cuts, "--cuts"}};
  for (const auto& [is_given, option] : given) {
    if (is_given) return error(Diag::kUsageOption, option, "is of an operator, not of a database");
  }
  return {};
}

// What is asked of an operator and means nothing for a net.
Result<void> check_of_net(const VerifyVerb& verb) {
  const std::pair<bool, const char*> given[] = {{verb.kernel.interpret, "--interpret"},
                                                {!verb.against.empty(), "--against"},
                                                {!verb.timeout.empty(), "--timeout"}};
  for (const auto& [is_given, option] : given) {
    if (is_given) return error(Diag::kUsageOption, option, "is of one operator, not of a net");
  }
  return {};
}

// A record that is wrong is not to be chosen again, where its file may be written.
void refute(const std::string& path, int64_t task, const search::Record& record,
            const Verdict& verdict) {
  if (verdict.kind != Verdict::Kind::kWrong) return;
  Result<search::Database> database = search::Database::open(path);
  if (!database.ok()) return;
  search::Measurement wrong;
  wrong.status = MeasureStatus::kWrongResult;
  wrong.detail = verdict.what;
  if (database->put_verdict(task, record.fingerprint, wrong).ok())
    fmt::print(stderr, "record {} is marked as wrong: it is not used any more\n", record.id);
}

// The task's imported records that compile would look at; the others are slower by their own account.
Result<void> check_claims(const VerifyVerb& verb, search::Database& database,
                          const search::TaskRow& row, std::vector<Verdict>* verdicts) {
  PRUNERC_TRY(const std::vector<search::Record> claims,
              database.claims(row.id, search::kMostClaimsRead));
  int64_t num_checked = 0, num_history = 0;
  for (const search::Record& claim : claims) {
    if (num_checked == kMostClaims) break;
    Verdict verdict = check_stored(verb, row, claim);
    refute(verb.op.file, row.id, claim, verdict);
    ++(verdict.is_history ? num_history : num_checked);
    if (!verdict.is_history || num_history <= kMostHistory) verdicts->push_back(std::move(verdict));
  }
  if (num_history > kMostHistory) {
    fmt::print(stderr, "{} more imported record(s) of '{}' give no program any more\n",
               num_history - kMostHistory, row.name);
  }
  return {};
}

int verify_database(const VerifyVerb& verb) {
  if (const Result<void> fits = check_of_database(verb); !fits.ok()) return fail(fits.error());
  std::error_code code;
  if (!std::filesystem::exists(verb.op.file, code)) {
    return fail(error(Diag::kIoError, "read", verb.op.file, "no such file"));
  }
  Result<search::Database> database = search::Database::open_to_read(verb.op.file);
  if (!database.ok()) return fail(database.error());
  const Result<std::vector<search::TaskRow>> tasks = database->list_tasks();
  if (!tasks.ok()) return fail(tasks.error());
  std::vector<Verdict> verdicts;
  for (const search::TaskRow& row : *tasks) {
    if (!is_meant(row, verb.op.op)) continue;
    // As one is chosen: what an older build has stored may give no program any more.
    const Result<std::vector<search::Record>> best = chosen_first(*database, row);
    if (!best.ok()) return fail(best.error());
    for (const search::Record& record : *best) {
      verdicts.push_back(check_stored(verb, row, record));
      refute(verb.op.file, row.id, record, verdicts.back());
      if (verdicts.back().kind != Verdict::Kind::kWrong && !verdicts.back().is_history) break;
    }
    const Result<std::vector<search::DerivedRow>> specs = database->specs_of(row.id);
    if (!specs.ok()) return fail(specs.error());
    for (const search::DerivedRow& spec : *specs) verdicts.push_back(check_link(verb, row, spec));
    const Result<void> claims = check_claims(verb, *database, row, &verdicts);
    if (!claims.ok()) return fail(claims.error());
  }
  if (verdicts.empty()) fmt::print(stderr, "no verified record in {}\n", verb.op.file);
  return report(verb, verdicts);
}

bool is_database(const std::string& path) {
  const std::string suffix = std::filesystem::path(path).extension();
  return suffix == ".sqlite" || suffix == ".db";
}

// The program of --against, which has no trace in common with the operator.
Result<ir::Program> load_reference(const VerifyVerb& verb) {
  OperatorRequest request;
  request.file = verb.against;
  request.validity = Validity::kNotAsked;
  PRUNERC_TRY(Operator op, load_operator(request));
  return std::move(op.program);
}

// One operator's kernel and its schedule.
int verify_operator(const VerifyVerb& verb, const OperatorRequest& request) {
  int code = kSuccess;
  const std::optional<Prepared> prepared =
      prepare(request, verb.machine, &code, Without::kUseHost, Claims::kSettled);
  if (!prepared) return code;
  search::Task task = prepared->session.task(prepared->op, prepared->choice);
  Verdict verdict = check_kernel(verb.kernel, task, prepared->artifact);
  verdict.schedule = to_string(prepared->choice.origin);
  // A script names loops and blocks as the program does, not as a record would.
  if (prepared->choice.origin == Choice::Origin::kScript) task.base = prepared->op.program;
  if (verb.against.empty()) {
    check_schedule(verb, task, prepared->choice, &verdict);
    if (task.is_derived()) {
      const std::optional<Derivation>& derivation = prepared->choice.derivation;
      check_derived(verb, prepared->session.task(prepared->op), task,
                    derivation && derivation->link.imported, &verdict);
    }
  } else {
    const Result<ir::Program> reference = load_reference(verb);
    if (!reference.ok()) return fail(reference.error());
    check_against(verb, *reference, task, *prepared, &verdict);
  }
  check_threads(prepared->choice.program, task.target, &verdict);
  return report(verb, {verdict});
}

int verify(VerifyVerb verb) {
  const Result<int64_t> limit_ns = parse_limit_ns(verb.timeout, "--timeout");
  if (!limit_ns.ok()) return fail(limit_ns.error());
  verb.kernel.run_limit_ns = *limit_ns;
  if (is_database(verb.op.file)) return verify_database(verb);
  Result<OperatorRequest> request = verb.op.request();
  if (!request.ok()) return fail(request.error(), kUsage);
  // What an invalid program is told is the verdict here.
  request->validity = Validity::kNotAsked;
  if (const Result<SizedNets> nets = load_nets(*request); nets.ok() && !nets->nets.empty()) {
    if (const Result<void> fits = check_of_net(verb); !fits.ok()) return fail(fits.error());
    return verify_network(
        *nets, *request, verb.machine,
        {verb.kernel.num_seeds, verb.kernel.seed, verb.cuts, verb.json, verb.weights});
  } else if (!nets.ok()) {
    return fail(nets.error());
  }
  if (const Result<void> fits = check_no_net_options(verb.weights, verb.cuts); !fits.ok())
    return fail(fits.error());
  if (const Result<Operator> op = load_operator(*request); op.ok()) {
    if (const Result<void> valid = check_valid(op->program); !valid.ok()) {
      return report(
          verb, {{Verdict::Kind::kInvalid, op->name, "program", 0, valid.error().message(), {}}});
    }
  }
  return verify_operator(verb, *request);
}

}  // namespace

void add_verify(CLI::App& verb, Action& action) {
  auto args = std::make_shared<VerifyVerb>();
  args->op.add_to(verb);
  args->machine.add_to(verb);
  args->machine.add_script_to(verb);
  verb.get_option("file")->type_name("FILE.prn|prc|onnx|sqlite|db");
  verb.add_option("--seeds", args->kernel.num_seeds, "number of fresh inputs")
      ->type_name("N")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  verb.add_option("--seed", args->kernel.seed, "of the first of them")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--against", args->against,
                  "compare with the program of this file instead: in finite fields whole, or on "
                  "sampled tiles if they are large, and in numbers of several sizes")
      ->type_name("FILE.prn|prc");
  verb.add_flag("--interpret", args->kernel.interpret,
                "also compare the unscheduled program with the interpreter (slow)");
  verb.add_flag("--cuts", args->cuts, "of a net: every tensor between calls, not only outputs");
  verb.add_option(
          "--timeout", args->timeout,
          "what a kernel may take for a run: 500ms, 90s, 10m (default: 10s, 60s in place of a "
          "GPU); beyond it gets one more, alone, for up to three times as long, and beyond that "
          "it is not checked")
      ->type_name("DURATION");
  in_group(verb, "What is compared");
  add_weights_to(verb, &args->weights);
  verb.add_flag("--json", args->json, "one JSON object instead of lines");
  in_group(verb, "Output");
  verb.callback([args, &action] { action = [args] { return verify(*args); }; });
}

}  // namespace prunerc::cli

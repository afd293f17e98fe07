#include "tools/prunerc/cli.h"

#include "ir/support/file.h"
#include "tools/driver/backend.h"
#include "tools/driver/platform.h"
#include "tools/prunerc/display.h"
#include "tools/prunerc/heartbeat.h"
#include "tools/prunerc/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <set>

namespace prunerc::cli {
namespace {

// Of two values of one name nobody would know which counts.
Error given_twice(const char* option, const std::string& name) {
  return error(Diag::kUsageOption, option, fmt::format("gives '{}' twice", name));
}

// "M=3,N=3" or "seq=32,64,batch=1": values by name, those of a list in order.
Result<void> bind(const std::string& option, OperatorRequest* request) {
  std::vector<std::pair<std::string, std::vector<std::string>>> found;
  std::size_t begin = 0;
  while (begin <= option.size()) {
    const std::size_t comma = std::min(option.find(',', begin), option.size());
    const std::string word = option.substr(begin, comma - begin);
    begin = comma + 1;
    const std::size_t equals = word.find('=');
    const bool goes_on = equals == std::string::npos && !found.empty() && !word.empty();
    if (goes_on) {
      found.back().second.push_back(word);
      continue;
    }
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size())
      return error(Diag::kUsageOption, "-D", fmt::format("needs NAME=VALUE, found '{}'", word));
    found.emplace_back(word.substr(0, equals), std::vector<std::string>{word.substr(equals + 1)});
  }
  std::set<std::string> names;
  for (auto& [name, values] : found) {
    if (!names.insert(name).second) return given_twice("-D", name);
    // A later -D takes the place of an earlier one, as of what a script gives by default.
    request->bindings.erase(name);
    request->lists.erase(name);
    if (values.size() == 1) {
      request->bindings[name] = values[0];
    } else {
      request->lists[name] = std::move(values);
    }
  }
  return {};
}

std::atomic<bool> interrupted{false};
std::string verb_name = "VERB";  // that runs

void on_interrupt(int) {
  interrupted.store(true);
  std::signal(SIGINT, SIG_DFL);
}

// What to do about an operator, a program or a script that is wrong, as the place in front tells.
std::string_view hint_of_text(std::string_view message) {
  const std::string_view place = message.substr(0, message.find(": error: "));
  if (place.starts_with("<")) return "";  // of the command line itself
  if (place.find(".prn") != place.npos) {
    return "`prunerc show FILE --stage ast` lists operators, parameters and ports; "
           "ir/lang/README.md describes the language";
  }
  if (place.find(".prc") != place.npos) {
    return "`prunerc show FILE.prn` prints a program in this form, to compare with";
  }
  return "`prunerc apply` with the lines before this one prints the loops and blocks that it "
         "meets; "
         "schedule/primitive/ has a file for each primitive";
}

}  // namespace

Result<Named> named(const std::vector<std::string>& words, const char* option) {
  Named found;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size())
      return error(Diag::kUsageOption, option, fmt::format("needs NAME=VALUE, found '{}'", word));
    const std::string name = word.substr(0, equals);
    if (!found.emplace(name, word.substr(equals + 1)).second) return given_twice(option, name);
  }
  return found;
}

const std::atomic<bool>& catch_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  return interrupted;
}

void in_group(CLI::App& verb, const char* heading) {
  // CLI11's name of the group of all that have none.
  constexpr const char* kNone = "Options";
  for (CLI::Option* option : verb.get_options()) {
    if (option != verb.get_help_ptr() && option->get_group() == kNone) option->group(heading);
  }
}

void OperatorOptions::add_choice_to(CLI::App& verb) {
  verb.add_option("--op", op, "operator of the file, if it has several")->type_name("NAME");
  verb.add_option("-I,--import-from", import_folders,
                  "folder that imports may be read from, as the operator file's own")
      ->type_name("FOLDER")
      ->allow_extra_args(false);
  verb.add_option("-D,--define", bindings,
                  "bind parameters, or named dimensions of a model: -D M=512,N=512; "
                  "-D seq=32,64 lists sizes of a model")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

void OperatorOptions::add_net_options_to(CLI::App& verb) {
  verb.add_option("--const", constants,
                  "of a model: an input that is the same in every run, NAME=@FILE.npy")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  verb.add_flag("--partial", partial, "of a model: leave out what is not supported");
  verb.add_flag("--passes", passes, "fuse the calls of a net, as those of a model always are");
  verb.add_option("--no-pass", no_passes, "leave out this pass over the net")
      ->type_name("NAME")
      ->allow_extra_args(false);
  verb.add_option("--no-fuse", no_fuse, "fuse no calls by this rule")
      ->type_name("RULE")
      ->allow_extra_args(false);
}

void OperatorOptions::add_to(CLI::App& verb) {
  CLI::Option* positional =
      verb.add_option("file", file, "operator file, net or model")->type_name("FILE.prn|prc|onnx");
  verb.add_option("-e,--expression", expression,
                  "operator in one line: 'C[i,j] = sum[k] A[i,k] * B[k,j]'")
      ->type_name("TEXT")
      ->excludes(positional);
  add_choice_to(verb);
  add_net_options_to(verb);
  verb.add_option("--dtype", dtypes, "types of -e's inputs: f16, or A=f16,B=f16")
      ->type_name("TYPE")
      ->allow_extra_args(false)
      ->delimiter(',');
  verb.add_option("--shape", shapes, "shape of one of -e's inputs: A=64x64")
      ->type_name("NAME=SHAPE")
      ->allow_extra_args(false);
  in_group(verb, "Operator");
}

void OperatorOptions::add_several_to(CLI::App& verb) {
  add_to(verb);
  verb.add_option("files", more_files, "further operator files")->type_name("FILE.prn|prc|onnx");
  in_group(verb, "Operator");
}

Result<OperatorRequest> OperatorOptions::request() const {
  OperatorRequest request;
  if (file.empty() == expression.empty()) {
    return error(Diag::kUsageOption, "FILE", "give an operator file or -e EXPRESSION");
  }
  if (!expression.empty() && !op.empty())
    return error(Diag::kUsageOption, "--op", "chooses in a file, and -e is one operator");
  if (expression.empty() && !dtypes.empty())
    return error(Diag::kUsageOption, "--dtype", "is of -e's inputs; a file has types of its own");
  request.file = file;
  request.op = op;
  request.expression = expression;
  request.import_folders = import_folders;
  for (const std::string& option : bindings) PRUNERC_TRY_VOID(bind(option, &request));
  for (const std::string& word : dtypes) {
    const std::size_t equals = word.find('=');
    const std::string name = equals == std::string::npos ? "" : word.substr(0, equals);
    const std::string type = equals == std::string::npos ? word : word.substr(equals + 1);
    if (!request.dtypes.emplace(name, type).second)
      return given_twice("--dtype", name.empty() ? "all inputs" : name);
  }
  PRUNERC_TRY(request.shapes, named(shapes, "--shape"));
  PRUNERC_TRY(request.constants, named(constants, "--const"));
  request.partial = partial;
  request.passes = passes;
  request.no_passes = no_passes;
  request.no_fuse = no_fuse;
  return request;
}

Result<std::vector<Operator>> OperatorOptions::load() const {
  PRUNERC_TRY(const OperatorRequest first, request());
  std::vector<OperatorRequest> requests = {first};
  for (const std::string& more : more_files) {
    requests.push_back(first);
    requests.back().file = more;
  }
  return load_operators(requests);
}

std::string OperatorOptions::repro() const {
  std::string out = expression.empty() ? file : fmt::format("-e '{}'", expression);
  for (const std::string& more : more_files) out += " " + more;
  if (!op.empty()) out += " --op " + op;
  for (const std::string& folder : import_folders) out += " -I " + folder;
  if (!bindings.empty()) out += fmt::format(" -D {}", fmt::join(bindings, ","));
  if (!dtypes.empty()) out += fmt::format(" --dtype {}", fmt::join(dtypes, ","));
  for (const std::string& shape : shapes) out += " --shape " + shape;
  for (const std::string& constant : constants) out += " --const " + constant;
  if (partial) out += " --partial";
  if (passes) out += " --passes";
  for (const std::string& pass : no_passes) out += " --no-pass " + pass;
  for (const std::string& rule : no_fuse) out += " --no-fuse " + rule;
  return out;
}

bool is_meant(const search::TaskRow& row, const std::string& op) {
  return op.empty() || row.name == op || row.name.starts_with(op + ", ");
}

void add_database_to(CLI::App& verb, std::string* database) {
  verb.add_option(
          "--db", *database,
          "tuning database, or records of `db export` to read (default: $PRUNERC_DB or the user's "
          "cache)")
      ->type_name("FILE.sqlite|db|jsonl");
}

namespace {

void add_target_option(CLI::App& verb, std::string* target) {
  verb.add_option("--target", *target,
                  "what code is for: cpu, this machine; cuda, its GPU; others of `prunerc devices`")
      ->type_name("TARGET")
      ->capture_default_str();
}

void add_threads_option(CLI::App& verb, int* threads) {
  verb.add_option("--threads", *threads, "threads of a kernel (default: all)")
      ->type_name("N")
      ->check(CLI::Range(0, 4096));
}

}  // namespace

void MachineOptions::add_target_to(CLI::App& verb) {
  add_target_option(verb, &target);
  add_database_to(verb, &database);
  in_group(verb, "Machine");
}

void MachineOptions::add_to(CLI::App& verb) {
  add_target_to(verb);
  add_threads_option(verb, &threads);
  in_group(verb, "Machine");
}

void MachineOptions::add_without_database_to(CLI::App& verb) {
  database = ":memory:";
  add_target_option(verb, &target);
  add_threads_option(verb, &threads);
  in_group(verb, "Machine");
}

void MachineOptions::add_script_to(CLI::App& verb) {
  verb.add_option("--schedule", script,
                  "apply this script, one primitive a line; /dev/null: the program as written")
      ->type_name("FILE");
  verb.add_option("-O", effort, "without a record: 0 heuristic, 1 cost model")
      ->type_name("N")
      ->check(CLI::Range(0, 1));
  in_group(verb, "Schedule");
}

Result<Session> MachineOptions::open() const {
  if (target == "cpu" && !is_host_measured()) {
    const std::string folder = cache_folder();
    fmt::print(
        stderr, "measuring this machine, about two seconds; {}\n",
        folder.empty() ? "there is no cache folder to keep it in" : "once only, kept in " + folder);
  }
  const StillAt working("measuring the limits of this machine");
  return Session::open({target, threads, database, {}});
}

Result<Session> MachineOptions::open_unmeasured() const {
  return Session::open({.target = target,
                        .threads = threads,
                        .database = database,
                        .worker_command = {},
                        .limits = Limits::kAsDescribed});
}

void settle_claims(Session& session, const Operator& op, const MachineOptions& machine) {
  if (!machine.script.empty() || !session.is_host()) return;
  const Result<int64_t> settled = session.settle_claims(op);
  // Where nothing may be written or measured, what finite fields say has to do.
  if (!settled.ok() || *settled == 0) return;
  fmt::print(stderr, "{} imported record(s) of '{}' were verified and timed here first\n", *settled,
             op.name);
}

std::string recipe_text(const Choice& choice) {
  return choice.recipe.empty() ? "" : fmt::format(" by '{}'", choice.recipe);
}

void print_note(const Operator& op, const Choice& choice) {
  if (!choice.recipe.empty()) {
    fmt::print(stderr, "program of '{}': derived{}\n", op.name, recipe_text(choice));
  }
  if (!choice.note.empty()) {
    fmt::print(stderr, "schedule of '{}': {}; {}\n", op.name, to_string(choice.origin),
               choice.note);
  }
  print_left_aside(op.name, choice.left_aside);
}

void print_left_aside(const std::string& op, const std::string& text) {
  if (!text.empty()) fmt::print(stderr, "note: of '{}' {}\n", op, printable_line(text));
}

namespace {

// A record for one thread is of no use to two, but whoever made it should hear that it is there.
void name_other_records(Session& session, const Operator& op) {
  constexpr std::size_t kMostNamed = 4;
  const Result<std::vector<OtherRecord>> others = session.other_records(op);
  if (!others.ok()) return;
  for (std::size_t i = 0; i < std::min(others->size(), kMostNamed); ++i) {
    const OtherRecord& other = (*others)[i];
    const int64_t threads = other.target.num_threads;
    const std::string for_threads = fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
    fmt::print(stderr, "note: a record of '{}' exists for {} ({}){}\n", op.name,
               other.differs_in_threads
                   ? for_threads
                   : fmt::format("{}, {}", describe(other.target), for_threads),
               time_text(other.best_ns),
               other.differs_in_threads ? fmt::format(": --threads {} uses it", threads) : "");
  }
}

}  // namespace

Result<Choice> choose(Session& session, const Operator& op, const MachineOptions& machine) {
  if (!machine.script.empty()) return apply_script(op, machine.script);
  Result<Choice> choice = session.choose(op);
  if (!choice.ok() || choice->origin == Choice::Origin::kRecord) return choice;
  name_other_records(session, op);
  if (machine.effort == 0) return choice;
  Result<Choice> by_model = session.choose(op, Effort::kO1);
  if (by_model.ok()) by_model->left_aside = choice->left_aside;
  return by_model;
}

std::optional<Prepared> prepare(const OperatorRequest& request, const MachineOptions& machine,
                                int* code, Without device, Claims claims) {
  const auto failed = [code](int with) {
    *code = with;
    return std::nullopt;
  };
  Result<Operator> op = load_operator(request);
  if (!op.ok()) return failed(fail(op.error()));
  fmt::print(stderr, "{}", op->warnings);
  Result<Session> session = machine.open();
  if (!session.ok()) return failed(fail(session.error()));
  const ir::Target target =
      device == Without::kUseHost ? with_device(session->target()) : session->target();
  const Result<void> here = check_runs_here(target);
  if (!here.ok()) return failed(fail(here.error()));
  if (claims == Claims::kSettled) settle_claims(*session, *op, machine);
  const StillAt working("choosing a schedule and building " + op->name);
  Result<Choice> choice = choose(*session, *op, machine);
  if (!choice.ok()) return failed(fail(choice.error(), choice_code(choice.error(), machine)));
  print_note(*op, *choice);
  Result<codegen::Artifact> artifact = build_kernel(choice->program, target);
  if (!artifact.ok()) return failed(fail(artifact.error(), kNoCandidate));
  return Prepared{std::move(op).value(), std::move(session).value(), std::move(choice).value(),
                  std::move(artifact).value()};
}

ExitCode choice_code(const Error& error, const MachineOptions& machine) {
  return machine.script.empty() ? kNoCandidate : exit_code(error);
}

std::string_view hint_of(const Error& error) {
  switch (error.id()) {
#define PRUNERC_HINT(Row, text) \
  case Diag::k##Row:            \
    return text;
#include "tools/prunerc/hints.def"
#undef PRUNERC_HINT
    case Diag::kOperatorText: return hint_of_text(error.message());
    default: return "";
  }
}

void set_verb(std::string name) { verb_name = std::move(name); }

int fail(std::string_view message, std::string_view hint, ExitCode code) {
  // A rendered source diagnostic stands for itself: "file:line:col: error: ...".
  const bool is_rendered = message.find(": error: ") != std::string_view::npos;
  fmt::print(stderr, "{}{}\n", is_rendered ? "" : "error: ", printable(message));
  if (!hint.empty()) fmt::print(stderr, "hint: {}\n", hint);
  return code;
}

int fail(const Error& error, ExitCode code) {
  std::string hint(hint_of(error));
  if (const std::size_t at = hint.find("VERB"); at != hint.npos) hint.replace(at, 4, verb_name);
  return fail(error.message(), hint, code);
}
int fail(const Error& error) { return fail(error, exit_code(error)); }

ExitCode exit_code(const Error& error) {
  switch (error.id()) {
    case Diag::kUsageOption:
    case Diag::kFillUnknown:
    case Diag::kTargetUnknown:
    case Diag::kTargetField: return kUsage;
    case Diag::kIoError:
    case Diag::kFileKind:
    case Diag::kTargetNotHost:
    case Diag::kCpuFeatures:
    case Diag::kCudaMissing:
    case Diag::kCudaCall:
    case Diag::kNvrtcMissing:
    case Diag::kHostCompiler:
    case Diag::kWorkerStart:
    case Diag::kDatabaseOpen:
    case Diag::kDatabaseCorrupt:
    case Diag::kDatabaseVersion:
    case Diag::kDatabaseQuery:
    case Diag::kPoolDamaged:
    case Diag::kPoolVersion:
    case Diag::kModelLibrary:
    case Diag::kKernelLoad:
    case Diag::kKernelRun:
    case Diag::kInternal: return kDeviceProblem;
    case Diag::kTimeLimit: return kVerificationFailed;
    case Diag::kCancelled: return kInterrupted;
    default: return kBadInput;
  }
}

}  // namespace prunerc::cli

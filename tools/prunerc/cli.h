// What the verbs of the command line share: exit codes, common options, messages.
#ifndef PRUNERC_TOOLS_PRUNERC_CLI_H_
#define PRUNERC_TOOLS_PRUNERC_CLI_H_

#include "ir/support/result.h"
#include "tools/driver/prunerc.h"
#include "tools/prunerc/verbs.h"

#include <CLI/CLI.hpp>

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::cli {

/// Exit codes of every verb (exit_codes() in verbs.h says what they mean). Scripts rely on them.
enum ExitCode : int {
  kSuccess = 0,
  kBadInput = 1,
  kUsage = 2,
  kNoCandidate = 3,
  kVerificationFailed = 4,
  kDeviceProblem = 5,
  kCacheMiss = 6,
  kInterrupted = 130,
};

/// What an option gives for names: "@a.npy", a fill, "64x64", a file to write.
using Named = std::map<std::string, std::string>;
/// Of an option that may be repeated. Errors: UsageOption (no NAME=VALUE, or a name twice).
Result<Named> named(const std::vector<std::string>& words, const char* option);

/// Puts the options that were declared since the last call under one heading of the help page.
void in_group(CLI::App& verb, const char* heading);

/// Options that name an operator: FILE [--op NAME] [-D N=3,...] or -e EXPRESSION.
struct OperatorOptions {
  std::string file;
  std::vector<std::string> more_files;  // of verbs that take several
  std::string op;
  std::string expression;
  std::vector<std::string> import_folders;
  std::vector<std::string> bindings;
  std::vector<std::string> dtypes;
  std::vector<std::string> shapes;
  std::vector<std::string> constants;
  bool partial = false;
  bool passes = false;
  std::vector<std::string> no_passes, no_fuse;

  void add_to(CLI::App& verb);
  /// The same for a verb that takes any number of files.
  void add_several_to(CLI::App& verb);
  /// --op, -I and -D alone.
  void add_choice_to(CLI::App& verb);
  /// How a model is imported and a net fused.
  void add_net_options_to(CLI::App& verb);
  Result<OperatorRequest> request() const;
  /// All operators of all files.
  Result<std::vector<Operator>> load() const;
  /// As a command line that a person can paste.
  std::string repro() const;
};

/// Options about the machine and the store.
struct MachineOptions {
  std::string target = "cpu";
  std::string database;  // empty: default_database()
  int threads = 0;       // 0: all hardware threads
  std::string script;    // empty: the stored or the heuristic schedule
  int effort = 0;        // without a record: 0 heuristic, 1 cost model

  void add_to(CLI::App& verb);
  /// The same without --threads.
  void add_target_to(CLI::App& verb);
  /// --target and --threads, for what stores nothing and asks for no record.
  void add_without_database_to(CLI::App& verb);
  /// --schedule and -O, for verbs that take one schedule.
  void add_script_to(CLI::App& verb);
  /// Says so on stderr if the machine is measured first. Errors: those of Session::open.
  Result<Session> open() const;
  /// For what needs no measured limits.
  Result<Session> open_unmeasured() const;
};

/// Whether a row is of the operator that is meant (empty: any), derived programs included, which are
/// named after it.
bool is_meant(const search::TaskRow& row, const std::string& op);

/// --db of a verb that needs no machine.
void add_database_to(CLI::App& verb, std::string* database);

/// An operator with a schedule, compiled.
struct Prepared {
  Operator op;
  Session session;
  Choice choice;
  codegen::Artifact artifact;
};

/// What to do for a GPU that this machine lacks: say so, or execute its kernels on the host.
enum class Without : uint8_t { kFail, kUseHost };

/// Whether imported records are verified and timed before one is chosen (settle_claims), or only
/// shown to be equal to their operator.
enum class Claims : uint8_t { kChecked, kSettled };

/// Loads, chooses and compiles. After a failure `code` is the exit code, and the reason was
/// printed.
std::optional<Prepared> prepare(const OperatorRequest& request, const MachineOptions& machine,
                                int* code, Without device = Without::kFail,
                                Claims claims = Claims::kChecked);

/// " by 'RECIPE'" of a derived program; else empty.
std::string recipe_text(const Choice& choice);
/// What is to be known of an imported record or a derived program that was chosen, and of records that
/// were not; nothing of others.
void print_note(const Operator& op, const Choice& choice);
/// Choice::left_aside as a note on stderr.
void print_left_aside(const std::string& op, const std::string& text);
/// Session::settle_claims for who is about to run a kernel; says on stderr what is done.
void settle_claims(Session& session, const Operator& op, const MachineOptions& machine);

/// The script's schedule if there is one, else the stored best, else the heuristic (effort 0) or
/// the model's choice (effort 1). Without a record, those for other threads or targets are named on
/// stderr.
Result<Choice> choose(Session& session, const Operator& op, const MachineOptions& machine);
/// Exit code of a failed choice: a script that cannot be applied is bad input.
ExitCode choice_code(const Error& error, const MachineOptions& machine);

/// The verb that runs, "db ls": what hints name.
void set_verb(std::string name);
/// Prints "error: message" to stderr (or the message alone if it already has a place) and, where
/// hints.def has one, "hint: what to do next"; gives the exit code, by default exit_code(error).
int fail(const Error& error, ExitCode code);
int fail(const Error& error);
/// The same for what is no Error.
int fail(std::string_view message, std::string_view hint, ExitCode code);
/// The exit code that fits an error that has no better one.
ExitCode exit_code(const Error& error);
/// What to do about an error, of hints.def; empty if the message says it.
std::string_view hint_of(const Error& error);

/// From now on the first Ctrl-C or SIGTERM sets the flag, so that work ends in order; a second
/// Ctrl-C is the system's.
const std::atomic<bool>& catch_interrupts();

void add_tune(CLI::App& verb, Action& action);
void add_compile(CLI::App& verb, Action& action);
void add_run(CLI::App& verb, Action& action);
void add_bench(CLI::App& verb, Action& action);
void add_verify(CLI::App& verb, Action& action);
void add_show(CLI::App& verb, Action& action);
void add_algebra(CLI::App& verb, Action& action);
void add_apply(CLI::App& verb, Action& action);
void add_explain(CLI::App& verb, Action& action);
void add_report(CLI::App& verb, Action& action);
void add_db_ls(CLI::App& verb, Action& action);
void add_db_best(CLI::App& verb, Action& action);
void add_db_export(CLI::App& verb, Action& action);
void add_db_import(CLI::App& verb, Action& action);
void add_db_stats(CLI::App& verb, Action& action);
void add_db_validate(CLI::App& verb, Action& action);
void add_dataset_record(CLI::App& verb, Action& action);
void add_dataset_remeasure(CLI::App& verb, Action& action);
void add_dataset_import(CLI::App& verb, Action& action);
void add_dataset_list(CLI::App& verb, Action& action);
void add_dataset_stats(CLI::App& verb, Action& action);
void add_dataset_split(CLI::App& verb, Action& action);
void add_dataset_prune(CLI::App& verb, Action& action);
void add_dataset_export(CLI::App& verb, Action& action);
void add_model_train(CLI::App& verb, Action& action);
void add_model_eval(CLI::App& verb, Action& action);
void add_model_export(CLI::App& verb, Action& action);
void add_devices(CLI::App& verb, Action& action);
void add_doctor(CLI::App& verb, Action& action);
void add_help(CLI::App& verb, Action& action);
void add_completion(CLI::App& verb, Action& action);

}  // namespace prunerc::cli

#endif  // PRUNERC_TOOLS_PRUNERC_CLI_H_

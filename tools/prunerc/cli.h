// What the verbs of the command line share: exit codes, common options, the registry of verbs.
#ifndef PRUNERC_TOOLS_PRUNERC_CLI_H_
#define PRUNERC_TOOLS_PRUNERC_CLI_H_

#include "ir/support/result.h"
#include "tools/driver/prunerc.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::cli {

/// Exit codes of every verb (documented in README.md). Scripts rely on them.
enum ExitCode : int {
  kSuccess = 0,
  kBadInput = 1,            // a diagnostic about the user's input was printed
  kUsage = 2,               // the command line itself
  kNoCandidate = 3,         // nothing ran successfully
  kVerificationFailed = 4,  // a result differs from the reference
  kDeviceProblem = 5,       // device, toolkit or file system
  kCacheMiss = 6,           // --offline and no record
  kInterrupted = 130,
};

/// Options that name an operator: FILE [--op NAME] [-D N=3,...] or -e EXPRESSION.
struct OperatorOptions {
  std::string file;
  std::vector<std::string> more_files;  // of verbs that take several
  std::string op;
  std::string expression;
  std::vector<std::string> bindings;
  std::vector<std::string> dtypes;
  std::vector<std::string> shapes;

  void add_to(CLI::App& verb, bool file_required);
  /// The same for a verb that takes any number of files.
  void add_several_to(CLI::App& verb);
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
  std::string script;    // empty: the stored or a default schedule

  void add_to(CLI::App& verb);
  /// The same without --threads.
  void add_target_to(CLI::App& verb);
  /// --schedule, for verbs that take one schedule.
  void add_script_to(CLI::App& verb);
};

/// An operator with a schedule, compiled.
struct Prepared {
  Operator op;
  Session session;
  Choice choice;
  codegen::Artifact artifact;
};

/// What to do for a GPU that this machine lacks: say so, or execute its kernels on the host.
enum class Without : uint8_t { kFail, kUseHost };

/// Loads, chooses and compiles. After a failure `code` is the exit code, and the reason was
/// printed.
std::optional<Prepared> prepare(const OperatorRequest& request, const MachineOptions& machine,
                                ExitCode* code, Without device = Without::kFail);

/// The script's schedule if there is one, else the stored best, else the heuristic (effort 0) or
/// the model's choice (effort 1).
Result<Choice> choose(Session& session, const Operator& op, const MachineOptions& machine,
                      int effort);
/// Exit code of a failed choice: a script that cannot be applied is bad input.
ExitCode choice_code(const Error& error, const MachineOptions& machine);

/// Prints "error: message" to stderr (or the message alone if it already has a place) and gives the
/// exit code.
int fail(const Error& error, ExitCode code);
/// The exit code that fits an error that has no better one.
ExitCode exit_code(const Error& error);

/// A verb registers its options with `app` and its work with `actions`; main runs the chosen one.
using Action = std::function<int()>;
using AddVerb = void (*)(CLI::App& app, Action& action);
void add_tune(CLI::App& app, Action& action);
void add_compile(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_show(CLI::App& app, Action& action);
void add_apply(CLI::App& app, Action& action);
void add_devices(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_db(CLI::App& app, Action& action);
void add_dataset(CLI::App& app, Action& action);
void add_model(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);

}  // namespace prunerc::cli

#endif  // PRUNERC_TOOLS_PRUNERC_CLI_H_

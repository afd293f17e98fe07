// What people are told of the command line: its verbs, exit codes and variables. Help pages, the man
// page, tools/README.md and completions are printed from these tables and from the options in CLI11.
#ifndef PRUNERC_TOOLS_PRUNERC_VERBS_H_
#define PRUNERC_TOOLS_PRUNERC_VERBS_H_

#include <CLI/CLI.hpp>

#include <functional>
#include <span>
#include <string_view>

namespace prunerc::cli {

/// What a chosen verb does; gives the exit code.
using Action = std::function<int()>;
/// Declares the options of a verb, and sets the action when the verb is parsed.
using AddVerb = void (*)(CLI::App& verb, Action& action);

/// A verb, or a verb of a verb ("db ls"), which follows it.
struct Verb {
  std::string_view name;
  std::string_view group;    ///< heading in `prunerc --help`; empty for a verb of a verb
  std::string_view purpose;  ///< one line, lower case, no full stop
  AddVerb add = nullptr;     ///< null: has verbs of its own
  /// Command lines that run as they are in the root of the repository, those of all verbs in order.
  std::span<const std::string_view> examples = {};
};
std::span<const Verb> verbs();
/// The row of "db ls"; null if there is none.
const Verb* find_verb(std::string_view name);

/// What an exit code, a variable or a file means.
struct Meaning {
  std::string_view name;
  std::string_view text;
};
std::span<const Meaning> exit_codes();
/// Variables of the environment, without those of `--help-debug`.
std::span<const Meaning> variables();
std::span<const Meaning> files();

/// Makes every verb a subcommand of `app`.
void add_verbs(CLI::App& app, Action& action);

}  // namespace prunerc::cli

#endif  // PRUNERC_TOOLS_PRUNERC_VERBS_H_

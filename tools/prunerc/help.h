// Help pages, the man page, the Markdown of tools/README.md and completions: each printed from the
// tables of verbs.h and the options that CLI11 holds.
#ifndef PRUNERC_TOOLS_PRUNERC_HELP_H_
#define PRUNERC_TOOLS_PRUNERC_HELP_H_

#include "tools/prunerc/verbs.h"

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace prunerc::cli {

/// An option or an argument as people are told of it.
struct OptionHelp {
  std::string heading;
  std::vector<std::string> names;  // "-D", "--define"; empty: an argument by its position
  std::string value;               // "N", "FILE.prn|prc"; empty: a flag
  std::string text;
  std::string initial;               // the default, as text; empty: none is shown
  std::vector<std::string> choices;  // the only values; empty: any
  bool is_required = false;
  bool is_repeated = false;  // may be given several times

  /// "-D, --define NAME=VALUE"; of an argument its value.
  std::string synopsis() const;
  /// The text with choices and default.
  std::string description() const;
};
/// Arguments first, then options in order of declaration, without --help.
std::vector<OptionHelp> options_of(const CLI::App& verb);

/// "db ls"; empty for the program itself.
std::string full_name(const CLI::App& verb);
/// "prunerc apply [FILE.prn|prc] SCRIPT [OPTIONS]".
std::string usage_line(const CLI::App& verb);

/// Says that there is no such verb or option, and which one is spelt nearly so; gives the exit code.
int fail_unknown_verb(const CLI::App& parent, const std::string& word);
int fail_unknown_option(const CLI::App& verb, const std::string& word);

/// "did you mean 'pruner'? " of CLI11's "--strategy: prunr not in {pruner,...}", or nothing.
std::string did_you_mean_choice(const std::string& message);

/// What `--help` prints. The program's page is at most 24 lines of 100 columns.
std::string help_page(const CLI::App& verb);
/// prunerc(1) in the man macros of troff.
std::string man_page(const CLI::App& program);
/// The generated part of tools/README.md.
std::string markdown_page(const CLI::App& program);

enum class Shell : uint8_t { kBash, kZsh, kFish };
/// A script that completes verbs, options, enumerated values, targets, and files by suffix.
std::string completion_script(const CLI::App& program, Shell shell);

}  // namespace prunerc::cli

#endif  // PRUNERC_TOOLS_PRUNERC_HELP_H_

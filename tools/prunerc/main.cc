// The prunerc command line: verbs over the driver. A first argument that begins with `__` makes the
// process a worker; people do not write it.
#include "ir/support/file.h"
#include "ir/support/options.h"
#include "tools/driver/prunerc.h"
#include "tools/prunerc/baseline.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/help.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace prunerc::cli {
namespace {

int print_debug_help() {
  fmt::print("Set in the environment:\n");
  for (const DebugOptionRow& row : debug_option_rows()) {
    fmt::print("  {:<34} {}\n", fmt::format("{}={}", row.variable, row.form), row.meaning);
  }
  return kSuccess;
}

// The verb of the command line, as far as it was read.
const CLI::App* verb_of(const CLI::App& program) {
  const CLI::App* verb = &program;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().back();
  return verb;
}

// What was meant by a command line that CLI11 refuses.
int explain(const CLI::ParseError& e, const CLI::App& program) {
  const CLI::App* verb = verb_of(program);
  const std::string help =
      fmt::format("`prunerc {}{}--help`", full_name(*verb), full_name(*verb).empty() ? "" : " ");
  const bool has_verbs = !verb->get_subcommands({}).empty();
  const std::vector<std::string> rest = verb->remaining();
  if (!rest.empty()) {
    if (rest.front().starts_with("-")) return fail_unknown_option(*verb, rest.front());
    if (has_verbs) return fail_unknown_verb(*verb, rest.front());
    if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr) {
      return fail(fmt::format("'{}' is one argument too many", rest.front()),
                  help + " has examples", kUsage);
    }
  }
  if (has_verbs && verb != &program) {
    return fail(fmt::format("'prunerc {}' needs a verb", full_name(*verb)), help + " lists them",
                kUsage);
  }
  return fail(e.what(),
              did_you_mean_choice(e.what()) + help + " has the forms of options, with examples",
              kUsage);
}

int run(int argc, char** argv) {
  CLI::App app{"", "prunerc"};
  app.formatter_fn([](const CLI::App* verb, const std::string&, CLI::AppFormatMode) {
    return help_page(*verb);
  });
  app.set_version_flag("--version", std::string("prunerc ") + kVersion);
  app.require_subcommand(0, 1);
  app.fallthrough(false);
  bool help_debug = false;
  app.add_flag("--help-debug", help_debug, "explain the debugging switches of the environment");
  Action action;
  add_verbs(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return e.get_exit_code() == 0 ? app.exit(e) : explain(e, app);
  }
  if (help_debug) return print_debug_help();
  set_verb(full_name(*verb_of(app)));
  if (!action) {
    return fail("a verb is required",
                "`prunerc --help` lists them; `prunerc tune FILE.prn` finds a fast kernel", kUsage);
  }
  const Result<DebugOptions> debug =
      parse_debug_options([](const char* name) -> const char* { return std::getenv(name); });
  if (!debug.ok()) return fail(debug.error());
  return action();
}

// What was printed may be in a buffer yet, and the disk full.
int delivered(int code) {
  const int reason = std::fflush(stdout) != 0 ? errno : std::ferror(stdout) != 0 ? EIO : 0;
  if (reason == 0) return code;
  return fail(error(Diag::kIoError, std::string("write"), std::string("the standard output"),
                    std::string(std::strerror(reason))));
}

}  // namespace
}  // namespace prunerc::cli

int main(int argc, char** argv) {
  if (const char* missing = prunerc::cli::missing_instructions()) {
    std::fprintf(stderr,
                 "error: this CPU lacks %s; prunerc needs x86-64-v3 (Haswell, Zen or newer)\n",
                 missing);
    return prunerc::cli::kDeviceProblem;
  }
  // Who starts us may ignore the ends of children, and we would inherit that.
  std::signal(SIGCHLD, SIG_DFL);
  if (const auto status = prunerc::serve_worker(argc, argv)) return *status;
  // The one catch of the project: third-party code may throw (out of memory, CLI11); nothing of
  // ours does.
  try {
    return prunerc::cli::delivered(prunerc::cli::run(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", prunerc::printable(e.what()).c_str());
    return prunerc::cli::kDeviceProblem;
  }
}

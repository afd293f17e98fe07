// The prunerc command line: verbs over the driver. A first argument that begins with `__` makes the
// process a worker; people do not write it.
#include "ir/support/options.h"
#include "tools/driver/prunerc.h"
#include "tools/prunerc/baseline.h"
#include "tools/prunerc/cli.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
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

int run(int argc, char** argv) {
  CLI::App app{"prunerc: finds out how to run a tensor operator fast on this machine."};
  app.set_version_flag("--version", std::string("prunerc ") + kVersion);
  app.require_subcommand(0, 1);
  app.fallthrough(false);
  bool help_debug = false;
  app.add_flag("--help-debug", help_debug, "explain the debugging switches of the environment");
  Action action;
  for (const AddVerb add :
       {add_tune, add_compile, add_run, add_bench, add_verify, add_show, add_apply, add_devices,
        add_doctor, add_db, add_dataset, add_model, add_explain}) {
    add(app, action);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? kSuccess : kUsage;
  }
  if (help_debug) return print_debug_help();
  if (!action) {
    fmt::print(stderr, "A verb is required\nRun with --help for more information.\n");
    return kUsage;
  }
  const Result<DebugOptions> debug =
      parse_debug_options([](const char* name) -> const char* { return std::getenv(name); });
  if (!debug.ok()) return fail(debug.error(), kUsage);
  return action();
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
  if (const auto status = prunerc::serve_worker(argc, argv)) return *status;
  // The one catch of the project: third-party code may throw (out of memory, CLI11); nothing of
  // ours does.
  try {
    return prunerc::cli::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return prunerc::cli::kDeviceProblem;
  }
}

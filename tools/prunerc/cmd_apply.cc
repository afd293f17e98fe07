#include "ir/analysis/declared.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "schedule/schedule.h"
#include "tools/prunerc/cli.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

namespace prunerc::cli {
namespace {

struct ApplyVerb {
  std::string program, script;
  std::string form = "prc";
};

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open()) return error(Diag::kIoError, "read", path, "no such file");
  return text;
}

// "FILE:line:column: error: message", as operator texts are refused.
int fail_in(const std::string& path, const Error& error) {
  ErrorData data = error.data();
  const Locus at = data.locus;
  data.locus = {};
  const std::string place = at.line > 0 ? fmt::format("{}:{}:{}", path, at.line, at.column) : path;
  fmt::print(stderr, "{}: error: {}\n", place, message(data));
  return kBadInput;
}

int apply(const ApplyVerb& verb) {
  const Result<std::string> program_text = read_text(verb.program);
  if (!program_text.ok()) return fail(program_text.error(), kDeviceProblem);
  const Result<std::string> script_text = read_text(verb.script);
  if (!script_text.ok()) return fail(script_text.error(), kDeviceProblem);
  const Result<ir::Program> program = ir::parse(*program_text);
  if (!program.ok()) return fail_in(verb.program, program.error());
  const Result<void> verified = ir::verify(*program);
  if (!verified.ok()) return fail_in(verb.program, verified.error());
  const Result<void> declared = ir::verify_declared_regions(*program);
  if (!declared.ok()) return fail_in(verb.program, declared.error());
  const Result<schedule::TraceScript> script = schedule::parse_script(*script_text);
  if (!script.ok()) return fail_in(verb.script, script.error());
  const Result<schedule::Schedule> done = schedule::replay(
      *program, script->trace, {.verify = schedule::Verify::kEachStep, .lines = script->lines});
  if (!done.ok()) return fail_in(verb.script, done.error());
  if (verb.form == "trace") {
    fmt::print("{}", schedule::print(done->trace()));
  } else if (verb.form == "json") {
    fmt::print("{}\n", schedule::to_json(done->trace()));
  } else {
    fmt::print("{}", ir::print(done->program()));
  }
  return kSuccess;
}

}  // namespace

void add_apply(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("apply", "apply a schedule script to a program");
  auto args = std::make_shared<ApplyVerb>();
  verb->add_option("program", args->program, "program (.prc)")->required();
  verb->add_option("script", args->script, "one primitive per line, as in a trace")->required();
  verb->add_option("--print", args->form,
                   "prc: the scheduled program; trace, json: the script with its outputs")
      ->check(CLI::IsMember({"prc", "trace", "json"}))
      ->capture_default_str();
  verb->callback([args, &action] { action = [args] { return apply(*args); }; });
}

}  // namespace prunerc::cli

#include "ir/printer.h"
#include "schedule/schedule.h"
#include "tools/prunerc/cli.h"

#include <fmt/format.h>

#include <memory>
#include <string>

namespace prunerc::cli {
namespace {

struct ApplyVerb {
  OperatorOptions op;
  std::string script;
  std::string form = "prc";
};

int apply(const ApplyVerb& verb) {
  const Result<OperatorRequest> request = verb.op.request();
  if (!request.ok()) return fail(request.error(), kUsage);
  const Result<Operator> op = load_operator(*request);
  if (!op.ok()) return fail(op.error());
  fmt::print(stderr, "{}", op->warnings);
  const Result<Choice> done = apply_script(*op, verb.script);
  if (!done.ok()) return fail(done.error());
  if (verb.form == "trace") {
    fmt::print("{}", schedule::print(done->trace));
  } else if (verb.form == "json") {
    fmt::print("{}\n", schedule::to_json(done->trace));
  } else {
    fmt::print("{}", ir::print(done->program));
  }
  return kSuccess;
}

}  // namespace

void add_apply(CLI::App& verb, Action& action) {
  auto args = std::make_shared<ApplyVerb>();
  args->op.add_to(verb);
  verb.get_option("file")->type_name("FILE.prn|prc")->description("operator file");
  verb.add_option("script", args->script, "one primitive per line, as in a trace")
      ->type_name("SCRIPT")
      ->required();
  in_group(verb, "Operator");
  verb.add_option("--print", args->form,
                  "prc: the scheduled program; trace, json: the script with its outputs")
      ->type_name("FORM")
      ->check(CLI::IsMember({"prc", "trace", "json"}))
      ->capture_default_str();
  in_group(verb, "Output");
  verb.callback([args, &action] { action = [args] { return apply(*args); }; });
}

}  // namespace prunerc::cli

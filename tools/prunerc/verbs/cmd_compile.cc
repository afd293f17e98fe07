#include "ir/support/file.h"
#include "tools/driver/export.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/json.h"
#include "tools/prunerc/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

namespace prunerc::cli {
namespace {

struct CompileVerb {
  OperatorOptions op;
  MachineOptions machine;
  std::vector<std::string> outputs;
  std::string symbol;
  std::string weights;
  bool require_tuned = false;
};

// A library without its declaration is of little use: the header comes along.
std::vector<std::string> with_headers(const std::vector<std::string>& asked) {
  std::vector<std::string> outputs = asked;
  const auto is_header = [](const std::string& path) {
    return export_form_of(path) == ExportForm::kHeader;
  };
  if (std::any_of(asked.begin(), asked.end(), is_header)) return outputs;
  for (const std::string& path : asked) {
    const ExportForm form = *export_form_of(path);
    if (form != ExportForm::kShared && form != ExportForm::kArchive &&
        form != ExportForm::kObject && form != ExportForm::kSource)
      continue;
    const std::string header = std::filesystem::path(path).replace_extension(".h");
    if (std::find(outputs.begin(), outputs.end(), header) == outputs.end())
      outputs.push_back(header);
  }
  return outputs;
}

// What is asked for, and a header, which takes the place of no other file.
Result<std::vector<std::string>> outputs_of(const std::vector<std::string>& asked) {
  for (const std::string& path : asked) {
    if (export_form_of(path)) continue;
    return error(Diag::kUsageOption, "-o",
                 fmt::format("needs a name ending in .so, .a, .o, .h, .c, .s or .ll, for a net "
                             "also in .weights, or for a GPU in .so, .h, .c, .cubin, .ptx or "
                             ".cu, found '{}'",
                             path));
  }
  std::vector<std::string> outputs = with_headers(asked);
  for (std::size_t i = asked.size(); i < outputs.size(); ++i) {
    const Result<std::string> there = read_file(outputs[i]);
    std::error_code ignored;
    const bool is_ours = there.ok()
                             ? there->empty() || there->find("PRUNERC_KERNEL_") != std::string::npos
                             : !std::filesystem::is_regular_file(outputs[i], ignored);
    if (is_ours) continue;
    return error(Diag::kUsageOption, "-o",
                 fmt::format("needs a name for the header too: '{}' is not prunerc's", outputs[i]));
  }
  return outputs;
}

Result<void> write_all(Exported& exported, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    PRUNERC_TRY(const std::string bytes, exported.file(*export_form_of(path)));
    PRUNERC_TRY_VOID(replace_file(path, bytes));
    fmt::print(stderr, "wrote {} ({} bytes)\n", path, bytes.size());
  }
  return {};
}

// What stands behind the schedule's origin: that there is no record where nothing else was said of it.
std::string note_of(const Choice& choice, const Session& session) {
  const bool is_told = choice.origin == Choice::Origin::kRecord ||
                       choice.origin == Choice::Origin::kScript || !choice.note.empty() ||
                       !choice.left_aside.empty();
  if (is_told) return choice.note;
  return session.is_host() ? "there is no record, `prunerc tune` looks for a faster one"
                           : "there is no record";
}

int compile(const CompileVerb& verb) {
  const Result<std::vector<std::string>> outputs = outputs_of(verb.outputs);
  if (!outputs.ok()) return fail(outputs.error(), kUsage);
  const Result<OperatorRequest> request = verb.op.request();
  if (!request.ok()) return fail(request.error(), kUsage);
  const Result<SizedNets> nets = load_nets(*request);
  if (!nets.ok()) return fail(nets.error());
  if (!nets->nets.empty()) {
    return compile_network(*nets, *request, verb.machine,
                           {*outputs, verb.symbol, verb.require_tuned, verb.weights});
  }
  if (const Result<void> fits = check_no_net_options(verb.weights); !fits.ok())
    return fail(fits.error());
  const Result<Operator> op = load_operator(*request);
  if (!op.ok()) return fail(op.error());
  fmt::print(stderr, "{}", op->warnings);
  // Only the model asks for measured limits; a build must not depend on how busy its machine is.
  Result<Session> session =
      verb.machine.effort == 0 ? verb.machine.open_unmeasured() : verb.machine.open();
  if (!session.ok()) return fail(session.error());
  for (const std::string& path : verb.outputs) {
    if (has_form(session->target(), *export_form_of(path))) continue;
    return fail(error(Diag::kUsageOption, "-o",
                      fmt::format("a kernel for {} cannot be written to '{}'",
                                  session->target().name, path)),
                kUsage);
  }
  const Result<Choice> choice = choose(*session, *op, verb.machine);
  if (!choice.ok()) return fail(choice.error(), choice_code(choice.error(), verb.machine));
  print_left_aside(op->name, choice->left_aside);
  if (verb.require_tuned && choice->origin != Choice::Origin::kRecord) {
    return fail(fmt::format("no record of '{}' for target {} in {}", op->name, verb.machine.target,
                            session->database().path()),
                "`prunerc tune`, with the same operator and machine, makes one; `prunerc db ls` "
                "lists what there is",
                kCacheMiss);
  }
  const std::string note = note_of(*choice, *session);
  fmt::print(stderr, "target: {}\nschedule: {}{}{}{}\n", describe(session->target()),
             to_string(choice->origin), recipe_text(*choice), note.empty() ? "" : "; ", note);
  Result<Exported> exported = Exported::make(*session, *op, *choice, {.symbol = verb.symbol});
  if (!exported.ok()) return fail(exported.error(), kUsage);
  const Result<void> written = write_all(*exported, *outputs);
  if (!written.ok()) return fail(written.error());
  return kSuccess;
}

}  // namespace

void add_compile(CLI::App& verb, Action& action) {
  auto args = std::make_shared<CompileVerb>();
  args->op.add_to(verb);
  args->machine.add_to(verb);
  args->machine.add_script_to(verb);
  verb.add_flag("--require-tuned", args->require_tuned, "fail (6) if there is no record");
  in_group(verb, "Schedule");
  verb.add_option(
          "-o,--output", args->outputs,
          "file to write, several times for several; its suffix says what: for a CPU .so "
          ".a .o .h .c"
          " .s .ll, for a GPU .so .h .c .cubin .ptx .cu; .weights: of a net, what its library "
          "then reads from beside it")
      ->type_name("FILE.so|a|o|h|c|s|ll|cubin|ptx|cu|weights")
      ->required()
      ->allow_extra_args(false);
  verb.add_option("--symbol", args->symbol,
                  "name of the function (default: op_ and the operator's name, net_ and the net's)")
      ->type_name("NAME");
  in_group(verb, "Output");
  add_weights_to(verb, &args->weights);
  verb.callback([args, &action] { action = [args] { return compile(*args); }; });
}

}  // namespace prunerc::cli

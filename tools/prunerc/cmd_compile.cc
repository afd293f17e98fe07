#include "codegen/codegen.h"
#include "ir/support/file.h"
#include "tools/driver/backend.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

namespace prunerc::cli {
namespace {

struct CompileVerb {
  OperatorOptions op;
  MachineOptions machine;
  std::vector<std::string> outputs;
  bool offline = false;
};

std::optional<codegen::EmitKind> kind_of(const std::string& path) {
  const std::string suffix = std::filesystem::path(path).extension();
  if (suffix == ".o") return codegen::EmitKind::kObject;
  if (suffix == ".so") return codegen::EmitKind::kSharedObject;
  if (suffix == ".s") return codegen::EmitKind::kAssembly;
  if (suffix == ".ll") return codegen::EmitKind::kLlvmText;
  if (suffix == ".h") return codegen::EmitKind::kHeader;
  return std::nullopt;
}

std::optional<CudaFile> cuda_file_of(const std::string& path) {
  const std::string suffix = std::filesystem::path(path).extension();
  if (suffix == ".cu") return CudaFile::kSource;
  if (suffix == ".ptx") return CudaFile::kPtx;
  if (suffix == ".cubin") return CudaFile::kCubin;
  if (suffix == ".so") return CudaFile::kLibrary;
  if (suffix == ".c") return CudaFile::kLauncher;
  if (suffix == ".h") return CudaFile::kHeader;
  return std::nullopt;
}

Result<void> emit(const Choice& choice, const ir::Target& target, const std::string& path) {
  const bool is_gpu = target.kind != ir::TargetKind::kCpu;
  const std::optional<CudaFile> cuda = cuda_file_of(path);
  const std::optional<codegen::EmitKind> cpu = kind_of(path);
  if (is_gpu ? !cuda : !cpu) {
    return error(Diag::kUsageOption, "-o",
                 fmt::format("a kernel for {} cannot be written to '{}'", target.name, path));
  }
  PRUNERC_TRY(const std::string bytes, is_gpu ? emit_cuda(choice.program, target, *cuda)
                                              : codegen::emit_cpu(choice.program, target, *cpu));
  PRUNERC_TRY_VOID(replace_file(path, bytes));
  fmt::print(stderr, "wrote {} ({} bytes)\n", path, bytes.size());
  return {};
}

int compile(CompileVerb verb) {
  for (const std::string& path : verb.outputs) {
    if (kind_of(path) || cuda_file_of(path)) continue;
    return fail(
        error(Diag::kUsageOption, "-o",
              fmt::format(
                  "needs a name ending in .so, .o, .s, .ll or .h, or for a GPU in .so, .c, .h, "
                  ".cubin, .ptx or .cu, found '{}'",
                  path)),
        kUsage);
  }
  const Result<OperatorRequest> request = verb.op.request();
  if (!request.ok()) return fail(request.error(), kUsage);
  const Result<Operator> op = load_operator(*request);
  if (!op.ok()) return fail(op.error());
  fmt::print(stderr, "{}", op->warnings);
  // Only the model asks for measured limits; a build must not depend on how busy its machine is.
  Result<Session> session = verb.machine.effort == 0 ? verb.machine.open_unmeasured() : verb.machine.open();
  if (!session.ok()) return fail(session.error());
  const Result<Choice> choice = choose(*session, *op, verb.machine);
  if (!choice.ok()) return fail(choice.error(), choice_code(choice.error(), verb.machine));
  if (verb.offline && choice->origin != Choice::Origin::kRecord) {
    return fail(fmt::format("no record of '{}' for target {} in {}", op->name, verb.machine.target,
                            session->database().path()),
                "`prunerc tune`, with the same operator and machine, makes one; `prunerc db ls` "
                "lists what there is",
                kCacheMiss);
  }
  fmt::print(stderr, "target: {}\nschedule: {}{}{}\n", describe(session->target()),
             to_string(choice->origin), choice->note.empty() ? "" : "; ", choice->note);
  // A library without its declaration is of little use: the header comes along.
  std::vector<std::string> outputs = verb.outputs;
  for (const std::string& path : verb.outputs) {
    const std::string suffix = std::filesystem::path(path).extension();
    if (suffix != ".o" && suffix != ".so" && suffix != ".c") continue;
    const std::string header = std::filesystem::path(path).replace_extension(".h");
    if (std::find(outputs.begin(), outputs.end(), header) == outputs.end())
      outputs.push_back(header);
  }
  for (const std::string& path : outputs) {
    const Result<void> written = emit(*choice, session->target(), path);
    if (!written.ok()) return fail(written.error());
  }
  return kSuccess;
}

}  // namespace

void add_compile(CLI::App& verb, Action& action) {
  auto args = std::make_shared<CompileVerb>();
  args->op.add_to(verb);
  args->machine.add_to(verb);
  args->machine.add_script_to(verb);
  verb.add_flag("--offline,--require-tuned", args->offline, "fail (6) if there is no record");
  in_group(verb, "Schedule");
  verb.add_option(
          "-o,--output", args->outputs,
          "file to write; its suffix says what: for a CPU .so .o .s .ll .h, for a GPU .so .c"
          " .h .cubin .ptx .cu")
      ->type_name("FILE.so|o|s|ll|h|c|cubin|ptx|cu")
      ->required()
      ->allow_extra_args(false);
  in_group(verb, "Output");
  verb.callback([args, &action] { action = [args] { return compile(*args); }; });
}

}  // namespace prunerc::cli

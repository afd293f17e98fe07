#include "codegen/cuda/host_compiler.h"

#include "codegen/subprocess.h"

#include <cstdlib>

namespace prunerc::codegen {
namespace {

constexpr size_t kMaxMessageBytes = 4000;

}  // namespace

Result<std::string> find_host_compiler() {
  std::vector<std::string> candidates;
  const char* const chosen = std::getenv("PRUNERC_CXX");
  // What the user names is what is used: another one would hide a mistake.
  if (chosen != nullptr && *chosen != 0) {
    candidates = {chosen};
  } else {
    candidates = {"g++", "clang++", "c++"};
  }
  for (const std::string& candidate : candidates) {
    if (run_program({candidate, "--version"}, "/dev/null") == 0) return candidate;
  }
  return error(Diag::kHostCompiler,
               candidates.size() == 1
                   ? "PRUNERC_CXX names " + candidates[0] + ", which cannot be started"
                   : std::string("none of g++, clang++ and c++ is installed"));
}

Result<std::string> compile_shared(const std::string& text, const CompilerFlags& flags,
                                   std::string compiler) {
  if (compiler.empty()) {
    PRUNERC_TRY(compiler, find_host_compiler());
  }
  PRUNERC_TRY(const ScratchFolder folder, ScratchFolder::make());
  const std::string source = folder.file("kernel.cc"), object_file = folder.file("kernel.so");
  PRUNERC_TRY_VOID(write_file(source, text));
  std::vector<std::string> command = {compiler, "-shared", "-fPIC", "-w"};
  command.insert(command.end(), flags.options.begin(), flags.options.end());
  command.insert(command.end(), {"-o", object_file, source});
  command.insert(command.end(), flags.libraries.begin(), flags.libraries.end());
  const std::string messages = folder.file("messages");
  const int status = run_program(command, messages);
  if (status == kNotStarted) return error(Diag::kHostCompiler, compiler + " cannot be started");
  if (status != 0)
    return error(Diag::kHostRejected, read_file(messages).substr(0, kMaxMessageBytes));
  std::string object = read_file(object_file);
  if (object.empty()) return error(Diag::kIoError, "read", object_file, "it is empty");
  return object;
}

}  // namespace prunerc::codegen

#include "codegen/host_compiler.h"

#include "codegen/subprocess.h"

#include <fmt/format.h>

#include <cstdlib>

namespace prunerc::codegen {
namespace {

constexpr size_t kMaxMessageBytes = 4000;

Result<std::string> first_that_starts(std::vector<std::string> candidates) {
  const char* const chosen = std::getenv("PRUNERC_CXX");
  // What the user names is what is used: another one would hide a mistake.
  const bool is_chosen = chosen != nullptr && *chosen != 0;
  if (is_chosen) candidates = {chosen};
  for (const std::string& candidate : candidates) {
    if (run_program({candidate, "--version"}, "/dev/null") == 0) return candidate;
  }
  return error(Diag::kHostCompiler,
               is_chosen ? fmt::format("PRUNERC_CXX names {}, which cannot be started", chosen)
                         : fmt::format("none of {} is installed", fmt::join(candidates, ", ")));
}

}  // namespace

Result<std::string> find_host_compiler() { return first_that_starts({"g++", "clang++", "c++"}); }

Result<std::string> find_c_compiler() {
  return first_that_starts({"cc", "gcc", "clang", "g++", "clang++", "c++"});
}

Result<std::string> run_compiler(const std::string& compiler,
                                 const std::vector<std::string>& options,
                                 const std::vector<CompilerInput>& inputs,
                                 const std::vector<std::string>& libraries) {
  PRUNERC_TRY(const ScratchFolder folder, ScratchFolder::make());
  const std::string output = folder.file("output"), messages = folder.file("messages");
  std::vector<std::string> command = {compiler};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"-o", output});
  for (const CompilerInput& input : inputs) {
    PRUNERC_TRY_VOID(write_file(folder.file(input.name), input.bytes));
    // The compiler may be that of C++, which takes C for its own language.
    if (input.name.ends_with(".c")) command.insert(command.end(), {"-x", "c"});
    command.push_back(folder.file(input.name));
    if (input.name.ends_with(".c")) command.insert(command.end(), {"-x", "none"});
  }
  command.insert(command.end(), libraries.begin(), libraries.end());
  const int status = run_program(command, messages);
  if (status == kNotStarted) return error(Diag::kHostCompiler, compiler + " cannot be started");
  if (status != 0)
    return error(Diag::kHostRejected, read_file(messages).substr(0, kMaxMessageBytes));
  std::string bytes = read_file(output);
  if (bytes.empty()) return error(Diag::kIoError, "read", output, "it is empty");
  return bytes;
}

}  // namespace prunerc::codegen

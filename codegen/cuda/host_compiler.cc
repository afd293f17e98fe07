#include "codegen/cuda/host_compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

extern char** environ;

namespace prunerc::codegen {
namespace {

constexpr size_t kMaxMessageBytes = 4000;
constexpr int kNotStarted = -1;

/// A folder of its own, removed with the files that a compilation leaves in it.
struct ScratchFolder {
  std::string path;
  ScratchFolder() {
    const char* base = std::getenv("TMPDIR");
    std::string pattern =
        std::string(base != nullptr && *base != 0 ? base : "/tmp") + "/prunerc-host-XXXXXX";
    if (mkdtemp(pattern.data()) != nullptr) path = pattern;
  }
  ~ScratchFolder() {
    if (path.empty()) return;
    for (const std::string& file : {source(), object(), messages()}) std::remove(file.c_str());
    rmdir(path.c_str());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string source() const { return path + "/kernel.cc"; }
  std::string object() const { return path + "/kernel.so"; }
  std::string messages() const { return path + "/messages"; }
};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Exit status, or kNotStarted. What the program prints goes to `output`.
int run(const std::vector<std::string>& command, const std::string& output) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int failure = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return kNotStarted;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return kNotStarted;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

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
    if (run({candidate, "--version"}, "/dev/null") == 0) return candidate;
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
  const ScratchFolder folder;
  if (folder.path.empty())
    return error(Diag::kIoError, "make", "a temporary folder", std::strerror(errno));
  std::ofstream out(folder.source(), std::ios::binary);
  out << text;
  if (!out.flush()) return error(Diag::kIoError, "write", folder.source(), std::strerror(errno));
  std::vector<std::string> command = {compiler, "-shared", "-fPIC", "-w"};
  command.insert(command.end(), flags.options.begin(), flags.options.end());
  for (const std::string& word : {std::string("-o"), folder.object(), folder.source()})
    command.push_back(word);
  command.insert(command.end(), flags.libraries.begin(), flags.libraries.end());
  const int status = run(command, folder.messages());
  if (status == kNotStarted) return error(Diag::kHostCompiler, compiler + " cannot be started");
  if (status != 0)
    return error(Diag::kHostRejected, read_file(folder.messages()).substr(0, kMaxMessageBytes));
  std::string object = read_file(folder.object());
  if (object.empty()) return error(Diag::kIoError, "read", folder.object(), "it is empty");
  return object;
}

}  // namespace prunerc::codegen

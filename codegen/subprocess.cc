#include "codegen/subprocess.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

extern char** environ;

namespace prunerc::codegen {

Result<ScratchFolder> ScratchFolder::make() {
  const char* base = std::getenv("TMPDIR");
  const std::string wanted =
      std::string(base != nullptr && *base != 0 ? base : "/tmp") + "/prunerc-codegen-XXXXXX";
  std::string path = wanted;
  if (mkdtemp(path.data()) != nullptr) return ScratchFolder(path);
  return error(Diag::kIoError, "make", wanted, std::strerror(errno));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Result<void> write_file(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  if (!out.flush()) return error(Diag::kIoError, "write", path, std::strerror(errno));
  return {};
}

int run_program(const std::vector<std::string>& command, const std::string& output) {
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
    // Where a process ignores SIGCHLD nobody learns how its children ended: what they wrote tells.
    if (errno == ECHILD) return 0;
    if (errno != EINTR) return kNotStarted;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace prunerc::codegen

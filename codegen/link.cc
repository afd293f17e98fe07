#include "codegen/link.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

extern char** environ;

namespace prunerc::codegen {
namespace {

// A folder of its own, removed with the two files in it.
struct ScratchFolder {
  std::string path;
  ScratchFolder() {
    const char* base = std::getenv("TMPDIR");
    std::string pattern =
        std::string(base != nullptr && *base != 0 ? base : "/tmp") + "/prunerc-link-XXXXXX";
    if (mkdtemp(pattern.data()) != nullptr) path = pattern;
  }
  ~ScratchFolder() {
    if (path.empty()) return;
    std::remove(object().c_str());
    std::remove(library().c_str());
    rmdir(path.c_str());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string object() const { return path + "/kernel.o"; }
  std::string library() const { return path + "/kernel.so"; }
};

// Exit status, or -1 if the program could not be started.
int run(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ) != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

Result<std::string> link_shared(std::string_view object) {
  const ScratchFolder folder;
  if (folder.path.empty())
    return error(Diag::kIoError, "make", "a temporary folder", std::strerror(errno));
  {
    std::ofstream out(folder.object(), std::ios::binary);
    out.write(object.data(), static_cast<std::streamsize>(object.size()));
    if (!out.flush()) return error(Diag::kIoError, "write", folder.object(), std::strerror(errno));
  }
  for (const std::string linker : {"ld.lld", "gcc", "cc"}) {
    std::vector<std::string> command = {linker, "-shared", "-o", folder.library(), folder.object()};
    if (linker != "ld.lld") command.push_back("-nostdlib");
    if (run(command) != 0) continue;
    std::ifstream in(folder.library(), std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (!bytes.empty()) return bytes;
  }
  return error(Diag::kIoError, "link", "a shared object", "none of ld.lld, gcc and cc works");
}

}  // namespace prunerc::codegen

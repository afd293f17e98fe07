#include "codegen/link.h"

#include "codegen/subprocess.h"

#include <vector>

namespace prunerc::codegen {

Result<std::string> link_shared(std::string_view object) {
  PRUNERC_TRY(const ScratchFolder folder, ScratchFolder::make());
  const std::string from = folder.file("kernel.o"), to = folder.file("kernel.so");
  PRUNERC_TRY_VOID(write_file(from, object));
  const std::string messages = folder.file("messages");
  for (const std::string linker : {"ld.lld", "gcc", "cc"}) {
    std::vector<std::string> command = {linker, "-shared", "-o", to, from};
    if (linker != "ld.lld") command.push_back("-nostdlib");
    if (run_program(command, messages) != 0) continue;
    std::string bytes = read_file(to);
    if (!bytes.empty()) return bytes;
  }
  return error(Diag::kIoError, "link", "a shared object",
               "none of ld.lld, gcc and cc works\n" + read_file(messages));
}

}  // namespace prunerc::codegen

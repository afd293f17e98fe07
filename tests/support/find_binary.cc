#include "tests/support/find_binary.h"

#include <filesystem>

namespace prunerc::testing {

std::string find_binary(const std::string& path) {
  if (std::filesystem::exists(path)) return path;
  std::error_code code;
  std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", code);
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    if (std::filesystem::exists(folder / path)) return (folder / path).string();
  }
  return path;
}

}  // namespace prunerc::testing

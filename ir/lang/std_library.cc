// Imports: the built-in library and the file system.

#include "ir/lang/lang.h"
#include "ir/lang/std_table.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace prunerc::lang {

Result<std::string> import_std(std::string_view path) {
  for (const StdFile& file : std_table()) {
    if (file.path == path) return std::string(file.text);
  }
  return error(Diag::kIoError, std::string("find"), std::string(path),
               std::string("no such library file"));
}

Result<std::string> import_file(std::string_view path) {
  if (path.substr(0, 4) == "std/") return import_std(path);
  std::ifstream stream{std::string(path), std::ios::binary};
  if (!stream) {
    return error(Diag::kIoError, std::string("open"), std::string(path),
                 std::string(std::strerror(errno)));
  }
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<std::string_view> std_files() {
  std::vector<std::string_view> paths;
  for (const StdFile& file : std_table()) paths.push_back(file.path);
  return paths;
}

}  // namespace prunerc::lang

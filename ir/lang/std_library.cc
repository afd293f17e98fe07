// Imports: the built-in library and the file system.

#include "ir/lang/lang.h"
#include "ir/lang/std_table.h"
#include "ir/support/file.h"

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
  return read_text_file(std::string(path));
}

std::string_view std_file_with_fn(std::string_view name) {
  const std::string definition = "\nfn " + std::string(name) + "(";
  for (const StdFile& file : std_table()) {
    if (file.text.find(definition) != std::string_view::npos) return file.path;
  }
  return {};
}

std::vector<std::string_view> std_files() {
  std::vector<std::string_view> paths;
  for (const StdFile& file : std_table()) paths.push_back(file.path);
  return paths;
}

}  // namespace prunerc::lang

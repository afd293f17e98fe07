// Imports: the built-in library, and the file system within bounds.

#include "ir/lang/lang.h"
#include "ir/lang/parse/parser.h"
#include "ir/lang/std_table.h"
#include "ir/support/file.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace prunerc::lang {
namespace {

namespace fs = std::filesystem;

bool is_below(const std::string& path, const fs::path& folder) {
  std::error_code code;
  const fs::path real = fs::canonical(folder.empty() ? fs::path(".") : folder, code);
  if (code) return false;
  const std::string prefix = real == "/" ? "/" : real.string() + "/";
  return path.starts_with(prefix);
}

struct NearImports {
  std::string file_name;
  std::vector<std::string> folders;

  Result<std::string> operator()(std::string_view path) const {
    if (path.starts_with("std/")) return import_std(path);
    PRUNERC_TRY(InputFile file, InputFile::open(std::string(path)));
    PRUNERC_TRY(const std::string real, file.real_path());
    if (!is_allowed(real)) {
      const fs::path folder = fs::path(file_name).parent_path();
      return error(Diag::kImportOutside, std::string(path),
                   folder.empty() ? std::string(".") : folder.string());
    }
    return file.read_text(kMaxFileBytes);
  }

  bool is_allowed(const std::string& real) const {
    if (is_below(real, fs::path(file_name).parent_path())) return true;
    for (const std::string& folder : folders) {
      if (is_below(real, folder)) return true;
    }
    // The file may be a link itself, and its neighbours stand where it leads.
    std::error_code code;
    const fs::path target = fs::canonical(file_name, code);
    return !code && is_below(real, target.parent_path());
  }
};

}  // namespace

Result<std::string> import_std(std::string_view path) {
  for (const StdFile& file : std_table()) {
    if (file.path == path) return std::string(file.text);
  }
  return error(Diag::kIoError, std::string("find"), std::string(path),
               std::string("no such library file"));
}

ImportFn import_near(std::string file_name, std::vector<std::string> folders) {
  return NearImports{std::move(file_name), std::move(folders)};
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

#include "ir/support/cuda_paths.h"

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace prunerc {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> variable_value(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != 0 ? std::optional<std::string>(value) : std::nullopt;
}

/// Folders of libraries below a toolkit's root.
constexpr std::string_view kToolkitFolders[] = {"lib64", "lib", "targets/x86_64-linux/lib",
                                                "extras/CUPTI/lib64"};
/// Folders of libraries below site-packages: one tree since CUDA 13, one for each package before.
constexpr std::string_view kPackageFolders[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib",
                                                "nvidia/cuda_cupti/lib"};

std::vector<fs::path> package_roots() {
  std::vector<fs::path> roots;
  if (const auto cache = variable_value("XDG_CACHE_HOME")) {
    roots.emplace_back(fs::path(*cache) / "prunerc/cuda");
  } else if (const auto home = variable_value("HOME")) {
    roots.emplace_back(fs::path(*home) / ".cache/prunerc/cuda");
  }
  if (const auto environment = variable_value("VIRTUAL_ENV")) {
    std::error_code code;
    for (const auto& entry : fs::directory_iterator(fs::path(*environment) / "lib", code)) {
      if (entry.path().filename().string().rfind("python3", 0) == 0)
        roots.push_back(entry.path() / "site-packages");
    }
  }
  return roots;
}

std::vector<fs::path> library_folders() {
  std::vector<fs::path> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const auto root = variable_value(variable);
    for (const std::string_view folder : kToolkitFolders) {
      if (root) folders.emplace_back(fs::path(*root) / folder);
    }
  }
  for (const std::string_view folder : kToolkitFolders)
    folders.emplace_back(fs::path("/usr/local/cuda") / folder);
  for (const fs::path& root : package_roots()) {
    for (const std::string_view folder : kPackageFolders) folders.emplace_back(root / folder);
  }
  return folders;
}

}  // namespace

std::vector<std::string> cuda_library_candidates(const char* variable,
                                                 std::span<const std::string_view> names) {
  // What the user names is what is used: another one would hide a mistake.
  if (const auto chosen = variable_value(variable)) return {*chosen};
  std::vector<std::string> candidates;
  for (const fs::path& folder : library_folders()) {
    for (const std::string_view name : names) {
      std::error_code code;
      if (fs::exists(folder / name, code)) candidates.push_back((folder / name).string());
    }
  }
  candidates.insert(candidates.end(), names.begin(), names.end());
  return candidates;
}

}  // namespace prunerc

#include "tools/driver/platform.h"

#include "ir/support/hash.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/limits.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace prunerc {
namespace {

int hardware_threads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::string platform_file() {
  const std::string folder = cache_folder();
  if (folder.empty()) return "";
  return fmt::format("{}/platform-{:016x}.txt", folder, hash_bytes(runtime::host_model_name()));
}

// The kept limits are a target's text: what target_from_string reads back.
bool read_platform(const std::string& path, ir::Platform* platform) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.view().empty()) return false;
  const Result<ir::Target> target = ir::target_from_string(text.str());
  if (!target.ok() || target->platform.fma_gflops <= 0) return false;
  *platform = target->platform;
  return true;
}

}  // namespace

std::string cache_folder() {
  const char* const xdg = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::string base = xdg != nullptr && *xdg != '\0'     ? xdg
                     : home != nullptr && *home != '\0' ? std::string(home) + "/.cache"
                                                        : "";
  if (base.empty()) return "";
  base += "/prunerc";
  std::error_code code;
  std::filesystem::create_directories(base, code);
  return code ? "" : base;
}

ir::Platform host_platform(bool remeasure) {
  const std::string path = platform_file();
  ir::Platform platform;
  if (!remeasure && !path.empty() && read_platform(path, &platform)) return platform;
  platform = runtime::to_platform(runtime::measure_limits());
  if (path.empty()) return platform;
  ir::Target carrier = *ir::target_from_string("cpu");
  carrier.platform = platform;
  const std::string temporary = fmt::format("{}.{}", path, ::getpid());
  std::ofstream(temporary) << ir::to_string(carrier) << '\n';
  std::error_code code;
  std::filesystem::rename(temporary, path, code);
  return platform;
}

Result<ir::Target> resolve_target(std::string_view text, int threads) {
  const bool host = text == "cpu";
  ir::Target target;
  if (host) {
    target = runtime::host_target();
    target.platform = host_platform();
  } else {
    PRUNERC_TRY(target, ir::target_from_string(text));
    if (runs_here(target)) target.platform = host_platform();
  }
  if (target.kind == ir::TargetKind::kCpu) {
    const int wanted = threads > 0 ? threads : hardware_threads();
    target.num_threads = wanted;
    target.num_cores = std::clamp<int64_t>(target.num_cores, 1, wanted);
  }
  return target;
}

bool runs_here(const ir::Target& target) {
  return target.kind == ir::TargetKind::kCpu &&
         target.vector_bytes <= runtime::host_target().vector_bytes;
}

}  // namespace prunerc

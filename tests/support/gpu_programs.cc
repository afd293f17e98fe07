#include "tests/support/gpu_programs.h"

#include "ir/parser.h"
#include "ir/support/check.h"
#include "schedule/schedule.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace prunerc::testing {
namespace {

constexpr const char* kFolder = "tests/golden/gpu";

// In the working folder, as in tests, or in the runfiles of this binary, as in benchmarks.
std::filesystem::path data_folder() {
  std::error_code ignored;
  const std::filesystem::path here = kFolder;
  if (std::filesystem::is_directory(here, ignored)) return here;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  return self + ".runfiles/prunerc/" + kFolder;
}

std::string read(const std::string& name) {
  std::ifstream file(data_folder() / name, std::ios::binary);
  if (!file.good()) std::fprintf(stderr, "%s/%s\n", kFolder, name.c_str());
  PRUNERC_CHECK(file.good(), "the program or schedule can be read");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

template <typename T>
T value_or_die(Result<T> result, const std::string& name) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s/%s: %s\n", kFolder, name.c_str(), result.error().message().c_str());
  }
  PRUNERC_CHECK(result.ok(), "the program or schedule is sound");
  return std::move(result).value();
}

GpuProgram load(const std::string& name, const schedule::Trace& trace) {
  GpuProgram out;
  out.name = name;
  out.base = value_or_die(ir::parse(read(name + ".prc")), name);
  const schedule::Schedule done = value_or_die(
      schedule::replay(out.base, trace, {.verify = schedule::Verify::kEachStep}), name);
  out.trace = done.trace();
  out.scheduled = done.program();
  const std::string text = schedule::print(done.trace());
  const bool is_hopper =
      text.find("wgmma") != std::string::npos || text.find("bulk_copy") != std::string::npos;
  if (is_hopper) out.arch = "sm_90a";
  return out;
}

}  // namespace

schedule::Trace gpu_trace(std::string_view name) {
  const std::string file = std::string(name) + ".trace";
  return value_or_die(schedule::parse_script(read(file)), file).trace;
}

std::vector<GpuProgram> gpu_programs() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder())) {
    if (entry.path().extension() == ".trace") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  std::vector<GpuProgram> out;
  for (const std::string& name : names) {
    const schedule::Trace trace = gpu_trace(name);
    out.push_back(load(name, trace));
    if (std::filesystem::exists(data_folder() / (name + "_ragged.prc"))) {
      out.push_back(load(name + "_ragged", trace));
    }
  }
  return out;
}

}  // namespace prunerc::testing

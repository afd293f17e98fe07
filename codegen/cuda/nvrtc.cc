#include "codegen/cuda/nvrtc.h"

#include "codegen/cuda/prelude.h"
#include "ir/support/cuda_paths.h"
#include "ir/support/hash.h"
#include "ir/support/wire.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

namespace prunerc::codegen {
namespace {

namespace fs = std::filesystem;

using Program = struct OpaqueProgram*;

/// NVRTC's C interface, as far as it is used; 0 is success.
struct Nvrtc {
  int (*nvrtcVersion)(int*, int*) = nullptr;
  int (*nvrtcGetNumSupportedArchs)(int*) = nullptr;
  int (*nvrtcGetSupportedArchs)(int*) = nullptr;
  int (*nvrtcCreateProgram)(Program*, const char*, const char*, int, const char* const*,
                            const char* const*) = nullptr;
  int (*nvrtcCompileProgram)(Program, int, const char* const*) = nullptr;
  int (*nvrtcDestroyProgram)(Program*) = nullptr;
  int (*nvrtcGetPTXSize)(Program, size_t*) = nullptr;
  int (*nvrtcGetPTX)(Program, char*) = nullptr;
  int (*nvrtcGetCUBINSize)(Program, size_t*) = nullptr;
  int (*nvrtcGetCUBIN)(Program, char*) = nullptr;
  int (*nvrtcGetProgramLogSize)(Program, size_t*) = nullptr;
  int (*nvrtcGetProgramLog)(Program, char*) = nullptr;
  const char* (*nvrtcGetErrorString)(int) = nullptr;
  NvrtcInfo info;
  std::string problem;  ///< why it is not there; empty if it is
};

/// NVRTC opens its builtins by bare name at the first compilation, which fails for a copy that the
/// system's search does not know. Opened before, from the same folder, they are found by that name.
void open_builtins(const fs::path& library) {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(library.parent_path(), code)) {
    const std::string name = entry.path().filename().string();
    const bool is_builtins = name.rfind("libnvrtc-builtins.so.", 0) == 0;
    if (is_builtins) dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  }
}

bool bind(void* handle, Nvrtc& api) {
  const auto get = [handle](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    return function != nullptr;
  };
#define PRUNERC_NVRTC(name) get(api.name, #name)
  return PRUNERC_NVRTC(nvrtcVersion) && PRUNERC_NVRTC(nvrtcGetNumSupportedArchs) &&
         PRUNERC_NVRTC(nvrtcGetSupportedArchs) && PRUNERC_NVRTC(nvrtcCreateProgram) &&
         PRUNERC_NVRTC(nvrtcCompileProgram) && PRUNERC_NVRTC(nvrtcDestroyProgram) &&
         PRUNERC_NVRTC(nvrtcGetPTXSize) && PRUNERC_NVRTC(nvrtcGetPTX) &&
         PRUNERC_NVRTC(nvrtcGetCUBINSize) && PRUNERC_NVRTC(nvrtcGetCUBIN) &&
         PRUNERC_NVRTC(nvrtcGetProgramLogSize) && PRUNERC_NVRTC(nvrtcGetProgramLog) &&
         PRUNERC_NVRTC(nvrtcGetErrorString);
#undef PRUNERC_NVRTC
}

Nvrtc open_nvrtc() {
  constexpr std::string_view kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  Nvrtc api;
  void* handle = nullptr;
  for (const std::string& path : cuda_library_candidates("PRUNERC_NVRTC", kNames)) {
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) break;
    if (api.problem.empty()) api.problem = dlerror();
  }
  if (handle == nullptr) return api;
  if (!bind(handle, api)) {
    api.problem = "the library lacks functions";
    return api;
  }
  api.problem.clear();
  Dl_info where;
  if (dladdr(reinterpret_cast<void*>(api.nvrtcVersion), &where) != 0) {
    std::error_code code;
    const fs::path real = fs::canonical(where.dli_fname, code);
    api.info.path = code ? where.dli_fname : real.string();
    open_builtins(api.info.path);
  }
  api.nvrtcVersion(&api.info.major, &api.info.minor);
  int num_archs = 0;
  api.nvrtcGetNumSupportedArchs(&num_archs);
  api.info.archs.resize(static_cast<size_t>(num_archs));
  api.nvrtcGetSupportedArchs(api.info.archs.data());
  return api;
}

Result<const Nvrtc*> nvrtc() {
  static const Nvrtc api = open_nvrtc();
  if (!api.problem.empty()) return error(Diag::kNvrtcMissing, api.problem);
  return &api;
}

/// Destroys the program at the end.
struct Job {
  const Nvrtc& api;
  Program program = nullptr;
  explicit Job(const Nvrtc& nvrtc_api) : api(nvrtc_api) {}
  ~Job() {
    if (program != nullptr) api.nvrtcDestroyProgram(&program);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  using SizeFn = int (*)(Program, size_t*);
  using GetFn = int (*)(Program, char*);
  std::string get(SizeFn size_of, GetFn get_it) const {
    size_t size = 0;
    if (size_of(program, &size) != 0) return {};
    std::string bytes(size, '\0');
    if (size > 0 && get_it(program, bytes.data()) != 0) return {};
    return bytes;
  }
  std::string log() const {
    std::string text = get(api.nvrtcGetProgramLogSize, api.nvrtcGetProgramLog);
    while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
    return text;
  }
};

/// What every candidate is compiled with. Unrolling is what costs time, not these.
std::vector<std::string> flags(std::string_view arch) {
  return {fmt::format("-arch={}", arch), "-std=c++17", "-default-device", "-w", "--fmad=false",
          "--ptxas-options=-v"};
}

Result<void> compile(Job& job, const std::string& text, const std::vector<std::string>& options,
                     std::string_view arch) {
  const auto rejected = [&](int code) {
    const std::string log = job.program == nullptr ? "" : job.log();
    return error(Diag::kNvrtcRejected, std::string(arch),
                 log.empty() ? std::string(job.api.nvrtcGetErrorString(code)) : log);
  };
  int code =
      job.api.nvrtcCreateProgram(&job.program, text.c_str(), "prelude.cu", 0, nullptr, nullptr);
  if (code != 0) return rejected(code);
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  code = job.api.nvrtcCompileProgram(job.program, static_cast<int>(words.size()), words.data());
  if (code != 0) return rejected(code);
  return {};
}

// ---- The log. ----

/// The number in front of `what`; 0 if there is none.
int64_t number_before(std::string_view line, std::string_view what) {
  const size_t end = line.find(what);
  if (end == std::string_view::npos || end == 0) return 0;
  size_t begin = end - 1;  // a blank lies between the two
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int64_t value = 0;
  std::from_chars(line.data() + begin, line.data() + end, value);
  return value;
}

std::vector<SpillInfo> parse_spills(std::string_view log) {
  constexpr std::string_view kHead = "Function properties for ";
  std::vector<SpillInfo> spills;
  while (!log.empty()) {
    const size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    if (const size_t at = line.find(kHead); at != std::string_view::npos) {
      spills.push_back({.kernel = std::string(line.substr(at + kHead.size()))});
    }
    if (spills.empty()) continue;
    SpillInfo& last = spills.back();
    if (line.find("bytes stack frame") != std::string_view::npos) {
      last.stack_bytes = number_before(line, " bytes stack frame");
      last.spill_store_bytes = number_before(line, " bytes spill stores");
      last.spill_load_bytes = number_before(line, " bytes spill loads");
    }
    if (line.find("Used ") != std::string_view::npos)
      last.registers = number_before(line, " registers");
  }
  return spills;
}

bool says_serialized(std::string_view log) {
  return log.find("C7510") != std::string_view::npos ||
         log.find("C7511") != std::string_view::npos ||
         (log.find("wgmma") != std::string_view::npos &&
          log.find("serialized") != std::string_view::npos);
}

Result<Cubin> describe(std::string bytes, std::string log) {
  Cubin cubin;
  PRUNERC_TRY(cubin.info, read_cubin(bytes));
  cubin.bytes = std::move(bytes);
  cubin.spills = parse_spills(log);
  cubin.serializes_wgmma = says_serialized(log);
  cubin.log = std::move(log);
  return cubin;
}

// ---- The cache: a file for each text; what is not intact is made again. ----

constexpr uint32_t kCacheMagic = 0x43554250;  // "PBUC"

std::string cache_file(const NvrtcOptions& options, const NvrtcInfo& info, const std::string& text,
                       const std::vector<std::string>& words) {
  std::string key = fmt::format("{}.{}", info.major, info.minor);
  for (const std::string& word : words) key += "\n" + word;
  key += "\n" + text;
  const Fingerprint name{.high = hash_bytes(key), .low = hash_bytes(key, 0x2545f4914f6cdd1dULL)};
  return options.cache_folder + "/" + name.to_string() + ".cubin";
}

std::optional<Cubin> read_cache(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  const std::string file((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  WireReader reader(file);
  if (reader.get<uint32_t>() != kCacheMagic) return std::nullopt;
  const auto sum = reader.get<uint64_t>();
  std::string bytes(reader.get_string());
  std::string log(reader.get_string());
  if (!reader.at_end() || sum != hash_bytes(log, hash_bytes(bytes))) return std::nullopt;
  Result<Cubin> cubin = describe(std::move(bytes), std::move(log));
  return cubin.ok() ? std::optional(std::move(cubin).value()) : std::nullopt;
}

/// A full disk costs time, not correctness: failures are ignored.
void write_cache(const std::string& path, const Cubin& cubin) {
  static std::atomic<int> counter{0};
  std::error_code code;
  fs::create_directories(fs::path(path).parent_path(), code);
  WireWriter writer;
  writer.put(kCacheMagic);
  writer.put(hash_bytes(cubin.log, hash_bytes(cubin.bytes)));
  writer.put_string(cubin.bytes);
  writer.put_string(cubin.log);
  const std::string bytes = writer.take();
  // Under a name of its own first: readers see a whole file or none.
  const std::string draft = fmt::format("{}.{}.{}", path, ::getpid(), counter++);
  {
    std::ofstream out(draft, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) {
      fs::remove(draft, code);
      return;
    }
  }
  fs::rename(draft, path, code);
  if (code) fs::remove(draft, code);
}

}  // namespace

Result<NvrtcInfo> nvrtc_info() {
  PRUNERC_TRY(const Nvrtc* const api, nvrtc());
  return api->info;
}

Result<Cubin> compile_cubin(std::string_view kernel_text, std::string_view arch,
                            const NvrtcOptions& options) {
  PRUNERC_TRY(const Nvrtc* const api, nvrtc());
  const std::string text = device_text(kernel_text, arch);
  const std::vector<std::string> words = flags(arch);
  const bool has_cache = !options.cache_folder.empty();
  const std::string path = has_cache ? cache_file(options, api->info, text, words) : "";
  if (has_cache) {
    if (std::optional<Cubin> found = read_cache(path)) return *std::move(found);
  }
  Job job(*api);
  PRUNERC_TRY_VOID(compile(job, text, words, arch));
  std::string bytes = job.get(api->nvrtcGetCUBINSize, api->nvrtcGetCUBIN);
  if (bytes.empty()) return error(Diag::kNvrtcRejected, std::string(arch), "it makes no cubin");
  PRUNERC_TRY(Cubin cubin, describe(std::move(bytes), job.log()));
  if (has_cache) write_cache(path, cubin);
  return cubin;
}

Result<std::string> compile_ptx(std::string_view kernel_text, std::string_view arch) {
  PRUNERC_TRY(const Nvrtc* const api, nvrtc());
  // From a virtual architecture NVRTC stops at PTX: compute_90a for sm_90a.
  const std::string virtual_arch = "compute_" + std::string(arch.substr(arch.find('_') + 1));
  std::vector<std::string> words = flags(virtual_arch);
  Job job(*api);
  PRUNERC_TRY_VOID(compile(job, device_text(kernel_text, arch), words, virtual_arch));
  std::string ptx = job.get(api->nvrtcGetPTXSize, api->nvrtcGetPTX);
  while (!ptx.empty() && ptx.back() == '\0') ptx.pop_back();
  if (ptx.empty()) return error(Diag::kNvrtcRejected, std::string(arch), "it makes no PTX");
  return ptx;
}

}  // namespace prunerc::codegen

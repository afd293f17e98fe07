#include "runtime/cuda/driver.h"

#include "ir/support/cuda_paths.h"

#include <dlfcn.h>

namespace prunerc::runtime::cuda {
namespace {

struct Opened {
  Driver api;
  std::string problem;  ///< empty if a device can be used
};

std::string bind(void* handle, Driver& api) {
  std::string missing;
  const auto get = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
    if (function == nullptr && missing.empty()) missing = symbol;
  };
#define PRUNERC_BIND(name, symbol, params) get(api.name, #symbol);
  PRUNERC_CUDA_FUNCTIONS(PRUNERC_BIND)
#define PRUNERC_BIND_OPTIONAL(name, symbol, params) \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(handle, #symbol));
  PRUNERC_CUDA_OPTIONAL_FUNCTIONS(PRUNERC_BIND_OPTIONAL)
#undef PRUNERC_BIND_OPTIONAL
#undef PRUNERC_BIND
  return missing;
}

Opened open_driver() {
  constexpr std::string_view kNames[] = {"libcuda.so.1"};
  Opened opened;
  void* handle = nullptr;
  std::string problem;
  for (const std::string& path : cuda_library_candidates("PRUNERC_LIBCUDA", kNames)) {
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) problem = dlerror();
    opened.api.path = path;
    if (handle != nullptr) break;
  }
  if (handle == nullptr) {
    opened.problem = problem;
    return opened;
  }
  if (const std::string missing = bind(handle, opened.api); !missing.empty()) {
    opened.problem = "the driver has no " + missing + ": it is too old";
    return opened;
  }
  int count = 0;
  Result<void> ready = check(opened.api, opened.api.cuInit(0), "cuInit");
  if (ready.ok())
    ready = check(opened.api, opened.api.cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (!ready.ok()) opened.problem = ready.error().message();
  if (ready.ok() && count == 0) opened.problem = "the driver knows none";
  return opened;
}

}  // namespace

Result<const Driver*> driver() {
  static const Opened opened = open_driver();
  if (!opened.problem.empty()) return error(Diag::kCudaMissing, opened.problem);
  return &opened.api;
}

Result<void> check_toolkit(int known, int toolkit) {
  if (toolkit <= known) return {};
  const auto text = [](int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  };
  return error(Diag::kCudaVersion, text(known), text(toolkit));
}

Result<void> check(const Driver& api, Code code, const char* call) {
  if (code == 0) return {};
  const char* name = nullptr;
  if (api.cuGetErrorName(code, &name) != 0 || name == nullptr) name = "an unknown error";
  return error(Diag::kCudaCall, std::string(call), std::string(name));
}

}  // namespace prunerc::runtime::cuda

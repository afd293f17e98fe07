#include "runtime/cuda/cupti_timer.h"

#include "ir/support/cuda_paths.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>

namespace prunerc::runtime::cuda {
namespace {

constexpr int kKindConcurrentKernel = 10;  // not "kernel", which would serialize launches
constexpr uint32_t kFlushForced = 1;
constexpr size_t kBufferBytes = 4 << 20;
constexpr size_t kBufferAlignment = 8;

/// The part of CUpti_ActivityKernel8, 9 and 10 (CUDA 12 and 13) that is read; it is laid out alike
/// in the three, and records of unequal sizes are walked by CUPTI itself.
struct KernelRecord {
  uint32_t kind;
  uint8_t cache_config;
  uint8_t shared_config;
  uint16_t registers_per_thread;
  uint32_t partitioned_cache[2];
  uint64_t start_ns;
  uint64_t end_ns;
  uint8_t unused[60];
  uint32_t correlation;
};
static_assert(offsetof(KernelRecord, start_ns) == 16 && offsetof(KernelRecord, correlation) == 92);

using BufferRequested = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using BufferCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size,
                                 size_t valid);

struct Cupti {
  int (*cuptiActivityRegisterCallbacks)(BufferRequested, BufferCompleted) = nullptr;
  int (*cuptiActivityEnable)(int kind) = nullptr;
  int (*cuptiActivityFlushAll)(uint32_t flags) = nullptr;
  int (*cuptiActivityGetNextRecord)(uint8_t* buffer, size_t valid, void** record) = nullptr;
  int (*cuptiActivityGetNumDroppedRecords)(void* context, uint32_t stream,
                                           size_t* dropped) = nullptr;
  int (*cuptiGetResultString)(int code, const char** text) = nullptr;
};

struct Launch {
  uint32_t correlation;
  uint64_t start_ns;
  uint64_t end_ns;
};

/// What the callbacks fill: they have no argument to carry it.
struct State {
  Cupti api;
  std::mutex mutex;
  std::vector<Launch> launches;
  size_t dropped = 0;
};
State& state() {
  static State* const only = new State;  // callbacks may come while the process ends
  return *only;
}

void give_buffer(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;  // as many as fit
}

void take_buffer(void* context, uint32_t stream, uint8_t* buffer, size_t, size_t valid) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  void* record = nullptr;
  while (valid > 0 && s.api.cuptiActivityGetNextRecord(buffer, valid, &record) == 0) {
    const auto* kernel = static_cast<const KernelRecord*>(record);
    if (kernel->kind == kKindConcurrentKernel)
      s.launches.push_back({kernel->correlation, kernel->start_ns, kernel->end_ns});
  }
  size_t dropped = 0;
  if (s.api.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == 0) s.dropped += dropped;
  std::free(buffer);
}

bool bind(void* handle, Cupti& api) {
  const auto get = [handle](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    return function != nullptr;
  };
#define PRUNERC_CUPTI(name) get(api.name, #name)
  return PRUNERC_CUPTI(cuptiActivityRegisterCallbacks) && PRUNERC_CUPTI(cuptiActivityEnable) &&
         PRUNERC_CUPTI(cuptiActivityFlushAll) && PRUNERC_CUPTI(cuptiActivityGetNextRecord) &&
         PRUNERC_CUPTI(cuptiActivityGetNumDroppedRecords) && PRUNERC_CUPTI(cuptiGetResultString);
#undef PRUNERC_CUPTI
}

struct Opened {
  void* handle = nullptr;
  std::string path;
  std::string problem;
};

Opened open_library() {
  constexpr std::string_view kNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
  Opened opened;
  for (const std::string& path : cuda_library_candidates("PRUNERC_CUPTI", kNames)) {
    opened.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    opened.path = path;
    if (opened.handle != nullptr) break;
    if (opened.problem.empty()) opened.problem = dlerror();
  }
  return opened;
}

/// Why there is no timer; empty if there is one.
std::string start_once() {
  const Opened library = open_library();
  if (library.handle == nullptr) return library.problem;
  Cupti& api = state().api;
  if (!bind(library.handle, api)) return "CUPTI lacks functions";
  int code = api.cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
  if (code == 0) code = api.cuptiActivityEnable(kKindConcurrentKernel);
  if (code == 0) return "";
  const char* text = nullptr;
  api.cuptiGetResultString(code, &text);
  return std::string("CUPTI: ") + (text != nullptr ? text : "an unknown error");
}

}  // namespace

Result<CuptiTimer*> CuptiTimer::start() {
  static CuptiTimer timer;
  static const std::string problem = start_once();
  if (!problem.empty()) return error(Diag::kCudaMissing, problem);
  return &timer;
}

Result<std::string> find_cupti() {
  const Opened opened = open_library();
  if (opened.handle == nullptr) return error(Diag::kCudaMissing, opened.problem);
  return opened.path;
}

void CuptiTimer::collect() {
  State& s = state();
  s.api.cuptiActivityFlushAll(kFlushForced);
  const std::lock_guard lock(s.mutex);
  s.launches.clear();
  s.dropped = 0;
}

std::optional<std::vector<double>> CuptiTimer::take(int64_t expected) {
  State& s = state();
  if (s.api.cuptiActivityFlushAll(kFlushForced) != 0) return std::nullopt;
  const std::lock_guard lock(s.mutex);
  if (s.dropped > 0 || static_cast<int64_t>(s.launches.size()) != expected) return std::nullopt;
  std::sort(s.launches.begin(), s.launches.end(),
            [](const Launch& a, const Launch& b) { return a.correlation < b.correlation; });
  std::vector<double> durations;
  for (const Launch& launch : s.launches) {
    // A zero means "not collected".
    if (launch.start_ns == 0 || launch.end_ns <= launch.start_ns) return std::nullopt;
    durations.push_back(static_cast<double>(launch.end_ns - launch.start_ns));
  }
  return durations;
}

}  // namespace prunerc::runtime::cuda

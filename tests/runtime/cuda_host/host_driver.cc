// A CUDA driver whose device is this CPU: a "cubin" is a kernel's shared object for the host,
// device memory is the host's, streams do at once what they are told. For tests of exported
// libraries. FAKE_NO_DEVICE, FAKE_OTHER_GPU: what then fails. fake_allocations() counts what is not
// freed.
#include "runtime/cuda_host/launch.h"
#include "runtime/cuda_host/object.h"

#include <elf.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>

using prunerc::runtime::cuda_host::KernelObject;

namespace {

constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kNoDevice = 100;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidContext = 201;
constexpr int kNoBinaryForGpu = 209;
constexpr int kNotFound = 500;
constexpr int kLaunchFailed = 719;
constexpr int kNumDevices = 2;
constexpr int kMaxDynamicShared = 8;
constexpr unsigned kSharedWithoutAsking = 48 << 10;

struct Function {
  PrHostKernel kernel = nullptr;
  unsigned shared_allowed = kSharedWithoutAsking;
};
struct Module {
  KernelObject object;
  std::map<std::string, Function> functions;
};
struct Context {
  int device = 0;
};

std::atomic<int> allocations{0};
Context contexts[kNumDevices] = {{0}, {1}};
thread_local Context* current = nullptr;

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

// An image comes without its length: section headers are what ends it.
std::size_t elf_bytes(const char* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  return header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
}

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) int

API fake_allocations() { return allocations; }
API cuInit(unsigned) { return is_set("FAKE_NO_DEVICE") ? kNoDevice : 0; }
API cuGetErrorName(int code, const char** name) {
  *name = code == kNoBinaryForGpu  ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
          : code == kLaunchFailed  ? "CUDA_ERROR_LAUNCH_FAILED"
          : code == kInvalidDevice ? "CUDA_ERROR_INVALID_DEVICE"
                                   : nullptr;
  return *name == nullptr ? kInvalidValue : 0;
}
API cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < kNumDevices ? 0 : kInvalidDevice;
}
API cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &contexts[device];
  return 0;
}
API cuCtxPushCurrent_v2(void* context) {
  if (current != nullptr)
    return kInvalidContext;  // of a depth of one, which is enough to see a leak
  current = static_cast<Context*>(context);
  return 0;
}
API cuCtxPopCurrent_v2(void** context) {
  if (current == nullptr) return kInvalidContext;
  *context = current;
  current = nullptr;
  return 0;
}
API cuModuleLoadData(void** module, const char* image) {
  if (current == nullptr) return kInvalidContext;
  // As text stands what a test has written into a file.
  std::string later;
  if (std::strncmp(image, "//ptx ", 6) == 0) {
    std::ifstream file(image + 6, std::ios::binary);
    later.assign(std::istreambuf_iterator<char>(file), {});
    image = later.c_str();
  } else if (is_set("FAKE_OTHER_GPU")) {
    return kNoBinaryForGpu;
  }
  prunerc::Result<KernelObject> object = KernelObject::load("image", {image, elf_bytes(image)});
  if (!object.ok()) return kNoBinaryForGpu;
  *module = new Module{std::move(*object), {}};
  return 0;
}
API cuModuleUnload(void* module) { return delete static_cast<Module*>(module), 0; }
API cuModuleGetFunction(void** function, void* module, const char* name) {
  Module* const from = static_cast<Module*>(module);
  const PrHostKernel kernel = from->object.find(name);
  if (kernel == nullptr) return kNotFound;
  Function& found = from->functions[name];
  found.kernel = kernel;
  *function = &found;
  return 0;
}
API cuFuncSetAttribute(void* function, int attribute, int value) {
  if (attribute != kMaxDynamicShared) return kInvalidValue;
  static_cast<Function*>(function)->shared_allowed = static_cast<unsigned>(value);
  return 0;
}
API cuMemAllocAsync(uint64_t* at, std::size_t bytes, void*) {
  constexpr std::size_t kAlignment = 256;
  if (current == nullptr) return kInvalidContext;
  void* const memory =
      std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (memory == nullptr) return kOutOfMemory;
  std::memset(memory, 0xff, bytes);
  ++allocations;
  *at = reinterpret_cast<uint64_t>(memory);
  return 0;
}
API cuMemFreeAsync(uint64_t at, void*) {
  std::free(reinterpret_cast<void*>(at));
  --allocations;
  return 0;
}
#ifndef FAKE_CUDA_11
namespace {
bool make_map(PrHostTensorMap* map, int type, void* base, const uint64_t* extents,
              const uint64_t* strides, int interleave, int swizzle) {
  static const std::map<int, int> elem_bytes = {{0, 1}, {3, 4}, {5, 8}, {6, 2},
                                                {7, 4}, {8, 8}, {9, 2}};
  const auto size = elem_bytes.find(type);
  if (size == elem_bytes.end() || interleave != 0 || strides[0] % 16 != 0) return false;
  if (reinterpret_cast<uintptr_t>(base) % 16 != 0 || swizzle < 0 || swizzle > 3) return false;
  *map = {};
  map->base = static_cast<unsigned char*>(base);
  map->cols = static_cast<long long>(extents[0]);
  map->pitch_bytes = static_cast<long long>(strides[0]);
  map->elem_bytes = size->second;
  map->swizzle_bytes = swizzle == 0 ? 0 : 16 << swizzle;
  return true;
}
}  // namespace
API cuTensorMapEncodeTiled(PrHostTensorMap* map, int type, unsigned rank, void* base,
                           const uint64_t* extents, const uint64_t* strides, const unsigned* box,
                           const unsigned* steps, int interleave, int swizzle, int, int) {
  if (rank != 2 || steps[0] != 1 || steps[1] != 1) return kInvalidValue;
  if (!make_map(map, type, base, extents, strides, interleave, swizzle)) return kInvalidValue;
  map->rows = static_cast<long long>(extents[1]);
  map->box_rows = box[1];
  map->box_cols = box[0];
  return 0;
}
API cuTensorMapEncodeIm2col(PrHostTensorMap* map, int type, unsigned rank, void* base,
                            const uint64_t* extents, const uint64_t* strides, const int* lower,
                            const int* upper, unsigned channels, unsigned pixels,
                            const unsigned* steps, int interleave, int swizzle, int, int) {
  if (rank != 4 || steps[0] != 1 || steps[3] != 1 || pixels > 1024 || channels > 256) {
    return kInvalidValue;
  }
  // Dense images.
  if (strides[1] != strides[0] * extents[1] || strides[2] != strides[1] * extents[2]) {
    return kInvalidValue;
  }
  if (!make_map(map, type, base, extents, strides, interleave, swizzle)) return kInvalidValue;
  map->rows = static_cast<long long>(extents[1] * extents[2] * extents[3]);
  map->box_rows = pixels;
  map->box_cols = channels;
  map->width = static_cast<long long>(extents[1]);
  map->height = static_cast<long long>(extents[2]);
  for (int d = 0; d < 2; ++d) {  // along h and w; the driver has w first
    if (steps[2 - d] < 1 || steps[2 - d] > 8) return kInvalidValue;
    for (const int corner : {lower[1 - d], upper[1 - d]}) {
      if (corner < -128 || corner > 127) return kInvalidValue;
    }
    map->lower[d] = lower[1 - d];
    map->upper[d] = upper[1 - d];
    map->steps[d] = steps[2 - d];
  }
  return 0;
}
#endif
API cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void*, void** params, void**) {
  if (current == nullptr) return kInvalidContext;
  const Function& what = *static_cast<const Function*>(function);
  if (shared > what.shared_allowed) return kInvalidValue;
  const prunerc::runtime::cuda_host::Grid grid = {
      .blocks = {gx, gy, gz}, .threads = {bx, by, bz}, .shared_bytes = shared};
  return launch(grid, what.kernel, params, {}).empty() ? 0 : kLaunchFailed;
}

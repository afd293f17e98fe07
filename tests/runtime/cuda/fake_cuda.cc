// A CUDA driver and a CUPTI without a GPU, for tests of those who call them: memory is the host's,
// time is a counter, and a "cubin" is text: for each function a line "name behaviour nanoseconds".
// Behaviours: copy (argument 1 = argument 0, 64 floats), stray (also writes behind it), idle, count
// (writes how many launches there were), uploads (how often memory came from the host), clobber
// (writes its input), ruin (copy, and writes into all memory that is not its own), fail (an illegal
// address, which stays), hang.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kIllegalAddress = 700;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidImage = 200;
constexpr int kNotFound = 500;
constexpr int kNotPermitted = 800;
constexpr int kCuptiMaxLimit = 12;
constexpr int kCuptiUnknown = 999;
constexpr size_t kBytes = 256;
constexpr size_t kRedzoneBytes = 256;     // on both sides of each buffer
constexpr size_t kLargestReal = 1 << 22;  // what only clears a cache is not really written
constexpr uint64_t kMemsetNs = 60'000;
constexpr uint64_t kLaunchNs = 2'000;  // what events see on top of a kernel

struct Function {
  std::string behaviour;
  uint64_t ns = 0;
};
struct Module {
  std::map<std::string, Function> functions;
};
struct Event {
  uint64_t at = 0;
};
/// What a stream does, or a graph holds.
struct Op {
  const Function* function = nullptr;  // null: a memset
};
struct Graph {
  std::vector<Op> ops;
};
struct Record {
  uint32_t correlation;
  uint64_t start, end;
};

int sticky = 0;
uint64_t clock_ns = 1000;
uint32_t num_launches = 0;
uint32_t num_uploads = 0;
std::map<char*, size_t> allocations;
size_t allocated = 0;
Graph* capturing = nullptr;
std::vector<Record> records;
bool cupti_enabled = false;

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

uint64_t number(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<uint64_t>(std::atoll(text));
}

/// Every other time the number of nanoseconds that the variable names.
uint64_t noise(const char* variable) {
  static std::map<std::string, uint64_t> num_asked;
  return num_asked[variable]++ % 2 == 0 ? 0 : number(variable, 0);
}

void advance(const Op& op) {
  clock_ns += op.function == nullptr
                  ? kMemsetNs
                  : op.function->ns + kLaunchNs + noise("CUDA_FAKE_LAUNCH_NOISE");
}

float* argument(void** params, int index) { return *static_cast<float**>(params[index]); }

size_t device_bytes() { return number("CUDA_FAKE_MEMORY", uint64_t{1} << 40); }

void ruin_all_but(const void* one, const void* other) {
  for (const auto& [at, bytes] : allocations) {
    char* const data = at + kRedzoneBytes;
    if (data != one && data != other && bytes > 2 * kRedzoneBytes) data[0] ^= 1;
  }
}

// What the kernels of the inspector compute, or something as good.
void checksum(void** params) {
  const auto* const at = *static_cast<const unsigned char**>(params[0]);
  const size_t bytes = *static_cast<size_t*>(params[1]);
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ at[i]) * 1099511628211u;
  **static_cast<uint64_t**>(params[2]) += hash;
}
void compare(void** params) {
  const size_t bytes = *static_cast<size_t*>(params[2]);
  if (std::memcmp(*static_cast<void**>(params[0]), *static_cast<void**>(params[1]), bytes) != 0)
    **static_cast<uint64_t**>(params[3]) = 1;
}

int act(const Function& function, void** params) {
  const std::string& what = function.behaviour;
  if (what == "checksum") checksum(params);
  if (what == "compare") compare(params);
  if (what == "ruin") ruin_all_but(argument(params, 0), argument(params, 1));
  if (what == "copy" || what == "stray" || what == "ruin")
    std::memcpy(argument(params, 1), argument(params, 0), kBytes);
  if (what == "stray") argument(params, 1)[kBytes / sizeof(float)] = 1;
  if (what == "clobber") argument(params, 0)[3] = 1;
  if (what == "count" || what == "uploads")
    for (size_t i = 0; i < kBytes / sizeof(float); ++i)
      argument(params, 1)[i] = static_cast<float>(what == "count" ? num_launches : num_uploads);
  if (what == "fail") sticky = kIllegalAddress;
  if (what == "hang") pause();
  return sticky;
}

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) int
#define ALIVE() \
  if (sticky != 0) return sticky

API cuInit(unsigned) { return is_set("CUDA_FAKE_NO_DEVICE") ? 100 : 0; }
API cuDeviceGet(int* device, int) { return *device = 0; }
API cuDeviceGetCount(int* count) { return *count = 1, 0; }
API cuDeviceGetName(char* name, int size, int) {
  return std::strncpy(name, "fake", static_cast<size_t>(size)), 0;
}
API cuDriverGetVersion(int* version) {
  return *version = static_cast<int>(number("CUDA_FAKE_VERSION", 13000)), 0;
}
API cuDeviceGetAttribute(int* value, int attribute, int) {
  // Four multiprocessors of compute capability 9.0, at 1.5 GHz; 64 bits of memory at 1 GHz. A
  // driver need not tell the width of a warp.
  static const std::map<int, int> known = {
      {75, 9}, {76, 0}, {16, 4}, {13, 1'500'000}, {36, 1'000'000}, {37, 64}, {10, 0}, {39, 2048},
  };
  const auto found = known.find(attribute);
  return *value = found == known.end() ? 1 << 20 : found->second, 0;
}
API cuDevicePrimaryCtxRetain(void** context, int) { return *context = nullptr, sticky; }
API cuCtxSetCurrent(void*) { return sticky; }
API cuCtxSynchronize() { return sticky; }
API cuModuleLoadData(Module** module, const char* image) {
  ALIVE();
  *module = new Module;
  if (std::strstr(image, ".visible .entry") != nullptr) {
    // As the oldest GPU of the table.
    if (std::strstr(image, ".target sm_70\n") == nullptr) return kInvalidImage;
    (*module)->functions["prunerc_empty"] = {"idle", 0};
    (*module)->functions["prunerc_canary"] = {"idle", 10'000};
    (*module)->functions["prunerc_checksum"] = {"checksum", 1000};
    (*module)->functions["prunerc_compare"] = {"compare", 1000};
    return 0;
  }
  std::istringstream in(image);
  std::string name;
  Function function;
  while (in >> name >> function.behaviour >> function.ns) (*module)->functions[name] = function;
  return (*module)->functions.empty() ? kInvalidImage : 0;
}
API cuModuleUnload(Module* module) { return delete module, sticky; }
API cuModuleGetFunction(const Function** function, Module* module, const char* name) {
  ALIVE();
  const auto found = module->functions.find(name);
  if (found == module->functions.end()) return kNotFound;
  *function = &found->second;
  return 0;
}
API cuFuncSetAttribute(Function*, int, int) { return sticky; }
API cuLaunchKernel(const Function* function, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned, unsigned, void*, void** params, void**) {
  ALIVE();
  if (capturing != nullptr) return capturing->ops.push_back({function}), 0;
  ++num_launches;
  records.push_back({num_launches, clock_ns, clock_ns + function->ns});
  advance({function});
  return act(*function, params), 0;
}
API cuMemAlloc_v2(char** at, size_t bytes) {
  ALIVE();
  if (allocated + bytes > device_bytes()) return kOutOfMemory;
  *at = static_cast<char*>(std::malloc(bytes));
  if (*at == nullptr) return kOutOfMemory;
  allocated += allocations[*at] = bytes;
  return 0;
}
API cuMemFree_v2(char* at) {
  allocated -= allocations[at];
  allocations.erase(at);
  return std::free(at), sticky;
}
API cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = device_bytes(), 0; }
API cuMemcpyDtoD_v2(void* to, const void* from, size_t bytes) {
  ALIVE();
  return std::memcpy(to, from, bytes), 0;
}
API cuMemcpyHtoD_v2(void* to, const void* from, size_t bytes) {
  ALIVE();
  ++num_uploads;
  return std::memcpy(to, from, bytes), 0;
}
API cuMemcpyDtoH_v2(void* to, const char* from, size_t bytes) {
  ALIVE();
  // Redzones and single words may always be read.
  const auto whole = allocations.find(const_cast<char*>(from) - kRedzoneBytes);
  const bool is_data =
      bytes > 8 && whole != allocations.end() && whole->second == bytes + 2 * kRedzoneBytes;
  if (is_data && is_set("CUDA_FAKE_NO_DOWNLOAD")) return kNotPermitted;
  return std::memcpy(to, from, bytes), 0;
}
API cuMemsetD8Async(void* at, unsigned char value, size_t bytes, void*) {
  ALIVE();
  if (capturing != nullptr) return capturing->ops.push_back({}), 0;
  if (bytes <= kLargestReal) std::memset(at, value, bytes);
  advance({});
  return 0;
}
API cuStreamCreate(void** stream, unsigned) { return *stream = nullptr, sticky; }
API cuStreamSynchronize(void*) { return sticky; }
API cuStreamBeginCapture_v2(void*, int) {
  ALIVE();
  if (is_set("CUDA_FAKE_NO_GRAPH")) return kNotPermitted;
  capturing = new Graph;
  return 0;
}
API cuStreamEndCapture(void*, Graph** graph) {
  *graph = capturing;
  capturing = nullptr;
  return sticky;
}
API cuGraphInstantiateWithFlags(Graph** exec, Graph* graph, unsigned long long) {
  return *exec = new Graph(*graph), sticky;
}
API cuGraphLaunch(Graph* exec, void*) {
  ALIVE();
  // In a graph launches cost nothing in between.
  const uint64_t memset_ns = kMemsetNs + noise("CUDA_FAKE_MEMSET_NOISE");
  for (const Op& op : exec->ops) clock_ns += op.function == nullptr ? memset_ns : op.function->ns;
  return 0;
}
API cuGraphExecDestroy(Graph* exec) { return delete exec, 0; }
API cuGraphDestroy(Graph* graph) { return delete graph, 0; }
API cuEventCreate(Event** event, unsigned) { return *event = new Event, sticky; }
API cuEventRecord(Event* event, void*) { return event->at = clock_ns, sticky; }
API cuEventSynchronize(Event*) { return sticky; }
API cuEventElapsedTime(float* ms, const Event* begin, const Event* end) {
  *ms = static_cast<float>(static_cast<double>(end->at - begin->at) / 1e6);
  return sticky;
}
API cuGetErrorName(int code, const char** name) {
  *name = code == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == 100           ? "CUDA_ERROR_NO_DEVICE"
                                  : nullptr;
  return *name == nullptr ? 1 : 0;
}
#ifndef FAKE_CUDA_11
API cuTensorMapEncodeTiled(void*, int, unsigned, void*, const uint64_t*, const uint64_t*,
                           const unsigned*, const unsigned*, int, int, int, int) {
  return sticky;
}
API cuTensorMapEncodeIm2col(void*, int, unsigned, void*, const uint64_t*, const uint64_t*,
                            const int*, const int*, unsigned, unsigned, const unsigned*, int, int,
                            int, int) {
  return sticky;
}
#endif

// ---- CUPTI ----

namespace {
using Requested = void (*)(uint8_t**, size_t*, size_t*);
using Completed = void (*)(void*, uint32_t, uint8_t*, size_t, size_t);
Requested requested = nullptr;
Completed completed = nullptr;
constexpr size_t kRecordBytes = 216;
}  // namespace

API cuptiActivityRegisterCallbacks(Requested r, Completed c) {
  requested = r;
  completed = c;
  return 0;
}
API cuptiActivityEnable(int) {
  if (is_set("CUDA_FAKE_NO_CUPTI")) return kCuptiUnknown;
  cupti_enabled = true;
  return 0;
}
API cuptiActivityFlushAll(uint32_t) {
  if (!cupti_enabled) return kCuptiUnknown;
  for (size_t next = 0; next < records.size();) {
    uint8_t* buffer = nullptr;
    size_t size = 0, max_records = 0, used = 0;
    requested(&buffer, &size, &max_records);
    for (; next < records.size() && used + kRecordBytes <= size; ++next, used += kRecordBytes) {
      uint8_t* const at = buffer + used;
      std::memset(at, 0, kRecordBytes);
      const uint32_t kind = 10;
      std::memcpy(at, &kind, 4);
      if (!is_set("CUDA_FAKE_ZERO_TIMES")) {
        std::memcpy(at + 16, &records[next].start, 8);
        std::memcpy(at + 24, &records[next].end, 8);
      }
      std::memcpy(at + 92, &records[next].correlation, 4);
    }
    completed(nullptr, 0, buffer, size, used);
  }
  records.clear();
  return 0;
}
API cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, uint8_t** record) {
  *record = *record == nullptr ? buffer : *record + kRecordBytes;
  return *record + kRecordBytes <= buffer + valid ? 0 : kCuptiMaxLimit;
}
API cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  return *dropped = is_set("CUDA_FAKE_DROPPED") ? 1 : 0, 0;
}
API cuptiGetResultString(int, const char** text) { return *text = "fake", 0; }

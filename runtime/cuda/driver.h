// The CUDA driver API, opened at run time: what is used of it, declared by hand. No toolkit needed.
#ifndef PRUNERC_RUNTIME_CUDA_DRIVER_H_
#define PRUNERC_RUNTIME_CUDA_DRIVER_H_

#include "ir/support/result.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace prunerc::runtime::cuda {

// Handles and codes of the C interface; 0 is success.
using Code = int;
using DevicePtr = unsigned long long;
using Context = struct OpaqueContext*;
using Module = struct OpaqueModule*;
using Function = struct OpaqueFunction*;
using Stream = struct OpaqueStream*;
using Event = struct OpaqueEvent*;
using Graph = struct OpaqueGraph*;
using GraphExec = struct OpaqueGraphExec*;
struct alignas(64) TensorMapBits {
  std::array<unsigned char, 128> opaque;
};

inline constexpr int kAttrMaxThreadsPerBlock = 1;
inline constexpr int kAttrWarpSize = 10;
inline constexpr int kAttrClockKhz = 13;
inline constexpr int kAttrNumSms = 16;
inline constexpr int kAttrMemoryClockKhz = 36;
inline constexpr int kAttrBusBits = 37;
inline constexpr int kAttrL2Bytes = 38;
inline constexpr int kAttrMaxThreadsPerSm = 39;
inline constexpr int kAttrMajor = 75;
inline constexpr int kAttrMinor = 76;
inline constexpr int kAttrSharedPerSm = 81;
inline constexpr int kAttrRegistersPerSm = 82;
inline constexpr int kAttrSharedPerBlock = 97;  // with the opt-in
inline constexpr int kAttrMaxBlocksPerSm = 106;
inline constexpr int kFuncMaxDynamicShared = 8;
inline constexpr int kCaptureThreadLocal = 1;

/// Functions by the names of the API; where a name has versions, the symbol of the one that the
/// declaration is for stands behind it.
#define PRUNERC_CUDA_FUNCTIONS(X)                                                              \
  X(cuInit, cuInit, (unsigned flags))                                                          \
  X(cuDriverGetVersion, cuDriverGetVersion, (int* version))                                    \
  X(cuDeviceGet, cuDeviceGet, (int* device, int ordinal))                                      \
  X(cuDeviceGetCount, cuDeviceGetCount, (int* count))                                          \
  X(cuDeviceGetName, cuDeviceGetName, (char* name, int size, int device))                      \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, (int* value, int attribute, int device))       \
  X(cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t * bytes, int device))                       \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (Context * context, int device))       \
  X(cuCtxSetCurrent, cuCtxSetCurrent, (Context context))                                       \
  X(cuCtxSynchronize, cuCtxSynchronize, ())                                                    \
  X(cuModuleLoadData, cuModuleLoadData, (Module * module, const void* image))                  \
  X(cuModuleUnload, cuModuleUnload, (Module module))                                           \
  X(cuModuleGetFunction, cuModuleGetFunction, (Function * f, Module module, const char* name)) \
  X(cuFuncSetAttribute, cuFuncSetAttribute, (Function f, int attribute, int value))            \
  X(cuLaunchKernel, cuLaunchKernel,                                                            \
    (Function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
     unsigned shared, Stream stream, void** params, void** extra))                             \
  X(cuMemAlloc, cuMemAlloc_v2, (DevicePtr * at, size_t bytes))                                 \
  X(cuMemFree, cuMemFree_v2, (DevicePtr at))                                                   \
  X(cuMemcpyHtoD, cuMemcpyHtoD_v2, (DevicePtr to, const void* from, size_t bytes))             \
  X(cuMemcpyDtoH, cuMemcpyDtoH_v2, (void* to, DevicePtr from, size_t bytes))                   \
  X(cuMemcpyDtoD, cuMemcpyDtoD_v2, (DevicePtr to, DevicePtr from, size_t bytes))               \
  X(cuMemsetD8Async, cuMemsetD8Async,                                                          \
    (DevicePtr at, unsigned char value, size_t count, Stream stream))                          \
  X(cuStreamCreate, cuStreamCreate, (Stream * stream, unsigned flags))                         \
  X(cuStreamSynchronize, cuStreamSynchronize, (Stream stream))                                 \
  X(cuStreamBeginCapture, cuStreamBeginCapture_v2, (Stream stream, int mode))                  \
  X(cuStreamEndCapture, cuStreamEndCapture, (Stream stream, Graph * graph))                    \
  X(cuGraphInstantiate, cuGraphInstantiateWithFlags,                                           \
    (GraphExec * exec, Graph graph, unsigned long long flags))                                 \
  X(cuGraphLaunch, cuGraphLaunch, (GraphExec exec, Stream stream))                             \
  X(cuGraphExecDestroy, cuGraphExecDestroy, (GraphExec exec))                                  \
  X(cuGraphDestroy, cuGraphDestroy, (Graph graph))                                             \
  X(cuEventCreate, cuEventCreate, (Event * event, unsigned flags))                             \
  X(cuEventRecord, cuEventRecord, (Event event, Stream stream))                                \
  X(cuEventSynchronize, cuEventSynchronize, (Event event))                                     \
  X(cuEventElapsedTime, cuEventElapsedTime, (float* ms, Event begin, Event end))               \
  X(cuGetErrorName, cuGetErrorName, (Code code, const char** name))

/// Null where the driver has none: what only some kernels need.
#define PRUNERC_CUDA_OPTIONAL_FUNCTIONS(X)                                                       \
  X(cuTensorMapEncodeTiled, cuTensorMapEncodeTiled,                                              \
    (TensorMapBits * map, int dtype, unsigned rank, void* base, const uint64_t* extents,         \
     const uint64_t* strides, const unsigned* box, const unsigned* elem_strides, int interleave, \
     int swizzle, int promotion, int fill))                                                      \
  X(cuTensorMapEncodeIm2col, cuTensorMapEncodeIm2col,                                            \
    (TensorMapBits * map, int dtype, unsigned rank, void* base, const uint64_t* extents,         \
     const uint64_t* strides, const int* lower, const int* upper, unsigned channels,             \
     unsigned pixels, const unsigned* elem_strides, int interleave, int swizzle, int promotion,  \
     int fill))

struct Driver {
#define PRUNERC_DECLARE(name, symbol, params) Code(*name) params = nullptr;
  PRUNERC_CUDA_FUNCTIONS(PRUNERC_DECLARE)
  PRUNERC_CUDA_OPTIONAL_FUNCTIONS(PRUNERC_DECLARE)
#undef PRUNERC_DECLARE
  std::string path;
};

/// $PRUNERC_LIBCUDA, else the system's libcuda.so.1; opened at the first call. No context is made,
/// so a process may ask and leave the device alone. Errors: CudaMissing (no driver, or no device).
Result<const Driver*> driver();

/// What to say of cubins made by CUDA `toolkit` (13000 is 13.0) to a driver of CUDA `known`; within
/// a major version newer ones may still load. Errors: CudaVersion.
Result<void> check_toolkit(int known, int toolkit);

/// What a call returned, as an error that names it. Errors: CudaCall.
Result<void> check(const Driver& api, Code code, const char* call);

}  // namespace prunerc::runtime::cuda

/// PRUNERC_CUDA(api, cuMemFree, at): calls it; an error ends the enclosing function.
#define PRUNERC_CUDA(api, name, ...) \
  PRUNERC_TRY_VOID(::prunerc::runtime::cuda::check(api, (api).name(__VA_ARGS__), #name))

#endif  // PRUNERC_RUNTIME_CUDA_DRIVER_H_

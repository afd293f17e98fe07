// A cubin on the device: its functions, its buffers, its launches.
#ifndef PRUNERC_RUNTIME_CUDA_KERNEL_H_
#define PRUNERC_RUNTIME_CUDA_KERNEL_H_

#include "codegen/artifact.h"
#include "runtime/cuda/driver.h"

#include <memory>
#include <string>
#include <vector>

namespace prunerc::runtime::cuda {

/// Memory of the device with 256 bytes on both sides that a kernel has no business with.
class DeviceBuffer {
 public:
  /// Errors: CudaCall.
  static Result<DeviceBuffer> allocate(const Driver& api, int64_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;

  DevicePtr data() const { return base_ + kRedzoneBytes; }
  int64_t bytes() const { return bytes_; }
  /// Errors: CudaCall.
  Result<void> fill(unsigned char value, Stream stream) const;
  Result<void> upload(const void* from) const;
  /// From a buffer of the same size.
  Result<void> copy_from(const DeviceBuffer& from) const;
  Result<std::string> download() const;
  Result<bool> is_redzone_intact() const;

 private:
  static constexpr DevicePtr kRedzoneBytes = 256;
  DeviceBuffer() = default;
  const Driver* api_ = nullptr;
  DevicePtr base_ = 0;
  int64_t bytes_ = 0;
};

/// Destruction unloads the module.
class DeviceKernel {
 public:
  /// Loads the cubin and finds the functions of all launches. Errors: KernelLoad, CudaCall,
  /// CudaVersion.
  static Result<DeviceKernel> load(const Driver& api, const codegen::Artifact& artifact);
  ~DeviceKernel();
  DeviceKernel(DeviceKernel&& other) noexcept;
  DeviceKernel& operator=(DeviceKernel&&) = delete;

  /// Makes the arguments of all launches: one address for each parameter. Errors: CudaCall,
  /// CudaTensorMap.
  Result<void> bind(const std::vector<DevicePtr>& params, DevicePtr workspace);
  /// Puts all launches into the stream. Errors: CudaCall.
  Result<void> launch(Stream stream) const;
  int64_t num_launches() const { return static_cast<int64_t>(launches_.size()); }

 private:
  struct Bound;
  DeviceKernel() = default;
  const Driver* api_ = nullptr;
  Module module_ = nullptr;
  std::vector<codegen::Launch> launches_;
  std::vector<Function> functions_;
  std::unique_ptr<std::vector<Bound>> bound_;
};

}  // namespace prunerc::runtime::cuda

#endif  // PRUNERC_RUNTIME_CUDA_KERNEL_H_

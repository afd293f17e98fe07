// A shared object of CUDA kernels compiled for the host, loaded from its bytes.
#ifndef PRUNERC_RUNTIME_CUDA_HOST_OBJECT_H_
#define PRUNERC_RUNTIME_CUDA_HOST_OBJECT_H_

#include "ir/support/result.h"
#include "runtime/cuda_host/abi.h"

#include <string>
#include <string_view>

namespace prunerc::runtime::cuda_host {

/// Destruction unloads it.
class KernelObject {
 public:
  /// `name` is for messages. Errors: KernelLoad, IoError.
  static Result<KernelObject> load(const std::string& name, std::string_view bytes);
  ~KernelObject();
  KernelObject(KernelObject&& other) noexcept;
  KernelObject& operator=(KernelObject&&) = delete;

  /// Null if there is no such kernel.
  PrHostKernel find(const std::string& kernel) const;

 private:
  KernelObject() = default;
  void* handle_ = nullptr;
  std::string path_;  ///< kept until the end: a checker's report reads line numbers from it
};

}  // namespace prunerc::runtime::cuda_host

#endif  // PRUNERC_RUNTIME_CUDA_HOST_OBJECT_H_

#include "runtime/cuda_host/object.h"

#include "runtime/cuda_host/launch.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#define PRUNERC_STRING2(x) #x
#define PRUNERC_STRING(x) PRUNERC_STRING2(x)

namespace prunerc::runtime::cuda_host {
namespace {

Result<std::string> write_temporary(std::string_view bytes) {
  const char* const folder = std::getenv("TMPDIR");
  std::string path =
      std::string(folder != nullptr && *folder != 0 ? folder : "/tmp") + "/prunerc-kernel-XXXXXX";
  const int fd = mkstemp(path.data());
  const auto failed = [&](int cause) {
    return error(Diag::kIoError, "write", path, std::strerror(cause));
  };
  if (fd < 0) return failed(errno);
  int cause = 0;
  while (!bytes.empty() && cause == 0) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written <= 0) cause = errno;
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  close(fd);
  if (cause == 0) return path;
  unlink(path.c_str());
  return failed(cause);
}

}  // namespace

Result<KernelObject> KernelObject::load(const std::string& name, std::string_view bytes) {
  KernelObject object;
  PRUNERC_TRY(object.path_, write_temporary(bytes));
  object.handle_ = dlopen(object.path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object.handle_ == nullptr) return error(Diag::kKernelLoad, name, std::string(dlerror()));
  const auto attach =
      reinterpret_cast<PrHostAttach>(dlsym(object.handle_, PRUNERC_STRING(PR_HOST_ATTACH)));
  if (attach == nullptr) return error(Diag::kKernelLoad, name, "it is not an object of kernels");
  attach(&host_api());
  return object;
}

KernelObject::KernelObject(KernelObject&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), path_(std::exchange(other.path_, {})) {}

KernelObject::~KernelObject() {
  if (handle_ != nullptr) dlclose(handle_);
  if (!path_.empty()) unlink(path_.c_str());
}

PrHostKernel KernelObject::find(const std::string& kernel) const {
  const std::string symbol = PRUNERC_STRING(PR_HOST_KERNEL_PREFIX) + kernel;
  return reinterpret_cast<PrHostKernel>(dlsym(handle_, symbol.c_str()));
}

}  // namespace prunerc::runtime::cuda_host

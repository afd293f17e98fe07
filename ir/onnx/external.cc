// Tensors in files beside a model: the location comes from a file that anybody may have written.
#include "ir/onnx/model.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace prunerc::onnx {
namespace {

// Opens below `folder` only; follows no link, on any kernel since 5.6.
int open_beneath(int folder, const std::string& location) {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return static_cast<int>(::syscall(SYS_openat2, folder, location.c_str(), &how, sizeof how));
}

}  // namespace

Result<MappedFile> map_external(const std::string& folder, const std::string& location) {
  const auto refuse = [&](std::string why) {
    return error(Diag::kOnnxExternal, location, std::move(why));
  };
  if (location.empty() || location.size() > kMaxLocation || location[0] == '/' ||
      location.find('\0') != std::string::npos)
    return refuse("it must be a plain name of a file beside the model");
  const int dir = ::open(folder.empty() ? "." : folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0) return refuse(std::strerror(errno));
  const int fd = open_beneath(dir, location);
  const int code = errno;
  ::close(dir);
  if (fd < 0) {
    if (code == EXDEV || code == ELOOP) return refuse("it leaves the model's folder, or is a link");
    return refuse(std::strerror(code));
  }
  struct stat info {};
  const bool is_file = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  if (!is_file || info.st_nlink != 1) {
    ::close(fd);
    return refuse(is_file ? "it has several names (hard links)" : "it is no regular file");
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* const at = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int map_code = errno;
  ::close(fd);
  if (at == MAP_FAILED) return refuse(std::strerror(map_code));
  MappedFile file;
  file.bytes = {static_cast<const char*>(at), size};
  if (at != nullptr) {
    file.owner = std::shared_ptr<const void>(
        at, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  }
  return file;
}

}  // namespace prunerc::onnx

#include "ir/support/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace prunerc {
namespace {

Error io_error(const char* what, const std::string& path) {
  return error(Diag::kIoError, std::string(what), path, std::string(std::strerror(errno)));
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  // Opening a folder succeeds; only reading it fails, and then without a reason.
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return error(Diag::kFileKind, path, std::string("a folder"));
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  if (file) bytes << file.rdbuf();
  if (!file) return io_error("read", path);
  return std::move(bytes).str();
}

Result<std::string> read_text_file(const std::string& path) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  PRUNERC_TRY(std::string text, read_file(path));
  if (std::string_view(text).starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

Result<void> replace_file(const std::string& path, std::string_view bytes) {
  const std::string temporary = path + ".part";
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return io_error("write", path);
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t n = ::write(file, bytes.data() + written, bytes.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    written += static_cast<std::size_t>(n);
  }
  // On disk before it takes the old one's name: else a power failure could leave an empty file.
  const bool synced = written == bytes.size() && ::fsync(file) == 0;
  if (::close(file) != 0 || !synced || ::rename(temporary.c_str(), path.c_str()) != 0) {
    return io_error("write", path);
  }
  return {};
}

}  // namespace prunerc

#include "ir/support/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace prunerc {
namespace {

Error io_error(const char* what, const std::string& path) {
  return error(Diag::kIoError, std::string(what), path, std::string(std::strerror(errno)));
}

// What it is, if it is not what we read.
const char* other_kind(const struct stat& found) {
  if (S_ISREG(found.st_mode)) return nullptr;
  if (S_ISDIR(found.st_mode)) return "a folder";
  if (S_ISFIFO(found.st_mode)) return "a pipe";
  if (S_ISSOCK(found.st_mode)) return "a socket";
  const bool is_null =
      S_ISCHR(found.st_mode) && major(found.st_rdev) == 1 && minor(found.st_rdev) == 3;
  return is_null ? nullptr : "a device";
}

Error too_large(const std::string& path, uint64_t found, uint64_t most) {
  return error(Diag::kTooMany, "'" + path + "'", bytes_text(found), bytes_text(most));
}

}  // namespace

InputFile::InputFile(int file, uint64_t size_bytes, std::string path)
    : file_(file), size_bytes_(size_bytes), path_(std::move(path)) {}
InputFile::InputFile(InputFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      size_bytes_(other.size_bytes_),
      path_(std::move(other.path_)) {}
InputFile::~InputFile() {
  if (file_ >= 0) ::close(file_);
}

Result<InputFile> InputFile::open(const std::string& path) {
  // Not to wait for the other end of a pipe, nor to take a terminal; of a regular file that says
  // nothing.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0 && errno == ENXIO) return error(Diag::kFileKind, path, std::string("a socket"));
  if (file < 0) return io_error("read", path);
  struct stat found = {};
  if (::fstat(file, &found) != 0) {
    const Error failure = io_error("read", path);
    ::close(file);
    return failure;
  }
  if (const char* const kind = other_kind(found); kind != nullptr) {
    ::close(file);
    return error(Diag::kFileKind, path, std::string(kind));
  }
  return InputFile(file, static_cast<uint64_t>(std::max<off_t>(0, found.st_size)), path);
}

Result<std::string> InputFile::real_path() const {
  const std::string link = "/proc/self/fd/" + std::to_string(file_);
  std::array<char, 4097> target = {};
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size() - 1);
  if (length < 0) return io_error("find", path_);
  return std::string(target.data(), static_cast<std::size_t>(length));
}

Result<std::size_t> InputFile::read(std::span<char> into) {
  std::size_t got = 0;
  while (got < into.size()) {
    const ssize_t n = ::read(file_, into.data() + got, into.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("read", path_);
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return got;
}

Result<std::string> InputFile::read_all(uint64_t most_bytes) {
  if (size_bytes_ > most_bytes) return too_large(path_, size_bytes_, most_bytes);
  // It may grow meanwhile, and some that the kernel makes up say that they have no bytes.
  constexpr std::size_t kStep = std::size_t{64} << 10;
  std::string bytes;
  std::size_t got = 0;
  std::size_t room = static_cast<std::size_t>(size_bytes_) + 1;
  while (true) {
    bytes.resize(got + room);
    PRUNERC_TRY(const std::size_t n, read(std::span(bytes).subspan(got)));
    got += n;
    if (got > most_bytes) return too_large(path_, got, most_bytes);
    if (got < bytes.size()) break;
    room = kStep;
  }
  bytes.resize(got);
  return bytes;
}

Result<std::string> InputFile::read_text(uint64_t most_bytes) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  PRUNERC_TRY(std::string text, read_all(most_bytes));
  if (std::string_view(text).starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

Result<std::string> read_file(const std::string& path, uint64_t most_bytes) {
  PRUNERC_TRY(InputFile file, InputFile::open(path));
  return file.read_all(most_bytes);
}

Result<std::string> read_text_file(const std::string& path, uint64_t most_bytes) {
  PRUNERC_TRY(InputFile file, InputFile::open(path));
  return file.read_text(most_bytes);
}

namespace {

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// A device or a pipe stays what it is. A pipe that nobody reads is not waited for.
Result<void> write_into(const std::string& path, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0 && errno == ENXIO)
    return error(Diag::kFileKind, path, std::string("a pipe or socket that nobody reads"));
  if (file < 0) return io_error("write", path);
  ::fcntl(file, F_SETFL, 0);
  const bool written = write_all(file, bytes);
  const Error failure = io_error("write", path);
  if (::close(file) != 0 && written) return io_error("write", path);
  if (!written) return failure;
  return {};
}

// Where links lead, whether there is a file or not.
std::string without_links(std::string path) {
  constexpr int kMostLinks = 40;
  std::array<char, 4097> target = {};
  for (int i = 0; i < kMostLinks; ++i) {
    const ssize_t length = ::readlink(path.c_str(), target.data(), target.size() - 1);
    if (length < 0) break;
    const std::string to(target.data(), static_cast<std::size_t>(length));
    const std::size_t folder = path.rfind('/');
    const bool is_relative = !to.starts_with('/') && folder != std::string::npos;
    path = is_relative ? path.substr(0, folder + 1) + to : to;
  }
  return path;
}

// A new file beside the path, which nobody else writes; its descriptor, or -1 and errno.
int open_draft(const std::string& path, std::string* name) {
  static std::atomic<unsigned> num_drafts{0};
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    *name = path + "." + std::to_string(::getpid()) + "-" + std::to_string(num_drafts++) + ".part";
    const int file = ::open(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

}  // namespace

Result<void> replace_file(const std::string& path, std::string_view bytes) {
  struct stat found = {};
  const bool is_there = ::stat(path.c_str(), &found) == 0;
  if (is_there && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode))
    return write_into(path, bytes);
  const std::string target = without_links(path);
  std::string draft;
  const int file = open_draft(target, &draft);
  if (file < 0) return io_error("write", path);
  // On disk before it takes the old one's name: else a power failure could leave an empty file.
  bool done = write_all(file, bytes) && ::fsync(file) == 0;
  int reason = errno;
  if (::close(file) != 0 && done) {
    done = false;
    reason = errno;
  }
  if (done && ::rename(draft.c_str(), target.c_str()) == 0) return {};
  if (done) reason = errno;
  ::unlink(draft.c_str());
  errno = reason;
  return io_error("write", path);
}

std::string bytes_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g %s", value, kUnits[unit]);
  return text;
}

bool nests_deeper(std::string_view json, int levels) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > levels) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace prunerc

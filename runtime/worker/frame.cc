#include "runtime/worker/frame.h"

#include "ir/support/wire.h"
#include "runtime/clock.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace prunerc::runtime {
namespace {

constexpr uint32_t kMagic = 0x46435250;  // "PRCF"
constexpr size_t kHeaderBytes = 16;

/// Milliseconds for poll, rounded up so that a deadline has passed when poll says so.
int poll_timeout_ms(int64_t deadline_ns) {
  if (deadline_ns < 0) return -1;
  const int64_t left_ns = deadline_ns - now_ns();
  return static_cast<int>(std::clamp<int64_t>((left_ns + 999'999) / 1'000'000, 0, 1 << 30));
}

template <typename F, typename T>
bool transfer(F&& call, int fd, T* data, int64_t bytes, int64_t offset) {
  while (bytes > 0) {
    const ssize_t moved = call(fd, data, static_cast<size_t>(bytes), offset);
    if (moved <= 0) return false;
    data += moved;
    bytes -= moved;
    offset += moved;
  }
  return true;
}

}  // namespace

std::string encode(const Frame& frame) {
  WireWriter writer;
  writer.put(kMagic);
  writer.put(frame.type);
  writer.put(frame.request);
  writer.put(static_cast<uint32_t>(frame.payload.size()));
  return writer.take() + frame.payload;
}

std::optional<Frame> FrameParser::next() {
  if (broken_ || buffer_.size() < kHeaderBytes) return std::nullopt;
  WireReader reader(buffer_);
  const auto magic = reader.get<uint32_t>();
  const auto type = reader.get<uint32_t>();
  const auto request = reader.get<uint32_t>();
  const auto size = reader.get<uint32_t>();
  if (magic != kMagic || type >= kNumFrameTypes || size > kMaxFrameBytes) {
    broken_ = true;
    buffer_.clear();
    return std::nullopt;
  }
  if (buffer_.size() - kHeaderBytes < size) return std::nullopt;
  Frame frame{.type = static_cast<FrameType>(type),
              .payload = buffer_.substr(kHeaderBytes, size),
              .request = request};
  buffer_.erase(0, kHeaderBytes + size);
  return frame;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR && errno != EAGAIN) {
      return false;
    }
  }
  return true;
}

WriteStatus write_until(int fd, std::string_view bytes, int64_t deadline_ns) {
  while (!bytes.empty()) {
    pollfd wait{.fd = fd, .events = POLLOUT, .revents = 0};
    const int ready = poll(&wait, 1, poll_timeout_ms(deadline_ns));
    if (ready < 0 && errno != EINTR) return WriteStatus::kClosed;
    if (ready == 0 && now_ns() >= deadline_ns) return WriteStatus::kDeadline;
    if (ready <= 0) continue;
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR && errno != EAGAIN) {
      return WriteStatus::kClosed;
    }
  }
  return WriteStatus::kWritten;
}

bool read_all_at(int fd, unsigned char* to, int64_t bytes, int64_t offset) {
  return transfer(pread, fd, to, bytes, offset);
}

bool write_all_at(int fd, const unsigned char* from, int64_t bytes, int64_t offset) {
  return transfer(pwrite, fd, from, bytes, offset);
}

ReadStatus read_frame(int fd, FrameParser& parser, int64_t deadline_ns, Frame* frame) {
  while (true) {
    if (std::optional<Frame> next = parser.next()) {
      *frame = *std::move(next);
      return ReadStatus::kFrame;
    }
    if (parser.is_broken()) return ReadStatus::kBroken;
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = poll(&wait, 1, poll_timeout_ms(deadline_ns));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return ReadStatus::kEnd;
    if (ready == 0) {
      if (deadline_ns >= 0 && now_ns() >= deadline_ns) return ReadStatus::kDeadline;
      continue;
    }
    std::array<char, 1 << 16> chunk;
    const ssize_t got = read(fd, chunk.data(), chunk.size());
    if (got == 0) return ReadStatus::kEnd;
    if (got < 0 && errno != EINTR && errno != EAGAIN) return ReadStatus::kEnd;
    if (got > 0) parser.feed({chunk.data(), static_cast<size_t>(got)});
  }
}

}  // namespace prunerc::runtime

// Length-prefixed frames over a pipe between the parent and a worker process.
#ifndef PRUNERC_RUNTIME_WORKER_FRAME_H_
#define PRUNERC_RUNTIME_WORKER_FRAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace prunerc::runtime {

enum class FrameType : uint32_t {
  kConfigure,  ///< parent: threads and limits
  kRun,        ///< parent: one job
  kCompare,    ///< parent: several jobs to time in turn
  kReady,      ///< worker: configured
  kProgress,   ///< worker: a stage of a job went well; the deadline starts anew
  kDone,       ///< worker: the outcome of the request
};
inline constexpr uint32_t kNumFrameTypes = 6;

struct Frame {
  FrameType type = FrameType::kConfigure;
  std::string payload;
  /// Counts the parent's requests; an answer repeats it, so that a late one is not taken for
  /// another.
  uint32_t request = 0;

  bool operator==(const Frame&) const = default;
};

/// No message is larger; tensors travel through shared memory.
inline constexpr uint32_t kMaxFrameBytes = 64 << 20;

std::string encode(const Frame& frame);

/// Cuts a byte stream into frames. Total: any bytes give frames or, once and for all, is_broken().
class FrameParser {
 public:
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole frame, if there is one.
  std::optional<Frame> next();
  bool is_broken() const { return broken_; }

 private:
  std::string buffer_;
  bool broken_ = false;
};

/// Writes everything, over short writes and interrupts; false if the other end is gone.
bool write_all(int fd, std::string_view bytes);
enum class WriteStatus : uint8_t { kWritten, kClosed, kDeadline };
/// The same until `deadline_ns` of the monotonic clock, of a descriptor that does not block.
WriteStatus write_until(int fd, std::string_view bytes, int64_t deadline_ns);
/// Moves all of `bytes` between a file and memory; false at the end of the file or on an error.
bool read_all_at(int fd, unsigned char* to, int64_t bytes, int64_t offset);
bool write_all_at(int fd, const unsigned char* from, int64_t bytes, int64_t offset);

enum class ReadStatus : uint8_t { kFrame, kEnd, kBroken, kDeadline };

/// Waits for a frame until `deadline_ns` of the monotonic clock; a negative deadline waits for
/// ever.
ReadStatus read_frame(int fd, FrameParser& parser, int64_t deadline_ns, Frame* frame);

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_WORKER_FRAME_H_

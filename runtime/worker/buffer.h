// Memory for kernels under test: guard pages on both sides, a chosen place between them, poison and
// redzones.
#ifndef PRUNERC_RUNTIME_WORKER_BUFFER_H_
#define PRUNERC_RUNTIME_WORKER_BUFFER_H_

#include <cstdint>
#include <string>

namespace prunerc::runtime {

/// Where the data lies between the guard pages. Left: it starts right after one. Right: it ends
/// right before one, but for the few bytes that alignment to 64 needs. Staggered: starts of several
/// buffers differ modulo the page, as they do in programs; buffers that all start alike collide in
/// the first-level cache.
enum class Placement : uint8_t { kLeft, kRight, kStaggered };

/// A block of memory aligned to 64 bytes between two inaccessible areas.
class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  /// Maps `bytes` of zeros; data() is null if the system refuses. `index` tells buffers of one
  /// kernel apart.
  GuardedBuffer(int64_t bytes, Placement placement, int index);
  ~GuardedBuffer();
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;

  unsigned char* data() const { return data_; }
  int64_t size_bytes() const { return size_bytes_; }
  /// First and last accessible address are begin() and end() - 1; a guard lies on either side.
  const unsigned char* begin() const { return pages_; }
  const unsigned char* end() const { return pages_ + page_bytes_; }

  /// Sets every data byte to `value`.
  void poison(unsigned char value);
  /// True if no accessible byte outside the data was changed since the buffer was made.
  bool is_redzone_intact() const;

 private:
  unsigned char* pages_ = nullptr;
  int64_t page_bytes_ = 0;  // accessible bytes
  unsigned char* data_ = nullptr;
  int64_t size_bytes_ = 0;
};

/// Size of each guard: wide enough for an access that is off by a row, not only by an element. A
/// multiple of a page.
inline constexpr int64_t kGuardBytes = 64 << 10;

/// 64-bit hash of memory, for noticing a change.
uint64_t hash_bytes(const void* data, int64_t size_bytes);

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_WORKER_BUFFER_H_

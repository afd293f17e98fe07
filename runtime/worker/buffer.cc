#include "runtime/worker/buffer.h"

#include "ir/support/hash.h"
#include "runtime/kernel.h"

#include <sys/mman.h>

#include <cstring>
#include <utility>

namespace prunerc::runtime {
namespace {

constexpr int64_t kPageBytes = 4096;
constexpr unsigned char kRedzone = 0xA7;
/// Five lines: starts of up to twelve buffers fall into different sets.
constexpr int64_t kStaggerBytes = 5 * 64;
/// From here on huge pages pay: TLB misses of the measuring process are not the kernel's fault.
constexpr int64_t kHugePageFromBytes = 4 << 20;

int64_t round_up(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

bool holds_only(const unsigned char* from, const unsigned char* to, unsigned char value) {
  for (; from != to; ++from) {
    if (*from != value) return false;
  }
  return true;
}

}  // namespace

GuardedBuffer::GuardedBuffer(int64_t bytes, Placement placement, int index) : size_bytes_(bytes) {
  const int64_t stagger = placement == Placement::kStaggered ? kStaggerBytes * (index % 12) : 0;
  page_bytes_ = round_up(bytes + stagger, kPageBytes);
  if (page_bytes_ == 0) page_bytes_ = kPageBytes;
  const auto mapped = static_cast<size_t>(page_bytes_ + 2 * kGuardBytes);
  void* at = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return;
  pages_ = static_cast<unsigned char*>(at) + kGuardBytes;
  if (mprotect(pages_, static_cast<size_t>(page_bytes_), PROT_READ | PROT_WRITE) != 0) {
    munmap(at, mapped);
    pages_ = nullptr;
    return;
  }
  if (placement == Placement::kStaggered && bytes >= kHugePageFromBytes) {
    madvise(pages_, static_cast<size_t>(page_bytes_), MADV_HUGEPAGE);
  }
  data_ = pages_ + stagger;
  if (placement == Placement::kRight)
    data_ = pages_ + page_bytes_ - round_up(bytes, PRUNERC_ALIGNMENT);
  if (bytes == 0) data_ = pages_;
  std::memset(pages_, kRedzone, static_cast<size_t>(data_ - pages_));
  const unsigned char* data_end = data_ + bytes;
  std::memset(data_ + bytes, kRedzone, static_cast<size_t>(end() - data_end));
}

GuardedBuffer::~GuardedBuffer() {
  if (pages_ == nullptr) return;
  munmap(pages_ - kGuardBytes, static_cast<size_t>(page_bytes_ + 2 * kGuardBytes));
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept { *this = std::move(other); }

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  std::swap(pages_, other.pages_);
  std::swap(page_bytes_, other.page_bytes_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

void GuardedBuffer::poison(unsigned char value) {
  if (size_bytes_ > 0) std::memset(data_, value, static_cast<size_t>(size_bytes_));
}

bool GuardedBuffer::is_redzone_intact() const {
  return holds_only(pages_, data_, kRedzone) && holds_only(data_ + size_bytes_, end(), kRedzone);
}

uint64_t hash_bytes(const void* data, int64_t size_bytes) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t hash = mix64(static_cast<uint64_t>(size_bytes));
  for (; size_bytes >= 8; size_bytes -= 8, bytes += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, 8);
    hash = mix64(hash ^ word);
  }
  for (; size_bytes > 0; --size_bytes, ++bytes) hash = mix64(hash ^ *bytes);
  return hash;
}

}  // namespace prunerc::runtime

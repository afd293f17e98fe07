#include "ir/support/arena.h"

#include <algorithm>

namespace prunerc {
namespace {

// A scheduled candidate needs a few KiB per primitive; blocks double up to this size.
constexpr std::size_t kFirstBlockBytes = 4096;
constexpr std::size_t kMaxBlockBytes = std::size_t{1} << 20;

}  // namespace

Arena::Arena(std::shared_ptr<const Arena> parent) : parent_(std::move(parent)) {}

Arena::~Arena() {
  // A trace of thousands of rewrites makes a long chain: release it in a loop, not by recursion.
  std::shared_ptr<const Arena> next = std::move(parent_);
  while (next != nullptr && next.use_count() == 1) {
    std::shared_ptr<const Arena> after = std::move(const_cast<Arena&>(*next).parent_);
    next = std::move(after);
  }
}

std::size_t Arena::chain_length() const {
  std::size_t n = 0;
  for (const Arena* a = this; a != nullptr; a = a->parent_.get()) ++n;
  return n;
}

void* Arena::allocate_slow(std::size_t num_bytes, std::size_t alignment) {
  const std::size_t grown = capacity_ == 0 ? kFirstBlockBytes : capacity_ * 2;
  const std::size_t size = std::max(std::min(grown, kMaxBlockBytes), num_bytes + alignment);
  blocks_.push_back(std::make_unique<char[]>(size));
  block_ = blocks_.back().get();
  capacity_ = size;
  total_ += size;
  // operator new[] aligns the block's start for every fundamental type.
  used_ = num_bytes;
  static_cast<void>(alignment);
  return block_;
}

}  // namespace prunerc

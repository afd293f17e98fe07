// KeySet: which of millions of candidates were seen, by 64-bit keys.
#ifndef PRUNERC_SEARCH_STRATEGY_KEY_SET_H_
#define PRUNERC_SEARCH_STRATEGY_KEY_SET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace prunerc::search {

/// Open addressing, at most half full. Two candidates of one key count as the same: among 10^7
/// that happens with a chance of 3e-6.
class KeySet {
 public:
  explicit KeySet(std::size_t expected = 0) { rehash(2 * expected + kLeast); }

  std::size_t size() const { return size_; }
  /// Loads the key's place ahead of insert.
  void prefetch(uint64_t key) const { __builtin_prefetch(&slots_[key & mask_], 1); }
  /// False if it was there.
  bool insert(uint64_t key) {
    if (2 * (size_ + 1) > slots_.size()) rehash(2 * slots_.size());
    return place(key == kFree ? 1 : key);
  }

 private:
  static constexpr uint64_t kFree = 0;
  static constexpr std::size_t kLeast = 1024;

  bool place(uint64_t key) {
    for (std::size_t at = key & mask_;; at = (at + 1) & mask_) {
      if (slots_[at] == key) return false;
      if (slots_[at] != kFree) continue;
      slots_[at] = key;
      ++size_;
      return true;
    }
  }
  void rehash(std::size_t wanted) {
    std::size_t capacity = kLeast;
    while (capacity < wanted) capacity *= 2;
    std::vector<uint64_t> old(capacity, kFree);
    old.swap(slots_);
    mask_ = capacity - 1;
    size_ = 0;
    for (const uint64_t key : old) {
      if (key != kFree) place(key);
    }
  }

  std::vector<uint64_t> slots_;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_STRATEGY_KEY_SET_H_

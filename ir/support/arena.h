// A bump arena. Nodes of one Program live in it and die together; it keeps its parents alive.
#ifndef PRUNERC_IR_SUPPORT_ARENA_H_
#define PRUNERC_IR_SUPPORT_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace prunerc {

/// Written by one thread, then frozen by sharing it as const. Objects must be trivially
/// destructible.
class Arena {
 public:
  /// Nodes here may point into `parent`, which is kept alive.
  explicit Arena(std::shared_ptr<const Arena> parent = nullptr);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* allocate(std::size_t num_bytes, std::size_t alignment) {
    const std::size_t start = (used_ + alignment - 1) & ~(alignment - 1);
    if (start + num_bytes > capacity_) return allocate_slow(num_bytes, alignment);
    used_ = start + num_bytes;
    return block_ + start;
  }

  template <typename T, typename... Args>
  T* make(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (allocate(sizeof(T), alignof(T))) T{std::forward<Args>(args)...};
  }

  template <typename T>
  std::span<const T> copy(std::span<const T> items) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (items.empty()) return {};
    void* memory = allocate(items.size_bytes(), alignof(T));
    std::memcpy(memory, static_cast<const void*>(items.data()), items.size_bytes());
    return {static_cast<const T*>(memory), items.size()};
  }

  std::string_view copy(std::string_view text) {
    if (text.empty()) return {};
    char* memory = static_cast<char*>(allocate(text.size(), 1));
    std::memcpy(memory, text.data(), text.size());
    return {memory, text.size()};
  }

  std::size_t num_bytes() const { return total_; }
  /// Number of arenas kept alive, this one included.
  std::size_t chain_length() const;

 private:
  void* allocate_slow(std::size_t num_bytes, std::size_t alignment);

  char* block_ = nullptr;
  std::size_t used_ = 0;
  std::size_t capacity_ = 0;
  std::size_t total_ = 0;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::shared_ptr<const Arena> parent_;
};

}  // namespace prunerc

#endif  // PRUNERC_IR_SUPPORT_ARENA_H_

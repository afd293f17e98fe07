// When the intermediate buffers of a lowered program hold values, and where they can share memory.
#ifndef PRUNERC_CODEGEN_LIFETIMES_H_
#define PRUNERC_CODEGEN_LIFETIMES_H_

#include "ir/program.h"

#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace prunerc::codegen {

/// Positions of the first and last statement that touch a buffer, loops below its Alloc counted as
/// a whole. What bulk copies fill lives as long as its Alloc: they run ahead of the statements.
struct Lifetime {
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = -1;
  bool in_parallel = false;
  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

/// Of every buffer with an Alloc.
class Lifetimes {
 public:
  explicit Lifetimes(const ir::Program& program) { visit_stmt(program.root()); }
  /// By first Alloc.
  const std::vector<ir::BufferId>& order() const { return order_; }
  const Lifetime& of(ir::BufferId id) const { return lifetimes_.at(id); }

 private:
  struct OpenLoop {
    int64_t begin;
    std::vector<ir::BufferId> used;  // buffers from outside that live until its end
  };
  void visit_stmt(ir::Stmt s);
  void visit_alloc(const ir::Alloc& alloc);
  void visit_loop(const ir::Loop& loop);
  void use(ir::BufferId id);

  int64_t position_ = 0;
  int num_parallel_ = 0;
  int num_bulk_ = 0;                         // bulk copies around
  std::unordered_set<ir::BufferId> filled_;  // by bulk copies
  std::vector<OpenLoop> loops_;
  std::unordered_map<ir::BufferId, Lifetime> lifetimes_;
  std::unordered_map<ir::BufferId, std::size_t> depth_;  // loops around the Alloc
  std::vector<ir::BufferId> order_;                      // of first Allocs
};

/// Bytes that a buffer takes.
struct Extent {
  ir::BufferId buffer;
  int64_t offset = 0;
  int64_t size_bytes = 0;
};

/// The lowest multiple of `alignment` at which `size_bytes` for the buffer overlap none of `placed`
/// that lives at the same time.
int64_t first_fit(const Lifetimes& lifetimes, std::span<const Extent> placed, ir::BufferId buffer,
                  int64_t size_bytes, int64_t alignment);

/// The next multiple.
constexpr int64_t align_up(int64_t n, int64_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_LIFETIMES_H_

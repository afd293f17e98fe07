#include "runtime/cuda_host/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

// clang-format off: assembly, one instruction per line
asm(R"(
.text
.globl prunerc_switch_stack
.type prunerc_switch_stack, @function
prunerc_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size prunerc_switch_stack, . - prunerc_switch_stack
)");
// clang-format on

namespace prunerc::runtime::cuda_host {
namespace {

constexpr size_t kGuardBytes = 4096;
constexpr int kNumSavedRegisters = 6;
/// Tops of stacks would otherwise all fall into the same sets of the caches.
constexpr size_t kNumColours = 16;
constexpr size_t kColourBytes = 832;

/// Pools that nobody uses; as many as a machine has use for.
constexpr size_t kMaxSpares = 64;
struct Spares {
  std::mutex mutex;
  std::vector<std::unique_ptr<StackPool>> pools;
};
Spares& spares() {
  static Spares* const only = new Spares;
  return *only;
}

}  // namespace

StackPool::StackPool(int num_stacks) : size_(num_stacks) {
  const size_t bytes = static_cast<size_t>(num_stacks) * kPrHostStackBytes;
  mapping_bytes_ = bytes + kPrHostStackBytes;
  void* const at = mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return;
  mapping_ = at;
  const uintptr_t first = (reinterpret_cast<uintptr_t>(at) + kPrHostStackBytes - 1) &
                          ~static_cast<uintptr_t>(kPrHostStackBytes - 1);
  stacks_ = reinterpret_cast<char*>(first);
  for (int i = 0; i < num_stacks; ++i) mprotect(bottom(i), kGuardBytes, PROT_NONE);
}

StackPool::~StackPool() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

std::unique_ptr<StackPool> take_stacks(int num_stacks) {
  {
    const std::lock_guard lock(spares().mutex);
    for (std::unique_ptr<StackPool>& pool : spares().pools) {
      if (pool->size() < num_stacks) continue;
      std::swap(pool, spares().pools.back());
      std::unique_ptr<StackPool> found = std::move(spares().pools.back());
      spares().pools.pop_back();
      return found;
    }
  }
  return std::make_unique<StackPool>(num_stacks);
}

void give_back(std::unique_ptr<StackPool> stacks) {
  const std::lock_guard lock(spares().mutex);
  if (stacks->ok() && spares().pools.size() < kMaxSpares)
    spares().pools.push_back(std::move(stacks));
}

void* StackPool::prepare(int idx, void (*entry)()) const {
  const size_t colour = static_cast<size_t>(idx) % kNumColours * kColourBytes;
  char* const top = reinterpret_cast<char*>(view(idx)) - colour;
  auto* sp = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{63});
  *--sp = nullptr;  // where entry would return to; also what the ABI wants below 16-byte alignment
  *--sp = reinterpret_cast<void*>(entry);
  for (int i = 0; i < kNumSavedRegisters; ++i) *--sp = nullptr;
  return sp;
}

}  // namespace prunerc::runtime::cuda_host

#include "runtime/cpu/tiles.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace prunerc::runtime {

bool allow_tiles() {
  // Of the kernel's interface, since Linux 5.16; older ones keep no tile registers.
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  static std::atomic<bool> is_allowed{false};
  if (is_allowed.load(std::memory_order_relaxed)) return true;
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0) return false;
  is_allowed.store(true, std::memory_order_relaxed);
  return true;
}

}  // namespace prunerc::runtime

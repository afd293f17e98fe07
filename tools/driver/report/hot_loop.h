// The loop of a kernel's assembly that does its work, and what it is made of.
#ifndef PRUNERC_TOOLS_DRIVER_REPORT_HOT_LOOP_H_
#define PRUNERC_TOOLS_DRIVER_REPORT_HOT_LOOP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc {

/// What an x86 instruction is for, by its mnemonic.
enum class InstructionKind : uint8_t {
  kMultiplyAdd,  ///< fused multiply-adds and dot products
  kVector,       ///< other arithmetic on vector registers, scalars in them included
  kMove,         ///< loads, stores and moves of vector registers
  kShuffle,      ///< broadcasts, permutations, conversions
  kPrefetch,
  kInteger,  ///< addresses, counters, comparisons
  kBranch,   ///< jumps, calls, returns
};
inline constexpr std::size_t kNumInstructionKinds = 7;
/// "multiply-add".
std::string_view to_string(InstructionKind kind);
/// Of a mnemonic in AT&T syntax, as in "vfmadd231ps".
InstructionKind instruction_kind(std::string_view mnemonic);

/// The innermost loop with the most multiply-adds; of equals the one with more vector arithmetic.
struct HotLoop {
  std::size_t first = 0, last = 0;  ///< lines, its label and its jump; 0, 0: there is no loop
  std::array<int64_t, kNumInstructionKinds> mix = {};  ///< instructions by kind
  int64_t num_instructions = 0;
  int64_t num_memory_operands = 0;
  bool found() const { return num_instructions > 0; }
};

/// Of assembly in AT&T syntax, line by line. Loops whose lines are not in one piece are left out.
HotLoop find_hot_loop(const std::vector<std::string_view>& lines);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_REPORT_HOT_LOOP_H_

// Machine code of a GPU as nvdisasm prints it: instructions, loops, what the main loop is made of.
#ifndef PRUNERC_TESTS_BENCH_GPU_HOST_SASS_H_
#define PRUNERC_TESTS_BENCH_GPU_HOST_SASS_H_

#include "ir/support/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::bench {

struct Instruction {
  std::string opcode;        ///< with its modifiers: "HGMMA.64x256x16.F32"
  std::string operands;      ///< "R24, gdesc[UR12].tnspB, R24, gsb0"
  int64_t branches_to = -1;  ///< the index of a BRA's target; -1 for all others

  /// "HGMMA".
  std::string_view name() const { return std::string_view(opcode).substr(0, opcode.find('.')); }
  /// One of the words between dots, behind the name.
  bool has(std::string_view modifier) const;
};

struct SassKernel {
  std::string name;
  std::vector<Instruction> code;
};

/// Kernels of nvdisasm's output (-c), in its order.
std::vector<SassKernel> parse_sass(std::string_view text);

/// Runs $PRUNERC_NVDISASM, else that of a toolkit or of `./dev setup --cuda`. Errors: NvrtcMissing
/// if there is none, IoError.
Result<std::vector<SassKernel>> disassemble(std::string_view cubin);

/// Multiply-adds: of tensor instructions, or else of CUDA cores.
bool is_math(const Instruction& instruction);

/// First and last index of the innermost loop with the most multiply-adds; the whole kernel if no
/// loop has one.
struct CodeRange {
  size_t begin = 0, end = 0;  ///< half open
};
CodeRange main_loop(const SassKernel& kernel);

/// How many in the range have this name and, if it is not empty, this modifier.
int64_t count(const SassKernel& kernel, CodeRange range, std::string_view name,
              std::string_view modifier = {});

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_GPU_HOST_SASS_H_

// Compiles a program and runs it in this process, with memory around the arguments guarded.
#ifndef PRUNERC_TESTS_CODEGEN_KERNEL_RUN_H_
#define PRUNERC_TESTS_CODEGEN_KERNEL_RUN_H_

#include "codegen/codegen.h"
#include "ir/interp/tensor.h"
#include "ir/program.h"
#include "ir/support/result.h"

#include <memory>
#include <string>
#include <vector>

namespace prunerc::testing {

struct RunOptions {
  ir::Target target;  // without a CPU name: the host
  codegen::CpuOptions compile;
  int num_workers = 3;
};

/// A loaded kernel; unloaded with the object.
class LoadedKernel {
 public:
  static Result<LoadedKernel> load(const codegen::Artifact& artifact);
  /// The outputs, in declared order. Const inputs are prepared first, and the kernel gets null
  /// pointers instead of them. Every argument ends (up to alignment) at memory that faults,
  /// and starts after such memory; tasks of parallel loops run in reverse order, one after the
  /// other.
  std::vector<ir::Tensor> run(const std::vector<ir::Tensor>& inputs, int num_workers) const;

 private:
  codegen::Artifact artifact_;
  std::shared_ptr<void> library_;
  void* entry_ = nullptr;
  void* prepare_entry_ = nullptr;  // null without const inputs
};

/// Both in one.
Result<std::vector<ir::Tensor>> compile_and_run(const ir::Program& program,
                                                const std::vector<ir::Tensor>& inputs,
                                                const RunOptions& options = {});

/// "" if the compiled program gives the interpreter's bits on small whole numbers, else what
/// differs. `reference` is interpreted, `scheduled` is compiled.
std::string compare_with_interpreter(const ir::Program& reference, const ir::Program& scheduled,
                                     uint64_t seed, const RunOptions& options = {});

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_CODEGEN_KERNEL_RUN_H_

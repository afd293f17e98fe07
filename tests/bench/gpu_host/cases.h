// What the benchmark gpu_host is made of: programs for a GPU, what is found when they run on the
// host, and bugs planted in them.
#ifndef PRUNERC_TESTS_BENCH_GPU_HOST_CASES_H_
#define PRUNERC_TESTS_BENCH_GPU_HOST_CASES_H_

#include "codegen/artifact.h"
#include "codegen/cuda/host_object.h"
#include "ir/program.h"
#include "ir/target.h"
#include "tests/bench/report.h"
#include "tests/support/gpu_check.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace prunerc::bench {

struct GpuHostOptions {
  int programs = 400;
  int bugs = 30;
  uint64_t seed = 1;
  /// Of the programs; empty: what each needs, sm_80 or sm_90a.
  std::string arch;
  /// On this machine's GPU, not on the host.
  bool on_gpu = false;
  /// A folder for the text of every program; empty: none.
  std::string keep;
};

/// "cuda-host:" + arch.
ir::Target host_target(const std::string& arch);

/// A scheduled operator.
struct HostCase {
  std::string name;
  std::string op;      // its operator, shapes left out
  std::string family;  // gemm, conv, ..: the class that times are given for
  std::string arch;
  std::shared_ptr<const ir::Program> base;
  ir::Program scheduled;
};

/// Hand-written schedules (tests/golden/gpu), products with swizzled tiles (tests/property/swizzled_products.h), then
/// members of the GPU search space of operators at small and odd and at larger shapes, drawn at random; no two the same.
std::vector<HostCase> host_cases(const GpuHostOptions& options);

/// "" if the kernels do what they should on all of these inputs, else what was found.
std::string check_on_host(const codegen::Artifact& source,
                          std::span<const testing::Expected* const> expected,
                          codegen::HostChecker checker);

/// Runs and compiles all cases.
std::vector<Row> program_rows(const GpuHostOptions& options);
/// What their machine code is like, and that of what -O1 chooses for named operators.
std::vector<Row> cubin_rows(const GpuHostOptions& options);
/// Plants bugs in lowered programs and says who notices.
std::vector<Row> bug_rows(const GpuHostOptions& options);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_GPU_HOST_CASES_H_

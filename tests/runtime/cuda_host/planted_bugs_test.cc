// Kernels in worker processes: plain, under the race checker, under the bounds checker; and what
// each of them says of kernels with a planted bug.
#include "codegen/cuda/host_object.h"
#include "runtime/cuda_host/device.h"
#include "tests/runtime/cuda_host/kernels.h"
#include "tests/support/cuda_host_device.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace prunerc::runtime::cuda_host {
namespace {

using codegen::HostChecker;
using testing::GemmCase;
using testing::replace_nth;

constexpr double kTolerance = 1e-6;

/// "" if the kernel does what it should, else what was found.
std::string find_bug(const GemmCase& gemm, HostChecker checker) {
  const std::vector<std::string_view> inputs(gemm.inputs.begin(), gemm.inputs.end());
  const JobOutcome outcome = testing::check_source_on_host(gemm.artifact, inputs, checker);
  if (outcome.measurement.status != MeasureStatus::kOk)
    return std::string(to_string(outcome.measurement.status)) + ": " + outcome.measurement.detail;
  const double error = testing::error_of(gemm, outcome.outputs.front());
  return error < kTolerance ? "" : fmt::format("wrong values: {}", error);
}

constexpr HostChecker kAllCheckers[] = {HostChecker::kNone, HostChecker::kRace,
                                        HostChecker::kBounds};

// At least 2 * stages + 1 iterations, two tiles a block and ragged edges: less hides bugs.
GemmCase small_sgemm() { return testing::sgemm_tiled({.m = 70, .n = 100, .k = 100}); }
GemmCase small_mma() { return testing::hgemm_mma({.m = 100, .n = 64, .k = 256}); }
GemmCase small_sums() { return testing::row_sums({.m = 5, .n = 1, .k = 3001}); }
GemmCase small_tma() { return testing::hgemm_tma({.m = 200, .n = 136, .k = 584}, 2); }

TEST_CASE("kernels without bugs are clean in all orders and under both checkers") {
  for (const HostChecker checker : kAllCheckers) {
    CHECK(find_bug(small_sgemm(), checker) == "");
    CHECK(find_bug(small_mma(), checker) == "");
    CHECK(find_bug(small_tma(), checker) == "");
    CHECK(find_bug(small_sums(), checker) == "");
  }
}

struct Edit {
  std::string from, to;
  int index = 0;
};

/// A planted bug, and which ways of running find it, with a part of what they say. Empty: it is not
/// expected to be found so.
struct Planted {
  std::string name;
  GemmCase (*make)();
  std::vector<Edit> edits;
  std::string plain, race, bounds;
};

const std::vector<Planted>& planted_bugs() {
  static const std::vector<Planted> bugs = {
      {"no barrier before tiles are overwritten",
       small_sgemm,
       {{"pr_sync();  // tiles are free", ""}},
       "w",
       "data race: write at kernel.cu:",
       ""},
      {"no barrier before tiles are read",
       small_sgemm,
       {{"pr_sync();  // tiles are there", ""}},
       "w",
       "data race",
       ""},
      {"no barrier in a pipeline", small_mma, {{"    pr_sync();\n", "\n"}}, "w", "data race", ""},
      {"a wait for one group too few",
       small_mma,
       {{"pr_cp_async_wait<STAGES - 2>", "pr_cp_async_wait<STAGES - 1>"}},
       "w",
       "data race",
       ""},
      {"a stage is overwritten before the barrier that ends its use",
       small_mma,
       {{"    pr_cp_async_wait<STAGES - 2>();\n    pr_sync();\n", ""},
        {"    pr_cp_async_commit();\n    const",
         "    pr_cp_async_commit();\n    "
         "pr_cp_async_wait<STAGES - 1>();\n    pr_sync();\n    const"}},
       "w",
       "data race",
       ""},
      {"half of the threads go past a barrier",
       small_sgemm,
       {{"pr_sync();  // tiles are there", "if (pr_thread_x() < 128) pr_sync();"}},
       "w",
       "data race",
       ""},
      {"a named barrier that some threads never reach",
       small_sgemm,
       {{"pr_sync();  // tiles are there", "if (pr_thread_x() < 100) pr_bar_sync(1, 256);"}},
       "deadlock: 256 threads at a barrier",
       "data race",
       "deadlock"},
      {"no wait for an empty stage",
       small_tma,
       {{"          pr_mbar_wait(&empty[s], phase ^ 1);\n", ""}},
       "deadlock",
       "deadlock",
       ""},
      {"an mbarrier expects too few bytes",
       small_tma,
       {{"A_BYTES + B_BYTES);\n          pr_tma", "A_BYTES);\n          pr_tma"}},
       "r",
       "",
       ""},
      {"an mbarrier expects too many bytes",
       small_tma,
       {{"A_BYTES + B_BYTES);\n          pr_tma", "A_BYTES + B_BYTES + 16);\n          pr_tma"}},
       "deadlock",
       "deadlock",
       "deadlock"},
      {"a stage is released before wgmma has read it",
       small_tma,
       {{"        pr_wgmma_wait<0>();\n        if (t == 0) pr_mbar_arrive(&empty[s]);\n",
         "        if (t == 0) pr_mbar_arrive(&empty[s]);\n        pr_wgmma_wait<0>();\n"}},
       "w",
       "data race",
       ""},
      {"results are read before wgmma has written them",
       small_tma,
       {{"        pr_wgmma_wait<0>();\n", "        if (k + 1 < KT) pr_wgmma_wait<0>();\n"}},
       "w",
       "",
       ""},
      {"a tile is stored before all of it is there",
       small_tma,
       {{"      pr_fence_proxy_async();\n      pr_bar_sync(1 + half, 128);\n",
         "      pr_fence_proxy_async();\n"}},
       "w",
       "data race",
       ""},
      {"a tile is overwritten while TMA stores it",
       small_tma,
       {{"      if (t == 0) pr_tma_store_wait<0>();\n      pr_bar_sync(1 + half, 128);\n",
         "      pr_bar_sync(1 + half, 128);\n"}},
       "w",
       "data race",
       ""},
      {"a thread ends while TMA reads its tile",
       small_tma,
       {{"    if (t == 0) pr_tma_store_wait<0>();\n  }\n", "  }\n"}},
       "before its TMA stores have read",
       "before its TMA stores have read",
       "before its TMA stores have read"},
      {"an mbarrier is not initialised",
       small_tma,
       {{"      pr_mbar_init(&full[s], 1);\n", ""}},
       "used before mbarrier.init",
       "used before mbarrier.init",
       ""},
      {"no barrier behind the initialisation of mbarriers",
       small_tma,
       {{"  pr_sync();\n", ""}},
       "",
       "data race",
       ""},
      {"a collective in a part of a warp",
       small_mma,
       {{"pr_ldmatrix_x4(fa[i]", "if (lane != 7) pr_ldmatrix_x4(fa[i]"}},
       "warp divergence",
       "warp divergence",
       "warp divergence"},
      {"a row of ldmatrix is not aligned",
       small_mma,
       {{"pr_ldmatrix_x4(fa[i], at +", "pr_ldmatrix_x4(fa[i], at + 8 +"}},
       "not aligned",
       "",
       ""},
      {"the two sides of a swizzle disagree",
       small_mma,
       {{"at + chunk_of_a(wm", "at + chunk_of_b(wm"}},
       "w",
       "",
       ""},
      {"no barrier between the two steps of a reduction",
       small_sums,
       {{"pr_sync();  // partial sums are there", ""}},
       "w",
       "data race: write at kernel.cu:14, read at kernel.cu:17",
       ""},
      {"a reduction over half of the lanes",
       small_sums,
       {{"n = 16; n > 0", "n = 8; n > 0"}},
       "wrong values",
       "wrong values",
       "wrong values"},
      {"a shuffle that some lanes skip",
       small_sums,
       {{"    if (t == 0) c[row] = sum;",
         "    if (t < 20) sum += pr_shfl(sum, 3);\n    if (t == 0) c[row] = sum;"}},
       "a warp some of whose threads have ended",
       "a warp some of whose threads have ended",
       "a warp some of whose threads have ended"},
      {"a region that is one row short",
       small_sgemm,
       {{"e < BM * BK; e", "e < (BM - 1) * BK; e"}},
       "w",
       "",
       ""},
      {"an index of shared memory beyond its end",
       small_sgemm,
       {{"bs[e] = k < K", "bs[e + (e == BK * BN - 1)] = k < K"}},
       "",
       "",
       "heap-buffer-overflow: write at kernel.cu:22"},
      {"a load beyond a buffer",
       small_sgemm,
       {{"i < M && k < K ? a[i * K + k] : 0.0f", "k < K ? a[i * K + k] : 0.0f"}},
       "SIGSEGV",
       "",
       "heap-buffer-overflow: read at kernel.cu:18"},
      {"a store beyond a buffer",
       small_sgemm,
       {{"m0 + row + i < M && n0", "n0"}},
       "w",
       "",
       "write at kernel.cu:33"},
      {"a local array is indexed beyond its end",
       small_sgemm,
       {{"acc[i][j] = 0.0f", "acc[i][j + (i == 3 && K > 0)] = 0.0f"}},
       "",
       "",
       "index 4 out of bounds"},
  };
  return bugs;
}

TEST_CASE("planted bugs are found by every way of running that can") {
  for (const Planted& bug : planted_bugs()) {
    GemmCase gemm = bug.make();
    for (const Edit& edit : bug.edits)
      gemm.artifact.bytes = replace_nth(gemm.artifact.bytes, edit.from, edit.to, edit.index);
    const std::string expected[] = {bug.plain, bug.race, bug.bounds};
    for (size_t i = 0; i < 3; ++i) {
      if (expected[i].empty()) continue;
      const std::string found = find_bug(gemm, kAllCheckers[i]);
      INFO(bug.name << "; way of running " << i << " found: " << found);
      CHECK(found.find(expected[i]) != std::string::npos);
    }
  }
}

TEST_CASE("a launch with less shared memory than the kernel declares is a fault") {
  GemmCase gemm = small_mma();
  gemm.artifact.launches[0].shared_bytes -= 16;
  CHECK(find_bug(gemm, HostChecker::kNone).find("more shared memory") != std::string::npos);
}

TEST_CASE("a kernel that never ends is a timeout, and the next one runs") {
  HostDeviceOptions options = testing::host_device_options(HostChecker::kNone);
  options.run_limit_ns = 300'000'000;
  HostDevice device(options);
  GemmCase gemm = small_sgemm();
  gemm.artifact.bytes = replace_nth(gemm.artifact.bytes, "k0 += BK", "k0 += K < 0 ? BK : 0", 0);
  const Result<codegen::Artifact> endless = codegen::build_host_object(gemm.artifact, {});
  const Result<codegen::Artifact> good = codegen::build_host_object(small_sgemm().artifact, {});
  REQUIRE((endless.ok() && good.ok()));
  Job job;
  job.inputs.resize(2);
  job.artifact = &*endless;
  CHECK(device.run(job).measurement.status == MeasureStatus::kTimeout);
  job.artifact = &*good;
  CHECK(device.run(job).measurement.status == MeasureStatus::kOk);
}

TEST_CASE("jobs that the host cannot do are refused") {
  HostDevice device(testing::host_device_options(HostChecker::kNone));
  const GemmCase gemm = small_sgemm();
  Job job;
  job.inputs.resize(2);
  job.artifact = &gemm.artifact;  // text
  CHECK(device.run(job).measurement.status == MeasureStatus::kBuildError);
  Result<codegen::Artifact> object = codegen::build_host_object(gemm.artifact, {});
  REQUIRE(object.ok());
  job.artifact = &*object;
  job.timing = TimingOptions{};
  CHECK(device.run(job).measurement.status == MeasureStatus::kRunError);
  job.timing.reset();
  job.inputs.resize(1);
  CHECK(device.run(job).measurement.status == MeasureStatus::kDeviceLost);
  job.inputs.resize(2);
  object->bytes = object->bytes.substr(0, 100);
  CHECK(device.run(job).measurement.status == MeasureStatus::kBuildError);
  CHECK(device.compare(std::span(&job, 1), {})[0].status == MeasureStatus::kRunError);
}

TEST_CASE("the compiler's refusal and a missing compiler are different errors") {
  GemmCase gemm = small_sgemm();
  const auto missing = codegen::build_host_object(gemm.artifact, {.compiler = "/no/such/compiler"});
  REQUIRE(!missing.ok());
  CHECK(missing.error().id() == Diag::kHostCompiler);
  gemm.artifact.bytes += "\nint x = y;";
  const auto refused = codegen::build_host_object(gemm.artifact, {});
  REQUIRE(!refused.ok());
  CHECK(refused.error().id() == Diag::kHostRejected);
  CHECK(refused.error().message().find("kernel.cu:") != std::string::npos);
}

}  // namespace
}  // namespace prunerc::runtime::cuda_host

#include "tests/bench/schedule/dot_fraction.h"

#include "codegen/codegen.h"
#include "ir/dtype.h"
#include "ir/parser.h"
#include "ir/support/rng.h"
#include "runtime/cpu/orc.h"
#include "runtime/cpu/pool.h"
#include "schedule/schedule.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

namespace prunerc::bench {
namespace {

constexpr int64_t kSize = 1024;
constexpr int kRounds = 20;
constexpr double kOps = 2.0 * kSize * kSize * kSize;

// Twelve accumulators cover the latency on any CPU so far; two rows make the branch cheap.
#define PRUNERC_DOT_ROW(OP)                                                \
  OP " %%zmm14, %%zmm15, %%zmm0\n\t" OP " %%zmm14, %%zmm15, %%zmm1\n\t" OP \
     " %%zmm14, %%zmm15, %%zmm2\n\t" OP " %%zmm14, %%zmm15, %%zmm3\n\t" OP \
     " %%zmm14, %%zmm15, %%zmm4\n\t" OP " %%zmm14, %%zmm15, %%zmm5\n\t" OP \
     " %%zmm14, %%zmm15, %%zmm6\n\t" OP " %%zmm14, %%zmm15, %%zmm7\n\t" OP \
     " %%zmm14, %%zmm15, %%zmm8\n\t" OP " %%zmm14, %%zmm15, %%zmm9\n\t" OP \
     " %%zmm14, %%zmm15, %%zmm10\n\t" OP " %%zmm14, %%zmm15, %%zmm11\n\t"
#define PRUNERC_DOT_LOOP(OP)                                                                       \
  void OP##_loop(int64_t iterations) {                                                             \
    asm volatile("vzeroall\n\t1:\n\t" PRUNERC_DOT_ROW(#OP)                                         \
                     PRUNERC_DOT_ROW(#OP) "dec %0\n\tjnz 1b\n\tvzeroupper"                         \
                 : "+r"(iterations)::"cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", \
                   "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm14", "xmm15");                    \
  }
PRUNERC_DOT_LOOP(vpdpbusd)
PRUNERC_DOT_LOOP(vdpbf16ps)
#undef PRUNERC_DOT_LOOP
#undef PRUNERC_DOT_ROW
constexpr int64_t kDotsPerIteration = 24;

// Of this thread, which runs peak and kernel alike: what else the machine does counts as little as
// it can.
double cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Memory = std::unique_ptr<void, Free>;

Memory allocate(int64_t bytes) {
  const auto size = static_cast<std::size_t>((bytes + 4095) / 4096 * 4096);
  Memory out(std::aligned_alloc(4096, std::max<std::size_t>(size, 4096)));
  std::memset(out.get(), 0, size);
  return out;
}

struct Case {
  const char* name;
  const char* file;  // without suffix
  const char* feature;
  void (*peak)(int64_t);
  double ops_per_dot;  // of one instruction
  bool is_bytes;
};
constexpr Case kCases[] = {
    {"int8_vnni_fraction", "gemm_u8s8", "+avx512vnni", vpdpbusd_loop, 128, true},
    {"bf16_dot_fraction", "gemm_bf16", "+avx512bf16", vdpbf16ps_loop, 64, false},
};

// In the working folder, or in the runfiles of this binary.
Result<std::string> read_text(const std::string& name) {
  const std::string path = "tests/bench/schedule/dot/" + name;
  std::error_code ignored;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  for (const std::string& at : {path, self + ".runfiles/prunerc/" + path}) {
    std::ifstream file(at, std::ios::binary);
    if (!file.is_open()) continue;
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  }
  return error(Diag::kIoError, std::string("read"), path, std::string("no such file"));
}

Result<ir::Program> scheduled(const Case& c) {
  PRUNERC_TRY(const std::string text, read_text(std::string(c.file) + ".prc"));
  PRUNERC_TRY(const ir::Program program, ir::parse(text));
  PRUNERC_TRY(const std::string steps, read_text(std::string(c.file) + ".trace"));
  PRUNERC_TRY(const schedule::TraceScript script, schedule::parse_script(steps));
  PRUNERC_TRY(const schedule::Schedule s,
              schedule::replay(program, script.trace, {.verify = schedule::Verify::kEachStep}));
  return s.program();
}

void fill(const Case& c, void* a, void* b) {
  Rng rng(7, 1);
  for (int64_t i = 0; i < kSize * kSize; ++i) {
    if (c.is_bytes) {
      static_cast<uint8_t*>(a)[i] = static_cast<uint8_t>(rng.below(256));
      static_cast<int8_t*>(b)[i] = static_cast<int8_t>(rng.between(-128, 127));
    } else {
      static_cast<uint16_t*>(a)[i] =
          ir::bf16_bits(static_cast<double>(rng.between(-999, 999)) / 64);
      static_cast<uint16_t*>(b)[i] =
          ir::bf16_bits(static_cast<double>(rng.between(-999, 999)) / 64);
    }
  }
}

// Elements that differ from a plain product: at all for bytes, by more than a sum of that many
// products may for floats. One row at a time, so that the compiler makes vectors of it.
int64_t wrong_elements(const Case& c, const void* a, const void* b, const void* got) {
  int64_t wrong = 0;
  std::vector<double> sum(kSize), size(kSize), row(kSize);
  for (int64_t i = 0; i < kSize; ++i) {
    std::fill(sum.begin(), sum.end(), 0.0);
    std::fill(size.begin(), size.end(), 0.0);
    for (int64_t k = 0; k < kSize; ++k) {
      const int64_t at = i * kSize + k;
      const double x = c.is_bytes ? static_cast<const uint8_t*>(a)[at]
                                  : ir::bf16_value(static_cast<const uint16_t*>(a)[at]);
      for (std::size_t j = 0; j < row.size(); ++j) {
        const auto from = static_cast<std::size_t>(k * kSize) + j;
        row[j] = c.is_bytes ? static_cast<const int8_t*>(b)[from]
                            : ir::bf16_value(static_cast<const uint16_t*>(b)[from]);
      }
      for (std::size_t j = 0; j < row.size(); ++j) {
        sum[j] += x * row[j];
        size[j] += std::fabs(x * row[j]);
      }
    }
    // Twice the products: each is added with at most two roundings.
    const double bound = c.is_bytes ? 0 : 2 * kSize * 0x1p-24;
    for (std::size_t j = 0; j < row.size(); ++j) {
      const auto at = static_cast<std::size_t>(i * kSize) + j;
      const double value = c.is_bytes ? static_cast<double>(static_cast<const int32_t*>(got)[at])
                                      : static_cast<double>(static_cast<const float*>(got)[at]);
      wrong += std::fabs(value - sum[j]) <= bound * size[j] ? 0 : 1;
    }
  }
  return wrong;
}

Result<DotRow> measure(const Case& c) {
  PRUNERC_TRY(const ir::Program program, scheduled(c));
  PRUNERC_TRY(const codegen::Artifact artifact, codegen::compile_cpu(program, ir::Target{}));
  PRUNERC_TRY(const runtime::LoadedKernel kernel, runtime::load_kernel(artifact));
  const runtime::Pool pool({.num_threads = 1});
  std::vector<Memory> memory;
  std::vector<void*> args;
  for (const codegen::ArtifactParam& param : artifact.params) {
    memory.push_back(allocate(codegen::size_bytes(param)));
    args.push_back(memory.back().get());
  }
  const Memory workspace = allocate(codegen::total_workspace_bytes(artifact, 1));
  fill(c, args[0], args[1]);
  DotRow row;
  row.name = c.name;
  // Short samples of the peak, so that some of them fall between what else runs here.
  constexpr int64_t kIterations = 100'000;
  constexpr int kPeakSamples = 12, kRuns = 3;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kPeakSamples; ++i) {
      const double start = cpu_ns();
      c.peak(kIterations);
      const double ops = static_cast<double>(kIterations * kDotsPerIteration) * c.ops_per_dot;
      row.peak_gops = std::max(row.peak_gops, ops / (cpu_ns() - start));
    }
    for (int i = 0; i < kRuns; ++i) {
      const double start = cpu_ns();
      if (kernel.entry()(args.data(), workspace.get(), pool.launch()) != 0) {
        return error(Diag::kKernelRun, std::string(c.file), std::string("it failed"));
      }
      row.gops = std::max(row.gops, kOps / (cpu_ns() - start));
    }
  }
  row.fraction = row.gops / row.peak_gops;
  const int64_t wrong = wrong_elements(c, args[0], args[1], args[2]);
  if (wrong == 0) return row;
  return error(Diag::kKernelRun, std::string(c.file),
               std::to_string(wrong) + " elements are wrong");
}

}  // namespace

Result<std::vector<DotRow>> dot_fraction_rows() {
  const std::string features = codegen::host_target(ir::Target{}).llvm_features;
  std::vector<DotRow> rows;
  for (const Case& c : kCases) {
    if (features.find(c.feature) == std::string::npos) continue;
    PRUNERC_TRY(DotRow row, measure(c));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace prunerc::bench

#include "ir/builder.h"
#include "ir/parser.h"
#include "ir/support/check.h"
#include "schedule/schedule.h"
#include "tests/bench/schedule_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace prunerc::bench {
namespace {

using schedule::Schedule;
using schedule::Verify;

constexpr const char* kMatmul = R"(
program matmul(A: f32[1024, 1024], B: f32[1024, 1024]) -> (C: f32[1024, 1024]) {
  for i in 1024 @L0 { for j in 1024 @L1 { for k in 1024 @L2 {
    block "C" @B0 [vi: S(1024) = i, vj: S(1024) = j, vk: R(1024) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk]*B[vk, vj]
  } } } }
})";

// Blocks of 128 x 128 in 16 x 16 threads, operands through shared memory, the product in registers.
constexpr const char* kTrace = R"(
sample_perfect_tile(@L0, 5, 0) -> v0, v1, v2, v3, v4 = [8, 1, 16, 2, 4]
sample_perfect_tile(@L1, 5, 0) -> v5, v6, v7, v8, v9 = [8, 2, 16, 1, 4]
sample_perfect_tile(@L2, 3, 0) -> v10, v11, v12 = [128, 2, 4]
cache_write(@B0, 0, "local") -> @B1, @L3, @L4
split(@L0, [v0, v1, v2, v3, v4]) -> @L5, @L6, @L7, @L8, @L9
split(@L1, [v5, v6, v7, v8, v9]) -> @L10, @L11, @L12, @L13, @L14
split(@L2, [v10, v11, v12]) -> @L15, @L16, @L17
reorder([@L5, @L10, @L6, @L11, @L7, @L12, @L15, @L16, @L8, @L13, @L17, @L9, @L14])
fuse([@L5, @L10]) -> @L18
fuse([@L6, @L11]) -> @L19
fuse([@L7, @L12]) -> @L20
bind(@L18, "block.x")
bind(@L19, "vthread.x")
bind(@L20, "thread.x")
reverse_compute_at(@B1, @L20) -> @L21, @L22
cache_read(@B0, 0, "shared") -> @B2, @L23, @L24
compute_at(@B2, @L15) -> @L25, @L26
cache_read(@B0, 1, "shared") -> @B3, @L27, @L28
compute_at(@B3, @L15) -> @L29, @L30
fuse([@L25, @L26]) -> @L31
split(@L31, [-1, 256, 4]) -> @L32, @L33, @L34
vectorize(@L34)
bind(@L33, "thread.x")
fuse([@L29, @L30]) -> @L35
split(@L35, [-1, 256, 4]) -> @L36, @L37, @L38
vectorize(@L38)
bind(@L37, "thread.x")
storage_align(@B2, 0, 0, 32, 8)
decompose_reduction(@B0, @L15) -> @B4, @L39, @L40, @L41, @L42
annotate_loop(@L18, "unroll_max_step", 512)
annotate_loop(@L15, "unroll_explicit", 1)
)";

/// Long enough for a steady rate; the median of three rounds is reported.
constexpr double kRoundSeconds = 1;
constexpr int kRounds = 3;

double traces_per_second(const ir::Program& base, const schedule::Trace& trace, Verify verify) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> rates;
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point start = Clock::now();
    double seconds = 0;
    int64_t count = 0;
    while (seconds < kRoundSeconds) {
      schedule::ReplayOptions options;
      options.verify = verify;
      const Result<Schedule> s = schedule::replay(base, trace, options);
      PRUNERC_CHECK(s.ok(), s.ok() ? "" : s.error().message().c_str());
      ++count;
      seconds = std::chrono::duration<double>(Clock::now() - start).count();
    }
    rates.push_back(static_cast<double>(count) / seconds);
  }
  std::sort(rates.begin(), rates.end());
  return rates[kRounds / 2];
}

}  // namespace

std::vector<Row> replay_rows() {
  const Result<ir::Program> base = ir::parse(kMatmul);
  PRUNERC_CHECK(base.ok(), "the base parses");
  const Result<schedule::Trace> trace = schedule::parse_trace(kTrace);
  PRUNERC_CHECK(trace.ok(), trace.ok() ? "" : trace.error().message().c_str());
  const std::string steps = fmt::format("{} steps", trace->instructions.size());
  return {
      {"replay_gpu_matmul", traces_per_second(*base, *trace, Verify::kNever), "traces/s", 2000,
       steps},
      {"replay_gpu_matmul_verified", traces_per_second(*base, *trace, Verify::kEachStep),
       "traces/s", std::nullopt, "ir::verify after each step"},
  };
}

}  // namespace prunerc::bench

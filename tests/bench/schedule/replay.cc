#include "ir/builder.h"
#include "ir/parser.h"
#include "ir/support/check.h"
#include "schedule/schedule.h"
#include "tests/bench/schedule/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
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
// The threads of a block are loops beside each other, which meet where one ends.
constexpr const char* kTrace = R"(
sample_perfect_tile(@L0, 5, 0) -> v0, v1, v2, v3, v4 = [8, 1, 16, 2, 4]
sample_perfect_tile(@L1, 5, 0) -> v5, v6, v7, v8, v9 = [8, 2, 16, 1, 4]
sample_perfect_tile(@L2, 3, 0) -> v10, v11, v12 = [128, 2, 4]
cache_write(@B0, 0, "local") -> @B1, @L3, @L4
split(@L0, [v0, v1, v2, v3, v4]) -> @L5, @L6, @L7, @L8, @L9
split(@L1, [v5, v6, v7, v8, v9]) -> @L10, @L11, @L12, @L13, @L14
split(@L2, [v10, v11, v12]) -> @L15, @L16, @L17
reorder([@L5, @L10, @L15, @L6, @L11, @L7, @L12, @L16, @L8, @L13, @L17, @L9, @L14])
fuse([@L5, @L10]) -> @L18
fuse([@L6, @L11]) -> @L19
fuse([@L7, @L12]) -> @L20
reverse_compute_at(@B1, @L18) -> @L21, @L22
cache_read(@B0, 0, "shared") -> @B2, @L23, @L24
compute_at(@B2, @L15) -> @L25, @L26
cache_read(@B0, 1, "shared") -> @B3, @L27, @L28
compute_at(@B3, @L15) -> @L29, @L30
decompose_reduction(@B0, @L15) -> @B4, @L31, @L32, @L33, @L34, @L35, @L36
fuse([@L25, @L26]) -> @L37
split(@L37, [-1, 256, 4]) -> @L38, @L39, @L40
vectorize(@L40)
bind(@L39, "thread.x")
fuse([@L29, @L30]) -> @L41
split(@L41, [-1, 256, 4]) -> @L42, @L43, @L44
vectorize(@L44)
bind(@L43, "thread.x")
split(@L21, [v1, v2, -1]) -> @L45, @L46, @L47
split(@L22, [v6, v7, -1]) -> @L48, @L49, @L50
reorder([@L45, @L48, @L46, @L49, @L47, @L50])
fuse([@L45, @L48]) -> @L51
fuse([@L46, @L49]) -> @L52
bind(@L51, "vthread.x")
bind(@L52, "thread.x")
bind(@L31, "vthread.x")
bind(@L32, "thread.x")
bind(@L19, "vthread.x")
bind(@L20, "thread.x")
bind(@L18, "block.x")
storage_align(@B2, 0, 0, 32, 8)
annotate_loop(@L18, "unroll_max_step", 512)
)";

/// Long enough for a steady rate; the median of three rounds is reported.
constexpr double kRoundSeconds = 1;
constexpr int kRounds = 3;

// Of this thread: other work on the machine does not count.
double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double traces_per_second(const ir::Program& base, const schedule::Trace& trace, Verify verify) {
  schedule::ReplayOptions options;
  options.verify = verify;
  std::vector<double> rates;
  for (int round = 0; round < kRounds; ++round) {
    const double start = cpu_seconds();
    double seconds = 0;
    int64_t count = 0;
    while (seconds < kRoundSeconds) {
      const Result<Schedule> s = schedule::replay(base, trace, options);
      PRUNERC_CHECK(s.ok(), s.ok() ? "" : s.error().message().c_str());
      ++count;
      seconds = cpu_seconds() - start;
    }
    rates.push_back(static_cast<double>(count) / seconds);
  }
  std::sort(rates.begin(), rates.end());
  return rates[kRounds / 2];
}

}  // namespace

TracedProgram gpu_matmul() {
  Result<ir::Program> program = ir::parse(kMatmul);
  Result<schedule::Trace> trace = schedule::parse_trace(kTrace);
  PRUNERC_CHECK(program.ok() && trace.ok(), "the texts parse");
  return {*std::move(program), *std::move(trace)};
}

std::vector<Row> replay_rows() {
  const Result<ir::Program> base = ir::parse(kMatmul);
  PRUNERC_CHECK(base.ok(), "the base parses");
  const Result<schedule::Trace> trace = schedule::parse_trace(kTrace);
  PRUNERC_CHECK(trace.ok(), trace.ok() ? "" : trace.error().message().c_str());
  const std::string steps = fmt::format("{} steps", trace->instructions.size());
  return {
      {"replay_gpu_matmul", traces_per_second(*base, *trace, Verify::kNever), "traces/s/core", 2000,
       steps},
      {"replay_gpu_matmul_verified", traces_per_second(*base, *trace, Verify::kEachStep),
       "traces/s/core", std::nullopt, "ir::verify after each step"},
  };
}

}  // namespace prunerc::bench

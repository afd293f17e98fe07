#include "tools/driver/limits.h"

#include "ir/parser.h"
#include "tools/driver/platform.h"
#include "tools/driver/prunerc.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

namespace prunerc {
namespace {

using runtime::CacheState;

// 4 cores and 8 threads; each level half as fast as the one before, all threads together four times
// one.
ir::Target machine(int64_t threads) {
  ir::Target t = *ir::target_from_string(
      "cpu num_cores=4 l1d_bytes=1000 l2_bytes=8000 l3_bytes=100000 fma_gflops=6.4 "
      "fma_gflops_all=25.6 l1_bandwidth=8e9 l2_bandwidth=4e9 l2_bandwidth_all=16e9 "
      "l3_bandwidth=2e9 l3_bandwidth_all=8e9 memory_bandwidth=1e9 memory_bandwidth_all=4e9");
  t.num_threads = threads;
  return t;
}

search::Task task_of(const char* text, const ir::Target& target) {
  OperatorRequest request;
  request.text = text;
  return search::make_task("op", load_operator(request).value().program, target);
}

// 8000 bytes for 1000 operations: it waits for memory.
search::Task copying(int64_t threads) {
  return task_of("op negate<N=1000>(A: f32[N]) -> (B: f32[N]) { B[i] = -A[i]; }", machine(threads));
}

// 19,200 bytes for 128,000 operations.
search::Task computing(int64_t threads) {
  return task_of(
      "op dense<N=40>(A: f32[N,N], B: f32[N,N]) -> (C: f32[N,N]) {"
      "  C[i,j] = sum[k] A[i,k] * B[k,j];"
      "}",
      machine(threads));
}

TEST_CASE("data are held against the innermost level that has them") {
  const auto level = [](double bytes, int64_t threads) {
    return memory_level(bytes, machine(threads), CacheState::kWarm);
  };
  CHECK(level(1, 1) == LimitUnit::kL1);
  CHECK(level(1000, 1) == LimitUnit::kL1);
  CHECK(level(1001, 1) == LimitUnit::kL2);
  CHECK(level(8000, 1) == LimitUnit::kL2);
  CHECK(level(8001, 1) == LimitUnit::kL3);
  CHECK(level(100000, 1) == LimitUnit::kL3);
  CHECK(level(100001, 1) == LimitUnit::kMemory);
  // Each of the cores that the threads run on has a part; the last cache is one for all.
  CHECK(level(2001, 2) == LimitUnit::kL2);
  CHECK(level(4000, 8) == LimitUnit::kL1);
  CHECK(level(4001, 8) == LimitUnit::kL2);
  CHECK(level(32000, 8) == LimitUnit::kL2);
  CHECK(level(32001, 8) == LimitUnit::kL3);
  CHECK(level(100001, 8) == LimitUnit::kMemory);
}

TEST_CASE("flushed caches hold nothing, nor does a GPU's") {
  CHECK(memory_level(1, machine(1), CacheState::kFlushed) == LimitUnit::kMemory);
  const ir::Target gpu = *ir::target_from_string("cuda:a100");
  CHECK(memory_level(1, gpu, CacheState::kWarm) == LimitUnit::kMemory);
}

TEST_CASE("constants come from as far as those of the network reach") {
  ir::Target target = machine(1);
  // 4,440 bytes, of which 4,000 are constant.
  const char* text =
      "op dense<K=10, N=100>(A: f32[K], const W: f32[K,N]) -> (C: f32[N]) {"
      "  C[j] = sum[k] A[k] * W[k,j];"
      "}";
  CHECK(limit_of(task_of(text, target)).ns == Approx(4440 / 4.0));
  // As far as so many bytes reach: L3, memory.
  target.constants_bytes = 50000;
  CHECK(limit_of(task_of(text, target)).unit == LimitUnit::kL3);
  CHECK(limit_of(task_of(text, target)).ns == Approx(4000 / 2.0));
  target.constants_bytes = 200000;
  CHECK(limit_of(task_of(text, target)).unit == LimitUnit::kMemory);
  CHECK(limit_of(task_of(text, target)).ns == Approx(4000 / 1.0));
}

TEST_CASE("a limit is the slower of arithmetic and traffic") {
  const TaskLimit l2 = limit_of(copying(1));
  CHECK(l2.unit == LimitUnit::kL2);
  CHECK(l2.ns == Approx(8000 / 4.0));
  CHECK(limit_of(copying(1), CacheState::kFlushed).ns == Approx(8000 / 1.0));
  CHECK(limit_of(copying(8)).ns == Approx(8000 / 16.0));
  const search::Task dense = computing(1);
  CHECK(limit_of(dense).unit == LimitUnit::kArithmetic);
  CHECK(limit_of(dense).ns == Approx(dense.flops / 6.4));
  CHECK(limit_of(computing(8)).ns == Approx(dense.flops / 25.6));
  // Integer multiply-adds have no measured rate, so there is no share of it to print.
  const search::Task bytes = task_of(
      "op sum<N=40>(A: i8[N,N], B: i8[N,N]) -> (C: i32[N,N]) {"
      "  C[i,j] = sum[k] i32(A[i,k]) * i32(B[k,j]);"
      "}",
      machine(1));
  CHECK(limit_of(bytes).unit == LimitUnit::kNone);
  CHECK(to_string(share_of_limit(bytes, 1000, nullptr)) == "-");
  CHECK(bytes.work.is_integer());
  CHECK(bytes.work.integer_ops == 2.0 * 40 * 40 * 40);
  // Half as many lanes again: elements of two bytes.
  const search::Task halves = task_of(
      "op dense<N=40>(A: f16[N,N], B: f16[N,N]) -> (C: f32[N,N]) {"
      "  C[i,j] = sum[k] f32(A[i,k]) * f32(B[k,j]);"
      "}",
      machine(1));
  CHECK(limit_of(halves).ns == Approx(halves.flops / (2 * 6.4)));
}

TEST_CASE("a gather is held against what it reads, not against its whole table") {
  const search::Task gather = task_of(
      "op pick<N=10>(T: f32[1000,8], I: i32[N]) -> (Y: f32[N,8]) { Y[i,j] = T[I[i],j] or 0; }",
      machine(1));
  // 80 elements of the table, the index, the result.
  CHECK(gather.work.bytes == Approx(4 * (80 + 10 + 80)));
  CHECK(gather.bytes == Approx(4 * (8000 + 10 + 80)));
  CHECK(limit_of(gather).ns == Approx(gather.work.bytes / 8.0));
  CHECK(limit_of(gather).unit == LimitUnit::kL1);
}

TEST_CASE("a machine that was busy when it was measured makes no true time impossible") {
  search::Task task = computing(2);
  task.target.vector_bytes = 32;
  // 8 lanes, 2 vectors a cycle, 2 operations each.
  CHECK(impossible_ns(task) == Approx(task.flops / (2 * 8 * 2 * 2 * 6.5)));
  task.target.platform.fma_gflops = 1000;
  CHECK(impossible_ns(task) == Approx(task.flops / (2 * 2 * 1000)));
}

TEST_CASE("what matrix tiles of a CPU do is possible, and a limit where their rate is known") {
  const auto product = [](const char* types, const char* target) {
    const std::string text = std::string("op dense<N=64>(A: ") + types + "[N,N], B: " + types +
                             "[N,N]) -> (C: " + (types[0] == 'i' ? "i32" : "f32") +
                             "[N,N]) { C[i,j] = sum[k] " + (types[0] == 'i' ? "i32" : "f32") +
                             "(A[i,k]) * " + (types[0] == 'i' ? "i32" : "f32") + "(B[k,j]); }";
    return task_of(text.c_str(), *ir::target_from_string(target));
  };
  const char *with = "cpu:sapphirerapids num_threads=1",
             *without = "cpu:icelake-server num_threads=1";
  CHECK(impossible_ns(product("i8", with)) == Approx(impossible_ns(product("i8", without)) / 8));
  CHECK(impossible_ns(product("bf16", with)) ==
        Approx(impossible_ns(product("bf16", without)) / 8));
  CHECK(impossible_ns(product("f16", with)) == Approx(impossible_ns(product("f16", without))));
  CHECK(impossible_ns(product("f32", with)) == Approx(impossible_ns(product("f32", without))));
  // 32 times two operations of f32 a cycle, 16 times as many of bf16.
  const search::Task halves = product("bf16", with);
  CHECK(limit_of(halves).ns == Approx(halves.flops / (16 * halves.target.peak_gflops())));
  // Tiles are as wide where vectors are not.
  const search::Task half_vectors =
      product("i8", "cpu:sapphirerapids num_threads=1 vector_bytes=32");
  CHECK(impossible_ns(half_vectors) ==
        Approx(std::min(half_vectors.flops, half_vectors.work.rated_ops()) / (2 * 1024 * 6.5)));
  // Taken away by name, and with the registers.
  CHECK(impossible_ns(product("i8", "cpu:sapphirerapids num_threads=1 llvm_features=-amx-tile")) ==
        Approx(impossible_ns(product("i8", without))));
  CHECK(
      impossible_ns(product("bf16", "cpu:sapphirerapids num_threads=1 llvm_features=-amx-bf16")) ==
      Approx(impossible_ns(product("bf16", without))));
}

TEST_CASE("what waits for data beside matrix tiles is bound by them, else bytes have no limit") {
  const auto limit = [](const char* target) {
    return limit_of(
        task_of("op dense<N=64>(A: i8[N,N], B: i8[N,N]) -> (C: i32[N,N]) {"
                "  C[i,j] = sum[k] i32(A[i,k]) * i32(B[k,j]);"
                "}",
                *ir::target_from_string(target)));
  };
  // 24,576 bytes come in 246 ns; tiles take 98 ns for the products, dot products of vectors 788 ns.
  const TaskLimit slow = limit("cpu:sapphirerapids num_threads=1 l1_bandwidth=1e11");
  CHECK(slow.unit == LimitUnit::kL1);
  CHECK(slow.ns == Approx(24576 / 100.0));
  CHECK(limit("cpu:sapphirerapids num_threads=1 l1_bandwidth=1e12").unit == LimitUnit::kNone);
  CHECK(limit("cpu:icelake-server num_threads=1 l1_bandwidth=1e11").unit == LimitUnit::kNone);
}

TEST_CASE("narrow elements count wherever the program has them") {
  const ir::Target with = *ir::target_from_string("cpu:sapphirerapids num_threads=1");
  // Weights of bytes beside bf16: the products are those of bf16.
  const search::Task mixed = task_of(
      "op dense<N=64>(A: bf16[N,N], B: i8[N,N]) -> (C: f32[N,N]) {"
      "  C[i,j] = sum[k] f32(A[i,k]) * f32(B[k,j]);"
      "}",
      with);
  REQUIRE_FALSE(mixed.work.is_integer());
  CHECK(limit_of(mixed).ns == Approx(mixed.work.rated_ops() / (2 * 512 * 2.6)));
  // Made of f32 on the way: parameters alone do not show them.
  const char* const text =
      "program p(A: f32[64, 64], B: f32[64, 64]) -> (C: f32[64, 64]) {"
      "  buffer H: bf16[64, 64] global"
      "  for i in 64 { for k in 64 { block \"H\" [vi: S(64) = i, vk: S(64) = k] {"
      "    H[vi, vk] = bf16(A[vi, vk]) } } }"
      "  for i2 in 64 { for j2 in 64 { for k2 in 64 {"
      "    block \"C\" [wi: S(64) = i2, wj: S(64) = j2, wk: R(64) = k2] {"
      "      init { C[wi, wj] = 0f32 }"
      "      C[wi, wj] = C[wi, wj] + f32(H[wi, wk])*B[wk, wj] } } } } }";
  const search::Task made = search::make_task("p", ir::parse(text).value(), with);
  CHECK(impossible_ns(made) ==
        Approx(std::min(made.flops, made.work.rated_ops()) / (2 * 512 * 6.5)));
  // On a GPU likewise.
  const search::Task on_gpu =
      search::make_task("p", ir::parse(text).value(), *ir::target_from_string("cuda:h100"));
  CHECK(impossible_ns(on_gpu) ==
        Approx(std::min(on_gpu.flops, on_gpu.work.rated_ops()) / (2 * 2.0 * 132 * 2048 * 1.98)));
}

TEST_CASE("what tensor instructions of a GPU do is possible") {
  const search::Task task = task_of(
      "op dense<N=4096>(A: f16[N,N], B: f16[N,N]) -> (C: f16[N,N]) {"
      "  C[i,j] = f16(sum:f32[k] A[i,k] * B[k,j]);"
      "}",
      *ir::target_from_string("cuda:h100"));
  // 1,060 TFLOP/s at 1.98 GHz; twice as much is impossible.
  CHECK(impossible_ns(task) == Approx(task.flops / (2 * 2.0 * 132 * 2048 * 1.98)));
}

TEST_CASE("a level that nobody measured is bounded by the one before it") {
  search::Task task = copying(1);
  task.target.platform.l2_bandwidth = 0;
  CHECK(limit_of(task).unit == LimitUnit::kL1);
  task.target.platform = {};
  task.target.platform.fma_gflops = 6.4;
  CHECK(limit_of(task).unit == LimitUnit::kArithmetic);
}

TEST_CASE("a share below the limit asks for nothing") {
  const Remeasure never = []() -> ir::Platform {
    FAIL("measured again without a reason");
    return {};
  };
  const LimitShare share = share_of_limit(copying(1), 4000, never);
  CHECK(share.fraction == Approx(0.5));
  CHECK(to_string(share) == "50% (L2 bandwidth)");
  CHECK(to_string(share_of_limit(copying(1), 0, never)) == "-");
}

TEST_CASE("a kernel that beats the limit has it measured again, and the words say so") {
  int measured = 0;
  const search::Task task = copying(1);
  const Remeasure faster = [&] {
    ++measured;
    ir::Platform platform = task.target.platform;
    platform.l2_bandwidth = 8e9;
    return platform;
  };
  const LimitShare share = share_of_limit(task, 1600, faster);
  CHECK(measured == 1);
  CHECK(share.fraction == Approx(1000.0 / 1600));
  CHECK(to_string(share) == "62% (L2 bandwidth, limit remeasured)");
}

TEST_CASE("a kernel that beats the new limit too is the limit: never more than 100%") {
  const search::Task task = copying(1);
  const Remeasure same = [&] { return task.target.platform; };
  for (const double ns : {1999.0, 1000.0, 1.0}) {
    const LimitShare share = share_of_limit(task, ns, same);
    CHECK(share.fraction == 1);
    CHECK(share.limit.ns == ns);
    CHECK(to_string(share) == "100% (L2 bandwidth, limit remeasured)");
    // Of a machine that is elsewhere.
    CHECK(to_string(share_of_limit(task, ns, nullptr)) ==
          "100% (L2 bandwidth, limit raised to what ran)");
  }
}

TEST_CASE("only limits of this machine are measured again") {
  CHECK(remeasure_here(*ir::target_from_string("cpu")) != nullptr);
  CHECK(remeasure_here(*ir::target_from_string("cuda-host:sm_80")) == nullptr);
}

TEST_CASE("kept limits read back with their spreads, and without where there are none") {
  HostLimits limits;
  limits.best = machine(1).platform;
  limits.spread.fma_gflops = 0.03;
  limits.spread.memory_bandwidth_all = 0.25;
  const std::string text = to_string(limits);
  CHECK(host_limits_from_string(text) == limits);
  // As they were kept before: one line.
  const std::optional<HostLimits> old = host_limits_from_string(text.substr(0, text.find('\n')));
  REQUIRE(old);
  CHECK(old->best == limits.best);
  CHECK(old->spread == ir::Platform{});
  CHECK(!host_limits_from_string(""));
  CHECK(!host_limits_from_string("nonsense"));
  CHECK(!host_limits_from_string("cpu"));
}

TEST_CASE("kept limits hold while the clock is the same and nothing beats them") {
  ir::Platform kept;
  kept.clock_ghz = 4;
  kept.fma_gflops = 100;
  kept.fma_gflops_all = 200;
  const auto judged = [&](double clock, double one, double all) {
    ir::Platform now;
    now.clock_ghz = clock;
    now.fma_gflops = one;
    now.fma_gflops_all = all;
    return judge_kept(kept, now);
  };
  CHECK(judged(4, 100, 200) == KeptLimits::kCurrent);
  // Less is what other work leaves.
  CHECK(judged(4, 60, 90) == KeptLimits::kCurrent);
  CHECK(judged(4, 104, 209) == KeptLimits::kCurrent);
  CHECK(judged(4, 106, 200) == KeptLimits::kExceeded);
  CHECK(judged(4, 100, 211) == KeptLimits::kExceeded);
  CHECK(judged(3.7, 100, 200) == KeptLimits::kCurrent);
  CHECK(judged(3.6, 100, 200) == KeptLimits::kOtherClock);
  CHECK(judged(4.5, 100, 200) == KeptLimits::kOtherClock);
}

TEST_CASE("the larger limit stays, with its own spread") {
  HostLimits a;
  a.best.fma_gflops = 100;
  a.spread.fma_gflops = 0.1;
  a.best.l2_bandwidth = 7;
  a.spread.l2_bandwidth = 0.2;
  HostLimits b = a;
  b.best.fma_gflops = 110;
  b.spread.fma_gflops = 0.02;
  b.best.l2_bandwidth = 6;
  b.spread.l2_bandwidth = 0.5;
  const HostLimits most = larger_of(a, b);
  CHECK(most.best.fma_gflops == 110);
  CHECK(most.spread.fma_gflops == 0.02);
  CHECK(most.best.l2_bandwidth == 7);
  CHECK(most.spread.l2_bandwidth == 0.2);
}

}  // namespace
}  // namespace prunerc

// Hopper's path from schedules: wgmma, TMA, ring buffers with mbarriers, producer and consumer.
#include "codegen/codegen.h"
#include "codegen/cuda/nvrtc.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "tests/codegen/gpu_run.h"
#include "tests/support/check.h"
#include "tests/support/cuda_host_device.h"
#include "tests/support/gpu_check.h"
#include "tests/support/gpu_programs.h"

#include <catch2/catch.hpp>

#include <regex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::testing {
namespace {

using codegen::HostChecker;

const ir::Target& hopper() {
  static const ir::Target target = gpu_target("cuda-host:sm_90a");
  return target;
}

std::vector<GpuProgram> hopper_programs() {
  std::vector<GpuProgram> out = gpu_programs();
  std::erase_if(out, [](const GpuProgram& p) { return p.arch != "sm_90a"; });
  return out;
}

codegen::Artifact source_of(std::string_view name) {
  for (const GpuProgram& p : hopper_programs()) {
    if (p.name != name) continue;
    const Result<codegen::Artifact> artifact = codegen::print_cuda_artifact(p.scheduled, hopper());
    REQUIRE_OK(artifact);
    return *artifact;
  }
  FAIL("no such program");
  return {};
}

TEST_CASE("threads that write factors of wgmma pass a fence before each barrier") {
  const std::string text = source_of("matmul_wgmma").bytes;
  CHECK(num_times(text, "pr_wgmma<64, pr_f16, 0, 1>(") == 1);
  CHECK(num_times(text, "pr_wgmma_fence();") == 1);
  CHECK(num_times(text, "pr_wgmma_commit();") == 1);
  CHECK(num_times(text, "pr_wgmma_wait<0>();") == 1);
  CHECK(num_times(text, "pr_sync();") == 2);
  // One more for what leaves through shared memory.
  CHECK(num_times(text, "pr_fence_proxy_async();\n") == 3);
}

TEST_CASE("where thread.x is one warp the lanes of a warpgroup are rows of it") {
  const std::string text = source_of("matmul_wgmma_rows").bytes;
  CHECK(num_times(text, "PR_KERNEL(256, 1)") == 1);
  CHECK(num_times(text, "const int tz = pr_thread_z();") == 1);
  CHECK(num_times(text, "pr_wgmma<64, pr_f16, 0, 1>(") == 1);
  CHECK(num_times(text, "pr_fence_proxy_async();\n") == 2);
  // Lanes store their sums themselves.
  CHECK(num_times(text, "pr_tma_store_2d(") == 0);
}

TEST_CASE("a ring buffer is filled by a producer and emptied by a consumer") {
  const codegen::Artifact source = source_of("matmul_wgmma_tma");
  const std::string& text = source.bytes;
  CHECK(num_times(text, "PR_KERNEL(384, 1)") == 1);
  CHECK(source.launches[0].block == std::array<int64_t, 3>{128, 3, 1});
  CHECK(num_times(text, "pr_reg_dec<40>();") == 1);
  CHECK(num_times(text, "pr_reg_inc<232>();") == 1);
  CHECK(num_times(text, "pr_tma_load_2d(") == 2);
  // 128 x 64 and 64 x 32 elements of two bytes.
  CHECK(num_times(text, "20480);") == 1);
  CHECK(num_times(text, "pr_mbar_init(empty0 + i, 2);") == 1);
  CHECK(num_times(text, "pr_mbar_wait(") == 2);
  // None but the one behind the initialisation of the mbarriers.
  CHECK(num_times(text, "pr_sync();") == 1);
  CHECK(num_times(text, "pr_bar_sync(") == 0);
  CHECK(num_times(text, "pr_fence_proxy_async();") == 1);
  REQUIRE(source.launches[0].tensor_maps.size() == 3);
  const codegen::TensorMap& a = source.launches[0].tensor_maps[0];
  CHECK(a.box_rows == 128);
  CHECK(a.box_cols == 64);
  CHECK(a.swizzle_bytes == 128);
  const codegen::TensorMap& b = source.launches[0].tensor_maps[1];
  CHECK(b.box_rows == 64);
  CHECK(b.box_cols == 32);
  CHECK(b.swizzle_bytes == 64);
}

// What threads fetch for later iterations is started behind the products of this one, before the wait for them.
void check_fetches_meanwhile(const std::string& text, std::string_view fetch) {
  INFO(text);
  const std::size_t begin = text.find("pr_wgmma_commit();");
  REQUIRE(begin != text.npos);
  const std::size_t wait = text.find("pr_wgmma_wait<0>();", begin);
  CHECK(text.find(fetch, begin) < wait);
  CHECK(text.find("pr_cp_async_commit();", begin) < wait);
  CHECK(text.rfind(fetch, begin) < begin);  // of the first tiles
  CHECK(num_times(text, "pr_wgmma_wait<0>();") == 1);
}

TEST_CASE("what threads fetch comes while products run, beside copies of the engine, too") {
  check_fetches_meanwhile(source_of("matmul_wgmma_cp_async").bytes, "pr_cp_async<16>(");
  const std::string text = source_of("matmul_wgmma_tma_threads").bytes;
  check_fetches_meanwhile(text, "pr_cp_async_zfill<8>(");
  CHECK(num_times(text, "pr_tma_load_2d(") == 1);
  CHECK(num_times(text, "pr_cp_async_wait<1>();") == 1);
  CHECK(num_times(text, "pr_bar_sync(1, 128);") == 1);
  CHECK(num_times(text, "pr_copy") == 0);
  // In the loop over tiles, where addresses are known from the tile before.
  CHECK(num_times(text, "#pragma unroll 8\n") == 1);
}

TEST_CASE("what has arrived by cp.async passes a fence before threads meet and wgmma reads it") {
  for (const char* const name :
       {"matmul_wgmma_tma_threads", "matmul_wgmma_tma_threads_persistent"}) {
    const std::string text = source_of(name).bytes;
    INFO(text);
    CHECK(std::regex_search(
        text,
        std::regex(
            R"(pr_cp_async_wait<1>\(\);\s+pr_fence_proxy_async\(\);\s+pr_bar_sync\(1, 128\);)")));
  }
}

TEST_CASE("threads meet before they fetch the first tiles of what a block computes next") {
  const std::string text = source_of("matmul_wgmma_tma_threads_persistent").bytes;
  INFO(text);
  check_fetches_meanwhile(text, "pr_cp_async_zfill<8>(");
  CHECK(num_times(text, "pr_bar_sync(1, 128);") == 2);
  CHECK(num_times(text, "pr_tma_load_2d(") == 1);
}

TEST_CASE("one group of products is in flight while the next one is issued") {
  const std::string text = source_of("matmul_wgmma_persistent").bytes;
  CHECK(num_times(text, "pr_wgmma_wait<1>();") == 1);
  CHECK(num_times(text, "pr_wgmma_wait<0>();") == 1);
  CHECK(num_times(text, "pr_mbar_arrive(empty0 + (at1 + 1) % 2);") == 1);
}

TEST_CASE("sums leave through shared memory by panels of 128 bytes") {
  const codegen::Artifact f16 = source_of("matmul_wgmma_bias_relu");
  CHECK(num_times(f16.bytes, "pr_stmatrix_x4(") == 1);
  CHECK(num_times(f16.bytes, "pr_pack_f16(") == 1);
  CHECK(num_times(f16.bytes, "pr_to_f16(") == 0);
  CHECK(num_times(f16.bytes, "pr_tma_store_2d(") == 1);
  CHECK(num_times(f16.bytes, "pr_tma_store_commit();") == 1);
  CHECK(num_times(f16.bytes, "out0") == 1);
  const codegen::TensorMap& c = f16.launches[0].tensor_maps.back();
  CHECK(c.rows == 128);
  CHECK(c.cols == 64);
  CHECK(c.box_rows == 16);
  CHECK(c.box_cols == 64);
  CHECK(c.swizzle_bytes == 128);
  const codegen::Artifact f32 = source_of("matmul_wgmma_persistent");
  CHECK(num_times(f32.bytes, "pr_store<8>(to0") == 1);
  // Two panels of 32 columns, each with a slot.
  CHECK(num_times(f32.bytes, "pr_tma_store_wait<1>();") == 1);
  CHECK(num_times(f32.bytes, "pr_tma_store_wait<0>();") == 1);
  CHECK(f32.launches[0].tensor_maps.back().box_cols == 32);
}

TEST_CASE("TMA leaves out what conditions left out, and reads behind them keep theirs") {
  const codegen::Artifact plain = source_of("matmul_wgmma_tma_padded");
  CHECK(num_times(plain.bytes, "pr_tma_store_2d(") == 1);
  CHECK(num_times(plain.bytes, "< 100") == 0);
  CHECK(plain.launches[0].tensor_maps.back().rows == 100);
  CHECK(plain.launches[0].tensor_maps.back().cols == 72);
  const std::string bias = source_of("matmul_wgmma_tma_padded_bias_relu").bytes;
  CHECK(num_times(bias, "pr_tma_store_2d(") == 1);
  CHECK(num_times(bias, "< 100 && ") == 1);
}

TEST_CASE("no two threads race in programs for Hopper, and none leaves its memory") {
  for (const GpuProgram& p : hopper_programs()) {
    CAPTURE(p.name);
    const Result<Expected> expected = expected_outputs(p.base, 1);
    REQUIRE_OK(expected);
    const codegen::Artifact source = source_of(p.name);
    for (const HostChecker checker : {HostChecker::kRace, HostChecker::kBounds}) {
      const runtime::JobOutcome outcome =
          check_source_on_host(source, expected->input_bytes(), checker);
      INFO(outcome.measurement.detail << "\n" << source.bytes);
      REQUIRE(outcome.measurement.status == MeasureStatus::kOk);
      CHECK(difference(*expected, outcome.outputs) == "");
    }
  }
}

TEST_CASE("programs for Hopper compile without spills, and no wgmma waits for another") {
  if (const auto nvrtc = codegen::nvrtc_info(); !nvrtc.ok()) {
    WARN("skipped: " << nvrtc.error().message());
    return;
  }
  for (const GpuProgram& p : hopper_programs()) {
    CAPTURE(p.name);
    const codegen::Artifact source = source_of(p.name);
    const Result<codegen::Cubin> cubin = codegen::compile_cubin(source.bytes, "sm_90a", {});
    REQUIRE_OK(cubin);
    CHECK(!cubin->serializes_wgmma);
    CHECK(cubin->info.kernels.front().stack_bytes == 0);
  }
}

// A mistake in the waits of a ring buffer. What is replaced, by what, and how often it is there.
struct TextBug {
  const char* name;
  const char* from;
  const char* to;
};

// What notices them: the values, or a checker.
void check_noticed(std::string_view program, std::span<const TextBug> bugs) {
  const codegen::Artifact right = source_of(program);
  std::vector<GpuProgram> programs = hopper_programs();
  std::erase_if(programs, [&](const GpuProgram& p) { return p.name != program; });
  const Result<Expected> expected = expected_outputs(programs.front().base, 1);
  REQUIRE_OK(expected);
  for (const TextBug& bug : bugs) {
    CAPTURE(bug.name);
    codegen::Artifact wrong = right;
    wrong.bytes = replaced(right.bytes, bug.from, bug.to);
    bool noticed = false;
    for (const HostChecker checker : {HostChecker::kNone, HostChecker::kRace}) {
      const runtime::JobOutcome outcome =
          check_source_on_host(wrong, expected->input_bytes(), checker);
      noticed = noticed || outcome.measurement.status != MeasureStatus::kOk ||
                !difference(*expected, outcome.outputs).empty();
    }
    CHECK(noticed);
  }
}

TEST_CASE("mistakes in the waits of a ring buffer are noticed") {
  const TextBug bugs[] = {
      {"no wait for a free place", "pr_mbar_wait(empty0 + at0, phase0 >> at0 & 1);", ""},
      {"no wait for a full place", "pr_mbar_wait(full0 + at1, phase0 >> at1 & 1);", ""},
      {"a place is free one arrival early", "pr_mbar_init(empty0 + i, 2);",
       "pr_mbar_init(empty0 + i, 1);"},
      {"a place is released before it is read", "pr_wgmma_wait<1>();", "pr_wgmma_wait<2>();"},
      {"sums are read before they are there", "pr_wgmma_wait<0>();", ""},
      {"fewer bytes are expected", "20480);", "20464);"},
      {"one phase too many", "unsigned phase0 = 0;", "unsigned phase0 = ~0u;"},
  };
  check_noticed("matmul_wgmma_tma", bugs);
}

TEST_CASE("mistakes in the waits of fetches beside a ring buffer are noticed") {
  const TextBug bugs[] = {
      {"threads do not meet", "pr_bar_sync(1, 128);", ""},
      {"no wait for a full place", "pr_mbar_wait(full0 + at1, phase0 >> at1 & 1);", ""},
      {"a place is fetched to while products read it", "pr_wgmma_wait<0>();",
       "pr_wgmma_wait<1>();"},
  };
  check_noticed("matmul_wgmma_tma_threads", bugs);
  check_noticed("matmul_wgmma_tma_threads_persistent", std::span(bugs).subspan(1));
}

TEST_CASE("mistakes in what leaves through shared memory are noticed") {
  const TextBug bugs[] = {
      {"a slot is written before it is read", "pr_tma_store_wait<1>();", ""},
      {"one store too many is in flight", "pr_tma_store_wait<1>();", "pr_tma_store_wait<2>();"},
      {"a panel leaves before all lanes wrote it",
       "pr_fence_proxy_async();\n          pr_sync_warp();", "pr_fence_proxy_async();"},
      {"lanes write before the slot is known to be free",
       "pr_tma_store_wait<1>();\n          pr_sync_warp();", "pr_tma_store_wait<1>();"},
      {"the last stores are not waited for", "pr_tma_store_wait<0>();", ""},
      {"a store belongs to no group", "pr_tma_store_commit();", ""},
  };
  check_noticed("matmul_wgmma_persistent", bugs);
}

TEST_CASE("blocks of a cluster start parts of what all of them read") {
  const codegen::Artifact source = source_of("matmul_wgmma_cluster");
  const std::string& text = source.bytes;
  CHECK(num_times(text, "PR_CLUSTER_KERNEL(384, 1, 2)") == 1);
  CHECK(source.launches[0].cluster == 2);
  // A differs; of B each block starts one panel of two.
  CHECK(num_times(text, "pr_tma_load_2d(") == 1);
  CHECK(num_times(text, "if (pr_block_x() % 2 == 0) pr_tma_load_2d_multicast(") == 1);
  CHECK(num_times(text, "if (pr_block_x() % 2 == 1) pr_tma_load_2d_multicast(") == 1);
  CHECK(num_times(text, "pr_mbar_init(empty0 + i, 4);") == 1);
  CHECK(num_times(text, "pr_mbar_wait(empty0") == 1);
  CHECK(num_times(text, "pr_mbar_arrive_at(empty0") == 2);
  CHECK(num_times(text, "pr_cluster_sync();") == 2);
}

TEST_CASE("mistakes between the blocks of a cluster are noticed") {
  const TextBug bugs[] = {
      {"a place waits for its own block only", "pr_mbar_init(empty0 + i, 4);",
       "pr_mbar_init(empty0 + i, 2);"},
      {"a place is released in its own block only", "if (tx < 2 &&", "if (tx < 1 &&"},
      {"a box goes to one block", ", 3);", ", 1);"},
      {"both blocks bring one box", "if (pr_block_x() % 2 == 0) ", ""},
      {"a block goes before the others are done", "  }\n  pr_cluster_sync();\n}", "  }\n}"},
  };
  check_noticed("matmul_wgmma_cluster", bugs);
}

TEST_CASE("a cluster is left out where it does not divide the blocks or shares nothing") {
  const auto text_of = [](std::string_view from, std::string_view to) {
    for (const GpuProgram& p : hopper_programs()) {
      if (p.name != "matmul_wgmma_cluster") continue;
      std::string program = ir::print(p.scheduled);
      const std::size_t at = program.find(from);
      REQUIRE(at != std::string::npos);
      const Result<codegen::Artifact> artifact = codegen::print_cuda_artifact(
          parse_or_die(program.replace(at, from.size(), to)), hopper());
      REQUIRE_OK(artifact);
      return artifact->bytes;
    }
    return std::string();
  };
  CHECK(num_times(text_of("cluster = 2", "cluster = 3"), "PR_KERNEL(384, 1)") == 1);
  CHECK(num_times(text_of("cluster = 2", "cluster = 16"), "PR_KERNEL(384, 1)") == 1);
  CHECK(num_times(text_of("cluster = 2", "cluster = 0"), "PR_KERNEL(384, 1)") == 1);
}

// One product of a warpgroup; `brings` stands before both copies.
const std::string kProduct = R"(
program p(A: f16[64, 64], B: f16[64, 64]) -> (C: f32[64, 64]) {
  buffer S: f16[64, 64] shared
  buffer T: f16[64, 64] shared
  buffer R: f32[64, 64] local
  for b in 1 bind(block.x) {
    for w in 1 bind(thread.y) { for i in 64 { for j in 64 {
      block "R0" [v: S(64) = i, x: S(64) = j] { R[v, x] = 0f32 } } } }
    for k in 1 {
      for i in 64 {bulk_copy = 1} { for j in 64 {
        block "S" [v: S(64) = i, x: S(64) = j] {swizzle_0 = 128} { S[v, x] = A[v, x] } } }
      for i in 64 {bulk_copy = 1} { for j in 64 {
        block "T" [v: S(64) = i, x: S(64) = j] {swizzle_0 = 128} { T[v, x] = B[v, x] } } }
      for w in 1 bind(thread.y) { for kk in 4 {
        block "R" [v: S(4) = kk] {
          reads R[0 +: 64, 0 +: 64], S[0 +: 64, v*16 +: 16], T[v*16 +: 16, 0 +: 64]
          writes R[0 +: 64, 0 +: 64]
          for i in 64 {tensor_wgmma_m64n64k16_f16 = 1} { for j in 64 { for kkk in 16 {
            R[i, j] = R[i, j] + f32(S[i, v*16 + kkk])*f32(T[v*16 + kkk, j]) } } } } } }
    }
    for w in 1 bind(thread.y) { for i in 64 { for j in 64 {
      block "C" [v: S(64) = i, x: S(64) = j] { C[v, x] = R[v, x] } } } }
  }
})";

Result<codegen::Artifact> print(const std::string& text,
                                std::string_view target = "cuda-host:sm_90a") {
  return codegen::print_cuda_artifact(parse_or_die(text), gpu_target(target));
}

int num_of(const Result<codegen::Artifact>& artifact, std::string_view part) {
  REQUIRE_OK(artifact);
  return num_times(artifact->bytes, part);
}

TEST_CASE("a ring buffer may have one stage") { REQUIRE_OK(print(kProduct)); }

// The race checker's verdict on a program, and whether its outputs are the interpreter's.
void check_on_host(const std::string& text, const codegen::Artifact& source) {
  const Result<Expected> expected = expected_outputs(parse_or_die(text), 1);
  REQUIRE_OK(expected);
  const runtime::JobOutcome outcome =
      check_source_on_host(source, expected->input_bytes(), HostChecker::kRace);
  INFO(outcome.measurement.detail << "\n" << source.bytes);
  REQUIRE(outcome.measurement.status == MeasureStatus::kOk);
  CHECK(difference(*expected, outcome.outputs) == "");
}

// kProduct four times, T by threads, so many iterations ahead.
std::string fetched_by_threads(std::string_view value, int64_t ahead = 1) {
  std::string text =
      replaced(kProduct, "for k in 1 {",
               "for k in 4 {software_pipeline = " + std::to_string(ahead + 1) + "} {");
  text = replaced(text, "{bulk_copy = 1} { for j in 64 {\n        block \"S\"",
                  "{bulk_copy = 1, pipeline_stage = 0, pipeline_order = 0} { for j in 64 {\n"
                  "        block \"S\"");
  text = replaced(text, "for i in 64 {bulk_copy = 1} { for j in 64 {",
                  "for i in 32 {pipeline_stage = 0, pipeline_order = 1} {\n"
                  "      for j in 128 bind(thread.x) {");
  text = replaced(text, "\"T\" [v: S(64) = i, x: S(64) = j]",
                  "\"T\" [v: S(64) = i*2 + j // 64, x: S(64) = j % 64]");
  text = replaced(text, "bind(thread.y) { for kk in 4 {",
                  "bind(thread.y) {pipeline_stage = " + std::to_string(ahead) +
                      ", pipeline_order = 2} { for kk in 4 {");
  return replaced(text, "T[v, x] = B[v, x]", "T[v, x] = " + std::string(value));
}

TEST_CASE("elements too small for cp.async are all loaded before the first one is stored") {
  const std::string text = fetched_by_threads("B[v, x]");
  const Result<codegen::Artifact> source = print(text);
  // In front of the loop and in it.
  CHECK(num_of(source, "#pragma unroll 32\n") == 2);
  CHECK(num_of(source, "pr_cp_async<") == 0);
  check_fetches_meanwhile(source->bytes, "#pragma unroll 32\n");
  check_on_host(text, *source);
  // The first tiles of two iterations are written out already.
  CHECK(num_of(print(fetched_by_threads("B[v, x]", 2)), "#pragma unroll 32\n") == 1);
  // A condition for each.
  const std::string padded = fetched_by_threads("select(x < 60, B[v, x], 0f16)");
  CHECK(num_of(print(padded), "#pragma unroll 8\n") == 2);
}

TEST_CASE("a fetch that reads what the engine brings stays in its iteration") {
  const std::string text = fetched_by_threads("S[v, x] + B[v, x]");
  const Result<codegen::Artifact> source = print(text);
  CHECK(num_of(source, "pr_cp_async_wait") == 0);
  CHECK(num_of(source, "pr_bar_sync(1, 128);") == 2);
  check_on_host(text, *source);
}

TEST_CASE("a fetch that writes beside what the engine brings stays in its iteration") {
  const std::string fetch = "      for i in 32 {pipeline_stage = 0, pipeline_order = 1} {";
  const std::string text = replaced(fetched_by_threads("B[v, x]"), fetch,
                                    R"(      for i in 16 {pipeline_stage = 0, pipeline_order = 1} {
      for j in 128 bind(thread.x) {
        block "S2" [v: S(32) = i*2 + j // 64, x: S(64) = j % 64] {swizzle_0 = 128} {
          S[v, x] = B[v, x] } } }
)" + fetch);
  const Result<codegen::Artifact> source = print(text);
  CHECK(num_of(source, "pr_cp_async_wait") == 0);
  CHECK(num_of(source, "pr_tma_load_2d(") == 1);
  check_on_host(text, *source);
}

// The product with windows of images: all taps of a 3 x 3 filter, 64 pixels of 126.
const std::string kWindows = R"(
program p(A: f16[2, 7, 9, 64], B: f16[576, 64]) -> (C: f32[64, 64]) {
  buffer S: f16[64, 576] shared
  buffer T: f16[576, 64] shared
  buffer R: f32[64, 64] local
  for b in 1 bind(block.x) {
    for w in 1 bind(thread.y) { for i in 64 { for j in 64 {
      block "R0" [v: S(64) = i, x: S(64) = j] { R[v, x] = 0f32 } } } }
    for k in 9 {
      for i in 64 {bulk_copy = 1} { for j in 64 {
        block "S" [v: S(64) = i, x: S(576) = k*64 + j] {swizzle_0 = 128} {
          S[v, x] = select(1 <= v // 9 % 7 + x // 192 && v // 9 % 7 + x // 192 < 8 &&
                           1 <= v % 9 + x // 64 % 3 && v % 9 + x // 64 % 3 < 10,
                           A[v // 63, v // 9 % 7 + x // 192 - 1, v % 9 + x // 64 % 3 - 1, x % 64],
                           0f16) } } }
      for i in 64 {bulk_copy = 1} { for j in 64 {
        block "T" [v: S(576) = k*64 + i, x: S(64) = j] {swizzle_0 = 128} { T[v, x] = B[v, x] } } }
      for w in 1 bind(thread.y) { for kk in 4 {
        block "R" [v: R(36) = k*4 + kk] {
          reads R[0 +: 64, 0 +: 64], S[0 +: 64, v*16 +: 16], T[v*16 +: 16, 0 +: 64]
          writes R[0 +: 64, 0 +: 64]
          for i in 64 {tensor_wgmma_m64n64k16_f16 = 1} { for j in 64 { for kkk in 16 {
            R[i, j] = R[i, j] + f32(S[i, v*16 + kkk])*f32(T[v*16 + kkk, j]) } } } } } }
    }
    for w in 1 bind(thread.y) { for i in 64 { for j in 64 {
      block "C" [v: S(64) = i, x: S(64) = j] { C[v, x] = R[v, x] } } } }
  }
})";

TEST_CASE("windows of images come in im2col mode") {
  const Result<codegen::Artifact> source = print(kWindows);
  CHECK(num_of(source, "pr_tma_load_im2col(") == 1);
  CHECK(num_of(source, "pr_tma_load_2d(") == 1);
  const codegen::TensorMap& a = source->launches[0].tensor_maps[0];
  CHECK(a.rows == 126);
  CHECK(a.box_rows == 64);
  CHECK(a.box_cols == 64);
  REQUIRE(a.pixels.has_value());
  CHECK(*a.pixels ==
        codegen::PixelBox{.height = 7, .width = 9, .lower = {-1, -1}, .upper = {-1, -1}});
  check_on_host(kWindows, *source);
  const std::pair<std::string_view, std::string_view> others[] = {
      {"% 3 < 10", "% 3 < 9"}, {"0f16)", "1f16)"}, {"A[v // 63", "A[v // 62"}};
  for (const auto& [from, to] : others) {
    INFO(to);
    CHECK_DIAG(print(replaced(kWindows, from, to)), BulkForm);
  }
  // More of one image from step to step: counted from its end, pixels would begin before it.
  const std::size_t value = kWindows.find("select("), end = kWindows.find("0f16)", value) + 5;
  const std::string grows = kWindows.substr(0, value) +
                            "select(v < 48 + x // 64 * 8, A[0, v // 8, v % 8, x % 64], 0f16)" +
                            kWindows.substr(end);
  CHECK_DIAG(print(replaced(grows, "A: f16[2, 7, 9, 64]", "A: f16[1, 8, 8, 64]")), BulkForm);
}

TEST_CASE("rings of loops after each other share no memory: the producer runs ahead") {
  const std::size_t begin = kProduct.find("    for k in 1 {");
  const std::size_t end = kProduct.find("\n    for w in", begin) + 1;
  std::string second = kProduct.substr(begin, end - begin);
  const std::pair<std::string_view, std::string_view> others[] = {
      {"\"S\"", "\"U\""}, {"\"T\"", "\"V\""}, {"\"R\"", "\"Q\""}, {"S[", "U["},
      {"T[", "V["},       {"A[", "D["},       {"B[", "E["}};
  for (const auto& [from, to] : others) {
    while (second.find(from) != std::string::npos) second = replaced(second, from, to);
  }
  std::string text = kProduct;
  text.insert(end, second);
  text = replaced(text, "B: f16[64, 64])", "B: f16[64, 64], D: f16[64, 64], E: f16[64, 64])");
  text = replaced(text, "  buffer R:",
                  "  buffer U: f16[64, 64] shared\n  buffer V: f16[64, 64] shared\n  buffer R:");
  const Result<codegen::Artifact> source = print(text);
  for (const char* at : {"smem + 0);", "smem + 8192);", "smem + 16384);", "smem + 24576);"}) {
    INFO(at);
    CHECK(num_of(source, "(pr_f16*)(" + std::string(at)) == 1);
  }
  check_on_host(text, *source);
}

TEST_CASE("where the lanes of a warpgroup are rows of threads one more warpgroup is the producer") {
  std::string text = kProduct;
  while (text.find("bind(thread.y)") != std::string::npos) {
    text = replaced(text, "bind(thread.y)", "bind(thread.z)");
  }
  text = replaced(text, "-> (C: f32[64, 64])", "-> (C: f32[64, 64], D: f32[128])");
  text = replaced(text, "    for k in 1 {",
                  R"(    for y in 4 bind(thread.y) { for x in 32 bind(thread.x) {
      block "D" [v: S(128) = y*32 + x] { D[v] = 1f32 } } }
    for k in 1 {)");
  const Result<codegen::Artifact> source = print(text);
  CHECK(num_of(source, "PR_KERNEL(256, 1)") == 1);
  CHECK(source->launches[0].block == std::array<int64_t, 3>{32, 4, 2});
  CHECK(num_of(source, "if (tx == 0 && ty == 0 && tz == 0) {") == 1);
  CHECK(num_of(source, "if (tz == 1) {") == 1);
  CHECK(num_of(source, "if (tx == 0 && ty == 0) {") == 1);
  // Each warp says that it has read a stage.
  CHECK(num_of(source, "pr_mbar_init(empty0 + i, 4);") == 1);
  check_on_host(text, *source);
  // Of lanes along thread.x there are none beside thread.z.
  text = replaced(kProduct, "-> (C: f32[64, 64])", "-> (C: f32[64, 64], D: f32[2])");
  text = replaced(text, "    for k in 1 {", R"(    for z in 2 bind(thread.z) {
      block "D" [v: S(2) = z] { D[v] = 1f32 } }
    for k in 1 {)");
  CHECK_DIAG(print(text), ThreadKernel);
}

TEST_CASE("a ring buffer has no more stages than its phases have bits") {
  const std::string deep =
      replaced(kProduct, "for k in 1 {", "for k in 1 {software_pipeline = 40} {");
  const Result<ir::Program> lowered = codegen::lower_gpu(parse_or_die(deep), hopper());
  REQUIRE_OK(lowered);
  CHECK(num_times(ir::print(*lowered), "ring_buffer = 32") == 1);
  CHECK_DIAG(print(deep), GpuLimit);  // of shared memory
}

TEST_CASE("sums that TMA cannot store are stored by lanes") {
  CHECK(num_of(print(kProduct), "pr_tma_store_2d(") == 1);
  // Rows at no multiple of 16 bytes.
  CHECK(num_of(print(replaced(kProduct, "C: f32[64, 64]", "C: f32[64, 66]")), "pr_tma_store_2d(") ==
        0);
  // Columns apart.
  std::string apart = replaced(kProduct, "C: f32[64, 64]", "C: f32[64, 128]");
  CHECK(num_of(print(replaced(apart, "{ C[v, x] = R", "{ C[v, x*2] = R")), "pr_tma_store_2d(") ==
        0);
  // Rows become columns.
  CHECK(num_of(print(replaced(kProduct, "{ C[v, x] = R", "{ C[x, v] = R")), "pr_tma_store_2d(") ==
        0);
  // Types that have no panels.
  std::string wide = replaced(kProduct, "C: f32[64, 64]", "C: f64[64, 64]");
  CHECK(num_of(print(replaced(wide, "= R[v, x]", "= f64(R[v, x])")), "pr_tma_store_2d(") == 0);
}

TEST_CASE("warpgroups meet between tiles only if they write one element twice") {
  std::string tiles = replaced(kProduct, "bind(block.x) {", "bind(block.x) { for t in 2 {");
  tiles.insert(tiles.rfind('}'), "}");
  CHECK(num_of(print(tiles), "pr_bar_sync(1, 128)") == 1);
  tiles = replaced(tiles, "C: f32[64, 64]", "C: f32[128, 64]");
  tiles = replaced(tiles, "block \"C\" [v: S(64) = i,", "block \"C\" [v: S(128) = t*64 + i,");
  tiles = replaced(tiles, "C[v, x] = R[v, x]", "C[v, x] = R[v % 64, x]");
  CHECK(num_of(print(tiles), "pr_bar_sync(1, 128)") == 0);
  // Every other tile.
  tiles = replaced(tiles, "t*64 + i", "t % 1*64 + i");
  CHECK(num_of(print(tiles), "pr_bar_sync(1, 128)") == 1);
}

TEST_CASE("wgmma is refused before sm_90a, and on factors that lie otherwise") {
  CHECK_DIAG(print(kProduct, "cuda-host:sm_80"), TensorTarget);
  CHECK_DIAG(print(replaced(kProduct, " {swizzle_0 = 128}", "")), TensorTarget);
}

TEST_CASE("bulk copies are refused where no ring buffer can hold them") {
  CHECK_DIAG(print(replaced(kProduct, "for k in 1 {", "for k in 1 bind(thread.z) {")),
             ThreadKernel);
  CHECK_DIAG(print(replaced(kProduct, "S[v, x] = A[v, x]", "S[v, x] = A[v, x] + 1f16")), BulkForm);
  CHECK_DIAG(print(replaced(kProduct, "S[v, x] = A[v, x]", "S[v, x] = A[x, v]")), BulkForm);
  CHECK_DIAG(print(replaced(kProduct, "for k in 1 {", "for k in 1 unrolled {")), ThreadKernel);
}

}  // namespace
}  // namespace prunerc::testing

// Data flow, tags, hardware vectors and batches of features; the statement features have a test of
// their own.
#include "costmodel/feature/batch.h"
#include "costmodel/feature/names.h"
#include "ir/builder.h"
#include "ir/support/rng.h"
#include "tests/costmodel/sketches.h"
#include "tests/support/check.h"
#include "tests/support/operators.h"
#include "tests/support/program_gen.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

namespace prunerc {
namespace {

using namespace costmodel;  // NOLINT: a test
using namespace testing;    // NOLINT: a test

ir::Target cpu() { return *ir::target_from_string("cpu:icelake-server"); }
ir::Target gpu() { return *ir::target_from_string("cuda:sm_80"); }

double get(const FlowFeatures& step, const std::string& name) {
  const int index = find_feature(FeatureGroup::kFlow, name);
  INFO(name);
  REQUIRE(index >= 0);
  return static_cast<double>(step[static_cast<std::size_t>(index)]);
}

bool has(const TaskTag& tag, const std::string& name) {
  const int index = find_feature(FeatureGroup::kTag, name);
  INFO(name);
  REQUIRE(index >= 0);
  return tag[static_cast<std::size_t>(index)] != 0;
}

double slog(double x) { return std::log2(x + 1); }

// Where a step's data comes from or goes to.
std::string level(const FlowFeatures& step, const std::string& side) {
  std::string out;
  for (const char* name : {"memory", "cache", "shared", "register", "fragment"}) {
    if (get(step, side + "_" + name) != 0) out += name;
  }
  return out;
}

std::string route(const FlowFeatures& step) {
  return level(step, "from") + ">" + level(step, "to");
}

constexpr const char* kGemm = R"(program gemm(A: f32[4, 16], B: f32[16, 8]) -> (C: f32[4, 8]) {
  for i in 4 { for j in 8 { for k in 16 {
    block "C" [vi: S(4) = i, vj: S(8) = j, vk: R(16) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj] } } } } })";

TEST_CASE("each group of features has its length and names of its own") {
  const std::pair<FeatureGroup, int> groups[] = {{FeatureGroup::kStatement, kNumStatementFeatures},
                                                 {FeatureGroup::kTag, kNumTagFeatures},
                                                 {FeatureGroup::kFlow, kNumFlowFeatures},
                                                 {FeatureGroup::kHardware, kNumHardwareFeatures}};
  for (const auto& [group, length] : groups) {
    const std::span<const FeatureName> names = feature_names(group);
    CHECK(static_cast<int>(names.size()) == length);
    std::set<std::string> seen;
    for (const FeatureName& f : names) {
      INFO(f.name);
      CHECK(seen.insert(f.name).second);
    }
  }
  CHECK(find_feature(FeatureGroup::kFlow, "alloc_bytes") == kNumPaperFlowFeatures - 1);
  CHECK(find_feature(FeatureGroup::kTag, "none") == -1);
}

TEST_CASE("the data flow of a matrix product: operands as they appear, what is written last") {
  const ModelFeatures f = extract(parse_or_die(kGemm), cpu());
  REQUIRE(f.flow.size() == 4);
  CHECK(get(f.flow[0], "init") == 1);
  CHECK(get(f.flow[0], "write") == 1);
  CHECK(route(f.flow[1]) == "memory>memory");
  CHECK(get(f.flow[1], "unique_bytes") == Approx(slog(256)));
  CHECK(get(f.flow[1], "operand") == 0);
  CHECK(get(f.flow[2], "unique_bytes") == Approx(slog(512)));
  CHECK(get(f.flow[2], "stride") == Approx(slog(8)));
  CHECK(get(f.flow[2], "operand") == Approx(slog(1)));
  CHECK(get(f.flow[3], "read_write") == 1);
  CHECK(route(f.flow[3]) == "register>memory");
  CHECK(get(f.flow[3], "ops") == Approx(slog(1024)));
  CHECK(get(f.flow[3], "write_back") == 0);
}

double paper(const PaperFlow& flow, std::size_t step, std::string_view name) {
  const auto at = static_cast<std::size_t>(find_feature(FeatureGroup::kFlow, name));
  return static_cast<double>(flow[step][at]);
}

TEST_CASE("on a CPU the published data flow comes from the loops") {
  // 4 tasks of 4 rows; all of them read B.
  const ModelFeatures f =
      extract(parse_or_die(
                  R"(program p(A: f32[16, 8], B: f32[8, 32]) -> (C: f32[16, 32]) {
  for b in 4 @L0 parallel { for j0 in 2 @L1 { for k in 8 @L2 { for i in 4 @L3 unrolled { for j in 16 @L4 vectorized {
    block "C" @B0 [vi: S(16) = b * 4 + i, vj: S(32) = j0 * 16 + j, vk: R(8) = k] {
      reads A[vi, vk], B[vk, vj] writes C[vi, vj] init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj] } } } } } } })"),
              cpu());
  const PaperFlow& flow = f.paper_flow;
  const char* const places[] = {"in_local",  "in_global", "in_shared", "in_global", "in_shared",
                                "in_shared", "in_shared", "in_local",  "in_local",  "in_global"};
  const char* const types[] = {"write", "read", "write",      "read", "write",
                               "read",  "read", "read_write", "read", "write"};
  for (std::size_t s = 0; s < kNumPaperFlowSteps; ++s) {
    INFO(s);
    CHECK(paper(flow, s, "in_global") + paper(flow, s, "in_shared") + paper(flow, s, "in_local") ==
          1);
    CHECK(paper(flow, s, places[s]) == 1);
    CHECK(paper(flow, s, types[s]) == 1);
  }
  // A comes in once, B once for each task.
  CHECK(paper(flow, 1, "bytes") == Approx(slog(4 * 16 * 8)));
  CHECK(paper(flow, 1, "reuse_none") == 1);
  CHECK(paper(flow, 2, "unique_bytes") == Approx(slog(4 * 4 * 8)));
  CHECK(paper(flow, 3, "bytes") == Approx(slog(4 * 4 * 8 * 32)));
  CHECK(paper(flow, 3, "unique_bytes") == Approx(slog(4 * 8 * 32)));
  CHECK(paper(flow, 3, "lines") == Approx(slog(4 * 4 * 8 * 32 / 64)));
  CHECK(paper(flow, 3, "reuse_by_loop") == 1);
  CHECK(paper(flow, 3, "reuse_count") == Approx(slog(4)));
  CHECK(paper(flow, 3, "reuse_distance_iterations") == Approx(slog(4 * 32 * 8)));
  CHECK(paper(flow, 3, "reuse_distance_bytes") == Approx(slog(4 * (4 * 8 + 8 * 32 + 4 * 32))));
  CHECK(paper(flow, 3, "bytes_per_reuse") == Approx(slog(4 * 8 * 32)));
  CHECK(paper(flow, 4, "alloc_bytes") == Approx(slog(4 * 8 * 32)));
  CHECK(paper(flow, 7, "ops") == get(f.flow.back(), "ops"));
  // 4 x 16 sums in 4 registers of 64 bytes.
  CHECK(paper(flow, 7, "alloc_bytes") == Approx(slog(4 * 64)));
  CHECK(paper(flow, 9, "bytes") == Approx(slog(4 * 16 * 32)));
}

TEST_CASE("the published data flow is zero without a product of two buffers") {
  CHECK(extract(parse_or_die(R"(program p(X: f32[8, 8]) -> (Y: f32[8]) {
  for i in 8 { for k in 8 { block "Y" [vi: S(8) = i, vk: R(8) = k] {
    init { Y[vi] = 0f32 } Y[vi] = Y[vi] + X[vi, vk] } } } })"),
                cpu())
            .paper_flow == PaperFlow{});
}

TEST_CASE("an intermediate in a cache, vectors, threads and the way back to memory") {
  constexpr const char* text = R"(program p(X: f32[{0}, 32]) -> (Y: f32[{0}, 32]) {{
  buffer T: f32[{0}, 32] global
  for i in {0} parallel {{
    for v in 32 vectorized {{
      block "T" [vi: S({0}) = i, vj: S(32) = v] {{ T[vi, vj] = X[vi, vj] + 1f32 }} }} }}
  for i1 in {0} {{ for v1 in 32 {{
      block "Y" [wi: S({0}) = i1, wj: S(32) = v1] {{ Y[wi, wj] = T[wi, wj] * T[wi, wj] }} }} }} }})";
  const ModelFeatures small = extract(parse_or_die(fmt::format(text, 6)), cpu());
  REQUIRE(small.flow.size() == 4);
  CHECK(route(small.flow[0]) == "memory>cache");
  CHECK(get(small.flow[0], "vector_width") == Approx(slog(32)));
  CHECK(get(small.flow[0], "concurrent") == Approx(slog(6)));
  CHECK(get(small.flow[1], "alloc_bytes") == Approx(slog(6 * 32 * 4)));
  CHECK(route(small.flow[2]) == "cache>memory");
  CHECK(get(small.flow[2], "vector_width") == Approx(slog(1)));
  CHECK(get(small.flow[3], "write_back") == 1);
  CHECK(get(small.flow[1], "write_back") == 0);
  // Too large for a cache.
  const ModelFeatures large = extract(parse_or_die(fmt::format(text, 600000)), cpu());
  CHECK(route(large.flow[0]) == "memory>memory");
}

// Tiles of 256 x 128 x 64 that meet the sketch's domain.
const std::vector<int64_t> kTiles = {2, 2, 16, 4, 2, 2, 16, 2, 4, 16, 1};

TEST_CASE("the published data flow of a matrix product on a GPU, with the write-back behind it") {
  const ir::Program sketch = gpu_gemm(256, 128, 64);
  const ModelFeatures f = extract(instance(sketch, kTiles), gpu());
  std::vector<std::string> routes;
  for (const FlowFeatures& step : f.flow) routes.push_back(route(step));
  CHECK(routes == std::vector<std::string>{"register>register", "memory>shared", "memory>shared",
                                           "memory>shared", "memory>shared", "shared>register",
                                           "shared>register", "register>register",
                                           "register>memory", "register>memory"});
  REQUIRE(f.flow.size() == kNumPaperFlowSteps);
  for (std::size_t s = 0; s < f.flow.size(); ++s) {
    INFO(s);
    CHECK(std::equal(f.paper_flow[s].begin(), f.paper_flow[s].end(), f.flow[s].begin()));
    CHECK(get(f.flow[s], "write_back") == (s == 9 ? 1 : 0));
  }
}

TEST_CASE("an init inside the reduction comes where lowering puts it: before the operands") {
  const ir::Program program = parse_or_die(R"(program p(A: f32[64, 8], B: f32[8]) -> (C: f32[64]) {
  buffer L: f32[64] local
  buffer SA: f32[64, 8] shared
  buffer SB: f32[8] shared
  for b in 2 bind(block.x) { for t in 32 bind(thread.x) {
    for k0 in 2 {
      for k1 in 4 { block "SA" [ai: S(64) = b * 32 + t, ak: S(8) = k0 * 4 + k1] {
        SA[ai, ak] = A[ai, ak] } }
      for k1 in 4 { block "SB" [bk: S(8) = k0 * 4 + k1] { SB[bk] = B[bk] } }
      for k1 in 4 { block "L" [vi: S(64) = b * 32 + t, vk: R(8) = k0 * 4 + k1] {
        init { L[vi] = 0f32 }
        L[vi] = L[vi] + SA[vi, vk] * SB[vk] } } }
    block "C" [wi: S(64) = b * 32 + t] { C[wi] = L[wi] } } } })");
  const ModelFeatures f = extract(program, gpu());
  REQUIRE(f.flow.size() == 10);
  CHECK(get(f.flow[0], "init") == 1);
  CHECK(f.paper_flow[0][0] == f.flow[0][0]);
  CHECK(f.paper_flow[9] != PaperFlow{}[9]);
}

TEST_CASE("a longer flow keeps the steps that move most, in order") {
  std::string text = "program p(X: f32[64]) -> (Y: f32[64]) {\n  buffer T: f32[64] global\n";
  for (int i = 0; i < 20; ++i) {
    const int extent = i == 3 ? 2 : 64 - i;
    text += fmt::format(
        "  for n{0} in {1} {{ block \"T\" [v{0}: S({1}) = n{0}] {{ T[v{0}] = X[v{0}] }} }}\n", i,
        extent);
  }
  text += "  for j in 64 { block \"Y\" [w: S(64) = j] { Y[w] = T[w] } } }";
  const ModelFeatures f = extract(parse_or_die(text), cpu());
  CHECK(f.statements.size() == 21);
  REQUIRE(f.flow.size() == kMaxFlowSteps);
  CHECK(get(f.flow[0], "bytes") == Approx(slog(64 * 4)));
  for (std::size_t s = 0; s < f.flow.size(); ++s) CHECK(get(f.flow[s], "bytes") > slog(2 * 4));
  CHECK(get(f.flow.back(), "write_back") == 1);
}

TEST_CASE("loops of one iteration are as if they were not there") {
  constexpr const char* text = R"(program p(A: f32[4, 16]) -> (C: f32[4]) {{
  {0} for i in 4 {{ {1} for k in 16 unrolled {{ {2}
    block "C" [vi: S(4) = i, vk: R(16) = k] {{
      init {{ C[vi] = 0f32 }}
      C[vi] = C[vi] + A[vi, vk] }} }} }} {3} }})";
  const ModelFeatures without = extract(parse_or_die(fmt::format(text, "", "", "", "")), cpu());
  const ModelFeatures with =
      extract(parse_or_die(fmt::format(text, "for a in 1 parallel {", "for b in 1 {",
                                       "for c in 1 vectorized {", "} } }")),
              cpu());
  CHECK(with == without);
}

TEST_CASE("scalars, no loops, and a loop whose extent is not known") {
  const ModelFeatures scalar = extract(parse_or_die(R"(program p(a: f32) -> (b: f32) {
  block "b" [] { b[] = a[] + 1f32 } })"),
                                       cpu());
  REQUIRE(scalar.statements.size() == 1);
  REQUIRE(scalar.flow.size() == 2);
  CHECK(get(scalar.flow[0], "bytes") == Approx(slog(4)));
  CHECK(get(scalar.flow[0], "reuse_none") == 1);
  const ModelFeatures huge =
      extract(parse_or_die(R"(program p(X: f32[1048576, 1048576]) -> (Y: f32[1048576, 1048576]) {
  for i in 1048576 { for j in 1048576 {
    block "Y" [vi: S(1048576) = i, vj: S(1048576) = j] { Y[vi, vj] = X[vj, vi] * 2f32 } } } })"),
              cpu());
  CHECK(get(huge.flow[0], "bytes") == Approx(42));
  CHECK(get(huge.flow[0], "stride") == Approx(20));
}

TEST_CASE("a program that does nothing has no statements and no steps") {
  ir::IrBuilder b("nothing");
  const ModelFeatures f = extract(b.finish(ir::Stmt()), cpu());
  CHECK(f.statements.empty());
  CHECK(f.flow.empty());
  CHECK(f.tag == TaskTag{});
}

TEST_CASE("subscripts from data touch anything, and are finite") {
  const ModelFeatures f = extract(parse_or_die(R"(program p(X: f32[50], I: i64[8]) -> (Y: f32[8]) {
  for i in 8 { block "Y" [vi: S(8) = i] { Y[vi] = X[I[vi]] } } })"),
                                  cpu());
  REQUIRE(f.flow.size() == 3);
  CHECK(get(f.flow[0], "unique_bytes") == Approx(slog(200)));
}

TEST_CASE("tags of the library's operators") {
  const std::pair<const char*, const char*> kinds[] = {
      {"gemm_nn", "dense"},
      {"gemm_bias_relu", "dense"},
      {"gemm_i8", "dense"},
      {"matvec", "dense"},
      {"batch_matmul", "batch_matmul"},
      {"conv2d", "conv2d"},
      {"conv2d_nhwc", "conv2d"},
      {"conv2d_bias_relu", "conv2d"},
      {"depthwise_conv2d", "depthwise"},
      {"depthwise_conv2d_nhwc", "depthwise"},
      {"softmax", "softmax"},
      {"log_softmax", "softmax"},
      {"max_pool2d", "max"},
      {"row_min", "min"},
      {"row_sum", "add"},
      {"transpose2d", ""},
  };
  int found = 0;
  for (const testing::NamedProgram& op : operator_gallery()) {
    for (const auto& [name, flag] : kinds) {
      if (op.name.substr(0, op.name.find(' ')) != name) continue;
      ++found;
      const TaskTag tag = task_tag(op.program);
      INFO(op.name);
      if (*flag != 0) CHECK(has(tag, flag));
      for (const char* other :
           {"conv2d", "winograd", "depthwise", "dense", "softmax", "batch_matmul", "unused"}) {
        if (std::string(other) != flag) CHECK(!has(tag, other));
      }
    }
  }
  CHECK(found >= 16);
}

TEST_CASE("products of transformed tiles are Winograd's") {
  const TaskTag tag = task_tag(
      parse_or_die(R"(program p(X: f32[4, 10, 10], U: f32[4, 4, 8, 4]) -> (M: f32[4, 4, 8, 16]) {
  buffer V: f32[4, 4, 4, 16] global
  for a in 4 { for b in 4 { for c in 4 { for t in 4 { for u in 4 {
    block "V" [va: S(4) = a, vb: S(4) = b, vc: S(4) = c, vt: S(4) = t, vu: S(4) = u] {
      V[va, vb, vc, vt * 4 + vu] = X[vc, vt * 2 + va, vu * 2 + vb] - X[vc, vt * 2, vu * 2] } } } } } }
  for a1 in 4 { for b1 in 4 { for o in 8 { for q in 16 { for k in 4 {
    block "M" [wa: S(4) = a1, wb: S(4) = b1, wo: S(8) = o, wq: S(16) = q, wk: R(4) = k] {
      init { M[wa, wb, wo, wq] = 0f32 }
      M[wa, wb, wo, wq] = M[wa, wb, wo, wq] + U[wa, wb, wo, wk] * V[wa, wb, wk, wq] } } } } } } })"));
  CHECK(has(tag, "winograd"));
  CHECK(has(tag, "batch_matmul"));
  CHECK(!has(tag, "conv2d"));
}

TEST_CASE("hardware vectors tell machines apart and are finite") {
  std::set<HardwareFeatures> seen;
  int num_targets = 0;
  for (const char* name :
       {"cpu", "cpu:icelake-server", "cpu:znver4", "cuda:sm_80", "cuda:sm_90a"}) {
    const HardwareFeatures h = hardware_features(*ir::target_from_string(name));
    for (const float value : h) CHECK(std::isfinite(value));
    INFO(name);
    CHECK(h[0] == (std::string(name).starts_with("cuda") ? 1 : 0));
    seen.insert(h);
    ++num_targets;
  }
  CHECK(static_cast<int>(seen.size()) == num_targets);
  CHECK(hardware_features(*ir::target_from_string("cpu:znver4 vector_bytes=16")) !=
        hardware_features(*ir::target_from_string("cpu:znver4")));
}

TEST_CASE("a batch of a program without parameters is that program, again and again") {
  const ir::Program program = parse_or_die(kGemm);
  const FeatureProgram derived = derive_features(program, cpu());
  FeatureScratch scratch;
  FeatureBatch batch;
  evaluate(derived, {}, 3, &scratch, &batch);
  REQUIRE(batch.size == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(batch.of(i) == extract(program, cpu()));
  evaluate(derived, {}, 0, &scratch, &batch);
  CHECK(batch.statements.empty());
}

TEST_CASE("a batch does not depend on its size or on what the scratch was used for") {
  const ir::Program sketch = gpu_gemm(256, 128, 64);
  const FeatureProgram derived = derive_features(sketch, gpu());
  const ModelFeatures wanted = extract(instance(sketch, kTiles), gpu());
  FeatureScratch scratch;
  FeatureBatch batch;
  for (const std::size_t n : {std::size_t{1}, std::size_t{300}, std::size_t{7}}) {
    std::vector<std::vector<double>> columns;
    std::vector<const double*> pointers;
    for (const int64_t v : kTiles) columns.emplace_back(n, static_cast<double>(v));
    for (const std::vector<double>& column : columns) pointers.push_back(column.data());
    evaluate(derived, pointers, n, &scratch, &batch);
    REQUIRE(batch.size == n);
    CHECK(batch.of(0) == batch.of(n - 1));
    CHECK(batch.of(0).paper_flow == wanted.paper_flow);
    CHECK(batch.of(0).statements == wanted.statements);
  }
}

TEST_CASE("all features of random programs are finite and the same each time") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed, 78);
    const ir::Program program = random_program(rng, {});
    const ModelFeatures f = extract(program, cpu());
    CHECK(!f.flow.empty());
    for (const FlowFeatures& step : f.flow) {
      for (const float value : step) CHECK(std::isfinite(value));
    }
    CHECK(f == extract(program, cpu()));
  }
}

}  // namespace
}  // namespace prunerc

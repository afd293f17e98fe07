// Products of narrow operands: which sketches there are, what they compute when compiled, and in
// what instructions.
#include "ir/analysis/prologue.h"
#include "ir/parser.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "search/space/variation.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"
#include "tests/support/narrow_products.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

ir::Target target_of(const std::string& text) { return ir::target_from_string(text).value(); }

// What this machine can run of them.
std::vector<ir::Target> targets_here() {
  std::vector<ir::Target> out;
  const std::string have = codegen::host_target(ir::Target{}).llvm_features;
  const auto has = [&](const char* name) { return have.find(name) != std::string::npos; };
  if (has("+avx2")) out.push_back(target_of("cpu:x86-64-v3 num_threads=2"));
  if (has("+avx512bw")) out.push_back(target_of("cpu:x86-64-v4 num_threads=2"));
  if (has("+avx512vnni")) out.push_back(target_of("cpu:icelake-server num_threads=2"));
  // What LLVM makes of one maker's CPUs another's may not run.
  const bool is_amd = has("+sse4a");
  if (has("+avx512bf16")) {
    out.push_back(
        target_of(is_amd ? "cpu:znver4 num_threads=2" : "cpu:sapphirerapids num_threads=2"));
  }
  return out;
}

Task task_of(const std::string& text, const ir::Target& target) {
  return make_task("p", parse_or_die(text), target);
}

std::vector<int> narrow_sketches(const SearchSpace& space) {
  std::vector<int> out;
  for (std::size_t i = 0; i < space.sketches.size(); ++i) {
    if (space.sketches[i].name.rfind("narrow", 0) == 0) out.push_back(static_cast<int>(i));
  }
  return out;
}

bool is_narrow(const std::string& text, const std::string& target) {
  const Result<SearchSpace> space = make_space(task_of(text, target_of(target)));
  REQUIRE_OK(space);
  return !narrow_sketches(*space).empty();
}

// Heuristic and drawn decisions of every narrow sketch give the interpreter's bits.
void check_runs(const std::string& text, const ir::Target& target, int num_drawn = 2) {
  const Task task = task_of(text, target);
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  INFO(ir::to_string(target) << "\n" << text);
  REQUIRE_FALSE(narrow_sketches(*space).empty());
  for (const int sketch : narrow_sketches(*space)) {
    for (int i = 0; i <= num_drawn; ++i) {
      Rng rng(first_seed(), static_cast<uint64_t>(sketch), static_cast<uint64_t>(i));
      const Genome genome =
          i == 0 ? default_genome(*space, sketch) : random_genome(*space, sketch, rng);
      const Result<Candidate> made = instantiate(task, *space, sketch, genome.decisions);
      if (i == 0) REQUIRE_OK(made);
      if (!made) continue;
      RunOptions options;
      options.target = target;
      CHECK(compare_with_interpreter(task.base, made->program, static_cast<uint64_t>(i), options) ==
            "");
    }
  }
}

std::string assembly(const std::string& text, const ir::Target& target) {
  const Task task = task_of(text, target);
  const SearchSpace space = make_space(task).value();
  REQUIRE_FALSE(narrow_sketches(space).empty());
  const Result<Candidate> made = instantiate(task, space, narrow_sketches(space)[0], {});
  REQUIRE_OK(made);
  const Result<std::string> out =
      codegen::emit_cpu(made->program, target, codegen::EmitKind::kAssembly);
  REQUIRE_OK(out);
  return *out;
}

TEST_CASE("products of bytes and bf16 run on dot instructions and give the interpreter's bits") {
  for (const ir::Target& target : targets_here()) {
    for (const NarrowTypes& t : {kU8S8, kS8S8, kS8U8, kU8U8}) {
      for (const NarrowShape& s :
           {NarrowShape{32, 64, 64}, {7, 37, 13}, {1, 48, 20}, {33, 5, 3}, {5, 2, 31}}) {
        check_runs(narrow_product(t, s), target);
      }
    }
    if (!ir::has_feature(target, "avx512bf16")) continue;
    for (const NarrowShape& s : {NarrowShape{32, 64, 64}, {7, 37, 13}, {1, 48, 20}}) {
      check_runs(narrow_product(kHalves, s), target);
    }
  }
}

TEST_CASE("operands lie in any order, and need not be const") {
  for (const ir::Target& target : targets_here()) {
    check_runs(narrow_product(kU8S8, {9, 40, 24}, "M K | vi, vk", "N K | vj, vk", false), target);
    check_runs(narrow_product(kU8S8, {9, 40, 22}, "K M | vk, vi", "K N | vk, vj", false), target);
    check_runs(narrow_product(kS8S8, {9, 33, 22}, "K M | vk, vi", "N K | vj, vk"), target);
  }
}

TEST_CASE("the extremes of bytes do not saturate on the way") {
  const NarrowTypes all[] = {kU8S8, kS8S8, kS8U8, kU8U8};
  for (const ir::Target& target : targets_here()) {
    for (const NarrowTypes& t : all) {
      const Task task = task_of(narrow_product(t, {6, 32, 16}), target);
      const SearchSpace space = make_space(task).value();
      REQUIRE_FALSE(narrow_sketches(space).empty());
      const Result<Candidate> made = instantiate(task, space, narrow_sketches(space)[0], {});
      REQUIRE_OK(made);
      std::vector<ir::Tensor> inputs;
      for (const ir::BufferId id : {task.base.params()[0], task.base.params()[1]}) {
        const ir::Buffer& buffer = task.base.buffer(id);
        const std::vector<int64_t> shape =
            inputs.empty() ? std::vector<int64_t>{6, 16} : std::vector<int64_t>{16, 32};
        inputs.emplace_back(buffer.dtype, shape);
        for (int64_t i = 0; i < shape[0] * shape[1]; ++i) {
          const int64_t value = i % 3 == 0 ? ir::min_int(buffer.dtype) : ir::max_int(buffer.dtype);
          inputs.back().set(i, static_cast<double>(value));
        }
      }
      RunOptions options;
      options.target = target;
      const Result<std::vector<ir::Tensor>> got = compile_and_run(made->program, inputs, options);
      REQUIRE_OK(got);
      CHECK(first_difference(interpret_or_die(task.base, inputs), *got) == "");
    }
  }
}

// C[v] = i8 of a scaled sum; Y of a convolution over channels.
constexpr const char* kRequantized = R"(
program q(A: u8[19, 30], const B: i8[30, 35], const S: f32[35]) -> (C: i8[19, 35]) {
  buffer T: i32[19, 35] global
  for i in 19 { for j in 35 { for k in 30 { block "T" [vi: S(19) = i, vj: S(35) = j, vk: R(30) = k] {
    init { T[vi, vj] = 0i32 } T[vi, vj] = T[vi, vj] + i32(A[vi, vk])*i32(B[vk, vj]) } } } }
  for i2 in 19 { for j2 in 35 { block "C" [wi: S(19) = i2, wj: S(35) = j2] {
    C[wi, wj] = i8(round(f32(T[wi, wj])*S[wj])) } } } })";
constexpr const char* kConvolution = R"(
program c(X: u8[1, 6, 7, 8], const F: i8[3, 3, 8, 32]) -> (Y: i32[1, 4, 5, 32]) {
  for h in 4 { for w in 5 { for f in 32 { for r in 3 { for s in 3 { for c in 8 {
    block "Y" [vh: S(4) = h, vw: S(5) = w, vf: S(32) = f, vr: R(3) = r, vs: R(3) = s, vc: R(8) = c] {
      init { Y[0, vh, vw, vf] = 0i32 }
      Y[0, vh, vw, vf] = Y[0, vh, vw, vf] + i32(X[0, vh + vr, vw + vs, vc])*i32(F[vr, vs, vc, vf])
  } } } } } } } })";

TEST_CASE("an epilogue is part of the tile, and convolutions are products") {
  for (const ir::Target& target : targets_here()) {
    check_runs(kRequantized, target);
    check_runs(kConvolution, target);
    const Task task = task_of(kRequantized, target);
    const SearchSpace space = make_space(task).value();
    const std::string trace =
        schedule::print(space.sketches[static_cast<std::size_t>(narrow_sketches(space)[0])].trace);
    CHECK(trace.find("reverse_compute_at") != std::string::npos);
  }
}

TEST_CASE("const operands are packed once") {
  const Task task = task_of(narrow_product(kU8S8, {32, 64, 64}), target_of("cpu:icelake-server"));
  const SearchSpace space = make_space(task).value();
  for (const int sketch : narrow_sketches(space)) {
    const Result<Candidate> made = instantiate(task, space, sketch, {});
    REQUIRE_OK(made);
    CHECK_FALSE(ir::find_prologue(made->program).results.empty());
  }
}

TEST_CASE("the inner loop is dot products into more than eight accumulators") {
  const NarrowShape s = {96, 96, 64};
  CHECK(most_in_a_loop(assembly(narrow_product(kU8S8, s), target_of("cpu:icelake-server")),
                       "vpdpbusd") > 8);
  CHECK(most_in_a_loop(assembly(narrow_product(kS8S8, s), target_of("cpu:icelake-server")),
                       "vpdpbusd") > 8);
  CHECK(most_in_a_loop(assembly(narrow_product(kHalves, s), target_of("cpu:znver4")), "vdpbf16ps") >
        8);
  CHECK(most_in_a_loop(assembly(narrow_product(kU8S8, s), target_of("cpu:x86-64-v3")), "vpmaddwd") >
        8);
  CHECK(most_in_a_loop(assembly(narrow_product(kS8S8, s), target_of("cpu:x86-64-v4")), "vpmaddwd") >
        8);
}

TEST_CASE("an estimate counts products as the instruction does") {
  const NarrowShape s = {512, 512, 512};
  const double macs = 512.0 * 512 * 512;
  for (const auto& [types, name, lanes] : {std::tuple{kU8S8, "cpu:icelake-server", 64.0},
                                           {kU8S8, "cpu:x86-64-v3", 16 / 1.3},
                                           {kHalves, "cpu:znver4", 32.0}}) {
    const ir::Target target = target_of(std::string(name) + " num_threads=1");
    const Task task = task_of(narrow_product(types, s), target);
    const SearchSpace space = make_space(task).value();
    const Result<Candidate> best = heuristic_candidate(task, space);
    REQUIRE_OK(best);
    INFO(name);
    // What -O0 takes, near the rate of the ports.
    CHECK(space.sketches[static_cast<std::size_t>(best->sketch)].name.rfind("narrow", 0) == 0);
    const double ports_ns =
        macs / lanes / static_cast<double>(target.fma_ports) / target.platform.clock_ghz;
    CHECK(best->predicted_ns > ports_ns);
    CHECK(best->predicted_ns < 2 * ports_ns);
  }
}

TEST_CASE("no instruction for the types, or none of the target, or no product: no such sketch") {
  const NarrowShape s = {32, 64, 64};
  CHECK(is_narrow(narrow_product(kU8S8, s), "cpu:x86-64-v3"));
  CHECK_FALSE(is_narrow(narrow_product(kU8S8, s), "cpu:x86-64-v2"));
  CHECK_FALSE(is_narrow(narrow_product(kHalves, s), "cpu:icelake-server"));
  CHECK_FALSE(is_narrow(narrow_product(kHalves, s), "cpu:x86-64-v3"));
  CHECK_FALSE(is_narrow(narrow_product({"f32", "f32", "f32"}, s), "cpu:znver4"));
  CHECK_FALSE(is_narrow(narrow_product({"i8", "i8", "f32"}, s), "cpu:znver4"));
  CHECK_FALSE(is_narrow(narrow_product({"f16", "f16", "f32"}, s), "cpu:znver4"));
  // Taken away by name.
  CHECK_FALSE(is_narrow(narrow_product(kHalves, s), "cpu:znver4 llvm_features=-avx512bf16"));
}

TEST_CASE("sums of one operand, and windows along the lanes, are no such products") {
  CHECK_FALSE(is_narrow(R"(
program s(A: u8[32, 64]) -> (C: i32[32]) { for i in 32 { for k in 64 {
  block "C" [vi: S(32) = i, vk: R(64) = k] {
    init { C[vi] = 0i32 } C[vi] = C[vi] + i32(A[vi, vk]) } } } })",
                        "cpu:icelake-server"));
  CHECK_FALSE(is_narrow(R"(
program w(X: u8[36], F: i8[5]) -> (Y: i32[32]) { for o in 32 { for k in 5 {
  block "Y" [vo: S(32) = o, vk: R(5) = k] {
    init { Y[vo] = 0i32 } Y[vo] = Y[vo] + i32(X[vo + vk])*i32(F[vk]) } } } })",
                        "cpu:icelake-server"));
}

TEST_CASE("features are what the list says, else what the table knows") {
  CHECK(ir::has_feature(target_of("cpu:znver4"), "avx512bf16"));
  CHECK_FALSE(ir::has_feature(target_of("cpu:znver4 llvm_features=-avx512bf16"), "avx512bf16"));
  CHECK(ir::has_feature(target_of("cpu:haswell llvm_features=+avx2,+avx512vnni"), "avx512vnni"));
  CHECK_FALSE(ir::has_feature(target_of("cpu:haswell"), "avx512vnni"));
  CHECK_FALSE(ir::has_feature(target_of("cpu:haswell"), "avx"));
  CHECK_FALSE(ir::has_feature(target_of("cuda:sm_80"), "avx2"));
}

}  // namespace
}  // namespace prunerc

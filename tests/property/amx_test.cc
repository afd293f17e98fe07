// Products on matrix tiles: what compiled candidates of the search compute, on machines that have these.
#include "ir/printer.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "search/space/variation.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"
#include "tests/support/narrow_products.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

const ir::Target& target() {
  static const ir::Target found = *ir::target_from_string("cpu:sapphirerapids num_threads=2");
  return found;
}

// Whether this machine has the instructions and lets this process use them.
bool has_tiles_here() {
#ifdef SYS_arch_prctl
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // Linux: asm/prctl.h
  const std::string have = codegen::host_target(ir::Target{}).llvm_features;
  return have.find("+amx-int8") != have.npos && have.find("+amx-bf16") != have.npos &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

Task task_of(const std::string& text) { return make_task("p", parse_or_die(text), target()); }

std::vector<int> amx_sketches(const SearchSpace& space) {
  std::vector<int> out;
  for (std::size_t i = 0; i < space.sketches.size(); ++i) {
    if (space.sketches[i].name.rfind("amx", 0) == 0) out.push_back(static_cast<int>(i));
  }
  return out;
}

Candidate default_candidate(const Task& task) {
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  REQUIRE_FALSE(amx_sketches(*space).empty());
  const Result<Candidate> made = instantiate(task, *space, amx_sketches(*space)[0], {});
  REQUIRE_OK(made);
  return *made;
}

std::string assembly_of(const std::string& text) {
  const Result<std::string> out = codegen::emit_cpu(default_candidate(task_of(text)).program,
                                                    target(), codegen::EmitKind::kAssembly);
  REQUIRE_OK(out);
  return *out;
}

/// Heuristic and drawn decisions of every sketch give the interpreter's bits; without the silicon they are compiled.
void check_runs(const std::string& text, int num_drawn = 3) {
  INFO(text);
  const Task task = task_of(text);
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  REQUIRE_FALSE(amx_sketches(*space).empty());
  RunOptions options;
  options.target = target();
  for (const int sketch : amx_sketches(*space)) {
    for (int i = 0; i <= num_drawn; ++i) {
      Rng rng(first_seed(), static_cast<uint64_t>(sketch), static_cast<uint64_t>(i));
      const Genome genome =
          i == 0 ? default_genome(*space, sketch) : random_genome(*space, sketch, rng);
      const Result<Candidate> made = instantiate(task, *space, sketch, genome.decisions);
      if (i == 0) REQUIRE_OK(made);
      if (!made.ok()) continue;
      if (has_tiles_here()) {
        CHECK(compare_with_interpreter(task.base, made->program, static_cast<uint64_t>(i),
                                       options) == "");
      } else {
        REQUIRE_OK(codegen::compile_cpu(made->program, target(), {}));
      }
    }
  }
}

TEST_CASE("this machine's matrix tiles are used, or the tests below only compile") {
  if (!has_tiles_here()) WARN("skipped: nothing runs on matrix tiles here");
}

TEST_CASE("products on matrix tiles give the interpreter's bits, whatever their extents") {
  for (const NarrowTypes& t : {kU8S8, kS8S8, kS8U8, kU8U8}) {
    for (const NarrowShape& s :
         {NarrowShape{32, 64, 64}, {17, 37, 100}, {4, 16, 16}, {49, 5, 48}, {100, 33, 16}}) {
      check_runs(narrow_product(t, s), 1);
    }
  }
  for (const NarrowShape& s : {NarrowShape{127, 100, 127}, {97, 130, 256}, {33, 18, 1100}}) {
    check_runs(narrow_product(kU8S8, s));
  }
}

TEST_CASE("products of bf16 on matrix tiles are exact on small whole numbers") {
  for (const NarrowShape& s :
       {NarrowShape{32, 64, 64}, {17, 37, 100}, {4, 16, 16}, {49, 5, 48}, {100, 33, 17}}) {
    check_runs(narrow_product(kHalves, s));
  }
}

TEST_CASE("operands on matrix tiles lie in any order, in batches, and need not be const") {
  check_runs(narrow_product(kU8S8, {29, 40, 24}, "M K | vi, vk", "N K | vj, vk", false));
  check_runs(narrow_product(kU8S8, {29, 40, 70}, "K M | vk, vi", "K N | vk, vj", false));
  check_runs(narrow_product(kS8S8, {32, 33, 64}, "K M | vk, vi", "N K | vj, vk"));
  check_runs(narrow_batch(kU8S8, 3, {20, 18, 70}));
  check_runs(narrow_batch(kHalves, 3, {20, 18, 70}));
}

TEST_CASE("convolutions on matrix tiles give the interpreter's bits") {
  for (const NarrowConvolution& c :
       {NarrowConvolution{.width = 7, .channels = 64, .filters = 32},
        {.width = 14, .channels = 64, .filters = 32},
        {.width = 28, .channels = 16, .filters = 16},
        {.width = 14, .channels = 32, .filters = 16, .stride = 2},
        {.width = 7, .channels = 64, .filters = 17, .window = 3},
        {.width = 14, .channels = 20, .filters = 16, .window = 3},
        {.width = 7, .channels = 32, .filters = 16, .window = 3, .stride = 2}}) {
    check_runs(narrow_convolution(kU8S8, c), 1);
  }
  check_runs(narrow_convolution(kHalves, {.width = 7, .channels = 32, .filters = 32, .window = 3}));
  check_runs(requantized_pixels());
}

// Two products, of which the second, half as deep, reads what the first made; C = u8 of a scaled sum,
// which is too much to be done anew for each column of the second.
constexpr const char* kTwoLayers = R"(
program t(A: u8[50, 64], const B: i8[64, 32], const D: i8[32, 33]) -> (E: i32[50, 33]) {
  buffer T: i32[50, 32] global
  buffer C: u8[50, 32] global
  for i in 50 { for j in 32 { for k in 64 { block "T" [vi: S(50) = i, vj: S(32) = j, vk: R(64) = k] {
    init { T[vi, vj] = 0i32 } T[vi, vj] = T[vi, vj] + i32(A[vi, vk])*i32(B[vk, vj]) } } } }
  for i2 in 50 { for j2 in 32 { block "C" [wi: S(50) = i2, wj: S(32) = j2] {
    C[wi, wj] = u8(min(max(round(f32(T[wi, wj])*0.5f32), 0f32), 255f32)) } } }
  for i3 in 50 { for j3 in 33 { for k3 in 32 {
    block "E" [ui: S(50) = i3, uj: S(33) = j3, uk: R(32) = k3] {
      init { E[ui, uj] = 0i32 } E[ui, uj] = E[ui, uj] + i32(C[ui, uk])*i32(D[uk, uj]) } } } } })";

TEST_CASE("products of one program, with sizes of their own, run one after the other") {
  const std::string both = ir::print(default_candidate(task_of(kTwoLayers)).program);
  INFO(both);
  REQUIRE(both.find("x86_tdpbusd_10x16x64") != both.npos);
  REQUIRE(both.find("x86_tdpbusd_10x16x32") != both.npos);
  check_runs(kTwoLayers);
}

TEST_CASE("the extremes of bytes do not saturate on matrix tiles") {
  if (!has_tiles_here()) return;
  for (const NarrowTypes& t : {kU8S8, kS8S8, kS8U8, kU8U8}) {
    const Task task = task_of(narrow_product(t, {16, 32, 128}));
    const Candidate made = default_candidate(task);
    std::vector<ir::Tensor> inputs;
    for (const ir::BufferId id : {task.base.params()[0], task.base.params()[1]}) {
      const ir::Buffer& buffer = task.base.buffer(id);
      const std::vector<int64_t> shape =
          inputs.empty() ? std::vector<int64_t>{16, 128} : std::vector<int64_t>{128, 32};
      inputs.emplace_back(buffer.dtype, shape);
      for (int64_t i = 0; i < shape[0] * shape[1]; ++i) {
        const int64_t value = i % 3 == 0 ? ir::max_int(buffer.dtype) : ir::min_int(buffer.dtype);
        inputs.back().set(i, static_cast<double>(value));
      }
    }
    RunOptions options;
    options.target = target();
    const Result<std::vector<ir::Tensor>> got = compile_and_run(made.program, inputs, options);
    REQUIRE_OK(got);
    INFO(t.a << " " << t.b);
    CHECK(first_difference(interpret_or_die(task.base, inputs), *got) == "");
  }
}

TEST_CASE("sums of bf16 on matrix tiles are as near as those of f32") {
  if (!has_tiles_here()) return;
  const Task task = task_of(narrow_product(kHalves, {20, 32, 100}));
  const Candidate made = default_candidate(task);
  std::vector<ir::Tensor> inputs = {ir::Tensor(ir::DType::kBF16, {20, 100}),
                                    ir::Tensor(ir::DType::kBF16, {100, 32})};
  Rng rng(first_seed());
  for (ir::Tensor& tensor : inputs) {
    for (int64_t i = 0; i < tensor.shape[0] * tensor.shape[1]; ++i) {
      tensor.set(i, 2 * rng.uniform() - 1);
    }
  }
  RunOptions options;
  options.target = target();
  const Result<std::vector<ir::Tensor>> got = compile_and_run(made.program, inputs, options);
  REQUIRE_OK(got);
  const ir::Tensor wanted = interpret_or_die(task.base, inputs)[0];
  // Each of 100 sums may round by half a unit of a number below 16.
  for (int64_t i = 0; i < 20 * 32; ++i) {
    CHECK(std::abs(wanted.get(i) - (*got)[0].get(i)) < 1e-4);
  }
}

TEST_CASE("infinities and NaN of bf16 on matrix tiles stay in their rows and columns") {
  if (!has_tiles_here()) return;
  // Rows, columns and k are all padded, but in the second.
  for (const NarrowShape& s : {NarrowShape{17, 37, 35}, {32, 32, 64}, {49, 20, 33}}) {
    const Task task = task_of(narrow_product(kHalves, s));
    Rng rng(first_seed());
    std::vector<ir::Tensor> inputs = random_inputs(task.base, rng);
    set_non_finite(&inputs);
    RunOptions options;
    options.target = target();
    const Result<std::vector<ir::Tensor>> got =
        compile_and_run(default_candidate(task).program, inputs, options);
    REQUIRE_OK(got);
    CHECK(has_same_values(interpret_or_die(task.base, inputs)[0], (*got)[0]));
  }
}

// Whether somewhere between labels and branches there are instructions of both names.
bool are_side_by_side(const std::string& assembly, const std::string& a, const std::string& b) {
  bool has_a = false, has_b = false;
  for (std::size_t at = 0; at < assembly.size();) {
    const std::size_t end = std::min(assembly.find('\n', at), assembly.size());
    const std::string line = assembly.substr(at, end - at);
    if (line.rfind(".L", 0) == 0 || line.rfind("\tj", 0) == 0) has_a = has_b = false;
    has_a = has_a || line.find("\t" + a) != line.npos;
    has_b = has_b || line.find("\t" + b) != line.npos;
    if (has_a && has_b) return true;
    at = end + 1;
  }
  return false;
}

TEST_CASE("the inner loop is products on matrix tiles, and accumulators stay where they are") {
  for (const auto& [types, name] :
       {std::pair{kU8S8, "tdpbusd"}, {kS8S8, "tdpbssd"}, {kHalves, "tdpbf16ps"}}) {
    const std::string text = assembly_of(narrow_product(types, {128, 128, 4096}));
    INFO(name);
    CHECK(most_in_a_loop(text, name) >= 4);
    CHECK(are_side_by_side(text, name, "tileload"));
    CHECK_FALSE(are_side_by_side(text, name, "tilestore"));
  }
}

}  // namespace
}  // namespace prunerc

// Sketches of narrow products on matrix tiles: which there are, of what sizes, and what they compute.
#include "costmodel/feature/features.h"
#include "costmodel/latency/roofline.h"
#include "costmodel/latency/symbols.h"
#include "ir/analysis/prologue.h"
#include "ir/printer.h"
#include "ir/query.h"
#include "ir/tensor/intrinsic.h"
#include "ir/visit.h"
#include "schedule/parametric/parametric.h"
#include "schedule/schedule.h"
#include "search/record/plausible.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "search/space/variation.h"
#include "tests/search/parametric_check.h"
#include "tests/support/check.h"
#include "tests/support/narrow_products.h"
#include "tests/support/program_gen.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

constexpr const char* kTarget = "cpu:sapphirerapids num_threads=2";

Task task_of(const std::string& text, const std::string& target = kTarget) {
  return make_task("p", parse_or_die(text), ir::target_from_string(target).value());
}

SearchSpace space_of(const Task& task) {
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  return *space;
}

std::vector<int> amx_sketches(const SearchSpace& space) {
  std::vector<int> out;
  for (std::size_t i = 0; i < space.sketches.size(); ++i) {
    if (space.sketches[i].name.rfind("amx", 0) == 0) out.push_back(static_cast<int>(i));
  }
  return out;
}

// The trace of sketch "amx"; "" if there is none.
std::string trace_of(const std::string& text, const std::string& target = kTarget) {
  const SearchSpace space = space_of(task_of(text, target));
  for (const Sketch& sketch : space.sketches) {
    if (sketch.name == "amx") return schedule::print(sketch.trace);
  }
  return "";
}

bool has(const std::string& trace, const std::string& part) {
  return trace.find(part) != std::string::npos;
}

// "16x16x64" of the product's instruction; "" if it has no such sketch.
std::string sizes_of(const std::string& text, const std::string& target = kTarget) {
  const std::string trace = trace_of(text, target);
  const std::size_t name = trace.find("x86_tdp");
  if (name == trace.npos) return "";
  const std::size_t begin = trace.find('_', name + 4) + 1;
  return trace.substr(begin, trace.find('"', begin) - begin);
}

std::string sizes_of(const NarrowTypes& types, const NarrowShape& shape) {
  return sizes_of(narrow_product(types, shape));
}

/// Heuristic and drawn decisions compute what the operator does, bit by bit on small whole numbers.
void check_computes(const std::string& text, int num_drawn = 2) {
  INFO(text);
  const Task task = task_of(text);
  const SearchSpace space = space_of(task);
  REQUIRE_FALSE(amx_sketches(space).empty());
  Rng inputs_rng(first_seed());
  const std::vector<ir::Tensor> inputs = random_inputs(task.base, inputs_rng);
  const std::vector<ir::Tensor> wanted = interpret_or_die(task.base, inputs);
  for (const int sketch : amx_sketches(space)) {
    for (int i = 0; i <= num_drawn; ++i) {
      Rng rng(first_seed(), static_cast<uint64_t>(sketch), static_cast<uint64_t>(i));
      const Genome genome =
          i == 0 ? default_genome(space, sketch) : random_genome(space, sketch, rng);
      const Result<Candidate> made = instantiate(task, space, sketch, genome.decisions);
      if (i == 0) REQUIRE_OK(made);
      if (!made.ok()) continue;
      const std::string difference =
          first_difference(wanted, interpret_or_die(made->program, inputs));
      INFO(ir::print(made->program));
      CHECK(difference == "");
    }
  }
}

TEST_CASE("products of bytes and bf16 have sketches on matrix tiles where the target has these") {
  const NarrowShape s = {32, 64, 128};
  for (const NarrowTypes& t : {kU8S8, kS8S8, kS8U8, kU8U8, kHalves}) {
    CHECK(trace_of(narrow_product(t, s)) != "");
    CHECK(trace_of(narrow_product(t, s), "cpu:icelake-server") == "");
    CHECK(trace_of(narrow_product(t, s), "cpu:znver4") == "");
    CHECK(trace_of(narrow_product(t, s), "cpu:haswell") == "");
  }
  // Each of the two sets is taken away by name.
  const std::string no_bytes = "cpu:sapphirerapids llvm_features=-amx-int8";
  const std::string no_halves = "cpu:sapphirerapids llvm_features=-amx-bf16";
  CHECK(trace_of(narrow_product(kU8S8, s), no_bytes) == "");
  CHECK(trace_of(narrow_product(kHalves, s), no_bytes) != "");
  CHECK(trace_of(narrow_product(kU8S8, s), no_halves) != "");
  CHECK(trace_of(narrow_product(kHalves, s), no_halves) == "");
  // Without the registers there is none of them.
  const std::string no_registers = "cpu:sapphirerapids llvm_features=-amx-tile";
  for (const NarrowTypes& t : {kU8S8, kHalves}) {
    const SearchSpace space = space_of(task_of(narrow_product(t, s), no_registers));
    CHECK(amx_sketches(space).empty());
    for (const Sketch& sketch : space.sketches) {
      CHECK_FALSE(has(schedule::print(sketch.trace), "x86_tdp"));
    }
  }
}

TEST_CASE("a transposed operand goes to matrix tiles also where there is no dot instruction") {
  const std::string text = narrow_product(kHalves, {32, 64, 128}, "M K | vi, vk", "N K | vj, vk");
  CHECK(sizes_of(text, "cpu:sapphirerapids llvm_features=-avx512bf16") == "16x16x32");
  CHECK(sizes_of(text) == "16x16x32");
}

TEST_CASE("signs of the operands choose the instruction") {
  const NarrowShape s = {32, 64, 128};
  CHECK(has(trace_of(narrow_product(kS8S8, s)), "\"x86_tdpbssd_16x16x64\""));
  CHECK(has(trace_of(narrow_product(kS8U8, s)), "\"x86_tdpbsud_16x16x64\""));
  CHECK(has(trace_of(narrow_product(kU8S8, s)), "\"x86_tdpbusd_16x16x64\""));
  CHECK(has(trace_of(narrow_product(kU8U8, s)), "\"x86_tdpbuud_16x16x64\""));
  CHECK(has(trace_of(narrow_product(kHalves, s)), "\"x86_tdpbf16ps_16x16x32\""));
}

TEST_CASE("rows of a tile divide their axis, or zeros fill the last tile") {
  const auto rows_of = [](int m) { return sizes_of(kU8S8, {m, 64, 64}); };
  CHECK(rows_of(4) == "4x16x64");
  CHECK(rows_of(7) == "7x16x64");
  CHECK(rows_of(16) == "16x16x64");
  CHECK(rows_of(24) == "12x16x64");
  CHECK(rows_of(28) == "14x16x64");
  CHECK(rows_of(48) == "16x16x64");
  CHECK(rows_of(100) == "10x16x64");
  CHECK(rows_of(18) == "9x16x64");
  CHECK(rows_of(17) == "9x16x64");
  CHECK(rows_of(49) == "13x16x64");
  CHECK(rows_of(127) == "16x16x64");
  CHECK_FALSE(has(trace_of(narrow_product(kU8S8, {100, 64, 64})), "pad_einsum"));
  CHECK_FALSE(has(trace_of(narrow_product(kU8S8, {18, 64, 64})), "pad_einsum"));
  CHECK(has(trace_of(narrow_product(kU8S8, {49, 64, 64})), "pad_einsum"));
}

TEST_CASE("an instruction takes a whole row of k unless half of one is enough") {
  const auto depth_of = [](int k) { return sizes_of(kU8S8, {32, 64, k}); };
  CHECK(depth_of(16) == "16x16x32");
  CHECK(depth_of(32) == "16x16x32");
  CHECK(depth_of(33) == "16x16x64");
  CHECK(depth_of(48) == "16x16x64");
  CHECK(depth_of(96) == "16x16x32");
  CHECK(depth_of(100) == "16x16x64");
  CHECK(depth_of(224) == "16x16x64");
  CHECK(sizes_of(kHalves, {32, 64, 16}) == "16x16x16");
  CHECK(sizes_of(kHalves, {32, 64, 17}) == "16x16x32");
  CHECK(sizes_of(kHalves, {32, 64, 48}) == "16x16x16");
  CHECK(sizes_of(kHalves, {32, 64, 64}) == "16x16x32");
}

TEST_CASE("few rows, or a short sum, are left to dot instructions") {
  for (const NarrowShape& s : {NarrowShape{1, 64, 64}, {3, 64, 64}, {32, 64, 3}, {32, 64, 15}}) {
    const SearchSpace space = space_of(task_of(narrow_product(kU8S8, s)));
    INFO(s.m << " " << s.k);
    CHECK(amx_sketches(space).empty());
    CHECK(std::any_of(space.sketches.begin(), space.sketches.end(),
                      [](const Sketch& sketch) { return sketch.name == "narrow"; }));
  }
}

TEST_CASE("sketches on dot instructions stay, and use no matrix tiles") {
  for (const NarrowTypes& t : {kU8S8, kS8S8, kU8U8, kHalves}) {
    const SearchSpace space = space_of(task_of(narrow_product(t, {32, 64, 128})));
    int num_narrow = 0;
    for (const Sketch& sketch : space.sketches) {
      if (sketch.name.rfind("amx", 0) == 0) continue;
      CHECK_FALSE(has(schedule::print(sketch.trace), "x86_tdp"));
      num_narrow += sketch.name == "narrow" ? 1 : 0;
    }
    CHECK(num_narrow == 1);
  }
}

TEST_CASE("other types, sums of one operand and windows along the lanes have no matrix tiles") {
  const NarrowShape s = {32, 64, 64};
  CHECK(trace_of(narrow_product({"f32", "f32", "f32"}, s)) == "");
  CHECK(trace_of(narrow_product({"f16", "f16", "f32"}, s)) == "");
  CHECK(trace_of(narrow_product({"bf16", "bf16", "bf16"}, s)) == "");
  CHECK(trace_of(narrow_product({"i8", "i8", "f32"}, s)) == "");
  CHECK(trace_of(narrow_product({"i32", "i32", "i32"}, s)) == "");
  CHECK(trace_of(narrow_product({"i8", "i32", "i32"}, s)) == "");
  // Of one buffer no operand alone can be laid out.
  CHECK_FALSE(has(trace_of(R"(
program x(X: u8[32, 64]) -> (C: i32[32, 32]) { for i in 32 { for j in 32 { for k in 64 {
  block "C" [vi: S(32) = i, vj: S(32) = j, vk: R(64) = k] {
    init { C[vi, vj] = 0i32 }
    C[vi, vj] = C[vi, vj] + i32(X[vi, vk])*i32(X[vj, vk]) } } } } })"),
                  "x86_tdp"));
  CHECK(trace_of(R"(
program s(A: u8[32, 64]) -> (C: i32[32]) { for i in 32 { for k in 64 {
  block "C" [vi: S(32) = i, vk: R(64) = k] {
    init { C[vi] = 0i32 } C[vi] = C[vi] + i32(A[vi, vk]) } } } })") == "");
  CHECK(trace_of(R"(
program w(X: u8[95], F: i8[64]) -> (Y: i32[32]) { for o in 32 { for k in 64 {
  block "Y" [vo: S(32) = o, vk: R(64) = k] {
    init { Y[vo] = 0i32 } Y[vo] = Y[vo] + i32(X[vo + vk])*i32(F[vk]) } } } })") == "");
}

TEST_CASE("pixels are read as they lie where no tile crosses from one row to the next") {
  const auto conv = [](int width, int channels) {
    return narrow_convolution(kU8S8, {.width = width, .channels = channels, .filters = 32});
  };
  CHECK(sizes_of(conv(14, 64)) == "14x16x64");
  CHECK(num_times(trace_of(conv(14, 64)), "reindex_cache_read") == 1);
  CHECK(sizes_of(conv(28, 64)) == "14x16x64");
  // 7 pixels would leave instructions idle: 49 of them are copied.
  CHECK(sizes_of(conv(7, 64)) == "13x16x64");
  CHECK(num_times(trace_of(conv(7, 64)), "reindex_cache_read") == 2);
  CHECK(has(trace_of(conv(7, 64)), "pad_einsum"));
}

TEST_CASE("windows are not copied: rows of their tiles divide a row of pixels") {
  const auto sizes = [](int width, int stride) {
    return sizes_of(narrow_convolution(
        kU8S8, {.width = width, .channels = 64, .filters = 32, .window = 3, .stride = stride}));
  };
  CHECK(sizes(7, 1) == "7x16x64");
  CHECK(sizes(14, 2) == "14x16x64");
  CHECK(sizes(35, 1) == "7x16x64");
  // 17 has no divisor of four or more but itself.
  CHECK(sizes(17, 1) == "");
}

// Copies that unrolled loops make of the instruction; the most where it stands several times.
int64_t copies_of_instruction(ir::Stmt s, int64_t outside = 1) {
  if (!s.defined()) return 0;
  const auto* loop = s.as<ir::Loop>();
  if (loop != nullptr && ir::tensor_of(*loop)) return outside;
  if (loop != nullptr && loop->loop_kind == ir::LoopKind::kUnrolled) {
    outside *= ir::constant_value(loop->extent).value_or(1);
  }
  int64_t most = 0;
  ir::for_each_child(
      s, [&](ir::Stmt child) { most = std::max(most, copies_of_instruction(child, outside)); },
      [](ir::Expr) {});
  return most;
}

TEST_CASE("a register tile has at most six accumulators") {
  struct Case {
    NarrowShape shape;
    int64_t most;
  };
  for (const Case& c : {Case{{96, 128, 512}, 6},
                        {{16, 128, 512}, 4},
                        {{32, 128, 512}, 6},
                        {{96, 16, 512}, 4},
                        {{127, 100, 512}, 6}}) {
    const Task task = task_of(narrow_product(kU8S8, c.shape));
    const SearchSpace space = space_of(task);
    REQUIRE_FALSE(amx_sketches(space).empty());
    const int sketch = amx_sketches(space)[0];
    int64_t most = 0;
    for (int i = 0; i < 40; ++i) {
      Rng rng(first_seed(), static_cast<uint64_t>(i));
      const std::vector<schedule::Decision> decisions = random_genome(space, sketch, rng).decisions;
      const Result<Candidate> made = instantiate(task, space, sketch, decisions);
      if (made.ok()) most = std::max(most, copies_of_instruction(made->program.root()));
    }
    INFO(c.shape.m << " " << c.shape.n);
    CHECK(most <= c.most);
    CHECK(most >= 2);
  }
}

TEST_CASE("candidates on matrix tiles compute the product, whatever its extents") {
  for (const NarrowShape& s : {NarrowShape{32, 32, 64},
                               {17, 16, 48},
                               {49, 37, 100},
                               {100, 5, 16},
                               {127, 17, 16},
                               {7, 49, 130}}) {
    check_computes(narrow_product(kU8S8, s));
  }
  check_computes(narrow_product(kS8S8, {20, 33, 70}));
  check_computes(narrow_product(kS8U8, {20, 33, 70}));
  check_computes(narrow_product(kU8U8, {20, 33, 70}));
  check_computes(narrow_product(kHalves, {20, 33, 35}));
  check_computes(narrow_product(kHalves, {19, 16, 48}));
  check_computes(narrow_product(kU8S8, {20, 18, 1040}), 1);
}

TEST_CASE("operands on matrix tiles lie in any order, and need not be const") {
  check_computes(narrow_product(kU8S8, {19, 40, 24}, "M K | vi, vk", "N K | vj, vk", false));
  check_computes(narrow_product(kU8S8, {19, 40, 22}, "K M | vk, vi", "K N | vk, vj", false));
  check_computes(narrow_product(kS8S8, {32, 33, 64}, "K M | vk, vi", "N K | vj, vk"));
  check_computes(narrow_batch(kU8S8, 3, {20, 18, 40}));
}

TEST_CASE("convolutions on matrix tiles compute what they are") {
  for (const NarrowConvolution& c :
       {NarrowConvolution{.width = 7, .channels = 40, .filters = 18},
        {.width = 14, .channels = 32, .filters = 16},
        {.width = 5, .channels = 32, .filters = 16, .stride = 2},
        {.width = 7, .channels = 32, .filters = 16, .window = 3},
        {.width = 6, .channels = 20, .filters = 17, .window = 2, .stride = 2}}) {
    check_computes(narrow_convolution(kU8S8, c), 1);
  }
}

// C = i8 of a scaled sum.
constexpr const char* kRequantized = R"(
program q(A: u8[19, 40], const B: i8[40, 35], const S: f32[35]) -> (C: i8[19, 35]) {
  buffer T: i32[19, 35] global
  for i in 19 { for j in 35 { for k in 40 { block "T" [vi: S(19) = i, vj: S(35) = j, vk: R(40) = k] {
    init { T[vi, vj] = 0i32 } T[vi, vj] = T[vi, vj] + i32(A[vi, vk])*i32(B[vk, vj]) } } } }
  for i2 in 19 { for j2 in 35 { block "C" [wi: S(19) = i2, wj: S(35) = j2] {
    C[wi, wj] = i8(min(max(round(f32(T[wi, wj])*S[wj]), -128f32), 127f32)) } } } })";

bool holds(ir::Stmt s, const std::function<bool(ir::Stmt)>& fits) {
  bool found = false;
  ir::walk(
      s,
      [&](ir::Stmt part) {
        found = found || fits(part);
        return !found;
      },
      [](ir::Expr) {});
  return found;
}

// Whether some loop has instructions on matrix tiles in it, and what stores the program's result.
bool finishes_tiles_in_their_loops(const ir::Program& program) {
  const auto is_instruction = [](ir::Stmt s) {
    const auto* loop = s.as<ir::Loop>();
    return loop != nullptr && ir::tensor_of(*loop).value_or("").starts_with("x86_tdp");
  };
  const auto stores_result = [&](ir::Stmt s) {
    const auto* store = s.as<ir::Store>();
    return store != nullptr && program.buffer(store->buffer).role == ir::BufferRole::kOutput;
  };
  return holds(program.root(), [&](ir::Stmt s) {
    return s.as<ir::Loop>() != nullptr && holds(s, is_instruction) && holds(s, stores_result);
  });
}

TEST_CASE("an epilogue is part of the tiles' loops, and const operands are packed once") {
  check_computes(kRequantized);
  const Task task = task_of(kRequantized);
  const SearchSpace space = space_of(task);
  for (const int sketch : amx_sketches(space)) {
    const Result<Candidate> made = instantiate(task, space, sketch, {});
    REQUIRE_OK(made);
    CHECK_FALSE(ir::find_prologue(made->program).results.empty());
    CHECK(finishes_tiles_in_their_loops(made->program));
  }
}

TEST_CASE("pixels of a convolution with an epilogue are computed as they are") {
  check_computes(requantized_pixels());
}

TEST_CASE("zeros beyond the ends of bf16 meet no infinity or NaN of a result") {
  // Rows, columns and k are all padded, but in the second.
  for (const NarrowShape& s : {NarrowShape{17, 37, 35}, {32, 32, 64}, {49, 20, 33}}) {
    const Task task = task_of(narrow_product(kHalves, s));
    const SearchSpace space = space_of(task);
    REQUIRE_FALSE(amx_sketches(space).empty());
    Rng rng(first_seed());
    std::vector<ir::Tensor> inputs = random_inputs(task.base, rng);
    set_non_finite(&inputs);
    const ir::Tensor wanted = interpret_or_die(task.base, inputs)[0];
    for (const int sketch : amx_sketches(space)) {
      const Result<Candidate> made = instantiate(task, space, sketch, {});
      REQUIRE_OK(made);
      INFO(ir::print(made->program));
      CHECK(has_same_values(wanted, interpret_or_die(made->program, inputs)[0]));
    }
  }
}

TEST_CASE("a long sum is cut into parts whose panels stay in the cache") {
  const auto names = [](const NarrowShape& s) {
    std::string out;
    const SearchSpace space = space_of(task_of(narrow_product(kU8S8, s)));
    for (const int i : amx_sketches(space)) {
      out += space.sketches[static_cast<std::size_t>(i)].name + " ";
    }
    return out;
  };
  CHECK(names({32, 64, 512}) == "amx ");
  CHECK(names({32, 64, 1024}) == "amx amx+block ");
}

TEST_CASE("sketches on matrix tiles have parameters, and instances that are what a replay gives") {
  InstanceCount count;
  for (const std::string& text :
       {narrow_product(kU8S8, {96, 128, 192}), narrow_product(kS8S8, {49, 40, 100}),
        narrow_convolution(kU8S8, {.width = 14, .channels = 64, .filters = 32}),
        narrow_convolution(kU8S8, {.width = 7, .channels = 32, .filters = 32, .window = 3}),
        std::string(kRequantized)}) {
    compare_instances(task_of(text), 4, &count);
  }
  print_count("amx", count);
  // One of `narrow+block` is not, on any target.
  CHECK(count.parametric + 1 >= count.sketches);
  CHECK(count.differs == 0);
}

TEST_CASE("what a draft sees of a candidate on matrix tiles is what its program has") {
  const auto has_guards = [](const ir::Program& program) {
    return holds(program.root(), [](ir::Stmt s) {
      const auto* block = s.as<ir::Block>();
      return s.as<ir::If>() != nullptr || (block != nullptr && block->guard.defined());
    });
  };
  for (const NarrowShape& shape : {NarrowShape{96, 128, 320}, {49, 100, 100}}) {
    const Task task = task_of(narrow_product(kU8S8, shape));
    const SearchSpace space = space_of(task);
    for (const int sketch : amx_sketches(space)) {
      const Sketch& from = space.sketches[static_cast<std::size_t>(sketch)];
      const Result<schedule::Parametric> made = schedule::parametrize(task.base, from.trace);
      REQUIRE_OK(made);
      const costmodel::LatencySymbols symbols =
          costmodel::latency_symbols(made->program, task.target);
      int num_even = 0, num_ragged = 0;
      for (int i = 0; i < 30; ++i) {
        Rng rng(first_seed(), static_cast<uint64_t>(sketch), static_cast<uint64_t>(i));
        const Genome genome = random_genome(space, sketch, rng);
        const Result<std::vector<int64_t>> values = param_values(*made, genome.decisions);
        const Result<Candidate> candidate = instantiate(task, space, sketch, genome.decisions);
        if (!values.ok() || !candidate.ok()) continue;
        const std::vector<double> params(values->begin(), values->end());
        const costmodel::Sym wanted[] = {symbols.total_ns};
        INFO(from.name << " case " << i);
        const double drafted = costmodel::evaluate(wanted, params)[0];
        // What a guard leaves out is a share to a draft.
        const bool is_even = !has_guards(candidate->program);
        ++(is_even ? num_even : num_ragged);
        CHECK(drafted == Approx(candidate->predicted_ns).epsilon(is_even ? 1e-9 : 0.1));
        // Of a statement inside of an instruction, too.
        const costmodel::ModelFeatures features =
            costmodel::extract(candidate->program, task.target);
        CHECK_FALSE(features.statements.empty());
        for (const auto& statement : features.statements) {
          CHECK(std::all_of(statement.begin(), statement.end(),
                            [](float value) { return std::isfinite(value); }));
        }
      }
      INFO(from.name << ": " << num_even << " even, " << num_ragged << " ragged");
      CHECK(num_even + num_ragged >= 5);
      if (shape.m == 96) CHECK(num_even >= 5);
    }
  }
}

TEST_CASE("an estimate counts products on matrix tiles as their unit does") {
  const ir::Target target = *ir::target_from_string("cpu:sapphirerapids num_threads=1");
  const NarrowShape s = {512, 512, 512};
  const double macs = 512.0 * 512 * 512;
  for (const auto& [types, per_cycle] : {std::pair{kU8S8, 1024.0}, {kHalves, 512.0}}) {
    const Task task = make_task("p", parse_or_die(narrow_product(types, s)), target);
    const SearchSpace space = space_of(task);
    const Result<Candidate> best = heuristic_candidate(task, space);
    REQUIRE_OK(best);
    // What -O0 takes, near the rate of the unit: copies of A and B aside, and of what comes from L2.
    CHECK(space.sketches[static_cast<std::size_t>(best->sketch)].name.rfind("amx", 0) == 0);
    const double unit_ns = macs / per_cycle / target.platform.clock_ghz;
    INFO(types.a << " " << best->predicted_ns / unit_ns);
    CHECK(best->predicted_ns > unit_ns);
    CHECK(best->predicted_ns < 3 * unit_ns);
  }
}

TEST_CASE("a claimed time may be an eighth of what is possible without matrix tiles") {
  const std::string text = narrow_product(kU8S8, {512, 512, 512});
  const double with = least_possible_ns(task_of(text));
  const double without = least_possible_ns(task_of(text, "cpu:icelake-server num_threads=2"));
  CHECK(with == Approx(without / 8));
  CHECK(with < 512.0 * 512 * 512 / 1024 / 2 / 4);  // two cores at 4 GHz
  // Only of what they multiply.
  const std::string floats = narrow_product({"f32", "f32", "f32"}, {512, 512, 512});
  CHECK(least_possible_ns(task_of(floats)) ==
        Approx(least_possible_ns(task_of(floats, "cpu:icelake-server num_threads=2"))));
  const std::string no_bytes = "cpu:sapphirerapids num_threads=2 llvm_features=-amx-int8";
  CHECK(least_possible_ns(task_of(text, no_bytes)) == Approx(without));
}

}  // namespace
}  // namespace prunerc

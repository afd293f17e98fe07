// Attention in one pass over tiles of keys, rows in registers: one kernel, right on the host in several orders and under the
// race checker; faults in what lanes give each other and in the rescaling are found.
#include "codegen/codegen.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/pipeline.h"
#include "ir/builder.h"
#include "ir/fpv/fpv.h"
#include "ir/lang/lang.h"
#include "ir/map.h"
#include "ir/printer.h"
#include "schedule/legality/gpu_limits.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "search/tune/sampled.h"
#include "tests/codegen/gpu_run.h"
#include "tests/support/check.h"
#include "tests/support/operators.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prunerc::testing {
namespace {

constexpr std::string_view kSketch = "gpu+tensor+chain+online";

ir::Target online_target() { return gpu_target("cuda-host:sm_80"); }

// An operator of split_chained_text, or of another text, with other extents.
ir::Program split(std::string_view op, std::string_view bindings,
                  std::string_view text = split_chained_text()) {
  lang::CompileInput input;
  input.file_name = "op.prn";
  input.text = std::string(text);
  input.op = std::string(op);
  std::string words(bindings);
  while (!words.empty()) {
    const std::size_t equals = words.find('='), end = std::min(words.find(' '), words.size());
    input.bindings[words.substr(0, equals)] = words.substr(equals + 1, end - equals - 1);
    words = words.substr(std::min(end + 1, words.size()));
  }
  const lang::LangResult compiled = lang::compile(input);
  INFO(compiled.rendered);
  REQUIRE(compiled.program.has_value());
  return *compiled.program;
}

// split_attention with other words.
std::string replaced(std::initializer_list<std::pair<std::string_view, std::string_view>> words) {
  std::string text(split_chained_text().substr(0, split_chained_text().find("\nop ", 1) + 1));
  for (const auto& [from, to] : words) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
  }
  return text;
}

// Heads innermost.
ir::Program turned(std::string_view bindings) {
  return split("split_attention", bindings,
               replaced({{"(O: f16[H,T,E])", "(O: f16[T,E,H])"}, {"O[h,t,e]  ", "O[t,e,h]  "}}));
}

// What combines tiles is a result as well.
ir::Program with_sums(std::string_view bindings) {
  return split("split_attention", bindings,
               replaced({{"(O: f16[H,T,E])", "(O: f16[H,T,E], M: f32[H,T], L: f32[H,T])"},
                         {"let M[h,t]", "M[h,t]"},
                         {"let L[h,t]", "L[h,t]"}}));
}

// Attention as it is written without tiles.
constexpr std::string_view kWhole = R"(
op attention<H=2, T=64, S=128, E=32>(Q: f16[H,T,E], K: f16[H,S,E], V: f16[H,S,E]) -> (O: f16[H,T,E]) {
  let a[h,t,s] = (sum:f32[e] Q[h,t,e] * K[h,s,e]) * (1 / sqrt(E));
  let m[h,t]   = max[s] a[h,t,s];
  let p[h,t,s] = f16(exp(a[h,t,s] - m[h,t]));
  let l[h,t]   = sum:f32[s] p[h,t,s];
  let o[h,t,e] = sum:f32[s] p[h,t,s] * V[h,s,e];
  O[h,t,e]     = f16(o[h,t,e] / l[h,t]);
}
op causal_attention<H=2, T=96, E=16>(Q: bf16[H,T,E], K: bf16[H,T,E], V: bf16[H,T,E]) -> (O: bf16[H,T,E]) {
  let a[h,t,s] = (sum:f32[e] Q[h,t,e] * K[h,s,e]) * (1 / sqrt(E));
  let m[h,t]   = max[s | s <= t] a[h,t,s];
  let p[h,t,s] = if s <= t then bf16(exp(a[h,t,s] - m[h,t])) else bf16(0);
  let l[h,t]   = sum:f32[s] p[h,t,s];
  let o[h,t,e] = sum:f32[s] p[h,t,s] * V[h,s,e];
  O[h,t,e]     = bf16(o[h,t,e] / l[h,t]);
}
op windowed<H=2, T=128, E=16, W=24>(Q: f16[H,T,E], K: f16[H,T,E], V: f16[H,T,E]) -> (O: f16[H,T,E]) {
  let a[h,t,s] = (sum:f32[e] Q[h,t,e] * K[h,s,e]) * (1 / sqrt(E));
  let m[h,t]   = max[s | s <= t && t < s + W] a[h,t,s];
  let p[h,t,s] = if s <= t && t < s + W then f16(exp(a[h,t,s] - m[h,t])) else f16(0);
  let l[h,t]   = sum:f32[s] p[h,t,s];
  let o[h,t,e] = sum:f32[s] p[h,t,s] * V[h,s,e];
  O[h,t,e]     = f16(o[h,t,e] / l[h,t]);
}
op grouped<H=4, G=2, T=32, S=64, E=16>(Q: f16[H,T,E], K: f16[H/G,S,E], V: f16[H/G,S,E])
   -> (O: f16[H,T,E], m: f32[H,T]) where H % G == 0 {
  let a[h,t,s] = (sum:f32[e] Q[h,t,e] * K[h/G,s,e]) * (1 / sqrt(E));
  m[h,t]       = max[s] a[h,t,s];
  let p[h,t,s] = f16(exp(a[h,t,s] - m[h,t]));
  let l[h,t]   = sum:f32[s] p[h,t,s];
  let o[h,t,e] = sum:f32[s] p[h,t,s] * V[h/G,s,e];
  O[h,t,e]     = f16(o[h,t,e] / l[h,t]);
}
)";

ir::Program whole(std::string_view op, std::string_view bindings) {
  return split(op, bindings, kWhole);
}

// The first operator with other words.
ir::Program whole_with(std::initializer_list<std::pair<std::string_view, std::string_view>> words) {
  std::string text(kWhole.substr(0, kWhole.find("\nop ", 1) + 1));
  for (const auto& [from, to] : words) text = testing::replaced(text, from, to);
  return split("attention", "", text);
}

int sketch_of(const search::SearchSpace& space) {
  for (std::size_t s = 0; s < space.sketches.size(); ++s) {
    if (space.sketches[s].name == kSketch) return static_cast<int>(s);
  }
  return -1;
}

bool has_sketch(const ir::Program& program, const ir::Target& target = online_target()) {
  const Result<search::SearchSpace> space =
      search::make_space(search::make_task("op", program, target));
  REQUIRE_OK(space);
  return sketch_of(*space) >= 0;
}

// The default; by `choose` others.
Result<search::Candidate> drawn(
    const ir::Program& program,
    const std::function<void(const search::SearchSpace&, search::Genome*)>& choose = {}) {
  const search::Task task = search::make_task("op", program, online_target());
  const Result<search::SearchSpace> space = search::make_space(task);
  REQUIRE_OK(space);
  const int sketch = sketch_of(*space);
  REQUIRE(sketch >= 0);
  search::Genome genome = search::default_genome(*space, sketch);
  if (choose) choose(*space, &genome);
  return search::instantiate(task, *space, sketch, genome.decisions);
}

// One warp, two tiles of rows each.
Result<search::Candidate> in_two_tiles(const ir::Program& program) {
  return drawn(program, [](const search::SearchSpace&, search::Genome* genome) {
    REQUIRE(genome->decisions.size() >= 2);
    genome->decisions[0] = {0};
    genome->decisions[1] = {1};
  });
}

std::vector<ir::Program> operators() {
  return {split("split_attention", "H=1 T=32 S=64 E=16 B=16"),
          split("split_attention", "H=2 T=64 S=96 E=32 B=32"),
          split("split_attention", "H=1 T=64 S=192 E=64 B=64"),
          split("split_causal_attention", "H=1 T=96 E=16 B=32"),
          turned("H=16 T=32 S=32 E=16 B=16"),
          with_sums("H=2 T=32 S=64 E=16 B=16")};
}

// Tiles of 64, 32 and 16 keys; a single head; masks; rows' maxima as a result.
std::vector<ir::Program> whole_operators() {
  return {whole("attention", "H=2 T=64 S=128 E=32"),
          whole("attention", "H=1 T=32 S=96 E=64"),
          whole("attention", "H=2 T=48 S=48 E=16"),
          whole("causal_attention", ""),
          whole("causal_attention", "H=1 T=128 E=32"),
          whole("windowed", ""),
          whole("grouped", "")};
}

TEST_CASE("attention over whole rows is one pass over tiles that the sketch makes", "[gpu]") {
  for (const ir::Program& program : whole_operators()) {
    const Result<search::Candidate> made = drawn(program);
    REQUIRE_OK(made);
    INFO(schedule::print(made->trace));
    CHECK(schedule::rounds_elsewhere(made->trace));
    const Result<std::vector<schedule::GpuNeeds>> needs = schedule::gpu_needs(made->program);
    REQUIRE_OK(needs);
    CHECK(needs->size() == 1);
    CHECK(compare_on_host(program, made->program, online_target(), 1, kTwoOrders) == "");
  }
}

TEST_CASE("tiles that the sketch makes are free of races, and NVRTC takes them", "[gpu]") {
  const std::vector<ir::Program> all = whole_operators();
  for (std::size_t i = first_seed() % 2; i < all.size(); i += 2) {
    const Result<search::Candidate> made = drawn(all[i]);
    REQUIRE_OK(made);
    INFO(schedule::print(made->trace));
    CHECK(check_races_and_compile(all[i], made->program, online_target(), "sm_90a") == "");
  }
}

TEST_CASE("tiles that the sketch makes are equal in finite fields, but for roundings of weights") {
  for (const ir::Program& program :
       {whole("attention", "H=1 T=16 S=32 E=16"), whole("causal_attention", "H=2 T=32 E=16")}) {
    const Result<search::Candidate> made = drawn(program);
    REQUIRE_OK(made);
    const search::Task task = search::make_task("op", program, online_target());
    const search::SampledVerdict found = search::check_schedule(task, made->trace, made->program);
    INFO(search::to_string(found) << ir::print(made->program));
    CHECK(found.verdict.ok());
    CHECK(found.verdict.assumes.roundings);
    // Weights of a tile are rounded under its own maximum.
    CHECK(search::is_refuted(search::check_programs(program, made->program).verdict));
  }
}

TEST_CASE("attention over many keys, which the sketch cuts, has a verdict at its own shape") {
  const ir::Program program = whole("attention", "H=1 T=64 S=256 E=64");
  const Result<search::Candidate> made = drawn(program);
  REQUIRE_OK(made);
  search::SampleOptions options;
  options.log2_error = -20;
  options.num_random = 2;
  options.max_whole_cost = 0;
  const search::SampledVerdict found =
      search::check_at_shape(program, made->trace, made->program, options);
  INFO(search::to_string(found));
  CHECK(found.verdict.ok());
  CHECK(found.verdict.log2_error <= -20);
  CHECK(found.verdict.assumes.roundings);
  CHECK_FALSE(found.is_whole);
  CHECK(found.num_random == 2);
}

TEST_CASE("one pass is one kernel with the interpreter's results", "[gpu]") {
  Rng rng(first_seed(), 7);
  const auto at_random = [&](const search::SearchSpace& space, search::Genome* genome) {
    *genome = search::random_genome(space, genome->sketch, rng);
  };
  int num_random = 0;
  for (const ir::Program& program : operators()) {
    for (int i = 0; i <= num_cases(100) / 50; ++i) {
      const Result<search::Candidate> made = i == 0 ? drawn(program) : drawn(program, at_random);
      if (i == 0) REQUIRE_OK(made);
      if (!made.ok()) continue;
      num_random += i > 0 ? 1 : 0;
      INFO(schedule::print(made->trace));
      const Result<std::vector<schedule::GpuNeeds>> needs = schedule::gpu_needs(made->program);
      REQUIRE_OK(needs);
      CHECK(needs->size() == 1);
      CHECK(compare_on_host(program, made->program, online_target(), 1, kTwoOrders) == "");
    }
  }
  CHECK(num_random > 0);
}

TEST_CASE("a warp may have two tiles of rows in one pass", "[gpu]") {
  const ir::Program program = split("split_attention", "H=2 T=256 S=32 E=16 B=16");
  const Result<search::Candidate> made = in_two_tiles(program);
  REQUIRE_OK(made);
  INFO(schedule::print(made->trace));
  const Result<std::vector<schedule::GpuNeeds>> needs = schedule::gpu_needs(made->program);
  REQUIRE_OK(needs);
  REQUIRE(needs->size() == 1);
  CHECK((*needs)[0].grid[0] == 8);
  CHECK((*needs)[0].threads() == 32);
  CHECK(compare_on_host(program, made->program, online_target(), 1, kTwoOrders) == "");
}

TEST_CASE("one pass is free of races, and NVRTC takes it", "[gpu]") {
  const std::vector<ir::Program> all = operators();
  for (std::size_t i = first_seed() % 2; i < all.size(); i += 2) {
    const Result<search::Candidate> made = drawn(all[i]);
    REQUIRE_OK(made);
    INFO(schedule::print(made->trace));
    for (const char* arch : {"sm_80", "sm_90a"}) {
      CHECK(check_races_and_compile(all[i], made->program, online_target(), arch) == "");
    }
  }
}

TEST_CASE("one pass has no scores in shared memory, and lanes exchange what rows have") {
  const ir::Program program = split("split_attention", "H=1 T=128 S=256 E=64 B=64");
  const Result<search::Candidate> made = drawn(program);
  REQUIRE_OK(made);
  const Result<codegen::Artifact> source =
      codegen::print_cuda_artifact(made->program, online_target());
  REQUIRE_OK(source);
  INFO(source->bytes);
  // Of a maximum and of a sum of each tile.
  CHECK(num_times(source->bytes, "pr_shfl_xor(") == 4);
  CHECK(num_times(source->bytes, "pr_shfl_down(") == 0);
  CHECK(num_times(source->bytes, "pr_mma_m16n8k16_f16(") == 2);
  CHECK(num_times(source->bytes, "pr_ldmatrix") == 3);
  CHECK(source->launches.size() == 1);
}

TEST_CASE("one pass is equal in finite fields") {
  const ir::Program program = split("split_attention", "H=1 T=16 S=64 E=16 B=16");
  const Result<search::Candidate> made = drawn(program);
  REQUIRE_OK(made);
  const search::Task task = search::make_task("op", program, online_target());
  const search::SampledVerdict found = search::check_schedule(task, made->trace, made->program);
  INFO(search::to_string(found) << ir::print(made->program));
  CHECK(found.verdict.ok());
}

TEST_CASE("what lanes keep of one pass fits in registers", "[gpu]") {
  if (const auto nvrtc = codegen::nvrtc_info(); !nvrtc.ok()) {
    WARN("skipped: " << nvrtc.error().message());
    return;
  }
  const std::pair<const char*, ir::Program> programs[] = {
      {"64x64", split("split_attention", "H=2 T=1024 S=1024 E=64 B=64")},
      {"64x128", split("split_attention", "H=2 T=1024 S=1024 E=64 B=128")},
      {"128x64", split("split_attention", "H=2 T=1024 S=1024 E=128 B=64")},
      {"64 whole", whole("attention", "H=2 T=1024 S=1024 E=64")},
      {"128 whole", whole("causal_attention", "H=2 T=1024 E=128")}};
  for (const auto& [extents, program] : programs) {
    const Result<search::Candidate> made = drawn(program);
    REQUIRE_OK(made);
    const Result<codegen::Artifact> source =
        codegen::print_cuda_artifact(made->program, online_target());
    REQUIRE_OK(source);
    for (const char* arch : {"sm_80", "sm_90a"}) {
      const Result<codegen::Cubin> cubin = codegen::compile_cubin(source->bytes, arch, {});
      REQUIRE_OK(cubin);
      REQUIRE(cubin->info.kernels.size() == 1);
      CAPTURE(extents, arch, cubin->info.kernels[0].registers);
      CHECK(cubin->info.kernels[0].stack_bytes == 0);
    }
  }
}

using Edit = std::function<ir::Expr(ir::IrBuilder&, ir::Expr)>;

// The program with the edit at one of the places where it makes another value of a value; how many there are.
ir::Program edited(const ir::Program& program, const Edit& edit, int place, int* num_places) {
  ir::IrBuilder b(program);
  *num_places = 0;
  const ir::ExprFn change = [&](ir::Expr e) -> ir::Expr {
    const ir::Expr r = edit(b, e);
    if (r.is(e)) return ir::map_children(b, e, change);
    return (*num_places)++ == place ? r : e;
  };
  const ir::StmtFn go = [&](ir::Stmt s) { return ir::map_children(b, s, go, change); };
  return b.finish(go(program.root()));
}

bool is_of(const ir::Program& program, ir::Expr e, std::string_view what) {
  const auto* load = e.as<ir::Load>();
  return load != nullptr && program.buffer(load->buffer).name.find(what) != std::string_view::npos;
}

struct Fault {
  const char* name;
  int num_places;
  Edit edit;
};

std::vector<Fault> faults_of(const ir::Program& lowered) {
  const auto exchanges = [&lowered](const ir::BinaryNode& both) {
    return is_of(lowered, both.lhs, "_of_lane") && is_of(lowered, both.rhs, "_of_lane");
  };
  return {{"no rescaling", 2,
           [&lowered](ir::IrBuilder& b, ir::Expr e) {
             const auto* sum = e.as<ir::Add>();
             const auto* scaled = sum != nullptr ? sum->lhs.as<ir::Mul>() : nullptr;
             const bool is_kept = scaled != nullptr && is_of(lowered, scaled->rhs, "_kept");
             return is_kept ? b.add(scaled->lhs, sum->rhs) : e;
           }},
          {"no weight of the tile", 2,
           [&lowered](ir::IrBuilder& b, ir::Expr e) {
             const auto* sum = e.as<ir::Add>();
             const auto* term = sum != nullptr ? sum->rhs.as<ir::Mul>() : nullptr;
             const bool is_added = term != nullptr && is_of(lowered, term->lhs, "_added");
             return is_added ? b.add(sum->lhs, term->rhs) : e;
           }},
          {"an exchange of sums lost", 2,
           [exchanges](ir::IrBuilder&, ir::Expr e) {
             const auto* sum = e.as<ir::Add>();
             return sum != nullptr && exchanges(*sum) ? sum->lhs : e;
           }},
          {"an exchange of maxima lost", 2, [exchanges](ir::IrBuilder&, ir::Expr e) {
             const auto* max = e.as<ir::Max>();
             return max != nullptr && exchanges(*max) ? max->lhs : e;
           }}};
}

void check_faults(const ir::Program& program, const ir::Program& scheduled) {
  const Result<ir::Program> lowered = codegen::lower_gpu(scheduled, online_target());
  REQUIRE_OK(lowered);
  CHECK(compare_lowered_on_host(program, *lowered, online_target(), 1, kTwoOrders) == "");
  const auto one_order = std::span(kTwoOrders).first(1);
  for (const Fault& fault : faults_of(*lowered)) {
    for (int place = 0; place < fault.num_places; ++place) {
      int num_places = 0;
      const ir::Program wrong = edited(*lowered, fault.edit, place, &num_places);
      CAPTURE(fault.name, place, ir::print(*lowered));
      REQUIRE(num_places == fault.num_places);
      CHECK(compare_lowered_on_host(program, wrong, online_target(), 1, one_order) != "");
    }
  }
}

TEST_CASE("a pass with one fault gives other results on the host", "[gpu]") {
  const ir::Program program = split("split_attention", "H=2 T=32 S=64 E=16 B=16");
  const Result<search::Candidate> made = drawn(program);
  REQUIRE_OK(made);
  check_faults(program, made->program);
}

TEST_CASE("a pass over tiles that the sketch made with one fault gives other results", "[gpu]") {
  const ir::Program program = whole("attention", "H=2 T=32 S=80 E=16");
  const Result<search::Candidate> made = drawn(program);
  REQUIRE_OK(made);
  check_faults(program, made->program);
}

TEST_CASE("a pass of two tiles of rows with one fault gives other results on the host", "[gpu]") {
  const ir::Program program = split("split_attention", "H=1 T=256 S=32 E=16 B=16");
  const Result<search::Candidate> made = in_two_tiles(program);
  REQUIRE_OK(made);
  check_faults(program, made->program);
}

TEST_CASE("a pass is of whole tiles of 16-bit products, and of what combines tiles") {
  CHECK(has_sketch(split("split_attention", "")));
  // Instructions of Turing are halves, and its threads wait for what they fetch.
  CHECK_FALSE(has_sketch(split("split_attention", ""), gpu_target("cuda-host:sm_75")));
  for (const char* ragged : {"T=33", "S=102 B=51", "E=24", "S=1024 B=512"}) {
    CAPTURE(ragged);
    CHECK_FALSE(has_sketch(split("split_attention", ragged)));
  }
  CHECK_FALSE(has_sketch(split("split_single_attention", "")));
}

TEST_CASE("keys of attention over whole rows become tiles on GPUs that have the instructions") {
  for (const char* target : {"cuda-host:sm_80", "cuda-host:sm_90a", "cuda:h100"}) {
    CAPTURE(target);
    for (const char* extents : {"H=32 T=1024 S=1024 E=64", "H=16 T=4096 S=4096 E=128", "S=96"}) {
      CAPTURE(extents);
      CHECK(has_sketch(whole("attention", extents), gpu_target(target)));
    }
    CHECK(has_sketch(whole("causal_attention", "H=32 T=1024 E=64"), gpu_target(target)));
  }
  CHECK_FALSE(has_sketch(whole("attention", ""), gpu_target("cuda-host:sm_75")));
}

TEST_CASE("keys of other shapes, and weights that others read, do not become tiles") {
  // Keys that no tile divides, or that are one tile; rows and columns that are no whole tiles.
  for (const char* extents : {"S=102", "S=40", "S=16", "T=33", "E=24", "E=512"}) {
    CAPTURE(extents);
    CHECK_FALSE(has_sketch(whole("attention", extents)));
  }
  CHECK_FALSE(has_sketch(whole("causal_attention", "T=100")));
  // Weights of another type, divided before they are rounded, as a result, of rows that are hidden whole.
  CHECK_FALSE(has_sketch(whole_with({{"f16(exp(a[h,t,s] - m[h,t]))", "exp(a[h,t,s] - m[h,t])"}})));
  CHECK_FALSE(has_sketch(whole_with({{"f16(exp(a[h,t,s] - m[h,t]))", "exp(a[h,t,s] - m[h,t])"},
                                     {"p[h,t,s] * V", "f16(p[h,t,s] / l[h,t]) * V"},
                                     {"o[h,t,e] / l[h,t]", "o[h,t,e]"}})));
  CHECK_FALSE(has_sketch(
      whole_with({{"(O: f16[H,T,E])", "(O: f16[H,T,E], p: f16[H,T,S])"}, {"let p[", "p["}})));
  CHECK_FALSE(has_sketch(whole_with(
      {{"max[s] a", "max[s | s < t] a"},
       {"f16(exp(a[h,t,s] - m[h,t]))", "if s < t then f16(exp(a[h,t,s] - m[h,t])) else f16(0)"}})));
  // Of a maximum that is not the row's.
  CHECK_FALSE(has_sketch(whole_with({{"max[s] a[h,t,s]", "max[s] (2 * a[h,t,s])"}})));
}

}  // namespace
}  // namespace prunerc::testing

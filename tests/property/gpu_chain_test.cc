// Attention in one kernel: every candidate is one kernel, right on the host in several orders and under the race checker;
// programs of another shape, and rows that are too long, have no such sketch.
#include "codegen/codegen.h"
#include "codegen/lower/analysis/kernel.h"
#include "codegen/lower/passes.h"
#include "costmodel/latency/symbols.h"
#include "ir/evaluate_int.h"
#include "ir/fpv/fpv.h"
#include "ir/lang/lang.h"
#include "ir/printer.h"
#include "ir/query.h"
#include "schedule/legality/gpu_limits.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "search/tune/sampled.h"
#include "tests/codegen/gpu_run.h"
#include "tests/support/check.h"
#include "tests/support/cuda_host_device.h"
#include "tests/support/gpu_check.h"
#include "tests/support/operators.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prunerc::testing {
namespace {

ir::Target chain_target() { return gpu_target("cuda-host:sm_90a allow_tf32=1"); }

struct Drawn {
  std::string name;
  ir::Program base;
  search::Candidate candidate;
};

int chain_sketch(const search::SearchSpace& space, std::string_view name) {
  for (std::size_t s = 0; s < space.sketches.size(); ++s) {
    if (space.sketches[s].name == name) return static_cast<int>(s);
  }
  return -1;
}

constexpr const char* kTensorChain = "gpu+tensor+chain";
constexpr const char* kGroupChain = "gpu+wgmma+chain";
constexpr const char* kBulkChain = "gpu+wgmma+chain+tma";

// Of the operator's sketch the default and `count` random candidates.
void draw(const NamedProgram& op, const char* name, int count, std::vector<Drawn>* out) {
  const search::Task task = search::make_task(op.name, op.program, chain_target());
  const Result<search::SearchSpace> space = search::make_space(task);
  INFO(op.name);
  REQUIRE_OK(space);
  const int sketch = chain_sketch(*space, name);
  REQUIRE(sketch >= 0);
  Rng rng(first_seed(), 5);
  for (int i = 0; i <= count; ++i) {
    const search::Genome genome = i == 0 ? search::default_genome(*space, sketch)
                                         : search::random_genome(*space, sketch, rng);
    Result<search::Candidate> made = search::instantiate(task, *space, sketch, genome.decisions);
    INFO(i);
    if (i == 0) REQUIRE_OK(made);
    if (made.ok()) out->push_back({op.name + "/" + name, op.program, *std::move(made)});
  }
}

std::vector<Drawn> draw(int count) {
  std::vector<Drawn> out;
  for (const NamedProgram& op : chained_operators()) draw(op, kTensorChain, count, &out);
  for (const NamedProgram& op : single_chained_operators()) draw(op, "gpu+chain", count, &out);
  for (const char* name : {kGroupChain, kBulkChain}) {
    for (const NamedProgram& op : group_chained_operators()) draw(op, name, count, &out);
  }
  return out;
}

// The kernel of a tile, that of the tiles' weights, and the one that adds the tiles up.
constexpr std::size_t kSplitKernels = 3;

std::vector<Drawn> draw_split(int count) {
  std::vector<Drawn> out;
  for (const NamedProgram& op : split_chained_operators()) {
    const bool is_single = op.name.starts_with("split_single");
    draw(op, is_single ? "gpu+chain" : kTensorChain, count, &out);
  }
  for (const char* name : {kGroupChain, kBulkChain}) {
    for (const NamedProgram& op : group_split_chained_operators()) draw(op, name, count, &out);
  }
  return out;
}

std::size_t num_kernels(const ir::Program& program) {
  const Result<std::vector<schedule::GpuNeeds>> needs = schedule::gpu_needs(program);
  REQUIRE_OK(needs);
  return needs->size();
}

TEST_CASE("products with rows between them are one kernel with the interpreter's results",
          "[gpu]") {
  for (const Drawn& d : draw(num_cases(100) / 50)) {
    INFO(d.name << "\n" << schedule::print(d.candidate.trace));
    CHECK(num_kernels(d.candidate.program) == 1);
    const std::string difference =
        compare_on_host(d.base, d.candidate.program, chain_target(), 1, kTwoOrders);
    CHECK(difference == "");
  }
}

TEST_CASE("a tile of keys is one kernel, and what tiles leave is combined as the interpreter does",
          "[gpu]") {
  for (const Drawn& d : draw_split(num_cases(100) / 50)) {
    INFO(d.name << "\n" << schedule::print(d.candidate.trace));
    CHECK(num_kernels(d.candidate.program) == kSplitKernels);
    const std::string difference =
        compare_on_host(d.base, d.candidate.program, chain_target(), 1, kTwoOrders);
    CHECK(difference == "");
  }
}

// Each takes a compiler of C++ and one of CUDA some seconds: one in three, others with each seed.
TEST_CASE("one kernel of two products is free of races, and NVRTC takes it", "[gpu]") {
  std::vector<Drawn> all = draw(1);
  for (Drawn& d : draw_split(0)) all.push_back(std::move(d));
  int num_clean = 0;
  for (std::size_t i = first_seed() % 3; i < all.size(); i += 3) {
    const Drawn& d = all[i];
    INFO(d.name << "\n" << schedule::print(d.candidate.trace));
    CHECK(check_races_and_compile(d.base, d.candidate.program, chain_target(), "sm_90a") == "");
    ++num_clean;
  }
  CHECK(num_clean >= 3);
}

ir::Program program_of(const char* text) {
  lang::CompileInput input;
  input.file_name = "op.prn";
  input.text = text;
  const lang::LangResult compiled = lang::compile(input);
  INFO(compiled.rendered);
  REQUIRE(compiled.program.has_value());
  return *compiled.program;
}

// The sketch of one operator; -1 if it has none.
int sketch_of(const char* text, const ir::Target& target, const char* name = kTensorChain) {
  const search::Task task = search::make_task("op", program_of(text), target);
  const Result<search::SearchSpace> space = search::make_space(task);
  REQUIRE_OK(space);
  return chain_sketch(*space, name);
}

constexpr const char* kCausal = R"(
op causal<H=1, T=128, E=32>(Q: bf16[H,T,E], K: bf16[H,T,E], V: bf16[H,T,E]) -> (O: f32[H,T,E]) {
  let a[h,t,s] = (sum:f32[e] Q[h,t,e] * K[h,s,e]) * (1 / sqrt(E));
  let m[h,t]   = max[s | s <= t] a[h,t,s];
  let p[h,t,s] = if s <= t then bf16(exp(a[h,t,s] - m[h,t])) else bf16(0);
  O[h,t,e]     = sum:f32[s] p[h,t,s] * V[h,s,e];
})";

std::vector<const ir::Loop*> loops_where(const ir::Program& program,
                                         bool (*wanted)(const ir::Loop&)) {
  std::vector<const ir::Loop*> out;
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
        const ir::Loop* loop = s.as<ir::Loop>();
        if (loop != nullptr && wanted(*loop)) out.push_back(loop);
        return true;
      },
      [](ir::Expr) {});
  return out;
}

bool is_pipeline(const ir::Loop& loop) {
  return codegen::attr_of(loop, codegen::kPipelineAttr).has_value();
}
bool is_over_rows(const ir::Loop& loop) { return loop.loop_kind == ir::LoopKind::kBlockX; }

// Whether both loops over keys of a causal program with 128 rows end with the last row of each block.
void check_trims(const ir::Program& scheduled) {
  const Result<ir::Program> trimmed = codegen::trim_masked_loops(scheduled, chain_target());
  REQUIRE_OK(trimmed);
  INFO(ir::print(*trimmed));
  const std::vector<const ir::Loop*> grid = loops_where(*trimmed, is_over_rows);
  const std::vector<const ir::Loop*> before = loops_where(scheduled, is_pipeline);
  const std::vector<const ir::Loop*> after = loops_where(*trimmed, is_pipeline);
  REQUIRE(grid.size() == 1);
  REQUIRE(before.size() == 2);
  REQUIRE(after.size() == 2);
  const int64_t num_blocks = *ir::constant_value(grid[0]->extent);
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t num_tiles = *ir::constant_value(before[i]->extent);
    for (int64_t b = 0; b < num_blocks; ++b) {
      const int64_t last_row = (b + 1) * (128 / num_blocks) - 1;
      const auto leaf = [&](ir::Expr e) -> std::optional<int64_t> {
        const ir::Var* var = e.as<ir::Var>();
        return var != nullptr && var->id == grid[0]->var->id ? b : 0;
      };
      CAPTURE(i, b, num_blocks, num_tiles);
      CHECK(ir::evaluate_int(after[i]->extent, leaf) == last_row / (128 / num_tiles) + 1);
    }
  }
}

TEST_CASE("both products of causal rows end with the last key that a row of the block sees") {
  std::string single = kCausal;
  for (std::size_t at; (at = single.find("bf16")) != std::string::npos;)
    single.replace(at, 4, "f32");
  std::vector<Drawn> drawn;
  draw({"causal", program_of(kCausal)}, kTensorChain, 4, &drawn);
  draw({"causal", program_of(kCausal)}, kBulkChain, 4, &drawn);
  draw({"causal", program_of(single.c_str())}, "gpu+chain", 4, &drawn);
  for (const Drawn& d : drawn) {
    INFO(d.name << "\n" << schedule::print(d.candidate.trace));
    check_trims(d.candidate.program);
  }
}

constexpr const char* kLongRows = R"(
op attention<H=1, T=16, S=4096, E=64>(Q: f16[H,T,E], K: f16[H,S,E], V: f16[H,S,E]) -> (O: f32[H,T,E]) {
  let a[h,t,s] = sum:f32[e] Q[h,t,e] * K[h,s,e];
  let m[h,t]   = max[s] a[h,t,s];
  let p[h,t,s] = f16(exp(a[h,t,s] - m[h,t]));
  O[h,t,e]     = sum:f32[s] p[h,t,s] * V[h,s,e];
})";

TEST_CASE("warpgroups multiply whole tiles of 16-bit factors, others are left to warps") {
  std::string whole = kLongRows;
  whole = replaced(replaced(whole, "T=16", "T=64"), "S=4096", "S=512");
  const auto has_sketch = [](const std::string& text, const ir::Target& target) {
    return sketch_of(text.c_str(), target, kGroupChain) >= 0;
  };
  CHECK(has_sketch(whole, chain_target()));
  CHECK(sketch_of(whole.c_str(), chain_target()) >= 0);
  CHECK_FALSE(has_sketch(whole, gpu_target("cuda-host:sm_80")));
  // Rows and keys of no whole tiles; no room for the scores of 64 rows. Columns and depths are padded.
  CHECK_FALSE(has_sketch(replaced(whole, "T=64", "T=96"), chain_target()));
  CHECK_FALSE(has_sketch(replaced(whole, "S=512", "S=136"), chain_target()));
  CHECK_FALSE(has_sketch(replaced(whole, "S=512", "S=1024"), chain_target()));
  CHECK(has_sketch(replaced(whole, "E=64", "E=40"), chain_target()));
  std::string single = whole;
  while (single.find("f16") != std::string::npos) single = replaced(single, "f16", "f32");
  CHECK_FALSE(has_sketch(single, chain_target()));
}

// Rows and keys in tiles, the axis `e` of any length, each matrix either way around.
std::string group_attention(int64_t rows, int64_t keys, int64_t columns, bool turned) {
  std::string text = replaced(replaced(kLongRows, "T=16", "T=" + std::to_string(rows)), "S=4096",
                              "S=" + std::to_string(keys));
  text = replaced(text, "E=64", "E=" + std::to_string(columns));
  if (!turned) return text;
  text = replaced(replaced(text, "Q: f16[H,T,E]", "Q: f16[H,E,T]"), "Q[h,t,e]", "Q[h,e,t]");
  text = replaced(replaced(text, "K: f16[H,S,E]", "K: f16[H,E,S]"), "K[h,s,e]", "K[h,e,s]");
  return replaced(replaced(text, "V: f16[H,S,E]", "V: f16[H,E,S]"), "V[h,s,e]", "V[h,e,s]");
}

TEST_CASE("the copy engine brings boxes of whole keys whose rows lie at multiples of 16 bytes") {
  const auto has_sketch = [](const std::string& text, const char* name = kBulkChain) {
    return sketch_of(text.c_str(), chain_target(), name) >= 0;
  };
  // Columns and depths are padded by zeros of the engine, as long as the row ends there.
  CHECK(has_sketch(group_attention(64, 48, 40, false)));
  CHECK(has_sketch(group_attention(64, 64, 32, true)));
  // Rows of 40 bytes; a depth of 40 rows, behind which the next matrix follows.
  for (const auto& [columns, turned] : {std::pair(20, false), std::pair(40, true)}) {
    const std::string text = group_attention(64, 48, columns, turned);
    CHECK(has_sketch(text, kGroupChain));
    CHECK_FALSE(has_sketch(text));
  }
}

TEST_CASE("what the copy engine brings is equal in finite fields") {
  const NamedProgram op = group_chained_operators()[0];
  std::vector<Drawn> drawn;
  draw(op, kBulkChain, 1, &drawn);
  for (const Drawn& d : drawn) {
    INFO(d.name << "\n" << schedule::print(d.candidate.trace));
    const search::Task task = search::make_task(op.name, op.program, chain_target());
    CHECK(search::check_schedule(task, d.candidate.trace, d.candidate.program).verdict.ok());
  }
}

TEST_CASE("for the analyzer the copy engine leaves threads fewer instructions", "[gpu]") {
  const std::string text = group_attention(1024, 128, 128, false);
  std::vector<Drawn> drawn;
  for (const char* name : {kBulkChain, kGroupChain}) {
    draw({text, program_of(text.c_str())}, name, 0, &drawn);
  }
  const auto issue = [](const Drawn& d) {
    const auto terms =
        costmodel::latency_symbols(d.candidate.program, gpu_target("cuda:h100")).terms;
    return terms[0].parts_ns[static_cast<std::size_t>(costmodel::TermPart::kIssue)].value();
  };
  CHECK(issue(drawn[0]) < issue(drawn[1]));
}

TEST_CASE("rings fit beside the rows of a block by default") {
  const int64_t shapes[][3] = {{64, 512, 64},  {512, 512, 64},   {256, 256, 128},
                               {64, 384, 128}, {1024, 128, 128}, {128, 64, 256}};
  std::vector<Drawn> drawn;
  for (const auto& [rows, keys, columns] : shapes) {
    const std::string text = group_attention(rows, keys, columns, false);
    draw({text, program_of(text.c_str())}, kBulkChain, 0, &drawn);
  }
  for (const Drawn& d : drawn) {
    INFO(d.name << "\n" << schedule::print(d.candidate.trace));
    REQUIRE_OK(codegen::print_cuda_artifact(d.candidate.program, chain_target()));
  }
}

TEST_CASE("a warpgroup brings keys and values into two rings, the others wait for nobody else") {
  std::vector<Drawn> drawn;
  for (const NamedProgram& op : group_chained_operators()) draw(op, kBulkChain, 0, &drawn);
  for (const Drawn& d : drawn) {
    const Result<codegen::Artifact> source =
        codegen::print_cuda_artifact(d.candidate.program, chain_target());
    REQUIRE_OK(source);
    const std::string& text = source->bytes;
    INFO(d.name << "\n" << schedule::print(d.candidate.trace) << "\n" << text);
    const std::array<int64_t, 3> block = source->launches[0].block;
    CHECK((block[0] == 32 && block[1] == 4));
    CHECK(num_times(text, "if (tz == " + std::to_string(block[2] - 1) + ") {") == 1);
    for (const char* ring : {"0", "1"}) {
      CHECK(num_times(text, std::string("pr_mbar_expect_tx(full") + ring) == 1);
      CHECK(num_times(text, std::string("pr_mbar_wait(full") + ring) == 1);
      CHECK(num_times(text, std::string("pr_mbar_wait(empty") + ring) == 1);
      // Each warp says that it has read a stage.
      CHECK(num_times(text, std::string("pr_mbar_init(empty") + ring + " + i, " +
                                std::to_string(4 * (block[2] - 1)) + ");") == 1);
    }
    CHECK(num_times(text, "pr_cp_async") == 0);
    CHECK(num_times(text, "pr_sync();") == 1);
    CHECK(num_times(text, "pr_bar_sync(1, ") >= 2);
    CHECK(num_times(text, "pr_bar_sync(1, ") == num_times(text, "pr_fence_proxy_async();\n"));
  }
}

TEST_CASE("whatever is drawn of a warpgroup's tiles has code") {
  const int64_t shapes[][3] = {{64, 48, 40},  {64, 64, 24},   {128, 112, 80}, {192, 96, 72},
                               {64, 160, 12}, {64, 256, 136}, {256, 144, 20}, {128, 208, 96}};
  std::vector<Drawn> drawn;
  for (const auto& [rows, keys, columns] : shapes) {
    for (const bool turned : {false, true}) {
      const std::string text = group_attention(rows, keys, columns, turned);
      draw({text, program_of(text.c_str())}, kGroupChain, 6, &drawn);
      const bool is_box = columns % (turned ? 32 : 8) == 0;
      if (is_box) draw({text, program_of(text.c_str())}, kBulkChain, 6, &drawn);
    }
  }
  for (const Drawn& d : drawn) {
    INFO(d.name << "\n" << schedule::print(d.candidate.trace));
    const Result<codegen::Artifact> source =
        codegen::print_cuda_artifact(d.candidate.program, chain_target());
    CHECK((source.ok() ? std::string() : source.error().message()) == "");
  }
}

TEST_CASE("warpgroups pass a fence before each barrier, and wait for each group of products") {
  std::vector<Drawn> drawn;
  for (const NamedProgram& op : group_chained_operators()) draw(op, kGroupChain, 0, &drawn);
  for (const Drawn& d : drawn) {
    INFO(d.name << "\n" << schedule::print(d.candidate.trace));
    const Result<codegen::Artifact> source =
        codegen::print_cuda_artifact(d.candidate.program, chain_target());
    REQUIRE_OK(source);
    INFO(source->bytes);
    CHECK(num_times(source->bytes, "pr_wgmma_fence();") == 2);
    CHECK(num_times(source->bytes, "pr_wgmma_wait<0>();") == 2);
    CHECK(num_times(source->bytes, "pr_sync();") >= 2);
    CHECK(num_times(source->bytes, "pr_sync();") ==
          num_times(source->bytes, "pr_fence_proxy_async();\n"));
  }
}

TEST_CASE("what fits the device does so for the analyzer, rows beside copies in flight") {
  for (const Drawn& drawn : draw(2)) {
    INFO(drawn.name);
    const costmodel::LatencySymbols symbols =
        costmodel::latency_symbols(drawn.candidate.program, chain_target());
    for (const costmodel::LatencyLimit& limit : symbols.limits) {
      INFO(limit.what);
      CHECK(limit.have.value() <= limit.most);
    }
  }
}

TEST_CASE("rows that shared memory has no room for are no chain") {
  CHECK(sketch_of(kLongRows, chain_target()) < 0);
  std::string shorter = kLongRows;
  shorter.replace(shorter.find("4096"), 4, "1024");
  CHECK(sketch_of(shorter.c_str(), chain_target()) >= 0);
  // 48 KiB of shared memory hold no sixteen rows of 1024 scores.
  CHECK(sketch_of(shorter.c_str(), gpu_target("cuda-host:sm_80 smem_bytes_per_block=49152")) < 0);
}

// Attention over many keys.
std::string split_attention(std::string_view extents = "S=8192, E=64, B=512") {
  const std::string_view all = split_chained_text().substr(1);
  return replaced(std::string(all.substr(0, all.find("\nop "))), "S=96, E=32, B=32", extents);
}

int64_t num_elements(const ir::Buffer& buffer) {
  int64_t product = 1;
  for (const ir::Expr extent : buffer.shape) product *= ir::constant_value(extent).value_or(1);
  return product;
}

TEST_CASE("a stage that changes its product in place is its product's producer and its reader") {
  const ir::Program program = parse_or_die(R"(
program p(A: f16[64, 64], B: f16[64, 64], W: f16[64, 64], b: f32[64]) -> (Z: f32[64, 64], C: f32[64, 64]) {
  for i in 64 { for j in 64 { for k in 64 { block "Z" [vi: S(64) = i, vj: S(64) = j, vk: R(64) = k] {
    init { Z[vi, vj] = 0f32 } Z[vi, vj] = Z[vi, vj] + f32(A[vi, vk])*f32(W[vk, vj]) } } } }
  for i in 64 { for j in 64 { for k in 64 { block "C" [vi: S(64) = i, vj: S(64) = j, vk: R(64) = k] {
    init { C[vi, vj] = 0f32 } C[vi, vj] = C[vi, vj] + f32(A[vi, vk])*f32(B[vk, vj]) } } } }
  for i in 64 { for j in 64 { block "bias" [vi: S(64) = i, vj: S(64) = j] { C[vi, vj] = C[vi, vj] + b[vj] } } }
})");
  const Result<search::SearchSpace> space =
      search::make_space(search::make_task("op", program, gpu_target("cuda-host:sm_80")));
  REQUIRE_OK(space);
  CHECK(chain_sketch(*space, kTensorChain) < 0);
}

// The chain's default candidate.
search::Candidate chained(const search::Task& task) {
  const Result<search::SearchSpace> space = search::make_space(task);
  REQUIRE_OK(space);
  const int sketch = chain_sketch(*space, kTensorChain);
  REQUIRE(sketch >= 0);
  Result<search::Candidate> made = search::instantiate(task, *space, sketch, {});
  REQUIRE_OK(made);
  return std::move(made).value();
}

TEST_CASE("attention over many keys in tiles has no scores in global memory") {
  for (const char* target : {"cuda:h100", "cuda-host:sm_80"}) {
    INFO(target);
    const search::Candidate made =
        chained(search::make_task("op", program_of(split_attention().c_str()), gpu_target(target)));
    INFO(schedule::print(made.trace));
    CHECK(num_kernels(made.program) == kSplitKernels);
    ir::walk(
        made.program.root(),
        [&](ir::Stmt s) {
          const auto* block = s.as<ir::Block>();
          for (const ir::Access& access :
               block != nullptr ? block->writes : std::span<const ir::Access>()) {
            const ir::Buffer& buffer = made.program.buffer(access.buffer);
            INFO(buffer.name);
            CHECK((buffer.scope != ir::Scope::kGlobal ||
                   num_elements(buffer) < int64_t{2} * 64 * 8192));
          }
          return true;
        },
        [](ir::Expr) {});
    // Of Q, and of K and V at places that are no plain variables, vectors of 16 bytes are fetched.
    CHECK(num_times(schedule::print(made.trace), ", 32, 8])") == 3);
  }
}

// The roundings of all queries are too many for one pair of primes; an output element is made of those of its own.
TEST_CASE("attention over many keys in tiles has a verdict in finite fields") {
  const search::Task task = search::make_task(
      "op", program_of(split_attention("S=1024, E=64, B=512").c_str()), chain_target());
  const search::Candidate made = chained(task);
  const search::SampledVerdict found = search::check_schedule(task, made.trace, made.program);
  INFO(search::to_string(found));
  CHECK(found.verdict.ok());
  CHECK(found.verdict.log2_error <= -40);
  const std::string text = split_attention("S=96, E=16, B=32");
  const ir::Program small = program_of(text.c_str());
  CHECK(ir::check_equivalent(small, small).ok());
  const std::pair<const char*, const char*> faults[] = {
      {"exp(a[h,t,c,s] - m[h,t,c])", "exp(a[h,t,c,s])"},
      {"- M[h,t]) * l", "- M[h,t]) * exp(m[h,t,c] - M[h,t]) * l"},
      {"w[h,t,c] * o", "w[h,t,0] * o"},
      {"max[s] a[h,t,c,s]", "max[s] (2 * a[h,t,c,s])"}};
  for (const auto& [from, to] : faults) {
    INFO(to);
    CHECK(ir::check_equivalent(small, program_of(replaced(text, from, to).c_str())).kind ==
          ir::VerdictKind::kNotEqual);
  }
}

TEST_CASE("a tile's values stand in any order, what combines tiles is of no chain") {
  std::string turned = replaced(split_attention(), "let m[h,t,c] ", "let m[h,c,t] ");
  while (turned.find("m[h,t,c]") != std::string::npos) {
    turned = replaced(turned, "m[h,t,c]", "m[h,c,t]");
  }
  CHECK(sketch_of(turned.c_str(), chain_target()) >= 0);
  const std::string sum = "  let l[h,t,c]   = sum:f32[s] p[h,t,c,s];\n";
  const std::string later =
      replaced(replaced(split_attention(), sum, ""), "  let M[", sum + "  let M[");
  CHECK(sketch_of(later.c_str(), chain_target()) >= 0);
  // Tiles that the second product adds up are no rows of their own; nor may a later kernel read scores.
  CHECK(sketch_of(R"(
op together<H=2, T=64, S=1024, E=64, B=512>(Q: f16[H,T,E], K: f16[H,S,E], V: f16[H,S,E])
   -> (O: f32[H,T,E]) where S % B == 0 {
  let a[h,t,c in 0..S/B,s in 0..B] = sum:f32[e] Q[h,t,e] * K[h,c*B + s,e];
  let m[h,t,c]   = max[s] a[h,t,c,s];
  let p[h,t,c,s] = f16(exp(a[h,t,c,s] - m[h,t,c]));
  O[h,t,e]       = sum:f32[c,s] p[h,t,c,s] * V[h,c*B + s,e];
})",
                  chain_target()) < 0);
  CHECK(sketch_of(R"(
op shown<H=2, T=64, S=1024, E=64, B=512>(Q: f16[H,T,E], K: f16[H,S,E], V: f16[H,S,E])
   -> (O: f32[H,T,C,E], P: f32[H,T,B]) where S % B == 0, C = S/B {
  let a[h,t,c,s] = sum:f32[e] Q[h,t,e] * K[h,c*B + s,e];
  let m[h,t,c]   = max[s] a[h,t,c,s];
  let p[h,t,c,s] = f16(exp(a[h,t,c,s] - m[h,t,c]));
  O[h,t,c,e]     = sum:f32[s] p[h,t,c,s] * V[h,c*B + s,e];
  P[h,t,s]       = sum:f32[c] p[h,t,c,s];
})",
                  chain_target()) < 0);
}

TEST_CASE("a row's maximum may be a result as well") {
  std::string text = kLongRows;
  text = replaced(text, "4096", "1024");
  text = replaced(text, "(O: f32[H,T,E])", "(O: f32[H,T,E], m: f32[H,T])");
  CHECK(sketch_of(replaced(text, "let m[h,t]", "m[h,t]").c_str(), chain_target()) >= 0);
}

TEST_CASE("weights that are a result as well are no chain") {
  CHECK(sketch_of(R"(
op shown<T=32, S=64, E=32>(Q: f16[T,E], K: f16[S,E], V: f16[S,E]) -> (O: f32[T,E], P: f16[T,S]) {
  let a[t,s] = sum:f32[e] Q[t,e] * K[s,e];
  let m[t]   = max[s] a[t,s];
  P[t,s]     = f16(exp(a[t,s] - m[t]));
  O[t,e]     = sum:f32[s] P[t,s] * V[s,e];
})",
                  chain_target()) < 0);
}

TEST_CASE("products that do not follow each other are no chain") {
  CHECK(sketch_of(R"(
op apart<M=32, N=64, K=32>(A: f16[M,K], B: f16[N,K], C: f16[N,K]) -> (D: f32[M,N], E: f32[M,N]) {
  D[i,j] = sum:f32[k] A[i,k] * B[j,k];
  E[i,j] = sum:f32[k] A[i,k] * C[j,k];
})",
                  chain_target()) < 0);
}

constexpr const char* kSingle = R"(
op attention<H=2, T=32, S=48, E=16>(Q: f32[H,T,E], K: f32[H,S,E], V: f32[H,S,E]) -> (O: f32[H,T,E]) {
  let a[h,t,s] = (sum[e] Q[h,t,e] * K[h,s,e]) * (1 / sqrt(E));
  let m[h,t]   = max[s] a[h,t,s];
  let p[h,t,s] = exp(a[h,t,s] - m[h,t]);
  let l[h,t]   = sum[s] p[h,t,s];
  let o[h,t,e] = sum[s] p[h,t,s] * V[h,s,e];
  O[h,t,e]     = o[h,t,e] / l[h,t];
})";

// Rounded factors are beyond what compare_on_host lets pass: equal in finite fields, and free of races.
TEST_CASE("f32 attention is a chain where tf32 is allowed", "[gpu]") {
  CHECK(sketch_of(kSingle, gpu_target("cuda-host:sm_90a")) < 0);
  const search::Task task = search::make_task("op", program_of(kSingle), chain_target());
  const Result<search::SearchSpace> space = search::make_space(task);
  REQUIRE_OK(space);
  const int sketch = chain_sketch(*space, kTensorChain);
  REQUIRE(sketch >= 0);
  Rng rng(first_seed(), 6);
  for (int i = 0; i < num_cases(100) / 25; ++i) {
    const search::Genome genome = search::random_genome(*space, sketch, rng);
    const Result<search::Candidate> made =
        search::instantiate(task, *space, sketch, genome.decisions);
    if (!made.ok()) continue;
    INFO(schedule::print(made->trace));
    CHECK(ir::check_equivalent(task.base, made->program).ok());
    const Result<codegen::Artifact> source =
        codegen::print_cuda_artifact(made->program, chain_target());
    REQUIRE_OK(source);
    const Result<Expected> expected = expected_outputs(task.base, 1);
    REQUIRE_OK(expected);
    const runtime::JobOutcome outcome =
        check_source_on_host(*source, expected->input_bytes(), codegen::HostChecker::kRace);
    INFO(outcome.measurement.detail);
    CHECK(outcome.measurement.status == MeasureStatus::kOk);
  }
}

}  // namespace
}  // namespace prunerc::testing

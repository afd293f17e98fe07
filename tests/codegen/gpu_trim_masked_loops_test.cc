// Loops over tiles that a mask trims: how many tiles run, what keeps all of them, and that values are the same.
#include "codegen/codegen.h"
#include "codegen/lower/analysis/kernel.h"
#include "codegen/lower/passes.h"
#include "codegen/pipeline.h"
#include "codegen/races.h"
#include "ir/evaluate_int.h"
#include "ir/printer.h"
#include "ir/query.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"
#include "tests/codegen/gpu_run.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::testing {
namespace {

using namespace ir;  // NOLINT: a test

// T queries and S keys, what they become of the scores, a stage between them and the weights, and stages in flight.
struct Rows {
  int64_t queries = 24, keys = 24;
  std::string weight = "select(vs <= vt, a[vt, vs]*2f32, 0f32)";
  std::string between = "";
  int64_t stages = 3;
};

// Blocks of 8 queries, tiles of 8 keys: products "a" and "y" in pipelines, weights "p" between them.
std::string text_of(const Rows& rows) {
  const int64_t blocks = (rows.queries + 7) / 8, tiles = (rows.keys + 7) / 8;
  return fmt::format(
      R"(program p(Q: f32[{t}, 3], K: f32[{s}, 3], V: f32[{s}, 8], Z: i64[{t}])
      -> (Y: f32[{t}, 8]) {{
    buffer a: f32[{t}, {s}] shared
    buffer c: f32[{t}, {s}] shared
    buffer p: f32[{t}, {s}] shared
    buffer KS: f32[{ps}, 3] shared
    buffer VS: f32[{ps}, 8] shared
    buffer y: f32[{t}, 8] local
    for b in {blocks} @L0 bind(block.x) {{
      for s_0 in {tiles} @L1 {{software_pipeline = {stages}}} {{
        for x in 8 @L2 bind(thread.x) {{pipeline_stage = 0, pipeline_order = 0}} {{ for e in 3 @L3 {{
          block "KS" @B0 [vs: S({ps}) = s_0*8 + x, ve: S(3) = e] {{
            KS[vs, ve] = select(vs < {s}, K[vs, ve], 0f32) }} }} }}
        for i in 8 @L4 bind(thread.x) {{pipeline_stage = {last}, pipeline_order = 1}} {{
          for s_1 in 8 @L5 {{ for e in 3 @L6 {{
            block "a" @B1 [vt: S({t}) = b*8 + i, vs: S({s}) = s_0*8 + s_1, ve: R(3) = e]
                where b*8 + i < {t} && s_0*8 + s_1 < {s} {{
              init {{ a[vt, vs] = 0f32 }}
              a[vt, vs] = a[vt, vs] + Q[vt, ve]*KS[vs, ve] }} }} }} }} }}
      {between}
      for i in 8 @L7 bind(thread.x) {{ for u in {s} @L8 {{
        block "p" @B2 [vt: S({t}) = b*8 + i, vs: S({s}) = u] where b*8 + i < {t} {{
          p[vt, vs] = {weight} }} }} }}
      for i in 8 @L9 bind(thread.x) {{ for f in 8 @L10 unrolled {{
        block "y_init" @B3 [vt: S({t}) = b*8 + i, vf: S(8) = f] where b*8 + i < {t} {{
          y[vt, vf] = 0f32 }} }} }}
      for k_0 in {tiles} @L11 {{software_pipeline = {stages}}} {{
        for x in 8 @L12 bind(thread.x) {{pipeline_stage = 0, pipeline_order = 0}} {{ for f in 8 @L13 {{
          block "VS" @B4 [vk: S({ps}) = k_0*8 + x, vf: S(8) = f] {{
            VS[vk, vf] = select(vk < {s}, V[vk, vf], 0f32) }} }} }}
        for i in 8 @L14 bind(thread.x) {{pipeline_stage = {last}, pipeline_order = 1}} {{
          for k_1 in 8 @L15 {{ for f in 8 @L16 unrolled {{
            block "y" @B5 [vt: S({t}) = b*8 + i, vf: S(8) = f, vk: R({s}) = k_0*8 + k_1]
                where b*8 + i < {t} && k_0*8 + k_1 < {s} {{
              y[vt, vf] = y[vt, vf] + p[vt, vk]*VS[vk, vf] }} }} }} }} }}
      for i in 8 @L17 bind(thread.x) {{ for f in 8 @L18 unrolled {{
        block "Y" @B6 [vt: S({t}) = b*8 + i, vf: S(8) = f] where b*8 + i < {t} {{
          Y[vt, vf] = y[vt, vf] }} }} }}
    }}
  }})",
      fmt::arg("t", rows.queries), fmt::arg("s", rows.keys), fmt::arg("ps", tiles * 8),
      fmt::arg("blocks", blocks), fmt::arg("tiles", tiles), fmt::arg("stages", rows.stages),
      fmt::arg("last", rows.stages - 1), fmt::arg("weight", rows.weight),
      fmt::arg("between", rows.between));
}

Program trimmed(const Program& program) {
  const Result<Program> out = codegen::trim_masked_loops(program, gpu_target());
  REQUIRE_OK(out);
  return *out;
}

using Counts = std::vector<int64_t>;

// Iterations of each loop that has the attribute, by block.
std::vector<Counts> tiles_of(const Program& program) {
  std::vector<Counts> out;
  const Loop* grid = nullptr;
  walk(
      program.root(),
      [&](Stmt s) {
        const Loop* loop = s.as<Loop>();
        if (loop != nullptr && is_block_axis(loop->loop_kind)) grid = loop;
        if (loop == nullptr || !codegen::attr_of(*loop, codegen::kPipelineAttr)) return true;
        Counts& counts = out.emplace_back();
        for (int64_t b = 0; b < constant_value(grid->extent).value_or(0); ++b) {
          const auto leaf = [&](Expr e) -> std::optional<int64_t> {
            const Var* var = e.as<Var>();
            if (var == nullptr || var->id != grid->var->id) return std::nullopt;
            return b;
          };
          counts.push_back(evaluate_int(loop->extent, leaf).value_or(-1));
        }
        return true;
      },
      [](Expr) {});
  return out;
}

std::vector<Counts> tiles(const Rows& rows) {
  return tiles_of(trimmed(parse_or_die(text_of(rows))));
}

TEST_CASE("a block runs the tiles up to its last query", "[gpu]") {
  CHECK(tiles(Rows{}) == std::vector<Counts>{{1, 2, 3}, {1, 2, 3}});
  CHECK(tiles({.queries = 20, .keys = 37}) == std::vector<Counts>{{1, 2, 3}, {1, 2, 3}});
  CHECK(tiles({.queries = 40, .keys = 20}) ==
        std::vector<Counts>{{1, 2, 3, 3, 3}, {1, 2, 3, 3, 3}});
  // One block, whose queries are before most keys.
  CHECK(tiles({.queries = 7, .keys = 30}) == std::vector<Counts>{{1}, {1}});
  // Behind the first two tiles there is nothing for anybody.
  CHECK(tiles({.weight = "select(vs < 9, a[vt, vs], 0f32)"}) ==
        std::vector<Counts>{{2, 2, 2}, {2, 2, 2}});
  // A block without any key computes one tile of nothing.
  CHECK(tiles({.weight = "select(vs + 9 <= vt, a[vt, vs], 0f32)"}) ==
        std::vector<Counts>{{1, 1, 2}, {1, 1, 2}});
}

constexpr const char* kWindow = "select(vs <= vt && vt <= vs + 4, a[vt, vs], 0f32)";

TEST_CASE("a block begins with the first tile that one of its queries sees", "[gpu]") {
  CHECK(tiles({.weight = "select(vt <= vs, a[vt, vs], 0f32)"}) ==
        std::vector<Counts>{{3, 2, 1}, {3, 2, 1}});
  // A window hides tiles at both ends.
  CHECK(tiles({.weight = kWindow}) == std::vector<Counts>{{1, 2, 2}, {1, 2, 2}});
  CHECK(tiles({.queries = 40, .keys = 20, .weight = kWindow}) ==
        std::vector<Counts>{{1, 2, 2, 1, 1}, {1, 2, 2, 1, 1}});
  // The last block sees no key, and computes one tile of nothing.
  CHECK(tiles({.weight = "select(vt + 9 <= vs, a[vt, vs], 0f32)"}) ==
        std::vector<Counts>{{2, 1, 1}, {2, 1, 1}});
}

TEST_CASE("blocks that run most tiles start first", "[gpu]") {
  for (const auto& [weight, first] : {std::pair(Rows{}.weight, "2 - "),
                                      {"a[vt, vs]", ""},
                                      {"select(vt <= vs, a[vt, vs], 0f32)", ""}}) {
    const Result<codegen::Artifact> text =
        codegen::print_cuda_artifact(parse_or_die(text_of({.weight = weight})), gpu_target());
    REQUIRE_OK(text);
    INFO(text->bytes);
    const std::string line = fmt::format("const int bx = {}pr_block_x();", first);
    CHECK(text->bytes.find(line) != std::string::npos);
  }
}

// Scope and shape of a lowered buffer.
std::string place_of(const std::string& weight, std::string_view name) {
  const Result<Program> lowered =
      codegen::lower_gpu(parse_or_die(text_of({.weight = weight})), gpu_target());
  REQUIRE_OK(lowered);
  INFO(print(*lowered));
  for (const Buffer& buffer : lowered->buffers()) {
    if (buffer.name != name) continue;
    std::string out(to_string(buffer.scope));
    for (const Expr extent : buffer.shape) {
      out += " " + std::to_string(constant_value(extent).value_or(-1));
    }
    return out;
  }
  FAIL("no such buffer");
  return "";
}

TEST_CASE(
    "tiles of a loop that is trimmed in front are as small as others, and sums stay registers",
    "[gpu]") {
  for (const char* name : {"KS", "VS", "y"}) {
    CHECK(place_of(kWindow, name) == place_of(Rows{}.weight, name));
  }
  CHECK(place_of(kWindow, "y") == "local 8 1 8");
}

TEST_CASE("in the text a block counts its own tiles", "[gpu]") {
  const Result<codegen::Artifact> source =
      codegen::print_cuda_artifact(parse_or_die(text_of({})), gpu_target());
  REQUIRE_OK(source);
  INFO(source->bytes);
  int num_loops = 0;
  const std::string bound = " < bx + 1; ++";
  for (std::size_t at = 0; (at = source->bytes.find(bound, at)) != std::string::npos; ++at) {
    ++num_loops;
  }
  CHECK(num_loops == 2);
}

TEST_CASE("tiles that somebody needs run", "[gpu]") {
  const std::vector<Counts> all = {{3, 3, 3}, {3, 3, 3}};
  const std::vector<Counts> scores = {{1, 2, 3}, {3, 3, 3}}, sums = {{3, 3, 3}, {1, 2, 3}};
  CHECK(tiles({.weight = "a[vt, vs]*2f32"}) == all);
  CHECK(tiles({.weight = "select(vs <= vt || vs < 2, a[vt, vs], 0f32)"}) == all);
  // Data say how many.
  CHECK(tiles({.weight = "select(vs < Z[vt], a[vt, vs], 0f32)"}) == all);
  // Less than a tenth is hidden.
  CHECK(tiles({.weight = "select(vs <= vt + 18, a[vt, vs], 0f32)"}) == all);
  // What the mask puts there counts; so does a factor that may be 0.
  CHECK(tiles({.weight = "select(vs <= vt, a[vt, vs], 1f32)"}) == scores);
  CHECK(tiles({.weight = "select(vs <= vt, a[vt, vs], 0f32) / Q[vt, 0]"}) == scores);
  // A stage that runs over whole rows reads all scores, whatever is made of them.
  const std::string stage = R"(for i in 8 @L20 bind(thread.x) { for u in 24 @L21 {
      block "c" @B9 [vt: S(24) = b*8 + i, vs: S(24) = u] { c[vt, vs] = a[vt, vs]*3f32 } } })";
  CHECK(tiles({.weight = "select(vs <= vt, c[vt, vs], 0f32)", .between = stage}) == sums);
}

TEST_CASE("only loops that all threads of a block run together are trimmed", "[gpu]") {
  const auto text = [](const std::string& outside, const std::string& inside) {
    return "program p(A: f32[16, 16], V: f32[16, 16]) -> (Y: f32[16, 16]) {\n" + outside + inside +
           R"( for k in 4 @L3 { block "Y" @B0 [vi: S(16) = b*8 + t, vj: S(16) = j, vk: R(16) = s*4 + k] {
        Y[vi, vj] = Y[vi, vj] + select(vk <= vi, A[vi, vk], 0f32)*V[vk, vj] } } } } } } })";
  };
  const std::string block = "for b in 2 @L0 bind(block.x) { for j in 16 @L4 { ";
  const std::string threads = "for t in 8 @L1 bind(thread.x) { ", tiles = "for s in 4 @L2 { ";
  const std::string before = R"(for z in 16 @L5 bind(block.x) { for w in 16 @L6 bind(thread.x) {
      block "Y_init" @B1 [vz: S(16) = z, vw: S(16) = w] { Y[vz, vw] = 0f32 } } })";
  const Program together = parse_or_die(text(before + block + tiles, threads));
  const std::string changed = print(trimmed(together));
  CHECK(changed != print(together));
  INFO(changed);
  CHECK(changed.find("for s in b*2 + 2 ") != std::string::npos);
  const Program apart = parse_or_die(text(before + block + threads, tiles));
  CHECK(print(trimmed(apart)) == print(apart));
}

TEST_CASE("where a loop begins depends on no serial loop, which registers would have to leave",
          "[gpu]") {
  const auto is_trimmed = [](const std::string& rows, const std::string& mask) {
    const Program program = parse_or_die(
        R"(program p(A: f32[32, 32], V: f32[32]) -> (Y: f32[32]) {
  for z in 4 @L5 bind(block.x) { for w in 8 @L6 bind(thread.x) {
    block "Y_init" @B1 [vz: S(32) = z*8 + w] { Y[vz] = 0f32 } } }
  for b in 2 @L0 bind(block.x) { for o in 2 @L1 )" +
        rows + R"( { for s in 8 @L2 { for t in 8 @L3 bind(thread.x) { for k in 4 @L4 {
    block "Y" @B0 [vi: S(32) = b*16 + o*8 + t, vk: R(32) = s*4 + k] {
      Y[vi] = Y[vi] + select()" +
        mask + R"(, A[vi, vk], 0f32)*V[vk] } } } } } } })");
    return print(trimmed(program)) != print(program);
  };
  CHECK(is_trimmed("bind(block.y)", "vi <= vk"));
  CHECK_FALSE(is_trimmed("", "vi <= vk"));
  CHECK(is_trimmed("", "vk <= vi"));  // where it ends does
}

TEST_CASE("which iteration initialises stays, and threads that add up together do it whole",
          "[gpu]") {
  for (const char* const nest : {"for t in 8 @L2 bind(thread.x) { for k in 2 @L3 { "
                                 "block \"Y\" @B0 [vi: S(16) = b*8 + t, vk: R(16) = s*2 + k]",
                                 "for t in 2 @L2 bind(thread.x) { for k in 8 @L3 { "
                                 "block \"Y\" @B0 [vi: S(16) = b*8 + k, vk: R(16) = s*2 + t]"}) {
    const Program program = parse_or_die(
        "program p(A: f32[16, 16]) -> (Y: f32[16]) {"
        "  for b in 2 @L0 bind(block.x) { for s in 8 @L1 { " +
        std::string(nest) +
        " { init { Y[vi] = 0f32 } Y[vi] = Y[vi] + select(vk <= vi, A[vi, vk], 0f32) } } } } } }");
    CHECK(print(trimmed(program)) == print(program));
  }
}

TEST_CASE("elements whose sums add nothing get their first value", "[gpu]") {
  // Of an output whose masked elements are 0, and of one that a loop around goes on with.
  for (const char* const text : {R"(program p(Q: f32[16, 3], K: f32[16, 3]) -> (Y: f32[16, 16]) {
           for b in 2 @L0 bind(block.x) { for s in 2 @L1 { for t in 8 @L2 bind(thread.x) { for c in 8 @L3 {
             for e in 3 @L4 { block "Y" @B0 [vt: S(16) = b*8 + t, vs: S(16) = s*8 + c, ve: R(3) = e] {
               init { Y[vt, vs] = 0f32 }
               Y[vt, vs] = Y[vt, vs] + select(vs <= vt, Q[vt, ve]*K[vs, ve], 0f32) } } } } } } })",
                                 R"(program p(A: f32[16, 4, 4]) -> (Y: f32[16, 4]) {
           for b in 2 @L0 bind(block.x) { for o in 4 @L1 { for s in 4 @L2 { for t in 8 @L3 bind(thread.x) {
             block "Y" @B0 [vt: S(16) = b*8 + t, vs: S(4) = s, vo: R(4) = o] {
               init { Y[vt, vs] = 0f32 }
               Y[vt, vs] = Y[vt, vs] + select(vs <= vo, A[vt, vs, vo], 0f32) } } } } } })"}) {
    const Program program = parse_or_die(text);
    CHECK(print(trimmed(program)) == print(program));
    check_same_result(program, trimmed(program), 1);
  }
}

TEST_CASE("a stage that changes whole rows in place reads all of them", "[gpu]") {
  const std::string stage = R"(for i in 8 @L20 bind(thread.x) { for u in 24 @L21 {
      block "c" @B9 [vt: S(24) = b*8 + i, vs: S(24) = u] { a[vt, vs] = a[vt, vs]*3f32 } } })";
  CHECK(tiles({.between = stage}) == std::vector<Counts>{{3, 3, 3}, {1, 2, 3}});
}

// Pipelines deeper than loops are long among them.
TEST_CASE("kernels with trimmed loops give the same, in all orders and without races", "[gpu]") {
  using runtime::cuda_host::AsyncMode;
  using runtime::cuda_host::ThreadOrder;
  const runtime::cuda_host::ExecutionOptions orders[] = {
      {.order = ThreadOrder::kAscending, .mode = AsyncMode::kEager},
      {.order = ThreadOrder::kDescending, .mode = AsyncMode::kLazy},
      {.order = ThreadOrder::kRandom, .mode = AsyncMode::kLateMma, .seed = 3},
      {.order = ThreadOrder::kRandom, .mode = AsyncMode::kLazy, .seed = 4},
  };
  const std::string strict = "select(vs + 9 <= vt, a[vt, vs]*2f32, 0f32)";
  for (const Rows& rows :
       {Rows{.stages = 2}, Rows{.stages = 3}, Rows{.stages = 4}, Rows{.stages = 8},
        Rows{.queries = 37, .keys = 37, .stages = 4}, Rows{.queries = 40, .keys = 20, .stages = 3},
        Rows{.queries = 7, .keys = 30, .stages = 4}, Rows{.queries = 8, .keys = 8, .stages = 2},
        Rows{.queries = 37, .keys = 33, .weight = strict, .stages = 3},
        Rows{.weight = "select(vt <= vs, a[vt, vs], 0f32)", .stages = 4},
        Rows{.queries = 37, .keys = 37, .weight = kWindow, .stages = 3},
        Rows{.queries = 40, .keys = 20, .weight = kWindow, .stages = 2}}) {
    const Program program = parse_or_die(text_of(rows));
    CAPTURE(rows.queries, rows.keys, rows.weight, rows.stages);
    check_same_result(program, trimmed(program), 1);
    CHECK(compare_on_host(program, program, gpu_target(), 2, orders) == "");
    CHECK(check_races_and_compile(program, program, gpu_target(), "sm_80") == "");
    const Result<Program> lowered = codegen::lower_gpu(program, gpu_target());
    REQUIRE_OK(lowered);
    const Result<codegen::RaceReport> races = codegen::find_races(*lowered);
    REQUIRE_OK(races);
    INFO(print(*lowered));
    CHECK(races->races.empty());
    CHECK(races->num_unknown == 0);
  }
}

}  // namespace
}  // namespace prunerc::testing

// Sketches with wgmma, executed on the host: every kind of product, each with the next sketch.
#include "codegen/codegen.h"
#include "codegen/cuda/nvrtc.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "search/tune/equality.h"
#include "tests/codegen/gpu_run.h"
#include "tests/support/check.h"
#include "tests/support/half_products.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prunerc::testing {
namespace {

using runtime::cuda_host::AsyncMode;
using runtime::cuda_host::ExecutionOptions;
using runtime::cuda_host::ThreadOrder;

std::vector<int> wgmma_sketches(const search::SearchSpace& space, std::string_view suffix = "") {
  std::vector<int> out;
  for (std::size_t i = 0; i < space.sketches.size(); ++i) {
    const std::string& name = space.sketches[i].name;
    if (name.find("wgmma") != std::string::npos && name.ends_with(suffix))
      out.push_back(static_cast<int>(i));
  }
  return out;
}

constexpr std::string_view kHopper = "cuda-host:sm_90a";
constexpr std::string_view kHopperTf32 = "cuda-host:sm_90a allow_tf32=1";

// Sketch number `turn` of those with wgmma, at least `least` with this suffix, in three orders.
void check_sketch(const NamedProgram& op, std::size_t turn, Rng* rng, std::string_view suffix = "",
                  std::size_t least = 6, std::string_view target_name = kHopper) {
  const ir::Target target = gpu_target(target_name);
  const ExecutionOptions orders[] = {
      {.order = ThreadOrder::kAscending, .mode = AsyncMode::kEager},
      {.order = ThreadOrder::kDescending, .mode = AsyncMode::kLazy},
      {.order = ThreadOrder::kRandom, .mode = AsyncMode::kLateMma, .seed = 3},
  };
  const search::Task task = search::make_task(op.name, op.program, target);
  const Result<search::SearchSpace> space = search::make_space(task);
  REQUIRE_OK(space);
  const std::vector<int> sketches = wgmma_sketches(*space, suffix);
  INFO(op.name);
  REQUIRE(sketches.size() >= least);
  const int sketch = sketches[turn % sketches.size()];
  INFO(space->sketches[static_cast<std::size_t>(sketch)].name);
  // Some decisions are no programs: a tile of a block that reads beside what it computed.
  Result<search::Candidate> made = search::instantiate(task, *space, sketch, {});
  for (int attempt = 0; attempt < 4; ++attempt) {
    Result<search::Candidate> other = search::instantiate(
        task, *space, sketch, search::random_genome(*space, sketch, *rng).decisions);
    if (other.ok()) made = std::move(other);
  }
  REQUIRE_OK(made);
  INFO(ir::print(made->program));
  CHECK(compare_on_host(op.program, made->program, target, 1, orders) == "");
}

TEST_CASE("sketches with wgmma run on the host and give the interpreter's results", "[gpu]") {
  Rng rng(7);
  std::size_t turn = 0;
  for (const NamedProgram& op : half_products()) check_sketch(op, turn++, &rng);
}

NamedProgram bytes_product(int m, int n, int k, const char* b_shape, const char* b_at) {
  const std::string text = fmt::format(
      "program p(A: i8[{0}, {2}], B: i8[{3}]) -> (C: i32[{0}, {1}]) {{\n"
      "  for i in {0} {{ for j in {1} {{ for k in {2} {{\n"
      "    block \"C\" [vi: S({0}) = i, vj: S({1}) = j, vk: R({2}) = k] {{\n"
      "      init {{ C[vi, vj] = 0i32 }}\n"
      "      C[vi, vj] = C[vi, vj] + i32(A[vi, vk])*i32(B[{4}])\n"
      "  }} }} }} }}\n}}\n",
      m, n, k, b_shape, b_at);
  return {"bytes", parse_or_die(text)};
}

TEST_CASE("bytes are multiplied by wgmma whose rows run along the sum, or are turned on their way",
          "[gpu]") {
  Rng rng(11);
  const int shapes[][3] = {{128, 64, 256}, {97, 72, 208}, {64, 256, 131}, {1, 128, 384}};
  for (std::size_t i = 0; i < std::size(shapes); ++i) {
    const auto& [m, n, k] = shapes[i];
    check_sketch(bytes_product(m, n, k, fmt::format("{}, {}", n, k).c_str(), "vj, vk"), 3 * i,
                 &rng);
  }
  // Words of columns, or none; zeros from the middle of a word of K on.
  const int across[][3] = {{128, 64, 256}, {97, 72, 208}, {64, 256, 131}, {130, 35, 96}};
  for (std::size_t i = 0; i < std::size(across); ++i) {
    const auto& [m, n, k] = across[i];
    check_sketch(bytes_product(m, n, k, fmt::format("{}, {}", k, n).c_str(), "vk, vj"), 2 * i, &rng,
                 "", 5);
  }
}

TEST_CASE("a product whose bytes no three warpgroups turn leaves the one beside it to them",
          "[gpu]") {
  Rng rng(12);
  check_sketch({"mixed", parse_or_die(R"(
program p(A: i8[192, 128], B: i8[128, 128], F: i8[128, 32]) -> (C: i32[192, 128], D: i32[192, 32]) {
  for i in 192 { for j in 128 { for k in 128 {
    block "C" [vi: S(192) = i, vj: S(128) = j, vk: R(128) = k] {
      init { C[vi, vj] = 0i32 }
      C[vi, vj] = C[vi, vj] + i32(A[vi, vk])*i32(B[vj, vk]) } } } }
  for m in 192 { for n in 32 { for l in 128 {
    block "D" [wm: S(192) = m, wn: S(32) = n, wl: R(128) = l] {
      init { D[wm, wn] = 0i32 }
      D[wm, wn] = D[wm, wn] + i32(A[wm, wl])*i32(F[wl, wn]) } } } }
})")},
               0, &rng, "192x128", 1);
}

TEST_CASE("bytes come in bulk where rows run along the sum, else in words that threads turn") {
  for (const bool is_across : {false, true}) {
    const NamedProgram op = bytes_product(128, 64, 256, is_across ? "256, 64" : "64, 256",
                                          is_across ? "vk, vj" : "vj, vk");
    const ir::Target target = gpu_target(kHopper);
    const Result<search::SearchSpace> space =
        search::make_space(search::make_task(op.name, op.program, target));
    REQUIRE_OK(space);
    // Three warpgroups do not share out rows of 128 columns by sixteens.
    if (is_across) CHECK(wgmma_sketches(*space, "192x128").empty());
    const std::vector<int> sketches = wgmma_sketches(*space, "64x64");
    REQUIRE(sketches.size() == 1);
    const Result<search::Candidate> made = search::instantiate(
        search::make_task(op.name, op.program, target), *space, sketches[0], {});
    REQUIRE_OK(made);
    const std::string text = ir::print(made->program);
    INFO(text);
    CHECK((text.find("bulk_copy") == text.npos) == is_across);
    const Result<codegen::Artifact> source = codegen::print_cuda_artifact(made->program, target);
    REQUIRE_OK(source);
    INFO(source->bytes);
    CHECK((num_times(source->bytes, "pr_transpose_4x4(") > 0) == is_across);
    CHECK(num_times(source->bytes, "pr_wgmma<64, signed char") == 1);
  }
}

struct Convolution {
  int images, size, channels, filters, window, stride;
  bool channels_last, pads;
};

NamedProgram convolution(const Convolution& c, bool is_single = false) {
  const int padded = c.size + (c.pads ? 2 : 0);
  const int out = (padded - c.window) / c.stride + 1;
  const auto image = [&](std::string_view h, std::string_view w, std::string_view of) {
    return c.channels_last ? fmt::format("vn, {}, {}, {}", h, w, of)
                           : fmt::format("vn, {2}, {0}, {1}", h, w, of);
  };
  const auto shape = [&](int size, int channels) {
    return c.channels_last ? fmt::format("{}, {}, {}, {}", c.images, size, size, channels)
                           : fmt::format("{}, {}, {}, {}", c.images, channels, size, size);
  };
  std::string text = fmt::format(
      "program conv(X: f16[{}], F: f16[{}]) -> (Y: f16[{}]) {{\n  buffer T: f32[{}] global\n",
      shape(c.size, c.channels),
      c.channels_last ? fmt::format("{0}, {0}, {1}, {2}", c.window, c.channels, c.filters)
                      : fmt::format("{2}, {1}, {0}, {0}", c.window, c.channels, c.filters),
      shape(out, c.filters), shape(out, c.filters));
  if (c.pads) {
    text += fmt::format(
        "  buffer P: f16[{0}] global\n"
        "  for n in {1} {{ for h in {2} {{ for w in {2} {{ for d in {3} {{ block \"P\" [vn: S({1}) "
        "= n, "
        "vh: S({2}) = h, vw: S({2}) = w, vd: S({3}) = d] {{\n    P[{4}] = select(1 <= vh && vh < "
        "{5} && "
        "1 <= vw && vw < {5}, X[{6}], 0f16) }} }} }} }} }}\n",
        shape(padded, c.channels), c.images, padded, c.channels, image("vh", "vw", "vd"),
        c.size + 1, image("vh - 1", "vw - 1", "vd"));
  }
  const std::string at = image("vh", "vw", "vo");
  text += fmt::format(
      "  for n in {0} {{ for h in {1} {{ for w in {1} {{ for o in {2} {{ for a in {3} {{ for b in "
      "{3} {{ for d in {4} {{\n"
      "    block \"T\" [vn: S({0}) = n, vh: S({1}) = h, vw: S({1}) = w, vo: S({2}) = o, va: R({3}) "
      "= a, "
      "vb: R({3}) = b, vd: R({4}) = d] {{\n      init {{ T[{5}] = 0f32 }}\n"
      "      T[{5}] = T[{5}] + f32({6}[{7}])*f32(F[{8}])\n  }} }} }} }} }} }} }} }}\n",
      c.images, out, c.filters, c.window, c.channels, at, c.pads ? "P" : "X",
      image(fmt::format("vh*{} + va", c.stride), fmt::format("vw*{} + vb", c.stride), "vd"),
      c.channels_last ? "va, vb, vd, vo" : "vo, vd, va, vb");
  text += fmt::format(
      "  for n2 in {0} {{ for h2 in {1} {{ for w2 in {1} {{ for o2 in {2} {{ block \"Y\" [vn: "
      "S({0}) = n2, "
      "vh: S({1}) = h2, vw: S({1}) = w2, vo: S({2}) = o2] {{ Y[{3}] = f16(max(T[{3}], 0f32)) }} }} "
      "}} }} }}\n}}\n",
      c.images, out, c.filters, at);
  const std::string_view half = "f16", single = "f32";
  for (std::size_t i = text.find(half); is_single && i != text.npos; i = text.find(half)) {
    text.replace(i, half.size(), single);
  }
  return {"convolution", parse_or_die(text)};
}

TEST_CASE("convolutions are multiplied by wgmma in the shape of a product", "[gpu]") {
  Rng rng(13);
  const Convolution cases[] = {
      {1, 10, 64, 64, 3, 1, true, false}, {2, 7, 24, 40, 3, 1, true, true},
      {1, 9, 16, 72, 3, 2, true, true},   {1, 8, 8, 64, 1, 1, true, false},
      {1, 8, 16, 64, 3, 1, false, false}, {1, 7, 5, 33, 3, 1, true, true},
  };
  std::size_t turn = 0;
  for (const Convolution& c : cases) check_sketch(convolution(c), 2 * turn++, &rng);
}

TEST_CASE("windows come in bulk where channels fill the rows of a tile, else by threads", "[gpu]") {
  Rng rng(17);
  const Convolution cases[] = {
      {2, 7, 64, 64, 3, 1, true, true},
      {1, 11, 128, 64, 3, 2, true, true},
      {1, 10, 64, 64, 3, 1, true, false},
      {2, 7, 24, 40, 3, 1, true, true},
  };
  const ir::Target target = gpu_target(kHopper);
  for (const Convolution& c : cases) {
    const NamedProgram op = convolution(c);
    const search::Task task = search::make_task(op.name, op.program, target);
    const Result<search::SearchSpace> space = search::make_space(task);
    REQUIRE_OK(space);
    const std::vector<int> sketches = wgmma_sketches(*space, " 64x64");
    REQUIRE(!sketches.empty());
    const Result<search::Candidate> made = search::instantiate(task, *space, sketches[0], {});
    REQUIRE_OK(made);
    const Result<codegen::Artifact> source = codegen::print_cuda_artifact(made->program, target);
    REQUIRE_OK(source);
    INFO(source->bytes);
    // Of the images; where their channels fill no row, of the filters, whose rows are pixels too.
    CHECK(num_times(source->bytes, "pr_tma_load_im2col(") == 1);
    check_sketch(op, 0, &rng, " 64x64", 1);
    const search::EqualityResult twin =
        search::check_on_twin(task, made->trace, search::kDraftLog2Error, 1);
    INFO(to_string(twin.verdict));
    CHECK_FALSE(search::is_refuted(twin.verdict));
  }
}

TEST_CASE("f32 is multiplied by wgmma where tf32 is allowed", "[gpu]") {
  Rng rng(19);
  std::size_t turn = 0;
  for (const NamedProgram& op : single_products()) {
    check_sketch(op, turn++, &rng, "", 6, kHopperTf32);
  }
  const Convolution cases[] = {{1, 10, 32, 64, 3, 1, true, false},
                               {2, 7, 24, 40, 3, 1, false, true}};
  for (const Convolution& c : cases) {
    check_sketch(convolution(c, true), turn++, &rng, "", 6, kHopperTf32);
  }
}

TEST_CASE("f32 factors come in bulk where their rows run along the sum, else by threads") {
  for (const NamedProgram& op : single_products()) {
    const bool is_by_k = op.name.find("_nt_") != op.name.npos;
    // Rows at no multiple of 16 bytes; epilogues, which do not matter here.
    if (op.name.find("K=131") != op.name.npos || op.name.find("_f32 ") == op.name.npos) continue;
    INFO(op.name);
    const search::Task task = search::make_task(op.name, op.program, gpu_target(kHopperTf32));
    const Result<search::SearchSpace> space = search::make_space(task);
    REQUIRE_OK(space);
    const std::vector<int> sketches = wgmma_sketches(*space, "64x64");
    REQUIRE(sketches.size() == 1);
    const Result<search::Candidate> made = search::instantiate(task, *space, sketches[0], {});
    REQUIRE_OK(made);
    const std::string text = ir::print(made->program);
    CHECK((text.find("bulk_copy") != text.npos) == is_by_k);
  }
}

TEST_CASE("f32 takes no wgmma where tf32 is not allowed, and f64 never does") {
  const NamedProgram op = single_products().front();
  std::string text = ir::print(op.program);
  for (std::size_t i = text.find("f32"); i != text.npos; i = text.find("f32")) {
    text.replace(i, 3, "f64");
  }
  const NamedProgram wide = {"f64", parse_or_die(text)};
  for (const auto& [program, target] : {std::pair(&op, kHopper), std::pair(&wide, kHopperTf32)}) {
    const Result<search::SearchSpace> space =
        search::make_space(search::make_task(program->name, program->program, gpu_target(target)));
    REQUIRE_OK(space);
    CHECK(wgmma_sketches(*space).empty());
  }
}

// Columns of A may lie in rows.
NamedProgram narrow_product(int m, int n, int k, bool is_across = false) {
  const std::string text = fmt::format(
      "program p(A: f16[{3}, {4}], B: f16[{2}, {1}]) -> (C: f32[{0}, {1}]) {{\n"
      "  for i in {0} {{ for j in {1} {{ for k in {2} {{\n"
      "    block \"C\" [vi: S({0}) = i, vj: S({1}) = j, vk: R({2}) = k] {{\n"
      "      init {{ C[vi, vj] = 0f32 }}\n"
      "      C[vi, vj] = C[vi, vj] + f32(A[{5}])*f32(B[vk, vj])\n"
      "  }} }} }} }}\n}}\n",
      m, n, k, is_across ? k : m, is_across ? m : k, is_across ? "vk, vi" : "vi, vk");
  return {"narrow", parse_or_die(text)};
}

TEST_CASE("beside what the engine brings threads fetch the other factor, in pieces of any size",
          "[gpu]") {
  Rng rng(23);
  // Rows of B at multiples of 8, 4 and 2 bytes; of A at 4; of both at less than 16.
  const int shapes[][3] = {
      {100, 60, 200}, {64, 62, 328}, {130, 61, 136}, {70, 64, 202}, {65, 60, 197}};
  for (const auto& [m, n, k] : shapes) check_sketch(narrow_product(m, n, k), 0, &rng, "64x64", 1);
}

// Of all sketches with this suffix.
void check_cubins(const NamedProgram& op, std::string_view suffix) {
  INFO(op.name << " " << suffix);
  const ir::Target target = gpu_target(kHopper);
  const search::Task task = search::make_task(op.name, op.program, target);
  const Result<search::SearchSpace> space = search::make_space(task);
  REQUIRE_OK(space);
  const std::vector<int> sketches = wgmma_sketches(*space, suffix);
  REQUIRE(!sketches.empty());
  for (const int sketch : sketches) {
    INFO(space->sketches[static_cast<std::size_t>(sketch)].name);
    const Result<search::Candidate> made = search::instantiate(task, *space, sketch, {});
    REQUIRE_OK(made);
    const Result<codegen::Artifact> source = codegen::print_cuda_artifact(made->program, target);
    REQUIRE_OK(source);
    INFO(source->bytes);
    const Result<codegen::Cubin> cubin = codegen::compile_cubin(source->bytes, "sm_90a", {});
    REQUIRE_OK(cubin);
    CHECK(!cubin->serializes_wgmma);
    for (const codegen::KernelResources& kernel : cubin->info.kernels)
      CHECK(kernel.stack_bytes == 0);
  }
}

TEST_CASE("copies while products run compile without spills, and no wgmma waits for another",
          "[gpu]") {
  if (const auto nvrtc = codegen::nvrtc_info(); !nvrtc.ok()) {
    WARN("skipped: " << nvrtc.error().message());
    return;
  }
  // Through registers between commit and wait.
  check_cubins(narrow_product(130, 61, 136), "64x64");
  check_cubins(narrow_product(128, 128, 256, true), " threads");
  // Windows.
  check_cubins(convolution({8, 14, 256, 256, 3, 1, true, true}), "64x64");
}

TEST_CASE("long sums of few tiles have parts", "[gpu]") {
  Rng rng(17);
  const int shapes[][3] = {{64, 128, 1024}, {16, 200, 1000}, {100, 64, 512}};
  std::size_t turn = 0;
  for (const auto& [m, n, k] : shapes)
    check_sketch(narrow_product(m, n, k), turn++, &rng, "split k", 1);
  // One that fills the machine by itself, and a short one.
  for (const auto& [m, n, k] : {std::array{2048, 2048, 1024}, std::array{64, 64, 192}}) {
    const NamedProgram op = narrow_product(m, n, k);
    const Result<search::SearchSpace> space =
        search::make_space(search::make_task(op.name, op.program, gpu_target("cuda-host:sm_90a")));
    REQUIRE_OK(space);
    CHECK(wgmma_sketches(*space, "split k").empty());
    CHECK(!wgmma_sketches(*space).empty());
  }
}

TEST_CASE("no other target is offered wgmma", "[gpu]") {
  const NamedProgram op = half_products().front();
  for (const char* name : {"cuda-host:sm_80", "cuda:sm_89"}) {
    const Result<search::SearchSpace> space =
        search::make_space(search::make_task(op.name, op.program, gpu_target(name)));
    REQUIRE_OK(space);
    CHECK(wgmma_sketches(*space).empty());
  }
}

}  // namespace
}  // namespace prunerc::testing

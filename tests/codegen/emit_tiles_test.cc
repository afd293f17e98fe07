// Products in tile registers (AMX) in compiled code: the instructions, the interpreter's result, or a
// reason. Compiled everywhere, run where the CPU has them.
#include "codegen/codegen.h"
#include "codegen/cpu/export.h"
#include "codegen/cpu/features.h"
#include "codegen/subprocess.h"
#include "schedule/schedule.h"
#include "tests/codegen/kernel_run.h"
#include "tests/codegen/tile_check.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

struct Types {
  const char *a, *b, *c;
  int group;
  const char* instruction;
};
constexpr Types kS8S8 = {"i8", "i8", "i32", 4, "tdpbssd"},
                kS8U8 = {"i8", "u8", "i32", 4, "tdpbsud"},
                kU8S8 = {"u8", "i8", "i32", 4, "tdpbusd"},
                kU8U8 = {"u8", "u8", "i32", 4, "tdpbuud"},
                kHalves = {"bf16", "bf16", "f32", 2, "tdpbf16ps"};

struct Shape {
  int m, n, k;
};

// C[i,j] = sum of A[i,k]*B[k,j]: a nest of its own for the buffers of these names.
std::string nest(const Types& t, const Shape& s, const std::string& a, const std::string& c) {
  const std::string m = std::to_string(s.m), n = std::to_string(s.n), k = std::to_string(s.k);
  const std::string at = c + "[vi, vj]", type = t.c;
  return "for i in " + m + " { for j in " + n + " { for k in " + k + " { block \"" + c +
         "\" [vi: S(" + m + ") = i, vj: S(" + n + ") = j, vk: R(" + k + ") = k] { init { " + at +
         " = 0" + type + " } " + at + " = " + at + " + " + type + "(" + a + "[vi, vk])*" + type +
         "(B[vk, vj]) } } } } ";
}

std::string shape(const char* type, int rows, int columns) {
  return std::string(type) + "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
}

std::string product(const Types& t, const Shape& s) {
  return "program p(A: " + shape(t.a, s.m, s.k) + ", B: " + shape(t.b, s.k, s.n) +
         ") -> (C: " + shape(t.c, s.m, s.n) + ") { " + nest(t, s, "A", "C") + "}";
}

struct Tiling {
  int rows = 16, depth = 64;
  int r = 1, v = 1;  // tiles of sums, unrolled

  std::string name(const Types& t) const {
    return "x86_" + std::string(t.instruction) + "_" + std::to_string(rows) + "x16x" +
           std::to_string(depth);
  }
};

struct Loops {
  LoopId rows, columns, step;  // around all tiles
  LoopId r, v;
  LoopId nest;  // stands for the instruction
  BlockId block;
};

// B in panels of 16 columns; loops of tiles around a nest of the instruction's form.
Loops split(schedule::Schedule& s, BlockId block, const Types& t, const Tiling& how) {
  const std::vector<LoopId> loops = s.loops_of(block);
  REQUIRE(loops.size() == 3);
  const Result<BlockId> panels = s.cache_read(block, 1, Scope::kGlobal);
  REQUIRE_OK(panels);
  const std::string g = std::to_string(t.group);
  REQUIRE_OK(
      s.transform_layout(*panels, 0, "(k, j) -> (j // 16, k // " + g + ", j % 16, k % " + g + ")"));
  const auto i = s.split(loops[0], {-1, how.r, how.rows});
  const auto j = s.split(loops[1], {-1, how.v, 16});
  const auto k = s.split(loops[2], {-1, how.depth / t.group, t.group});
  REQUIRE_OK(i);
  REQUIRE_OK(j);
  REQUIRE_OK(k);
  REQUIRE_OK(
      s.reorder({(*i)[0], (*j)[0], (*k)[0], (*i)[1], (*j)[1], (*i)[2], (*j)[2], (*k)[1], (*k)[2]}));
  return {(*i)[0], (*j)[0], (*k)[0], (*i)[1], (*j)[1], (*i)[2], block};
}

Loops tile(schedule::Schedule& s, BlockId block, const Types& t, const Tiling& how) {
  Loops loops = split(s, block, t, how);
  const Result<BlockId> tensorized = s.tensorize(loops.nest, how.name(t));
  REQUIRE_OK(tensorized);
  loops.block = *tensorized;
  REQUIRE_OK(s.unroll(loops.r));
  REQUIRE_OK(s.unroll(loops.v));
  return loops;
}

Program tiled(const Types& t, const Program& base, const Tiling& how) {
  schedule::Schedule s(base, schedule::Verify::kEachStep);
  tile(s, s.blocks().front(), t, how);
  return s.program();
}

TEST_CASE("products of bytes of all signs, rows and depths are the interpreter's") {
  for (const Types& t : {kS8S8, kS8U8, kU8S8, kU8U8}) {
    for (const int rows : {4, 7, 16}) {
      for (const int depth : {32, 64}) {
        const Program base = parse_or_die(product(t, {2 * rows, 32, 3 * depth}));
        const Program s = tiled(t, base, {.rows = rows, .depth = depth});
        check_tiles(base, s, static_cast<uint64_t>(rows));
        CHECK(num_times(tile_assembly(s), std::string(t.instruction) + "\t") == 1);
      }
    }
  }
}

TEST_CASE("sums of a block of tiles stay in registers through the loop over the depth") {
  const struct {
    int r, v, loads;  // of factors, in a step of the depth
  } blocks[] = {{1, 1, 2}, {2, 2, 4}, {1, 4, 5}, {4, 1, 5}, {3, 2, 9}};
  for (const auto& block : blocks) {
    const Program base = parse_or_die(product(kU8S8, {16 * block.r * 2, 16 * block.v, 256}));
    const Program s = tiled(kU8S8, base, {.r = block.r, .v = block.v});
    check_tiles(base, s, 3);
    const std::string text = tile_assembly(s);
    INFO(text);
    const int sums = block.r * block.v;
    CHECK(num_times(text, "tdpbusd\t") == sums);
    CHECK(num_times(text, "tilestored\t") == sums);
    CHECK(num_times(text, "tileloadd\t") == block.loads);
    // They begin in their registers.
    CHECK(num_times(text, "tilezero\t") == sums);
    CHECK(num_times(text, "ldtilecfg\t") == 1);
    CHECK(num_times(text, "tilerelease") == 1);
  }
}

TEST_CASE("more sums than registers are brought and taken away by each product or row of them") {
  for (const auto& [r, v] : {std::pair{4, 2}, {2, 4}, {4, 4}, {1, 8}}) {
    const Program base = parse_or_die(product(kS8S8, {16 * r, 16 * v, 192}));
    const Program s = tiled(kS8S8, base, {.r = r, .v = v});
    check_tiles(base, s, 5);
    const std::string text = tile_assembly(s);
    CHECK(num_times(text, "tdpbssd\t") == r * v);
    CHECK(num_times(text, "tilestored\t") == r * v);
    CHECK(num_times(text, "tilezero\t") == 0);
  }
}

TEST_CASE("tiles of random sizes, blocks and loops are the interpreter's") {
  const Types types[] = {kS8S8, kS8U8, kU8S8, kU8U8, kHalves};
  for (int i = 0; i < num_cases(12); ++i) {
    Rng rng(first_seed(), static_cast<uint64_t>(i));
    const auto draw = [&](int64_t low, int64_t high) {
      return static_cast<int>(rng.between(low, high));
    };
    const Types& t = types[draw(0, 4)];
    const Tiling how{
        .rows = draw(4, 16), .depth = 8 * draw(1, 2) * t.group, .r = draw(1, 4), .v = draw(1, 4)};
    const Shape shape{how.rows * how.r * draw(1, 2), 16 * how.v * draw(1, 2),
                      how.depth * draw(1, 4)};
    const Program base = parse_or_die(product(t, shape));
    schedule::Schedule s(base, schedule::Verify::kEachStep);
    const Loops loops = tile(s, s.blocks().front(), t, how);
    if (rng.chance(0.5)) REQUIRE_OK(s.reorder({loops.r, loops.v, loops.step}));
    if (rng.chance(0.5)) REQUIRE_OK(s.parallel(loops.rows));
    check_tiles(base, s.program(), static_cast<uint64_t>(i),
                t.group == 2 ? "+amx-bf16" : "+amx-int8");
  }
}

TEST_CASE("one step of the depth, and one tile in all, need no loop") {
  for (const Shape& shape : {Shape{32, 32, 64}, {16, 16, 64}}) {
    const Program base = parse_or_die(product(kU8U8, shape));
    check_tiles(base, tiled(kU8U8, base, {}), 7);
  }
}

TEST_CASE("loops around tiles may be of any kind") {
  const Program base = parse_or_die(product(kU8S8, {40, 48, 192}));
  const auto changed = [&](auto&& change) {
    schedule::Schedule s(base, schedule::Verify::kEachStep);
    change(s, tile(s, s.blocks().front(), kU8S8, {.rows = 10, .r = 2}));
    check_tiles(base, s.program(), 6);
  };
  using schedule::Schedule;
  changed([](Schedule& s, const Loops& l) { REQUIRE_OK(s.vectorize(l.rows)); });
  changed([](Schedule& s, const Loops& l) { REQUIRE_OK(s.parallel(l.rows)); });
  changed([](Schedule& s, const Loops& l) { REQUIRE_OK(s.unroll(l.columns)); });
  changed([](Schedule& s, const Loops& l) { REQUIRE_OK(s.unroll(l.step)); });
  changed([](Schedule& s, const Loops& l) {
    const auto fused = s.fuse({l.rows, l.columns});
    REQUIRE_OK(fused);
    REQUIRE_OK(s.parallel(*fused));
  });
  changed([](Schedule& s, const Loops& l) { REQUIRE_OK(s.decompose_reduction(l.block, l.step)); });
}

TEST_CASE("an epilogue reads sums that tile registers have left in memory") {
  const Shape s{32, 32, 128};
  const std::string text =
      "program p(A: u8[32, 128], B: i8[128, 32], bias: i32[32]) -> (Y: i32[32, 32]) { buffer T: "
      "i32[32, 32] global " +
      nest(kU8S8, s, "A", "T") +
      "for i in 32 { for j in 32 { block \"Y\" [vi: S(32) = i, vj: S(32) = j] { Y[vi, vj] = "
      "max(T[vi, vj] + bias[vj], 0i32) } } } }";
  const Program base = parse_or_die(text);
  for (const Scope scope : {Scope::kGlobal, Scope::kLocal}) {
    schedule::Schedule done(base, schedule::Verify::kEachStep);
    const BlockId product = done.blocks().front(), epilogue = done.blocks().back();
    const Loops loops = tile(done, product, kU8S8, {.r = 2, .v = 1});
    REQUIRE_OK(done.reverse_compute_at(epilogue, loops.columns));
    if (scope == Scope::kLocal) REQUIRE_OK(done.set_scope(loops.block, 0, scope));
    check_tiles(base, done.program(), 8);
  }
}

TEST_CASE("the extremes of bytes do not saturate in tiles") {
  const struct {
    Types types;
    double a, b;
  } cases[] = {{kS8S8, -128, -128},
               {kS8S8, 127, -128},
               {kU8U8, 255, 255},
               {kU8S8, 255, -128},
               {kS8U8, -128, 255}};
  for (const auto& c : cases) {
    const Program base = parse_or_die(product(c.types, {16, 16, 128}));
    const Program s = tiled(c.types, base, {});
    REQUIRE_OK(codegen::compile_cpu(s, sapphire_rapids()));
    if (!has_tiles()) continue;
    std::vector<Tensor> inputs;
    for (const BufferId id : base.params().subspan(0, 2)) {
      const Buffer& buffer = base.buffer(id);
      Tensor& input =
          inputs.emplace_back(buffer.dtype, inputs.empty() ? std::vector<int64_t>{16, 128}
                                                           : std::vector<int64_t>{128, 16});
      for (int64_t i = 0; i < 16 * 128; ++i) input.set(i, inputs.size() == 1 ? c.a : c.b);
    }
    const Result<std::vector<Tensor>> got = compile_and_run(s, inputs);
    REQUIRE_OK(got);
    CHECK(first_difference(interpret_or_die(base, inputs), *got) == "");
  }
}

TEST_CASE("products of bf16 are exact on small whole numbers, and close on others") {
  for (const int depth : {16, 32}) {
    const Program base = parse_or_die(product(kHalves, {24, 32, 4 * depth}));
    const Program s = tiled(kHalves, base, {.rows = 12, .depth = depth, .r = 2, .v = 2});
    check_tiles(base, s, 9, "+amx-bf16");
    CHECK(num_times(tile_assembly(s), "tdpbf16ps\t") == 4);
    if (!has_tiles("+amx-bf16")) continue;
    Rng rng(first_seed());
    std::vector<Tensor> inputs = random_inputs(base, rng);
    for (Tensor& input : inputs) {
      for (int64_t i = 0; i < input.shape[0] * input.shape[1]; ++i)
        input.set(i, (static_cast<double>(rng.below(20001)) - 10000) / 10000);
    }
    const std::vector<Tensor> want = interpret_or_die(base, inputs);
    const Result<std::vector<Tensor>> got = compile_and_run(s, inputs);
    REQUIRE_OK(got);
    // Factors below 1: each of the sums has so many terms.
    const double bound = 4 * depth * std::ldexp(4 * depth, -24);
    for (int64_t i = 0; i < 24 * 32; ++i)
      CHECK(std::fabs(want[0].get(i) - (*got)[0].get(i)) <= bound);
  }
}

// Three products, the second on threads, of tiles with other numbers of rows.
Program three_products(Program* base) {
  const Shape c{32, 32, 128}, d{24, 32, 128}, e{28, 32, 128};
  *base = parse_or_die(
      "program p(A: u8[32, 128], X: u8[24, 128], Z: u8[28, 128], B: i8[128, 32]) -> (C: i32[32, "
      "32], D: i32[24, 32], E: i32[28, 32]) { " +
      nest(kU8S8, c, "A", "C") + nest(kU8S8, d, "X", "D") + nest(kU8S8, e, "Z", "E") + "}");
  schedule::Schedule s(*base, schedule::Verify::kEachStep);
  const std::vector<BlockId> blocks = s.blocks();
  tile(s, blocks[0], kU8S8, {.r = 2, .v = 2});
  const Loops loops = tile(s, blocks[1], kU8S8, {.rows = 6, .v = 2});
  REQUIRE_OK(s.parallel(loops.rows));
  tile(s, blocks[2], kU8S8, {.rows = 14, .r = 2, .v = 2});
  return s.program();
}

TEST_CASE("tiles of several sizes, on this thread before and behind others', are configured anew") {
  Program base;
  const Program s = three_products(&base);
  check_tiles(base, s, 11);
  const std::string text = tile_assembly(s);
  INFO(text);
  // The kernel's: at its begin, behind the parallel loop, for the last product and behind it; the
  // task's. Each is given up, too: before the loop, at the ends of both functions, and where the loop
  // fails there is none.
  CHECK(num_times(text, "ldtilecfg\t") == 5);
  CHECK(num_times(text, "tilerelease") == 3);
}

TEST_CASE("a task alone configures the registers of its thread") {
  const Program base = parse_or_die(product(kU8S8, {64, 32, 64}));
  schedule::Schedule s(base, schedule::Verify::kEachStep);
  const Loops loops = tile(s, s.blocks().front(), kU8S8, {});
  REQUIRE_OK(s.parallel(loops.rows));
  check_tiles(base, s.program(), 12);
  CHECK(num_times(tile_assembly(s.program()), "ldtilecfg\t") == 1);
  CHECK(num_times(tile_assembly(s.program()), "tilerelease") == 1);
}

TEST_CASE("nests of other sizes, types and places are refused by the schedule") {
  const auto refused = [](const Types& t, const Tiling& how, const Types& wanted,
                          const Tiling& instruction) {
    schedule::Schedule s(parse_or_die(product(t, {2 * how.rows, 32, 2 * how.depth})));
    const Loops loops = split(s, s.blocks().front(), t, how);
    CHECK_DIAG(s.tensorize(loops.nest, instruction.name(wanted)), TensorMismatch);
  };
  refused(kU8S8, {.rows = 12}, kU8S8, {.rows = 16});
  refused(kU8S8, {.rows = 16}, kU8S8, {.rows = 12});
  refused(kU8S8, {.depth = 32}, kU8S8, {.depth = 64});
  refused(kU8S8, {}, kS8S8, {});
  refused(kU8S8, {}, kS8U8, {});
  refused(kHalves, {.depth = 32}, kU8S8, {.depth = 64});
  schedule::Schedule s(parse_or_die(product(kU8S8, {32, 32, 128})));
  const Loops loops = split(s, s.blocks().front(), kU8S8, {});
  CHECK_DIAG(s.tensorize(loops.nest, "x86_tdpbusd_17x16x64"), TensorUnknown);
  CHECK_DIAG(s.tensorize(loops.step, "x86_tdpbusd_16x16x64"), TensorMismatch);
  REQUIRE_OK(s.unroll(loops.nest));
  CHECK_FALSE(s.tensorize(loops.nest, "x86_tdpbusd_16x16x64").ok());
}

TEST_CASE("factors that are not in groups, and rows that a condition cuts, are refused") {
  schedule::Schedule plain(parse_or_die(product(kU8S8, {16, 16, 64})));
  const std::vector<LoopId> loops = plain.loops_of(plain.blocks().front());
  const auto k = plain.split(loops[2], {-1, 4});
  REQUIRE_OK(k);
  CHECK_DIAG(plain.tensorize(loops[0], "x86_tdpbusd_16x16x64"), TensorMismatch);
  schedule::Schedule cut(parse_or_die(product(kU8S8, {20, 32, 128})));
  const Loops tiles = split(cut, cut.blocks().front(), kU8S8, {});
  CHECK_FALSE(cut.tensorize(tiles.nest, "x86_tdpbusd_16x16x64").ok());
}

TEST_CASE("CPUs without tile registers are refused, and attributes that loops do not deserve") {
  const Program s = tiled(kU8S8, parse_or_die(product(kU8S8, {16, 16, 64})), {});
  const Program halves =
      tiled(kHalves, parse_or_die(product(kHalves, {16, 16, 32})), {.depth = 32});
  for (const char* text : {"cpu:haswell", "cpu:icelake-server", "cpu:znver4",
                           "cpu:sapphirerapids llvm_features=-amx-tile"}) {
    const Result<Target> target = target_from_string(text);
    REQUIRE_OK(target);
    CHECK_DIAG(codegen::compile_cpu(s, *target), TensorTarget);
    CHECK_DIAG(codegen::compile_cpu(halves, *target), TensorTarget);
  }
  const Program wrong = parse_or_die(
      "program p(A: u8[16, 64], B: i8[64, 16]) -> (C: i32[16, 16]) { for i in 16 "
      "{tensor_x86_tdpbusd_16x16x64 = 1} { for j in 16 { for g in 16 { for k in 4 { C[i, j] = C[i, "
      "j] + i32(A[i, g*4 + k])*i32(B[g*4 + k, j]) } } } } }");
  CHECK_DIAG(codegen::compile_cpu(wrong, sapphire_rapids()), TensorMismatch);
}

using Names = std::vector<std::string>;

TEST_CASE("a kernel that uses tile registers demands them, and no other does") {
  const auto features = [](const Program& program) {
    const Result<codegen::Artifact> artifact = codegen::compile_cpu(program, sapphire_rapids());
    REQUIRE_OK(artifact);
    return artifact->tile_features;
  };
  const Program plain = parse_or_die(product(kU8S8, {16, 16, 64}));
  CHECK(features(plain).empty());
  CHECK(features(tiled(kU8S8, plain, {})) == Names{"amx-tile", "amx-int8"});
  const Program halves = parse_or_die(product(kHalves, {16, 16, 32}));
  CHECK(features(tiled(kHalves, halves, {.depth = 32})) == Names{"amx-tile", "amx-bf16"});
  const Result<Names> enabled = codegen::cpu_features(sapphire_rapids());
  REQUIRE_OK(enabled);
  const auto needs = [&](const Names& tiles, std::string_view name) {
    const std::vector<codegen::CpuFeature> needed = codegen::needed_features(*enabled, tiles);
    return std::any_of(needed.begin(), needed.end(), [&](const auto& f) { return f.name == name; });
  };
  CHECK_FALSE(needs({}, "amx-tile"));
  CHECK_FALSE(needs({}, "amx-int8"));
  CHECK(needs({"amx-tile", "amx-int8"}, "amx-int8"));
  CHECK_FALSE(needs({"amx-tile", "amx-int8"}, "amx-bf16"));
}

codegen::CpuLibrary library_of(const Program& program, const Target& target) {
  codegen::CpuOptions options;
  options.symbol = "op_tiles_code";
  codegen::CpuLibrary library;
  library.artifact = codegen::compile_cpu(program, target, options).value();
  library.cpu_features = codegen::cpu_features(target).value();
  library.info.symbol = "op_tiles";
  library.info.name = "tiles";
  library.info.num_threads = 2;
  return library;
}

TEST_CASE("an exported library asks for the registers that it uses") {
  const Program plain = parse_or_die(product(kU8S8, {16, 16, 64}));
  const std::string without = codegen::cpu_library_source(library_of(plain, sapphire_rapids()));
  CHECK(num_times(without, "#define PR_USES_TILES 0\n") == 1);
  CHECK(num_times(without, "\"amx-") == 0);
  const std::string with =
      codegen::cpu_library_source(library_of(tiled(kU8S8, plain, {}), sapphire_rapids()));
  CHECK(num_times(with, "#define PR_USES_TILES 1\n") == 1);
  CHECK(num_times(with, "{\"amx-tile\", 0x7, 0, 3, 24, 0x60000}") == 1);
  CHECK(num_times(with, "{\"amx-int8\", 0x7, 0, 3, 25, 0x60000}") == 1);
  CHECK(num_times(with, "amx-bf16") == 0);
}

using Call = int (*)(const uint8_t*, const int8_t*, int32_t*);

/// The function of a library, which stays while the object does.
struct Exported {
  explicit Exported(const Program& program, const Target& target) {
    const Result<std::string> built =
        codegen::build_cpu_library(library_of(program, target), codegen::CpuLibraryForm::kShared);
    REQUIRE_OK(built);
    const Result<codegen::ScratchFolder> folder = codegen::ScratchFolder::make();
    REQUIRE_OK(folder);
    const std::string path = folder->file("tiles.so");
    REQUIRE_OK(codegen::write_file(path, *built));
    loaded.reset(dlopen(path.c_str(), RTLD_NOW));
    REQUIRE(loaded != nullptr);
    call = reinterpret_cast<Call>(dlsym(loaded.get(), "op_tiles"));
    REQUIRE(call != nullptr);
  }
  struct Close {
    void operator()(void* library) const { dlclose(library); }
  };
  std::unique_ptr<void, Close> loaded;
  Call call = nullptr;
};
constexpr int kNoSuchCpu = 2;  // PRUNERC_ERROR_CPU

TEST_CASE("an exported library computes in tiles on two threads") {
  const Program base = parse_or_die(product(kU8S8, {64, 32, 128}));
  schedule::Schedule s(base, schedule::Verify::kEachStep);
  REQUIRE_OK(s.parallel(tile(s, s.blocks().front(), kU8S8, {.v = 2}).rows));
  const Target target = has_tiles() ? codegen::host_target(Target{}) : sapphire_rapids();
  const Exported library(s.program(), target);
  Rng rng(3);
  const std::vector<Tensor> inputs = random_inputs(base, rng);
  std::vector<int32_t> got(64 * 32);
  const int code = library.call(reinterpret_cast<const uint8_t*>(inputs[0].data.data()),
                                reinterpret_cast<const int8_t*>(inputs[1].data.data()), got.data());
  CHECK(code == (has_tiles() ? 0 : kNoSuchCpu));
  if (code != 0) return;
  const Tensor want = interpret_or_die(base, inputs)[0];
  for (int64_t i = 0; i < 64 * 32; ++i)
    REQUIRE(static_cast<double>(got[static_cast<std::size_t>(i)]) == want.get(i));
}

// Run by the next test in a process that has not asked for tile registers yet.
TEST_CASE("a library whose thread has a small signal stack", "[.small_signal_stack]") {
  const Program plain = parse_or_die(product(kU8S8, {16, 16, 64}));
  const Exported library(tiled(kU8S8, plain, {}), codegen::host_target(Target{}));
  const std::vector<uint8_t> a(16 * 64, 1);
  const std::vector<int8_t> b(64 * 16, 2);
  std::vector<int32_t> c(16 * 16, 7);
  std::vector<char> memory(8 << 10);
  stack_t stack{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  REQUIRE(sigaltstack(&stack, nullptr) == 0);
  CHECK(library.call(a.data(), b.data(), c.data()) == kNoSuchCpu);
  CHECK(c == std::vector<int32_t>(16 * 16, 7));
  stack.ss_flags = SS_DISABLE;
  REQUIRE(sigaltstack(&stack, nullptr) == 0);
  CHECK(library.call(a.data(), b.data(), c.data()) == 0);
  CHECK(c == std::vector<int32_t>(16 * 16, 64 * 2));
}

TEST_CASE("an exported library is refused tile registers while a signal stack is too small") {
  if (!has_tiles()) return;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    execl("/proc/self/exe", "codegen_test", "[small_signal_stack]", "-w", "NoTests", nullptr);
    _exit(1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace
}  // namespace prunerc

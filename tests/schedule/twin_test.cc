// Small twins: what shrinks with what, that tails stay tails, and that the verifier takes the pair.
#include "schedule/twin/twin.h"

#include "ir/fpv/fpv.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "schedule/schedule.h"
#include "schedule/twin/narrow.h"
#include "schedule/twin/shrink.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <optional>
#include <string>
#include <utility>

namespace prunerc {
namespace {

using namespace ir;        // NOLINT: a test
using namespace schedule;  // NOLINT: a test
using namespace testing;   // NOLINT: a test

const char* const kMatmul = R"(
program p(A: f32[512, 300], B: f32[300, 500], bias: f32[500]) -> (C: f32[512, 500]) {
  buffer T: f32[512, 500] global
  for i in 512 @L0 { for j in 500 @L1 { for k in 300 @L2 {
    block "T" @B0 [vi: S(512) = i, vj: S(500) = j, vk: R(300) = k] {
      reads A[vi, vk], B[vk, vj]
      writes T[vi, vj]
      init { T[vi, vj] = 0f32 }
      T[vi, vj] = T[vi, vj] + A[vi, vk]*B[vk, vj]
  } } } }
  for i in 512 @L3 { for j in 500 @L4 {
    block "C" @B1 [vi: S(512) = i, vj: S(500) = j] {
      reads T[vi, vj], bias[vj]
      writes C[vi, vj]
      C[vi, vj] = max(T[vi, vj] + bias[vj], 0f32)
  } } }
})";

const char* const kConv = R"(
program p(X: f32[64, 56], F: f32[32, 64, 3]) -> (Y: f32[32, 28]) {
  buffer P: f32[64, 58] global
  for c in 64 @L0 { for w in 58 @L1 {
    block "pad" @B0 [vc: S(64) = c, vw: S(58) = w] {
      reads X[vc, vw - 1]
      writes P[vc, vw]
      P[vc, vw] = select(1 <= vw && vw < 57, X[vc, vw - 1], 0f32)
  } } }
  for o in 32 @L2 { for w in 28 @L3 { for c in 64 @L4 { for k in 3 @L5 {
    block "Y" @B1 [vo: S(32) = o, vw: S(28) = w, vc: R(64) = c, vk: R(3) = k] {
      reads P[vc, vw*2 + vk], F[vo, vc, vk]
      writes Y[vo, vw]
      init { Y[vo, vw] = 0f32 }
      Y[vo, vw] = Y[vo, vw] + P[vc, vw*2 + vk]*F[vo, vc, vk]
  } } } } }
})";

std::string shape(const Program& program, const char* name) {
  for (const Buffer& buffer : program.buffers()) {
    if (buffer.name != name) continue;
    std::string out;
    for (Expr extent : buffer.shape) {
      out += (out.empty() ? "" : " ") + std::to_string(extent.as<IntImm>()->value);
    }
    return out;
  }
  return "none";
}

void check_defined(const Program& program) {
  INFO(print(program));
  REQUIRE_OK(verify(program));
  const FpvVerdict verdict = check_equivalent(program, program);
  INFO(to_string(verdict));
  CHECK(verdict.ok());
}

TEST_CASE("loops over one dimension shrink together, buffers with them") {
  const Result<Program> small =
      shrink(parse_or_die(kMatmul), {{LoopId(0), 12}, {LoopId(4), 10}}, {{LoopId(2), 7}});
  REQUIRE_OK(small);
  CHECK(shape(*small, "A") == "12 7");
  CHECK(shape(*small, "B") == "7 10");
  CHECK(shape(*small, "T") == "12 10");
  CHECK(shape(*small, "bias") == "10");
  check_defined(*small);
}

TEST_CASE("a padded input and its condition follow the convolution that reads it") {
  const Result<Program> small = shrink(parse_or_die(kConv), {{LoopId(3), 6}, {LoopId(2), 4}},
                                       {{LoopId(0), 5}, {LoopId(4), 5}});
  REQUIRE_OK(small);
  CHECK(shape(*small, "Y") == "4 6");
  CHECK(shape(*small, "P") == "5 14");  // 58 - 2*(28 - 6)
  CHECK(shape(*small, "X") == "5 12");
  check_defined(*small);
}

TEST_CASE("limits of the last indices fall with the loop, those of the first stay") {
  const Program base = parse_or_die(R"(
program p(A: f32[400]) -> (C: f32[400]) {
  for i in 400 @L0 { block "c" @B0 [v: S(400) = i] {
    reads A[v] writes C[v]
    C[v] = select(v < 1, exp(A[v]), select(v <= 396, A[v]*2f32, A[v])) } } })");
  const Result<Program> small = shrink(base, {{LoopId(0), 5}}, {});
  REQUIRE_OK(small);
  const std::string text = print(*small);
  INFO(text);
  CHECK(text.find("v < 1") != std::string::npos);
  CHECK(text.find("v <= 1") != std::string::npos);
}

TEST_CASE("what is small stays as it is") {
  const Program base = parse_or_die(
      "program p(A: f32[4]) -> (C: f32[4]) { for i in 4 @L0 { block \"c\" @B0 [v: S(4) = i] { "
      "reads "
      "A[v] writes C[v] C[v] = A[v] } } }");
  Schedule s(base);
  REQUIRE_OK(s.split(LoopId(0), {2, 2}));
  const Result<Twin> twin = make_twin(base, s.trace());
  REQUIRE_OK(twin);
  CHECK(twin->is_true_shape);
  CHECK(twin->base.is(base));
}

// Tiles of 16 (and 4 of them) in j, which leave a tail, and of 8 in i, which do not.
Schedule tiled() {
  Schedule s(parse_or_die(kMatmul));
  const Result<std::vector<LoopId>> j = s.split(LoopId(1), {-1, 4, 16});
  REQUIRE_OK(j);
  const Result<std::vector<Int>> tiles = s.decide_perfect_tile(LoopId(0), 3, 0, {16, 4, 8});
  REQUIRE_OK(tiles);
  const Result<std::vector<LoopId>> i = s.split(LoopId(0), *tiles);
  REQUIRE_OK(i);
  REQUIRE_OK(s.reorder({(*i)[0], (*j)[0], (*i)[1], (*j)[1], LoopId(2), (*i)[2], (*j)[2]}));
  REQUIRE_OK(s.vectorize((*j)[2]));
  REQUIRE_OK(s.reverse_compute_at(BlockId(1), (*j)[1]));
  const Result<LoopId> fused = s.fuse({(*i)[0], (*j)[0]});
  REQUIRE_OK(fused);
  REQUIRE_OK(s.parallel(*fused));
  return s;
}

TEST_CASE("a twin keeps literal tile sizes, tails and structure, and is equal to its base") {
  const Program base = parse_or_die(kMatmul);
  const Schedule s = tiled();
  const Result<Twin> twin = make_twin(base, s.trace());
  REQUIRE_OK(twin);
  CHECK_FALSE(twin->is_true_shape);
  REQUIRE_OK(verify(twin->scheduled));
  const std::string text = print(twin->scheduled);
  INFO(text);
  CHECK(text.find("in 16") != std::string::npos);
  CHECK(text.find("vectorized") != std::string::npos);
  CHECK(text.find("where") != std::string::npos);
  CHECK(cost_of(twin->base) <= 200'000);
  const FpvVerdict verdict = check_equivalent(twin->base, twin->scheduled);
  INFO(to_string(verdict));
  CHECK(verdict.ok());
}

const char* const kGrouped = R"(
program g(X: f32[64, 130], F: f32[256, 16, 3]) -> (Y: f32[256, 128]) {
  for o in 256 @L0 { for w in 128 @L1 { for c in 16 @L2 { for k in 3 @L3 {
    block "Y" @B0 [vo: S(256) = o, vw: S(128) = w, vc: R(16) = c, vk: R(3) = k] {
      init { Y[vo, vw] = 0f32 }
      Y[vo, vw] = Y[vo, vw] + X[vo // 64*16 + vc, vw + vk]*F[vo, vc, vk]
  } } } } }
})";

const char* const kTransposed = R"(
program t(X: f32[32, 64], F: f32[32, 4]) -> (Y: f32[128]) {
  for o in 128 @L0 { for c in 32 @L1 { for k in 4 @L2 {
    block "Y" @B0 [v: S(128) = o, vc: R(32) = c, u: R(4) = k] {
      init { Y[v] = 0f32 }
      Y[v] = Y[v] + select((v + 1 - u) % 2 == 0, select(0 <= (v + 1 - u) // 2 && (v + 1 - u) // 2 < 64,
        X[vc, (v + 1 - u) // 2], 0f32)*F[vc, u], 0f32)
  } } } }
})";

TEST_CASE("a variable taken apart by an index map shrinks by its quotient") {
  Schedule grouped(parse_or_die(kGrouped));
  const auto axes =
      grouped.transform_block_layout(BlockId(0), "(o, w, c, k) -> (o // 64, o % 64, w, c, k)");
  REQUIRE_OK(axes);
  REQUIRE_OK(grouped.split(axes->at(1), {-1, 8}));
  REQUIRE_OK(grouped.split(axes->at(2), {-1, 16}));
  Schedule phases(parse_or_die(kTransposed));
  REQUIRE_OK(phases.narrow_reduction(BlockId(0), 2));
  REQUIRE_OK(phases.pad_read(BlockId(0), 0, Scope::kGlobal));
  const auto halves =
      phases.transform_block_layout(BlockId(0), "(o, c, k) -> (o % 2, o // 2, c, k)");
  REQUIRE_OK(halves);
  REQUIRE_OK(phases.split(halves->at(1), {-1, 16}));
  for (const auto& [text, s] : {std::pair(kGrouped, &grouped), std::pair(kTransposed, &phases)}) {
    const Program base = parse_or_die(text);
    const Result<Twin> twin = make_twin(base, s->trace(), {.max_cost = 2'000});
    REQUIRE_OK(twin);
    INFO(print(twin->scheduled));
    CHECK_FALSE(twin->is_true_shape);
    CHECK(4 * cost_of(twin->base) < cost_of(base));
    REQUIRE_OK(verify(twin->scheduled));
    CHECK(check_equivalent(twin->base, twin->scheduled).ok());
  }
}

TEST_CASE("of variables that an index map makes one, all but the outermost keep their sizes") {
  const char* const text = R"(
program p(X: f32[2, 58, 14, 16], F: f32[3, 16, 128]) -> (Y: f32[2, 56, 14, 128]) {
  for n in 2 @L0 { for h in 56 @L1 { for w in 14 @L2 { for o in 128 @L3 {
  for k in 3 @L4 { for c in 16 @L5 {
    block "Y" @B0 [vn: S(2) = n, vh: S(56) = h, vw: S(14) = w, vo: S(128) = o, vk: R(3) = k,
                   vc: R(16) = c] {
      init { Y[vn, vh, vw, vo] = 0f32 }
      Y[vn, vh, vw, vo] = Y[vn, vh, vw, vo] + X[vn, vh + vk, vw, vc]*F[vk, vc, vo]
  } } } } } } }
})";
  const Program base = parse_or_die(text);
  Schedule s(base);
  const auto axes =
      s.transform_block_layout(BlockId(0), "(n, h, w, o, k, c) -> (n, h*14 + w, o, k, c)");
  REQUIRE_OK(axes);
  REQUIRE_OK(s.split(axes->at(1), {-1, 6}));
  REQUIRE_OK(s.split(axes->at(2), {-1, 16}));
  const Result<Twin> twin = make_twin(base, s.trace(), {.max_cost = 20'000});
  REQUIRE_OK(twin);
  INFO(print(twin->scheduled));
  CHECK(shape(twin->base, "Y").find(" 14 ") != std::string::npos);
  CHECK(4 * cost_of(twin->base) < cost_of(base));
  REQUIRE_OK(verify(twin->scheduled));
  CHECK(check_equivalent(twin->base, twin->scheduled).ok());
}

TEST_CASE("a variable of extent 1 keeps no other one of its index map long") {
  const Program base = parse_or_die(R"(
program p(X: f32[1, 1000003]) -> (Y: f32[1, 1000003]) {
  for n in 1 @L0 { for i in 1000003 @L1 {
    block "Y" @B0 [vn: S(1) = n, vi: S(1000003) = i] { Y[vn, vi] = max(X[vn, vi], 0f32) }
  } }
})");
  for (const char* map : {"(n, i) -> (i)", "(n, i) -> (n*1000003 + i)"}) {
    Schedule s(base);
    const auto axes = s.transform_block_layout(BlockId(0), map);
    REQUIRE_OK(axes);
    REQUIRE_OK(s.split(axes->at(0), {-1, 16}));
    const Result<Twin> twin = make_twin(base, s.trace(), {.max_cost = 2'000});
    REQUIRE_OK(twin);
    INFO(print(twin->scheduled));
    CHECK_FALSE(twin->is_true_shape);
    // Two whole tiles and a tail of 3.
    CHECK(shape(twin->base, "Y") == "1 35");
    REQUIRE_OK(verify(twin->scheduled));
    CHECK(check_equivalent(twin->base, twin->scheduled).ok());
  }
}

TEST_CASE("a fault of the trace's result is seen on the twin as well") {
  const Program base = parse_or_die(kMatmul);
  const Schedule s = tiled();
  Result<Twin> twin = make_twin(base, s.trace());
  REQUIRE_OK(twin);
  // The tail's condition is lost.
  std::string text = print(twin->scheduled);
  const std::size_t at = text.find(" where ");
  REQUIRE(at != std::string::npos);
  text.erase(at, text.find(" {", at) - at);
  CHECK_FALSE(check_equivalent(twin->base, parse_or_die(text)).ok());
}

const char* const kHalfProduct = R"(
program p(A: f16[4096, 4096], B: f16[4096, 4096]) -> (C: f32[4096, 4096]) {
  for i in 4096 @L0 { for j in 4096 @L1 { for k in 4096 @L2 {
    block "C" @B0 [vi: S(4096) = i, vj: S(4096) = j, vk: R(4096) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + f32(A[vi, vk])*f32(B[vk, vj])
  } } } }
})";

// Tiles of 128 x 128 in groups of 16 below each other, four for each block.
const char* const kGroupedTiles = R"(
sample_categorical([1, 4, 8, 16], [1, 1, 1, 1]) -> v0 = [3]
sample_categorical([1, 2, 4, 8], [1, 1, 1, 1]) -> v1 = [2]
cache_write(@B0, 0, "local") -> @B1, @L3, @L4
split(@L0, [-1, v0, 2, 64]) -> @L15, @L65, @L6, @L7
split(@L1, [-1, 128]) -> @L18, @L9
split(@L2, [-1, 4, 16]) -> @L10, @L11, @L12
reorder([@L15, @L18, @L65, @L10, @L6, @L11, @L7, @L9, @L12])
fuse([@L15, @L18, @L65]) -> @L60
split(@L60, [v1, -1]) -> @L61, @L62
reorder([@L62, @L61])
reverse_compute_at(@B1, @L61) -> @L13, @L14
split(@L13, [2, 64]) -> @L50, @L51
split(@L14, [1, 128]) -> @L52, @L53
reorder([@L50, @L52, @L51, @L53])
bind(@L50, "thread.y")
cache_read(@B0, 0, "shared") -> @B2, @L25, @L26
cache_read(@B0, 1, "shared") -> @B3, @L27, @L28
compute_at(@B2, @L10) -> @L19, @L20
compute_at(@B3, @L10) -> @L21, @L22
swizzle(@B2, 0, 128)
swizzle(@B3, 0, 128)
bulk_copy(@L19)
bulk_copy(@L21)
decompose_reduction(@B0, @L10) -> @B4, @L23, @L24, @L29
bind(@L23, "thread.y")
bind(@L6, "thread.y")
tensorize(@L7, "wgmma_m64n128k16_f16")
bind(@L62, "block.x")
software_pipeline(@L10, [0, 0, 3], [0, 1, 2])
)";

TEST_CASE("a product of warpgroups is narrowed where its columns are cut, and nowhere else") {
  const Program base = parse_or_die(kHalfProduct);
  const Result<Trace> trace = parse_trace(kGroupedTiles);
  REQUIRE_OK(trace);
  const std::optional<Trace> narrow = narrowed(base, *trace, 8);
  REQUIRE(narrow.has_value());
  const std::string text = print(*narrow);
  INFO(text);
  for (const char* step : {"wgmma_m64n8k16_f16", "split(@L1, [-1, 8])", "split(@L14, [1, 8])",
                           "split(@L0, [-1, v0, 2, 64])", "split(@L13, [2, 64])",
                           "split(@L2, [-1, 4, 16])", "swizzle(@B2, 0, 32)", "[1, 4, 8, 2]"}) {
    CHECK(text.find(step) != std::string::npos);
  }
  CHECK_FALSE(narrowed(base, *narrow, 8).has_value());
  CHECK_FALSE(narrowed(parse_or_die(kMatmul), tiled().trace(), 8).has_value());
}

TEST_CASE("tiles in groups have a twin of eight narrow tiles") {
  const Program base = parse_or_die(kHalfProduct);
  const Result<Trace> trace = parse_trace(kGroupedTiles);
  REQUIRE_OK(trace);
  REQUIRE_OK(replay(base, *trace));
  const Result<Twin> twin = make_twin(base, *trace);
  REQUIRE_OK(twin);
  INFO(print(twin->scheduled));
  REQUIRE_OK(verify(twin->scheduled));
  // Two groups, two tiles in each, two warpgroups; two columns of tiles; two steps of the ring.
  CHECK(shape(twin->base, "A") == "512 128");
  CHECK(shape(twin->base, "C") == "512 16");
  FpvOptions options;
  options.max_steps = 2'000'000;
  const FpvVerdict verdict = check_equivalent(twin->base, twin->scheduled, options);
  INFO(to_string(verdict));
  CHECK(verdict.ok());
}

TEST_CASE("a fault in the order of tiles is seen on the twin") {
  const Program base = parse_or_die(kHalfProduct);
  const Result<Trace> trace = parse_trace(kGroupedTiles);
  REQUIRE_OK(trace);
  const Result<Twin> twin = make_twin(base, *trace);
  REQUIRE_OK(twin);
  const std::string text = print(twin->scheduled);
  INFO(text);
  int num_planted = 0;
  // Divisors in what the variables of blocks are.
  for (std::size_t block = text.find("block \""); block != text.npos;
       block = text.find("block \"", block + 1)) {
    const std::size_t end = text.find(']', block);
    for (const std::string& op : {std::string("// "), std::string("% ")}) {
      for (std::size_t at = text.find(op, block); at < end; at = text.find(op, at + 1)) {
        const std::size_t digits = at + op.size();
        std::size_t length = 0;
        const int divisor = std::stoi(text.substr(digits), &length);
        std::string wrong = text;
        wrong.replace(digits, length, std::to_string(divisor + 1));
        INFO(text.substr(block, end - block) << " with " << op << divisor + 1);
        const VerdictKind kind = check_equivalent(twin->base, parse_or_die(wrong)).kind;
        CHECK((kind == VerdictKind::kNotEqual || kind == VerdictKind::kInvalid));
        ++num_planted;
      }
    }
  }
  CHECK(num_planted >= 4);
}

TEST_CASE("loops over parts of a dimension shrink on their own, extents that vary not at all") {
  const Program base = parse_or_die(R"(
program p(A: f32[3000], B: f32[5000]) -> (C: f32[1000, 8]) {
  for i in 1000 @L0 { for j in 3 @L1 { block "a" @B0 [v: S(1000) = i, w: S(3) = j] {
    reads A[v*3 + w] writes C[v, w] C[v, w] = A[v*3 + w] } } }
  for i in 1000 @L2 { for j in 5 @L3 { block "b" @B1 [v: S(1000) = i, w: S(5) = j] {
    reads B[v*5 + w] writes C[v, w + 3] C[v, w + 3] = B[v*5 + w] } } }
})");
  const Result<Program> small = shrink(base, {{LoopId(0), 10}}, {});
  REQUIRE_OK(small);
  CHECK(shape(*small, "A") == "30");
  CHECK(shape(*small, "B") == "50");
  check_defined(*small);
  const Program varying = parse_or_die(R"(
program p(A: f32[8]) -> (C: f32[8]) {
  for i in 8 @L0 { for j in 1 + i @L1 { C[i] = A[i] } } })");
  CHECK_DIAG(shrink(varying, {}, {}), Unsupported);
}

}  // namespace
}  // namespace prunerc

// Stages that are stored or read through i*4 + j, i // 4, i % 4 or in parts: inlined, moved, or refused.
#include "ir/printer.h"
#include "schedule/schedule.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::testing {
namespace {

// A matrix stored row by row in one dimension, read by one index and by two.
std::string flat(std::string_view store = "vi*4 + vj") {
  return "program flat(X: f32[6, 4]) -> (Y: f32[6, 4], Z: f32[24]) {\n"
         "  buffer T: f32[24] global\n"
         "  for i in 6 @L0 { for j in 4 @L1 {\n"
         "    block \"T\" @B0 [vi: S(6) = i, vj: S(4) = j] { T[" +
         std::string(store) +
         "] = X[vi, vj]*2f32 }\n"
         "  } }\n"
         "  for i in 6 @L2 { for j in 4 @L3 {\n"
         "    block \"Y\" @B1 [vi: S(6) = i, vj: S(4) = j] { Y[vi, vj] = T[vi*4 + vj] + 1f32 }\n"
         "  } }\n"
         "  for k in 24 @L4 { block \"Z\" @B2 [v: S(24) = k] { Z[v] = T[v] + 3f32 } }\n"
         "}";
}

// T is 6 x 4; one reader, of `extent` elements.
std::string read_at(std::string_view load, int extent, std::string_view guard = "") {
  return "program read(X: f32[6, 4]) -> (Z: f32[" + std::to_string(extent) +
         "]) {\n"
         "  buffer T: f32[6, 4] global\n"
         "  for i in 6 @L0 { for j in 4 @L1 {\n"
         "    block \"T\" @B0 [vi: S(6) = i, vj: S(4) = j] " +
         std::string(guard) +
         " { T[vi, vj] = X[vi, vj]*2f32 }\n"
         "  } }\n"
         "  for k in " +
         std::to_string(extent) + " @L2 { block \"Z\" @B1 [v: S(" + std::to_string(extent) +
         ") = k] { Z[v] = " + std::string(load) +
         " + 3f32 } }\n"
         "}";
}

// T[10] of two parts; what makes the second one, and one reader.
std::string concat(std::string_view second = "T[v + 4] = B[v]",
                   std::string_view reader = "Y[v] = T[v] + 1f32") {
  return "program concat(A: f32[4], B: f32[6]) -> (Y: f32[10]) {\n"
         "  buffer T: f32[10] global\n"
         "  for i in 4 @L0 { block \"TA\" @B0 [v: S(4) = i] { T[v] = A[v]*2f32 } }\n"
         "  for i in 6 @L1 { block \"TB\" @B1 [v: S(6) = i] { " +
         std::string(second) +
         " } }\n"
         "  for i in 10 @L2 { block \"Y\" @B2 [v: S(10) = i] { " +
         std::string(reader) +
         " } }\n"
         "}";
}

constexpr std::string_view kPart = R"(
program part(X: f32[10]) -> (Z: f32[6]) {
  buffer T: f32[10] global
  for i in 10 @L0 { block "T" @B0 [v: S(10) = i] { T[v] = X[v]*2f32 } }
  for k in 6 @L1 { block "Z" @B1 [v: S(6) = k] { Z[v] = T[v + 2] + 3f32 } }
})";

// The last two elements are neither made nor read, but stored.
constexpr std::string_view kUnmade = R"(
program unmade(X: f32[10]) -> (Y: f32[10]) {
  buffer T: f32[10] global
  for i in 10 @L0 { block "T" @B0 [v: S(10) = i] where i < 8 { T[v] = X[v]*2f32 } }
  for k in 10 @L1 { block "Y" @B1 [v: S(10) = k] { Y[v] = select(v < 8, T[v], 0f32) } }
})";

// The second part is a sum, which does not declare that it reads its accumulator.
constexpr std::string_view kConcatSum = R"(
program concat_sum(A: f32[4], B: f32[6, 3]) -> (Y: f32[10]) {
  buffer T: f32[10] global
  for i in 4 @L0 { block "TA" @B0 [v: S(4) = i] { T[v] = A[v]*2f32 } }
  for i in 6 @L1 { for k in 3 @L2 { block "TB" @B1 [v: S(6) = i, vk: R(3) = k] {
    init { T[v + 4] = 0f32 }
    T[v + 4] = T[v + 4] + B[v, vk] } } }
  for i in 10 @L3 { block "Y" @B2 [v: S(10) = i] { Y[v] = T[v] + 1f32 } }
})";

// It starts from elements of the first part, and declares nothing of that.
constexpr std::string_view kConcatStart = R"(
program concat_start(A: f32[4], B: f32[4, 3]) -> (Y: f32[8]) {
  buffer T: f32[8] global
  for i in 4 @L0 { block "TA" @B0 [v: S(4) = i] { T[v] = A[v]*2f32 } }
  for i in 4 @L1 { for k in 3 @L2 { block "TB" @B1 [v: S(4) = i, vk: R(3) = k] {
    reads B[v, vk]
    writes T[v + 4]
    init { T[v + 4] = T[v] }
    T[v + 4] = T[v + 4] + B[v, vk] } } }
  for i in 8 @L3 { block "Y" @B2 [v: S(8) = i] { Y[v] = T[v] + 1f32 } }
})";

TEST_CASE("a stage that is stored through a bijection is inlined") {
  const std::string rows = flat(), columns = flat("vj*6 + vi"), back = flat("23 - vi*4 - vj"),
                    overlap = flat("vi*3 + vj"), gaps = flat("vi + vj*5"), lost = flat("vi*4");
  const Case cases[] = {
      {rows, "compute_inline(@B0)", ""},
      {columns, "compute_inline(@B0)", ""},
      {rows, "split(@L0, [-1, 4])\nfuse([@L6, @L1])\ncompute_inline(@B0)", ""},
      {overlap, "compute_inline(@B0)", "BlockNotSimple"},
      {gaps, "compute_inline(@B0)", "BlockNotSimple"},
      {lost, "compute_inline(@B0)", "BlockNotSimple"},
  };
  for (const Case& c : cases) check(c);
  const std::string text = print(check_steps(rows, "compute_inline(@B0)").program());
  CHECK(text.find("Y[vi, vj] = X[vi, vj]*2f32 + 1f32") != std::string::npos);
  CHECK(text.find("Z[v] = X[v // 4, v % 4]*2f32 + 3f32") != std::string::npos);
}

TEST_CASE("the parts of a concatenated buffer are inlined one by one") {
  const std::string plain = concat(), overlap = concat("T[v + 3] = B[v]"),
                    reads_first = concat("T[v + 4] = B[v]*T[v // 2]"),
                    reads_itself = concat("T[v + 4] = B[v]*T[4]"),
                    window = concat("T[v + 4] = B[v]", "Y[v] = T[v] + T[9 - v] + T[v // 2]");
  const Case cases[] = {
      {plain, "compute_inline(@B0)", ""},
      {plain, "compute_inline(@B1)", ""},
      {plain, "compute_inline(@B0)\ncompute_inline(@B1)", ""},
      {plain, "compute_inline(@B1)\ncompute_inline(@B0)", ""},
      {window, "compute_inline(@B1)\ncompute_inline(@B0)", ""},
      {kConcatSum, "compute_inline(@B0)", ""},
      {kConcatSum, "compute_inline(@B1)", "BlockNotSimple"},
      {kConcatStart, "compute_inline(@B0)", "BufferManyWriters"},
      {overlap, "compute_inline(@B0)", "BufferManyWriters"},
      {overlap, "compute_inline(@B1)", "BufferManyWriters"},
      {reads_first, "compute_inline(@B0)", "BufferManyWriters"},
      {reads_itself, "compute_inline(@B1)", "BlockNotSimple"},
  };
  for (const Case& c : cases) check(c);
  const std::string once = print(check_steps(plain, "compute_inline(@B0)").program());
  CHECK(once.find("select(v_1 < 4, A[v_1]*2f32, T[v_1])") != std::string::npos);
  const std::string both =
      print(check_steps(plain, "compute_inline(@B0)\ncompute_inline(@B1)").program());
  CHECK(both.find("select(v < 4, A[v]*2f32, B[v - 4])") != std::string::npos);
}

TEST_CASE("a reader through a bijection, or of a part, is inlined into its producer") {
  const std::string all = read_at("T[v // 4, v % 4]", 24),
                    columns = read_at("T[v % 6, v // 6]", 24),
                    rows = read_at("T[v // 4 + 1, v % 4]", 8), one = read_at("T[v, 2]", 6),
                    twice = read_at("T[v // 4, v % 4]*T[v // 4, 0]", 24),
                    again = read_at("T[v // 8, v % 4]", 24), half = read_at("T[v*2, 0]", 3),
                    unmade = read_at("select(v < 20, T[v // 4, v % 4], 1f32)", 24, "where i < 5");
  const Case cases[] = {
      {all, "reverse_compute_inline(@B1)", ""},
      {columns, "reverse_compute_inline(@B1)", ""},
      {rows, "reverse_compute_inline(@B1)", ""},
      {one, "reverse_compute_inline(@B1)", ""},
      {kPart, "reverse_compute_inline(@B1)", ""},
      {kPart, "split(@L0, [-1, 4])\nparallel(@L2)\nreverse_compute_inline(@B1)", ""},
      {kPart, "reverse_compute_inline(@B1)\nsplit(@L0, [5, 2])\nvectorize(@L3)", ""},
      {twice, "reverse_compute_inline(@B1)", "BlockNotSimple"},
      {again, "reverse_compute_inline(@B1)", "BlockNotSimple"},
      {half, "reverse_compute_inline(@B1)", "BlockNotSimple"},
      {unmade, "reverse_compute_inline(@B1)", "BlockNotSimple"},
      {kUnmade, "reverse_compute_inline(@B1)", "BlockNotSimple"},
  };
  for (const Case& c : cases) check(c);
  const std::string text = print(check_steps(kPart, "reverse_compute_inline(@B1)").program());
  CHECK(text.find("[v: S(6) = i - 2] where 2 <= i && i < 8") != std::string::npos);
}

TEST_CASE("a producer that accumulates is named as the reason") {
  schedule::Schedule s(parse_or_die(kDenseRelu));
  const Result<void> done = s.reverse_compute_inline(ir::BlockId(1));
  REQUIRE_FALSE(done.ok());
  CHECK(done.error().message() ==
        "block @B1 must read an intermediate that it alone reads and that one block stores: 'T' is "
        "accumulated, not stored once, 'Bias' is a parameter");
}

TEST_CASE("a reader at quotient and remainder moves to what one iteration has made") {
  const std::string all = read_at("T[v // 4, v % 4]", 24),
                    columns = read_at("T[v % 6, v // 6]", 24),
                    again = read_at("T[v // 8, v % 4]", 24);
  const std::string kFlat = flat();
  const Case cases[] = {
      {all, "reverse_compute_at(@B1, @L0)", ""},
      {all, "reverse_compute_at(@B1, @L1)", ""},
      {all, "split(@L0, [3, 2])\nreverse_compute_at(@B1, @L3)", ""},
      {all, "parallel(@L0)\nreverse_compute_at(@B1, @L0)", ""},
      {all, "split(@L1, [2, 2])\nreverse_compute_at(@B1, @L3)", ""},
      {columns, "reorder([@L1, @L0])\nreverse_compute_at(@B1, @L1)", ""},
      {columns, "reverse_compute_at(@B1, @L1)", ""},
      // Every sixth element: no interval of v.
      {columns, "reverse_compute_at(@B1, @L0)", "RegionNotCovered"},
      {all, "split(@L0, [-1, 4])\nreverse_compute_at(@B1, @L3)", ""},
      {again, "reverse_compute_at(@B1, @L0)", "RegionNotCovered"},
      {kFlat, "reverse_compute_at(@B1, @L0)", ""},
      {kFlat, "reverse_compute_at(@B1, @L0)\nreverse_compute_at(@B2, @L0)", ""},
      {kFlat, "reverse_compute_at(@B1, @L1)", ""},
      {kFlat, "split(@L1, [-1, 3])\nreverse_compute_at(@B1, @L5)", "RegionNotCovered"},
  };
  for (const Case& c : cases) check(c);
}

constexpr std::string_view kTiles = R"(
program tiles_(X: f32[32, 32]) -> (Y: f32[32, 32]) {
  buffer T: f32[32, 32] global
  for io in 2 @L0 { for jo in 2 @L1 {
    block "T" @B0 [vi: S(2) = io, vj: S(2) = jo] {
      reads X[vi*16 +: 16, vj*16 +: 16]
      writes T[vi*16 +: 16, vj*16 +: 16]
      for i in 16 @L2 { for j in 16 @L3 {
        T[vi*16 + i, vj*16 + j] = X[vi*16 + i, vj*16 + j]*2f32 } } } } }
  for i in 32 @L4 { for j in 32 @L5 {
    block "Y" @B1 [vi: S(32) = i, vj: S(32) = j] { Y[vi, vj] = T[vi, vj] + 1f32 } } }
})";

TEST_CASE("a block of tiles moves as the tiles that are needed") {
  const std::string tile =
      "split(@L4, [4, 8])\nsplit(@L5, [4, 8])\nreorder([@L6, @L8, @L7, @L9])\n";
  const schedule::Schedule s = check_steps(kTiles, tile + "compute_at(@B0, @L8)");
  const std::string text = print(s.program());
  CHECK(text.find("block \"T\" @B0 [vi: S(2) = i_0 // 2, vj: S(2) = j_0 // 2]") !=
        std::string::npos);
  const std::string columns = flat("vj*6 + vi");
  const Case cases[] = {
      {kTiles, tile + "compute_at(@B0, @L6)", ""},
      {kTiles, "split(@L4, [2, 16])\ncompute_at(@B0, @L6)\nparallel(@L6)", ""},
      {kTiles, "split(@L4, [-1, 12])\ncompute_at(@B0, @L6)", ""},
      {flat(), "split(@L4, [6, 4])\ncompute_inline(@B1)", "BufferNotIntermediate"},
  };
  for (const Case& c : cases) check(c);
}

constexpr std::string_view kFlatReader = R"(
program flat_reader(X: f32[6, 4]) -> (Z: f32[24]) {
  buffer T: f32[24] global
  buffer U: f32[24] global
  for i in 6 @L0 { for j in 4 @L1 {
    block "T" @B0 [vi: S(6) = i, vj: S(4) = j] { T[vi*4 + vj] = X[vi, vj]*2f32 } } }
  for i in 6 @L2 { for j in 4 @L3 {
    block "U" @B1 [vi: S(6) = i, vj: S(4) = j] { U[vj*6 + vi] = X[vi, vj]*3f32 } } }
  for k in 24 @L4 { block "Z" @B2 [v: S(24) = k] { Z[v] = T[v] + U[v] } }
})";

TEST_CASE(
    "compute_at through a compound subscript makes what is needed, or says what it would cost") {
  const Case cases[] = {
      {kFlatReader, "compute_at(@B0, @L4)", ""},
      {kFlatReader, "split(@L4, [6, 4])\ncompute_at(@B0, @L5)", ""},
      {kFlatReader, "split(@L4, [4, 6])\ncompute_at(@B1, @L5)", ""},
      {kFlatReader, "split(@L4, [6, 4])\ncompute_at(@B0, @L5)\nparallel(@L5)", ""},
      {kFlatReader, "split(@L4, [-1, 5])\ncompute_at(@B0, @L5)", ""},
      {kFlatReader, "split(@L4, [6, 4])\ncompute_at(@B1, @L5)", "TileRecomputed"},
      {kFlatReader, "split(@L4, [12, 2])\ncompute_at(@B1, @L5)", ""},
      {kFlatReader, "split(@L4, [8, 3])\ncompute_at(@B1, @L5)", ""},
      {kFlatReader, "split(@L4, [-1, 7])\ncompute_at(@B1, @L5)", "TileRecomputed"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("the factor by which tiles would be computed again is said") {
  schedule::Schedule s(parse_or_die(kFlatReader));
  REQUIRE_OK(apply_steps(s, "split(@L4, [6, 4])"));
  const Result<void> done = apply_steps(s, "compute_at(@B1, @L5)");
  REQUIRE_FALSE(done.ok());
  CHECK(done.error().message() ==
        "block @B1 writes whole tiles of buffer 'U': under loop @L5 each tile would be computed 3 "
        "times");
}

TEST_CASE("a replay that fails names loops and blocks as its trace does") {
  const Result<schedule::Trace> trace = schedule::parse_trace(
      "split(@L0, [3, 2]) -> @L20, @L21\nreorder([@L1, @L21])\nparallel(@L21)\nunroll(@L21)\n");
  REQUIRE_OK(trace);
  const Result<schedule::Schedule> done =
      schedule::replay(parse_or_die(read_at("T[v // 4, v % 4]", 24)), *trace);
  REQUIRE_FALSE(done.ok());
  CHECK(done.error().message() == "loop @L21 must be serial, but is parallel");
}

TEST_CASE("a dependence names its buffer as the program does") {
  schedule::Schedule s(parse_or_die(kMatmul));
  const Result<void> done = s.parallel(ir::LoopId(2));
  REQUIRE_FALSE(done.ok());
  CHECK(done.error().message() == "iterations of loop @L2 depend on each other through buffer 'C'");
}

TEST_CASE("what is no known reduction is told how to say how it combines") {
  const std::string text =
      "program p(X: f32[4, 8]) -> (Y: f32[4]) {\n"
      "  for i in 4 @L0 { for k in 8 @L1 { block \"Y\" @B0 [vi: S(4) = i, vk: R(8) = k] {\n"
      "    init { Y[vi] = 0f32 } Y[vi] = Y[vi]*0.5f32 + X[vi, vk] } } } }";
  schedule::Schedule s(parse_or_die(text));
  const Result<ir::BlockId> done = s.rfactor(ir::LoopId(1), 0);
  REQUIRE_FALSE(done.ok());
  CHECK(done.error().message().find("combine (a), (b) -> (a + b)") != std::string::npos);
}

}  // namespace
}  // namespace prunerc::testing

// Tails of tiles: all lanes of a vector run where what the masked ones would write is dead.
#include "codegen/lower/passes.h"
#include "codegen/pipeline.h"
#include "ir/printer.h"
#include "schedule/schedule.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test
using schedule::Int;

Program unmasked(const Program& program) {
  const Result<Program> out = codegen::unmask_vector_tails(program, *target_from_string("cpu"));
  REQUIRE_OK(out);
  return *out;
}

// Y[m, n] = sum over k, in some element type and with an epilogue that reads the sum.
Program product(int64_t m, int64_t n, int64_t k, const std::string& type, bool is_divided) {
  const char* const last =
      is_divided ? "T[vi, vj] // (X[vi, 0] * X[vi, 0] + 1i32)" : "T[vi, vj] + T[vi, vj]";
  return parse_or_die(fmt::format(R"(
program p(X: {t}[{m}, {k}], W: {t}[{k}, {n}]) -> (Y: {t}[{m}, {n}]) {{
  buffer T: {t}[{m}, {n}] local
  for i in {m} @L0 {{ for j in {n} @L1 {{ for r in {k} @L2 {{
    block "T" @B0 [vi: S({m}) = i, vj: S({n}) = j, vr: R({k}) = r] {{
      init {{ T[vi, vj] = 0{z} }}
      T[vi, vj] = T[vi, vj] + X[vi, vr]*W[vr, vj]
    }} }} }} }}
  for i in {m} @L3 {{ for j in {n} @L4 {{
    block "Y" @B1 [vi: S({m}) = i, vj: S({n}) = j] {{ Y[vi, vj] = {last} }} }} }}
}})",
                                  fmt::arg("t", type), fmt::arg("m", m), fmt::arg("n", n),
                                  fmt::arg("k", k), fmt::arg("z", type), fmt::arg("last", last)));
}

// Register tiles of random size over it, the operand perhaps packed: as the search's sketches.
schedule::Schedule tiled(const Program& base, Rng& rng) {
  schedule::Schedule s(base);
  const std::vector<BlockId> blocks = s.blocks();
  const BlockId sum = blocks[0], last = blocks[1];
  const int64_t lanes = int64_t{1} << rng.between(1, 4);
  // Mostly the same everywhere, as in the search's sketches.
  const auto other = [&] { return rng.chance(0.8) ? lanes : int64_t{1} << rng.between(1, 4); };
  const bool packs = rng.chance(0.6);
  BlockId packed;
  if (packs) packed = s.cache_read(sum, 1, Scope::kGlobal).value();
  const std::vector<LoopId> loops = s.loops_of(sum);
  const auto j = s.split(loops[1], {Int(-1), Int(rng.between(1, 3)), Int(lanes)}).value();
  const auto i = s.split(loops[0], {Int(-1), Int(rng.between(1, 6))}).value();
  REQUIRE_OK(s.reorder({i[0], j[0], loops[2], i[1], j[1], j[2]}));
  REQUIRE_OK(s.vectorize(j[2]));
  REQUIRE_OK(s.unroll(j[1]));
  REQUIRE_OK(s.unroll(i[1]));
  const auto vectors = [&](LoopId loop) {
    const auto parts = s.split(loop, {Int(-1), Int(other())}).value();
    if (rng.chance(0.9)) REQUIRE_OK(s.vectorize(parts[1]));
    if (rng.chance(0.7)) REQUIRE_OK(s.unroll(parts[0]));
  };
  if (packs) vectors(s.compute_at(packed, j[0]).value().back());
  vectors(s.reverse_compute_at(last, j[0]).value().back());
  return s;
}

bool unchanged(const std::string& text) {
  const Program program = parse_or_die(text);
  INFO(print(unmasked(program)));
  return print(unmasked(program)) == print(program);
}

// A program whose tail is what `body` makes of it.
std::string tail(const std::string& body, int row = 16) {
  return fmt::format(R"(
program p(X: f32[40], Q: i32[40]) -> (Y: f32[12]) {{
  buffer T: f32[{}] local
  buffer U: f32[16] local
  alloc T {{ {} }}
}})",
                     row, body);
}
const std::string kRead = "for i in 16 @L9 vectorized { if i < 12 { Y[i] = T[i] } }";

}  // namespace

TEST_CASE("tiles of any size and their tails compute what the interpreter computes") {
  int changed = 0, cases = 0;
  for (int c = 0; c < num_cases(80); ++c) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(c);
    Rng rng(seed, 11);
    const bool is_divided = rng.chance(0.2);
    const std::string type = is_divided ? "i32" : rng.chance(0.2) ? "f64" : "f32";
    const Program base =
        product(rng.between(1, 13), rng.between(1, 45), rng.between(1, 6), type, is_divided);
    const Program scheduled = tiled(base, rng).program();
    const std::vector<Tensor> inputs = random_inputs(base, rng);
    const std::vector<Tensor> expected = interpret_or_die(base, inputs);
    const std::string_view disabled[] = {"unmask_vector_tails"};
    const Target target = *target_from_string("cpu");
    const Program before =
        codegen::lower_cpu(scheduled, target,
                           {.max_optional_passes = -1, .disabled = disabled, .times = nullptr})
            .value();
    const Program after = unmasked(before);
    INFO("seed " << seed << "\n" << print(scheduled) << print(after));
    CHECK(first_difference(expected, interpret_or_die(after, inputs)) == "");
    REQUIRE(compare_with_interpreter(base, scheduled, seed) == "");
    ++cases;
    changed += print(before) == print(after) ? 0 : 1;
  }
  // Most tails that lowering does not cut off are unmasked.
  CHECK(changed * 3 > cases);
}

TEST_CASE("dead lanes run without conditions") {
  const Program program =
      unmasked(parse_or_die(tail("for i in 16 @L0 vectorized { if i < 12 { T[i] = 0f32 } } "
                                 "for k in 8 @L1 { for i in 16 @L2 vectorized { if i < 12 { T[i] = "
                                 "T[i] + X[k]*X[k + i] } } } " +
                                 kRead)));
  const std::string text = print(program);
  INFO(text);
  CHECK(text.find("T[i] = 0f32") != std::string::npos);
  // X[k + i] ends at 22 of 40 elements: nothing to guard.
  CHECK(text.find("T[i_1] = T[i_1] + X[k]*X[k + i_1]") != std::string::npos);
  const std::size_t first = text.find("if ");
  CHECK(first == text.rfind("if "));
  CHECK(first > text.find("X[k"));
}

TEST_CASE("a dimension of extent 1 at the end keeps no dead lane's condition") {
  const auto text_of = [](int row, const char* unit) {
    return fmt::format(R"(
program p(X: f32[40]) -> (Y: f32[12]) {{
  buffer T: f32[{}, 1] local
  alloc T {{
    for i in 16 @L0 vectorized {{ if i < 12 {{ T[i, {}] = X[i] }} }}
    for i in 16 @L1 vectorized {{ if i < 12 {{ Y[i] = T[i, 0] }} }}
  }}
}})",
                       row, unit);
  };
  const Program before = parse_or_die(text_of(16, "0")), after = unmasked(before);
  const std::string text = print(after);
  INFO(text);
  CHECK(text.find("T[i, 0] = X[i]") < text.find("if "));
  CHECK(text.find("if ") == text.rfind("if "));
  Rng rng(first_seed(), 11);
  const std::vector<Tensor> inputs = random_inputs(before, rng);
  CHECK(first_difference(interpret_or_die(before, inputs), interpret_or_die(after, inputs)) == "");
  // No room for a whole vector; the lane in two dimensions.
  CHECK(unchanged(text_of(12, "0")));
  CHECK(unchanged(text_of(16, "i // 16")));
}

TEST_CASE("what a dead lane may not load is zero") {
  const Program program = unmasked(parse_or_die(
      tail("for i in 16 @L0 vectorized { if i < 12 { T[i] = X[i*3] + X[i] } } " + kRead)));
  const std::string text = print(program);
  INFO(text);
  CHECK(text.find("T[i] = select(i < 12, X[i*3], 0f32) + X[i]") != std::string::npos);
}

TEST_CASE("a vector that is dead as a whole does not run") {
  const Program program = unmasked(parse_or_die(
      tail("for v in 2 @L0 unrolled { for i in 16 @L1 vectorized { if v*16 + i < 12 { "
           "T[v*16 + i] = X[i] } } } for i in 32 @L2 vectorized { if i < 12 { Y[i] = T[i] } }",
           32)));
  const std::string text = print(program);
  INFO(text);
  CHECK(text.find("if v < 1") != std::string::npos);
}

TEST_CASE("lanes that could be seen keep their condition") {
  const std::string write = "for i in 16 @L0 vectorized { if i < 12 { T[i] = X[i] } } ";
  // The base case does change.
  REQUIRE_FALSE(unchanged(tail(write + kRead)));
  // Everything is read.
  CHECK(unchanged(tail(write + "for i in 16 @L1 { Y[0] = Y[0] + T[i] }")));
  // Read up to another end.
  CHECK(unchanged(tail(write + "for i in 16 @L1 vectorized { if i < 13 { Y[0] = T[i] } }")));
  // Read where data says.
  CHECK(unchanged(tail(write + "for i in 12 @L1 { Y[i] = T[i64(Q[i])] }")));
  CHECK(unchanged(tail(write + "for i in 12 @L1 { Y[i] = T[i64(Q[i])] + T[i] }")));
  // Read under a condition of something else.
  CHECK(unchanged(tail(write + "for i in 16 @L1 { for j in 2 @L2 { if j < 1 { Y[0] = T[i] } } }")));
  // No room for a whole vector.
  CHECK(unchanged(tail(write + kRead, 12)));
  // The end moves inside of the Alloc.
  CHECK(unchanged(
      tail("for k in 4 @L1 { for i in 16 @L0 vectorized { if i < 12 - k { T[i] = X[i] } } "
           "for j in 16 @L2 vectorized { if j < 12 - k { Y[j] = T[j] } } }")));
  // No lanes: more iterations would run.
  CHECK(unchanged(tail("for i in 16 @L0 { if i < 12 { T[i] = X[i] } } " + kRead)));
  // Something else is stored under the same condition.
  CHECK(unchanged(
      tail("for i in 16 @L0 vectorized { if i < 12 { T[i] = X[i] Y[i] = X[i] } } " + kRead)));
  // There is something to do where the condition fails.
  CHECK(unchanged(tail(
      "for i in 16 @L0 vectorized { if i < 12 { T[i] = X[i] } else { Y[0] = X[0] } } " + kRead)));
  // The first lanes are left out, not the last.
  CHECK(
      unchanged(tail("for i in 16 @L0 vectorized { if 4 <= i { T[i] = X[i] } } "
                     "for i in 16 @L1 vectorized { if 4 <= i { Y[i - 4] = T[i] } }")));
  // Another condition of the lane: which lanes run is not the first one's to say.
  CHECK(unchanged(
      tail("for i in 16 @L0 vectorized { if i < 12 && Q[i] < 3i32 { T[i] = X[i] } } " + kRead)));
  CHECK(
      unchanged(tail("for i in 16 @L0 vectorized { if i < 12 { if 7i32 // Q[i] < 3i32 { "
                     "T[i] = X[i] } } } " +
                     kRead)));
  CHECK(
      unchanged(tail("for k in 6 @L0 { for i in 16 @L1 vectorized { if i < 12 && 4 <= i { "
                     "T[i] = X[7 - k] } } } " +
                     kRead)));
  CHECK(
      unchanged(tail("for i in 16 @L1 vectorized { for k in i @L2 { if i < 12 { "
                     "T[i] = X[k] } } } " +
                     kRead)));
  // The first lane is not the one that runs longest.
  CHECK(
      unchanged(tail("for v in 8 @L0 { for i in 16 @L1 vectorized { "
                     "if i - 3*(i % 8) + 16 + v < 20 { T[i - 3*(i % 8) + 16 + v] = X[i] } } } "
                     "Y[0] = T[9]",
                     40)));
  // First values up to another end, or by another condition.
  const std::string add =
      "for i in 16 @L1 vectorized { if i < 12 { T[i] = T[i] + X[i] } } " + kRead;
  CHECK(unchanged(tail("for i in 16 @L0 vectorized { if i < 13 { T[i] = 0f32 } } " + add)));
  CHECK(unchanged(
      tail("for i in 16 @L0 vectorized { if i < 11 || i == 11 { T[i] = 0f32 } } " + add)));
  CHECK(unchanged(tail(
      "for i in 16 @L0 vectorized { if 11 < i { Y[0] = X[0] } else { T[i] = 0f32 } } " + add)));
  // The lane in two dimensions.
  CHECK(unchanged(R"(
program p(X: f32[40]) -> (Y: f32[12]) {
  buffer T: f32[2, 16] local
  alloc T {
    for i in 16 @L0 vectorized { T[i // 12, i] = X[i] }
    for i in 16 @L1 vectorized { if i < 12 { T[0, i] = T[0, i] + X[i] } }
    for i in 16 @L2 vectorized { if i < 12 { Y[i] = T[0, i] } }
  }
})"));
  // Lanes that nobody wrote: no vectors, and a first value for the others alone.
  CHECK(
      unchanged(tail("for i in 16 @L0 unrolled { if i < 12 { T[i] = X[i] } } "
                     "for i in 16 @L1 vectorized { if i < 12 { T[i] = T[i] + X[i] } } " +
                     kRead)));
  CHECK(
      unchanged(tail("for i in 12 @L0 vectorized { T[i] = X[i] } "
                     "for i in 16 @L1 vectorized { if i < 12 { T[i] = T[i] + X[i] } } " +
                     kRead)));
}

TEST_CASE("what other vectors have written is no dead lane's to read") {
  for (const char* const write : {"for v in 2 @L0 unrolled { for i in 8 @L1 vectorized { if v*8 + "
                                  "i < 7 { T[v*8 + i] = X[i] } } }",
                                  "for i in 14 @L0 vectorized { if i < 7 { T[i] = X[i] } }"}) {
    const std::string text = print(unmasked(
        parse_or_die(tail(std::string(write) +
                          " alloc U { for j in 16 @L2 vectorized { if j < 7 { U[j] = T[j] } } "
                          "for k in 16 @L3 vectorized { if k < 7 { Y[k] = U[k] } } }"))));
    INFO(text);
    CHECK(text.find("U[j] = select(j < 7, T[j], 0f32)") != std::string::npos);
  }
}

TEST_CASE("an intermediate that cannot be filled leaves the one around it alone") {
  // U has a store beside which Y is written; so has T, which is stored in U's scope as well.
  const std::string text = tail(
      "for i in 16 @L0 vectorized { if i < 12 { T[i] = X[i] Y[i] = X[i] } } "
      "alloc U { for i in 16 @L1 vectorized { if i < 12 { U[i] = X[i] Y[i] = X[i] } } "
      "for i in 16 @L2 vectorized { if i < 12 { T[i] = T[i] + X[i] } } "
      "for i in 16 @L3 vectorized { if i < 12 { Y[i] = U[i] + T[i] } } }");
  CHECK(unchanged(text));
}

TEST_CASE("a load that only some lanes come to keeps its condition") {
  const std::string text =
      print(unmasked(parse_or_die(tail("for k in 8 @L2 { for i in 16 @L0 vectorized { if i < 12 { "
                                       "T[i] = select(i < 3 || 9 < i, X[k*6], 0f32) } } } " +
                                       kRead))));
  INFO(text);
  CHECK(text.find("select(i < 12, X[k*6], 0f32)") != std::string::npos);
}

TEST_CASE("a division by data stays where it was") {
  const std::string text = R"(
program p(Q: i32[12]) -> (Y: i32[12]) {
  buffer T: i32[16] local
  alloc T {
    for i in 16 @L0 vectorized { if i < 12 { T[i] = 7i32 // Q[i] } }
    for i in 16 @L1 vectorized { if i < 12 { Y[i] = T[i] } }
  }
})";
  const std::string after = print(unmasked(parse_or_die(text)));
  INFO(after);
  CHECK(after.find("T[i] = select(i < 12, 7i32 // Q[i], 0i32)") != std::string::npos);
}

}  // namespace prunerc

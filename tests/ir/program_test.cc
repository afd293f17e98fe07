// Handles and ownership, builder folding, the notions of sameness, verify on programs that no text
// can express.
#include "ir/builder.h"
#include "ir/canonical.h"
#include "ir/equal.h"
#include "ir/map.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <thread>

namespace prunerc::ir {
namespace {

using testing::parse_or_die;

const char* const kScale = R"(
program scale(A: f32[8]) -> (C: f32[8]) {
  for i in 8 @L3 {
    block "scale" @B7 [v: S(8) = i] {
      reads A[v]
      writes C[v]
      C[v] = A[v]*2f32
    }
  }
})";

TEST_CASE("a chain of 100,000 versions keeps its first nodes and is released without overflow") {
  Program program = parse_or_die(kScale);
  const std::string text = print(program);
  for (int i = 0; i < 100'000; ++i) {
    IrBuilder b(program);
    program = b.finish(program.root());  // the root lies in the very first arena
  }
  CHECK(print(program) == text);
  Program alone = compact(program);
  program = Program();
  CHECK(print(alone) == text);
  CHECK(alone.arena()->chain_length() <= 2);
}

TEST_CASE("a derived program stays valid after its base is gone, also on another thread") {
  Program derived;
  {
    const Program base = parse_or_die(kScale);
    IrBuilder b(base);
    derived = b.finish(base.root());
  }
  CHECK(print(derived).find("A[v]*2f32") != std::string::npos);
  std::string seen;
  std::thread other([moved = std::move(derived), &seen] { seen = print(moved); });
  other.join();
  CHECK(seen.find("A[v]*2f32") != std::string::npos);
}

TEST_CASE("the builder folds constants as the interpreter computes them") {
  IrBuilder b("fold");
  const auto value = [](Expr e) { return e.as<IntImm>()->value; };
  CHECK(value(b.floordiv(b.int_imm(-7), b.int_imm(2))) == -4);
  CHECK(value(b.floormod(b.int_imm(-7), b.int_imm(2))) == 1);
  CHECK(value(b.floormod(b.int_imm(7), b.int_imm(-2))) == -1);
  CHECK(value(b.add(b.int_imm(127, DType::kI8), b.int_imm(1, DType::kI8))) == -128);
  CHECK(value(b.floordiv(b.int_imm(INT64_MIN), b.int_imm(-1))) == INT64_MIN);
  CHECK(b.floordiv(b.int_imm(1), b.int_imm(0)).as<FloorDiv>() != nullptr);
  CHECK(value(b.cast(DType::kU8, b.float_imm(300, DType::kF32))) == 255);
  CHECK(b.float_imm(0.1, DType::kF32).as<FloatImm>()->value == static_cast<double>(0.1F));
  const Expr x = b.fresh_var("x");
  CHECK(b.logical_and(b.bool_imm(true), b.lt(x, b.int_imm(3))).as<Lt>() != nullptr);
  CHECK(value(b.logical_or(b.bool_imm(true), b.lt(x, b.int_imm(3)))) == 1);
  CHECK(b.select(b.bool_imm(false), x, b.int_imm(4)).as<IntImm>() != nullptr);
  // Nothing else is folded: that is the simplifier's business.
  CHECK(b.add(x, b.int_imm(0)).as<Add>() != nullptr);
}

TEST_CASE("map_children returns the node itself if nothing changed") {
  const Program program = parse_or_die(kScale);
  IrBuilder b(program);
  const Stmt same = map_children(
      b, program.root(), [](Stmt s) { return s; }, [](Expr e) { return e; });
  CHECK(same.is(program.root()));
}

TEST_CASE("fingerprints ignore names and numbering") {
  const Program program = parse_or_die(kScale);
  const Program renamed = parse_or_die(R"(
program other(Input: f32[8]) -> (Output: f32[8]) {
  for row in 8 @L0 {
    block "b" @B0 [w: S(8) = row] {
      reads Input[w]
      writes Output[w]
      Output[w] = Input[w]*2f32
    }
  }
})");
  CHECK(fingerprint(program) == fingerprint(renamed));
  CHECK_FALSE(structural_equal(program, renamed));
}

TEST_CASE("programs that differ in one detail have different fingerprints") {
  const std::string base = kScale;
  std::vector<Fingerprint> seen = {fingerprint(parse_or_die(base))};
  const std::pair<const char*, const char*> changes[] = {
      {"*2f32", "*3f32"},
      {"*2f32", "+ 2f32"},
      {"A: f32[8]", "A: f32[9]"},
      {"A: f32[8]", "const A: f32[8]"},
      {"@L3 {", "@L3 parallel {"},
      {"C[v] = A[v]", "C[v] = C[v]"},
      {"S(8)", "R(8)"},
      {"A[v]*", "A[7 - v]*"},
      {"@L3 {", "@L3 {unroll = 4} {"},
      {"= i] {", "= i] where i < 8 {"},
  };
  for (const auto& [from, to] : changes) {
    std::string text = base;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, std::string(from).size(), to);
    INFO(text);
    seen.push_back(fingerprint(parse_or_die(text)));
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      INFO("changes " << i << " and " << j);
      CHECK(seen[i] != seen[j]);
    }
  }
}

TEST_CASE("fresh ids and fresh names do not change fingerprint or meaning") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    const Program program = testing::random_program(rng);
    IrBuilder b(program);
    const Program cloned = b.finish(clone_with_fresh_ids(b, program.root()));
    INFO("seed " << seed);
    REQUIRE_OK(verify(cloned));
    REQUIRE(fingerprint(cloned) == fingerprint(program));
    testing::check_same_result(program, cloned, seed);
    REQUIRE(structural_equal(compact(program), program));
  }
}

TEST_CASE("const inputs survive printing, compacting, renumbering and cloning") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    const Program plain = testing::random_program(rng);
    const Program program = testing::with_const_inputs(plain, rng);
    INFO("seed " << seed);
    REQUIRE_OK(verify(program));
    const Result<Program> parsed = parse(print(program));
    REQUIRE_OK(parsed);
    REQUIRE(print(*parsed) == print(program));
    REQUIRE(fingerprint(*parsed) == fingerprint(program));
    REQUIRE(structural_equal(compact(program), program));
    REQUIRE(fingerprint(renumber(program)) == fingerprint(program));
    IrBuilder b(program);
    REQUIRE(fingerprint(b.finish(clone_with_fresh_ids(b, program.root()))) == fingerprint(program));
    // It is another program to every store, and means the same.
    REQUIRE(fingerprint(plain) != fingerprint(program));
    REQUIRE(print_canonical(plain) != print_canonical(program));
    testing::check_same_result(plain, program, seed);
  }
}

TEST_CASE("an input may itself be called const") {
  const Program program = parse_or_die("program p(const const: f32[2], A: f32[2]) -> () { }");
  CHECK(program.buffer(program.params()[0]).is_const);
  CHECK(program.buffer(program.params()[0]).name == "const");
  const Program plain = parse_or_die("program p(const: f32[2], A: f32[2]) -> () { }");
  CHECK_FALSE(plain.buffer(plain.params()[0]).is_const);
  CHECK(print(parse_or_die(print(plain))) == print(plain));
}

TEST_CASE("verify rejects an output that is const") {
  IrBuilder b("out");
  Buffer out = b.buffer(b.add_buffer("C", DType::kF32, {}, Scope::kGlobal, BufferRole::kOutput));
  out.is_const = true;
  b.set_buffer(out);
  CHECK_DIAG(verify(b.finish({})), VerifyStructure);
}

TEST_CASE("verify rejects a variable that is bound twice") {
  IrBuilder b("twice");
  const Expr extents[] = {b.int_imm(4)};
  const BufferId out = b.add_buffer("C", DType::kF32, extents, Scope::kGlobal, BufferRole::kOutput);
  const Var* i = b.fresh_var("i");
  const Expr at_i[] = {Expr(i)};
  Loop inner{};
  inner.id = b.fresh_loop_id();
  inner.var = i;
  inner.extent = b.int_imm(4);
  inner.body = b.store(out, at_i, b.float_imm(0, DType::kF32));
  Loop outer = inner;
  outer.id = b.fresh_loop_id();
  outer.body = b.loop(inner);
  const Program program = b.finish(b.loop(outer));
  CHECK_DIAG(verify(program), VerifyDuplicateId);
}

TEST_CASE("verify rejects a parameter that the domain does not have") {
  IrBuilder b("param");
  const Expr extents[] = {b.param(ParamId(3))};
  b.add_buffer("C", DType::kF32, extents, Scope::kGlobal, BufferRole::kOutput);
  CHECK_DIAG(verify(b.finish({})), VerifyStructure);
}

TEST_CASE("comments, missing ids and odd layout parse to the same program") {
  const Program program = parse_or_die(kScale);
  const Program loose = parse_or_die(
      "program scale(A:f32[8])->(C:f32[8]){#x\nfor i in 8{block\"scale\"[v:S(8)=i]"
      "{C[v]=A[v]*2f32}}}");
  CHECK(fingerprint(program) == fingerprint(loose));
}

}  // namespace
}  // namespace prunerc::ir

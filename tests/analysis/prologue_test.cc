// Which statements follow from const inputs alone.
#include "ir/analysis/prologue.h"

#include "ir/printer.h"
#include "ir/verify.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc::ir {
namespace {

using testing::parse_or_die;

using Places = std::vector<std::size_t>;

Program with_body(const std::string& body) {
  return parse_or_die(
      "program p(X: f32[8], const W: f32[8], const V: f32[8]) -> (Y: f32[8]) {\n"
      "  buffer S: f32[8] global\n  buffer T: f32[8] global\n" +
      body + "}");
}

std::string line(const std::string& target, const std::string& value) {
  return "  for i in 8 { " + target + "[i] = " + value + " }\n";
}

Places places(const Program& program) { return find_prologue(program).stmts; }

std::string names(const Program& program) {
  std::string out;
  for (BufferId id : find_prologue(program).results) out += std::string(program.buffer(id).name);
  return out;
}

}  // namespace

TEST_CASE("a chain from const inputs is a prologue, and its last buffer the result") {
  const Program program =
      with_body(line("S", "W[i] + V[i]") + line("T", "S[i]*2f32") + line("Y", "X[i] + T[i]"));
  CHECK(places(program) == Places{0, 1});
  CHECK(names(program) == "T");
}

TEST_CASE("what reads another input is none, nor what follows from it") {
  const Program program =
      with_body(line("S", "W[i] + X[i]") + line("T", "S[i] + V[i]") + line("Y", "T[i]"));
  CHECK(places(program).empty());
  CHECK(without_prologue(program).is(program));
}

TEST_CASE("statements in between stay where they are") {
  const Program program =
      with_body(line("S", "X[i]") + line("T", "W[i]") + line("Y", "S[i] + T[i]"));
  CHECK(places(program) == Places{1});
}

TEST_CASE("a buffer that a call changes is not computed once") {
  // Both writers stay, and what reads the first of them.
  const Program program = with_body(line("S", "W[i]") + line("T", "S[i]") +
                                    line("S", "S[i] + X[i]") + line("Y", "S[i] + T[i]"));
  CHECK(places(program).empty());
}

TEST_CASE("a value that is read before it is replaced stays with its reader") {
  const Program program =
      with_body(line("S", "W[i]") + line("Y", "S[i] + X[i]") + line("S", "V[i]") +
                line("T", "S[i]") + line("Y", "Y[i] + T[i]"));
  CHECK(places(program).empty());
}

TEST_CASE("what is replaced before anyone else reads it belongs to the prologue") {
  const Program program =
      with_body(line("S", "W[i]") + line("S", "S[i] + V[i]") + line("Y", "S[i] + X[i]"));
  CHECK(places(program) == Places{0, 1});
  CHECK(names(program) == "S");
}

TEST_CASE("outputs are written in every call, even from constants") {
  CHECK(places(with_body(line("Y", "W[i]"))).empty());
  const Program program = with_body(line("Y", "W[i]") + line("S", "Y[i]") + line("Y", "S[i]"));
  CHECK(places(program).empty());
}

TEST_CASE("a subscript's or a condition's reads count") {
  const std::string gather = "  for i in 8 { S[i] = W[i64(min(max(X[i], 0f32), 7f32))] }\n";
  CHECK(places(with_body(gather + line("Y", "S[i]"))).empty());
  const std::string branch =
      "  for i in 8 { if X[i] < 0f32 { S[i] = W[i] } else { S[i] = V[i] } }\n";
  CHECK(places(with_body(branch + line("Y", "S[i]"))).empty());
}

TEST_CASE("without const inputs there is no prologue, even for what reads nothing") {
  const std::string body = "(X: f32[8]) -> (Y: f32[8]) {\n buffer S: f32[8] global\n" +
                           line("S", "1f32") + line("Y", "X[i] + S[i]") + "}";
  CHECK(places(parse_or_die("program p" + body)).empty());
  CHECK(places(parse_or_die("program p(const W: f32[8], " + body.substr(1))) == Places{0});
}

TEST_CASE("a call's part reads results as const inputs, and const inputs that it still needs") {
  const Program program = with_body(line("S", "W[i]") + line("Y", "S[i] + X[i] + V[i]"));
  const Program rest = without_prologue(program);
  REQUIRE_OK(verify(rest));
  std::string inputs;
  for (BufferId id : rest.params()) {
    const Buffer& buffer = rest.buffer(id);
    inputs += std::string(buffer.is_const ? "const " : "") + std::string(buffer.name) + " ";
  }
  CHECK(inputs == "X const V const S Y ");
  CHECK(root_stmts(rest).size() == 1);
  const Result<Target> cpu = target_from_string("cpu"), gpu = target_from_string("cuda:sm_80");
  REQUIRE_OK(gpu);
  CHECK(print(repeated_part(program, *cpu)) == print(rest));
  CHECK(repeated_part(program, *gpu).is(program));
}

TEST_CASE("a program that does nothing has no prologue") {
  const Program program = parse_or_die("program p(const W: f32[8]) -> () { }");
  CHECK(root_stmts(program).empty());
  CHECK(places(program).empty());
}

}  // namespace prunerc::ir

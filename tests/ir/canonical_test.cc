// Texts that do not depend on names and numbers.
#include "ir/canonical.h"

#include "ir/equal.h"
#include "ir/printer.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

namespace prunerc::ir {
namespace {

using testing::parse_or_die;

constexpr std::string_view kPlain = R"(
program scale(A: f32[8], s: f32) -> (B: f32[8]) {
  buffer T: f32[8] local
  for i in 8 @L0 { block "T" @B0 [v: S(8) = i] { T[v] = A[v]*s[] } }
  for i in 8 @L1 { block "B" @B1 [v: S(8) = i] { B[v] = T[v] + 1f32 } }
})";

constexpr std::string_view kRenamed = R"(
program other(first: f32[8], second: f32) -> (out: f32[8]) {
  buffer middle: f32[8] local
  for a in 8 @L7 { block "x" @B4 [k: S(8) = a] { middle[k] = first[k]*second[] } }
  for b in 8 @L3 { block "x" @B2 [w: S(8) = b] { out[w] = middle[w] + 1f32 } }
})";

constexpr std::string_view kDifferent = R"(
program scale(A: f32[8], s: f32) -> (B: f32[8]) {
  buffer T: f32[8] local
  for i in 8 @L0 { block "T" @B0 [v: S(8) = i] { T[v] = A[v]*s[] } }
  for i in 8 @L1 { block "B" @B1 [v: S(8) = i] { B[v] = T[v] + 2f32 } }
})";

TEST_CASE("names and numbers do not show in canonical texts") {
  const Program plain = parse_or_die(kPlain);
  const Program renamed = parse_or_die(kRenamed);
  CHECK(print_canonical(plain) == print_canonical(renamed));
  CHECK(print_canonical(plain) != print_canonical(parse_or_die(kDifferent)));
  const Program read = parse_or_die(print_canonical(renamed));
  CHECK(print_canonical(read) == print_canonical(renamed));
  CHECK(fingerprint(read) == fingerprint(renamed));
}

TEST_CASE("renumber counts in program order and keeps names") {
  const Program plain = parse_or_die(kPlain);
  CHECK(renumber(plain).is(plain));
  const Program renamed = parse_or_die(kRenamed);
  const Program numbered = renumber(renamed);
  const std::string text = print(numbered);
  INFO(text);
  CHECK(text.find("for a in 8 @L0") != std::string::npos);
  CHECK(text.find("block \"x\" @B1 [w: S(8) = b]") != std::string::npos);
  CHECK(numbered.next_ids().loop == 2);
  CHECK(numbered.next_ids().block == 2);
  CHECK(fingerprint(numbered) == fingerprint(renamed));
  CHECK(renumber(numbered).is(numbered));
}

TEST_CASE("random programs: the canonical text reads back as itself") {
  for (int i = 0; i < testing::num_cases(200); ++i) {
    Rng rng(testing::first_seed() + static_cast<uint64_t>(i), 5);
    const Program program = testing::random_program(rng);
    const std::string text = print_canonical(program);
    INFO(text);
    const Program read = parse_or_die(text);
    CHECK(print_canonical(read) == text);
    CHECK(print(renumber(read)) == text);
    CHECK(fingerprint(read) == fingerprint(program));
    CHECK(fingerprint(renumber(program)) == fingerprint(program));
  }
}

}  // namespace
}  // namespace prunerc::ir

// The generator's own promises, and what must hold for every program that it makes.
#include "tests/support/program_gen.h"

#include "ir/equal.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

TEST_CASE("random programs are well-formed, print, parse and run the same whatever the order") {
  for (int i = 0; i < num_cases(); ++i) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(i);
    Rng rng(seed);
    const Program program = random_program(rng);
    const std::string text = print(program);
    INFO("seed " << seed << "\n" << text);
    REQUIRE_OK(verify(program));

    const Result<Program> parsed = parse(text);
    REQUIRE_OK(parsed);
    REQUIRE(print(*parsed) == text);
    REQUIRE(structural_equal(*parsed, program));
    REQUIRE(fingerprint(*parsed) == fingerprint(program));

    const std::vector<Tensor> inputs = random_inputs(program, rng);
    const Result<std::vector<Tensor>> outputs = interpret(program, inputs);
    REQUIRE_OK(outputs);
    REQUIRE(first_difference(*outputs, interpret_or_die(*parsed, inputs)) == "");
  }
}

TEST_CASE("the same generator state gives the same program") {
  Rng first(7);
  Rng second(7);
  for (int i = 0; i < 20; ++i) {
    const Program a = random_program(first);
    const Program b = random_program(second);
    REQUIRE(structural_equal(a, b));
  }
}

TEST_CASE("random programs differ from each other") {
  Rng rng(11);
  std::vector<Fingerprint> seen;
  for (int i = 0; i < 100; ++i) seen.push_back(fingerprint(random_program(rng)));
  std::sort(seen.begin(), seen.end());
  const auto last = std::unique(seen.begin(), seen.end());
  // A few tiny programs may well coincide.
  CHECK(last - seen.begin() >= 90);
}

}  // namespace
}  // namespace prunerc

// References in double follow the order of the program, by elements and by running it.
#include "ir/interp/bounded.h"
#include "ir/interp/bounded_run.h"
#include "ir/interp/elements.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::ir {
namespace {

using namespace testing;  // NOLINT: a test

// Both references of every element agree with the interpreter; the bounds of whole numbers are 0.
void check(const std::string& text) {
  const Program program = parse_or_die(text);
  INFO(text);
  Rng rng(1);
  std::vector<Tensor> inputs;
  for (const BufferId id : program.params()) {
    const Buffer& buffer = program.buffer(id);
    if (buffer.role == BufferRole::kInput) {
      inputs.push_back(random_ints(buffer.dtype, shape_of(buffer), -8, 8, rng));
    }
  }
  const std::vector<Tensor> outputs = interpret_or_die(program, inputs);
  Result<ElementEvaluator> elements = ElementEvaluator::create(program, inputs);
  REQUIRE_OK(elements);
  const Result<std::vector<std::vector<Reference>>> all = run_bounded(program, inputs);
  REQUIRE_OK(all);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    for (int64_t i = 0; i < outputs[o].num_elements(); ++i) {
      const Result<Reference> element = elements->element(static_cast<int>(o), i);
      REQUIRE_OK(element);
      CHECK(element->value == outputs[o].get(i));
      CHECK(element->bound == 0);
      const Reference& run = (*all)[o][static_cast<std::size_t>(i)];
      CHECK(run.value == outputs[o].get(i));
      CHECK(run.bound == 0);
    }
  }
}

std::string block(const std::string& name, const std::string& body,
                  const std::string& extent = "9") {
  return "for i in " + extent + " { block \"" + name + "\" [v: S(" + extent + ") = i] { " + body +
         " } }\n";
}

TEST_CASE("a buffer that is written twice is read as it is at that time") {
  check("program p(A: f32[9]) -> (C: f32[9], D: f32[9]) {\nbuffer B: f32[9] global\n" +
        block("B1", "B[v] = 2f32*A[v]") + block("C", "C[v] = B[v] + 1f32") +
        block("B2", "B[v] = 3f32*A[v]") + block("D", "D[v] = B[v] + 1f32") + "}");
}

TEST_CASE("what is updated in place is read before and after, and part of it stays") {
  check("program p(A: f32[9]) -> (C: f32[9], D: f32[9]) {\nbuffer B: f32[9] global\n" +
        block("B1", "B[v] = A[v]") + block("C", "C[v] = B[8 - v]") +
        block("B2", "B[v] = B[v] + B[v]", "4") + block("D", "D[v] = B[v] + C[v]") + "}");
}

TEST_CASE(
    "a block that walks over its own buffer sees new values behind it and old ones before it") {
  const std::string head = "program p(A: f32[9]) -> (B: f32[9]) {\n" + block("B1", "B[v] = A[v]");
  check(head + block("B2", "B[v] = select(v > 0, B[v - 1], 0f32) + 1f32") + "}");
  check(head + block("B2", "B[v] = select(v < 8, B[v + 1], 0f32) + 1f32") + "}");
}

TEST_CASE(
    "where one loop writes a buffer in several places, running the program is the reference") {
  const Program program = parse_or_die(R"(program p(A: f32[9]) -> (C: f32[9], D: f32[9]) {
    buffer B: f32[9] global
    for i in 9 {
      block "B1" [v: S(9) = i] { B[v] = 2f32*A[v] }
      block "C" [v: S(9) = i] { C[v] = B[v] + 1f32 }
      block "B2" [v: S(9) = i] { B[v] = 3f32*A[v] }
      block "D" [v: S(9) = i] { D[v] = B[v] + 1f32 }
    } })");
  const std::vector<Tensor> inputs = {tensor_from(DType::kF32, {9}, [](int64_t i) { return i; })};
  Result<ElementEvaluator> elements = ElementEvaluator::create(program, inputs);
  REQUIRE_OK(elements);
  CHECK_DIAG(elements->element(0, 3), Unsupported);
  const auto all = run_bounded(program, inputs).value();
  CHECK(all[0][3].value == 7);
  CHECK(all[1][3].value == 10);
}

TEST_CASE("a scheduled sum has the bound of a sum in any order, and what is no sum has its own") {
  const Program sum = parse_or_die(R"(program p(A: f32[4, 16]) -> (S: f32) {
    for o in 4 { for i in 16 { block "S" [r: R(64) = o*16 + i] {
      init { S[] = 0f32 }
      S[] = S[] + A[r // 16, r % 16] } } } })");
  const auto value = [](int64_t i) { return 1.0 / static_cast<double>(i + 3); };
  const std::vector<Tensor> inputs = {tensor_from(DType::kF32, {4, 16}, value)};
  const Reference found = run_bounded(sum, inputs).value()[0][0];
  const Tensor interpreted = interpret_or_die(sum, inputs)[0];
  CHECK(accepts(found, DType::kF32, interpreted.get(0)));
  CHECK(found.bound > 0);
  CHECK(found.bound < 1e-4);
}

TEST_CASE("bounds have room for factors cut to tf32 where they are allowed to be") {
  const Program program = parse_or_die(R"(
program p(A: f32[64], B: f32[64]) -> (C: f32[1]) {
  for o in 1 { for k in 64 { block "C" [vo: S(1) = o, vk: R(64) = k] {
    init { C[vo] = 0f32 } C[vo] = C[vo] + A[vk]*B[vk] } } }
})");
  // All but the last are 1 in tf32.
  const Tensor factor = tensor_from(
      DType::kF32, {64}, [](int64_t i) { return 1 + static_cast<double>(i + 1) * 0x1p-16; });
  const double cut = 63 + (1 + 0x1p-10) * (1 + 0x1p-10);
  const std::vector<Tensor> inputs = {factor, factor};
  for (const double part : {0.0, kTf32Error}) {
    ElementOptions options;
    options.factor_error = part;
    const Reference element =
        ElementEvaluator::create(program, inputs, options).value().element(0, 0).value();
    const Reference run = run_bounded(program, inputs, {.factor_error = part}).value()[0][0];
    for (const Reference& found : {element, run}) {
      CHECK(accepts(found, DType::kF32, found.value));
      CHECK(accepts(found, DType::kF32, cut) == (part > 0));
      CHECK_FALSE(accepts(found, DType::kF32, found.value + 0.2));
    }
  }
  // Whole numbers are exact in both.
  const Tensor whole = tensor_from(DType::kF32, {64}, [](int64_t i) { return i % 9 - 4; });
  const std::vector<Tensor> wholes = {whole, whole};
  CHECK(run_bounded(program, wholes, {.factor_error = kTf32Error}).value()[0][0].bound == 0);
}

TEST_CASE("what no program may do is found by both") {
  const std::vector<Tensor> inputs = {tensor_from(DType::kF32, {9}, [](int64_t i) { return i; })};
  const auto run = [&](const std::string& blocks) {
    return run_bounded(
        parse_or_die("program p(A: f32[9]) -> (C: f32[9]) {\nbuffer B: f32[9] global\n" + blocks +
                     "}"),
        inputs);
  };
  CHECK_DIAG(run(block("C", "C[v] = A[v + 1]")), InterpOutOfBounds);
  CHECK_DIAG(run(block("C", "C[v] = B[v]") + block("B", "B[v] = A[v]")), InterpUninitialised);
  CHECK_DIAG(run(block("C", "C[v] = A[v]", "8")), InterpUnwrittenOutput);
  CHECK_DIAG(
      run_bounded(parse_or_die("program p(A: f32[9]) -> (C: f32[9]) { for i in 9 { block \"C\" "
                               "[v: S(9) = i + 1] { C[v] = A[v] } } }"),
                  inputs),
      InterpIterRange);
  const Program small =
      parse_or_die("program p(A: f32[9]) -> (C: f32[9]) {" + block("C", "C[v] = A[v]") + "}");
  CHECK_DIAG(run_bounded(small, inputs, {.max_steps = 5}), InterpStepBudget);
  CHECK_DIAG(run_bounded(small, inputs, {.max_elements = 17}), InterpTooLarge);
  CHECK_DIAG(run_bounded(small, {}), InterpInput);
}

}  // namespace
}  // namespace prunerc::ir

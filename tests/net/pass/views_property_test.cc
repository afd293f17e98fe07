// Random chains of views and arithmetic mean the same without their views.
#include "ir/analysis/views/views.h"
#include "ir/interp/interpreter.h"
#include "ir/lang/lang.h"
#include "ir/printer.h"
#include "ir/verify.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace prunerc::testing {
namespace {

using Shape = std::array<int64_t, 4>;
const std::array<const char*, 4> kAxes = {"a", "b", "c", "d"};

std::string joined(const std::array<std::string, 4>& items) {
  return fmt::format("{}", fmt::join(items, ","));
}

// A statement that makes `to` of `from`, which has the shape; the shape becomes that of `to`.
std::string step(std::mt19937& random, const std::string& to, const std::string& from,
                 Shape& shape) {
  const auto pick = [&](unsigned count) { return static_cast<std::size_t>(random() % count); };
  std::array<std::string, 4> plain = {"a", "b", "c", "d"};
  std::array<std::string, 4> at = plain;
  switch (pick(6)) {
    case 0:
    case 1: {  // a transpose
      std::array<std::size_t, 4> order = {0, 1, 2, 3};
      std::shuffle(order.begin(), order.end(), random);
      Shape moved{};
      for (std::size_t i = 0; i < 4; ++i) {
        moved[i] = shape[order[i]];
        at[order[i]] = kAxes[i];
      }
      shape = moved;
      return fmt::format("{}[a,b,c,d] = {}[{}];", to, from, joined(at));
    }
    case 2: {  // the last two axes as one, and one of one element
      const int64_t inner = shape[3];
      shape = {1, shape[0], shape[1], shape[2] * shape[3]};
      return fmt::format("{}[a in 0..1,b,c,d in 0..{}] = {}[b,c,d/{},d%{}];", to, shape[3], from,
                         inner, inner);
    }
    case 3: {  // a window, padded
      const std::size_t axis = pick(4);
      at[axis] = fmt::format("{}+r-1", kAxes[axis]);
      plain[axis] = fmt::format("{} in 0..{}", kAxes[axis], shape[axis]);
      return fmt::format("{}[{}] = sum[r in 0..3] ({}[{}] or 0) * f32(r+1);", to, joined(plain),
                         from, joined(at));
    }
    case 4: {  // a softened mean along an axis, and back
      const std::size_t axis = pick(4);
      at[axis] = "r";
      return fmt::format("{}[a,b,c,d] = {}[a,b,c,d] - 0.5*max[r] {}[{}];", to, from, from,
                         joined(at));
    }
    default: return fmt::format("{}[a,b,c,d] = max({}[a,b,c,d], 0.25) * 2;", to, from);
  }
}

}  // namespace

TEST_CASE("random chains of views, windows and arithmetic compute the same without views") {
  std::mt19937 random(29);
  int num_changed = 0;
  for (int round = 0; round < 150; ++round) {
    Shape shape = {2, 3, 4, 3};
    std::string body, from = "X";
    const int length = 2 + round % 6;
    for (int i = 1; i <= length; ++i) {
      const std::string to = i == length ? "Y" : fmt::format("t{}", i);
      body += fmt::format("  {}{}\n", i == length ? "" : "let ", step(random, to, from, shape));
      from = to;
    }
    lang::CompileInput input;
    input.file_name = "chain.prn";
    input.text = fmt::format("op f(X: f32[2,3,4,3]) -> (Y: f32[{}]) {{\n{}}}\n",
                             fmt::join(shape, ","), body);
    const lang::LangResult compiled = lang::compile(input);
    INFO(input.text << compiled.rendered);
    REQUIRE(compiled.program);
    const ir::Program absorbed = ir::absorb_views(*compiled.program);
    INFO(ir::print(*compiled.program) << ir::print(absorbed));
    CHECK(ir::count_views(absorbed) <= ir::count_views(*compiled.program));
    REQUIRE(ir::verify(absorbed).ok());
    num_changed += absorbed.is(*compiled.program) ? 0 : 1;
    std::vector<ir::Tensor> inputs;
    inputs.emplace_back(ir::DType::kF32, std::vector<int64_t>{2, 3, 4, 3});
    ir::Tensor& x = inputs[0];
    for (int64_t i = 0; i < x.num_elements(); ++i)
      x.set(i, static_cast<double>(random() % 64) / 16 - 2);
    const auto want = ir::interpret(*compiled.program, inputs);
    const auto got = ir::interpret(absorbed, inputs);
    REQUIRE(want.ok());
    REQUIRE(got.ok());
    for (int64_t i = 0; i < (*want)[0].num_elements(); ++i)
      REQUIRE((*got)[0].get(i) == Approx((*want)[0].get(i)).epsilon(1e-4).margin(1e-3));
  }
  CHECK(num_changed > 80);
}

}  // namespace prunerc::testing

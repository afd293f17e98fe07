#include "tests/property/swizzled_products.h"

#include "ir/parser.h"
#include "ir/support/check.h"
#include "ir/support/rng.h"
#include "ir/visit.h"
#include "search/space/sampler.h"
#include "search/space/space.h"

#include <algorithm>
#include <utility>

namespace prunerc::testing {
namespace {

/// Draws for one candidate: one in three has rows that long.
constexpr int kAttempts = 64;

bool swizzles(const search::Sketch& sketch) {
  const auto is_swizzle = [](const schedule::Instruction& step) {
    return step.primitive == schedule::PrimitiveKind::kSwizzle;
  };
  const std::vector<schedule::Instruction>& steps = sketch.trace.instructions;
  return sketch.name.find("tensor") != std::string::npos &&
         std::any_of(steps.begin(), steps.end(), is_swizzle);
}

bool has_rows(const ir::Program& program, int64_t bytes) {
  bool found = false;
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
        const ir::Block* block = s.as<ir::Block>();
        for (std::size_t i = 0; block != nullptr && i < block->attrs.size(); ++i) {
          const ir::Attr& attr = block->attrs[i];
          found = found || (attr.key == "swizzle_0" && attr.value == bytes);
        }
        return !found;
      },
      [](ir::Expr) {});
  return found;
}

}  // namespace

ir::Program swizzled_product() {
  Result<ir::Program> program = ir::parse(R"(
program product(A: f16[72, 200], B: f16[200, 40]) -> (C: f32[72, 40]) {
  for i in 72 { for j in 40 { for k in 200 {
    block "C" [vi: S(72) = i, vj: S(40) = j, vk: R(200) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + f32(A[vi, vk])*f32(B[vk, vj]) } } } }
})");
  PRUNERC_CHECK(program.ok(), "a product is a program");
  return *std::move(program);
}

std::vector<SwizzledProduct> swizzled_products(const ir::Target& target, uint64_t seed) {
  const search::Task task = search::make_task("swizzled", swizzled_product(), target);
  const Result<search::SearchSpace> space = search::make_space(task);
  PRUNERC_CHECK(space.ok(), "a product has sketches");
  std::vector<SwizzledProduct> out;
  for (std::size_t s = 0; s < space->sketches.size(); ++s) {
    if (!swizzles(space->sketches[s])) continue;
    Rng rng(seed, s, 31);
    for (const int64_t bytes : {32, 64, 128}) {
      for (int attempt = 0; attempt < kAttempts; ++attempt) {
        const int sketch = static_cast<int>(s);
        const search::Genome genome = search::random_genome(*space, sketch, rng);
        Result<search::Candidate> made =
            search::instantiate(task, *space, sketch, genome.decisions);
        if (!made.ok() || !has_rows(made->program, bytes)) continue;
        out.push_back(
            {space->sketches[s].name + " rows=" + std::to_string(bytes), *std::move(made)});
        break;
      }
    }
  }
  return out;
}

}  // namespace prunerc::testing

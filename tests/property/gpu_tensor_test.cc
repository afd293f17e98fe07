// Tensor instructions chosen by the search: every candidate is right on the host, in several orders
// and under the race checker, and NVRTC takes it.
#include "codegen/codegen.h"
#include "ir/printer.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "tests/codegen/gpu_run.h"
#include "tests/property/swizzled_products.h"
#include "tests/support/check.h"
#include "tests/support/operators.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::testing {
namespace {

ir::Target tensor_target() { return gpu_target("cuda-host:sm_80 allow_tf32=1"); }

struct Drawn {
  std::string name;
  ir::Program base;
  search::Candidate candidate;
};

// Of each operator's sketches with tensor instructions the default and `count` random candidates.
std::vector<Drawn> draw(int count) {
  std::vector<Drawn> out;
  for (const NamedProgram& op : tensor_operators()) {
    const search::Task task = search::make_task(op.name, op.program, tensor_target());
    const Result<search::SearchSpace> space = search::make_space(task);
    INFO(op.name);
    REQUIRE_OK(space);
    int num_sketches = 0;
    for (std::size_t s = 0; s < space->sketches.size(); ++s) {
      const std::string& name = space->sketches[s].name;
      if (name.find("tensor") == std::string::npos) continue;
      ++num_sketches;
      Rng rng(first_seed(), s, 77);
      for (int i = 0; i <= count; ++i) {
        const int sketch = static_cast<int>(s);
        const search::Genome genome = i == 0 ? search::default_genome(*space, sketch)
                                             : search::random_genome(*space, sketch, rng);
        Result<search::Candidate> made =
            search::instantiate(task, *space, sketch, genome.decisions);
        INFO(name << " " << i);
        if (i == 0) REQUIRE_OK(made);
        if (made.ok()) out.push_back({op.name + "/" + name, op.program, *std::move(made)});
      }
    }
    CHECK(num_sketches >= 1);
  }
  return out;
}

TEST_CASE("tensor sketches run on the host and give the interpreter's results", "[gpu]") {
  for (const Drawn& d : draw(num_cases(100) / 100)) {
    INFO(d.name << "\n" << schedule::print(d.candidate.trace));
    const std::string difference =
        compare_on_host(d.base, d.candidate.program, tensor_target(), 1, kTwoOrders);
    CHECK(difference == "");
  }
}

TEST_CASE("bytes that lie across the sum reach ldmatrix in words that threads turn", "[gpu]") {
  int num_turned = 0;
  for (const Drawn& d : draw(1)) {
    if (d.name.find("bytes_across") == d.name.npos || d.name.ends_with("+across")) continue;
    INFO(d.name << "\n" << schedule::print(d.candidate.trace));
    const Result<codegen::Artifact> source =
        codegen::print_cuda_artifact(d.candidate.program, tensor_target());
    REQUIRE_OK(source);
    INFO(source->bytes);
    CHECK(num_times(source->bytes, "pr_transpose_4x4(") >= 2);
    CHECK(num_times(source->bytes, "pr_ldmatrix_x") >= 2);
    ++num_turned;
  }
  CHECK(num_turned >= 4);
}

TEST_CASE("swizzled rows of every width are right on the host, staged and in parts of the sum",
          "[gpu]") {
  const std::vector<SwizzledProduct> all = swizzled_products(tensor_target(), first_seed());
  CHECK(all.size() == 12);
  for (const SwizzledProduct& product : all) {
    INFO(product.name << "\n" << schedule::print(product.candidate.trace));
    CHECK(compare_on_host(swizzled_product(), product.candidate.program, tensor_target(), 1,
                          kTwoOrders) == "");
  }
}

// Each takes a compiler of C++ and one of CUDA some seconds: one in eight, others with each seed.
TEST_CASE("tensor sketches are free of races, and NVRTC takes them", "[gpu]") {
  const std::vector<Drawn> all = draw(1);
  int num_clean = 0;
  for (std::size_t i = first_seed() % 8; i < all.size(); i += 8) {
    const Drawn& d = all[i];
    INFO(d.name << "\n" << schedule::print(d.candidate.trace));
    CHECK(check_races_and_compile(d.base, d.candidate.program, tensor_target(), "sm_80") == "");
    ++num_clean;
  }
  CHECK(num_clean >= 10);
}

}  // namespace
}  // namespace prunerc::testing

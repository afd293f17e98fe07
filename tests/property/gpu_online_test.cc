// Attention in one pass over tiles of keys, rows in registers: one kernel, right on the host in several orders and under the
// race checker; faults in what lanes give each other and in the rescaling are found.
#include "codegen/codegen.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/pipeline.h"
#include "ir/builder.h"
#include "ir/fpv/fpv.h"
#include "ir/lang/lang.h"
#include "ir/map.h"
#include "ir/printer.h"
#include "schedule/legality/gpu_limits.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "search/tune/sampled.h"
#include "tests/codegen/gpu_run.h"
#include "tests/support/check.h"
#include "tests/support/operators.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prunerc::testing {
namespace {

constexpr std::string_view kSketch = "gpu+tensor+chain+online";

ir::Target online_target() { return gpu_target("cuda-host:sm_80"); }

// An operator of split_chained_text with other extents.
ir::Program split(std::string_view op, std::string_view bindings) {
  lang::CompileInput input;
  input.file_name = "op.prn";
  input.text = std::string(split_chained_text());
  input.op = std::string(op);
  std::string words(bindings);
  while (!words.empty()) {
    const std::size_t equals = words.find('='), end = std::min(words.find(' '), words.size());
    input.bindings[words.substr(0, equals)] = words.substr(equals + 1, end - equals - 1);
    words = words.substr(std::min(end + 1, words.size()));
  }
  const lang::LangResult compiled = lang::compile(input);
  INFO(compiled.rendered);
  REQUIRE(compiled.program.has_value());
  return *compiled.program;
}

int sketch_of(const search::SearchSpace& space) {
  for (std::size_t s = 0; s < space.sketches.size(); ++s) {
    if (space.sketches[s].name == kSketch) return static_cast<int>(s);
  }
  return -1;
}

bool has_sketch(const ir::Program& program, const ir::Target& target = online_target()) {
  const Result<search::SearchSpace> space =
      search::make_space(search::make_task("op", program, target));
  REQUIRE_OK(space);
  return sketch_of(*space) >= 0;
}

// The default, or a random candidate.
Result<search::Candidate> drawn(const ir::Program& program, Rng* rng) {
  const search::Task task = search::make_task("op", program, online_target());
  const Result<search::SearchSpace> space = search::make_space(task);
  REQUIRE_OK(space);
  const int sketch = sketch_of(*space);
  REQUIRE(sketch >= 0);
  const search::Genome genome = rng == nullptr ? search::default_genome(*space, sketch)
                                               : search::random_genome(*space, sketch, *rng);
  return search::instantiate(task, *space, sketch, genome.decisions);
}

std::vector<ir::Program> operators() {
  return {split("split_attention", "H=1 T=32 S=64 E=16 B=16"),
          split("split_attention", "H=2 T=64 S=96 E=32 B=32"),
          split("split_attention", "H=1 T=64 S=192 E=64 B=64"),
          split("split_causal_attention", "H=1 T=96 E=16 B=32")};
}

TEST_CASE("one pass is one kernel with the interpreter's results", "[gpu]") {
  Rng rng(first_seed(), 7);
  for (const ir::Program& program : operators()) {
    for (int i = 0; i <= num_cases(100) / 50; ++i) {
      const Result<search::Candidate> made = drawn(program, i == 0 ? nullptr : &rng);
      if (i == 0) REQUIRE_OK(made);
      if (!made.ok()) continue;
      INFO(schedule::print(made->trace));
      const Result<std::vector<schedule::GpuNeeds>> needs = schedule::gpu_needs(made->program);
      REQUIRE_OK(needs);
      CHECK(needs->size() == 1);
      CHECK(compare_on_host(program, made->program, online_target(), 1, kTwoOrders) == "");
    }
  }
}

TEST_CASE("one pass is free of races, and NVRTC takes it", "[gpu]") {
  const std::vector<ir::Program> all = operators();
  for (std::size_t i = first_seed() % 2; i < all.size(); i += 2) {
    const Result<search::Candidate> made = drawn(all[i], nullptr);
    REQUIRE_OK(made);
    INFO(schedule::print(made->trace));
    for (const char* arch : {"sm_80", "sm_90a"}) {
      CHECK(check_races_and_compile(all[i], made->program, online_target(), arch) == "");
    }
  }
}

TEST_CASE("one pass has no scores in shared memory, and lanes exchange what rows have") {
  const ir::Program program = split("split_attention", "H=1 T=128 S=256 E=64 B=64");
  const Result<search::Candidate> made = drawn(program, nullptr);
  REQUIRE_OK(made);
  const Result<codegen::Artifact> source =
      codegen::print_cuda_artifact(made->program, online_target());
  REQUIRE_OK(source);
  INFO(source->bytes);
  // Of a maximum and of a sum of each tile.
  CHECK(num_times(source->bytes, "pr_shfl_xor(") == 4);
  CHECK(num_times(source->bytes, "pr_shfl_down(") == 0);
  CHECK(num_times(source->bytes, "pr_mma_m16n8k16_f16(") == 2);
  CHECK(num_times(source->bytes, "pr_ldmatrix") == 3);
  CHECK(source->launches.size() == 1);
}

TEST_CASE("one pass is equal in finite fields") {
  const ir::Program program = split("split_attention", "H=1 T=16 S=64 E=16 B=16");
  const Result<search::Candidate> made = drawn(program, nullptr);
  REQUIRE_OK(made);
  const search::Task task = search::make_task("op", program, online_target());
  const search::SampledVerdict found = search::check_schedule(task, made->trace, made->program);
  INFO(search::to_string(found) << ir::print(made->program));
  CHECK(found.verdict.ok());
}

TEST_CASE("what lanes keep of one pass fits in registers", "[gpu]") {
  if (const auto nvrtc = codegen::nvrtc_info(); !nvrtc.ok()) {
    WARN("skipped: " << nvrtc.error().message());
    return;
  }
  for (const char* extents : {"H=2 T=1024 S=1024 E=64 B=64", "H=2 T=1024 S=1024 E=64 B=128",
                              "H=2 T=1024 S=1024 E=128 B=64"}) {
    const Result<search::Candidate> made = drawn(split("split_attention", extents), nullptr);
    REQUIRE_OK(made);
    const Result<codegen::Artifact> source =
        codegen::print_cuda_artifact(made->program, online_target());
    REQUIRE_OK(source);
    for (const char* arch : {"sm_80", "sm_90a"}) {
      const Result<codegen::Cubin> cubin = codegen::compile_cubin(source->bytes, arch, {});
      REQUIRE_OK(cubin);
      REQUIRE(cubin->info.kernels.size() == 1);
      CAPTURE(extents, arch, cubin->info.kernels[0].registers);
      CHECK(cubin->info.kernels[0].stack_bytes == 0);
    }
  }
}

// The program with the edit at the n-th store for which it makes something of the value.
ir::Program edited(const ir::Program& program,
                   const std::function<ir::Expr(ir::IrBuilder&, ir::Expr)>& edit, int* num_found) {
  ir::IrBuilder b(program);
  const ir::StmtFn go = [&](ir::Stmt s) -> ir::Stmt {
    const auto* store = s.as<ir::Store>();
    if (store == nullptr) return ir::map_children(b, s, go, [](ir::Expr e) { return e; });
    const ir::Expr value = edit(b, store->value);
    if (value.is(store->value)) return s;
    ++*num_found;
    return b.store(store->buffer, store->indices, value);
  };
  return b.finish(go(program.root()));
}

TEST_CASE("a pass with a fault gives other results on the host", "[gpu]") {
  const ir::Program program = split("split_attention", "H=1 T=32 S=64 E=16 B=16");
  const Result<search::Candidate> made = drawn(program, nullptr);
  REQUIRE_OK(made);
  const Result<ir::Program> lowered = codegen::lower_gpu(made->program, online_target());
  REQUIRE_OK(lowered);
  CHECK(compare_lowered_on_host(program, *lowered, online_target(), 1, kTwoOrders) == "");
  const auto name_of = [&](ir::Expr e) {
    const auto* load = e.as<ir::Load>();
    return load == nullptr ? std::string() : std::string(lowered->buffer(load->buffer).name);
  };
  const auto is_of = [&](ir::Expr e, std::string_view what) {
    return name_of(e).find(what) != std::string::npos;
  };
  using Edit = std::function<ir::Expr(ir::IrBuilder&, ir::Expr)>;
  const std::pair<const char*, Edit> faults[] = {
      {"no rescaling",
       [&](ir::IrBuilder& b, ir::Expr e) {
         const auto* sum = e.as<ir::Add>();
         const auto* scaled = sum != nullptr ? sum->lhs.as<ir::Mul>() : nullptr;
         return scaled != nullptr && is_of(scaled->rhs, "_kept") ? b.add(scaled->lhs, sum->rhs) : e;
       }},
      {"no weight of the tile",
       [&](ir::IrBuilder& b, ir::Expr e) {
         const auto* sum = e.as<ir::Add>();
         const auto* term = sum != nullptr ? sum->rhs.as<ir::Mul>() : nullptr;
         return term != nullptr && is_of(term->lhs, "_added") ? b.add(sum->lhs, term->rhs) : e;
       }},
      {"no exchange of sums",
       [&](ir::IrBuilder& b, ir::Expr e) {
         const auto* sum = e.as<ir::Add>();
         const bool exchanges = sum != nullptr && is_of(sum->lhs, "_of_lane") &&
                                is_of(sum->rhs, "_of_lane") && !sum->lhs.is(sum->rhs);
         return exchanges ? b.add(sum->lhs, sum->lhs) : e;
       }},
      {"no exchange of maxima",
       [&](ir::IrBuilder&, ir::Expr e) {
         const auto* max = e.as<ir::Max>();
         const bool exchanges =
             max != nullptr && is_of(max->lhs, "_of_lane") && is_of(max->rhs, "_of_lane");
         return exchanges ? max->lhs : e;
       }},
  };
  for (const auto& [name, edit] : faults) {
    int num_found = 0;
    const ir::Program wrong = edited(*lowered, edit, &num_found);
    CAPTURE(name);
    CHECK(num_found > 0);
    CHECK(compare_lowered_on_host(program, wrong, online_target(), 1, kTwoOrders) != "");
  }
}

TEST_CASE("a pass is of whole tiles of 16-bit products, and of what combines tiles") {
  CHECK(has_sketch(split("split_attention", "")));
  for (const char* ragged : {"T=33", "S=102 B=51", "E=24", "S=1024 B=512"}) {
    CAPTURE(ragged);
    CHECK_FALSE(has_sketch(split("split_attention", ragged)));
  }
  CHECK_FALSE(has_sketch(split("split_single_attention", "")));
  // Rows have no tiles, or another kernel reads what a tile leaves.
  for (const NamedProgram& op : chained_operators()) {
    CAPTURE(op.name);
    CHECK_FALSE(has_sketch(op.program));
  }
}

}  // namespace
}  // namespace prunerc::testing

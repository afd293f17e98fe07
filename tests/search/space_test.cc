#include "search/space/space.h"

#include "costmodel/latency/roofline.h"
#include "ir/analysis/prologue.h"
#include "ir/equal.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "schedule/schedule.h"
#include "search/space/sampler.h"
#include "search/space/variation.h"
#include "search/tune/equality.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

SearchSpace space_of(const Task& task) {
  Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  REQUIRE_FALSE(space->sketches.empty());
  return std::move(space).value();
}

TEST_CASE(
    "every sketch of every operator, with any decisions, is a legal program of the same meaning") {
  REQUIRE(operator_programs().size() >= 12);
  for (const NamedProgram& op : operator_programs()) {
    const Task task = make_test_task(op.name);
    const SearchSpace space = space_of(task);
    int num_legal = 0;
    for (std::size_t s = 0; s < space.sketches.size(); ++s) {
      for (int i = 0; i < num_cases(200) / 40 + 1; ++i) {
        Rng rng(first_seed(), s, static_cast<uint64_t>(i));
        const int sketch = static_cast<int>(s);
        const Genome genome =
            i == 0 ? default_genome(space, sketch) : random_genome(space, sketch, rng);
        const Result<Candidate> made = instantiate(task, space, sketch, genome.decisions);
        INFO(op.name << " sketch " << space.sketches[s].name << " case " << i);
        // The heuristic decisions must be legal; drawn ones may be refused, with a reason.
        if (i == 0) REQUIRE_OK(made);
        if (!made) continue;
        ++num_legal;
        REQUIRE_OK(ir::verify(made->program));
        check_same_result(task.base, made->program, static_cast<uint64_t>(i) + 1);
      }
    }
    INFO(op.name);
    CHECK(num_legal >= 3);
  }
}

TEST_CASE("random programs get a space whose candidates mean the same") {
  for (int i = 0; i < num_cases(200) / 4; ++i) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(i);
    Rng rng(seed, 77);
    GenPolicy policy;
    policy.transcendental = false;
    const ir::Program program = random_program(rng, policy);
    const ir::Target target = ir::target_from_string("cpu:icelake-server").value();
    const Task task = make_task("random", program, target);
    const SearchSpace space = space_of(task);
    for (std::size_t s = 0; s < space.sketches.size(); ++s) {
      const Genome genome = random_genome(space, static_cast<int>(s), rng);
      const Result<Candidate> made =
          instantiate(task, space, static_cast<int>(s), genome.decisions);
      if (!made) continue;
      INFO("seed " << seed << " sketch " << space.sketches[s].name);
      REQUIRE_OK(ir::verify(made->program));
      check_same_result(program, made->program, seed);
    }
  }
}

TEST_CASE("a candidate's trace prints, parses and replays to the same program") {
  for (const char* name : {"gemm_odd", "conv2d_relu", "softmax_like", "total_sum"}) {
    const Task task = make_test_task(name);
    const SearchSpace space = space_of(task);
    Rng rng(5);
    for (std::size_t s = 0; s < space.sketches.size(); ++s) {
      const Genome genome = random_genome(space, static_cast<int>(s), rng);
      const Result<Candidate> made =
          instantiate(task, space, static_cast<int>(s), genome.decisions);
      if (!made) continue;
      const Result<schedule::Trace> trace = schedule::parse_trace(schedule::print(made->trace));
      REQUIRE_OK(trace);
      CHECK(find_sketch(space, *trace) == static_cast<int>(s));
      const Result<schedule::Schedule> replayed = schedule::replay(task.base, *trace);
      REQUIRE_OK(replayed);
      CHECK(ir::fingerprint(replayed->program()) == made->fingerprint);
    }
  }
}

TEST_CASE("children of crossover and mutation stay in their sketch's space") {
  const Task task = make_test_task("conv2d");
  const SearchSpace space = space_of(task);
  int num_mixed = 0;
  for (int i = 0; i < num_cases(); ++i) {
    Rng rng(first_seed(), 9, static_cast<uint64_t>(i));
    const auto sketch = static_cast<int>(rng.below(space.sketches.size()));
    const Genome mother = random_genome(space, sketch, rng);
    const Genome father = random_genome(space, sketch, rng);
    const Genome mixed = crossover(space, mother, father, rng);
    const Genome mutant = mutate(space, mixed, {}, rng);
    const auto& spaces = space.sketches[static_cast<std::size_t>(sketch)].spaces;
    REQUIRE(mixed.decisions.size() == spaces.size());
    for (std::size_t d = 0; d < spaces.size(); ++d) {
      CHECK(spaces[d].contains(mutant.decisions[d]));
      CHECK(
          (mixed.decisions[d] == mother.decisions[d] || mixed.decisions[d] == father.decisions[d]));
    }
    num_mixed += mixed != mother && mixed != father ? 1 : 0;
  }
  CHECK(num_mixed > num_cases() / 4);
}

TEST_CASE("mutation changes one or two decisions") {
  const Task task = make_test_task("gemm");
  const SearchSpace space = space_of(task);
  Rng rng(1);
  int num_changed = 0;
  for (int i = 0; i < 100; ++i) {
    const Genome parent = random_genome(space, 0, rng);
    const Genome child = mutate(space, parent, {}, rng);
    int different = 0;
    for (std::size_t d = 0; d < parent.decisions.size(); ++d) {
      different += parent.decisions[d] != child.decisions[d] ? 1 : 0;
    }
    CHECK(different <= 2);
    num_changed += different > 0 ? 1 : 0;
  }
  CHECK(num_changed > 70);
}

TEST_CASE("the heuristic candidate needs no search and is far from the program as written") {
  for (const NamedProgram& op : operator_programs()) {
    const Task task = make_test_task(op.name);
    const SearchSpace space = space_of(task);
    const Result<Candidate> made = heuristic_candidate(task, space);
    INFO(op.name);
    REQUIRE_OK(made);
    CHECK(made->predicted_ns > 0);
    check_same_result(task.base, made->program, 3);
  }
}

TEST_CASE("a product with a transposed operand gets vectors and register tiles without a search") {
  for (const char* name : {"linear_relu", "scores", "gemm_nt_sum"}) {
    const Task task = make_test_task(name, 1);
    const Candidate made = heuristic_candidate(task, space_of(task)).value();
    const std::string trace = schedule::print(made.trace);
    INFO(name);
    const std::size_t copy = trace.find("reindex_cache_read(");
    REQUIRE(copy != std::string::npos);
    // Of the copy itself: a tile that is read as it lies.
    CHECK(trace.find("unroll(", copy) < trace.find("sample_covering_tile(", copy));
    CHECK(trace.find("vectorize(") != std::string::npos);
    CHECK(trace.find("unroll(") != std::string::npos);
  }
}

// The heuristic candidate's trace of a program on an AVX-512 machine.
std::string heuristic_trace(const std::string& text) {
  const Task task =
      make_task("p", parse_or_die(text), *ir::target_from_string("cpu:icelake-server"));
  return schedule::print(heuristic_candidate(task, space_of(task)).value().trace);
}

TEST_CASE("positions down the columns are found for vectors of columns") {
  const auto argmax = [](const char* outputs, const char* steps, const char* x) {
    return fmt::format(R"(program p(X: f32[40, 96]) -> (I: i64[{0}]) {{
      buffer V: f32[{0}] global
      for o in {0} {{ for r in {1} {{ block "I" [vo: S({0}) = o, vr: R({1}) = r] {{
        init {{ I[vo] = -1 V[vo] = f32.ninf }}
        I[vo] = select(I[vo] < 0 || (V[vo] < {2} || {2} == V[vo] && vr < I[vo]), vr, I[vo])
        V[vo] = max(V[vo], {2}) }} }} }} }})",
                       outputs, steps, x);
  };
  const std::string columns = heuristic_trace(argmax("96", "40", "X[vr, vo]"));
  INFO(columns);
  CHECK(columns.find("rfactor(") == std::string::npos);
  CHECK(columns.find("vectorize(") != std::string::npos);
  // Along the rows each lane takes a part of the row instead.
  const std::string rows = heuristic_trace(argmax("40", "96", "X[vo, vr]"));
  INFO(rows);
  CHECK(rows.find("rfactor(") != std::string::npos);
}

TEST_CASE("a short contiguous axis gets lanes if there are terms enough along the others") {
  const auto sum = [](int h, int w) {
    return fmt::format(R"(program p(X: f32[8, {0}, {1}]) -> (Y: f32[8]) {{
      for i in 8 {{ for h in {0} {{ for w in {1} {{
        block "Y" [vi: S(8) = i, vh: R({0}) = h, vw: R({1}) = w] {{
          init {{ Y[vi] = 0f32 }} Y[vi] = Y[vi] + X[vi, vh, vw] }} }} }} }} }})",
                       h, w);
  };
  CHECK(heuristic_trace(sum(28, 28)).find("rfactor(") != std::string::npos);
  CHECK(heuristic_trace(sum(1, 20)).find("rfactor(") == std::string::npos);
  // 7 rows of 7 are one axis of 49.
  CHECK(heuristic_trace(sum(7, 7)).find("a1*7 + a2") != std::string::npos);
  CHECK(heuristic_trace(sum(7, 7)).find("rfactor(") != std::string::npos);
  // A row of 28 leaves lanes empty, 784 elements do not.
  CHECK(heuristic_trace(sum(28, 28)).find("a1*28 + a2") != std::string::npos);
  CHECK(heuristic_trace(sum(30, 30)).find("transform_block_layout(") == std::string::npos);
  CHECK(heuristic_trace(sum(3, 5)).find("rfactor(") == std::string::npos);
}

TEST_CASE("pixels of a small map are one vector axis where windows do not move over them") {
  const auto product = [](int size) {
    return fmt::format(
        R"(program p(X: f32[24, {0}, {0}], F: f32[32, 24]) -> (Y: f32[32, {0}, {0}]) {{
      for o in 32 {{ for h in {0} {{ for w in {0} {{ for c in 24 {{
        block "Y" [vo: S(32) = o, vh: S({0}) = h, vw: S({0}) = w, vc: R(24) = c] {{
          init {{ Y[vo, vh, vw] = 0f32 }}
          Y[vo, vh, vw] = Y[vo, vh, vw] + F[vo, vc]*X[vc, vh, vw] }} }} }} }} }} }})",
        size);
  };
  CHECK(heuristic_trace(product(7)).find("a1*7 + a2") != std::string::npos);
  CHECK(heuristic_trace(product(14)).find("a1*14 + a2") != std::string::npos);
  // More than a vector of 16.
  CHECK(heuristic_trace(product(28)).find("transform_block_layout(") == std::string::npos);
  CHECK(heuristic_trace(product(32)).find("transform_block_layout(") == std::string::npos);
  CHECK(heuristic_trace(product(56)).find("transform_block_layout(") == std::string::npos);
}

TEST_CASE("rows of an odd length become one vector axis where an elementwise block is alone") {
  const auto relu = [](int size, const char* index = "vi, vj") {
    return fmt::format(
        R"(program p(X: f32[40, {0}, {0}]) -> (Y: f32[40, {0}, {0}]) {{
      for c in 40 {{ for i in {0} {{ for j in {0} {{
        block "Y" [vc: S(40) = c, vi: S({0}) = i, vj: S({0}) = j] {{
          Y[vc, vi, vj] = max(X[vc, {1}], 0f32) }} }} }} }} }})",
        size, index);
  };
  CHECK(heuristic_trace(relu(28)).find("transform_block_layout(") != std::string::npos);
  CHECK(heuristic_trace(relu(7)).find("transform_block_layout(") != std::string::npos);
  CHECK(heuristic_trace(relu(32)).find("transform_block_layout(") == std::string::npos);
  CHECK(heuristic_trace(relu(28, "vj, vi")).find("transform_block_layout(") == std::string::npos);
  CHECK(heuristic_trace(relu(28, "max(vi - 1, 0), vj")).find("transform_block_layout(") ==
        std::string::npos);
}

TEST_CASE("one thread gets no parallel loops") {
  for (const char* name : {"gemm", "softmax_like", "axpy"}) {
    for (const int num_threads : {1, 2}) {
      const Task task = make_test_task(name, num_threads);
      const Candidate made = heuristic_candidate(task, space_of(task)).value();
      const std::string trace = schedule::print(made.trace);
      INFO(name << " " << num_threads);
      CHECK((trace.find("parallel(") != std::string::npos) == (num_threads == 2));
    }
  }
}

TEST_CASE("extents that nothing divides still get vectors and register tiles") {
  const Task task = make_test_task("gemm_odd");
  const SearchSpace space = space_of(task);
  const Candidate made = heuristic_candidate(task, space).value();
  const std::string trace = schedule::print(made.trace);
  CHECK(trace.find("vectorize(") != std::string::npos);
  CHECK(trace.find("unroll(") != std::string::npos);
}

TEST_CASE("the expected structures are there") {
  auto names = [](const char* op) {
    std::vector<std::string> out;
    const SearchSpace space = space_of(make_test_task(op));
    for (const Sketch& sketch : space.sketches) out.push_back(sketch.name);
    return out;
  };
  auto has = [](const std::vector<std::string>& all, const char* name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  const std::vector<std::string> gemm = names("gemm");
  for (const char* name : {"base", "pack"}) {
    INFO(name);
    CHECK(has(gemm, name));
  }
  CHECK(has(names("conv2d_relu"), "transpose"));
  CHECK(has(names("conv2d"), "rotate"));
  // A transposed operand is copied however short the reduction is; sums of lanes need a long one.
  for (const char* name : {"gemm_nt", "linear_relu", "scores", "gemm_nt_sum"}) {
    INFO(name);
    CHECK(has(names(name), "transpose"));
  }
  CHECK(has(names("gemm_nt"), "no rfactor"));
  CHECK_FALSE(has(names("linear_relu"), "no rfactor"));
  // Nothing to gain where vectors are loaded as they lie.
  CHECK_FALSE(has(gemm, "transpose"));
  CHECK(has(names("softmax_like"), "split"));
  CHECK(has(names("transpose_add"), "transposition"));
  CHECK_FALSE(has(names("add_relu"), "transposition"));
  CHECK(has(names("attention"), "chain"));
  CHECK(has(names("two_layers"), "chain"));
  // One contraction is no chain.
  for (const char* name : {"gemm", "softmax_like", "conv2d_relu"}) {
    INFO(name);
    CHECK_FALSE(has(names(name), "chain"));
  }
}

TEST_CASE("a chain needs rows for its threads") {
  for (const int num_threads : {2, 16}) {
    const SearchSpace space = space_of(make_test_task("two_layers", num_threads));
    const auto is_chain = [](const Sketch& sketch) { return sketch.name == "chain"; };
    INFO(num_threads);
    CHECK(std::any_of(space.sketches.begin(), space.sketches.end(), is_chain) ==
          (num_threads < 13));
  }
}

TEST_CASE("a chain's tasks keep what is between its contractions to themselves") {
  for (const char* name : {"attention", "two_layers"}) {
    const Task task = make_test_task(name);
    const SearchSpace space = space_of(task);
    for (std::size_t i = 0; i < space.sketches.size(); ++i) {
      if (space.sketches[i].name != "chain") continue;
      const Result<Candidate> made = instantiate(task, space, static_cast<int>(i), {});
      REQUIRE_OK(made);
      const std::string text = ir::print(made->program);
      // One loop over tasks, and no second one after it.
      const std::size_t blocks = text.rfind("block \"Y\"");
      const std::size_t last = text.rfind("parallel {", blocks);
      INFO(text);
      REQUIRE(last != std::string::npos);
      CHECK(text.find(name == std::string("attention") ? "block \"A\"" : "block \"H\"", last) !=
            std::string::npos);
      check_same_result(task.base, made->program, 5);
    }
  }
}

TEST_CASE("a chain may take all rows of a product of vectors") {
  const Result<ir::Program> program =
      ir::parse(R"(program p(A: f32[8, 3, 32], W: f32[3, 32], V: f32[8, 3, 16]) -> (F: f32[8, 16]) {
  buffer D: f32[8, 3] global
  buffer E: f32[8, 3] global
  for b in 8 { for z in 3 { for k in 32 {
    block "D" [vb: S(8) = b, vz: S(3) = z, vk: R(32) = k] {
      init { D[vb, vz] = 0f32 }
      D[vb, vz] = D[vb, vz] + A[vb, vz, vk] * W[vz, vk] } } } }
  for b1 in 8 { for z1 in 3 { block "E" [wb: S(8) = b1, wz: S(3) = z1] { E[wb, wz] = abs(D[wb, wz]) } } }
  for b2 in 8 { for n in 16 { for z2 in 3 {
    block "F" [ub: S(8) = b2, un: S(16) = n, uz: R(3) = z2] {
      init { F[ub, un] = 0f32 }
      F[ub, un] = F[ub, un] + E[ub, uz] * V[ub, uz, un] } } } } })");
  REQUIRE_OK(program);
  const Task task = make_task("p", *program, ir::target_from_string("cpu num_threads=2").value());
  const SearchSpace space = space_of(task);
  for (std::size_t i = 0; i < space.sketches.size(); ++i) {
    INFO(space.sketches[i].name);
    const Result<Candidate> made = instantiate(task, space, static_cast<int>(i), {});
    REQUIRE_OK(made);
    check_same_result(task.base, made->program, 5);
  }
}

TEST_CASE(
    "a running sum down the columns may take whole rows of as many vectors as there are "
    "registers") {
  const std::string trace = heuristic_trace(R"(program p(X: f32[64, 512]) -> (Y: f32[64, 512]) {
  for i in 64 { for j in 512 { for k in 64 {
    block "Y" [vi: S(64) = i, vj: S(512) = j, vk: R(64) = k] {
      init { Y[vi, vj] = 0f32 }
      Y[vi, vj] = Y[vi, vj] + select(vk <= vi, X[vk, vj], 0f32) } } } } })");
  INFO(trace);
  CHECK(trace.find("sample_covering_tile(32, 2, 32)") != std::string::npos);
}

TEST_CASE("running reductions are scans in every sketch") {
  for (const char* name : {"running_sum", "running_max"}) {
    const Task task = make_test_task(name);
    const SearchSpace space = space_of(task);
    REQUIRE_FALSE(space.sketches.empty());
    for (const Sketch& sketch : space.sketches) {
      INFO(schedule::print(sketch.trace));
      CHECK(schedule::print(sketch.trace).find("scan(@B0)") != std::string::npos);
      const Result<Candidate> made = instantiate(task, space, find_sketch(space, sketch.trace), {});
      REQUIRE_OK(made);
      CHECK(check_on_twin(task, made->trace, kDraftLog2Error, 1).verdict.kind ==
            ir::VerdictKind::kEqual);
    }
  }
}

TEST_CASE("a table of which little is read is not filled to show that a candidate is equal") {
  const ir::Program program = ir::parse(R"(
program gather(X: f32[9000000, 8], I: i32[4]) -> (Y: f32[4, 8]) {
  for i in 4 @L0 { for j in 8 @L1 {
    block "Y" @B0 [vi: S(4) = i, vj: S(8) = j] {
      Y[vi, vj] = select(0 <= i64(I[vi]) && i64(I[vi]) < 9000000, X[i64(I[vi]), vj], 0f32)
  } } }
})")
                                  .value();
  ir::Target target = ir::target_from_string("cpu:znver4").value();
  const Task task = make_task("gather", program, target);
  const SearchSpace space = space_of(task);
  const Result<Candidate> made = heuristic_candidate(task, space);
  REQUIRE_OK(made);
  const EqualityResult result = check_on_twin(task, made->trace, kStoredLog2Error, 1);
  INFO(result.verdict.text);
  CHECK(result.verdict.kind == ir::VerdictKind::kUnsupported);
  CHECK(result.verdict.text.find("too large") != std::string::npos);
}

// Sketches of the operator whose trace has that step.
int count_with(const char* op, const char* step) {
  int count = 0;
  for (const Sketch& sketch : space_of(make_test_task(op)).sketches) {
    count += schedule::print(sketch.trace).find(step) != std::string::npos ? 1 : 0;
  }
  return count;
}

TEST_CASE("pixels become one axis: everywhere without windows, as a variant with them") {
  const auto count_named = [](const char* op, const std::string& name) {
    const SearchSpace space = space_of(make_test_task(op));
    return std::count_if(space.sketches.begin(), space.sketches.end(),
                         [&](const Sketch& sketch) { return sketch.name == name; });
  };
  const SearchSpace pointwise = space_of(make_test_task("pointwise_conv"));
  const int one_stride = count_with("pointwise_conv", "(a0*35 + a1*7 + a2, a3, a4)");
  CHECK(one_stride > 0);
  for (const Sketch& sketch : pointwise.sketches) {
    INFO(sketch.name);
    CHECK((schedule::print(sketch.trace).find("(a0*35 + a1*7 + a2, a3, a4)") != std::string::npos ||
           sketch.name.starts_with("compute_at")));
  }
  CHECK(count_named("pointwise_conv", "fused") == 0);
  for (const char* op : {"conv2d_nhwc_relu", "conv2d_nhwc_relu_const"}) {
    CHECK(count_named(op, "fused") == 1);
    CHECK(count_with(op, "(a0*7 + a1, a2, a3, a4, a5)") > 0);
    CHECK(count_with(op, "(a0*7 + a1, a2)") > 0);  // the epilogue's
  }
  CHECK(count_named("conv2d_nhwc_relu_const", "fused+prepack") == 1);
  // One row axis, or vectors along pixels: nothing to fuse.
  for (const char* op :
       {"gemm", "gemm_odd", "batch_matmul", "conv2d", "depthwise", "softmax_like"}) {
    INFO(op);
    CHECK(count_named(op, "fused") == 0);
  }
}

TEST_CASE("weights larger than L2 are read once: their panels are outside of the rows of pixels") {
  for (const int channels : {64, 512}) {
    const ir::Program program = parse_or_die(fmt::format(R"(
program p(X: f32[{0}, 9, 9], const F: f32[{0}, {0}, 3, 3]) -> (Y: f32[{0}, 7, 7]) {{
  for co in {0} {{ for oh in 7 {{ for ow in 7 {{ for ci in {0} {{ for kh in 3 {{ for kw in 3 {{
    block "Y" [c: S({0}) = co, h: S(7) = oh, w: S(7) = ow, i: R({0}) = ci, r: R(3) = kh, s: R(3) = kw] {{
      init {{ Y[c, h, w] = 0f32 }}
      Y[c, h, w] = Y[c, h, w] + X[i, h + r, w + s]*F[c, i, r, s] }} }} }} }} }} }} }} }})",
                                                         channels));
    const Task task = make_task("p", program, *ir::target_from_string("cpu:icelake-server"));
    const SearchSpace space = space_of(task);
    int num_found = 0;
    for (const Sketch& sketch : space.sketches) {
      if (sketch.name != "prepack2") continue;
      const Result<Candidate> made = instantiate(task, space, find_sketch(space, sketch.trace), {});
      REQUIRE_OK(made);
      const std::string text = ir::print(made->program);
      INFO(text);
      CHECK((text.find("for co_0_co_1_oh_") != std::string::npos) == (channels == 512));
      ++num_found;
    }
    CHECK(num_found == 1);
  }
}

TEST_CASE("groups become axes in a convolution and its epilogue, and phases in a transposed one") {
  const auto has = [](const char* op, const char* name) {
    const SearchSpace space = space_of(make_test_task(op));
    return std::any_of(space.sketches.begin(), space.sketches.end(),
                       [&](const Sketch& sketch) { return sketch.name == name; });
  };
  CHECK(count_with("grouped_conv_relu", "a0 // 6, a0 % 6, a1, a2, a3, a4, a5)") > 0);
  CHECK(count_with("grouped_conv_relu", "a0 // 6, a0 % 6, a1, a2)") > 0);
  CHECK(has("grouped_conv_relu", "transpose"));
  CHECK(count_with("conv2d_relu", "transform_block_layout") == 0);
  CHECK(count_with("transposed_conv", "(a1 % 2, a2 % 2, a0, a1 // 2, a2 // 2, a3, a4, a5)") > 0);
  CHECK(count_with("transposed_conv", "pad_read") > 0);
  CHECK(count_with("transposed_conv_taps", "narrow_reduction") > 0);
  // 33 pixels are no whole number of pairs.
  const ir::Program odd = parse_or_die(R"(program odd(X: f32[17], F: f32[3]) -> (Y: f32[33]) {
  for o in 33 { for k in 3 { block "Y" [v: S(33) = o, u: R(3) = k] {
    init { Y[v] = 0f32 }
    Y[v] = Y[v] + select((v + 1 - u) % 2 == 0, X[(v + 1 - u) // 2]*F[u], 0f32) } } } })");
  const Task task = make_task("odd", odd, ir::target_from_string("cpu:icelake-server").value());
  for (const Sketch& sketch : space_of(task).sketches) {
    CHECK(schedule::print(sketch.trace).find("narrow_reduction") == std::string::npos);
  }
}

TEST_CASE("const operands are packed in blocks, in what is done once and costs nothing") {
  for (const char* name : {"gemm_const", "gemm_odd_const", "gemm_nt_const", "dense_relu_const",
                           "linear_relu_const", "conv2d_const", "conv2d_relu_const"}) {
    const Task task = make_test_task(name);
    const SearchSpace space = space_of(task);
    int num_packed = 0;
    for (std::size_t s = 0; s < space.sketches.size(); ++s) {
      INFO(name << " " << space.sketches[s].name);
      if (space.sketches[s].name.rfind("prepack", 0) != 0) continue;
      const Result<Candidate> made = instantiate(task, space, static_cast<int>(s), {});
      REQUIRE_OK(made);
      const ir::Prologue prologue = ir::find_prologue(made->program);
      CHECK_FALSE(prologue.results.empty());
      // Every weight that a product reads is read from a panel.
      const ir::Program rest = ir::without_prologue(made->program);
      for (ir::BufferId id : rest.params()) {
        const ir::Buffer& buffer = rest.buffer(id);
        CHECK((!buffer.is_const ||
               buffer.shape.size() != task.base.buffer(ir::BufferId(1)).shape.size()));
      }
      CHECK(made->predicted_ns == costmodel::estimate_latency(rest, task.target).total_ns);
      ++num_packed;
    }
    INFO(name);
    CHECK(num_packed >= 1);
  }
}

TEST_CASE("patches side by side are windows, too: their products have packed weights") {
  for (const int kernel : {15, 16, 17}) {
    const std::string k = std::to_string(kernel);
    const ir::Program patches =
        parse_or_die("program p(X: f32[3, 240, 240], const F: f32[64, 3, " + k + ", " + k +
                     "]) -> (Y: f32[64, 14, 14]) { for co in 64 { for h in 14 { for w in 14 { for "
                     "ci in 3 { for kh in " +
                     k + " { for kw in " + k +
                     R"( { block "Y" [vco: S(64) = co, vh: S(14) = h, vw: S(14) = w, vci: R(3) = ci,
            vkh: R()" +
                     k + ") = kh, vkw: R(" + k + R"() = kw] { init { Y[vco, vh, vw] = 0f32 }
            Y[vco, vh, vw] = Y[vco, vh, vw] + X[vci, vh*16 + vkh, vw*16 + vkw]*F[vco, vci, vkh, vkw] } } } } } } } })");
    const SearchSpace space =
        space_of(make_task("patches", patches, *ir::target_from_string("cpu:icelake-server")));
    INFO(kernel);
    CHECK(std::any_of(space.sketches.begin(), space.sketches.end(),
                      [](const Sketch& sketch) { return sketch.name == "prepack"; }));
  }
}

TEST_CASE("without const operands nothing is packed beforehand") {
  for (const char* name : {"gemm", "gemm_nt", "conv2d_relu", "gemm_left_const"}) {
    const SearchSpace space = space_of(make_test_task(name));
    for (const Sketch& sketch : space.sketches) {
      INFO(name << " " << sketch.name);
      CHECK(sketch.name.rfind("prepack", 0) != 0);
    }
  }
}

TEST_CASE("a definition's work is what a call does") {
  // G is made of constants: it counts once, not in every call.
  const ir::Program program = parse_or_die(R"(
program p(X: f32[8], const W: f32[8], const s: f32[8]) -> (Y: f32[8]) {
  buffer G: f32[8] global
  for i in 8 { block "G" [v: S(8) = i] { G[v] = W[v] * s[v] } }
  for i2 in 8 { block "Y" [w: S(8) = i2] { Y[w] = X[w] + G[w] } } })");
  const Task cpu = make_task("p", program, ir::target_from_string("cpu").value());
  CHECK(cpu.flops == 8);
  CHECK(cpu.bytes == 3 * 32);
  const Task gpu = make_task("p", program, ir::target_from_string("cuda:sm_80").value());
  CHECK(gpu.flops == 16);
  CHECK(gpu.bytes == 4 * 32);
}

TEST_CASE("an empty program has no space") {
  Task task = make_test_task("gemm");
  task.base = ir::Program();
  CHECK_DIAG(make_space(task), NoSketch);
}

TEST_CASE("decisions of another sketch are refused") {
  const Task task = make_test_task("gemm");
  const SearchSpace space = space_of(task);
  const std::vector<schedule::Decision> wrong = {{1000}, {1000}, {1000}, {1000}};
  CHECK_FALSE(instantiate(task, space, 0, wrong).ok());
}

TEST_CASE("code that would be too large is refused before it is built") {
  const Task task = make_test_task("gemm");
  SearchSpace space;
  Sketch sketch;
  sketch.name = "too much";
  sketch.trace = schedule::parse_trace("unroll(@L0)\nunroll(@L1)\nunroll(@L2)\n").value();
  space.sketches.push_back(sketch);
  CHECK_DIAG(instantiate(task, space, 0, {}), CandidateTooLarge);
}

}  // namespace
}  // namespace prunerc

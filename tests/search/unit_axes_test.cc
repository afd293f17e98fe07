// Operators with axes of extent 1 are scheduled as those without them, and mean the same.
#include "ir/lang/lang.h"
#include "ir/query.h"
#include "ir/verify.h"
#include "schedule/parametric/parametric.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "tests/support/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

struct Pair {
  const char *name, *with, *without;
};

constexpr Pair kPairs[] = {
    {"total", "op p(X: f32[1,40,1,70]) -> (Y: f32[1,1]) { Y[u,v] = sum[i,j] X[u,i,v,j]; }",
     "op p(X: f32[40,70]) -> (Y: f32) { Y = sum[i,j] X[i,j]; }"},
    {"total and its copy", "op p(X: f32[40,70]) -> (Y: f32[1,1]) { Y[u,v] = sum[i,j] X[i,j]; }",
     "op p(X: f32[40,70]) -> (Y: f32) { Y = sum[i,j] X[i,j]; }"},
    {"total of one row", "op p(X: f32[1,3000]) -> (Y: f32[1,1]) { Y[u,v] = sum[i,j] X[i,j]; }",
     "op p(X: f32[3000]) -> (Y: f32) { Y = sum[j] X[j]; }"},
    {"sums of rows", "op p(X: f32[24,130,1]) -> (Y: f32[24,1]) { Y[i,u] = sum[j] X[i,j,u]; }",
     "op p(X: f32[24,130]) -> (Y: f32[24]) { Y[i] = sum[j] X[i,j]; }"},
    {"sums of columns", "op p(X: f32[19,1,70]) -> (Y: f32[1,70]) { Y[u,j] = sum[i] X[i,u,j]; }",
     "op p(X: f32[19,70]) -> (Y: f32[70]) { Y[j] = sum[i] X[i,j]; }"},
    {"argmax", "op p(X: f32[24,130,1]) -> (Y: i64[24,1]) { Y[i,u] = argmax[j] X[i,j,u]; }",
     "op p(X: f32[24,130]) -> (Y: i64[24]) { Y[i] = argmax[j] X[i,j]; }"},
    {"pool", R"(op p(X: f32[1,48,8,8]) -> (Y: f32[1,48,1,1]) {
       Y[n,c,u,v] = sum[h,w] X[n,c,h,w] / 64; })",
     "op p(X: f32[48,8,8]) -> (Y: f32[48]) { Y[c] = sum[h,w] X[c,h,w] / 64; }"},
    {"row softmax", R"(op p(X: f32[1,1,900]) -> (Y: f32[1,1,900]) {
       let m[a,b] = max[j] X[a,b,j];
       let e[a,b,j] = abs(X[a,b,j] - m[a,b]);
       let s[a,b] = sum[j] e[a,b,j];
       Y[a,b,j] = e[a,b,j] + s[a,b]; })",
     R"(op p(X: f32[900]) -> (Y: f32[900]) {
       let m = max[j] X[j];
       let e[j] = abs(X[j] - m);
       let s = sum[j] e[j];
       Y[j] = e[j] + s; })"},
    {"column softmax", R"(op p(X: f32[900,1]) -> (Y: f32[900,1]) {
       let m[a] = max[j] X[j,a];
       let e[j,a] = abs(X[j,a] - m[a]);
       let s[a] = sum[j] e[j,a];
       Y[j,a] = e[j,a] + s[a]; })",
     R"(op p(X: f32[900]) -> (Y: f32[900]) {
       let m = max[j] X[j];
       let e[j] = abs(X[j] - m);
       let s = sum[j] e[j];
       Y[j] = e[j] + s; })"},
    {"norm", R"(op p(X: f32[1,256]) -> (Y: f32[1,256]) {
       let t[n] = sum[j] X[n,j];
       let m[n] = t[n] / 256;
       let v[n] = sum[j] abs(X[n,j] - m[n]);
       Y[n,j] = X[n,j] - m[n] + v[n]; })",
     R"(op p(X: f32[256]) -> (Y: f32[256]) {
       let t = sum[j] X[j];
       let m = t / 256;
       let v = sum[j] abs(X[j] - m);
       Y[j] = X[j] - m + v; })"},
    {"one row of a product",
     "op p(A: f32[1,40], B: f32[40,144]) -> (Y: f32[1,144]) { Y[i,j] = sum[k] A[i,k] * B[k,j]; }",
     "op p(A: f32[40], B: f32[40,144]) -> (Y: f32[144]) { Y[j] = sum[k] A[k] * B[k,j]; }"},
    {"one column of a product",
     "op p(A: f32[48,70], B: f32[70,1]) -> (Y: f32[48,1]) { Y[i,j] = sum[k] A[i,k] * B[k,j]; }",
     "op p(A: f32[48,70], B: f32[70]) -> (Y: f32[48]) { Y[i] = sum[k] A[i,k] * B[k]; }"},
    {"one column of a transposed product",
     "op p(A: f32[70,48], B: f32[70,1]) -> (Y: f32[48,1]) { Y[i,j] = sum[k] A[k,i] * B[k,j]; }",
     "op p(A: f32[70,48], B: f32[70]) -> (Y: f32[48]) { Y[i] = sum[k] A[k,i] * B[k]; }"},
    {"batch of one", R"(op p(A: f32[1,24,20], B: f32[1,20,144]) -> (Y: f32[1,24,144]) {
       Y[b,i,j] = sum[k] A[b,i,k] * B[b,k,j]; })",
     "op p(A: f32[24,20], B: f32[20,144]) -> (Y: f32[24,144]) { Y[i,j] = sum[k] A[i,k] * B[k,j]; "
     "}"},
    {"windows over one column", R"(op p(X: f32[4,40,1], F: f32[8,4,3]) -> (Y: f32[8,38,1]) {
       Y[c,l,w] = sum[i,k] X[i,l + k,w] * F[c,i,k]; })",
     R"(op p(X: f32[4,40], F: f32[8,4,3]) -> (Y: f32[8,38]) {
       Y[c,l] = sum[i,k] X[i,l + k] * F[c,i,k]; })"},
    {"transposition", "op p(X: f32[1,48,40,1]) -> (Y: f32[1,40,48,1]) { Y[a,j,i,b] = X[a,i,j,b]; }",
     "op p(X: f32[48,40]) -> (Y: f32[40,48]) { Y[j,i] = X[i,j]; }"},
    {"pad", "op p(X: f32[1,30,40]) -> (Y: f32[1,32,42]) { Y[n,i,j] = X[n,i - 1,j - 1] or 0; }",
     "op p(X: f32[30,40]) -> (Y: f32[32,42]) { Y[i,j] = X[i - 1,j - 1] or 0; }"},
    {"concatenation", R"(op p(A: f32[1,20,24], B: f32[1,20,16]) -> (Y: f32[1,20,40]) {
       Y[n,i,j] = if j < 24 then (A[n,i,j - 0] or 0) else (B[n,i,j - 24] or 0); })",
     R"(op p(A: f32[20,24], B: f32[20,16]) -> (Y: f32[20,40]) {
       Y[i,j] = if j < 24 then (A[i,j - 0] or 0) else (B[i,j - 24] or 0); })"},
    {"running sum of a row",
     "op p(X: f32[1,64]) -> (Y: f32[1,64]) { Y[n,j] = sum[k in 0..64 | k <= j] X[n,k]; }",
     "op p(X: f32[64]) -> (Y: f32[64]) { Y[j] = sum[k in 0..64 | k <= j] X[k]; }"},
    {"running sums down columns",
     "op p(X: f32[29,37,1]) -> (Y: f32[29,37,1]) { Y[j,i,u] = sum[k in 0..29 | k <= j] X[k,i,u]; }",
     "op p(X: f32[29,37]) -> (Y: f32[29,37]) { Y[j,i] = sum[k in 0..29 | k <= j] X[k,i]; }"},
    {"rows that fill no vectors",
     "op p(X: f32[1,28,28]) -> (Y: f32[1,28,28]) { Y[n,i,j] = max(X[n,i,j], 0); }",
     "op p(X: f32[28,28]) -> (Y: f32[28,28]) { Y[i,j] = max(X[i,j], 0); }"},
    {"columns that fill no vectors, one axis before them",
     "op p(X: f32[300,1,3]) -> (Y: f32[300,1,3]) { Y[i,u,j] = max(X[i,u,j], 0); }",
     "op p(X: f32[300,3]) -> (Y: f32[300,3]) { Y[i,j] = max(X[i,j], 0); }"},
    {"one row of elements that fills no vectors",
     "op p(X: f32[1,1,1003]) -> (Y: f32[1,1,1003]) { Y[u,v,i] = max(X[u,v,i], 0); }",
     "op p(X: f32[1003]) -> (Y: f32[1003]) { Y[i] = max(X[i], 0); }"},
    {"one row of elements", "op p(X: f32[1,4096]) -> (Y: f32[1,4096]) { Y[n,i] = max(X[n,i], 0); }",
     "op p(X: f32[4096]) -> (Y: f32[4096]) { Y[i] = max(X[i], 0); }"},
    {"one column of elements",
     "op p(X: f32[4096,1]) -> (Y: f32[4096,1]) { Y[i,n] = max(X[i,n], 0); }",
     "op p(X: f32[4096]) -> (Y: f32[4096]) { Y[i] = max(X[i], 0); }"},
};

Task task_of(const char* text) {
  lang::CompileInput input;
  input.file_name = "test.prn";
  input.text = text;
  const lang::LangResult compiled = lang::compile(input);
  INFO(text << "\n" << compiled.rendered);
  REQUIRE(compiled.program.has_value());
  ir::Target target = *ir::target_from_string("cpu:icelake-server");
  target.num_threads = 2;
  return make_task("p", *compiled.program, target);
}

// Loops that run more than once, in the program's order.
std::string structure(const ir::Program& program) {
  std::string out;
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
        const auto* loop = s.as<ir::Loop>();
        if (loop == nullptr || ir::constant_value(loop->extent) == 1) return true;
        out += fmt::format("{} {}\n", ir::to_string(loop->loop_kind),
                           ir::constant_value(loop->extent).value_or(0));
        return true;
      },
      [](ir::Expr) {});
  return out;
}

Candidate default_candidate(const Task& task, const SearchSpace& space, std::size_t sketch) {
  const int number = static_cast<int>(sketch);
  const Result<Candidate> made =
      instantiate(task, space, number, default_genome(space, number).decisions);
  REQUIRE_OK(made);
  return *made;
}

TEST_CASE("axes of extent 1 change neither the loops of a sketch nor its results") {
  for (const Pair& pair : kPairs) {
    INFO(pair.name);
    const Task with = task_of(pair.with), without = task_of(pair.without);
    const SearchSpace space = make_space(with).value(), plain = make_space(without).value();
    for (std::size_t s = 0; s < plain.sketches.size(); ++s) {
      const std::string& name = plain.sketches[s].name;
      INFO(name);
      const auto same = std::find_if(space.sketches.begin(), space.sketches.end(),
                                     [&](const Sketch& sketch) { return sketch.name == name; });
      REQUIRE(same != space.sketches.end());
      const auto at = static_cast<std::size_t>(same - space.sketches.begin());
      CHECK(structure(default_candidate(with, space, at).program) ==
            structure(default_candidate(without, plain, s).program));
      // Without one a sketch is replayed for every candidate, which is slow.
      CHECK(schedule::parametrize(with.base, same->trace).ok() ==
            schedule::parametrize(without.base, plain.sketches[s].trace).ok());
    }
    for (std::size_t s = 0; s < space.sketches.size(); ++s) {
      INFO(space.sketches[s].name);
      const Candidate made = default_candidate(with, space, s);
      REQUIRE_OK(ir::verify(made.program));
      check_same_result(with.base, made.program, 1);
      Rng rng(first_seed(), s);
      const Result<Candidate> drawn =
          instantiate(with, space, static_cast<int>(s),
                      random_genome(space, static_cast<int>(s), rng).decisions);
      if (drawn.ok()) check_same_result(with.base, drawn->program, 2);
    }
  }
}

TEST_CASE(
    "without a search an operator with axes of extent 1 gets the loops of that without, or faster "
    "ones") {
  for (const Pair& pair : kPairs) {
    INFO(pair.name);
    const Task with = task_of(pair.with), without = task_of(pair.without);
    const Candidate chosen = heuristic_candidate(with, make_space(with).value()).value();
    const Candidate plain = heuristic_candidate(without, make_space(without).value()).value();
    INFO(structure(chosen.program) << "instead of\n" << structure(plain.program));
    CHECK((structure(chosen.program) == structure(plain.program) ||
           chosen.predicted_ns < plain.predicted_ns));
  }
}

// Of the sketch of that name; empty if there is none.
std::string trace_of(const char* text, const char* name) {
  const SearchSpace space = make_space(task_of(text)).value();
  for (const Sketch& sketch : space.sketches) {
    if (sketch.name == name) return schedule::print(sketch.trace);
  }
  return "";
}

TEST_CASE("what has one row is also one task, and blocks with rows keep their axes of extent 1") {
  const char* const total = kPairs[0].with;
  CHECK(trace_of(total, "base").find("(a0, a1, a2, a3) -> (a2, a3)") != std::string::npos);
  CHECK(trace_of(total, "base").find("parallel(") != std::string::npos);
  CHECK(trace_of(total, "one row").find("-> (a2, a3)") == std::string::npos);
  CHECK_FALSE(trace_of(total, "one row").empty());
  CHECK(trace_of(kPairs[0].without, "one row").empty());
  // Long ones have work for all threads.
  for (const int size : {60'000, 70'000}) {
    const std::string text =
        fmt::format("op p(X: f32[1,{}]) -> (Y: f32[1]) {{ Y[n] = sum[j] X[n,j]; }}", size);
    CHECK(trace_of(text.c_str(), "one row").empty() == (size > 65'536));
    CHECK_FALSE(trace_of(text.c_str(), "base").empty());
  }
  const char* const batch =
      "op p(A: f32[1,24,20], B: f32[20,144]) -> (Y: f32[1,24,144]) {"
      " Y[b,i,j] = sum[k] A[b,i,k] * B[k,j]; }";
  const char* const rows = "op p(X: f32[1,24,64]) -> (Y: f32[1,24]) { Y[n,i] = sum[j] X[n,i,j]; }";
  for (const char* text : {batch, rows}) {
    CHECK(trace_of(text, "base").find("transform_block_layout(") == std::string::npos);
    CHECK(trace_of(text, "one row").empty());
  }
}

// Sums, maxima and stages over the rows of a product.
std::string rows_of_product(int rows, const char* weights, const char* weight) {
  return fmt::format(R"(op p(A: f32[{0},40], {1}) -> (Y: f32[{0},144]) {{
    let z[n,j] = sum[k] A[n,k] * {2};
    let m[n] = max[j] z[n,j];
    let e[n,j] = abs(z[n,j] - m[n]);
    let s[n] = sum[j] e[n,j];
    Y[n,j] = e[n,j] + s[n]; }})",
                     rows, weights, weight);
}

TEST_CASE("what has one row is also one task beside operands that are copied") {
  struct Case {
    const char *weights, *weight;
    std::vector<std::string> variants;
  };
  const std::vector<Case> cases = {
      {"const W: f32[40,144]", "W[k,j]", {"prepack", "prepack2", "prepack4"}},
      {"W: f32[144,40]", "W[j,k]", {"transpose"}},
  };
  for (const Case& c : cases) {
    const Task task = task_of(rows_of_product(1, c.weights, c.weight).c_str());
    const SearchSpace space = make_space(task).value();
    for (const std::string& variant : c.variants) {
      for (const std::string& name : {variant, variant + "+one row"}) {
        INFO(name);
        const auto found = std::find_if(space.sketches.begin(), space.sketches.end(),
                                        [&](const Sketch& s) { return s.name == name; });
        REQUIRE(found != space.sketches.end());
        const std::string trace = schedule::print(found->trace);
        INFO(trace);
        // Stages without rows are cut along their only axis.
        CHECK((num_times(trace, "(a0, a1) -> (a1)") == 0) == (name != variant));
        const auto at = static_cast<std::size_t>(found - space.sketches.begin());
        check_same_result(task.base, default_candidate(task, space, at).program, 1);
      }
    }
    const Task two = task_of(rows_of_product(2, c.weights, c.weight).c_str());
    const SearchSpace of_two = make_space(two).value();
    for (const Sketch& sketch : of_two.sketches) {
      CHECK(sketch.name.find("one row") == std::string::npos);
    }
  }
}

TEST_CASE("a dimension of extent 1 that a longer axis moves along under a condition stays") {
  const char* const layer = R"(op p(X: f32[1,20,1,1], F: f32[20,16,4,4]) -> (Y: f32[1,16,4,4]) {
    Y[n,f,h,w] = sum[c,r in 0..4,s in 0..4] (X[n,c,h - r,w - s] or 0) * F[c,f,r,s]; })";
  const std::string trace = trace_of(layer, "base");
  INFO(trace);
  CHECK(num_times(trace, "cache_write(") == 1);
  CHECK(num_times(trace, "a2*4 + a3") == 0);
  const Task task = task_of(layer);
  const SearchSpace space = make_space(task).value();
  for (std::size_t s = 0; s < space.sketches.size(); ++s) {
    INFO(space.sketches[s].name);
    check_same_result(task.base, default_candidate(task, space, s).program, 1);
  }
  const char* const column = "op p(X: f32[64,1]) -> (Y: f32[64,40]) { Y[c,j] = X[c,j - 3] or 0; }";
  CHECK(trace_of(column, "transposition").empty());
}

}  // namespace
}  // namespace prunerc

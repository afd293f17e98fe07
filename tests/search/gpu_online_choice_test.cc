// Attention in tiles on a GPU, taken without measuring: one pass over tiles where lanes have room for them.
#include "ir/lang/lang.h"
#include "ir/support/parallel.h"
#include "search/space/space.h"
#include "search/tune/instant.h"
#include "tests/support/check.h"

#include <fmt/format.h>

#include <string>

namespace prunerc::testing {
namespace {

std::string chosen_sketch(int columns, int keys) {
  lang::CompileInput input;
  input.text = fmt::format(R"(
op attention<H=16, T=4096, S=4096, E={}, B={}>(Q: f16[H,T,E], K: f16[H,S,E], V: f16[H,S,E]) -> (O: f16[H,T,E]) {{
  let a[h,t,c in 0..S/B,s in 0..B] = (sum:f32[e] Q[h,t,e] * K[h,c*B + s,e]) * (1 / sqrt(E));
  let m[h,t,c]   = max[s] a[h,t,c,s];
  let p[h,t,c,s] = f16(exp(a[h,t,c,s] - m[h,t,c]));
  let l[h,t,c]   = sum:f32[s] p[h,t,c,s];
  let o[h,t,c,e] = sum:f32[s] p[h,t,c,s] * V[h,c*B + s,e];
  let M[h,t]     = max[c] m[h,t,c];
  let L[h,t]     = sum[c] exp(m[h,t,c] - M[h,t]) * l[h,t,c];
  let w[h,t,c]   = exp(m[h,t,c] - M[h,t]) / L[h,t];
  O[h,t,e]       = f16(sum[c] w[h,t,c] * o[h,t,c,e]);
}})",
                           columns, keys);
  const lang::LangResult compiled = lang::compile(input);
  INFO(compiled.rendered);
  REQUIRE(compiled.program.has_value());
  const search::Task task =
      search::make_task("op", *compiled.program, *ir::target_from_string("cuda:h100"));
  const Result<search::SearchSpace> space = search::make_space(task);
  REQUIRE_OK(space);
  ThreadPool pool(2);
  const Result<search::Candidate> chosen = search::instant_candidate(task, *space, pool);
  REQUIRE_OK(chosen);
  return space->sketches[static_cast<std::size_t>(chosen->sketch)].name;
}

TEST_CASE("attention in tiles of 64 keys is one pass, in tiles of 512 a chain") {
  CHECK(chosen_sketch(64, 64) == "gpu+tensor+chain+online");
  CHECK(chosen_sketch(128, 64) == "gpu+tensor+chain+online");
  const std::string wide = chosen_sketch(64, 512);
  CHECK(wide.find("+chain") != std::string::npos);
  CHECK(wide.find("+online") == std::string::npos);
}

}  // namespace
}  // namespace prunerc::testing

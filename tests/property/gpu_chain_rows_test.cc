// Rows between the products of one kernel: which stay in registers, and whom warps wait for there.
#include "codegen/lower/analysis/kernel.h"
#include "codegen/pipeline.h"
#include "ir/lang/lang.h"
#include "ir/printer.h"
#include "ir/query.h"
#include "ir/visit.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "tests/codegen/gpu_run.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::testing {
namespace {

ir::Target chain_target() { return gpu_target("cuda-host:sm_90a"); }

std::string attention(std::string_view keys) {
  const std::string text = R"(
op attention<H=1, T=128, KEYS, E=64>(Q: f16[H,T,E], K: f16[H,S,E], V: f16[H,S,E]) -> (O: f32[H,T,E]) {
  let a[h,t,s] = sum:f32[e] Q[h,t,e] * K[h,s,e];
  let m[h,t]   = max[s] a[h,t,s];
  let p[h,t,s] = f16(exp(a[h,t,s] - m[h,t]));
  let l[h,t]   = sum:f32[s] p[h,t,s];
  let o[h,t,e] = sum:f32[s] p[h,t,s] * V[h,s,e];
  O[h,t,e]     = o[h,t,e] / l[h,t];
})";
  return replaced(text, "KEYS", keys);
}

// The default candidate of the sketch.
ir::Program drawn(const std::string& text, std::string_view name) {
  lang::CompileInput input;
  input.file_name = "op.prn";
  input.text = text;
  const lang::LangResult compiled = lang::compile(input);
  INFO(compiled.rendered);
  REQUIRE(compiled.program.has_value());
  const search::Task task = search::make_task("op", *compiled.program, chain_target());
  const Result<search::SearchSpace> space = search::make_space(task);
  REQUIRE_OK(space);
  for (std::size_t s = 0; s < space->sketches.size(); ++s) {
    if (space->sketches[s].name != name) continue;
    const search::Genome genome = search::default_genome(*space, static_cast<int>(s));
    const Result<search::Candidate> made =
        search::instantiate(task, *space, static_cast<int>(s), genome.decisions);
    REQUIRE_OK(made);
    return made->program;
  }
  FAIL("no sketch " << name);
  return *compiled.program;
}

std::vector<const ir::Loop*> loops_in(ir::Stmt s) {
  std::vector<const ir::Loop*> out;
  ir::walk(
      s,
      [&](ir::Stmt x) {
        if (const ir::Loop* loop = x.as<ir::Loop>()) out.push_back(loop);
        return true;
      },
      [](ir::Expr) {});
  return out;
}

std::ptrdiff_t num_syncs(ir::Stmt s, int64_t value) {
  const std::vector<const ir::Loop*> loops = loops_in(s);
  return std::count_if(loops.begin(), loops.end(), [&](const ir::Loop* loop) {
    return codegen::attr_of(*loop, codegen::kSyncAttr) == value;
  });
}

bool has_weights_in_registers(const ir::Program& program) {
  bool found = false;
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
        const ir::Block* block = s.as<ir::Block>();
        if (block == nullptr || block->name != "p") return true;
        found = program.buffer(block->writes[0].buffer).scope == ir::Scope::kLocal;
        return true;
      },
      [](ir::Expr) {});
  return found;
}

TEST_CASE("between products warps keep short rows in registers and wait for themselves", "[gpu]") {
  for (const char* name : {"gpu+tensor+chain", "gpu+wgmma+chain", "gpu+wgmma+chain+tma"}) {
    CAPTURE(name);
    const ir::Program scheduled = drawn(attention("S=256"), name);
    CHECK(has_weights_in_registers(scheduled));
    const Result<ir::Program> lowered = codegen::lower_gpu(scheduled, chain_target());
    REQUIRE_OK(lowered);
    INFO(ir::print(*lowered));
    CHECK(num_syncs(lowered->root(), codegen::kWarpSync) > 0);
    for (const ir::Loop* loop : loops_in(lowered->root())) {
      const bool repeats =
          loop->loop_kind == ir::LoopKind::kSerial && ir::constant_value(loop->extent) != 1;
      if (!repeats || num_syncs(loop->body, codegen::kWarpSync) == 0) continue;
      CHECK(num_syncs(loop->body, codegen::kBlockSync) == 0);
    }
  }
}

TEST_CASE("rows of no whole vectors for each lane, and long ones, go through shared memory") {
  for (const char* keys : {"S=144", "S=1536"}) {
    CHECK_FALSE(has_weights_in_registers(drawn(attention(keys), "gpu+tensor+chain")));
  }
}

}  // namespace
}  // namespace prunerc::testing

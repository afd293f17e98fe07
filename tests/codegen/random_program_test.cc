// Compiled programs compute what the interpreter computes.
#include "ir/map.h"
#include "ir/printer.h"
#include "ir/visit.h"
#include "schedule/schedule.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

GenPolicy exact_policy() {
  GenPolicy policy;
  policy.transcendental = false;  // those are compared with a tolerance elsewhere
  return policy;
}

// Every loop gets a random kind, legal or not: where lanes cannot go in lockstep the emitter must
// notice.
Program with_random_kinds(const Program& program, Rng& rng) {
  IrBuilder b(program);
  std::function<Stmt(Stmt)> go = [&](Stmt s) -> Stmt {
    Stmt r = map_children(b, s, go, [](Expr e) { return e; });
    const Loop* loop = r.defined() ? r.as<Loop>() : nullptr;
    if (loop == nullptr || loop->loop_kind != LoopKind::kSerial) return r;
    Loop changed = *loop;
    const uint64_t kind = rng.below(4);
    changed.loop_kind = kind < 2    ? LoopKind::kVectorized
                        : kind == 2 ? LoopKind::kUnrolled
                                    : LoopKind::kSerial;
    return b.loop(changed);
  };
  Stmt root = program.root().defined() ? go(program.root()) : program.root();
  return b.finish(root);
}

template <typename T>
const T& pick(const std::vector<T>& options, Rng& rng) {
  return options[static_cast<std::size_t>(rng.below(options.size()))];
}

// One attempt at a random primitive; illegal ones change nothing.
void random_step(schedule::Schedule& s, Rng& rng) {
  const std::vector<BlockId> blocks = s.blocks();
  if (blocks.empty()) return;
  const BlockId block = pick(blocks, rng);
  const std::vector<LoopId> loops = s.loops_of(block);
  if (loops.empty()) return;
  const LoopId loop = pick(loops, rng);
  const auto factor = static_cast<int64_t>(rng.between(2, 9));
  switch (rng.below(14)) {
    case 0:
    case 1:
    case 2:
    case 3: (void)s.split(loop, {schedule::Int(-1), schedule::Int(factor)}); break;
    case 4: (void)s.fuse({loops.back(), loop}); break;
    case 5: (void)s.reorder({pick(loops, rng), loop}); break;
    case 6: (void)s.vectorize(rng.chance(0.7) ? loops.back() : loop); break;
    case 7: (void)s.unroll(loop); break;
    case 8: (void)s.parallel(rng.chance(0.7) ? loops.front() : loop); break;
    case 9: (void)s.compute_at(pick(blocks, rng), loop); break;
    case 10: (void)s.reverse_compute_at(pick(blocks, rng), loop); break;
    case 11: (void)s.compute_inline(block); break;
    case 12: (void)s.cache_write(block, 0, Scope::kLocal); break;
    default: (void)s.rfactor(loop, 0); break;
  }
}

}  // namespace

TEST_CASE("a random program with const inputs is prepared once and runs without them") {
  for (int i = 0; i < num_cases(30); ++i) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(i);
    Rng rng(seed);
    const Program base = with_const_inputs(random_program(rng, exact_policy()), rng);
    schedule::Schedule s(base);
    for (BlockId block : s.blocks()) (void)s.cache_read(block, 0, Scope::kGlobal);
    for (int step = 0; step < 6; ++step) random_step(s, rng);
    INFO("seed " << seed);
    REQUIRE(compare_with_interpreter(base, s.program(), seed) == "");
  }
}

TEST_CASE("a random program compiles to what the interpreter computes") {
  for (int i = 0; i < num_cases(60); ++i) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(i);
    Rng rng(seed);
    const Program program = random_program(rng, exact_policy());
    INFO("seed " << seed);
    REQUIRE(compare_with_interpreter(program, program, seed) == "");
  }
}

TEST_CASE("loops of any kind, whether that is legal or not, keep a random program's meaning") {
  for (int i = 0; i < num_cases(100); ++i) {
    const uint64_t seed = first_seed() + 1000 + static_cast<uint64_t>(i);
    Rng rng(seed);
    const Program program = random_program(rng, exact_policy());
    const Program changed = with_random_kinds(program, rng);
    INFO("seed " << seed);
    REQUIRE(compare_with_interpreter(program, changed, seed) == "");
  }
}

TEST_CASE("a random legal schedule compiles to what the interpreter computes") {
  for (int i = 0; i < num_cases(150); ++i) {
    const uint64_t seed = first_seed() + 2000 + static_cast<uint64_t>(i);
    Rng rng(seed);
    schedule::Schedule s(random_program(rng, exact_policy()));
    const Program base = s.program();
    for (int step = 0; step < 12; ++step) random_step(s, rng);
    INFO("seed " << seed << "\n" << print(base));
    REQUIRE(compare_with_interpreter(base, s.program(), seed) == "");
  }
}

TEST_CASE("older instruction sets compute the same") {
  GenPolicy policy = exact_policy();
  policy.only_f32 = true;  // half precision is not for all of them
  for (int i = 0; i < num_cases(40); ++i) {
    const uint64_t seed = first_seed() + 4000 + static_cast<uint64_t>(i);
    Rng rng(seed);
    schedule::Schedule s(random_program(rng, policy));
    const Program base = s.program();
    for (int step = 0; step < 8; ++step) random_step(s, rng);
    RunOptions options;
    options.target = *target_from_string(i % 2 == 0 ? "cpu:x86-64-v2" : "cpu:x86-64-v3");
    INFO("seed " << seed);
    REQUIRE(compare_with_interpreter(base, s.program(), seed, options) == "");
  }
}

TEST_CASE("lowering passes that may be left out may be left out") {
  std::vector<std::string_view> optional;
  for (const codegen::Pass& pass : codegen::cpu_passes()) {
    if (!pass.required) optional.push_back(pass.name);
  }
  REQUIRE(optional.size() >= 4);
  for (int i = 0; i < num_cases(40); ++i) {
    const uint64_t seed = first_seed() + 3000 + static_cast<uint64_t>(i);
    Rng rng(seed);
    schedule::Schedule s(random_program(rng, exact_policy()));
    const Program base = s.program();
    for (int step = 0; step < 8; ++step) random_step(s, rng);
    std::vector<std::string_view> disabled;
    for (std::string_view name : optional) {
      if (rng.chance(0.5)) disabled.push_back(name);
    }
    RunOptions options;
    options.compile.pipeline.disabled = disabled;
    INFO("seed " << seed);
    REQUIRE(compare_with_interpreter(base, s.program(), seed, options) == "");
  }
}

}  // namespace prunerc

// A hoisted program is the program: what is prepared once and what every call runs give together what
// the whole gives.
#include "codegen/hoist.h"

#include "ir/builder.h"
#include "ir/interp/interpreter.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "schedule/schedule.h"
#include "tests/property/random_step.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <map>
#include <string>
#include <vector>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

// The interpreter takes and gives tensors in this order.
std::vector<BufferId> in_order(const Program& program, BufferRole role) {
  std::vector<BufferId> out;
  for (BufferId id : program.params()) {
    if (program.buffer(id).role == role) out.push_back(id);
  }
  return out;
}

// The program with its outputs filled first: elements of padding are never written, which the
// interpreter refuses to hand out.
Program with_filled_outputs(const Program& program) {
  IrBuilder b(program);
  std::vector<Stmt> stmts;
  for (BufferId id : in_order(program, BufferRole::kOutput)) {
    const Buffer buffer = program.buffer(id);
    std::vector<Expr> indices;
    for (std::size_t d = 0; d < buffer.shape.size(); ++d) indices.emplace_back(b.fresh_var("f"));
    Stmt nest = b.store(id, indices, b.constant(-1, buffer.dtype));
    for (std::size_t d = indices.size(); d-- > 0;) {
      Loop loop{};
      loop.id = b.fresh_loop_id();
      loop.var = indices[d].as<Var>();
      loop.extent = buffer.shape[d];
      loop.body = nest;
      nest = b.loop(loop);
    }
    stmts.push_back(nest);
  }
  if (program.root().defined()) stmts.push_back(program.root());
  return b.finish(b.seq(stmts));
}

codegen::ParamPlace place_of(const Program& program, const std::vector<codegen::ParamPlace>& places,
                             BufferId id) {
  for (std::size_t i = 0; i < program.params().size(); ++i) {
    if (program.params()[i] == id) return places[i];
  }
  FAIL("a buffer with a role is a parameter");
  return {};
}

// Copies of constants at the root, as packing makes them, and steps of any other kind.
schedule::Schedule random_schedule(const Program& base, Rng& rng) {
  schedule::Schedule s(base);
  for (BlockId block : s.blocks()) {
    if (rng.chance(0.5)) static_cast<void>(s.cache_read(block, 0, Scope::kGlobal).ok());
    if (rng.chance(0.3)) static_cast<void>(s.reindex_cache_read(block, 0, Scope::kGlobal, "").ok());
  }
  const int num_steps = static_cast<int>(rng.between(0, 10));
  for (int i = 0; i < num_steps; ++i) {
    const RandomStep step = random_step(s, rng);
    static_cast<void>(s.apply(step.instruction, step.decision).ok());
  }
  return s;
}

struct Counts {
  int prologues = 0, results = 0, copies = 0;
};

std::string wrong(const Program& program, uint64_t seed, Counts* counts) {
  Rng rng(seed);
  const std::vector<Tensor> inputs = random_inputs(program, rng);
  const Result<std::vector<Tensor>> expected = interpret(program, inputs);
  if (!expected.ok()) return "";  // an illegal random step shows elsewhere
  const Result<codegen::Hoisted> hoisted = codegen::hoist(program);
  if (!hoisted.ok()) return hoisted.error().message();
  const auto num_params = static_cast<int32_t>(program.params().size());
  // By the argument's number: the tensors of the program's own inputs.
  std::vector<const Tensor*> arguments(program.params().size());
  const std::vector<BufferId> own = in_order(program, BufferRole::kInput);
  for (std::size_t i = 0; i < own.size(); ++i) {
    for (std::size_t p = 0; p < program.params().size(); ++p) {
      if (program.params()[p] == own[i]) arguments[p] = &inputs[i];
    }
  }
  std::map<int64_t, Tensor> memory;  // by offset
  const auto run = [&](const Program& part, const std::vector<codegen::ParamPlace>& places,
                       bool constants) -> Result<std::vector<Tensor>> {
    PRUNERC_TRY_VOID(verify(part));
    std::vector<Tensor> given;
    for (BufferId id : in_order(part, BufferRole::kInput)) {
      const codegen::ParamPlace place = place_of(part, places, id);
      if (place.argument == num_params) {
        given.push_back(memory.at(place.offset_bytes));
        continue;
      }
      const auto at = static_cast<std::size_t>(place.argument);
      CHECK(program.buffer(program.params()[at]).is_const == constants);
      given.push_back(*arguments[at]);
    }
    return interpret(constants ? with_filled_outputs(part) : part, given);
  };
  const Result<std::vector<Tensor>> prepared =
      run(hoisted->prepare, hoisted->prepare_places, /*constants=*/true);
  if (!prepared.ok()) return "prepare: " + prepared.error().message();
  const std::vector<BufferId> outputs = in_order(hoisted->prepare, BufferRole::kOutput);
  int64_t end = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const codegen::ParamPlace place =
        place_of(hoisted->prepare, hoisted->prepare_places, outputs[i]);
    if (place.argument != num_params) return "a result of prepare is an argument";
    if (place.offset_bytes % codegen::kStorageAlignment != 0) return "an unaligned result";
    memory.emplace(place.offset_bytes, (*prepared)[i]);
  }
  for (const auto& [offset, tensor] : memory) {
    if (offset < end) return "results overlap";
    end = offset + static_cast<int64_t>(tensor.data.size());
  }
  if (end > hoisted->prepared_bytes) return "results do not fit";
  const Result<std::vector<Tensor>> found = run(hoisted->run, hoisted->run_places, false);
  if (!found.ok()) return "run: " + found.error().message();
  ++counts->prologues;
  for (BufferId id : outputs) {
    const bool copy = static_cast<std::size_t>(id.value) >= program.buffers().size();
    ++(copy ? counts->copies : counts->results);
  }
  return first_difference(*expected, *found);
}

}  // namespace

TEST_CASE("preparing and running a random scheduled program is running it") {
  Counts counts;
  for (int i = 0; i < num_cases(300); ++i) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(i);
    Rng rng(seed);
    const Program base = with_const_inputs(random_program(rng, random_policy(rng)), rng);
    if (!codegen::has_const_inputs(base)) continue;
    const Program program = random_schedule(base, rng).program();
    INFO("seed " << seed << "\n" << print(program));
    REQUIRE(wrong(program, seed, &counts) == "");
  }
  // The property is about something.
  CHECK(counts.prologues > num_cases(300) / 2);
  CHECK(counts.results > num_cases(300) / 10);
  CHECK(counts.copies > num_cases(300) / 10);
}

TEST_CASE("a program without constants has no part of its own for them") {
  const Program program =
      parse_or_die("program p(X: f32[8]) -> (Y: f32[8]) { for i in 8 { Y[i] = X[i] } }");
  CHECK_FALSE(codegen::has_const_inputs(program));
}

}  // namespace prunerc

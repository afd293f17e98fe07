#include "tests/schedule/apply.h"

#include "ir/analysis/region.h"
#include "ir/equal.h"
#include "ir/printer.h"
#include "ir/visit.h"
#include "tests/schedule/tally.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <optional>
#include <string>

namespace prunerc::testing {

using schedule::Schedule;
using schedule::Trace;

Result<void> apply_steps(Schedule& s, std::string_view steps) {
  PRUNERC_TRY(const Trace trace, schedule::parse_trace(steps));
  std::size_t next = 0;
  for (const schedule::Instruction& step : trace.instructions) {
    const schedule::Decision decision =
        step.is_sample() ? trace.decisions[next++] : schedule::Decision{};
    PRUNERC_TRY_VOID(s.apply(step, decision));
  }
  return {};
}

namespace {

void check_replay(const ir::Program& base, const Schedule& s) {
  const std::string text = print(s.trace());
  INFO(text);
  const Result<Trace> parsed = schedule::parse_trace(text);
  REQUIRE_OK(parsed);
  CHECK(*parsed == s.trace());
  const Result<Schedule> again = replay(base, *parsed);
  REQUIRE_OK(again);
  CHECK(structural_equal(again->program(), s.program()));
  CHECK(again->trace() == s.trace());
}

}  // namespace

namespace {

bool reads_own_element(const ir::Block& block, ir::BufferId buffer) {
  for (const ir::Access& write : block.writes) {
    if (write.buffer == buffer && block.init.defined()) return true;
  }
  return false;
}

// Declared regions contain what the body touches. A reduction need not declare its accumulator.
void check_regions(const ir::Program& program) {
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
        const ir::Block* block = s.as<ir::Block>();
        if (block == nullptr) return true;
        ir::IrBuilder b(program);
        ir::VarRanges ranges;
        for (const ir::IterVar& iter : block->iters) ranges.bind(iter.var, iter.extent);
        const ir::Regions found =
            ir::infer_block_accesses(b, block->iters, block->init, block->body);
        // Several declared regions of one buffer count together, by their hull.
        auto declared = [&](const ir::BufferRegion& touched, std::span<const ir::Access> list) {
          std::optional<ir::BufferRegion> all;
          for (const ir::Access& access : list) {
            if (access.buffer != touched.buffer) continue;
            const ir::BufferRegion one{access.buffer, {access.region.begin(), access.region.end()}};
            all = all ? hull(b, *all, one, ranges) : one;
          }
          return all && covers(b, *all, touched, ranges) != ir::Proof::kNo;
        };
        INFO("block @B" << block->id.value);
        for (const ir::BufferRegion& touched : found.writes)
          CHECK(declared(touched, block->writes));
        for (const ir::BufferRegion& touched : found.reads) {
          CHECK((declared(touched, block->reads) || reads_own_element(*block, touched.buffer)));
        }
        return true;
      },
      [](ir::Expr) {});
}

}  // namespace

Schedule check_steps(std::string_view program, std::string_view steps) {
  INFO(std::string(steps));
  const ir::Program base = parse_or_die(program);
  Schedule s(base, schedule::Verify::kEachStep);
  REQUIRE_OK(apply_steps(s, steps));
  INFO(print(s.program()));
  check_same_result(base, s.program(), 1);
  check_regions(s.program());
  check_replay(base, s);
  tally().accept(s.trace().instructions.back().primitive);
  return s;
}

void check_rejected(std::string_view program, std::string_view steps, std::string_view diag) {
  INFO(std::string(steps));
  const std::size_t end = steps.find_last_not_of(" \n");
  const std::size_t cut = steps.rfind('\n', end);
  const std::size_t last = cut == std::string_view::npos ? 0 : cut + 1;
  Schedule s(parse_or_die(program), schedule::Verify::kEachStep);
  REQUIRE_OK(apply_steps(s, steps.substr(0, last)));
  const Schedule before = s.fork();
  const Result<void> result = apply_steps(s, steps.substr(last));
  INFO(print(s.program()));
  REQUIRE_FALSE(result.ok());
  INFO(result.error().message());
  CHECK(diag_name(result.error().id()) == diag);
  CHECK(s.program().is(before.program()));
  CHECK(s.trace() == before.trace());
  const Result<Trace> refused = schedule::parse_trace(steps.substr(last));
  REQUIRE_OK(refused);
  tally().refuse(refused->instructions.back().primitive);
}

void check(const Case& row) {
  if (row.diag.empty()) {
    check_steps(row.program, row.steps);
  } else {
    check_rejected(row.program, row.steps, row.diag);
  }
}

}  // namespace prunerc::testing

// The hand-written GPU schedules of tests/golden/gpu are legal, and compute what they shall.
#include "ir/analysis/ownership.h"
#include "ir/fpv/fpv.h"
#include "ir/printer.h"
#include "ir/thread_axis.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "schedule/schedule.h"
#include "schedule/twin.h"
#include "tests/support/check.h"
#include "tests/support/gpu_programs.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>
#include <string>

namespace prunerc {
namespace {

using namespace ir;        // NOLINT: a test
using namespace schedule;  // NOLINT: a test
using namespace testing;   // NOLINT: a test

std::set<LoopKind> kinds_of(const Program& program) {
  std::set<LoopKind> out;
  walk(
      program.root(),
      [&](Stmt s) {
        const Loop* loop = s.as<Loop>();
        if (loop != nullptr) out.insert(loop->loop_kind);
        return true;
      },
      [](Expr) {});
  return out;
}

TEST_CASE("GPU schedules keep what their operators compute") {
  const std::vector<GpuProgram> all = gpu_programs();
  CHECK(all.size() >= 20);
  for (const GpuProgram& one : all) {
    INFO(one.name << "\n" << print(one.scheduled));
    REQUIRE_OK(verify(one.scheduled));
    REQUIRE_OK(check_thread_axes(one.scheduled.root()));
    FpvOptions options;
    options.log2_error = -40;
    const FpvVerdict verdict = check_equivalent(one.base, one.scheduled, options);
    INFO(to_string(verdict));
    CHECK(verdict.ok());
  }
}

TEST_CASE("GPU schedules have small twins that the verifier takes") {
  for (const GpuProgram& one : gpu_programs()) {
    INFO(one.name);
    const Result<Twin> twin = make_twin(one.base, one.trace);
    REQUIRE_OK(twin);
    const FpvVerdict verdict = check_equivalent(twin->base, twin->scheduled);
    INFO(to_string(verdict) << "\n" << print(twin->scheduled));
    CHECK(verdict.ok());
  }
}

TEST_CASE("registers of GPU schedules are read by the threads that hold them") {
  for (const GpuProgram& one : gpu_programs()) {
    INFO(one.name << "\n" << print(one.scheduled));
    // Proved, not tried out.
    const OwnershipCheck check = check_ownership(one.scheduled, {.max_points = 0});
    INFO(check.reason);
    CHECK(check.proof == Proof::kYes);
  }
}

TEST_CASE("threads that take each other's registers are found, statically and in finite fields") {
  const std::vector<GpuProgram> all = gpu_programs();
  const auto at = std::find_if(all.begin(), all.end(),
                               [](const GpuProgram& one) { return one.name == "matmul"; });
  REQUIRE(at != all.end());
  const GpuProgram& matmul = *at;
  const std::pair<const char*, const char*> changes[] = {
      // The copy out numbers its threads by columns, not by rows.
      {"reorder([@L45, @L48, @L46, @L49, @L47, @L50])",
       "reorder([@L45, @L48, @L49, @L46, @L47, @L50])"},
      {"fuse([@L46, @L49])", "fuse([@L49, @L46])"},
  };
  std::string text = print(matmul.trace);
  for (const auto& [from, to] : changes) {
    const std::size_t line = text.find(from);
    REQUIRE(line != std::string::npos);
    text.replace(line, std::string(from).size(), to);
  }
  const Result<Trace> trace = parse_trace(text);
  REQUIRE_OK(trace);
  const Result<Schedule> done = replay(matmul.base, *trace);
  REQUIRE_OK(done);
  CHECK_DIAG(check_thread_ownership(done->program()), ThreadOwner);
  const FpvVerdict verdict = check_equivalent(matmul.base, done->program());
  CHECK(verdict.kind == VerdictKind::kInvalid);
  INFO(verdict.text);
  CHECK(verdict.text.find("of scope local is read by a thread") != std::string::npos);
}

TEST_CASE("blocks with several tiles bring each tile's operand themselves") {
  // Tiles 8*t + b of a grid of 8 x 4: what all t of one b bring together is no box.
  const auto grid = [](const std::string& row) {
    return parse_or_die(R"(program p(X: f32[128, 4]) -> (Y: f32[128, 4]) {
  buffer S: f32[128] shared
  for b in 8 @L0 { for t in 4 @L1 {
    for i in 16 @L2 {
      block "bring" @B0 [v: S(128) = (t*8 + b) // 4 * 16 + i] { reads X[v, 0] writes S[v] S[v] = X[v, 0] }
    }
    for j in 16 @L3 {
      block "use" @B1 [v: S(128) = (t*8 + b) // 4 * 16 + j, w: S(4) = (t*8 + b) % 4] {
        reads S[)" + row +
                        R"(]
        writes Y[v, w]
        Y[v, w] = S[)" + row +
                        R"(]
      }
    }
  } }
})");
  };
  Schedule own(grid("v"));
  REQUIRE_OK(own.bind(LoopId(0), "block.x"));
  CHECK(check_equivalent(grid("v"), own.program()).ok());
  // The next tile's is another block's.
  Schedule other(grid("(v + 16) % 128"));
  CHECK_FALSE(other.bind(LoopId(0), "block.x").ok());
}

TEST_CASE("every GPU schedule has blocks and threads, all axes and scopes occur") {
  std::set<LoopKind> kinds;
  std::set<Scope> scopes;
  for (const GpuProgram& one : gpu_programs()) {
    INFO(one.name);
    const std::set<LoopKind> own = kinds_of(one.scheduled);
    // Lanes of tensor loops come with lowering.
    CHECK(own.count(LoopKind::kThreadX) + own.count(LoopKind::kThreadY) >= 1);
    CHECK(own.count(LoopKind::kBlockX) == 1);
    kinds.insert(own.begin(), own.end());
    for (const Buffer& buffer : one.scheduled.buffers()) scopes.insert(buffer.scope);
  }
  for (LoopKind kind : {LoopKind::kBlockY, LoopKind::kBlockZ, LoopKind::kThreadY,
                        LoopKind::kVThreadX, LoopKind::kVectorized, LoopKind::kUnrolled}) {
    INFO(to_string(kind));
    CHECK(kinds.count(kind) == 1);
  }
  CHECK(scopes.size() == 3);
}

}  // namespace
}  // namespace prunerc

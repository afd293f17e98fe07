// The hand-written GPU schedules of tests/golden/gpu are legal, and compute what they shall.
#include "ir/analysis/ownership.h"
#include "ir/fpv/fpv.h"
#include "ir/printer.h"
#include "ir/thread_axis.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "schedule/schedule.h"
#include "schedule/twin/twin.h"
#include "tests/support/check.h"
#include "tests/support/gpu_programs.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

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

TEST_CASE("blocks bring windows that lie over an edge, all threads together") {
  // 5 of 10 rows for each b, with one above and one below, for each of 4 channels c: the threads t
  // bring 7 rows of 14 in steps of 16, the last of which is cut.
  const auto window = [](const std::string& flat, const std::string& first, int rows_of_14) {
    const std::string row = fmt::format("{} + ({}) // 14", first, flat);
    return parse_or_die(fmt::format(
        R"(program p(X: f32[10, 14]) -> (Y: f32[4, 10, 14]) {{
  buffer S: f32[10, 14] shared
  for c in 4 @L0 {{ for b in 2 @L1 {{
    for f in 7 @L2 {{ for t in 8 @L3 {{ for v in 2 @L4 {{
      block "bring" @B0 [i: S(10) = {row}, j: S(14) = ({flat}) % 14]
          where 0 <= {row} && {row} < 10 && {flat} < {limit} {{
        reads X[i, j] writes S[i, j] S[i, j] = X[i, j] }}
    }} }} }}
    for y in 5 @L5 {{ for x in 14 @L6 {{ for d in 3 @L7 {{
      block "use" @B1 [p: S(4) = c, q: S(10) = b * 5 + y, r: S(14) = x, k: R(3) = d] {{
        reads S[q + k - 1, r] writes Y[p, q, r] init {{ Y[p, q, r] = 0f32 }}
        Y[p, q, r] = Y[p, q, r] + select(0 <= q + k - 1 && q + k - 1 < 10, S[q + k - 1, r], 0f32) }}
    }} }} }}
  }} }}
}})",
        fmt::arg("row", row), fmt::arg("flat", flat), fmt::arg("limit", rows_of_14)));
  };
  const std::string flat = "f * 16 + t * 2 + v";
  const Program base = window(flat, "b * 5 - 1", 7 * 14);
  Schedule all(base);
  REQUIRE_OK(all.bind(LoopId(3), "thread.x"));
  REQUIRE_OK(all.bind(LoopId(1), "block.x"));
  REQUIRE_OK(all.bind(LoopId(0), "block.y"));
  CHECK(check_equivalent(base, all.program()).ok());
  // A row or an element less than is read, and a row that is another block's to bring.
  for (const int limit : {6 * 14, 7 * 14 - 1}) {
    Schedule less(window(flat, "b * 5 - 1", limit));
    CHECK_FALSE(less.bind(LoopId(1), "block.x").ok());
    CHECK_FALSE(less.bind(LoopId(0), "block.x").ok());
  }
  Schedule shifted(window(flat, "b * 5", 7 * 14));
  CHECK_FALSE(shifted.bind(LoopId(1), "block.x").ok());
  // Neighbouring threads that write one element.
  Schedule overlapping(window("f * 16 + t + v", "b * 5 - 1", 7 * 14));
  CHECK_FALSE(overlapping.bind(LoopId(3), "thread.x").ok());
}

TEST_CASE("what an iteration writes after a read does not cover the read") {
  // For c = 1 the first read finds what c = 0 wrote last.
  const auto program = [](const char* at) {
    return parse_or_die(fmt::format(R"(program p(X: f32[2, 2]) -> (Y: f32[2, 2]) {{
  buffer S: f32[2] global
  for c in 2 @L0 {{ for b in 2 @L1 {{
    block "bring" @B0 [i: S(2) = c, j: S(2) = b] {{ reads X[i, j] writes S[j] S[j] = X[i, j] }}
    block "use" @B1 [i: S(2) = c, j: S(2) = b] {{
      reads S[{0}] writes Y[i, j] Y[i, j] = S[{0}] }}
  }} }}
}})",
                                    at));
  };
  Schedule later(program("(i + j) % 2"));
  CHECK_FALSE(later.bind(LoopId(0), "block.x").ok());
  CHECK_FALSE(later.parallel(LoopId(0)).ok());
  Schedule own(program("j"));
  REQUIRE_OK(own.bind(LoopId(0), "block.x"));
}

TEST_CASE("what one block leaves out another may have written an iteration before") {
  // "last" writes beyond what "first" does; the read of it in the next iteration is real.
  const Program base = parse_or_die(R"(program p(X: f32[4, 6]) -> (Y: f32[4, 8]) {
  buffer S: f32[8] global
  for i in 4 @L0 {
    for j in 8 @L1 {
      block "first" @B0 [v: S(4) = i, w: S(6) = j] where j < 6 {
        reads X[v, w] writes S[w] S[w] = X[v, w] }
    }
    for k in 8 @L2 {
      block "use" @B1 [v: S(4) = i, w: S(8) = k] {
        reads S[w] writes Y[v, w] Y[v, w] = select(0 < v || w < 6, S[w], 0f32) }
    }
    for m in 2 @L3 {
      block "last" @B2 [v: S(4) = i, w: S(2) = m] {
        reads X[v, w] writes S[w + 6] S[w + 6] = X[v, w] }
    }
  }
})");
  Schedule s(base);
  CHECK_FALSE(s.parallel(LoopId(0)).ok());
  CHECK_FALSE(s.bind(LoopId(0), "block.x").ok());
}

TEST_CASE("blocks and threads share an index of many axes around a sum") {
  // 128 divides no product of inner extents: every digit but the first needs both loops.
  Schedule s(parse_or_die(R"(program pool(X: f32[8, 64, 113, 113]) -> (Y: f32[8, 64, 56, 56]) {
  for n in 8 @L0 { for c in 64 @L1 { for i in 56 @L2 { for j in 56 @L3 {
    for p in 3 @L4 { for q in 3 @L5 {
      block "Y" @B0 [vn: S(8) = n, vc: S(64) = c, vi: S(56) = i, vj: S(56) = j,
                     vp: R(3) = p, vq: R(3) = q] {
        init { Y[vn, vc, vi, vj] = f32.ninf }
        Y[vn, vc, vi, vj] = max(Y[vn, vc, vi, vj], X[vn, vc, vi*2 + vp, vj*2 + vq]) } } }
  } } } }
})"));
  const Result<LoopId> fused = s.fuse({LoopId(0), LoopId(1), LoopId(2), LoopId(3)});
  REQUIRE_OK(fused);
  const auto parts = s.split(*fused, {Int(-1), Int(128)});
  REQUIRE_OK(parts);
  REQUIRE_OK(s.bind((*parts)[1], "thread.x"));
  REQUIRE_OK(s.bind((*parts)[0], "block.x"));
  // The sum's own loops do not share out an element.
  CHECK_FALSE(s.parallel(LoopId(4)).ok());
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

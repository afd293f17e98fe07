// Sketches for GPUs: every candidate is kernels alone, within the limits of its target, and
// computes what the operator does, registers and shared memory included.
#include "ir/fpv/fpv.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/tensor/bulk_copy.h"
#include "ir/thread_axis.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "schedule/legality/gpu_limits.h"
#include "schedule/schedule.h"
#include "search/space/metaschedule_space.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "search/space/variation.h"
#include "search/tune/equality.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <algorithm>
#include <functional>
#include <set>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

Task gpu_task(const std::string& name, const ir::Program& program) {
  return make_task(name, program, *ir::target_from_string("cuda-host:sm_90a"));
}

// What a program is made of.
struct Traits {
  std::set<ir::LoopKind> kinds;
  std::set<ir::Scope> scopes;
  int most_siblings = 0;  // thread loops beside each other
  bool has(ir::LoopKind kind) const { return kinds.count(kind) > 0; }
};

bool holds_threads(ir::Stmt s) {
  bool found = false;
  ir::walk(
      s,
      [&](ir::Stmt part) {
        const ir::Loop* loop = part.as<ir::Loop>();
        found = found || (loop != nullptr && ir::is_lane_axis(loop->loop_kind));
        return !found;
      },
      [](ir::Expr) {});
  return found;
}

Traits traits_of(const ir::Program& program) {
  Traits out;
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
        if (const ir::Loop* loop = s.as<ir::Loop>()) out.kinds.insert(loop->loop_kind);
        if (const ir::Seq* seq = s.as<ir::Seq>()) {
          const auto count = std::count_if(seq->stmts.begin(), seq->stmts.end(), holds_threads);
          out.most_siblings = std::max(out.most_siblings, static_cast<int>(count));
        }
        if (const ir::Block* block = s.as<ir::Block>()) {
          for (const ir::Access& write : block->writes) {
            out.scopes.insert(program.buffer(write.buffer).scope);
          }
        }
        return true;
      },
      [](ir::Expr) {});
  return out;
}

void check_candidate(const Task& task, const Candidate& candidate) {
  INFO(ir::print(candidate.program));
  REQUIRE_OK(ir::verify(candidate.program));
  REQUIRE_OK(ir::check_thread_axes(candidate.program.root()));
  REQUIRE_OK(schedule::check_gpu_limits(candidate.program, task.target));
  const ir::FpvVerdict verdict = ir::check_equivalent(task.base, candidate.program);
  INFO(to_string(verdict));
  CHECK_FALSE(is_refuted(verdict));
}

TEST_CASE(
    "every GPU sketch of every operator, with any decisions, is kernels of the same meaning") {
  int num_made = 0, num_drawn = 0;
  for (const NamedProgram& op : operator_programs()) {
    const Task task = gpu_task(op.name, operator_program(op.name));
    const Result<SearchSpace> space = make_space(task);
    INFO(op.name);
    REQUIRE_OK(space);
    for (std::size_t s = 0; s < space->sketches.size(); ++s) {
      for (int i = 0; i < num_cases(200) / 40 + 1; ++i) {
        Rng rng(first_seed(), s, static_cast<uint64_t>(i));
        const int sketch = static_cast<int>(s);
        const Genome genome =
            i == 0 ? default_genome(*space, sketch) : random_genome(*space, sketch, rng);
        const Result<Candidate> made = instantiate(task, *space, sketch, genome.decisions);
        INFO("sketch " << space->sketches[s].name << " case " << i);
        if (i == 0) REQUIRE_OK(made);
        ++num_drawn;
        if (!made) continue;
        ++num_made;
        check_candidate(task, *made);
      }
    }
  }
  // Decisions are drawn alone, so some do not fit each other; most do.
  CHECK(num_made * 10 >= num_drawn * 7);
}

TEST_CASE(
    "transpositions with dimensions of extent 1 at the end go through rows in shared memory") {
  const Task task = gpu_task("t", parse_or_die(R"(
program t(X: f32[1, 37, 50, 1]) -> (Y: f32[1, 50, 37, 1]) {
  for n in 1 { for j in 50 { for i in 37 { for u in 1 {
    block "Y" [vn: S(1) = n, vj: S(50) = j, vi: S(37) = i, vu: S(1) = u] {
      Y[vn, vj, vi, vu] = X[vn, vi, vj, vu] } } } } } })"));
  const SearchSpace space = make_space(task).value();
  int num_tiled = 0;
  for (std::size_t s = 0; s < space.sketches.size(); ++s) {
    const std::string trace = schedule::print(space.sketches[s].trace);
    INFO(trace);
    if (num_times(trace, "storage_align(") == 0) continue;
    ++num_tiled;
    CHECK(num_times(trace, "(v0, v1, v2, v3) -> (v3, v0, v1, v2)") == 1);
    const Result<Candidate> made = instantiate(task, space, static_cast<int>(s), {});
    REQUIRE_OK(made);
    check_candidate(task, *made);
  }
  CHECK(num_tiled > 0);
}

TEST_CASE("GPU candidates are checked on their twins") {
  for (const char* name : {"gemm_odd", "conv2d_relu", "softmax_like", "total_sum"}) {
    const Task task = gpu_task(name, operator_program(name));
    const Result<SearchSpace> space = make_space(task);
    REQUIRE_OK(space);
    for (const Sketch& sketch : space->sketches) {
      INFO(name << " " << sketch.name << "\n" << schedule::print(sketch.trace));
      const EqualityResult result = check_on_twin(task, sketch.trace, kDraftLog2Error, 1);
      INFO(to_string(result.verdict));
      CHECK_FALSE(is_refuted(result.verdict));
    }
  }
}

TEST_CASE("tiles of warpgroups in groups are checked on twins that a draft has time for") {
  const char* const kinds[][3] = {{"f16", "vk, vj", ""},
                                  {"f16", "vj, vk", ""},
                                  {"f32", "vk, vj", " allow_tf32=1"},
                                  {"f32", "vj, vk", " allow_tf32=1"}};
  for (const auto& [type, b, options] : kinds) {
    const std::string factor = type;
    const std::string text = "program p(A: " + factor + "[4096, 4096], B: " + factor +
                             R"([4096, 4096]) -> (C: f32[4096, 4096]) {
  for i in 4096 { for j in 4096 { for k in 4096 {
    block "C" [vi: S(4096) = i, vj: S(4096) = j, vk: R(4096) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + f32(A[vi, vk])*f32(B[)" +
                             b + "])\n  } } } }\n}";
    const Task task = make_task("p", parse_or_die(text),
                                *ir::target_from_string(std::string("cuda-host:sm_90a") + options));
    const Result<SearchSpace> space = make_space(task);
    REQUIRE_OK(space);
    int num_checked = 0;
    for (const Sketch& sketch : space->sketches) {
      if (sketch.name.find("wgmma") == std::string::npos) continue;
      ++num_checked;
      const EqualityResult result = check_on_twin(task, sketch.trace, kDraftLog2Error, 1);
      INFO(type << " " << b << " " << sketch.name << ": " << to_string(result.verdict));
      CHECK(result.verdict.ok());
    }
    CHECK(num_checked >= 6);
  }
}

TEST_CASE("products are tiled through shared memory and registers") {
  const Task task = gpu_task("gemm", operator_program("gemm_odd"));
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  const Result<Candidate> made = instantiate(task, *space, 0, {});
  REQUIRE_OK(made);
  INFO(ir::print(made->program));
  const Traits traits = traits_of(made->program);
  for (const ir::LoopKind kind :
       {ir::LoopKind::kBlockX, ir::LoopKind::kBlockY, ir::LoopKind::kThreadX,
        ir::LoopKind::kThreadY, ir::LoopKind::kVectorized}) {
    CHECK(traits.has(kind));
  }
  CHECK(traits.scopes.count(ir::Scope::kShared) == 1);
  CHECK(traits.scopes.count(ir::Scope::kLocal) == 1);
  // Two operands are fetched, then the threads compute.
  CHECK(traits.most_siblings >= 3);
}

std::vector<std::string> sketch_names(const std::string& text) {
  const Task task = make_task("t", *ir::parse(text), *ir::target_from_string("cuda-host:sm_80"));
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  std::vector<std::string> names;
  for (const Sketch& sketch : space->sketches) names.push_back(sketch.name);
  return names;
}

std::string matrix_product(int64_t m, int64_t n, int64_t k, const std::string& op = "*") {
  const auto text = [](int64_t x) { return std::to_string(x); };
  return "program p(A: f32[" + text(m) + ", " + text(k) + "], B: f32[" + text(k) + ", " + text(n) +
         "]) -> (C: f32[" + text(m) + ", " + text(n) + "]) { for i in " + text(m) + " { for j in " +
         text(n) + " { for k in " + text(k) + " { block \"C\" [vi: S(" + text(m) + ") = i, vj: S(" +
         text(n) + ") = j, vk: R(" + text(k) + ") = k] { init { C[vi, vj] = 0f32 } " +
         "C[vi, vj] = C[vi, vj] + (A[vi, vk]" + op + "B[vk, vj]) } } } } }";
}

TEST_CASE("a large product's operands are never read directly") {
  const auto is_direct = [](const std::string& text) {
    const std::vector<std::string> names = sketch_names(text);
    return std::count(names.begin(), names.end(), "gpu+direct") > 0;
  };
  CHECK(is_direct(matrix_product(8, 256, 256)));
  CHECK(is_direct(matrix_product(256, 256, 16)));
  CHECK_FALSE(is_direct(matrix_product(64, 64, 64)));
  CHECK_FALSE(is_direct(matrix_product(1001, 1003, 1005)));
}

// Does the block that adds up ask where its sum ends?
bool guards_sum(const std::string& text) {
  const Task task = make_task("t", *ir::parse(text), *ir::target_from_string("cuda-host:sm_80"));
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  const Result<Candidate> made = instantiate(task, *space, 0, {});
  REQUIRE_OK(made);
  INFO(ir::print(made->program));
  check_candidate(task, *made);
  bool found = false;
  ir::walk(
      made->program.root(),
      [&](ir::Stmt s) {
        const ir::Block* block = s.as<ir::Block>();
        if (block == nullptr || block->name != "C" || !block->guard.defined()) return true;
        std::set<ir::VarId> reduces;
        const auto note = [](ir::Expr e, const std::function<void(ir::VarId)>& f) {
          ir::walk(e, [&](ir::Expr x) {
            if (const auto* var = x.as<ir::Var>()) f(var->id);
            return true;
          });
        };
        for (const ir::IterVar& iter : block->iters) {
          if (iter.kind != ir::IterKind::kReduce) continue;
          note(iter.binding, [&](ir::VarId id) { reduces.insert(id); });
        }
        note(block->guard, [&](ir::VarId id) { found = found || reduces.count(id) > 0; });
        return true;
      },
      [](ir::Expr) {});
  return found;
}

TEST_CASE("zeros round sums of products up to whole fetches, other sums are guarded") {
  CHECK_FALSE(guards_sum(matrix_product(20, 40, 64)));
  CHECK_FALSE(guards_sum(matrix_product(20, 40, 61)));
  CHECK(guards_sum(matrix_product(20, 40, 61, " - ")));
  CHECK(guards_sum(matrix_product(20, 40, 5)));
}

TEST_CASE("windows of convolutions are tiled through shared memory, by rows and by channels") {
  for (const char* name : {"conv2d", "conv2d_relu"}) {
    const Task task = gpu_task(name, operator_program(name));
    const Result<SearchSpace> space = make_space(task);
    REQUIRE_OK(space);
    int num_tiled = 0;
    for (std::size_t s = 0; s < space->sketches.size(); ++s) {
      if (space->sketches[s].name != "gpu" && space->sketches[s].name != "gpu+outer row") continue;
      const Result<Candidate> made = instantiate(task, *space, static_cast<int>(s), {});
      REQUIRE_OK(made);
      INFO(name << " " << space->sketches[s].name << "\n" << ir::print(made->program));
      const Traits traits = traits_of(made->program);
      CHECK(traits.scopes.count(ir::Scope::kShared) == 1);
      CHECK(traits.scopes.count(ir::Scope::kLocal) == 1);
      // Two operands are fetched, then the threads compute.
      CHECK(traits.most_siblings >= 3);
      ++num_tiled;
    }
    CHECK(num_tiled == 2);
  }
}

TEST_CASE("rows are reduced by the threads of a block, or by a thread each") {
  const Task task = gpu_task("softmax", operator_program("softmax_like"));
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  int shared = 0, alone = 0;
  for (std::size_t s = 0; s < space->sketches.size(); ++s) {
    const Result<Candidate> made = instantiate(task, *space, static_cast<int>(s), {});
    REQUIRE_OK(made);
    const Result<std::vector<schedule::GpuNeeds>> needs = schedule::gpu_needs(made->program);
    REQUIRE_OK(needs);
    const Traits traits = traits_of(made->program);
    shared += needs->size() == 1 && traits.scopes.count(ir::Scope::kShared) > 0 ? 1 : 0;
    alone += needs->size() == 1 && traits.scopes.count(ir::Scope::kShared) == 0 ? 1 : 0;
  }
  CHECK(shared >= 1);
  CHECK(alone >= 1);
}

TEST_CASE("random programs get kernels that mean the same") {
  for (int i = 0; i < num_cases(200) / 5; ++i) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(i);
    Rng rng(seed, 91);
    GenPolicy policy;
    policy.transcendental = false;
    const ir::Program program = random_program(rng, policy);
    const Task task = gpu_task("random", program);
    const Result<SearchSpace> space = make_space(task);
    INFO("seed " << seed << "\n" << ir::print(program));
    REQUIRE_OK(space);
    for (std::size_t s = 0; s < space->sketches.size(); ++s) {
      const Genome genome = random_genome(*space, static_cast<int>(s), rng);
      const Result<Candidate> made =
          instantiate(task, *space, static_cast<int>(s), genome.decisions);
      if (!made) continue;
      INFO(space->sketches[s].name);
      check_candidate(task, *made);
    }
  }
}

int num_tensor_sketches(const std::string& text, std::string_view target) {
  const Task task = make_task("t", *ir::parse(text), *ir::target_from_string(target));
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  return static_cast<int>(std::count_if(
      space->sketches.begin(), space->sketches.end(),
      [](const Sketch& sketch) { return sketch.name.find("tensor") != std::string::npos; }));
}

std::string product_text(const std::string& factor, const std::string& sum, int64_t rows) {
  const std::string m = std::to_string(rows);
  return "program p(A: " + factor + "[" + m + ", 48], B: " + factor + "[48, 40]) -> (C: " + sum +
         "[" + m + ", 40]) { for i in " + m + " { for j in 40 { for k in 48 { block \"C\" [vi: S(" +
         m + ") = i, vj: S(40) = j, vk: R(48) = k] { init { C[vi, vj] = 0" + sum +
         " } C[vi, vj] = C[vi, vj] + " + sum + "(A[vi, vk])*" + sum + "(B[vk, vj]) } } } } }";
}

TEST_CASE("tensor instructions are proposed where target, types and precision allow") {
  const std::string f16 = product_text("f16", "f32", 32);
  CHECK(num_tensor_sketches(f16, "cuda-host:sm_80") >= 2);  // both orders of the operands
  // Turing has halves of some.
  CHECK(num_tensor_sketches(f16, "cuda-host:sm_75") >= 2);
  CHECK(num_tensor_sketches(product_text("i8", "i32", 32), "cuda:t4") >= 2);
  CHECK(num_tensor_sketches(product_text("bf16", "f32", 32), "cuda-host:sm_75") == 0);
  CHECK(num_tensor_sketches(product_text("f32", "f32", 32), "cuda:t4 allow_tf32=1") == 0);
  CHECK(num_tensor_sketches(f16, "cuda:sm_70") == 0);
  CHECK(num_tensor_sketches(product_text("bf16", "f32", 32), "cuda:sm_90a") >= 2);
  CHECK(num_tensor_sketches(product_text("i8", "i32", 32), "cuda:sm_80") >= 2);
  CHECK(num_tensor_sketches(product_text("f64", "f64", 32), "cuda:sm_80") == 0);
  // f32 loses bits in tf32, so that it must be asked for.
  CHECK(num_tensor_sketches(product_text("f32", "f32", 32), "cuda:sm_80") == 0);
  CHECK(num_tensor_sketches(product_text("f32", "f32", 32), "cuda:sm_80 allow_tf32=1") >= 2);
}

TEST_CASE("bytes that lie across K get tiles along it, for warps and for warpgroups") {
  const Task task = make_task("t", parse_or_die(product_text("i8", "i32", 64)),
                              *ir::target_from_string("cuda-host:sm_90a"));
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  int num_warp = 0, num_warpgroup = 0, num_across = 0;
  for (std::size_t s = 0; s < space->sketches.size(); ++s) {
    const std::string& name = space->sketches[s].name;
    const bool is_warp = name.find("tensor") != name.npos;
    const bool is_warpgroup = name.find("wgmma") != name.npos;
    if (!is_warp && !is_warpgroup) continue;
    const bool is_across = name.ends_with("+across");
    num_warp += is_warp ? 1 : 0;
    num_warpgroup += is_warpgroup ? 1 : 0;
    num_across += is_across ? 1 : 0;
    const std::string trace = schedule::print(space->sketches[s].trace);
    INFO(name << "\n" << trace);
    CHECK(num_times(trace, "reindex_cache_read(") == (is_across ? 0 : 1));
    // Both factors of mma.sync come by ldmatrix, none byte by byte but where bytes are not turned.
    CHECK(num_times(trace, "tensorize(") == (is_across ? 2 : is_warp ? 3 : 1));
    CHECK(num_times(trace, "bulk_copy(") == 0);
    const Result<Candidate> made = instantiate(task, *space, static_cast<int>(s), {});
    REQUIRE_OK(made);
    check_candidate(task, *made);
  }
  CHECK(num_warp >= 2);
  CHECK(num_warpgroup >= 5);
  CHECK(num_across == 1);
  // Where no bytes lie across K it would be "gpu+tensor" again.
  const Result<SearchSpace> halves = make_space(make_task(
      "t", parse_or_die(product_text("f16", "f32", 64)), *ir::target_from_string("cuda:sm_80")));
  REQUIRE_OK(halves);
  for (const Sketch& sketch : halves->sketches) CHECK_FALSE(sketch.name.ends_with("+across"));
}

TEST_CASE(
    "a tensor sketch pads to its tiles, whatever they are, and takes the smaller side for n") {
  const ir::Program base = *ir::parse(product_text("f16", "f32", 3));
  const Task task = make_task("t", base, *ir::target_from_string("cuda-host:sm_80"));
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  const auto tensor =
      std::find_if(space->sketches.begin(), space->sketches.end(),
                   [](const Sketch& sketch) { return sketch.name == "gpu+tensor"; });
  REQUIRE(tensor != space->sketches.end());
  const int sketch = static_cast<int>(tensor - space->sketches.begin());
  for (int i = 0; i < num_cases(200) / 10; ++i) {
    Rng rng(first_seed(), static_cast<uint64_t>(i), 12);
    const Genome genome =
        i == 0 ? default_genome(*space, sketch) : random_genome(*space, sketch, rng);
    const Result<Candidate> made = instantiate(task, *space, sketch, genome.decisions);
    if (i == 0) REQUIRE_OK(made);
    if (!made) continue;
    check_candidate(task, *made);
    const Traits traits = traits_of(made->program);
    CHECK(traits.has(ir::LoopKind::kThreadY));
    CHECK(traits.scopes.count(ir::Scope::kShared) == 1);
    const Result<std::vector<schedule::GpuNeeds>> needs = schedule::gpu_needs(made->program);
    REQUIRE_OK(needs);
    // Copies and casts are fused: one kernel. Three rows are columns of the instruction: no more
    // than eight of them along one axis of the grid.
    REQUIRE(needs->size() == 1);
    CHECK(needs->front().grid[0] == 1);
  }
}

// Bytes of the rows that a candidate swizzles.
std::multiset<int64_t> swizzled_rows(const ir::Program& program) {
  std::multiset<int64_t> out;
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
        const ir::Block* block = s.as<ir::Block>();
        for (std::size_t i = 0; block != nullptr && i < block->attrs.size(); ++i) {
          if (block->attrs[i].key == "swizzle_0") out.insert(block->attrs[i].value);
        }
        return true;
      },
      [](ir::Expr) {});
  return out;
}

// Of f16 or f32 factors, B by its rows or by its columns.
Task square_product(const std::string& factor, const char* b, std::string_view target) {
  const std::string text = "program p(A: " + factor + "[256, 256], B: " + factor +
                           R"([256, 256]) -> (C: f32[256, 256]) {
  for i in 256 { for j in 256 { for k in 256 {
    block "C" [vi: S(256) = i, vj: S(256) = j, vk: R(256) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + f32(A[vi, vk])*f32(B[)" +
                           b + "])\n  } } } }\n}";
  return make_task("p", parse_or_die(text), *ir::target_from_string(target));
}

constexpr const char* kSwizzledSketches[] = {"gpu+tensor+swizzle", "gpu+tensor+swizzle+staged",
                                             "gpu+tensor+split k", "gpu+tensor+split k+staged"};

TEST_CASE("swizzled tiles of tensor instructions have panels as wide as their rows") {
  for (const char* target : {"cuda:a100", "cuda:t4"}) {
    const Task task = square_product("f16", "vk, vj", target);
    const Result<SearchSpace> space = make_space(task);
    REQUIRE_OK(space);
    for (const char* name : kSwizzledSketches) {
      INFO(target << " " << name);
      const auto at = std::find_if(space->sketches.begin(), space->sketches.end(),
                                   [&](const Sketch& sketch) { return sketch.name == name; });
      REQUIRE(at != space->sketches.end());
      const int sketch = static_cast<int>(at - space->sketches.begin());
      const Result<schedule::Schedule> whole = schedule::replay(task.base, at->trace);
      REQUIRE_OK(whole);
      // Two steps of K, and four warps of 32 columns: panels of 64 and of 128 bytes.
      CHECK(swizzled_rows(whole->program()) == std::multiset<int64_t>{64, 256});
      std::set<int64_t> panels;
      for (int i = 0; i < 30; ++i) {
        Rng rng(first_seed(), static_cast<uint64_t>(i), 15);
        const Result<Candidate> made =
            instantiate(task, *space, sketch, random_genome(*space, sketch, rng).decisions);
        if (!made) continue;
        for (const int64_t row : swizzled_rows(made->program)) panels.insert(ir::panel_of(row));
      }
      CHECK(panels == std::set<int64_t>{32, 64, 128});
    }
  }
}

TEST_CASE("lanes that read down columns of f32 keep panels of 32 bytes, along rows wide ones") {
  for (const bool is_down : {true, false}) {
    const Task task =
        square_product("f32", is_down ? "vk, vj" : "vj, vk", "cuda:a100 allow_tf32=1");
    const Result<SearchSpace> space = make_space(task);
    REQUIRE_OK(space);
    const auto at = std::find_if(space->sketches.begin(), space->sketches.end(),
                                 [](const Sketch& s) { return s.name == "gpu+tensor+swizzle"; });
    REQUIRE(at != space->sketches.end());
    const Result<schedule::Schedule> whole = schedule::replay(task.base, at->trace);
    REQUIRE_OK(whole);
    CHECK(swizzled_rows(whole->program()) ==
          (is_down ? std::multiset<int64_t>{32, 64} : std::multiset<int64_t>{64, 64}));
  }
}

TEST_CASE("what a target cannot run is refused before it is lowered") {
  Task task = gpu_task("gemm", operator_program("gemm_odd"));
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  task.target.smem_bytes_per_block = 64;
  CHECK_DIAG(instantiate(task, *space, 0, {}), GpuLimit);
}

std::vector<std::string> metaschedule_names(const std::string& factor, const std::string& sum,
                                            std::string_view target) {
  const Task task =
      make_task("t", *ir::parse(product_text(factor, sum, 512)), *ir::target_from_string(target));
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  std::vector<std::string> names;
  for (const Sketch& sketch : metaschedule_space(*space).sketches) names.push_back(sketch.name);
  return names;
}

TEST_CASE("MetaSchedule's space has the tensor instructions that MetaSchedule has") {
  const auto has_tensor = [](const std::vector<std::string>& names) {
    return std::any_of(names.begin(), names.end(), [](const std::string& name) {
      return name.find("tensor") != std::string::npos || name.find("wgmma") != std::string::npos;
    });
  };
  const auto has = [](const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const char* target : {"cuda:sm_80", "cuda:sm_90a allow_tf32=1"}) {
    const std::vector<std::string> half = metaschedule_names("f16", "f32", target);
    INFO(target);
    CHECK(has(half, "gpu"));
    CHECK(has(half, "gpu+tensor"));
    CHECK(has(half, "gpu+tensor+staged"));
    for (const std::string& name : half) {
      CHECK(name.find("wgmma") == std::string::npos);
      CHECK(name.find("split k") == std::string::npos);
      CHECK(name.find("tensor 2") == std::string::npos);
    }
    CHECK(has_tensor(metaschedule_names("i8", "i32", target)));
    // It has no instructions for these; its other sketches stay.
    for (const char* factor : {"bf16", "f32"}) {
      const std::vector<std::string> none = metaschedule_names(factor, "f32", target);
      CHECK(has(none, "gpu"));
      CHECK_FALSE(has_tensor(none));
    }
  }
  // Nor does it put two products into one kernel.
  SearchSpace space;
  for (const char* name :
       {"gpu", "gpu+chain", "gpu+tensor+chain", "gpu+wgmma+chain", "gpu+wgmma+chain+tma"}) {
    space.sketches.push_back(make_sketch(name, {}));
  }
  CHECK(metaschedule_space(std::move(space)).sketches.size() == 1);
}

}  // namespace
}  // namespace prunerc

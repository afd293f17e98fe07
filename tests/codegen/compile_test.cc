// What comes out besides results: artifacts, symbols, targets, headers, instructions; and what is
// refused.
#include "codegen/codegen.h"
#include "codegen/storage_plan.h"
#include "ir/builder.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <regex>
#include <sstream>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

constexpr const char* kCopy = R"(program secret_name(secret_in: f32[40]) -> (secret_out: f32[40]) {
  for secret_loop in 40 @L0 vectorized { block "secret_block" @B0 [v: S(40) = secret_loop] {
    reads secret_in[v] writes secret_out[v] secret_out[v] = secret_in[v] * 2f32 } } })";

// A 6 x 4 tile of vectors with `lanes` lanes, accumulated over k in a local buffer.
std::string gemm_text(int lanes) {
  const std::string nr = std::to_string(4 * lanes);
  return "program g(A: f32[96, 64], B: f32[64, 256]) -> (C: f32[96, 256]) { buffer T: f32[96, 256] "
         "local "
         "for i in 16 @L0 { for j in " +
         std::to_string(64 / lanes) +
         " @L1 { for k in 64 @L2 { for ii in 6 @L3 unrolled { for jj in " + nr +
         " @L4 vectorized { block \"T\" @B0 [vi: S(96) = i*6 + ii, vj: S(256) = j*" + nr +
         " + jj, vk: R(64) = k] { reads A[vi, vk], B[vk, vj] writes T[vi, vj] init { T[vi, vj] = "
         "0f32 } "
         "T[vi, vj] = T[vi, vj] + A[vi, vk]*B[vk, vj] } } } } for ii in 6 @L5 unrolled { for jj "
         "in " +
         nr + " @L6 vectorized { block \"C\" @B1 [vi: S(96) = i*6 + ii, vj: S(256) = j*" + nr +
         " + jj] { reads T[vi, vj] writes C[vi, vj] C[vi, vj] = T[vi, vj] } } } } } }";
}

Target named(const std::string& name) {
  const Result<Target> target = target_from_string(name);
  REQUIRE_OK(target);
  return *target;
}

std::string emitted(const std::string& text, const Target& target, codegen::EmitKind kind) {
  const Result<std::string> out = codegen::emit_cpu(parse_or_die(text), target, kind);
  REQUIRE_OK(out);
  return *out;
}

// The lines of the innermost loop with the most multiply-adds: from its label to the jump back.
std::vector<std::string> hottest_loop(const std::string& assembly) {
  std::istringstream in(assembly);
  std::vector<std::string> best, current;
  std::string label;
  auto num_fma = [](const std::vector<std::string>& lines) {
    return std::count_if(lines.begin(), lines.end(), [](const std::string& l) {
      return l.find("vfmadd") != std::string::npos;
    });
  };
  for (std::string line; std::getline(in, line);) {
    if (line.substr(0, 3) == ".LB") {
      label = line.substr(0, line.find(':'));
      current.clear();
    }
    current.push_back(line);
    const bool jumps_back = !label.empty() && line.find("\tj") != std::string::npos &&
                            line.find(label) != std::string::npos;
    if (jumps_back && num_fma(current) > num_fma(best)) best = current;
  }
  return best;
}

}  // namespace

TEST_CASE("an artifact describes its kernel") {
  const Program program = parse_or_die(kCopy);
  const Result<codegen::Artifact> artifact = codegen::compile_cpu(program, Target{});
  REQUIRE_OK(artifact);
  CHECK(codegen::validate(*artifact).ok());
  CHECK(artifact->entry.substr(0, 8) == "prunerc_");
  CHECK(artifact->entry.size() == 8 + 32);
  REQUIRE(artifact->params.size() == 2);
  CHECK(artifact->params[0].name == "secret_in");
  CHECK(artifact->params[1].role == codegen::ParamRole::kOutput);
  CHECK(artifact->params[1].shape == std::vector<int64_t>{40});
  CHECK(artifact->bytes_moved == 320);
}

TEST_CASE("names of the program never reach the object") {
  for (codegen::EmitKind kind :
       {codegen::EmitKind::kObject, codegen::EmitKind::kAssembly, codegen::EmitKind::kLlvmText}) {
    CHECK(emitted(kCopy, Target{}, kind).find("secret") == std::string::npos);
  }
}

TEST_CASE("the same program gives the same bytes") {
  const Result<codegen::Artifact> first = codegen::compile_cpu(parse_or_die(kCopy), Target{});
  const Result<codegen::Artifact> second = codegen::compile_cpu(parse_or_die(kCopy), Target{});
  REQUIRE_OK(first);
  REQUIRE_OK(second);
  CHECK(*first == *second);
}

TEST_CASE("code for a named CPU uses its registers and no larger ones") {
  const std::string haswell =
      emitted(gemm_text(8), named("cpu:haswell"), codegen::EmitKind::kAssembly);
  CHECK(haswell.find("zmm") == std::string::npos);
  CHECK(haswell.find("ymm") != std::string::npos);
  const std::string znver4 =
      emitted(gemm_text(16), named("cpu:znver4"), codegen::EmitKind::kAssembly);
  CHECK(znver4.find("zmm") != std::string::npos);
}

TEST_CASE("a CPU with larger registers than its target's vectors leaves them alone") {
  for (const char* type : {"f32", "f64"}) {
    const std::string text = std::string("program e(X: ") + type + "[64]) -> (Y: " + type +
                             "[64]) { for i in 64 @L0 vectorized { block \"Y\" @B0 "
                             "[v: S(64) = i] { Y[v] = exp(X[v]) } } }";
    for (const char* width : {"16", "32"}) {
      const Target narrow = named(std::string("cpu:znver4 vector_bytes=") + width);
      CHECK(emitted(text, narrow, codegen::EmitKind::kAssembly).find("zmm") == std::string::npos);
    }
    CHECK(emitted(text, named("cpu:znver4"), codegen::EmitKind::kAssembly).find("vscalefp") !=
          std::string::npos);
  }
}

TEST_CASE("no vector reaches further beyond a stack buffer than there is room") {
  const auto both = [](const char* values) {
    return std::string(R"(program p(X: u8[2400]) -> (Y: u8[800]) { buffer I: i64[800] local )") +
           values + R"( for k in 1024 @L1 vectorized { block "Y" @B1 [v: S(800) = k] where k < 800 {
             Y[v] = X[min(max(I[v], 0), 2399)] } } })";
  };
  // Numbers of lanes are their own widest elements.
  const std::string stored = both(R"(for i in 1024 @L0 vectorized {
    block "I" @B0 [v: S(800) = i] where i < 800 { I[v] = v * 3 } })");
  // What bytes are loaded by is wider than they are.
  const std::string loaded =
      both(R"(for i in 800 @L0 { block "I" @B0 [v: S(800) = i] { I[v] = v * 3 } })");
  for (const std::string& text : {stored, loaded}) {
    const Program program = parse_or_die(text);
    CHECK(compare_with_interpreter(program, program, 1) == "");
  }
  const auto llvm = [](const std::string& text) {
    return emitted(text, named("cpu:znver4"), codegen::EmitKind::kLlvmText);
  };
  CHECK(llvm(stored).find("store <256 x i64>") == std::string::npos);
  CHECK(llvm(loaded).find("@llvm.masked.load.v256i64") != std::string::npos);
}

TEST_CASE("what a float is cast to may wrap in a vector as elsewhere") {
  for (const char* value :
       {"i64(f32(vi)*1e30f32) + vj < 10", "(i64(f32(vi)*1e30f32) + vj*8) // 8 < 10",
        "(i64(f32(vi)*1e30f32) + vj*8) % 8 < 3"}) {
    INFO(value);
    const Program program = parse_or_die(
        "program p(X: f32[1]) -> (Y: f32[3, 64]) { for i in 3 @L0 { for j in 64 @L1 vectorized { "
        "block "
        "\"Y\" @B0 [vi: S(3) = i, vj: S(64) = j] { Y[vi, vj] = select(" +
        std::string(value) + ", 1f32, 0f32) } } } }");
    CHECK(compare_with_interpreter(program, program, 1) == "");
  }
}

TEST_CASE("copies of an unrolled loop share a buffer on the stack") {
  const std::string text = R"(program p(X: f32[16, 2000]) -> (Y: f32[16, 2000]) {
    buffer T: f32[16, 2000] local
    for i in 16 @L0 unrolled {
      for j in 2000 @L1 { block "T" @B0 [u: S(16) = i, v: S(2000) = j] { T[u, v] = X[u, v] + 1f32 } }
      for j in 2000 @L2 { block "Y" @B1 [u: S(16) = i, v: S(2000) = j] { Y[u, v] = T[u, 1999 - v] } }
    } })";
  const std::string llvm = emitted(text, Target{}, codegen::EmitKind::kLlvmText);
  const std::size_t first = llvm.find("alloca ");
  REQUIRE(first != std::string::npos);
  CHECK(llvm.find("alloca ", first + 1) == std::string::npos);
  const Program program = parse_or_die(text);
  CHECK(compare_with_interpreter(program, program, 1) == "");
}

TEST_CASE("small buffers of an unrolled loop's copies fit a small stack") {
  const std::string text = R"(program p(X: f32[60, 1000]) -> (Y: f32[60, 1000]) {
    buffer T: f32[60, 1000] local
    for i in 60 @L0 unrolled {
      for j in 1000 @L1 { block "T" @B0 [u: S(60) = i, v: S(1000) = j] { T[u, v] = X[u, v] + 1f32 } }
      for j in 1000 @L2 { block "Y" @B1 [u: S(60) = i, v: S(1000) = j] { Y[u, v] = T[u, 999 - v] } }
    } })";
  const std::string llvm = emitted(text, Target{}, codegen::EmitKind::kLlvmText);
  const std::regex slot(R"(alloca \[(\d+) x float\])");
  int64_t bytes = 0;
  for (std::sregex_iterator it(llvm.begin(), llvm.end(), slot), none; it != none; ++it) {
    bytes += 4 * std::stoll((*it)[1].str());
  }
  CHECK(bytes > 4000);
  CHECK(bytes <= codegen::kMaxTileStackBytes + 8000);
  const Program program = parse_or_die(text);
  CHECK(compare_with_interpreter(program, program, 1) == "");
}

TEST_CASE("rows that lanes sum up and store under a guard stay in vectors") {
  const std::string text = R"(program p(X: f32[4, 5, 6]) -> (T: f32[4, 6], Y: f32[4, 2, 3]) {
    for i in 4 @L0 { for j in 8 @L1 vectorized {
      for k in 5 @L2 { block "T" @B0 [u: S(4) = i, v: S(6) = j, w: R(5) = k] where j < 6 {
        init { T[u, v] = 0f32 } T[u, v] = T[u, v] + X[u, w, v] } }
      block "Y" @B1 [u: S(4) = i, v: S(6) = j] where j < 6 { Y[u, v // 3, v % 3] = T[u, v] } } } })";
  CHECK(emitted(text, Target{}, codegen::EmitKind::kLlvmText).find(" x float>") !=
        std::string::npos);
  const Program program = parse_or_die(text);
  CHECK(compare_with_interpreter(program, program, 1) == "");
}

TEST_CASE("a loop is not unrolled because its copies overflow") {
  // 2^9 * 2^55
  const Program program = parse_or_die(R"(program p(X: f32[1]) -> (Y: f32[1]) {
    for i in 512 @L0 unrolled { for j in 36028797018963968 @L1 unrolled {
      block "Y" @B0 [u: O(512) = i, v: O(36028797018963968) = j] { Y[0] = X[0] } } } })");
  CHECK(codegen::compile_cpu(program, Target{}).ok());
}

TEST_CASE("the accumulators of a register tile stay in registers") {
  const std::string text =
      emitted(gemm_text(16), named("cpu:znver4"), codegen::EmitKind::kAssembly);
  const std::vector<std::string> loop = hottest_loop(text);
  int64_t num_fma = 0, num_vector_stores = 0, num_stack = 0;
  for (const std::string& line : loop) {
    num_fma += line.find("vfmadd") != std::string::npos;
    num_stack += line.find("(%rsp") != std::string::npos;
    num_vector_stores +=
        line.find("vmov") != std::string::npos && line.find(", (%") != std::string::npos;
  }
  INFO(text);
  CHECK(num_fma == 24);
  CHECK(num_stack == 0);
  CHECK(num_vector_stores == 0);
}

TEST_CASE("an accumulation is fused, any other sum of a product is not") {
  const std::string fused =
      emitted(gemm_text(16), named("cpu:znver4"), codegen::EmitKind::kAssembly);
  CHECK(fused.find("vfmadd") != std::string::npos);
  const std::string plain =
      emitted(R"(program p(A: f32[16], B: f32[16]) -> (C: f32[16]) { for i in 16 @L0 vectorized {
    block "C" @B0 [v: S(16) = i] { reads A[v], B[v] writes C[v] C[v] = A[v]*B[v] + A[v] } } })",
              named("cpu:znver4"), codegen::EmitKind::kAssembly);
  CHECK(plain.find("vfmadd") == std::string::npos);
  CHECK(plain.find("vmulps") != std::string::npos);
}

TEST_CASE("lanes that are a digit of an index keep their vectors with loops inside") {
  const auto text = [](const std::string& index) {
    return "program p(X: f32[64]) -> (Y: f32[256]) { for i in 16 @L0 vectorized { for k in 4 @L1 { "
           "block \"Y\" @B0 [a: O(16) = i, b: O(4) = k] { Y[" +
           index + "] = X[a*4 + b] } } } }";
  };
  const auto vectors = [&](const std::string& index) {
    const std::string llvm =
        emitted(text(index), named("cpu:znver4"), codegen::EmitKind::kLlvmText);
    return llvm.find("<16 x float>") != std::string::npos;
  };
  CHECK(vectors("b*16 + a"));
  CHECK(vectors("a*4 + b"));
  CHECK_FALSE(vectors("b*15 + a"));
  CHECK_FALSE(vectors("a*3 + b"));
}

TEST_CASE("a sum may begin with data") {
  const Program program = parse_or_die(R"(
program n(X: f32[4, 8], c: f32[4]) -> (Y: f32[4]) {
  for i in 4 { for k in 8 {
    block "Y" [v: S(4) = i, w: R(8) = k] { init { Y[v] = c[v] } Y[v] = Y[v] + X[v, w] } } }
})");
  CHECK(compare_with_interpreter(program, program, 1) == "");
}

TEST_CASE("intermediates that do not live at the same time share the workspace") {
  // A -> T -> U -> V: T and V may share.
  std::string text =
      "program p(A: f32[50000]) -> (B: f32[50000]) { buffer T: f32[50000] global "
      "buffer U: f32[50000] global buffer V: f32[50000] global ";
  const char* names[] = {"A", "T", "U", "V", "B"};
  for (int i = 0; i < 4; ++i) {
    const std::string from = names[i], to = names[i + 1], id = std::to_string(i);
    text += "for i in 50000 @L" + id + " { block \"" + to + "\" @B" + id +
            " [v: S(50000) = i] { reads " + from + "[v] writes " + to + "[v] " + to +
            "[v] = " + from + "[v] + 1f32 } } ";
  }
  const Program program = parse_or_die(text + "}");
  const Result<codegen::Artifact> artifact = codegen::compile_cpu(program, Target{});
  REQUIRE_OK(artifact);
  CHECK(artifact->workspace_bytes >= 2 * 200000);
  CHECK(artifact->workspace_bytes < 3 * 200000);
  CHECK(compare_with_interpreter(program, program, 1) == "");
  // LLVM is told that A, B and U lie apart from both, and not that these do from each other.
  const Result<std::string> llvm =
      codegen::emit_cpu(program, Target{}, codegen::EmitKind::kLlvmText);
  REQUIRE_OK(llvm);
  const std::regex three(R"(\n!\d+ = !\{!\d+, !\d+, !\d+\}\n)");
  CHECK(std::regex_search(*llvm, three));
}

TEST_CASE("a program with tile parameters is refused") {
  IrBuilder b("p");
  const Expr n = b.int_imm(8);
  const BufferId out =
      b.add_buffer("Y", DType::kF32, std::vector<Expr>{n}, Scope::kGlobal, BufferRole::kOutput);
  const ParamId param = b.add_param("t");
  const std::vector<ParamId> params = {param};
  b.add_tiles({b.copy(params), 8, TileKind::kPerfect, 0});
  const std::vector<Expr> zero = {b.int_imm(0)};
  const Program program = b.finish(b.store(out, zero, b.float_imm(1, DType::kF32)));
  CHECK_DIAG(codegen::compile_cpu(program, Target{}), Unsupported);
}

TEST_CASE("targets that are not a CPU, or a CPU that LLVM does not know, are refused") {
  CHECK_DIAG(codegen::compile_cpu(parse_or_die(kCopy), named("cuda:sm_90a")), Unsupported);
  Target odd = named("cpu:haswell");
  odd.llvm_cpu = "pentium-of-tomorrow";
  CHECK_DIAG(codegen::compile_cpu(parse_or_die(kCopy), odd), Unsupported);
  odd.llvm_cpu = "core2";  // known, but without SSE4.2
  CHECK_DIAG(codegen::compile_cpu(parse_or_die(kCopy), odd), Unsupported);
  for (const char* width : {"7", "128", "1000000000000"}) {
    const Target wide = named(std::string("cpu:znver4 vector_bytes=") + width);
    CHECK_DIAG(codegen::compile_cpu(parse_or_die(kCopy), wide), Unsupported);
  }
}

TEST_CASE("an empty program and absurd sizes are refused") {
  CHECK_DIAG(codegen::compile_cpu(Program{}, Target{}), Unsupported);
  CHECK_DIAG(codegen::compile_cpu(
                 parse_or_die(
                     "program p(A: f32[4]) -> (B: f32[4]) { buffer T: f32[9000000000, 9000000000] "
                     "global for i in 4 @L0 { block \"B\" @B0 [v: S(4) = i] { reads A[v] writes "
                     "B[v] B[v] = A[v] } } }"),
                 Target{}),
             Unsupported);
}

}  // namespace prunerc

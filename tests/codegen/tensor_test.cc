// Tensor intrinsics in compiled code: the right instruction, the interpreter's result, or a reason.
#include "ir/printer.h"
#include "schedule/mapping/mapping.h"
#include "schedule/schedule.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

struct Types {
  const char* a;
  const char* b;
  const char* c;
  int group;
  const char* intrinsic;
};
constexpr Types kBytes = {"u8", "i8", "i32", 4, "x86_vpdpbusd_16x4"};
constexpr Types kHalves = {"bf16", "bf16", "f32", 2, "x86_vdpbf16ps_16x2"};

std::string product(const Types& t, int m, int n, int k) {
  const std::string rows = std::to_string(m), columns = std::to_string(n),
                    depth = std::to_string(k);
  const std::string c = t.c;
  return "program p(A: " + std::string(t.a) + "[" + rows + ", " + depth + "], B: " + t.b + "[" +
         depth + ", " + columns + "]) -> (C: " + c + "[" + rows + ", " + columns +
         "]) { for i in " + rows + " @L0 { for j in " + columns + " @L1 { for k in " + depth +
         " @L2 { block \"C\" @B0 [vi: S(" + rows + ") = i, vj: S(" + columns + ") = j, vk: R(" +
         depth + ") = k] { init { C[vi, vj] = 0" + c + " } C[vi, vj] = C[vi, vj] + " + c +
         "(A[vi, vk])*" + c + "(B[vk, vj]) } } } } }";
}

Program replayed(const Program& base, const std::string& steps) {
  const Result<schedule::Trace> trace = schedule::parse_trace(steps);
  REQUIRE_OK(trace);
  schedule::Schedule s(base, schedule::Verify::kEachStep);
  for (const schedule::Instruction& step : trace->instructions) REQUIRE_OK(s.apply(step));
  return s.program();
}

// B in panels of 16 columns, a product of 16 columns and `group` rows a step.
Program scheduled(const Types& t, const Program& base) {
  const std::string g = std::to_string(t.group);
  return replayed(
      base, "cache_read(@B0, 1, \"global\")\ntransform_layout(@B1, 0, \"(k, j) -> (k // " + g +
                ", j, k % " + g + ")\", [])\nsplit(@L1, [-1, 16])\nsplit(@L2, [-1, " + g +
                "])\nreorder([@L5, @L7, @L6, @L8])\ntensorize(@L6, \"" + t.intrinsic + "\")");
}

bool host_has(const char* feature) {
  return codegen::host_target(Target{}).llvm_features.find(feature) != std::string::npos;
}

TEST_CASE("integer dot products run as vpdpbusd and give the interpreter's bits") {
  if (!host_has("+avx512vnni")) return;
  for (const int rows : {1, 5}) {
    const Program base = parse_or_die(product(kBytes, rows, 48, 24));
    const Program s = scheduled(kBytes, base);
    INFO(print(s));
    CHECK(compare_with_interpreter(base, s, 3) == "");
    CHECK(compare_with_interpreter(s, s, 4) == "");
    const Result<std::string> text = codegen::emit_cpu(s, Target{}, codegen::EmitKind::kAssembly);
    REQUIRE_OK(text);
    CHECK(text->find("vpdpbusd") != std::string::npos);
  }
}

TEST_CASE("loops around an intrinsic may be of any kind, and guarded") {
  if (!host_has("+avx512vnni")) return;
  const Program base = parse_or_die(product(kBytes, 5, 48, 24));
  const Program s = scheduled(kBytes, base);
  for (const char* steps :
       {"vectorize(@L0)", "parallel(@L0)", "vectorize(@L5)", "unroll(@L5)\nunroll(@L7)",
        "split(@L0, [-1, 4])\nunroll(@L10)\nparallel(@L5)",
        "cache_write(@B0, 0, \"local\")\nreverse_compute_at(@B2, @L5)\nunroll(@L7)",
        "decompose_reduction(@B0, @L7)\nsplit(@L0, [-1, 2])\nvectorize(@L11)"}) {
    const Program changed = replayed(s, steps);
    INFO(print(changed));
    CHECK(compare_with_interpreter(base, changed, 6) == "");
  }
}

TEST_CASE("the extremes of bytes do not saturate on the way") {
  if (!host_has("+avx512vnni")) return;
  const Program base = parse_or_die(product(kBytes, 2, 16, 8));
  std::vector<Tensor> inputs = {Tensor(DType::kU8, {2, 8}), Tensor(DType::kI8, {8, 16})};
  for (int64_t i = 0; i < 16; ++i) inputs[0].set(i, 255.0);
  for (int64_t i = 0; i < 128; ++i) inputs[1].set(i, i % 3 == 0 ? 127.0 : -128.0);
  const Result<std::vector<Tensor>> got = compile_and_run(scheduled(kBytes, base), inputs);
  REQUIRE_OK(got);
  CHECK(first_difference(interpret_or_die(base, inputs), *got) == "");
}

TEST_CASE("bf16 dot products run as vdpbf16ps, exactly on small whole numbers") {
  if (!host_has("+avx512bf16")) return;
  const Program base = parse_or_die(product(kHalves, 3, 32, 12));
  const Program s = scheduled(kHalves, base);
  INFO(print(s));
  CHECK(compare_with_interpreter(base, s, 3) == "");
  const Result<std::string> text = codegen::emit_cpu(s, Target{}, codegen::EmitKind::kAssembly);
  REQUIRE_OK(text);
  CHECK(text->find("vdpbf16ps") != std::string::npos);
}

TEST_CASE("a convolution of bytes runs on the dot product that it is mapped onto") {
  if (!host_has("+avx512vnni")) return;
  const Program base = parse_or_die(
      "program conv(X: u8[2, 6, 6, 5], W: i8[3, 3, 5, 20]) -> (Y: i32[2, 4, 4, 20]) { for n in 2 { "
      "for h in 4 { for w in 4 { for f in 20 { for r in 3 { for s in 3 { for c in 5 { block \"Y\" "
      "@B0 "
      "[vn: S(2) = n, vh: S(4) = h, vw: S(4) = w, vf: S(20) = f, vr: R(3) = r, vs: R(3) = s, vc: "
      "R(5) "
      "= c] { init { Y[vn, vh, vw, vf] = 0i32 } Y[vn, vh, vw, vf] = Y[vn, vh, vw, vf] + i32(X[vn, "
      "vh + "
      "vr, vw + vs, vc])*i32(W[vr, vs, vc, vf]) } } } } } } } } }");
  const auto mappings = schedule::tensor_mappings(base, BlockId(0), "x86_vpdpbusd_16x4");
  REQUIRE_OK(mappings);
  REQUIRE(mappings->size() == 7);
  for (std::size_t i = 0; i < mappings->size(); i += 3) {
    schedule::Schedule s(base, schedule::Verify::kEachStep);
    REQUIRE_OK(schedule::apply_mapping(s, BlockId(0), (*mappings)[i]));
    INFO(print(s.program()));
    CHECK(compare_with_interpreter(base, s.program(), 5) == "");
    const Result<std::string> text =
        codegen::emit_cpu(s.program(), Target{}, codegen::EmitKind::kAssembly);
    REQUIRE_OK(text);
    CHECK(text->find("vpdpbusd") != std::string::npos);
  }
}

TEST_CASE("machines without the instruction refuse instead of computing otherwise") {
  const Program bytes = scheduled(kBytes, parse_or_die(product(kBytes, 2, 16, 8)));
  const Program halves = scheduled(kHalves, parse_or_die(product(kHalves, 2, 16, 8)));
  Target haswell;
  haswell.llvm_cpu = "haswell";
  Target icelake;
  icelake.llvm_cpu = "icelake-server";
  CHECK_DIAG(codegen::compile_cpu(bytes, haswell), TensorTarget);
  CHECK_DIAG(codegen::compile_cpu(halves, icelake), TensorTarget);
  CHECK(codegen::compile_cpu(bytes, icelake).ok());
}

TEST_CASE("intrinsics of other machines are refused") {
  const Types arm = {"i8", "i8", "i32", 4, "arm_sdot_4x4"};
  const Program base = parse_or_die(product(arm, 2, 4, 4));
  const Program s = replayed(
      base,
      "cache_read(@B0, 1, \"global\")\ntransform_layout(@B1, 0, \"(k, j) -> (j, k)\", [])\n"
      "tensorize(@L1, \"arm_sdot_4x4\")");
  CHECK_DIAG(codegen::compile_cpu(s, Target{}), TensorTarget);
  const Types half = {"f16", "f16", "f32", 16, "wmma_16x16x16_f16"};
  const Program cuda =
      replayed(parse_or_die(product(half, 16, 16, 16)), "tensorize(@L0, \"wmma_16x16x16_f16\")");
  CHECK_DIAG(codegen::compile_cpu(cuda, Target{}), TensorTarget);
}

TEST_CASE("an attribute that the loop does not deserve is found out") {
  auto marked = [](std::string_view name) {
    return parse_or_die(
        "program p(A: u8[4], B: i8[4, 16]) -> (C: i32[16]) { for i in 16 { C[i] = 0i32 } "
        "for i in 16 {tensor_" +
        std::string(name) + " = 1} { for k in 4 { C[i] = C[i] + i32(A[k])*i32(B[k, i]) } } }");
  };
  CHECK_DIAG(codegen::compile_cpu(marked("x86_nothing"), Target{}), TensorUnknown);
  Target icelake;
  icelake.llvm_cpu = "icelake-server";
  // Rows of B are not packed.
  CHECK_DIAG(codegen::compile_cpu(marked("x86_vpdpbusd_16x4"), icelake), TensorMismatch);
}

}  // namespace
}  // namespace prunerc

#include "ir/tensor/intrinsic.h"

#include "ir/parser.h"
#include "ir/tensor/registry.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

std::vector<int64_t> shape_of(const TensorIntrinsic& t, const TensorOperand& operand) {
  std::vector<int64_t> out;
  for (Expr e : t.description.buffer(operand.buffer).shape) out.push_back(e.as<IntImm>()->value);
  return out;
}

const TensorIntrinsic& tensor(std::string_view name) {
  const Result<const TensorIntrinsic*> found = find_tensor(name);
  REQUIRE_OK(found);
  return **found;
}

TEST_CASE("every registered text is an intrinsic with a name of its own") {
  std::set<std::string> names;
  for (const std::string& text : tensor_texts()) {
    const Result<TensorIntrinsic> read = parse_tensor(text);
    REQUIRE_OK(read);
    INFO(read->name);
    CHECK(names.insert(read->name).second);
    CHECK(!read->call.empty());
    CHECK((read->family == "cpu" || read->family == "cuda"));
  }
  CHECK(tensor_intrinsics().size() == names.size());
  for (const char* name :
       {"x86_vpdpbusd_16x4", "x86_vdpbf16ps_16x2", "arm_sdot_4x4", "wmma_16x16x16_f16",
        "wmma_16x16x16_bf16", "wmma_16x16x16_s8", "mma_m16n8k16_f16", "mma_m16n8k16_bf16",
        "mma_m16n8k8_tf32", "mma_m16n8k32_s8", "ldmatrix_x4_f16", "wgmma_m64n128k16_f16",
        "wgmma_m64n256k16_bf16", "wgmma_m64n64k8_tf32", "wgmma_m64n96k32_s8",
        "x86_tdpbssd_16x16x64", "x86_tdpbf16ps_4x16x16"}) {
    CHECK(names.count(name) == 1);
  }
}

TEST_CASE("every description runs, so that it says something") {
  for (const TensorIntrinsic& t : tensor_intrinsics()) {
    INFO(t.name);
    Rng rng(3);
    const std::vector<Tensor> inputs = random_inputs(t.description, rng);
    const std::vector<Tensor> outputs = interpret_or_die(t.description, inputs);
    REQUIRE(outputs.size() == 1);
    CHECK(outputs[0].shape == shape_of(t, *std::find_if(t.operands.begin(), t.operands.end(),
                                                        [](const TensorOperand& operand) {
                                                          return operand.is_output;
                                                        })));
  }
}

// What the lanes hold of an operand.
Tensor held(const TensorIntrinsic& t, const TensorOperand& operand, const Tensor& whole) {
  Tensor out(whole.dtype, {t.lanes, operand.registers});
  for (int64_t lane = 0; lane < t.lanes; ++lane) {
    for (int64_t reg = 0; reg < operand.registers; ++reg) {
      const std::vector<int64_t> at = operand.fragment.at(std::vector<int64_t>{lane, reg});
      int64_t flat = 0;
      for (std::size_t d = 0; d < at.size(); ++d) flat = flat * whole.shape[d] + at[d];
      out.set(lane * operand.registers + reg, whole.get(flat));
    }
  }
  return out;
}

TEST_CASE("lanes that compute as the implementation says hold what the description does") {
  int checked = 0;
  for (const TensorIntrinsic& t : tensor_intrinsics()) {
    if (!t.implementation.defined()) continue;
    INFO(t.name);
    Rng rng(5);
    std::vector<Tensor> inputs, registers;
    const TensorOperand* output = nullptr;
    for (const BufferId id : t.description.params()) {
      const auto operand = std::find_if(t.operands.begin(), t.operands.end(),
                                        [&](const TensorOperand& o) { return o.buffer == id; });
      if (operand->is_output) {
        output = &*operand;
        continue;
      }
      const DType dtype = t.description.buffer(id).dtype;
      const int64_t least = dtype == DType::kU8 ? 0 : -5;
      inputs.push_back(random_ints(dtype, shape_of(t, *operand), least, 5, rng));
      registers.push_back(held(t, *operand, inputs.back()));
    }
    REQUIRE(output != nullptr);
    const std::vector<Tensor> whole = interpret_or_die(t.description, inputs);
    const std::vector<Tensor> lanes = interpret_or_die(t.implementation, registers);
    CHECK(first_difference({held(t, *output, whole[0])}, lanes).empty());
    ++checked;
  }
  CHECK(checked == 20);  // all but ldmatrix, wgmma and tiles
}

TEST_CASE("fragments hold each element once, or once in every lane") {
  for (const TensorIntrinsic& t : tensor_intrinsics()) {
    for (const TensorOperand& operand : t.operands) {
      INFO(t.name << " " << operand.name);
      if (operand.in_shared || operand.in_tile) continue;
      const std::vector<int64_t> shape = shape_of(t, operand);
      std::map<std::vector<int64_t>, int> times;
      for (int64_t lane = 0; lane < t.lanes; ++lane) {
        for (int64_t reg = 0; reg < operand.registers; ++reg) {
          const std::vector<int64_t> at = operand.fragment.at(std::vector<int64_t>{lane, reg});
          for (std::size_t d = 0; d < at.size(); ++d) CHECK((0 <= at[d] && at[d] < shape[d]));
          ++times[at];
        }
      }
      int64_t elems = 1;
      for (int64_t e : shape) elems *= e;
      CHECK(static_cast<int64_t>(times.size()) == elems);
      for (const auto& [at, count] : times) CHECK(count == (operand.splat ? t.lanes : 1));
    }
  }
}

// The PTX manual's tables, written as it writes them: by cases over the register's number.
TEST_CASE("fragments of mma are those of the manual") {
  using At = std::vector<int64_t>;
  auto element = [](std::string_view name, std::size_t operand, int64_t lane, int64_t reg) {
    return tensor(name).operands[operand].fragment.at(std::vector<int64_t>{lane, reg});
  };
  for (int64_t lane = 0; lane < 32; ++lane) {
    const int64_t group = lane >> 2, thread = lane & 3;
    for (int64_t i = 0; i < 4; ++i) {  // accumulators of all m16n8 shapes
      const At at = {i < 2 ? group : group + 8, thread * 2 + (i & 1)};
      for (const char* name :
           {"mma_m16n8k16_f16", "mma_m16n8k16_bf16", "mma_m16n8k8_tf32", "mma_m16n8k32_s8"}) {
        CHECK(element(name, 0, lane, i) == at);
      }
    }
    // Two of them side by side are those of wmma.
    for (int64_t i = 0; i < 8; ++i) {
      At at = element("mma_m16n8k16_f16", 0, lane, i % 4);
      at[1] += i < 4 ? 0 : 8;
      for (const char* name : {"wmma_16x16x16_f16", "wmma_16x16x16_bf16", "wmma_16x16x16_s8"}) {
        CHECK(element(name, 0, lane, i) == at);
      }
    }
    for (int64_t i = 0; i < 8; ++i) {
      const bool upper = i < 2 || (i >= 4 && i < 6);
      const At a = {upper ? group : group + 8, thread * 2 + (i & 1) + (i < 4 ? 0 : 8)};
      CHECK(element("mma_m16n8k16_f16", 1, lane, i) == a);
      CHECK(element("mma_m16n8k16_bf16", 1, lane, i) == a);
      // ldmatrix.x4 fills the registers of A: matrix i // 2, row lane // 4.
      CHECK(element("ldmatrix_x4_f16", 0, lane, i) == a);
    }
    for (int64_t i = 0; i < 4; ++i) {
      const At b = {thread * 2 + (i & 1) + (i < 2 ? 0 : 8), group};
      CHECK(element("mma_m16n8k16_f16", 2, lane, i) == b);
      CHECK(element("mma_m16n8k16_bf16", 2, lane, i) == b);
      const At a_tf32 = {i == 0 || i == 2 ? group : group + 8, i < 2 ? thread : thread + 4};
      CHECK(element("mma_m16n8k8_tf32", 1, lane, i) == a_tf32);
    }
    for (int64_t i = 0; i < 2; ++i) {
      const At b_tf32 = {i == 0 ? thread : thread + 4, group};
      CHECK(element("mma_m16n8k8_tf32", 2, lane, i) == b_tf32);
    }
    for (int64_t i = 0; i < 16; ++i) {
      const bool upper = i < 4 || (i >= 8 && i < 12);
      const At a = {upper ? group : group + 8, thread * 4 + (i & 3) + (i < 8 ? 0 : 16)};
      CHECK(element("mma_m16n8k32_s8", 1, lane, i) == a);
    }
    for (int64_t i = 0; i < 8; ++i) {
      const At b = {thread * 4 + (i & 3) + (i < 4 ? 0 : 16), group};
      CHECK(element("mma_m16n8k32_s8", 2, lane, i) == b);
    }
  }
}

constexpr std::string_view kGood = R"(tensor t
needs cpu +x
lanes 2
call f
operand C [1] 1: (lane, reg) -> (lane)
operand A [1] 1: (lane, reg) -> (lane)
describes
program copy(A: f32[2]) -> (C: f32[2]) {
  for i in 2 { block "C" [v: S(2) = i] { C[v] = A[v] } }
})";

std::string with(std::string_view from, std::string_view to) { return replaced(kGood, from, to); }

TEST_CASE("malformed intrinsics are refused") {
  REQUIRE_OK(parse_tensor(kGood));
  CHECK_DIAG(parse_tensor(""), TensorText);
  CHECK_DIAG(parse_tensor(with("lanes 2", "lanes two")), TensorText);
  CHECK_DIAG(parse_tensor(with("lanes 2", "lines 2")), TensorText);
  CHECK_DIAG(parse_tensor(with("describes\n", "\n")), TensorText);
  CHECK_DIAG(parse_tensor(with("operand A [1]", "operand A [1, 1]")), TensorText);
  CHECK_DIAG(parse_tensor(with("operand A", "operand Z")), TensorText);
  CHECK_DIAG(parse_tensor(with("operand A [1] 1: (lane, reg) -> (lane)\n", "")), TensorText);
  CHECK_DIAG(parse_tensor(with("operand C [1] 1:", "operand C [1] 1")), TensorText);
  CHECK_DIAG(parse_tensor(with("operand C [1] 1:", "operand C 1:")), TensorText);
  CHECK_DIAG(parse_tensor(with("(lane, reg) -> (lane)", "(lane, reg) -> (line)")), IndexMapText);
  CHECK_DIAG(parse_tensor(with("= i]", "= i + 0*i]")), TensorText);
  CHECK_DIAG(parse_tensor(with("{ C[v] = A[v] }", "{ for k in 1 { C[v] = A[v] } }")), TensorText);
  const auto implemented = [](std::string_view a, std::string_view c) {
    return parse_tensor(std::string(kGood) + "\nimplements\nprogram lanes(A: " + std::string(a) +
                        ") -> (C: " + std::string(c) +
                        ") { for l in 2 { block \"C\" [v: S(2) = l] { C[v, 0] = A[v, 0] } } }");
  };
  REQUIRE_OK(implemented("f32[2, 1]", "f32[2, 1]"));
  CHECK_DIAG(implemented("f32[2, 2]", "f32[2, 1]"), TensorText);
  CHECK_DIAG(implemented("f32[4, 1]", "f32[2, 1]"), TensorText);
  CHECK_DIAG(implemented("f32[2, 1], B: f32[2, 1]", "f32[2, 1]"), TensorText);
  CHECK_DIAG(find_tensor("x86_nothing"), TensorUnknown);
}

Result<TensorMatch> match(std::string_view name, std::string_view program) {
  const Program p = parse_or_die(program);
  IrBuilder b(p);
  return match_tensor(b, *p.root().as<Loop>(), tensor(name), {});
}

// A nest of VNNI's shape with parts to exchange.
std::string vnni(std::string_view update, std::string_view shape_b = "i8[3, 16, 4]",
                 std::string_view loops = "for i in 16 { for k in 4 {") {
  return "program p(A: u8[5, 12], B: " + std::string(shape_b) +
         ", X: i8[12], D: u8[16, 4]) -> (C: i32[5, 32]) { " + std::string(loops) + " " +
         std::string(update) + " } } }";
}

TEST_CASE("a nest that computes what the intrinsic does is recognised") {
  const std::string_view update = "C[2, i + 16] = C[2, i + 16] + i32(A[3, k + 4])*i32(B[1, i, k])";
  const Result<TensorMatch> found = match("x86_vpdpbusd_16x4", vnni(update));
  REQUIRE_OK(found);
  REQUIRE(found->operands.size() == 3);
  CHECK(found->operands[0].base[1].as<IntImm>()->value == 16);
  CHECK(found->operands[1].base[1].as<IntImm>()->value == 4);
  CHECK(found->operands[2].base[0].as<IntImm>()->value == 1);
  // Commuted, loops exchanged, unit loops, a fused layout.
  CHECK(match("x86_vpdpbusd_16x4", vnni("C[2, i] = i32(B[1, i, k])*i32(A[3, k]) + C[2, i]")).ok());
  CHECK(match("x86_vpdpbusd_16x4", vnni("C[2, i] = C[2, i] + i32(A[3, k])*i32(B[1, i, k])",
                                        "i8[3, 16, 4]", "for k in 4 { for i in 16 {"))
            .ok());
  CHECK(match("x86_vpdpbusd_16x4",
              vnni("C[2, i] = C[2, i] + i32(A[3, k])*i32(B[i*4 + k + 64])", "i8[192]"))
            .ok());
}

TEST_CASE("a nest that differs from the intrinsic is refused with the difference") {
  const struct {
    std::string text;
    std::string_view reason;
  } cases[] = {
      {vnni("C[2, i] = C[2, i] + i32(A[3, k])*i32(B[1, k, i])"), "moves by 1 elements along 'i'"},
      {vnni("C[2, i] = C[2, i] + i32(A[k, 3])*i32(B[1, i, k])"), "moves by 12 elements along 'k'"},
      {vnni("C[2, i] = C[2, i] + i32(A[3, k])*i32(B[1, i, k])", "i8[3, 16, 4]",
            "for i in 8 { for k in 4 {"),
       "its loops have extents [8, 4]"},
      {vnni("C[2, i] = C[2, i] - i32(A[3, k])*i32(B[1, i, k])"), "an operation is"},
      {vnni("C[2, i] = C[2, i] + i32(X[k])*i32(B[1, i, k])"), "type i8 where u8"},
      {vnni("C[2, i] = C[2, i] + i32(D[i, k])*i32(B[1, i, k])"), "along 'i'"},
      {vnni("C[2, i] = C[1, i] + i32(A[3, k])*i32(B[1, i, k])"), "is accessed at two places"},
      {vnni("C[2, i] = C[2, i] + i32(A[3, k])*i32(B[1, i, k % 2])"), "is not affine"},
      {vnni("if i < 3 { C[2, i] = C[2, i] + i32(A[3, k])*i32(B[1, i, k]) }"), "inside its loops"},
  };
  for (const auto& c : cases) {
    INFO(c.text);
    const Result<TensorMatch> found = match("x86_vpdpbusd_16x4", c.text);
    CHECK_DIAG(found, TensorMismatch);
    INFO(found.error().message());
    CHECK(found.error().message().find(c.reason) != std::string::npos);
  }
}

}  // namespace
}  // namespace prunerc

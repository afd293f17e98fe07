#include "ir/tensor/registry.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace prunerc::ir {
namespace {

// A lane is one 32-bit element of the accumulator; four (two) narrow products go into each. A is
// the same for all lanes, B has each lane's elements side by side.
struct Dot {
  const char* name;
  const char* feature;
  const char* call;
  int lanes, group;
  int slots;  // tenths
  const char *a, *b, *c;
  bool b_first;  // of the call's two factors
};

// vpdpbusd takes bytes without a sign, then bytes with one. Two signed factors: A is moved up by
// 128, and what that adds is subtracted again. vpmaddwd: bytes are widened to 16 bits, so that no
// sum of pairs saturates; its sums are added. vdpbf16ps: pairs are added with one rounding each and
// denormals as zero, within the bound of a sum. Slots: measured on a Zen 5 core; elsewhere the
// second instruction may have no port of its own.
constexpr Dot kDots[] = {
    {"x86_vpdpbusd_16x4", "+avx512vnni", "llvm.x86.avx512.vpdpbusd.512", 16, 4, 10, "u8", "i8",
     "i32", false},
    {"x86_vpdpbusd_16x4_s8u8", "+avx512vnni", "llvm.x86.avx512.vpdpbusd.512", 16, 4, 10, "i8", "u8",
     "i32", true},
    {"x86_vpdpbusd_16x4_s8s8", "+avx512vnni", "llvm.x86.avx512.vpdpbusd.512", 16, 4, 12, "i8", "i8",
     "i32", false},
    {"x86_vdpbf16ps_16x2", "+avx512bf16", "llvm.x86.avx512bf16.dpbf16ps.512", 16, 2, 10, "bf16",
     "bf16", "f32", false},
    {"x86_vpmaddwd_16x2_u8s8", "+avx512bw", "llvm.x86.avx512.pmaddw.d.512", 16, 2, 13, "u8", "i8",
     "i32", false},
    {"x86_vpmaddwd_16x2_s8u8", "+avx512bw", "llvm.x86.avx512.pmaddw.d.512", 16, 2, 13, "i8", "u8",
     "i32", false},
    {"x86_vpmaddwd_16x2_s8s8", "+avx512bw", "llvm.x86.avx512.pmaddw.d.512", 16, 2, 13, "i8", "i8",
     "i32", false},
    {"x86_vpmaddwd_16x2_u8u8", "+avx512bw", "llvm.x86.avx512.pmaddw.d.512", 16, 2, 13, "u8", "u8",
     "i32", false},
    {"x86_vpmaddwd_8x2_u8s8", "+avx2", "llvm.x86.avx2.pmadd.wd", 8, 2, 13, "u8", "i8", "i32",
     false},
    {"x86_vpmaddwd_8x2_s8u8", "+avx2", "llvm.x86.avx2.pmadd.wd", 8, 2, 13, "i8", "u8", "i32",
     false},
    {"x86_vpmaddwd_8x2_s8s8", "+avx2", "llvm.x86.avx2.pmadd.wd", 8, 2, 13, "i8", "i8", "i32",
     false},
    {"x86_vpmaddwd_8x2_u8u8", "+avx2", "llvm.x86.avx2.pmadd.wd", 8, 2, 13, "u8", "u8", "i32",
     false},
};

std::string text_of(const Dot& d) {
  const std::string a = fmt::format("operand A [1] splat {}: (lane, reg) -> (reg)\n", d.group);
  const std::string b =
      fmt::format("operand B [{0}, 1] {0}: (lane, reg) -> (lane, reg)\n", d.group);
  return fmt::format(
      R"(
tensor {name}
needs cpu {feature}
lanes {lanes}
slots {slots}
call {call}
operand C [1] 1: (lane, reg) -> (lane)
{operands}describes
program dot(A: {a}[{group}], B: {b}[{lanes}, {group}]) -> (C: {c}[{lanes}]) {{
  for i in {lanes} {{ for k in {group} {{
    block "C" [vi: S({lanes}) = i, vk: R({group}) = k] {{
      init {{ C[vi] = 0{c} }}
      C[vi] = C[vi] + {c}(A[vk])*{c}(B[vi, vk])
  }} }} }}
}}
implements
program lanes(A: {a}[{lanes}, {group}], B: {b}[{lanes}, {group}]) -> (C: {c}[{lanes}, 1]) {{
  for l in {lanes} {{ for k in {group} {{
    block "C" [vl: S({lanes}) = l, vk: R({group}) = k] {{
      init {{ C[vl, 0] = 0{c} }}
      C[vl, 0] = C[vl, 0] + {c}(A[vl, vk])*{c}(B[vl, vk])
  }} }} }}
}})",
      fmt::arg("name", d.name), fmt::arg("feature", d.feature), fmt::arg("lanes", d.lanes),
      fmt::arg("slots", d.slots), fmt::arg("call", d.call), fmt::arg("group", d.group),
      fmt::arg("operands", d.b_first ? b + a : a + b), fmt::arg("a", d.a), fmt::arg("b", d.b),
      fmt::arg("c", d.c));
}

}  // namespace

std::vector<std::string> x86_tensor_texts() {
  std::vector<std::string> out;
  for (const Dot& dot : kDots) out.push_back(text_of(dot));
  return out;
}

}  // namespace prunerc::ir

// Products of matrix tiles, which AMX keeps in registers of their own.
#include "ir/tensor/registry.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace prunerc::ir {
namespace {

// Products of matrices in AMX's tile registers, which have up to 16 rows of up to 64 bytes: `rows` by
// 16 sums. What is multiplied is `depth` deep, in groups of as many elements as fit into 32 bits: a
// row of B holds a group of each of its 16 columns. Bytes give exact sums; of bf16 pairs are added
// first, denormals are zero, within the bound of a sum.
struct Type {
  const char* name;  // of the instruction
  const char* feature;
  int group;
  const char *a, *b, *c;
};
constexpr Type kTypes[] = {
    {"tdpbssd", "+amx-int8", 4, "i8", "i8", "i32"},
    {"tdpbsud", "+amx-int8", 4, "i8", "u8", "i32"},
    {"tdpbusd", "+amx-int8", 4, "u8", "i8", "i32"},
    {"tdpbuud", "+amx-int8", 4, "u8", "u8", "i32"},
    {"tdpbf16ps", "+amx-bf16", 2, "bf16", "bf16", "f32"},
};
/// Of fewer rows most of an instruction would be what starts it.
constexpr int kLeastRows = 4, kMostRows = 16;
/// Of 32 bits each: half of a row, all of it.
constexpr int kGroups[] = {8, 16};
/// A row takes a cycle of a unit that each core has once, beside two ports of multiply-adds.
constexpr int kTenthsOfSlots = 20;

// {0} instruction, {1} rows, {2} groups, {3} elements of one, {4} depth, {5} feature, {6} tenths of
// slots, {7} {8} {9} types of A, B and C
constexpr const char* kText = R"(
tensor x86_{0}_{1}x16x{4}
needs cpu {5}
slots {6}
call llvm.x86.{0}
operand C [*, 1] tile
operand A [*, {3}, 1] tile
operand B [*, {3}, 1] tile
describes
program dot(A: {7}[{1}, {2}, {3}], B: {8}[{2}, 16, {3}]) -> (C: {9}[{1}, 16]) {{
  for i in {1} {{ for j in 16 {{ for g in {2} {{ for k in {3} {{
    block "C" [vi: S({1}) = i, vj: S(16) = j, vg: R({2}) = g, vk: R({3}) = k] {{
      init {{ C[vi, vj] = 0{9} }}
      C[vi, vj] = C[vi, vj] + {9}(A[vi, vg, vk])*{9}(B[vg, vj, vk])
  }} }} }} }} }}
}}
)";

std::string text_of(const Type& t, int rows, int groups) {
  return fmt::format(kText, t.name, rows, groups, t.group, groups * t.group, t.feature,
                     rows * kTenthsOfSlots, t.a, t.b, t.c);
}

}  // namespace

std::vector<std::string> amx_tensor_texts() {
  std::vector<std::string> out;
  for (const Type& type : kTypes) {
    for (int rows = kLeastRows; rows <= kMostRows; ++rows) {
      for (const int groups : kGroups) out.push_back(text_of(type, rows, groups));
    }
  }
  return out;
}

}  // namespace prunerc::ir

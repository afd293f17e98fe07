#include "ir/tensor/registry.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace prunerc::ir {
namespace {

// How 8 x 8 matrices of 16-bit units become an operand of mma: `row` and `column` say which element
// of D a lane's register holds. What each lane gets from memory is its meaning. `call` exchanges
// the rows and columns of each matrix where it says trans: for B in row-major order.
struct Load {
  const char* call;
  int rows, columns, registers;
  const char *row, *column;
  bool by_columns;  // memory has D's columns as rows: B from a matrix with k along its rows
};

constexpr Load kA16 = {
    "x4", 16, 16, 8, "reg // 2 % 2*8 + lane // 4", "reg // 4*8 + lane % 4*2 + reg % 2", false};
// Two neighbouring operands B.
constexpr Load kTwoB16 = {
    "x4.trans", 16, 16, 8, "reg // 2 % 2*8 + lane % 4*2 + reg % 2", "reg // 4*8 + lane // 4",
    false};
constexpr Load kB16 = {"x2.trans",  16,   8, 4, "reg // 2*8 + lane % 4*2 + reg % 2",
                       "lane // 4", false};
constexpr Load kB16ByColumns = {"x2",        16,  8, 4, "reg // 2*8 + lane % 4*2 + reg % 2",
                                "lane // 4", true};
constexpr Load kA8 = {
    "x4", 16, 32, 16, "reg // 4 % 2*8 + lane // 4", "reg // 8*16 + lane % 4*4 + reg % 4", false};
constexpr Load kB8ByColumns = {"x2",        32,  8, 8, "reg // 4*16 + lane % 4*4 + reg % 4",
                               "lane // 4", true};

// A from a matrix with k along its rows.
constexpr Load kA16ByColumns = {
    "x4.trans", 16, 16, 8, "reg // 2 % 2*8 + lane // 4", "reg // 4*8 + lane % 4*2 + reg % 2", true};
// Two neighbouring operands B.
constexpr Load kTwoB16ByColumns = {
    "x4", 16, 16, 8, "reg // 2 % 2*8 + lane % 4*2 + reg % 2", "reg // 4*8 + lane // 4", true};
constexpr Load kTwoB8ByColumns = {
    "x4", 32, 16, 16, "reg // 4 % 2*16 + lane % 4*4 + reg % 4", "reg // 8*8 + lane // 4", true};

struct Variant {
  const char* name;
  const Load* load;
  const char* type;
};
constexpr Variant kVariants[] = {
    {"ldmatrix_x4_f16", &kA16, "f16"},
    {"ldmatrix_x4_bf16", &kA16, "bf16"},
    {"ldmatrix_x4_trans_f16", &kTwoB16, "f16"},
    {"ldmatrix_x4_trans_bf16", &kTwoB16, "bf16"},
    {"ldmatrix_x2_trans_f16", &kB16, "f16"},
    {"ldmatrix_x2_trans_bf16", &kB16, "bf16"},
    {"ldmatrix_x2_f16", &kB16ByColumns, "f16"},
    {"ldmatrix_x2_bf16", &kB16ByColumns, "bf16"},
    {"ldmatrix_x4_trans_a_f16", &kA16ByColumns, "f16"},
    {"ldmatrix_x4_trans_a_bf16", &kA16ByColumns, "bf16"},
    {"ldmatrix_x4_b_f16", &kTwoB16ByColumns, "f16"},
    {"ldmatrix_x4_b_bf16", &kTwoB16ByColumns, "bf16"},
    {"ldmatrix_x4_b_i8", &kTwoB8ByColumns, "i8"},
    {"ldmatrix_x4_i8", &kA8, "i8"},
    {"ldmatrix_x2_i8", &kB8ByColumns, "i8"},
};

// {0} name, {1} matrices, {2} registers, {3}, {4} row and column of D, {5}, {6} of S,
// {7} type, {8}, {9} extents of D, {10}, {11} of S, {12}, {13} indices of S
constexpr const char* kText = R"(
tensor {0}
needs cuda sm_75
lanes 32
call ldmatrix.sync.aligned.m8n8.{1}.shared.b16
operand D [*, *] {2}: (lane, reg) -> ({3}, {4})
operand S [*, 1] {2}: (lane, reg) -> ({5}, {6})
describes
program load(S: {7}[{10}, {11}]) -> (D: {7}[{8}, {9}]) {{
  for i in {8} {{ for j in {9} {{
    block "D" [vi: S({8}) = i, vj: S({9}) = j] {{ D[vi, vj] = S[{12}, {13}] }}
  }} }}
}}
)";

std::string text_of(const Variant& v) {
  const Load& l = *v.load;
  const bool turned = l.by_columns;
  return fmt::format(kText, v.name, l.call, l.registers, l.row, l.column, turned ? l.column : l.row,
                     turned ? l.row : l.column, v.type, l.rows, l.columns,
                     turned ? l.columns : l.rows, turned ? l.rows : l.columns, turned ? "vj" : "vi",
                     turned ? "vi" : "vj");
}

}  // namespace

std::vector<std::string> ldmatrix_tensor_texts() {
  std::vector<std::string> out;
  for (const Variant& v : kVariants) out.push_back(text_of(v));
  return out;
}

}  // namespace prunerc::ir

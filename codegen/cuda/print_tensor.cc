// Tensor instructions: their operands are registers of a warp (lower/analysis/fragment.h) or rows
// in shared memory.
#include "codegen/cuda/printer.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"

#include <fmt/format.h>

namespace prunerc::codegen {

using namespace ir;

namespace {

struct Instruction {
  std::string_view call;      // TensorIntrinsic::call
  std::string_view function;  // of the preludes
};
constexpr Instruction kInstructions[] = {
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "pr_mma_m16n8k16_f16"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "pr_mma_m16n8k16_bf16"},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "pr_mma_m16n8k8_tf32"},
    {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "pr_mma_m16n8k32_s8"},
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", "pr_ldmatrix_x4"},
    {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", "pr_ldmatrix_x4_trans"},
    {"ldmatrix.sync.aligned.m8n8.x2.shared.b16", "pr_ldmatrix_x2"},
    {"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", "pr_ldmatrix_x2_trans"},
};

const Instruction* find_instruction(std::string_view call) {
  for (const Instruction& one : kInstructions) {
    if (one.call == call) return &one;
  }
  return nullptr;
}

constexpr int64_t kRegisterBytes = 4;
constexpr int64_t kWarpLanes = 32;
/// Its features are not those of what comes after it.
constexpr std::string_view kHopper = "sm_90a";

}  // namespace

int64_t KernelPrinter::num_registers(BufferId id) {
  const Buffer& here = buffer(id);
  const auto it = fragments_.find(id);
  int64_t elems = 1;
  for (std::size_t d = num_lane_dims(id); d < here.shape.size(); ++d) {
    elems *= here.shape[d].as<IntImm>()->value;
  }
  return it == fragments_.end() ? elems : elems / it->second.lanes;
}

// The register of element `indices`, which thread `lane` holds as number `reg` of its tile.
std::optional<Expr> KernelPrinter::fragment_offset(BufferId id, std::span<const Expr> indices,
                                                   Expr lane, Expr reg) {
  const Fragment& fragment = fragments_.at(id);
  const std::optional<FragmentPlace> place =
      place_in_fragment(b_, fragment, indices, lane, reg, ranges_);
  if (!place) return std::nullopt;
  const Buffer& here = buffer(id);
  Expr offset = b_.int_imm(0);
  auto digit = [&](Expr value, int64_t extent) {
    offset = b_.add(b_.mul(offset, b_.int_imm(extent)), value);
  };
  for (std::size_t d = num_lane_dims(id); d < indices.size(); ++d) {
    const int as_int = static_cast<int>(d);
    if (as_int == fragment.dims[0] || as_int == fragment.dims[1]) continue;
    digit(indices[d], here.shape[d].as<IntImm>()->value);
  }
  for (std::size_t d = 0; d < 2; ++d) {
    const Expr extent = here.shape[static_cast<std::size_t>(fragment.dims[d])];
    digit(place->tile[d], extent.as<IntImm>()->value / fragment.tile[d]);
  }
  digit(reg, fragment.registers);
  return simplify(b_, offset, ranges_);
}

// The number of the thread at hand among those that hold the fragment.
std::optional<Expr> KernelPrinter::lane_of(const Fragment& fragment) {
  if (lane_ == nullptr) return std::nullopt;
  const int64_t row = kernel_.threads[0];
  if (rows_of_lanes(fragment.lanes, row, kernel_.threads[1]) == 1) return Expr(lane_);
  if (row_ == nullptr) return std::nullopt;
  return b_.add(b_.mul(Expr(row_), b_.int_imm(row)), Expr(lane_));
}

Expr KernelPrinter::fragment_flat(BufferId id, std::span<const Expr> indices) {
  const std::optional<Expr> lane = lane_of(fragments_.at(id));
  const std::optional<Expr> offset =
      lane && register_.defined() ? fragment_offset(id, indices, *lane, register_) : std::nullopt;
  if (offset) return *offset;
  failed_ =
      prunerc::error(Diag::kUnsupported, "an access to registers of a warp outside of its tiles");
  return b_.int_imm(0);
}

namespace {

// Does the second 8 x 8 matrix of a load stand beside the first in the source, or below it?
bool second_is_beside(const TensorIntrinsic& intrinsic, const TensorMatch::Operand& at,
                      int64_t matrices) {
  const TensorOperand& source = intrinsic.operands[1];
  const int64_t second[] = {0, source.registers / matrices};
  const std::size_t column_dim = at.strides[1] == 1 ? 1 : 0;
  return source.fragment.at(second)[column_dim] != 0;
}

}  // namespace

// The address of the row that each lane gives to ldmatrix: lane i that of row i % 8 of matrix
// i / 8.
std::string KernelPrinter::row_address(const TensorIntrinsic& intrinsic,
                                       const TensorMatch::Operand& at) {
  const VarRanges::Mark mark = ranges_.mark();
  const Var* lane = lane_;
  if (lane == nullptr) {
    lane = b_.fresh_var("lane");
    vars_[lane->id] = "tx";
    thread_vars_.insert(lane->id);
    ranges_.bind(lane, b_.int_imm(kWarpLanes));
  }
  const int64_t matrices = intrinsic.call.find(".x4.") != std::string::npos ? 4 : 2;
  const bool beside = second_is_beside(intrinsic, at, matrices);
  const auto digit = [&](int64_t lower, int64_t extent) {
    return b_.floormod(b_.floordiv(Expr(lane), b_.int_imm(lower)), b_.int_imm(extent));
  };
  // Lanes of the second and of the third matrix move on by these.
  Expr row = beside ? digit(1, 8) : digit(1, 16);
  Expr piece = beside ? digit(8, 2) : b_.int_imm(0);
  if (matrices == 4 && beside) row = b_.add(b_.mul(digit(16, 2), b_.int_imm(8)), row);
  if (matrices == 4 && !beside) piece = digit(16, 2);
  const int64_t elems = kSwizzlePiece / byte_size(buffer(at.buffer).dtype);
  const std::string text = row_address_at(at, row, b_.mul(piece, b_.int_imm(elems)));
  ranges_.rewind(mark);
  return text;
}

// The address `row` and `column` away from where the operand starts.
std::string KernelPrinter::row_address_at(const TensorMatch::Operand& at, Expr row, Expr column) {
  // Where the source is indexed with the columns first, its rows are the second dimension.
  const std::size_t row_dim = at.strides[1] == 1 ? 0 : 1;
  const int64_t piece = kSwizzlePiece / byte_size(buffer(at.buffer).dtype);
  const auto refused = [&](const char* what) {
    failed_ = prunerc::error(Diag::kUnsupported, what);
    return std::string();
  };
  constexpr const char* kUnaligned = "rows for ldmatrix that are not aligned to 16 bytes";
  if (storage_.swizzles.count(at.buffer) == 0) {
    if (at.strides[row_dim] % piece != 0 || !is_multiple(flat(at.buffer, at.base), piece))
      return refused(kUnaligned);
    Expr offset = b_.add(b_.mul(row, b_.int_imm(at.strides[row_dim])), column);
    return address(at.buffer, flat(at.buffer, at.base)) + " + " +
           index_value(simplify(b_, offset, ranges_)).text;
  }
  if (at.dims[0] < 0 || at.dims[1] < 0)
    return refused("rows of a swizzled matrix that cross its own");
  std::vector<Expr> indices = at.base;
  if (!is_multiple(indices[static_cast<std::size_t>(at.dims[1 - row_dim])], piece))
    return refused(kUnaligned);
  const auto shift = [&](std::size_t dim, Expr by) {
    Expr& index = indices[static_cast<std::size_t>(at.dims[dim])];
    index = b_.add(index, by);
  };
  shift(row_dim, row);
  shift(1 - row_dim, column);
  return address(at.buffer, flat(at.buffer, indices));
}

std::string KernelPrinter::tensor_operand(const TensorIntrinsic& intrinsic, std::size_t index,
                                          const TensorMatch::Operand& at) {
  if (fragments_.count(at.buffer) == 0) {
    const bool is_row =
        buffer(at.buffer).scope == Scope::kShared && intrinsic.call.substr(0, 8) == "ldmatrix";
    if (is_row) return row_address(intrinsic, at);
    failed_ = prunerc::error(
        Diag::kTensorTarget, intrinsic.name,
        "operand " + intrinsic.operands[index].name +
            (intrinsic.call.substr(0, 8) == "ldmatrix" ? " in scope shared" : " in scope local"),
        "this schedule");
    return "";
  }
  const std::optional<Expr> offset =
      fragment_offset(at.buffer, at.base, b_.int_imm(0), b_.int_imm(0));
  if (!offset) {
    failed_ = prunerc::error(Diag::kTensorTarget, intrinsic.name, "operands at whole tiles",
                             "this schedule");
    return "";
  }
  const DType dtype = buffer(at.buffer).dtype;
  const int64_t count = intrinsic.operands[index].registers * byte_size(dtype) / kRegisterBytes;
  if (!intrinsic.rounds.empty() && !intrinsic.operands[index].is_output) {
    return address(at.buffer, *offset);
  }
  const bool is_sum = intrinsic.operands[index].is_output && byte_size(dtype) == kRegisterBytes;
  return fmt::format("pr_regs<{}, {}>({})", is_sum ? register_type(dtype) : "unsigned", count,
                     address(at.buffer, *offset));
}

void KernelPrinter::tensor_loop(const Loop& loop, const TensorIntrinsic& intrinsic) {
  if (intrinsic.features == kHopper && target_.name.find(kHopper) == std::string::npos) {
    failed_ = prunerc::error(Diag::kTensorTarget, intrinsic.name, intrinsic.needs(), target_.name);
    return;
  }
  const Result<TensorMatch> match = match_tensor(b_, loop, intrinsic, ranges_);
  if (!match.ok()) {
    failed_ = match.error();
    return;
  }
  if (is_wgmma(intrinsic)) return warpgroup_product(intrinsic, *match);
  const Instruction* instruction = find_instruction(intrinsic.call);
  if (instruction == nullptr) {
    failed_ = prunerc::error(Diag::kTensorTarget, intrinsic.name, intrinsic.needs(),
                             std::string("the CUDA printer"));
    return;
  }
  line("{");
  ++indent_;
  std::vector<std::string> args;
  for (std::size_t i = 0; i < match->operands.size(); ++i) {
    const TensorOperand& operand = intrinsic.operands[i];
    std::string text = tensor_operand(intrinsic, i, match->operands[i]);
    if (failed_) return;
    if (!intrinsic.rounds.empty() && !operand.is_output) {
      const std::string rounded = fresh("v");
      line(fmt::format("unsigned {}[{}];", rounded, operand.registers));
      line(fmt::format("pr_to_{}({}, {});", intrinsic.rounds, rounded, text));
      text = rounded;
    }
    args.push_back(std::move(text));
  }
  line(fmt::format("{}({});", instruction->function, fmt::join(args, ", ")));
  close();
}

}  // namespace prunerc::codegen

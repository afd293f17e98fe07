// Rows of shared buffers get the padding that storage_align has asked for, against bank conflicts.
// Before: shapes are compact; a loop has the attribute align_BUFFER = factor << 32 | offset. After:
// a row's length is the next one that leaves `offset` when divided by `factor` (here 4 and 32).
//     buffer T: f32[32, 32] shared  for b in 8 bind(block.x) {align_2 = 137438953476} { alloc T ..
// ~>  buffer T: f32[32, 36] shared  for b in 8 bind(block.x) {align_2 = 137438953476} { alloc T ..
#include "codegen/gpu_storage.h"
#include "codegen/lower/passes.h"
#include "ir/builder.h"
#include "ir/int_math.h"
#include "ir/visit.h"

#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

bool pad(IrBuilder& b, BufferId id, int64_t factor, int64_t offset) {
  Buffer buffer = b.buffer(id);
  if (buffer.scope != Scope::kShared || factor < 1) return false;
  std::vector<Expr> shape(buffer.shape.begin(), buffer.shape.end());
  const int64_t now = shape.back().as<IntImm>()->value;
  const int64_t padding = floor_mod(offset - now, factor);
  shape.back() = b.int_imm(now + padding);
  buffer.shape = b.copy(shape);
  b.set_buffer(buffer);
  return padding != 0;
}

}  // namespace

Result<Program> pad_shared_rows(const Program& program, const Target&) {
  IrBuilder b(program);
  bool changed = false;
  walk(
      program.root(),
      [&](Stmt s) {
        const Loop* loop = s.as<Loop>();
        if (loop == nullptr) return true;
        for (const Attr& attr : loop->attrs) {
          const std::optional<BufferId> id = buffer_named_by(attr, kAlignAttr);
          if (!id) continue;
          changed = pad(b, *id, attr.value >> 32, attr.value & 0xffffffff) || changed;
        }
        return true;
      },
      [](Expr) {});
  return changed ? b.finish(program.root()) : program;
}

}  // namespace prunerc::codegen

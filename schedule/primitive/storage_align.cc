// set_scope(P, i, scope):
//     buffer T: f32[N] global    ~>    buffer T: f32[N] local
// storage_align(P, i, axis, factor, offset):
//     P: T[..] = f               ~>    P {align_factor_i_axis = factor, ..}: T[..] = f
// swizzle(P, i, bytes):
//     P: T[r, c] = f             ~>    P {swizzle_i = bytes}: T[r, c] = f
//
// An element of a swizzled buffer keeps its indices; what moves is its address (codegen/DESIGN.md,
// 30): rows are cut into panels of 32, 64 or 128 bytes, in which 16-byte pieces change places with
// the row, so that the same piece of eight rows lies in eight different banks.
//
// Requires: the i-th written buffer of the block is an intermediate; set_scope: in scope shared no
// thread loses a copy of its own that it needs; storage_align: axis within the rank (negative:
// from the end), factor from 1 on, offset from 0 below factor; swizzle: scope shared, rows of at
// least one panel in two dimensions or more (lowering refuses tiles without whole panels). A buffer
// is either aligned or swizzled. Legal because: a scope says where the buffer may live, an
// alignment how far apart its rows lie, a swizzle permutes addresses; lowering derives place and
// size from the accesses.
#include "ir/thread_axis.h"
#include "ir/visit.h"
#include "schedule/legality/concurrency.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/attributes.h"
#include "schedule/rewrite/site.h"

#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

class ScopePlan {
 public:
  const Buffer& changed() const { return changed_; }

 private:
  friend Result<ScopePlan> plan_scope(const Program&, BlockId, int64_t, const std::string&);
  Buffer changed_;
};

Result<Buffer> written_intermediate(const Program& program, const Block& block, int64_t index) {
  const std::span<const Access> writes = block.writes;
  if (index < 0 || index >= static_cast<int64_t>(writes.size())) {
    return error(Diag::kAccessIndexRange, block.id, static_cast<int64_t>(writes.size()), index);
  }
  const Buffer& buffer = program.buffer(writes[static_cast<std::size_t>(index)].buffer);
  if (buffer.role != BufferRole::kIntermediate) {
    return error(Diag::kBufferNotIntermediate, std::string(buffer.name));
  }
  return buffer;
}

Result<ScopePlan> plan_scope(const Program& program, BlockId id, int64_t index,
                             const std::string& name) {
  PRUNERC_TRY(const Site site, find_block(program, id));
  ScopePlan plan;
  PRUNERC_TRY(plan.changed_, written_intermediate(program, *site.block(), index));
  const std::optional<Scope> scope = scope_from_string(name);
  if (!scope) return error(Diag::kScopeUnknown, name);
  plan.changed_.scope = *scope;
  return plan;
}

// Loops with a thread axis.
std::vector<LoopId> bound_loops(const Program& program) {
  std::vector<LoopId> out;
  walk(
      program.root(),
      [&](Stmt s) {
        const Loop* loop = s.as<Loop>();
        if (loop != nullptr && is_thread_axis(loop->loop_kind)) out.push_back(loop->id);
        return s.as<Block>() == nullptr;
      },
      [](Expr) {});
  return out;
}

Applied apply_scope(const Program& program, const ScopePlan& plan) {
  IrBuilder b(program);
  b.set_buffer(plan.changed());
  Applied out;
  out.program = b.finish(program.root());
  return out;
}

class AlignPlan {
 public:
  const Site& site() const { return site_; }
  const std::string& place() const { return place_; }
  int64_t factor() const { return factor_; }
  int64_t offset() const { return offset_; }

 private:
  friend Result<AlignPlan> plan_align(const Program&, const Call&);
  Site site_;
  std::string place_;  // "W_A": written buffer and axis
  int64_t factor_ = 1, offset_ = 0;
};

// The value of an attribute by which some writer of the buffer asks for a layout.
std::optional<int64_t> find_layout(const Program& program, BufferId buffer,
                                   std::string_view prefix) {
  std::optional<int64_t> found;
  for (const Block* block : leaf_blocks(program.root())) {
    for (std::size_t w = 0; w < block->writes.size(); ++w) {
      if (block->writes[w].buffer != buffer) continue;
      const std::string key = std::string(prefix) + std::to_string(w);
      for (const Attr& attr : block->attrs) {
        if (attr.key == key || attr.key.substr(0, key.size() + 1) == key + "_") found = attr.value;
      }
    }
  }
  return found;
}

Error bad_argument(const char* what, const std::string& wanted, int64_t found) {
  return error(Diag::kAlignArgument, std::string(what), wanted, found);
}

Result<AlignPlan> plan_align(const Program& program, const Call& call) {
  AlignPlan plan;
  PRUNERC_TRY(plan.site_, find_block(program, call.block(0)));
  PRUNERC_TRY(const Buffer buffer,
              written_intermediate(program, *plan.site_.block(), call.integer(1)));
  const int64_t rank = static_cast<int64_t>(buffer.shape.size());
  const int64_t axis = call.integer(2);
  if (axis < -rank || axis >= rank) {
    return bad_argument("axis", "from " + std::to_string(-rank) + " below " + std::to_string(rank),
                        axis);
  }
  plan.factor_ = call.integer(3);
  plan.offset_ = call.integer(4);
  if (plan.factor_ < 1) return bad_argument("factor", "at least 1", plan.factor_);
  if (plan.offset_ < 0 || plan.offset_ >= plan.factor_) {
    return bad_argument("offset", "from 0 below the factor", plan.offset_);
  }
  if (const std::optional<int64_t> bytes = find_layout(program, buffer.id, kSwizzle)) {
    return error(Diag::kSwizzleForm, std::string(buffer.name), *bytes,
                 std::string("storage_align would move its rows"));
  }
  plan.place_ =
      std::to_string(call.integer(1)) + "_" + std::to_string(axis < 0 ? axis + rank : axis);
  return plan;
}

class SwizzlePlan {
 public:
  const Site& site() const { return site_; }
  const std::string& key() const { return key_; }
  int64_t bytes() const { return bytes_; }

 private:
  friend Result<SwizzlePlan> plan_swizzle(const Program&, const Call&);
  Site site_;
  std::string key_;
  int64_t bytes_ = 0;
};

Result<SwizzlePlan> plan_swizzle(const Program& program, const Call& call) {
  SwizzlePlan plan;
  PRUNERC_TRY(plan.site_, find_block(program, call.block(0)));
  PRUNERC_TRY(const Buffer buffer,
              written_intermediate(program, *plan.site_.block(), call.integer(1)));
  plan.bytes_ = call.integer(2);
  const auto unfit = [&](std::string why) {
    return error(Diag::kSwizzleForm, std::string(buffer.name), plan.bytes_, std::move(why));
  };
  if (plan.bytes_ != 32 && plan.bytes_ != 64 && plan.bytes_ != 128) {
    return unfit("a panel has 32, 64 or 128 bytes");
  }
  if (buffer.scope != Scope::kShared) return unfit("it is not in scope shared");
  if (buffer.shape.size() < 2) return unfit("it has no rows");
  const std::optional<int64_t> columns = constant(buffer.shape.back());
  if (columns && *columns * byte_size(buffer.dtype) < plan.bytes_) {
    return unfit("its rows are shorter");
  }
  if (find_layout(program, buffer.id, kAlignFactor)) return unfit("its rows are aligned already");
  plan.key_ = std::string(kSwizzle) + std::to_string(call.integer(1));
  return plan;
}

Applied apply_swizzle(const Program& program, const SwizzlePlan& plan) {
  IrBuilder b(program);
  Applied out;
  out.program = b.finish(
      replace_at(b, plan.site(), with_attr(b, plan.site().path.back(), plan.key(), plan.bytes())));
  return out;
}

Applied apply_align(const Program& program, const AlignPlan& plan) {
  IrBuilder b(program);
  Stmt block = plan.site().path.back();
  block = with_attr(b, block, std::string(kAlignFactor) + plan.place(), plan.factor());
  block = with_attr(b, block, std::string(kAlignOffset) + plan.place(), plan.offset());
  Applied out;
  out.program = b.finish(replace_at(b, plan.site(), block));
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kSetScope>(const Program& program, const Call& call) {
  PRUNERC_TRY(const ScopePlan plan,
              plan_scope(program, call.block(0), call.integer(1), call.text(2)));
  Applied out = apply_scope(program, plan);
  PRUNERC_TRY_VOID(recheck_concurrent(out.program, bound_loops(program)));
  return out;
}

template <>
Result<Applied> run<PrimitiveKind::kStorageAlign>(const Program& program, const Call& call) {
  PRUNERC_TRY(const AlignPlan plan, plan_align(program, call));
  return apply_align(program, plan);
}

template <>
Result<Applied> run<PrimitiveKind::kSwizzle>(const Program& program, const Call& call) {
  PRUNERC_TRY(const SwizzlePlan plan, plan_swizzle(program, call));
  return apply_swizzle(program, plan);
}

}  // namespace prunerc::schedule

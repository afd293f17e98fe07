// set_scope(P, i, scope):
//     buffer T: f32[N] global    ~>    buffer T: f32[N] local
//
// Requires: the i-th written buffer of the block is an intermediate.
// Legal because: a scope says where the buffer may live; lowering derives its place and size from
// its accesses.
#include "schedule/primitive.h"
#include "schedule/primitive/site.h"

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

Result<ScopePlan> plan_scope(const Program& program, BlockId id, int64_t index,
                             const std::string& name) {
  PRUNERC_TRY(const Site site, find_block(program, id));
  const std::span<const Access> writes = site.block()->writes;
  if (index < 0 || index >= static_cast<int64_t>(writes.size())) {
    return error(Diag::kAccessIndexRange, id, static_cast<int64_t>(writes.size()), index);
  }
  ScopePlan plan;
  plan.changed_ = program.buffer(writes[static_cast<std::size_t>(index)].buffer);
  if (plan.changed_.role != BufferRole::kIntermediate) {
    return error(Diag::kBufferNotIntermediate, std::string(plan.changed_.name));
  }
  const std::optional<Scope> scope = scope_from_string(name);
  if (!scope) return error(Diag::kScopeUnknown, name);
  plan.changed_.scope = *scope;
  return plan;
}

Applied apply_scope(const Program& program, const ScopePlan& plan) {
  IrBuilder b(program);
  b.set_buffer(plan.changed());
  Applied out;
  out.program = b.finish(program.root());
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kSetScope>(const Program& program, const Call& call) {
  PRUNERC_TRY(const ScopePlan plan,
              plan_scope(program, call.block(0), call.integer(1), call.text(2)));
  return apply_scope(program, plan);
}

}  // namespace prunerc::schedule

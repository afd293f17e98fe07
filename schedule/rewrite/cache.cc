#include "schedule/rewrite/cache.h"

#include "ir/analysis/region.h"
#include "ir/map.h"
#include "schedule/legality/access_region.h"
#include "schedule/rewrite/buffer.h"
#include "schedule/rewrite/nest.h"

#include <optional>
#include <string>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

bool writes_all(const Dataflow& flow, std::size_t place, const Buffer& buffer) {
  if (buffer.role == BufferRole::kOutput && flow.writers(buffer.id).size() == 1) return true;
  IrBuilder b(flow.program());
  VarRanges ranges(flow.program().domain());
  BufferRegion whole{buffer.id, {}};
  for (Expr extent : buffer.shape) whole.box.push_back({b.int_imm(0), extent});
  for (const Access& write : flow[place].block->writes) {
    if (write.buffer != buffer.id) continue;
    const BufferRegion box = access_box(b, flow[place], write, ranges);
    if (covers(b, box, whole, ranges) == Proof::kYes &&
        writes_whole_box(b, flow[place], write, ranges)) {
      return true;
    }
  }
  return false;
}

Error not_all_written(const Block& block, const Buffer& buffer) {
  return error(Diag::kRegionNotSolved, block.id, std::string(buffer.name),
               std::string("not every element is known to be written"));
}

namespace {

Result<void> check_constant_shape(const Block& block, const Buffer& buffer) {
  for (Expr extent : buffer.shape) {
    if (!is_closed(extent)) {
      return error(Diag::kRegionNotSolved, block.id, std::string(buffer.name),
                   std::string("its shape is not constant"));
    }
  }
  return {};
}

// for ax.. { to[ax..] = from[ax..] }. The declared regions name every variable, also where an extent
// of 1 would let rebuild_accesses write 0: kernels are named by a hash of the program.
Stmt copy_nest(IrBuilder& b, const Buffer& shape_of, BufferId from, BufferId to,
               const std::string& name, std::vector<Output>* outputs) {
  std::vector<Range> point;
  NewNest nest = make_nest(b, name, shape_of.shape, [&](std::span<const Expr> vars) {
    for (const Expr var : vars) point.push_back({var, b.int_imm(1)});
    return b.store(to, vars, b.load(from, vars));
  });
  const std::vector<Access> reads = {{from, b.copy(point)}};
  const std::vector<Access> writes = {{to, b.copy(point)}};
  StmtFn declare = [&](Stmt s) -> Stmt {
    const Block* made = s.as<Block>();
    if (made == nullptr) return map_children(b, s, declare, [](Expr e) { return e; });
    Block copy = *made;
    copy.reads = reads;
    copy.writes = writes;
    return b.block(copy);
  };
  outputs->insert(outputs->end(), nest.outputs.begin(), nest.outputs.end());
  return declare(nest.stmt);
}

Applied apply_cache(const Program& program, const Site& site, const Buffer& original, Scope scope,
                    CacheKind kind) {
  IrBuilder b(program);
  const BufferId cache =
      b.add_buffer(std::string(original.name) + "_" + std::string(to_string(scope)), original.dtype,
                   original.shape, scope, BufferRole::kIntermediate);
  const std::string name(b.buffer(cache).name);
  Applied out;
  std::vector<Stmt> statements;
  if (kind != CacheKind::kWrite) {
    statements.push_back(copy_nest(b, original, original.id, cache, name, &out.outputs));
  }
  // The block's own regions are redirected with its body.
  const Stmt redirected = replace_buffers(b, site.path.back(), BufferMap{{original.id, cache}});
  statements.push_back(replace_at(b, site.outermost_statement(), redirected));
  if (kind != CacheKind::kRead) {
    statements.push_back(copy_nest(b, original, cache, original.id, name + "_out", &out.outputs));
  }
  out.program = b.finish(replace_at(b, site, b.seq(statements), site.outermost_depth()));
  return out;
}

}  // namespace

Result<Applied> run_cache(const Program& program, const Call& call, CacheKind kind,
                          CacheCheck* check) {
  const Dataflow flow(program);
  PRUNERC_TRY(const std::size_t place, flow.find(call.block(0)));
  PRUNERC_TRY(const Site site, find_block(program, call.block(0)));
  const Block& block = *site.block();
  const std::span<const Access> accesses = kind == CacheKind::kWrite ? block.writes : block.reads;
  PRUNERC_TRY(const BufferId id, accessed_buffer(block, accesses, call.integer(1)));
  const std::optional<Scope> scope = scope_from_string(call.text(2));
  if (!scope) return error(Diag::kScopeUnknown, call.text(2));
  const Buffer buffer = program.buffer(id);
  PRUNERC_TRY_VOID(check_constant_shape(block, buffer));
  PRUNERC_TRY_VOID(on_instance(program, [&] { return check(flow, place, buffer); }));
  return apply_cache(program, site, buffer, *scope, kind);
}

}  // namespace prunerc::schedule

// cache_write(P, i, scope):                          cache_read(C, i, scope):
//     for i { P: Y[i] = f(i) }                           for j { C: Y[j] = g(T[j]) }
//   ~>                                                 ~>
//     for i { P: Y_local[i] = f(i) }                     for ax { copy: T_shared[ax] = T[ax] }
//     for ax { copy: Y[ax] = Y_local[ax] }               for j { C: Y[j] = g(T_shared[j]) }
//
// cache_inplace(B, i, scope), where B: T[i] = f(T[i]): a copy in, B on the copy alone, a copy out.
//
// The copy has the buffer's full shape and stands beside the outermost statement that holds the
// block; (reverse_)compute_at moves it and shrinks it to what is needed there.
//
// Requires: the block stands in no other block. cache_write: it is the sole writer, writes every
// element, and nobody in the same outermost statement reads the buffer. cache_read: the block does
// not write the buffer, and every element is written by a block of an earlier outermost statement
// (or it is an input). cache_inplace: B reads and writes the buffer, nobody else in its statement
// touches it, and an earlier statement writes every element. Legal because: the copy carries final
// values, element by element. Cost: O(size of the block).
#include "ir/analysis/region.h"
#include "schedule/legality/access_region.h"
#include "schedule/legality/dataflow.h"
#include "schedule/primitive.h"

#include <algorithm>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct CacheArgs {
  BlockId block;
  int64_t index;
  std::string scope;
};

enum class CacheKind : uint8_t { kRead, kWrite, kInplace };

class CachePlan {
 public:
  const Site& site() const { return site_; }
  BufferId buffer() const { return buffer_; }
  Scope scope() const { return scope_; }
  /// Depth in the site's path of the outermost statement that holds the block.
  std::size_t depth() const { return site_.path[0].as<Seq>() != nullptr ? 1 : 0; }

 private:
  friend Result<CachePlan> plan_cache(const Program&, const CacheArgs&, CacheKind);
  Site site_;
  BufferId buffer_;
  Scope scope_ = Scope::kGlobal;
};

Result<void> check_constant_shape(const Block& block, const Buffer& buffer) {
  for (Expr extent : buffer.shape) {
    if (!is_closed(extent)) {
      return error(Diag::kRegionNotSolved, block.id, std::string(buffer.name),
                   std::string("its shape is not constant"));
    }
  }
  return {};
}

// Does the block at `place` write every element of the buffer? An output is written whole by its
// only writer.
bool writes_all(const Flow& flow, std::size_t place, const Buffer& buffer) {
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

Error not_all(const Block& block, const Buffer& buffer) {
  return error(Diag::kRegionNotSolved, block.id, std::string(buffer.name),
               std::string("not every element is known to be written"));
}

bool same_statement(const Flow& flow, std::size_t x, std::size_t y) {
  return x == y || shared_loops(flow[x].loops, flow[y].loops) > 0;
}

Result<void> check_write(const Flow& flow, std::size_t place, const Buffer& buffer) {
  const Block& block = *flow[place].block;
  PRUNERC_TRY_VOID(check_sole_writer(flow, place));
  for (const std::size_t reader : flow.readers(buffer.id)) {
    if (reader == place || !same_statement(flow, reader, place)) continue;
    return error(Diag::kCacheReaderInside, flow[reader].block->id, std::string(buffer.name));
  }
  if (!writes_all(flow, place, buffer)) return not_all(block, buffer);
  return {};
}

Result<void> check_read(const Flow& flow, std::size_t place, const Buffer& buffer) {
  const Block& block = *flow[place].block;
  if (writes(block, buffer.id)) {
    return error(Diag::kBlockNotSimple, block.id, std::string("not write what it caches"));
  }
  if (buffer.role == BufferRole::kInput) return {};
  bool whole = false;
  for (const std::size_t writer : flow.writers(buffer.id)) {
    if (writer > place || same_statement(flow, writer, place)) {
      return error(Diag::kBlockProducerLate, block.id, flow[writer].block->id);
    }
    whole = whole || writes_all(flow, writer, buffer);
  }
  if (!whole) return not_all(block, buffer);
  return {};
}

Result<void> check_inplace(const Flow& flow, std::size_t place, const Buffer& buffer) {
  const Block& block = *flow[place].block;
  if (!writes(block, buffer.id)) {
    return error(Diag::kBlockNotSimple, block.id, std::string("write what it reads"));
  }
  bool whole = false;
  for (std::size_t other = 0; other < flow.blocks().size(); ++other) {
    const bool touches =
        reads(*flow[other].block, buffer.id) || writes(*flow[other].block, buffer.id);
    if (other == place || !touches) continue;
    if (same_statement(flow, other, place)) {
      return error(Diag::kCacheReaderInside, flow[other].block->id, std::string(buffer.name));
    }
    whole = whole || (other < place && writes_all(flow, other, buffer));
  }
  if (!whole) return not_all(block, buffer);
  return {};
}

Result<void> check_kind(const Flow& flow, std::size_t place, const Buffer& buffer, CacheKind kind) {
  switch (kind) {
    case CacheKind::kRead: return check_read(flow, place, buffer);
    case CacheKind::kWrite: return check_write(flow, place, buffer);
    case CacheKind::kInplace: return check_inplace(flow, place, buffer);
  }
  PRUNERC_UNREACHABLE("cache kind");
}

Result<CachePlan> plan_cache(const Program& program, const CacheArgs& args, CacheKind kind) {
  CachePlan plan;
  const Flow flow(program);
  PRUNERC_TRY(const std::size_t place, flow.find(args.block));
  PRUNERC_TRY(plan.site_, find_block(program, args.block));
  const Block& block = *flow[place].block;
  const std::span<const Access> accesses = kind == CacheKind::kWrite ? block.writes : block.reads;
  if (args.index < 0 || args.index >= static_cast<int64_t>(accesses.size())) {
    return error(Diag::kAccessIndexRange, args.block, static_cast<int64_t>(accesses.size()),
                 args.index);
  }
  const std::optional<Scope> scope = scope_from_string(args.scope);
  if (!scope) return error(Diag::kScopeUnknown, args.scope);
  plan.scope_ = *scope;
  plan.buffer_ = accesses[static_cast<std::size_t>(args.index)].buffer;
  const Buffer& buffer = program.buffer(plan.buffer_);
  PRUNERC_TRY_VOID(check_constant_shape(block, buffer));
  PRUNERC_TRY_VOID(on_instance(program, [&] { return check_kind(flow, place, buffer, kind); }));
  return plan;
}

// for ax.. { to[ax..] = from[ax..] }
Stmt copy_nest(IrBuilder& b, const Buffer& shape_of, BufferId from, BufferId to,
               const std::string& name, std::vector<Output>* outputs) {
  Block block{};
  block.id = b.fresh_block_id();
  block.name = name;
  std::vector<IterVar> iters;
  std::vector<const Var*> loop_vars;
  std::vector<Range> point;
  std::vector<Expr> indices;
  for (std::size_t d = 0; d < shape_of.shape.size(); ++d) {
    const Var* loop_var = b.fresh_var("ax" + std::to_string(d));
    const Var* var = b.fresh_var("v" + std::to_string(d));
    loop_vars.push_back(loop_var);
    iters.push_back({var, shape_of.shape[d], IterKind::kSpatial, loop_var});
    point.push_back({var, b.int_imm(1)});
    indices.push_back(var);
  }
  const std::vector<Access> reads = {{from, b.copy(point)}};
  const std::vector<Access> writes = {{to, b.copy(point)}};
  block.iters = iters;
  block.reads = reads;
  block.writes = writes;
  block.body = b.store(to, indices, b.load(from, indices));
  Stmt nest = b.block(block);
  outputs->push_back(block.id);
  std::vector<LoopId> ids;
  for (std::size_t d = 0; d < loop_vars.size(); ++d) ids.push_back(b.fresh_loop_id());
  for (std::size_t d = loop_vars.size(); d-- > 0;) {
    nest = make_loop(b, loop_vars[d], shape_of.shape[d], nest, ids[d]);
  }
  outputs->insert(outputs->end(), ids.begin(), ids.end());
  return nest;
}

Applied apply_cache(const Program& program, const CachePlan& plan, CacheKind kind) {
  IrBuilder b(program);
  const Buffer original = program.buffer(plan.buffer());
  const std::string scope(to_string(plan.scope()));
  const BufferId cache = b.add_buffer(std::string(original.name) + "_" + scope, original.dtype,
                                      original.shape, plan.scope(), BufferRole::kIntermediate);
  const std::string name(b.buffer(cache).name);
  Applied out;
  std::vector<Stmt> statements;
  if (kind != CacheKind::kWrite) {
    statements.push_back(copy_nest(b, original, original.id, cache, name, &out.outputs));
  }
  // The block's own regions are redirected with its body.
  const Stmt redirected =
      replace_buffers(b, plan.site().path.back(), BufferMap{{original.id, cache}});
  Site statement;
  statement.path.assign(plan.site().path.begin() + static_cast<std::ptrdiff_t>(plan.depth()),
                        plan.site().path.end());
  statements.push_back(replace_at(b, statement, redirected));
  if (kind != CacheKind::kRead) {
    statements.push_back(copy_nest(b, original, cache, original.id, name + "_out", &out.outputs));
  }
  out.program = b.finish(replace_at(b, plan.site(), b.seq(statements), plan.depth()));
  return out;
}

Result<Applied> run_cache(const Program& program, const Call& call, CacheKind kind) {
  PRUNERC_TRY(const CachePlan plan,
              plan_cache(program, {call.block(0), call.integer(1), call.text(2)}, kind));
  return apply_cache(program, plan, kind);
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kCacheRead>(const Program& program, const Call& call) {
  return run_cache(program, call, CacheKind::kRead);
}

template <>
Result<Applied> run<PrimitiveKind::kCacheWrite>(const Program& program, const Call& call) {
  return run_cache(program, call, CacheKind::kWrite);
}

template <>
Result<Applied> run<PrimitiveKind::kCacheInplace>(const Program& program, const Call& call) {
  return run_cache(program, call, CacheKind::kInplace);
}

}  // namespace prunerc::schedule

#include "tests/support/block_maker.h"

#include "ir/equal.h"
#include "ir/visit.h"

#include <algorithm>

namespace prunerc::testing {
namespace {

using namespace prunerc::ir;  // NOLINT: a source file of tests

Access access_of(IrBuilder& b, BufferId buffer, std::span<const Expr> indices) {
  bool is_plain = true;
  for (Expr index : indices) {
    walk(index, [&](Expr e) { return is_plain = is_plain && e.as<Load>() == nullptr; });
  }
  std::vector<Range> region;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    region.push_back(is_plain ? Range{indices[d], b.int_imm(1)}
                              : Range{b.int_imm(0), b.buffer(buffer).shape[d]});
  }
  return {buffer, b.copy(region)};
}

bool same_access(const Access& x, const Access& y) {
  return x.buffer == y.buffer &&
         std::equal(x.region.begin(), x.region.end(), y.region.begin(),
                    [](const Range& p, const Range& q) { return structural_equal(p.min, q.min); });
}

void collect_reads(IrBuilder& b, Expr e, std::vector<Access>* reads) {
  walk(e, [&](Expr part) {
    if (const Load* load = part.as<Load>()) {
      const Access access = access_of(b, load->buffer, load->indices);
      const bool known = std::any_of(reads->begin(), reads->end(),
                                     [&](const Access& a) { return same_access(a, access); });
      if (!known) reads->push_back(access);
    }
    return true;
  });
}

}  // namespace

Stmt make_block_nest(IrBuilder& b, const BlockSpec& spec) {
  std::vector<const Var*> loop_vars;
  std::vector<IterVar> iters;
  Exprs s, r;
  auto add_iters = [&](const std::vector<int64_t>& extents, const char* loop_name,
                       const char* iter_name, IterKind kind, Exprs* vars) {
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const Var* loop_var = b.fresh_var(loop_name + std::to_string(i));
      const Var* var = b.fresh_var(iter_name + std::to_string(i));
      loop_vars.push_back(loop_var);
      iters.push_back({var, b.int_imm(extents[i]), kind, Expr(loop_var)});
      vars->push_back(Expr(var));
    }
  };
  add_iters(spec.spatial, "i", "v", spec.spatial_kind, &s);
  add_iters(spec.reduce, "k", "r", IterKind::kReduce, &r);

  const Exprs at_indices = spec.store_at ? spec.store_at(s) : s;
  const Expr value = spec.value(s, r);
  Block block{};
  block.id = b.fresh_block_id();
  block.name = spec.name;
  block.iters = iters;
  std::vector<Access> reads;
  collect_reads(b, value, &reads);
  const std::vector<Access> writes = {access_of(b, spec.out, at_indices)};
  if (spec.init.defined()) {
    // A reduction's own accumulator is written; it does not count as read.
    std::erase_if(reads, [&](const Access& a) { return a.buffer == spec.out; });
    block.init = b.store(spec.out, at_indices, spec.init);
  }
  block.reads = reads;
  block.writes = writes;
  block.body = b.store(spec.out, at_indices, value);
  Stmt nest = b.block(block);

  std::vector<int> order = spec.loop_order;
  if (order.empty()) {
    for (int i = 0; i < static_cast<int>(iters.size()); ++i) order.push_back(i);
  }
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const auto i = static_cast<std::size_t>(*it);
    Loop loop{};
    loop.id = b.fresh_loop_id();
    loop.var = loop_vars[i];
    loop.extent = iters[i].extent;
    loop.loop_kind = LoopKind::kSerial;
    loop.body = nest;
    nest = b.loop(loop);
  }
  return nest;
}

}  // namespace prunerc::testing

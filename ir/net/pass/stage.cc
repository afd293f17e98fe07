#include "ir/net/pass/stage.h"

#include "ir/analysis/accumulator.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <set>
#include <utility>

namespace prunerc::net {

using ir::Block;
using ir::Buffer;
using ir::Expr;
using ir::Load;
using ir::Store;
using ir::VarId;

namespace {

Expr without_casts(Expr e) {
  while (const ir::Cast* cast = e.as<ir::Cast>()) e = cast->operand;
  return e;
}

// The factors of a product of products.
void collect_factors(Expr e, std::vector<Expr>* out) {
  e = without_casts(e);
  const ir::Mul* product = e.as<ir::Mul>();
  if (product == nullptr) {
    out->push_back(e);
    return;
  }
  collect_factors(product->lhs, out);
  collect_factors(product->rhs, out);
}

// What e reads along the sum.
std::set<ir::BufferId> summed_buffers(Expr e, const Stage& stage) {
  std::set<ir::BufferId> buffers;
  for (const Load* load : loads_of(e)) {
    if (mentions_any(*load, stage.reduce_vars)) buffers.insert(load->buffer);
  }
  return buffers;
}

bool are_apart(const std::set<ir::BufferId>& a, const std::set<ir::BufferId>& b) {
  return !a.empty() && !b.empty() &&
         std::none_of(a.begin(), a.end(), [&](ir::BufferId id) { return b.count(id) != 0; });
}

}  // namespace

int64_t extent_of(Expr e) { return ir::constant_value(e).value_or(0); }

int64_t num_elements(const Buffer& buffer) {
  int64_t n = 1;
  for (const Expr extent : buffer.shape) n *= extent_of(extent);
  return n;
}

std::vector<const Block*> blocks_of(const ir::Program& program) {
  std::vector<const Block*> blocks;
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
        if (const Block* block = s.as<Block>()) blocks.push_back(block);
        return true;
      },
      [](Expr) {});
  return blocks;
}

std::vector<const Load*> loads_of(Expr e) {
  std::vector<const Load*> loads;
  ir::walk(e, [&](Expr part) {
    if (const Load* load = part.as<Load>()) loads.push_back(load);
    return true;
  });
  return loads;
}

bool is_gather(const Load& load) {
  return std::any_of(load.indices.begin(), load.indices.end(), ir::has_load);
}

int64_t num_operations(Expr e) {
  int64_t count = 0;
  ir::walk(e, [&](Expr part) {
    if (part.as<Load>() != nullptr) return false;
    count += ir::as_binary(part) != nullptr || part.as<ir::Call>() != nullptr ||
             part.as<ir::Select>() != nullptr;
    return true;
  });
  return count;
}

std::optional<Stage> stage_of(const Block& block) {
  Stage stage;
  stage.block = &block;
  for (const ir::IterVar& iter : block.iters) {
    if (iter.kind == ir::IterKind::kOpaque) return std::nullopt;
    if (iter.kind == ir::IterKind::kReduce) stage.reduce_vars.push_back(iter.var->id);
  }
  stage.reduces = !stage.reduce_vars.empty();
  if (stage.reduces) {
    const std::optional<ir::Reducer> reducer = ir::match_reducer(block);
    if (!reducer) return std::nullopt;
    stage.store = reducer->store;
    stage.value = reducer->update;
    return stage;
  }
  stage.store = block.body.as<Store>();
  if (stage.store == nullptr) return std::nullopt;
  stage.value = stage.store->value;
  return stage;
}

bool same_shape(const Buffer& a, const Buffer& b) {
  return std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end(),
                    [](Expr x, Expr y) { return extent_of(x) == extent_of(y); });
}

bool same_shape_but_units(const Buffer& a, const Buffer& b) {
  const auto longer = [](const Buffer& buffer) {
    std::vector<int64_t> extents;
    for (const Expr extent : buffer.shape) {
      if (extent_of(extent) != 1) extents.push_back(extent_of(extent));
    }
    return extents;
  };
  return longer(a) == longer(b);
}

bool mentions_any(const Load& load, const std::vector<VarId>& vars) {
  return std::any_of(vars.begin(), vars.end(),
                     [&](VarId var) { return ir::mentions(load.indices, var); });
}

bool is_linear(const Stage& stage) {
  const ir::Mul* product = without_casts(stage.value).as<ir::Mul>();
  if (product == nullptr || stage.store->value.as<ir::Add>() == nullptr) return false;
  const Load* left = without_casts(product->lhs).as<Load>();
  const Load* right = without_casts(product->rhs).as<Load>();
  return left != nullptr && right != nullptr && left->buffer != right->buffer &&
         mentions_any(*left, stage.reduce_vars) && mentions_any(*right, stage.reduce_vars);
}

bool is_contraction(const Stage& stage) {
  if (stage.store->value.as<ir::Add>() == nullptr) return false;
  std::vector<Expr> factors;
  collect_factors(stage.value, &factors);
  std::vector<std::set<ir::BufferId>> reads;
  for (const Expr factor : factors) {
    std::set<ir::BufferId> own = summed_buffers(factor, stage);
    if (std::any_of(reads.begin(), reads.end(),
                    [&](const std::set<ir::BufferId>& other) { return are_apart(own, other); }))
      return true;
    reads.push_back(std::move(own));
  }
  return false;
}

bool reads_window(const Load& load, const Stage& stage) {
  return std::any_of(load.indices.begin(), load.indices.end(), [&](Expr index) {
    return ir::mentions(index, stage.reduce_vars) && ir::any_var(index, [&](VarId id) {
             return std::find(stage.reduce_vars.begin(), stage.reduce_vars.end(), id) ==
                    stage.reduce_vars.end();
           });
  });
}

}  // namespace prunerc::net

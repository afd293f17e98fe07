#include "search/algebra/lift.h"

#include "ir/analysis/accumulator.h"
#include "ir/equal.h"
#include "ir/query.h"
#include "ir/visit.h"
#include "search/algebra/lift_expr.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace prunerc::search::algebra {
namespace {

using ir::Expr;

/// Extent of an axis in a small program, however far apart the values of its digits lie.
constexpr int64_t kMostTwin = 64;

// A nest that is one block over its loops, as operators are written.
struct Nest {
  ir::Stmt root;
  const ir::Block* block = nullptr;
  std::vector<const ir::Loop*> loops;  // that of each iteration variable
  const ir::Store* store = nullptr;
  std::optional<ir::Reducer> reducer;
  Expr value;          // what is stored, or brought to the reduction
  int first_node = 0;  // of its iteration variables, in the union of axes
  bool lifted = false;
  std::vector<ir::BufferId> reads, writes;
  std::set<ir::BufferId> cut;  // of what it reads: intermediates that stay buffers
};

int iter_of(const ir::Block& block, ir::VarId var) {
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    if (block.iters[i].var->id == var) return static_cast<int>(i);
  }
  return -1;
}

// Which variables are one axis: union-find over iteration variables and dimensions of buffers.
class Axes {
 public:
  int add(int64_t extent) {
    parents_.push_back(static_cast<int>(parents_.size()));
    extents_.push_back(extent);
    return parents_.back();
  }
  int find(int node) const {
    while (parents_[static_cast<std::size_t>(node)] != node) {
      node = parents_[static_cast<std::size_t>(node)];
    }
    return node;
  }
  bool join(int a, int b) {
    a = find(a);
    b = find(b);
    if (extent(a) != extent(b)) return false;
    parents_[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
    return true;
  }
  int64_t extent(int node) const { return extents_[static_cast<std::size_t>(node)]; }
  std::vector<int> state() const { return parents_; }
  void restore(std::vector<int> state) { parents_ = std::move(state); }

 private:
  std::vector<int> parents_;
  std::vector<int64_t> extents_;
};

class Lift {
 public:
  explicit Lift(const ir::Program& program) : program_(program), builder_(program) {
    spec_.program = program;
  }

  Result<Spec> run() {
    PRUNERC_TRY_VOID(read_nests());
    for (Nest& nest : nests_) nest.lifted = is_liftable(nest);
    keep_shared_writes();
    name_dimensions();
    for (std::size_t i = 0; i < nests_.size(); ++i) join_reads(i);
    join_inputs();
    PRUNERC_TRY_VOID(number_axes());
    for (Nest& nest : nests_) make_term(nest);
    make_outputs();
    return std::move(spec_);
  }

 private:
  Result<void> read_nests() {
    const ir::Stmt root = program_.root();
    std::vector<ir::Stmt> roots;
    if (const auto* seq = root.defined() ? root.as<ir::Seq>() : nullptr) {
      roots.assign(seq->stmts.begin(), seq->stmts.end());
    } else if (root.defined()) {
      roots.push_back(root);
    }
    for (ir::Stmt s : roots) {
      nests_.push_back(read_nest(s));
      const Nest& nest = nests_.back();
      for (const ir::BufferId id : nest.writes) writers_[id].push_back(nests_.size() - 1);
    }
    for (const ir::Buffer& buffer : program_.buffers()) {
      for (Expr extent : buffer.shape) {
        if (!ir::constant_value(extent))
          return error(Diag::kUnsupported, "lifting symbolic extents");
      }
    }
    return {};
  }

  // The straight nest of one block, as far as it is one.
  Nest read_nest(ir::Stmt s) {
    Nest nest;
    nest.root = s;
    std::set<ir::BufferId> reads, writes;
    ir::walk(
        s,
        [&](ir::Stmt part) {
          if (const auto* store = part.as<ir::Store>()) writes.insert(store->buffer);
          return true;
        },
        [&](Expr e) {
          ir::walk(e, [&](Expr part) {
            if (const auto* load = part.as<ir::Load>()) reads.insert(load->buffer);
            return true;
          });
        });
    nest.writes.assign(writes.begin(), writes.end());
    nest.reads.assign(reads.begin(), reads.end());
    std::vector<const ir::Loop*> loops;
    ir::Stmt at = s;
    while (const auto* loop = at.as<ir::Loop>()) {
      loops.push_back(loop);
      at = loop->body;
    }
    const auto* block = at.as<ir::Block>();
    if (block == nullptr || block->iters.size() != loops.size() || block->guard.defined() ||
        block->combiner != nullptr) {
      return nest;
    }
    for (const ir::IterVar& iter : block->iters) {
      const auto* var = iter.binding.as<ir::Var>();
      const auto loop = std::find_if(loops.begin(), loops.end(), [&](const ir::Loop* l) {
        return var != nullptr && l->var->id == var->id;
      });
      const bool is_plain = loop != loops.end() && (*loop)->loop_kind == ir::LoopKind::kSerial &&
                            (*loop)->attrs.empty() && iter.kind != ir::IterKind::kOpaque &&
                            ir::constant_value(iter.extent).has_value() &&
                            ir::constant_value(iter.extent) == ir::constant_value((*loop)->extent);
      if (!is_plain || std::count(nest.loops.begin(), nest.loops.end(), *loop) > 0) return nest;
      nest.loops.push_back(*loop);
    }
    nest.block = block;
    return nest;
  }

  bool is_liftable(Nest& nest) {
    if (nest.block == nullptr || !nest.block->attrs.empty()) return false;
    const ir::Block& block = *nest.block;
    nest.store = block.body.as<ir::Store>();
    if (nest.store == nullptr) return false;
    nest.reducer = ir::match_reducer(block);
    const bool reduces = std::any_of(block.iters.begin(), block.iters.end(), [](const auto& iter) {
      return iter.kind == ir::IterKind::kReduce;
    });
    if (reduces != nest.reducer.has_value()) return false;
    nest.value = reduces ? nest.reducer->update : nest.store->value;
    if (reduces ? !starts_from_identity(nest) : block.init.defined()) return false;
    if (ir::loads_from(nest.value, nest.store->buffer)) return false;
    const Scope local = local_scope(nest);
    if (!writes_once(nest)) return false;
    const LoadFn load = [&](const ir::Load& l) { return lift_index(l.indices, local) ? 0 : -1; };
    return lift_value(nullptr, local, load, nest.value) >= 0;
  }

  bool starts_from_identity(const Nest& nest) {
    const auto* init = nest.block->init.defined() ? nest.block->init.as<ir::Store>() : nullptr;
    if (init == nullptr || init->buffer != nest.store->buffer) return false;
    const Expr identity = ir::identity_of(builder_, nest.reducer->op, nest.store->value.dtype());
    return ir::structural_equal(init->value, identity) &&
           ir::structural_equal(init->indices, nest.store->indices);
  }

  static Scope local_scope(const Nest& nest) {
    const ir::Block* block = nest.block;
    return {[block](ir::VarId var) { return iter_of(*block, var); },
            [block](AxisId i) {
              return ir::constant_value(block->iters[static_cast<std::size_t>(i)].extent).value();
            }};
  }

  // Each spatial variable is one subscript of the store, and there are no other subscripts.
  bool writes_once(const Nest& nest) const {
    const ir::Block& block = *nest.block;
    const ir::Buffer& buffer = program_.buffer(nest.store->buffer);
    std::set<int> plain;
    for (std::size_t d = 0; d < nest.store->indices.size(); ++d) {
      const auto* var = nest.store->indices[d].as<ir::Var>();
      const int i = var == nullptr ? -1 : iter_of(block, var->id);
      if (i < 0 || !plain.insert(i).second) return false;
      const Expr extent = block.iters[static_cast<std::size_t>(i)].extent;
      if (ir::constant_value(extent) != ir::constant_value(buffer.shape[d])) return false;
    }
    for (std::size_t i = 0; i < block.iters.size(); ++i) {
      const bool is_spatial = block.iters[i].kind == ir::IterKind::kSpatial;
      if (is_spatial != (plain.count(static_cast<int>(i)) > 0)) return false;
    }
    return true;
  }

  void keep_shared_writes() {
    for (const auto& [buffer, writers] : writers_) {
      if (writers.size() < 2) continue;
      for (const std::size_t i : writers) nests_[i].lifted = false;
    }
  }

  void name_dimensions() {
    for (const ir::Buffer& buffer : program_.buffers()) {
      std::vector<int>& dims = dims_[buffer.id];
      for (Expr extent : buffer.shape) dims.push_back(axes_.add(*ir::constant_value(extent)));
    }
    for (Nest& nest : nests_) {
      if (!nest.lifted) continue;
      nest.first_node = static_cast<int>(dims_.size());
      bool is_first = true;
      for (const ir::IterVar& iter : nest.block->iters) {
        const int node = axes_.add(*ir::constant_value(iter.extent));
        if (is_first) nest.first_node = node;
        is_first = false;
      }
      for (std::size_t d = 0; d < nest.store->indices.size(); ++d) {
        const auto* var = nest.store->indices[d].as<ir::Var>();
        axes_.join(node_of(nest, var->id), dims_[nest.store->buffer][d]);
      }
    }
  }

  static int node_of(const Nest& nest, ir::VarId var) {
    return nest.first_node + iter_of(*nest.block, var);
  }

  const Nest* producer(ir::BufferId buffer) const {
    const auto at = writers_.find(buffer);
    if (at == writers_.end() || !nests_[at->second[0]].lifted) return nullptr;
    return &nests_[at->second[0]];
  }

  // The loads of a buffer in the nest's value.
  static std::vector<const ir::Load*> loads_of(const Nest& nest, ir::BufferId buffer) {
    std::vector<const ir::Load*> out;
    ir::walk(nest.value, [&](Expr e) {
      const auto* load = e.as<ir::Load>();
      if (load != nullptr && load->buffer == buffer) out.push_back(load);
      return true;
    });
    return out;
  }

  // Unites the variables that a nest reads an intermediate at with those that it was written at. If
  // they cannot be one, the nest reads a buffer.
  void join_reads(std::size_t i) {
    Nest& nest = nests_[i];
    if (!nest.lifted) return;
    for (const ir::BufferId buffer : nest.reads) {
      const Nest* from = producer(buffer);
      if (from == nullptr || buffer == nest.store->buffer) continue;
      const std::vector<int> before = axes_.state();
      if (from > &nest || !join_loads(nest, buffer) || !is_consistent()) {
        axes_.restore(before);
        nest.cut.insert(buffer);
      }
    }
  }

  bool join_loads(const Nest& nest, ir::BufferId buffer) {
    for (const ir::Load* load : loads_of(nest, buffer)) {
      for (std::size_t d = 0; d < load->indices.size(); ++d) {
        const auto* var = load->indices[d].as<ir::Var>();
        const int dim = dims_[buffer][d];
        if (axes_.extent(dim) == 1 && ir::constant_value(load->indices[d]) == 0) continue;
        if (var == nullptr || !axes_.join(node_of(nest, var->id), dim)) return false;
      }
    }
    return true;
  }

  // Loops over one dimension of an input mean the same unless they meet.
  void join_inputs() {
    for (Nest& nest : nests_) {
      if (!nest.lifted) continue;
      for (const ir::BufferId buffer : nest.reads) {
        if (producer(buffer) != nullptr && nest.cut.count(buffer) == 0) continue;
        for (const ir::Load* load : loads_of(nest, buffer)) {
          for (std::size_t d = 0; d < load->indices.size(); ++d) {
            const auto* var = load->indices[d].as<ir::Var>();
            if (var == nullptr) continue;
            const std::vector<int> before = axes_.state();
            if (!axes_.join(node_of(nest, var->id), dims_[buffer][d]) || !is_consistent()) {
              axes_.restore(before);
            }
          }
        }
      }
    }
  }

  // Variables of one nest are different axes.
  bool is_consistent() const {
    for (const Nest& nest : nests_) {
      if (!nest.lifted) continue;
      std::set<int> own;
      for (std::size_t v = 0; v < nest.block->iters.size(); ++v) {
        if (!own.insert(axes_.find(nest.first_node + static_cast<int>(v))).second) return false;
      }
    }
    return true;
  }

  Result<void> number_axes() {
    std::set<std::string> names;
    for (const Nest& nest : nests_) {
      if (!nest.lifted) continue;
      for (std::size_t v = 0; v < nest.block->iters.size(); ++v) {
        const int root = axes_.find(nest.first_node + static_cast<int>(v));
        const auto [at, is_new] =
            axis_of_.try_emplace(root, static_cast<AxisId>(spec_.axes.size()));
        spec_.loops[nest.loops[v]->id] = at->second;
        if (!is_new) continue;
        std::string name(nest.loops[v]->var->name);
        while (!names.insert(name).second) name += "_";
        const int64_t extent = axes_.extent(root);
        spec_.axes.push_back({name, extent, std::min<int64_t>(extent, 2 + at->second % 3)});
      }
    }
    if (spec_.axes.size() > kMaxAxes) return error(Diag::kUnsupported, "lifting more than 64 axes");
    return {};
  }

  AxisId axis_of(int node) const { return axis_of_.at(axes_.find(node)); }

  void make_term(const Nest& nest) {
    if (!nest.lifted) return;
    const Scope scope = {
        [&](ir::VarId var) { return axis_of(node_of(nest, var)); },
        [&](AxisId axis) { return spec_.axes[static_cast<std::size_t>(axis)].extent; }};
    const LoadFn term_of = [&](const ir::Load& load) {
      const auto known = terms_.find(load.buffer);
      if (known != terms_.end() && nest.cut.count(load.buffer) == 0) return known->second;
      return spec_.graph.load(load.buffer, *lift_index(load.indices, scope),
                              program_.buffer(load.buffer).dtype);
    };
    TermId value = lift_value(&spec_.graph, scope, term_of, nest.value);
    if (nest.reducer) {
      AxisSet bound = 0;
      for (std::size_t v = 0; v < nest.block->iters.size(); ++v) {
        const AxisId axis = axis_of(nest.first_node + static_cast<int>(v));
        const bool reduces = nest.block->iters[v].kind == ir::IterKind::kReduce;
        if (reduces && scope.extent(axis) > 1) bound |= axis_bit(axis);
      }
      value = spec_.graph.reduce(nest.reducer->op, bound, value);
    }
    Named named{nest.store->buffer, {}};
    for (const int dim : dims_.at(nest.store->buffer)) named.dims.push_back(axis_of(dim));
    terms_[nest.store->buffer] = value;
    spec_.names.try_emplace(value, std::move(named));
  }

  // Digits of an axis need an extent at which they take two values; conditions that name a position
  // are said to have none such.
  void widen_twins(std::span<const TermId> roots) {
    const auto widen = [&](const Subscript& s) {
      for (const Digit& d : s.digits) {
        Axis& axis = spec_.axes[static_cast<std::size_t>(d.axis)];
        if (d.lower == 1 && d.extent == 0) continue;
        const int64_t period = d.lower * std::max<int64_t>(1, d.extent);
        const int64_t wanted = std::min(axis.extent, 2 * period);
        if (wanted > kMostTwin) spec_.names_positions = true;
        if (axis.twin > 0) axis.twin = std::max(axis.twin, std::min(wanted, kMostTwin));
      }
    };
    for (const TermId id : reachable(spec_.graph, roots)) {
      for (const Subscript& s : spec_.graph[id].index) widen(s);
      for (const Condition& c : spec_.graph[id].conditions) {
        widen(c.value);
        spec_.names_positions = spec_.names_positions || names_position(c, spec_.axes);
      }
    }
  }

  void make_outputs() {
    std::set<ir::BufferId> needed;
    for (const Nest& nest : nests_) {
      if (nest.lifted) {
        needed.insert(nest.cut.begin(), nest.cut.end());
      } else {
        needed.insert(nest.reads.begin(), nest.reads.end());
        spec_.kept.push_back({nest.root, nest.reads, nest.writes});
      }
    }
    std::vector<TermId> roots;
    for (const Nest& nest : nests_) {
      if (!nest.lifted) continue;
      const ir::BufferId buffer = nest.store->buffer;
      const bool is_output = program_.buffer(buffer).role == ir::BufferRole::kOutput;
      if (!is_output && needed.count(buffer) == 0) continue;
      Output output{buffer, {}, terms_.at(buffer)};
      for (const int dim : dims_.at(buffer)) output.index.push_back(plain_subscript(axis_of(dim)));
      roots.push_back(output.value);
      spec_.outputs.push_back(std::move(output));
    }
    widen_twins(roots);
    for (const TermId id : reachable(spec_.graph, roots)) {
      const TermOp op = spec_.graph[id].op;
      if (op == TermOp::kLoad) mark_followers(spec_.graph[id]);
      if (op == TermOp::kBinary || op == TermOp::kCall || op == TermOp::kReduce ||
          op == TermOp::kSelect) {
        ++spec_.num_lifted;
      }
    }
  }

  // Extents of what is read at sums of axes follow from those.
  void mark_followers(const Term& load) {
    if (producer(load.buffer) == nullptr) return;
    for (std::size_t d = 0; d < load.index.size(); ++d) {
      if (load.index[d].plain() >= 0 || load.index[d].digits.empty()) continue;
      spec_.axes[static_cast<std::size_t>(axis_of(dims_.at(load.buffer)[d]))].twin = 0;
    }
  }

  const ir::Program& program_;
  ir::IrBuilder builder_;  // of identities
  Spec spec_;
  std::vector<Nest> nests_;
  std::map<ir::BufferId, std::vector<std::size_t>> writers_;
  Axes axes_;
  std::map<ir::BufferId, std::vector<int>> dims_;
  std::map<int, AxisId> axis_of_;
  std::map<ir::BufferId, TermId> terms_;
};

}  // namespace

ir::BufferId add_buffer(Spec& spec, std::string name, std::vector<AxisId> dims, TermId value) {
  const ir::BufferId id(
      static_cast<int32_t>(spec.program.buffers().size() + spec.new_buffers.size()));
  Output output{id, {}, value};
  for (const AxisId axis : dims) output.index.push_back(plain_subscript(axis));
  spec.new_buffers.push_back({std::move(name), spec.graph[value].dtype, std::move(dims)});
  spec.outputs.push_back(std::move(output));
  return id;
}

AxisId add_axis(Spec& spec, std::string name, int64_t extent, int64_t twin) {
  spec.axes.push_back({std::move(name), extent, std::min(extent, twin)});
  return static_cast<AxisId>(spec.axes.size()) - 1;
}

Result<Spec> lift(const ir::Program& program) { return Lift(program).run(); }

}  // namespace prunerc::search::algebra

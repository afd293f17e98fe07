#include "codegen/lower/gpu/row_values.h"

#include "codegen/lower/analysis/statements.h"
#include "ir/equal.h"
#include "ir/query.h"

#include <algorithm>
#include <string>

namespace prunerc::codegen {

using namespace ir;

Nest nest_of(Stmt s) {
  Nest nest;
  nest.body = s;
  while (true) {
    const Loop* loop = nest.body.as<Loop>();
    const If* branch = nest.body.as<If>();
    if (loop != nullptr) {
      nest.loops.push_back(loop);
      nest.body = loop->body;
    } else if (branch != nullptr && !branch->else_body.defined()) {
      nest.conditions.push_back(branch->condition);
      nest.body = branch->then_body;
    } else {
      return nest;
    }
  }
}

namespace {

struct Touched {
  BufferId buffer;
  std::span<const Expr> indices;
};

// What a store touches, its target first.
std::vector<Touched> touched_by(const Store& store) {
  std::vector<Touched> out = {{store.buffer, store.indices}};
  const auto note = [&](Expr top) {
    walk(top, [&](Expr e) {
      if (const Load* load = e.as<Load>()) out.push_back({load->buffer, load->indices});
      return true;
    });
  };
  for (Expr index : store.indices) note(index);
  note(store.value);
  return out;
}

class RowFinder {
 public:
  RowFinder(IrBuilder& b, const Fragments& fragments) : b_(b), fragments_(fragments) {}

  Result<RowBuffers> run(Stmt body) {
    std::size_t before = 0;
    do {
      before = rows_.size();
      visit(body);
    } while (rows_.size() > before && !failed_);
    if (failed_) return *failed_;
    for (auto& [id, row] : rows_) row.in_lanes = add_lanes(id, row.dim);
    return std::move(rows_);
  }

 private:
  // Of what is not spread over lanes yet.
  void visit(Stmt s) {
    if (!s.defined()) return;
    const Loop* loop = s.as<Loop>();
    if (loop != nullptr &&
        (warp_intrinsic(*loop) != nullptr || loop->loop_kind == LoopKind::kThreadX)) {
      return;
    }
    if (const Store* store = s.as<Store>()) find_in(*store);
    for_each_child(
        s, [&](Stmt child) { visit(child); }, [](Expr) {});
  }

  void find_in(const Store& store) {
    const std::vector<Touched> all = touched_by(store);
    for (const Touched& one : all) {
      const auto fragment = fragments_.find(one.buffer);
      if (fragment != fragments_.end()) {
        for (const Touched& other : all) {
          if (!is_row_value(other.indices, fragment->second, one.indices)) continue;
          // What no fragment is reduced into every thread has whole.
          if (other.buffer != store.buffer && rows_.count(other.buffer) == 0) continue;
          const auto row = static_cast<std::size_t>(fragment->second.dims[0]);
          note(other, one.indices[row], &fragment->second);
        }
      }
      const auto row = rows_.find(one.buffer);
      if (row == rows_.end()) continue;
      for (const Touched& other : all) note(other, one.indices[row->second.dim], nullptr);
    }
  }

  void note(const Touched& found, Expr row, const Fragment* fragment) {
    const Buffer& buffer = b_.buffer(found.buffer);
    if (buffer.scope != Scope::kLocal || fragments_.count(found.buffer) != 0) return;
    const auto at = std::find_if(found.indices.begin(), found.indices.end(),
                                 [&](Expr index) { return structural_equal(index, row); });
    if (at == found.indices.end()) return;
    const auto dim = static_cast<std::size_t>(at - found.indices.begin());
    const auto [it, is_new] = rows_.try_emplace(found.buffer, RowBuffer{dim, {}});
    const IntImm* extent = buffer.shape[dim].as<IntImm>();
    const bool fits = extent != nullptr && extent->value % kRowsOfTile == 0;
    if (it->second.dim != dim || !fits || (fragment != nullptr && !has_row_pairs(*fragment))) {
      failed_ = error(Diag::kUnsupported, "values of rows '" + std::string(buffer.name) +
                                              "' in the lanes of such a fragment");
    }
  }

  BufferId add_lanes(BufferId id, std::size_t dim) {
    const Buffer buffer = b_.buffer(id);
    const int64_t tiles = buffer.shape[dim].as<IntImm>()->value / kRowsOfTile;
    const RowPlace all = {b_.int_imm(kWarpSize), b_.int_imm(tiles), b_.int_imm(kRowsOfLane)};
    return b_.add_buffer(std::string(buffer.name) + "_rows", buffer.dtype,
                         place_of_row(buffer.shape, dim, all), Scope::kLocal,
                         BufferRole::kIntermediate);
  }

  IrBuilder& b_;
  const Fragments& fragments_;
  RowBuffers rows_;
  std::optional<Error> failed_;
};

}  // namespace

Result<RowBuffers> find_row_buffers(IrBuilder& b, const Fragments& fragments, Stmt body) {
  return RowFinder(b, fragments).run(body);
}

std::vector<Expr> place_of_row(std::span<const Expr> indices, std::size_t dim,
                               const RowPlace& place) {
  std::vector<Expr> out = {place.lane};
  for (std::size_t d = 0; d < indices.size(); ++d) {
    if (d != dim) out.push_back(indices[d]);
  }
  out.insert(out.end(), {place.tile, place.half});
  return out;
}

namespace {

// The dimensions in which all accesses have one subscript.
std::vector<Expr> common_indices(const std::vector<Touched>& accesses) {
  std::vector<Expr> out;
  for (std::size_t d = 0; d < accesses[0].indices.size(); ++d) {
    const bool is_common =
        std::all_of(accesses.begin(), accesses.end(), [&](const Touched& access) {
          return structural_equal(access.indices[d], accesses[0].indices[d]);
        });
    if (is_common) out.push_back(accesses[0].indices[d]);
  }
  return out;
}

// Is the iteration of the loop known from the subscript? All else in it but the nest's loops is the same for the nest.
bool tells(Expr index, const Loop& loop, const Nest& nest) {
  const bool is_alone = std::none_of(nest.loops.begin(), nest.loops.end(), [&](const Loop* other) {
    return other != &loop && mentions(index, other->var->id);
  });
  return is_alone && step_of(index, loop.var->id).value_or(0) != 0;
}

}  // namespace

bool can_part(const Nest& nest) {
  const Seq* seq = nest.body.as<Seq>();
  if (seq == nullptr || !nest.conditions.empty()) return false;
  std::map<BufferId, std::vector<Touched>> accesses;
  std::map<BufferId, int> num_parts;
  for (Stmt part : seq->stmts) {
    std::set<BufferId> here;
    walk(
        part,
        [&](Stmt s) {
          const Store* store = s.as<Store>();
          if (store == nullptr) return true;
          for (const Touched& access : touched_by(*store)) {
            accesses[access.buffer].push_back(access);
            here.insert(access.buffer);
          }
          return true;
        },
        [](Expr) {});
    for (const BufferId id : loaded_buffers(part)) {
      if (here.insert(id).second) return false;  // a condition or an extent reads it
    }
    for (const BufferId id : here) ++num_parts[id];
  }
  for (const BufferId id : stored_buffers(nest.body)) {
    if (num_parts[id] < 2) continue;
    const std::vector<Expr> common = common_indices(accesses[id]);
    const bool is_own = std::all_of(nest.loops.begin(), nest.loops.end(), [&](const Loop* loop) {
      return constant_value(loop->extent) == 1 ||
             std::any_of(common.begin(), common.end(),
                         [&](Expr index) { return tells(index, *loop, nest); });
    });
    if (!is_own) return false;
  }
  return true;
}

}  // namespace prunerc::codegen

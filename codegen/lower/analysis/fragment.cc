#include "codegen/lower/analysis/fragment.h"

#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <set>
#include <string>

namespace prunerc::codegen {

using namespace ir;

namespace {

constexpr std::string_view kFamily = "cuda";

Fragment fragment_of(const TensorIntrinsic& intrinsic, const TensorOperand& operand,
                     const TensorMatch::Operand& at) {
  Fragment f;
  f.map = operand.fragment;
  f.lanes = intrinsic.lanes;
  f.registers = operand.registers;
  const Buffer& described = intrinsic.description.buffer(operand.buffer);
  for (std::size_t d = 0; d < 2; ++d) {
    f.tile[d] = described.shape[d].as<IntImm>()->value;
    f.dims[d] = at.dims[d];
  }
  return f;
}

// Is `wide` a row of tiles of `narrow`, in the order of its registers? ldmatrix fills several
// operands of mma at once.
bool is_row_of(const Fragment& wide, const Fragment& narrow) {
  if (wide.lanes != narrow.lanes || wide.dims != narrow.dims || wide.tile[0] != narrow.tile[0] ||
      wide.tile[1] % narrow.tile[1] != 0 || wide.registers % narrow.registers != 0) {
    return false;
  }
  for (int lane = 0; lane < wide.lanes; ++lane) {
    for (int reg = 0; reg < wide.registers; ++reg) {
      const int64_t whole[] = {lane, reg};
      const int64_t part[] = {lane, reg % narrow.registers};
      std::vector<int64_t> expected = narrow.map.at(part);
      expected[1] += reg / narrow.registers * narrow.tile[1];
      if (wide.map.at(whole) != expected) return false;
    }
  }
  return true;
}

class FragmentFinder {
 public:
  explicit FragmentFinder(IrBuilder& b) : b_(b) {}

  Result<Fragments> run(Stmt s) {
    visit(s);
    if (failed_) return *failed_;
    while (spread(s)) {
    }
    if (failed_) return *failed_;
    return std::move(found_);
  }

 private:
  void visit(Stmt s) {
    if (!s.defined() || failed_) return;
    const VarRanges::Mark mark = ranges_.mark();
    if (const Loop* loop = s.as<Loop>()) {
      if (const TensorIntrinsic* intrinsic = warp_intrinsic(*loop)) {
        note(*loop, *intrinsic);
        return ranges_.rewind(mark);
      }
      ranges_.bind(loop->var, loop->extent);
    }
    for_each_child(
        s, [&](Stmt child) { visit(child); }, [](Expr) {});
    ranges_.rewind(mark);
  }

  void note(const Loop& loop, const TensorIntrinsic& intrinsic) {
    const Result<TensorMatch> match = match_tensor(b_, loop, intrinsic, ranges_);
    if (!match.ok()) {
      failed_ = match.error();
      return;
    }
    for (std::size_t i = 0; i < intrinsic.operands.size(); ++i) {
      const TensorMatch::Operand& at = match->operands[i];
      if (intrinsic.operands[i].in_shared) continue;
      if (b_.buffer(at.buffer).scope != Scope::kLocal) continue;
      if (at.dims.size() != 2 || at.dims[0] < 0 || at.dims[1] < 0) return refuse(at.buffer);
      add(at.buffer, fragment_of(intrinsic, intrinsic.operands[i], at));
    }
  }

  void add(BufferId id, const Fragment& fragment) {
    const int rank = static_cast<int>(b_.buffer(id).shape.size());
    if (fragment.dims[0] >= rank || fragment.dims[1] >= rank) return refuse(id);
    const auto [it, is_new] = found_.emplace(id, fragment);
    if (is_new || it->second == fragment || is_row_of(fragment, it->second)) return;
    if (is_row_of(it->second, fragment)) {
      it->second = fragment;
    } else {
      refuse(id);
    }
  }

  void refuse(BufferId id) {
    failed_ = error(Diag::kUnsupported, "spreading '" + std::string(b_.buffer(id).name) +
                                            "' over the lanes of a warp in two ways");
  }

  // Registers that meet fragments at the same indices in one statement are fragments as well.
  bool spread(Stmt s) {
    bool grew = false;
    walk(
        s,
        [&](Stmt x) {
          const Loop* loop = x.as<Loop>();
          if (loop != nullptr && warp_intrinsic(*loop) != nullptr) return false;
          if (loop != nullptr && loop->loop_kind == LoopKind::kThreadX)
            lanes_.insert(loop->var->id);
          if (const Store* store = x.as<Store>()) grew = spread_in(*store) || grew;
          return true;
        },
        [](Expr) {});
    return grew;
  }

  struct LocalAccess {
    BufferId buffer;
    std::span<const Expr> indices;
  };

  // A thread's own by its first subscript, as values of rows are behind distribute_fragments.
  bool is_of_thread(const LocalAccess& access) const {
    const Var* var = access.indices.empty() ? nullptr : access.indices[0].as<Var>();
    return var != nullptr && lanes_.count(var->id) != 0;
  }

  bool spread_in(const Store& store) {
    std::vector<LocalAccess> local, fragments;
    auto note = [&](BufferId id, std::span<const Expr> indices) {
      if (b_.buffer(id).scope != Scope::kLocal) return;
      if (found_.count(id) != 0) {
        fragments.push_back({id, indices});
      } else if (b_.buffer(id).shape.size() >= 2 && !is_of_thread({id, indices})) {
        local.push_back({id, indices});
      }
    };
    note(store.buffer, store.indices);
    walk(store.value, [&](Expr e) {
      if (const Load* load = e.as<Load>()) note(load->buffer, load->indices);
      return true;
    });
    if (fragments.empty()) return false;
    bool grew = narrow(fragments);
    const Fragment same = found_.at(fragments.back().buffer);
    for (const LocalAccess& access : local) {
      if (is_row_value(access.indices, same, fragments.back().indices)) continue;
      add(access.buffer, at_same_indices(same, fragments.back(), access));
      grew = true;
    }
    return grew;
  }

  // Of a buffer with other dimensions those that are subscripted alike.
  static Fragment at_same_indices(Fragment fragment, const LocalAccess& from,
                                  const LocalAccess& to) {
    for (int& dim : fragment.dims) {
      const Expr wanted = from.indices[static_cast<std::size_t>(dim)];
      if (static_cast<std::size_t>(dim) < to.indices.size() &&
          structural_equal(to.indices[static_cast<std::size_t>(dim)], wanted)) {
        continue;
      }
      const auto at = std::find_if(to.indices.begin(), to.indices.end(),
                                   [&](Expr index) { return structural_equal(index, wanted); });
      if (at != to.indices.end()) dim = static_cast<int>(at - to.indices.begin());
    }
    return fragment;
  }

  // Of two fragments that meet the one whose tiles are rows of the other's tiles takes these: a result may be a factor.
  bool narrow(const std::vector<LocalAccess>& met) {
    bool grew = false;
    for (const LocalAccess& one : met) {
      for (const LocalAccess& other : met) {
        const Fragment narrow = found_.at(other.buffer);
        Fragment& wide = found_.at(one.buffer);
        if (wide == narrow || wide.map == narrow.map || !is_row_of(wide, in_dims_of(narrow, wide)))
          continue;
        if (!are_alike(one, other)) {
          refuse(one.buffer);
          return false;
        }
        wide = in_dims_of(narrow, wide);
        grew = true;
      }
    }
    return grew;
  }

  // Are their rows and columns the same subscripts?
  bool are_alike(const LocalAccess& one, const LocalAccess& other) const {
    const Fragment &x = found_.at(one.buffer), &y = found_.at(other.buffer);
    return std::equal(x.dims.begin(), x.dims.end(), y.dims.begin(), [&](int i, int j) {
      return structural_equal(one.indices[static_cast<std::size_t>(i)],
                              other.indices[static_cast<std::size_t>(j)]);
    });
  }

  // The tiles of the one in the dimensions of the other.
  static Fragment in_dims_of(const Fragment& tiles, const Fragment& other) {
    Fragment out = tiles;
    out.dims = other.dims;
    return out;
  }

  IrBuilder& b_;
  VarRanges ranges_;
  Fragments found_;
  std::set<VarId> lanes_;  // of loops over thread.x
  std::optional<Error> failed_;
};

}  // namespace

const TensorIntrinsic* warp_intrinsic(const Loop& loop) {
  const std::optional<std::string_view> name = tensor_of(loop);
  if (!name) return nullptr;
  const Result<const TensorIntrinsic*> found = find_tensor(*name);
  return found.ok() && (*found)->family == kFamily ? *found : nullptr;
}

Result<Fragments> find_fragments(IrBuilder& b, Stmt s) { return FragmentFinder(b).run(s); }

int64_t contiguous_registers(const Fragment& fragment) {
  int64_t run = 1;
  for (int64_t wanted = 2; fragment.registers % wanted == 0; wanted *= 2) {
    for (int lane = 0; lane < fragment.lanes; ++lane) {
      for (int reg = 0; reg < fragment.registers; ++reg) {
        const int64_t first[] = {lane, reg / wanted * wanted};
        const int64_t here[] = {lane, reg};
        std::vector<int64_t> expected = fragment.map.at(first);
        expected[1] += reg % wanted;
        if (fragment.map.at(here) != expected) return run;
      }
    }
    run = wanted;
  }
  return run;
}

bool is_row_value(std::span<const Expr> indices, const Fragment& fragment,
                  std::span<const Expr> fragment_indices) {
  const Expr row = fragment_indices[static_cast<std::size_t>(fragment.dims[0])];
  const Expr column = fragment_indices[static_cast<std::size_t>(fragment.dims[1])];
  const bool is_at_row = std::any_of(indices.begin(), indices.end(),
                                     [&](Expr index) { return structural_equal(index, row); });
  return is_at_row &&
         any_var(column, [&](VarId id) { return !mentions(row, id) && !mentions(indices, id); });
}

bool has_row_pairs(const Fragment& fragment) {
  constexpr int kRegisters = 4;
  if (fragment.lanes != 32 || fragment.registers != kRegisters ||
      fragment.tile != std::array<int64_t, 2>{kRowsOfTile, 8}) {
    return false;
  }
  for (int lane = 0; lane < fragment.lanes; ++lane) {
    for (int reg = 0; reg < kRegisters; ++reg) {
      const int64_t at[] = {lane, reg};
      const std::vector<int64_t> expected = {reg / 2 * 8 + lane / kLanesOfRow,
                                             lane % kLanesOfRow * 2 + reg % 2};
      if (fragment.map.at(at) != expected) return false;
    }
  }
  return true;
}

std::optional<FragmentPlace> place_in_fragment(IrBuilder& b, const Fragment& fragment,
                                               std::span<const Expr> indices, Expr lane, Expr reg,
                                               const VarRanges& ranges) {
  const Expr inputs[] = {lane, reg};
  const std::vector<Expr> within = fragment.map.apply(b, inputs);
  FragmentPlace place;
  for (std::size_t d = 0; d < 2; ++d) {
    Expr index = indices[static_cast<std::size_t>(fragment.dims[d])];
    const Linear start = to_linear(b, b.sub(index, within[d]), ranges);
    const int64_t tile = fragment.tile[d];
    if (start.overflow || start.has_data || start.constant % tile != 0 ||
        coefficient_gcd(start) % tile != 0) {
      return std::nullopt;
    }
    place.tile[d] = simplify(b, b.floordiv(to_expr(b, start), b.int_imm(tile)), ranges);
  }
  return place;
}

}  // namespace prunerc::codegen

// Registers shrink to what one thread touches, without gaps.
// Before: a buffer of scope local has one tile for all threads. After: only the digits of an index
// that count inside of a thread are left, packed; a buffer that lives in several thread loops gets
// the thread as leading dimensions, so that the program keeps its meaning. The printer drops those.
//     buffer L: f32[128] local    for v in 2 bind(vthread.x) { for t in 16 bind(thread.x) {
//                                   for i in 4 { L[v*64 + t*4 + i] = 0f32 } } }  ..
// ~>  buffer L: f32[16, 8] local  ..  L[t, v*4 + i] = 0f32 ..
#include "codegen/lower/analysis/kernel.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/thread_axis.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

// A part of an index that counts: coefficient * value, 0 <= value < extent.
struct Digit {
  int64_t coefficient = 1;
  int64_t extent = 1;
  bool operator==(const Digit&) const = default;
};

// One index of one access: base (of the thread and what is around the Alloc) + constant + digits.
struct Subscript {
  Linear base;
  int64_t constant = 0;
  std::vector<std::pair<Digit, Term>> inner;  // by coefficient
};

// How one dimension is stored. Digits are packed without the gaps between them.
struct Dimension {
  bool seen = false;
  bool whole = false;   // kept as it was: some index has another form
  bool is_lane = true;  // the thread's number in a row, or that of another thread of the warp
  Linear base;
  int64_t low = 0, high = 0;  // of constant + digits
  bool same_digits = true;    // all accesses have these, and the same constant
  std::vector<Digit> digits;  // merged where they touch
  int64_t extent = 1;
};

// (1, 4), (4, 2) ~> (1, 8)
std::vector<Digit> merged(const std::vector<std::pair<Digit, Term>>& inner) {
  std::vector<Digit> out;
  for (const auto& [digit, term] : inner) {
    if (!out.empty() && digit.coefficient == out.back().coefficient * out.back().extent) {
      out.back().extent *= digit.extent;
    } else {
      out.push_back(digit);
    }
  }
  return out;
}

// Does every value come from one choice of digits?
bool is_positional(const std::vector<Digit>& digits) {
  int64_t reach = 0;
  for (const Digit& d : digits) {
    if (d.coefficient <= reach) return false;
    reach += d.coefficient * (d.extent - 1);
  }
  return true;
}

// All accesses of one local buffer below its Alloc.
class RegisterTile {
 public:
  RegisterTile(IrBuilder& b, VarRanges& ranges, const std::array<const Var*, kNumThreadDims>& lanes,
               const Alloc& alloc)
      : b_(b), ranges_(ranges), lanes_(lanes), buffer_(alloc.buffer) {
    dims_.resize(b.buffer(buffer_).shape.size());
  }

  Stmt run(Stmt body) {
    visit(body, Walk::kNote);
    if (is_shuffled_) {
      for (Dimension& dim : dims_) dim.whole = dim.whole || dim.is_lane;
    }
    decide();
    return visit(body, Walk::kRewrite);
  }

 private:
  using VarSet = std::set<VarId>;
  using Lanes = std::array<const Loop*, kNumThreadDims>;
  // What happens to accesses on the way: they are noted, or get their new indices.
  enum class Walk : uint8_t { kNote, kRewrite };

  Stmt visit(Stmt s, Walk way) {
    if (!s.defined()) return s;
    const VarRanges::Mark mark = ranges_.mark();
    const VarMap saved = unified_;
    const Lanes saved_around = around_;
    if (const Loop* loop = s.as<Loop>()) {
      ranges_.bind(loop->var, loop->extent);
      if (is_lane_axis(loop->loop_kind)) {
        const Var* lane = lanes_[static_cast<std::size_t>(axis_of(loop->loop_kind))];
        unified_[loop->var->id] = Expr(lane);
        ranges_.bind(lane, loop->extent);
        around_[static_cast<std::size_t>(axis_of(loop->loop_kind))] = loop;
        is_shuffle_ = attr_of(*loop, kShuffleAttr).has_value();
      } else {
        inner_.insert(loop->var->id);
      }
    }
    Stmt r = visit_children(s, way);
    if (const Loop* loop = s.as<Loop>()) {
      inner_.erase(loop->var->id);
      if (is_lane_axis(loop->loop_kind)) is_shuffle_ = false;
    }
    unified_ = saved;
    around_ = saved_around;
    ranges_.rewind(mark);
    return r;
  }

  // A store or load of the buffer is made once, with all indices: its rank may change.
  Stmt visit_children(Stmt s, Walk way) {
    const Store* store = s.as<Store>();
    if (store == nullptr || store->buffer != buffer_) {
      return map_children(
          b_, s, [&](Stmt child) { return visit(child, way); },
          [&](Expr e) { return visit(e, way); });
    }
    const std::vector<Expr> indices = visit(store->indices, way);
    Expr value = visit(store->value, way);
    if (way == Walk::kRewrite) return b_.store(buffer_, moved(indices), value);
    note(indices);
    return s;
  }

  std::vector<Expr> visit(std::span<const Expr> all, Walk way) {
    std::vector<Expr> out;
    for (Expr e : all) out.push_back(visit(e, way));
    return out;
  }

  Expr visit(Expr e, Walk way) {
    const Load* load = e.as<Load>();
    if (load == nullptr || load->buffer != buffer_) {
      return map_children(b_, e, [&](Expr child) { return visit(child, way); });
    }
    const std::vector<Expr> indices = visit(load->indices, way);
    if (way == Walk::kRewrite) return b_.load(buffer_, moved(indices));
    is_shuffled_ = is_shuffled_ || is_shuffle_;
    note(indices);
    return e;
  }

  bool is_inner(Expr atom) const {
    bool inner = true;
    walk(atom, [&](Expr x) {
      const Var* var = x.as<Var>();
      inner = inner && (var == nullptr || inner_.count(var->id) != 0) && x.as<Load>() == nullptr;
      return inner;
    });
    return inner;
  }

  bool is_outer(Expr atom) const {
    bool outer = true;
    walk(atom, [&](Expr x) {
      const Var* var = x.as<Var>();
      outer = outer && (var == nullptr || inner_.count(var->id) == 0) && x.as<Load>() == nullptr;
      return outer;
    });
    return outer;
  }

  std::optional<Subscript> split(Expr index) {
    const Linear linear = to_linear(b_, substitute(b_, index, unified_), ranges_);
    if (linear.overflow || linear.has_data) return std::nullopt;
    Subscript out;
    out.constant = linear.constant;
    for (const Term& term : linear.terms) {
      const std::span<const Expr> atoms = term.factors();
      if (std::all_of(atoms.begin(), atoms.end(), [&](Expr a) { return is_outer(a); })) {
        out.base = out.base + Linear::of(term);
        continue;
      }
      if (atoms.size() != 1 || !is_inner(atoms[0]) || term.coef < 1) return std::nullopt;
      const Interval range = interval_of(atoms[0], ranges_);
      if (range.lo != 0 || range.hi < 0 || range.hi > (int64_t{1} << 31)) return std::nullopt;
      out.inner.push_back({Digit{term.coef, range.hi + 1}, term});
    }
    std::sort(out.inner.begin(), out.inner.end(), [](const auto& x, const auto& y) {
      return x.first.coefficient < y.first.coefficient;
    });
    return out;
  }

  void note(std::span<const Expr> indices) {
    for (std::size_t a = 0; a < around_.size(); ++a) {
      if (around_[a] == nullptr) {
        of_thread_[a] = false;
      } else {
        extents_[a] = around_[a]->extent;
      }
    }
    for (std::size_t d = 0; d < indices.size(); ++d) {
      Dimension& dim = dims_[d];
      const std::optional<Subscript> s = split(indices[d]);
      dim.is_lane = dim.is_lane && s && s->inner.empty() && is_lane(s->base);
      if (!s || (dim.seen && !(s->base == dim.base))) {
        dim.whole = true;
        continue;
      }
      int64_t high = s->constant;
      for (const auto& [digit, term] : s->inner) high += digit.coefficient * (digit.extent - 1);
      const std::vector<Digit> digits = merged(s->inner);
      if (!dim.seen) {
        dim = {true,   dim.whole, dim.is_lane, s->base, s->constant, high, is_positional(digits),
               digits, 1};
        continue;
      }
      dim.same_digits =
          dim.same_digits && digits == dim.digits && s->constant == dim.low && high == dim.high;
      dim.low = std::min(dim.low, s->constant);
      dim.high = std::max(dim.high, high);
    }
  }

  bool is_lane(const Linear& base) const {
    return base.terms.size() == 1 && base.terms[0].coef == 1 && base.terms[0].degree == 1 &&
           base.terms[0].atoms[0].is(Expr(lanes_[0]));
  }

  void decide() {
    Buffer buffer = b_.buffer(buffer_);
    std::vector<Expr> shape(buffer.shape.begin(), buffer.shape.end());
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      Dimension& dim = dims_[d];
      if (!dim.seen) dim.whole = true;
      if (dim.whole) continue;
      dim.extent = dim.high - dim.low + 1;
      if (dim.same_digits) {
        dim.extent = 1;
        for (const Digit& digit : dim.digits) dim.extent *= digit.extent;
      }
      shape[d] = b_.int_imm(dim.extent);
    }
    if (is_shuffled_) of_thread_[0] = false;  // has that dimension already
    for (std::size_t a = 0; a < of_thread_.size(); ++a) {
      if (of_thread_[a]) shape.insert(shape.begin(), extents_[a]);
    }
    buffer.shape = b_.copy(shape);
    b_.set_buffer(buffer);
  }

  // The place of coefficient * value among the packed digits.
  static int64_t packed(const Dimension& dim, int64_t coefficient) {
    int64_t stride = 1;
    for (const Digit& digit : dim.digits) {
      const bool within =
          coefficient >= digit.coefficient && coefficient < digit.coefficient * digit.extent;
      if (within) return coefficient / digit.coefficient * stride;
      stride *= digit.extent;
    }
    return stride;  // of a digit of extent 1, which is always 0
  }

  std::span<const Expr> moved(std::span<const Expr> indices) {
    std::vector<Expr> out;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      const Dimension& dim = dims_[d];
      if (dim.whole) {
        out.push_back(indices[d]);
        continue;
      }
      const std::optional<Subscript> s = split(indices[d]);
      Linear place = Linear::of(dim.same_digits ? 0 : s->constant - dim.low);
      for (const auto& [digit, term] : s->inner) {
        Term changed = term;
        if (dim.same_digits) changed.coef = packed(dim, digit.coefficient);
        place = place + Linear::of(changed);
      }
      out.push_back(to_expr(b_, place));
    }
    for (std::size_t a = 0; a < of_thread_.size(); ++a) {
      if (of_thread_[a]) out.insert(out.begin(), Expr(around_[a]->var));
    }
    return b_.copy(out);
  }

  IrBuilder& b_;
  VarRanges& ranges_;
  const std::array<const Var*, kNumThreadDims>& lanes_;
  BufferId buffer_;
  std::vector<Dimension> dims_;
  Lanes around_{};                                                   // thread loops here
  std::array<bool, kNumThreadDims> of_thread_ = {true, true, true};  // all accesses stand in one
  std::array<Expr, kNumThreadDims> extents_;
  VarMap unified_;  // variables of thread loops, to one for each axis
  VarSet inner_;    // variables of the other loops below the Alloc
  bool is_shuffle_ = false, is_shuffled_ = false;
};

class RegisterCompaction {
 public:
  explicit RegisterCompaction(const Program& program) : b_(program) {
    for (std::size_t a = 0; a < lanes_.size(); ++a) lanes_[a] = b_.fresh_var("t");
  }

  Program run(const Program& program) { return b_.finish(go(program.root())); }

 private:
  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    const VarRanges::Mark mark = ranges_.mark();
    if (const Loop* loop = s.as<Loop>()) ranges_.bind(loop->var, loop->extent);
    Stmt r = s;
    if (const Alloc* alloc = s.as<Alloc>();
        alloc != nullptr && b_.buffer(alloc->buffer).scope == Scope::kLocal) {
      RegisterTile tile(b_, ranges_, lanes_, *alloc);
      Stmt body = tile.run(alloc->body);
      r = b_.alloc(alloc->buffer, go(body));
    } else {
      r = map_stmts(b_, s, [&](Stmt child) { return go(child); });
    }
    ranges_.rewind(mark);
    return r;
  }

  IrBuilder b_;
  VarRanges ranges_;
  std::array<const Var*, kNumThreadDims> lanes_{};
};

}  // namespace

Result<Program> compact_registers(const Program& program, const Target&) {
  return RegisterCompaction(program).run(program);
}

}  // namespace prunerc::codegen

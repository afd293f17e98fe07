#include "ir/analysis/accumulator.h"
#include "ir/analysis/region.h"
#include "ir/canonical.h"
#include "ir/map.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/query.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "search/algebra/lift.h"

#include <algorithm>
#include <map>
#include <set>

namespace prunerc::search::algebra {
namespace {

using ir::Expr;

/// Uses are not counted beyond.
constexpr int kManyUses = 1000;

class Lower {
 public:
  explicit Lower(const Spec& spec) : spec_(spec), graph_(spec.graph), b_(spec.program) {
    for (const Output& output : spec.outputs) roots_.push_back(output.value);
    for (std::size_t i = 0; i < spec.outputs.size(); ++i) output_of_[spec.outputs[i].buffer] = i;
    for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
      const Output& output = spec.outputs[i];
      if (is_plain_index(output.index)) output_of_value_.try_emplace(output.value, i);
    }
    for (std::size_t i = 0; i < spec.kept.size(); ++i) {
      for (const ir::BufferId id : spec.kept[i].writes) kept_of_[id].push_back(i);
    }
    for (std::size_t i = 0; i < spec.axes.size(); ++i) {
      if (spec.axes[i].extent > 1) wide_ |= AxisSet{1} << i;
    }
    count_uses();
    rank_axes();
  }

  Result<Lowered> run() {
    for (const NewBuffer& buffer : spec_.new_buffers) {
      b_.add_buffer(buffer.name, buffer.dtype, shape_of(buffer.dims), ir::Scope::kGlobal,
                    ir::BufferRole::kIntermediate);
    }
    for (std::size_t i = 0; i < spec_.outputs.size(); ++i) {
      if (is_result(spec_.outputs[i].buffer)) emit_output(i);
    }
    for (std::size_t i = 0; i < spec_.kept.size(); ++i) {
      for (const ir::BufferId id : spec_.kept[i].writes) {
        if (is_result(id)) emit_kept(i);
      }
    }
    sort_nests();
    const ir::Program whole = b_.finish(b_.seq(nests_));
    Lowered out;
    const ir::Program used = ir::compact_used(whole);
    PRUNERC_TRY_VOID(ir::verify(used));
    // What is nested too deeply does not read back.
    const Result<ir::Program> read = ir::parse(ir::print(used));
    if (!read.ok()) return read.error();
    out.program = ir::renumber(*read);
    ir::LoopId next(0);
    for (const std::vector<AxisId>& axes : loops_) {
      for (const AxisId axis : axes) {
        if (axis >= 0) out.loops[next] = axis;
        next = ir::LoopId(next.value + 1);
      }
    }
    return out;
  }

 private:
  /// What a nest touches.
  struct Touched {
    std::set<ir::BufferId> reads, writes;
  };

  static Touched touched_by(ir::Stmt nest) {
    Touched out;
    ir::walk(
        nest,
        [&](ir::Stmt s) {
          if (const auto* store = s.as<ir::Store>()) out.writes.insert(store->buffer);
          return true;
        },
        [&](Expr e) {
          ir::walk(e, [&](Expr part) {
            if (const auto* load = part.as<ir::Load>()) out.reads.insert(load->buffer);
            return true;
          });
        });
    return out;
  }

  double bytes_of(ir::BufferId id) const {
    const ir::Buffer& buffer = b_.buffer(id);
    if (buffer.role != ir::BufferRole::kIntermediate) return 0;
    auto bytes = static_cast<double>(ir::byte_size(buffer.dtype));
    for (Expr extent : buffer.shape) {
      bytes *= static_cast<double>(ir::constant_value(extent).value_or(1));
    }
    return bytes;
  }

  double largest_of(const std::set<ir::BufferId>& ids) const {
    double most = 0;
    for (const ir::BufferId id : ids) most = std::max(most, bytes_of(id));
    return most;
  }

  // What was made last is read next: of the nests that may run, the one that reads the largest
  // intermediate, and of those the one that writes the least. A chain has no other nests inside then.
  void sort_nests() {
    std::vector<Touched> touched;
    for (const ir::Stmt nest : nests_) touched.push_back(touched_by(nest));
    const auto meets = [](const std::set<ir::BufferId>& a, const std::set<ir::BufferId>& b) {
      return std::any_of(a.begin(), a.end(), [&](ir::BufferId id) { return b.count(id) > 0; });
    };
    const auto comes_before = [&](const Touched& a, const Touched& b) {
      return meets(a.writes, b.reads) || meets(a.writes, b.writes) || meets(a.reads, b.writes);
    };
    std::vector<bool> done(nests_.size(), false);
    std::vector<ir::Stmt> nests;
    std::vector<std::vector<AxisId>> loops;
    while (nests.size() < nests_.size()) {
      std::size_t best = nests_.size();
      std::pair<double, double> best_key;
      for (std::size_t i = 0; i < nests_.size(); ++i) {
        bool is_ready = !done[i];
        for (std::size_t j = 0; j < i; ++j) {
          is_ready = is_ready && (done[j] || !comes_before(touched[j], touched[i]));
        }
        if (!is_ready) continue;
        const std::pair key = {-largest_of(touched[i].reads), largest_of(touched[i].writes)};
        if (best < nests_.size() && !(key < best_key)) continue;
        best = i;
        best_key = key;
      }
      done[best] = true;
      nests.push_back(nests_[best]);
      loops.push_back(loops_[best]);
    }
    nests_ = std::move(nests);
    loops_ = std::move(loops);
  }

  // Where a term's values lie.
  struct Place {
    ir::BufferId buffer;
    std::vector<AxisId> dims;
  };

  bool is_result(ir::BufferId id) const {
    return static_cast<std::size_t>(id.value) < spec_.program.buffers().size() &&
           spec_.program.buffer(id).role == ir::BufferRole::kOutput;
  }

  static bool is_plain_index(const std::vector<Subscript>& index) {
    return std::all_of(index.begin(), index.end(),
                       [](const Subscript& s) { return s.plain() >= 0; });
  }

  // What reads terms.

  void count_uses() {
    for (const TermId root : roots_) ++uses_[root];
    const std::vector<TermId> ids = reachable(graph_, roots_);
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
      // What is widened where it is used is used as often.
      const int times = widens(graph_[*id]) ? uses_[*id] : 1;
      for (const TermId arg : graph_[*id].args) {
        uses_[arg] = std::min(uses_[arg] + times, kManyUses);
      }
    }
  }

  void rank_axes() {
    int next = 0;
    for (const Output& output : spec_.outputs) {
      if (!is_result(output.buffer)) continue;
      for (const Subscript& s : output.index) {
        for (const Digit& d : s.digits) {
          if (rank_.try_emplace(d.axis, next).second) ++next;
        }
      }
    }
    for (std::size_t i = 0; i < spec_.axes.size(); ++i) {
      if (rank_.try_emplace(static_cast<AxisId>(i), next).second) ++next;
    }
  }

  // Axes of a term's new buffer: as in the outputs, and an axis last along which something that it
  // is made of is contiguous.
  std::vector<AxisId> dims_of(TermId id) const {
    if (const auto at = spec_.names.find(id); at != spec_.names.end()) return at->second.dims;
    std::vector<AxisId> dims = axes_in(graph_[id].free);
    std::set<AxisId> contiguous;
    for (const TermId below : reachable(graph_, std::span(&id, 1))) {
      const Term& t = graph_[below];
      if (t.op == TermOp::kLoad && !t.index.empty()) contiguous.insert(t.index.back().plain());
    }
    if (!dims.empty() && contiguous.count(dims.back()) == 0) {
      const auto at = std::find_if(dims.rbegin(), dims.rend(),
                                   [&](AxisId a) { return contiguous.count(a) > 0; });
      if (at != dims.rend()) std::rotate(at.base() - 1, at.base(), dims.end());
    }
    return dims;
  }

  std::vector<AxisId> axes_in(AxisSet set) const {
    std::vector<AxisId> out;
    for (std::size_t i = 0; i < spec_.axes.size(); ++i) {
      if ((set >> i & 1) != 0) out.push_back(static_cast<AxisId>(i));
    }
    std::sort(out.begin(), out.end(),
              [&](AxisId a, AxisId b) { return rank_.at(a) < rank_.at(b); });
    return out;
  }

  bool is_cheap(TermId id) const {
    const Term& t = graph_[id];
    if (t.op == TermOp::kLoad || t.op == TermOp::kConst || t.op == TermOp::kMask) return true;
    return t.op == TermOp::kCast && is_cheap(t.args[0]);
  }

  // Whether anything below is an element of a buffer; else it is a constant.
  bool reads(TermId id) const {
    const std::vector<TermId> below = reachable(graph_, std::span(&id, 1));
    return std::any_of(below.begin(), below.end(),
                       [&](TermId b) { return graph_[b].op == TermOp::kLoad; });
  }

  // What is read narrow is widened where it is used.
  bool widens(const Term& t) const {
    return t.op == TermOp::kCast && ir::byte_size(t.dtype) > ir::byte_size(graph_[t.args[0]].dtype);
  }

  // Whether a nest over `context` reads the term's values rather than to compute them.
  bool deserves_buffer(TermId id, AxisSet context) const {
    const Term& t = graph_[id];
    if (t.op == TermOp::kReduce) return true;
    if (is_cheap(id) || widens(t) || !reads(id)) return false;
    return t.free != (context & wide_) || uses_.at(id) > 1;
  }

  // Nests.

  void emit_output(std::size_t i) {
    if (!emitted_.insert(spec_.outputs[i].buffer).second) return;
    const Output& output = spec_.outputs[i];
    AxisSet axes = 0;
    std::vector<AxisId> dims;
    for (const Subscript& s : output.index) {
      for (const Digit& d : s.digits) {
        if ((axes & axis_bit(d.axis)) == 0) dims.push_back(d.axis);
        axes |= axis_bit(d.axis);
      }
    }
    const bool is_plain = is_plain_index(output.index);
    emit_nest(output.buffer, output.index, dims, output.value, is_plain);
    if (is_plain && (axes & wide_) == graph_[output.value].free) {
      places_.try_emplace(output.value, Place{output.buffer, dims});
    }
  }

  void emit_kept(std::size_t i) {
    if (!kept_done_.insert(i).second) return;
    for (const ir::BufferId id : spec_.kept[i].reads) require(id);
    nests_.push_back(ir::clone_with_fresh_ids(b_, spec_.kept[i].nest));
    loops_.emplace_back();
    ir::walk(
        spec_.kept[i].nest,
        [&](ir::Stmt s) {
          if (s.kind() == ir::StmtKind::kLoop) loops_.back().push_back(-1);
          return true;
        },
        [](Expr) {});
  }

  // Makes sure that a buffer has been written.
  void require(ir::BufferId id) {
    if (const auto at = output_of_.find(id); at != output_of_.end()) emit_output(at->second);
    if (const auto at = kept_of_.find(id); at != kept_of_.end()) {
      for (const std::size_t i : at->second) emit_kept(i);
    }
  }

  // Writes what the nest over `context` reads of the term.
  void prepare(TermId id, AxisSet context) {
    const Term& t = graph_[id];
    if (t.op == TermOp::kLoad) return require(t.buffer);
    if (places_.count(id) > 0) return;
    if (deserves_buffer(id, context)) return place(id);
    for (const TermId arg : t.args) prepare(arg, context);
  }

  void place(TermId id) {
    if (const auto at = output_of_value_.find(id); at != output_of_value_.end()) {
      emit_output(at->second);
      if (places_.count(id) > 0) return;
    }
    const std::vector<AxisId> dims = dims_of(id);
    std::vector<Subscript> index;
    for (const AxisId axis : dims) index.push_back(plain_subscript(axis));
    const auto named = spec_.names.find(id);
    const ir::BufferId buffer =
        named != spec_.names.end() && is_free(named->second.buffer)
            ? named->second.buffer
            : b_.add_buffer("t" + std::to_string(next_name_++), graph_[id].dtype, shape_of(dims),
                            ir::Scope::kGlobal, ir::BufferRole::kIntermediate);
    emit_nest(buffer, index, dims, id, true);
    places_[id] = {buffer, dims};
  }

  std::vector<Expr> shape_of(const std::vector<AxisId>& dims) {
    std::vector<Expr> shape;
    for (const AxisId axis : dims) shape.push_back(b_.int_imm(extent(axis)));
    return shape;
  }

  bool is_free(ir::BufferId id) const {
    return spec_.program.buffer(id).role == ir::BufferRole::kIntermediate &&
           output_of_.count(id) == 0;
  }

  void emit_nest(ir::BufferId target, const std::vector<Subscript>& index, std::vector<AxisId> dims,
                 TermId value, bool is_plain) {
    const Term& t = graph_[value];
    AxisSet spatial = 0;
    for (const AxisId axis : dims) spatial |= axis_bit(axis);
    const bool reduces = t.op == TermOp::kReduce && is_plain && (t.bound & spatial) == 0;
    const bool is_here = reduces || (t.op != TermOp::kReduce && places_.count(value) == 0);
    const AxisSet context = spatial | (reduces ? t.bound : 0);
    if (is_here && !t.args.empty()) {
      for (const TermId arg : t.args) prepare(arg, context);
    } else {
      prepare(value, context);
    }
    std::vector<AxisId> axes = dims;
    if (reduces) {
      for (const AxisId axis : axes_in(t.bound)) axes.push_back(axis);
    }
    ir::Block block{};
    block.id = b_.fresh_block_id();
    block.name = b_.buffer(target).name;
    std::vector<ir::IterVar> iters;
    vars_.clear();
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::string& name = spec_.axes[static_cast<std::size_t>(axes[i])].name;
      const ir::Var* var = b_.fresh_var("v" + name);
      vars_[axes[i]] = var;
      iters.push_back({var, b_.int_imm(extent(axes[i])),
                       i < dims.size() ? ir::IterKind::kSpatial : ir::IterKind::kReduce,
                       b_.fresh_var(name)});
    }
    std::vector<Expr> at;
    for (const Subscript& s : index) at.push_back(expr(s));
    Expr stored = reduces ? expr(t.args[0], -1) : expr(value, is_here ? value : -1);
    if (reduces) {
      block.init = b_.store(target, at, ir::identity_of(b_, t.kind, t.dtype));
      stored = b_.binary(t.kind, b_.load(target, at), stored);
    }
    block.body = b_.store(target, at, stored);
    block.iters = iters;
    ir::rebuild_accesses(b_, block);
    ir::Stmt nest = b_.block(block);
    for (auto iter = iters.rbegin(); iter != iters.rend(); ++iter) {
      ir::Loop loop{};
      loop.id = b_.fresh_loop_id();
      loop.var = iter->binding.as<ir::Var>();
      loop.extent = iter->extent;
      loop.loop_kind = ir::LoopKind::kSerial;
      loop.body = nest;
      nest = b_.loop(loop);
    }
    nests_.push_back(nest);
    loops_.push_back(axes);
  }

  // Expressions of the nest that is being made.

  int64_t extent(AxisId axis) const { return spec_.axes[static_cast<std::size_t>(axis)].extent; }

  Expr expr(const Digit& d, int64_t scale) {
    Expr e(vars_.at(d.axis));
    if (d.lower != 1) e = b_.floordiv(e, b_.int_imm(d.lower));
    if (d.extent != 0) e = b_.floormod(e, b_.int_imm(d.extent));
    return scale == 1 ? e : b_.mul(e, b_.int_imm(scale));
  }

  // The part of the sum whose scales have the sign.
  Expr expr(const Subscript& s, int64_t sign = 1, bool both = true) {
    Expr sum;
    const auto add = [&](Expr e) { sum = sum.defined() ? b_.add(sum, e) : e; };
    std::vector<Digit> digits = s.digits;
    std::stable_sort(digits.begin(), digits.end(),
                     [](const Digit& a, const Digit& b) { return a.scale > b.scale; });
    for (const Digit& d : digits) {
      if (both || d.scale * sign > 0) add(expr(d, d.scale * sign));
    }
    const int64_t base = both || s.base * sign > 0 ? s.base * sign : 0;
    if (sum.defined() && base < 0) return b_.sub(sum, b_.int_imm(-base));
    if (base != 0) add(b_.int_imm(base));
    return sum.defined() ? sum : b_.int_imm(0);
  }

  Expr expr(const Condition& c) {
    const Expr left = expr(c.value, 1, false);
    const Expr right = expr(c.value, -1, false);
    switch (c.kind) {
      case Condition::Kind::kAtMostZero: return b_.le(left, right);
      case Condition::Kind::kZero: return b_.eq(left, right);
      case Condition::Kind::kNotZero: return b_.ne(left, right);
    }
    PRUNERC_UNREACHABLE("condition");
  }

  // `root` is computed here, whatever buffer it has.
  Expr expr(TermId id, TermId root) {
    const Term& t = graph_[id];
    if (const auto at = places_.find(id); at != places_.end() && id != root) {
      std::vector<Expr> index;
      for (const AxisId axis : at->second.dims) {
        const auto var = vars_.find(axis);  // none: the values do not depend on it
        index.push_back(var == vars_.end() ? b_.int_imm(0) : Expr(var->second));
      }
      return b_.load(at->second.buffer, index);
    }
    std::vector<Expr> args;
    for (const TermId arg : t.args) args.push_back(expr(arg, -1));
    switch (t.op) {
      case TermOp::kLoad: {
        std::vector<Expr> index;
        for (const Subscript& s : t.index) index.push_back(expr(s));
        return b_.load(t.buffer, index);
      }
      case TermOp::kConst: return b_.constant(t.value, t.dtype);
      case TermOp::kMask: {
        Expr all;
        for (const Condition& c : t.conditions) {
          all = all.defined() ? b_.logical_and(all, expr(c)) : expr(c);
        }
        return all.defined() ? all : b_.bool_imm(true);
      }
      case TermOp::kBinary: return b_.binary(t.kind, args[0], args[1]);
      case TermOp::kCall: return b_.call(t.intrinsic, args);
      case TermOp::kSelect: return b_.select(args[0], args[1], args[2]);
      case TermOp::kCast: return b_.cast(t.dtype, args[0]);
      case TermOp::kReduce: PRUNERC_UNREACHABLE("a reduction has a nest of its own");
    }
    PRUNERC_UNREACHABLE("term op");
  }

  const Spec& spec_;
  const TermGraph& graph_;
  ir::IrBuilder b_;
  std::vector<TermId> roots_;
  std::map<ir::BufferId, std::size_t> output_of_;
  std::map<TermId, std::size_t> output_of_value_;  // of those with plain subscripts
  std::map<ir::BufferId, std::vector<std::size_t>> kept_of_;
  std::map<TermId, int> uses_;
  std::map<AxisId, int> rank_;
  std::set<ir::BufferId> emitted_;
  std::set<std::size_t> kept_done_;
  std::map<TermId, Place> places_;
  std::map<AxisId, const ir::Var*> vars_;  // of the nest that is being made
  std::vector<ir::Stmt> nests_;
  std::vector<std::vector<AxisId>> loops_;  // of each nest, outermost first; -1: of a kept one
  AxisSet wide_ = 0;                        // axes of more than one step: of others nothing depends
  int next_name_ = 0;
};

}  // namespace

Result<Lowered> lower(const Spec& spec) { return Lower(spec).run(); }

}  // namespace prunerc::search::algebra

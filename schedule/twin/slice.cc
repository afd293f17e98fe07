// slice(P, box): backwards from the box, what is needed of each buffer is one box, and what a block
// runs is one interval for each loop around it.
//     for i in 64 { for j in 64 { block C[i, j] = .. } }   and the box C[3, 8..9]   ~>
//     for i in 64 { if 3 <= i && i <= 3 { for j in 64 { if 8 <= j && j <= 9 { .. } } } }
//
// Legal because: a block is left out at a point of its loops only if intervals show that what it
// writes there lies outside of all that is needed, and what the others read is needed. Boxes grow
// until nothing changes, so that a box may become the whole buffer. Cost: some hundred interval
// evaluations for each block and round.
#include "schedule/twin/slice.h"

#include "ir/builder.h"
#include "ir/map.h"
#include "ir/visit.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

using Box = std::vector<Interval>;

struct Use {
  BufferId buffer;
  std::span<const Expr> indices;
};

/// An outermost block, or a store outside of blocks.
struct Unit {
  const StmtNode* stmt = nullptr;
  std::vector<const Loop*> path;
  struct Inner {  // a variable inside: of a loop, or of a block
    const Var* var;
    Expr expr;  // extent, or what it is bound to
    bool is_loop;
  };
  std::vector<Inner> inner;
  std::vector<Use> reads, writes;
  std::vector<Interval> ranges;  // of the path's variables: where it runs
  bool runs = false;
};

class Collector {
 public:
  std::vector<Unit> run(Stmt root) {
    stmt(root);
    return std::move(units_);
  }

 private:
  void stmt(Stmt s) {
    if (!s.defined()) return;
    if (const Loop* loop = s.as<Loop>()) {
      const std::size_t around = conditions_.size();
      conditions_.push_back(loop->extent);
      path_.push_back(loop);
      stmt(loop->body);
      path_.pop_back();
      conditions_.resize(around);
    } else if (s.as<Block>() != nullptr || s.as<Store>() != nullptr) {
      Unit unit;
      unit.stmt = s.node();
      unit.path = path_;
      for (Expr e : conditions_) reads(e, &unit);
      inside(s, &unit);
      units_.push_back(std::move(unit));
    } else {
      const std::size_t around = conditions_.size();
      if (const If* branch = s.as<If>()) conditions_.push_back(branch->condition);
      for_each_child(
          s, [&](Stmt child) { stmt(child); }, [](Expr) {});
      conditions_.resize(around);
    }
  }

  static void reads(Expr e, Unit* unit) {
    walk(e, [&](Expr x) {
      if (const Load* load = x.as<Load>()) unit->reads.push_back({load->buffer, load->indices});
      return true;
    });
  }

  static void inside(Stmt s, Unit* unit) {
    if (!s.defined()) return;
    if (const Block* block = s.as<Block>()) {
      for (const IterVar& iter : block->iters) {
        unit->inner.push_back({iter.var, iter.binding, /*is_loop=*/false});
      }
    }
    if (const Loop* loop = s.as<Loop>()) {
      unit->inner.push_back({loop->var, loop->extent, /*is_loop=*/true});
    }
    if (const Store* store = s.as<Store>()) unit->writes.push_back({store->buffer, store->indices});
    for_each_child(
        s, [&](Stmt child) { inside(child, unit); }, [&](Expr e) { reads(e, unit); });
  }

  std::vector<const Loop*> path_;
  std::vector<Expr> conditions_;  // and extents: read for whatever stands below
  std::vector<Unit> units_;
};

// 0 <= var < extent, as far as is known.
Interval range_of(Expr extent, const VarRanges& ranges) {
  return {0, (interval_of(extent, ranges) - Interval::point(1)).hi};
}

class Slicer {
 public:
  explicit Slicer(const Program& program)
      : program_(program), units_(Collector().run(program.root())) {
    for (Unit& unit : units_) {
      VarRanges ranges(program.domain());
      for (const Loop* loop : unit.path) {
        unit.ranges.push_back(range_of(loop->extent, ranges));
        ranges.bind(loop->var->id, unit.ranges.back());
      }
      whole_.push_back(unit.ranges);
    }
  }

  void want(const ElementBox& wanted) {
    needed_[wanted.buffer] = wanted.box;
    // Boxes that creep (a scan) are taken whole after some rounds.
    constexpr int kRounds = 12;
    for (int round = 0;; ++round) {
      bool grew = false;
      for (std::size_t u = units_.size(); u-- > 0;) {
        narrow(u);
        if (!units_[u].runs) continue;
        for (const Use& read : units_[u].reads) {
          grew |= need(units_[u], read, round >= kRounds);
        }
      }
      if (!grew) return;
    }
  }

  Program rewrite() {
    IrBuilder b(program_);
    return b.finish(rebuilt(b, program_.root(), nullptr));
  }

 private:
  VarRanges ranges_of(const Unit& unit) const {
    VarRanges ranges(program_.domain());
    for (std::size_t i = 0; i < unit.path.size(); ++i) {
      ranges.bind(unit.path[i]->var->id, unit.ranges[i]);
    }
    for (const Unit::Inner& inner : unit.inner) {
      ranges.bind(inner.var->id,
                  inner.is_loop ? range_of(inner.expr, ranges) : interval_of(inner.expr, ranges));
    }
    return ranges;
  }

  // Whether the unit may write something needed at its ranges.
  bool may_write(const Unit& unit) {
    const VarRanges ranges = ranges_of(unit);
    return std::any_of(unit.writes.begin(), unit.writes.end(), [&](const Use& write) {
      const auto found = needed_.find(write.buffer);
      if (found == needed_.end()) return false;
      for (std::size_t d = 0; d < write.indices.size(); ++d) {
        const Interval at = interval_of(write.indices[d], ranges);
        if (intersect(at, found->second[d]).is_empty()) return false;
      }
      return true;
    });
  }

  /// The first or last value of a loop's variable in `range` where the unit may write something
  /// needed, all others as they are; nullopt if there is none.
  enum class End : uint8_t { kFirst, kLast };
  std::optional<int64_t> find(Unit& unit, std::size_t loop, Interval range, End end, int* budget) {
    unit.ranges[loop] = range;
    if (--*budget >= 0 && !may_write(unit)) return std::nullopt;
    if (*budget < 0 || range.lo == range.hi) return end == End::kFirst ? range.lo : range.hi;
    const int64_t middle = range.lo + (range.hi - range.lo) / 2;
    const Interval low = {range.lo, middle};
    const Interval high = {middle + 1, range.hi};
    const auto found = find(unit, loop, end == End::kFirst ? low : high, end, budget);
    return found ? found : find(unit, loop, end == End::kFirst ? high : low, end, budget);
  }

  // The smallest intervals around all points where the unit may write something needed.
  void narrow(std::size_t u) {
    Unit& unit = units_[u];
    unit.ranges = whole_[u];
    unit.runs = may_write(unit);
    constexpr int kPasses = 3;
    for (int pass = 0; pass < kPasses && unit.runs; ++pass) {
      for (std::size_t i = 0; i < unit.path.size() && unit.runs; ++i) {
        const Interval range = unit.ranges[i];
        if (!range.is_bounded() || range.lo == range.hi) continue;
        int budget = 2000;
        const std::optional<int64_t> first = find(unit, i, range, End::kFirst, &budget);
        const std::optional<int64_t> last =
            first ? find(unit, i, {*first, range.hi}, End::kLast, &budget) : std::nullopt;
        unit.runs = last.has_value();
        unit.ranges[i] = unit.runs ? Interval{*first, *last} : range;
      }
    }
  }

  // Joins what the unit reads to what is needed; whether that is more than before.
  bool need(const Unit& unit, const Use& read, bool whole) {
    const Buffer& buffer = program_.buffer(read.buffer);
    if (buffer.role == BufferRole::kInput) return false;
    const VarRanges ranges = ranges_of(unit);
    Box box;
    for (std::size_t d = 0; d < read.indices.size(); ++d) {
      const Interval all = range_of(buffer.shape[d], ranges);
      box.push_back(intersect(interval_of(read.indices[d], ranges), all));
      if (box.back().is_empty()) return false;
    }
    const auto [at, is_new] = needed_.emplace(read.buffer, box);
    if (is_new) return true;
    Box& known = at->second;
    bool grew = false;
    for (std::size_t d = 0; d < box.size(); ++d) {
      if (known[d].contains(box[d])) continue;
      known[d] = whole ? range_of(buffer.shape[d], ranges) : hull(known[d], box[d]);
      grew = true;
    }
    return grew;
  }

  // Where a statement below is run, of one loop.
  std::optional<Interval> reach(const Loop& loop) const {
    std::optional<Interval> out;
    for (const Unit& unit : units_) {
      for (std::size_t i = 0; i < unit.path.size() && unit.runs; ++i) {
        if (unit.path[i] != &loop) continue;
        out = out ? hull(*out, unit.ranges[i]) : unit.ranges[i];
      }
    }
    return out;
  }

  static Expr within(IrBuilder& b, const Var* var, Interval range) {
    const Expr v(b.copy_var(*var));
    return b.logical_and(b.le(b.int_imm(range.lo), v), b.le(v, b.int_imm(range.hi)));
  }

  static Stmt under(IrBuilder& b, std::optional<Expr> condition, Stmt s) {
    return condition ? b.if_then(*condition, s) : s;
  }

  Stmt rebuilt(IrBuilder& b, Stmt s, const Loop* around) {
    if (!s.defined()) return s;
    if (const Loop* loop = s.as<Loop>()) {
      const std::optional<Interval> range = reach(*loop);
      if (!range) return b.if_then(b.bool_imm(false), s);
      const Stmt body = rebuilt(b, loop->body, loop);
      Loop copy = *loop;
      const bool all = range_of(loop->extent, VarRanges(program_.domain())) == *range;
      copy.body = all ? body : under(b, within(b, loop->var, *range), body);
      return b.loop(copy);
    }
    if (s.as<Block>() != nullptr || s.as<Store>() != nullptr) return guarded(b, s, around);
    return map_children(
        b, s, [&](Stmt child) { return rebuilt(b, child, around); }, [](Expr e) { return e; });
  }

  // A unit, which may run at fewer points than others in the same loops.
  Stmt guarded(IrBuilder& b, Stmt s, const Loop* around) {
    const auto at = std::find_if(units_.begin(), units_.end(), [&](const Unit& unit) {
      const Loop* last = unit.path.empty() ? nullptr : unit.path.back();
      return unit.stmt == s.node() && last == around;
    });
    if (at == units_.end() || !at->runs) return b.if_then(b.bool_imm(false), s);
    std::optional<Expr> condition;
    for (std::size_t i = 0; i < at->path.size(); ++i) {
      if (reach(*at->path[i]) == at->ranges[i]) continue;
      const Expr here = within(b, at->path[i]->var, at->ranges[i]);
      condition = condition ? b.logical_and(*condition, here) : here;
    }
    return under(b, condition, s);
  }

  const Program& program_;
  std::vector<Unit> units_;
  std::vector<std::vector<Interval>> whole_;  // by unit
  std::map<BufferId, Box> needed_;
};

}  // namespace

Program slice(const Program& program, const ElementBox& wanted) {
  Slicer slicer(program);
  slicer.want(wanted);
  return slicer.rewrite();
}

}  // namespace prunerc::schedule

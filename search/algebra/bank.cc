#include "search/algebra/bank.h"

#include "ir/support/check.h"
#include "ir/support/hash.h"
#include "search/algebra/bank_entry.h"
#include "search/algebra/form_filter.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

namespace prunerc::search::algebra {
namespace {

using Clock = std::chrono::steady_clock;
using ir::ExprKind;

// Four are too few for attention: e^m / e^m in between is cheaper than a subtraction for each key.
constexpr std::size_t kMaxDerivations = 8;
// Entries of one value whose forms differ, so that what is built on them passes as what it is.
constexpr std::size_t kMaxForms = 4;
// Steps between two looks at the clock, which takes as long as a few of them.
constexpr int64_t kStepsPerLook = 256;

// What the spec's own terms say about which operations are worth a try.
struct Vocabulary {
  std::vector<TermId> leaves;  // loads and constants
  std::vector<Pattern> patterns;
  bool has_max = false, has_min = false;
  AxisSet sums = 0, products = 0, maxima = 0, minima = 0;  // axes that such reductions end
  double max_bytes = 0;
};

bool is_fixed(const TermGraph& graph, TermId id) {
  return graph[id].op == TermOp::kConst || graph[id].op == TermOp::kMask;
}

class VocabularyReader {
 public:
  VocabularyReader(const TermGraph& graph, std::span<const Axis> axes)
      : graph_(graph), axes_(axes) {}

  Vocabulary run(std::span<const TermId> outputs) {
    const std::vector<TermId> all = reachable(graph_, outputs);
    for (const TermId id : all) {
      const Term& t = graph_[id];
      const bool contracts = t.op == TermOp::kReduce && t.kind == ExprKind::kAdd &&
                             graph_[t.args[0]].kind == ExprKind::kMul;
      if (contracts) inner_.push_back(t.args[0]);
    }
    for (const TermId id : all) read(id);
    return std::move(out_);
  }

 private:
  void read(TermId id) {
    const Term& t = graph_[id];
    if (t.op == TermOp::kMask) return;
    // The products of a contraction are never stored.
    if (std::find(inner_.begin(), inner_.end(), id) == inner_.end()) {
      const double bytes = extent_of(axes_, t.free) * static_cast<double>(ir::byte_size(t.dtype));
      out_.max_bytes = std::max(out_.max_bytes, bytes);
    }
    switch (t.op) {
      case TermOp::kLoad:
      case TermOp::kConst: out_.leaves.push_back(id); break;
      case TermOp::kMask: break;
      case TermOp::kBinary:
        out_.has_max = out_.has_max || t.kind == ExprKind::kMax;
        out_.has_min = out_.has_min || t.kind == ExprKind::kMin;
        break;
      case TermOp::kCall:
      case TermOp::kSelect:
      case TermOp::kCast: read_pattern(id); break;
      case TermOp::kReduce: axes_of(t.kind) |= t.bound; break;
    }
  }

  AxisSet& axes_of(ExprKind kind) {
    if (kind == ExprKind::kAdd) return out_.sums;
    if (kind == ExprKind::kMul) return out_.products;
    return kind == ExprKind::kMax ? out_.maxima : out_.minima;
  }

  void read_pattern(TermId id) {
    const Term& t = graph_[id];
    std::optional<std::size_t> hole;
    for (std::size_t i = 0; i < t.args.size(); ++i) {
      if (is_fixed(graph_, t.args[i])) continue;
      if (hole) return;  // two args: no function of one
      hole = i;
    }
    if (!hole) return;
    uint64_t name = hash_combine(static_cast<uint64_t>(t.op), *hole);
    name = hash_combine(name,
                        static_cast<uint64_t>(t.intrinsic) * 256 + static_cast<uint64_t>(t.dtype));
    name = hash_combine(name, static_cast<uint64_t>(graph_[t.args[*hole]].dtype));
    for (std::size_t i = 0; i < t.args.size(); ++i) {
      if (i != *hole) name = hash_combine(name, static_cast<uint64_t>(t.args[i]));
    }
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) return;
    names_.push_back(name);
    out_.patterns.push_back({id, *hole});
  }

  const TermGraph& graph_;
  std::span<const Axis> axes_;
  std::vector<TermId> inner_;
  std::vector<uint64_t> names_;  // of patterns
  Vocabulary out_;
};

class Bank {
 public:
  Bank(const Spec& spec, TermGraph& graph, const BankOptions& options)
      : spec_(spec), graph_(graph), options_(options), prints_(spec.axes, options.seed) {
    for (const Output& output : spec.outputs) outputs_.push_back(output.value);
    words_ = VocabularyReader(graph, spec.axes).run(outputs_);
    if (options.filter == BankFilter::kForms) filter_.emplace(forms_, graph, outputs_);
  }

  BankResult run() {
    if (outputs_.empty() || !read_targets()) return std::move(result_);
    queues_.resize(static_cast<std::size_t>(std::max(options_.max_ops, 0)) + 1);
    for (const TermId leaf : words_.leaves) add_leaf(leaf);
    const std::size_t num_leaves = entries_.size();
    expand(0);
    for (std::size_t level = 1; level < queues_.size() && !is_over(); ++level) {
      const std::size_t first = entries_.size();
      const std::vector<Derivation> queue = std::move(queues_[level]);
      queues_[level].clear();
      for (const Derivation& d : queue) {
        if (look()) break;
        evaluate(d);
      }
      queue_bytes_ -= queue.size() * sizeof(Derivation);
      if (level + 1 < queues_.size()) expand(first);
    }
    result_.kept = static_cast<int64_t>(entries_.size() - num_leaves);
    result_.complete = !is_over();
    if (filter_) result_.beyond = filter_->num_beyond();
    read_forms();
    result_.seconds = elapsed();
    return std::move(result_);
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool is_over() const { return over_; }

  // True when time or memory is up.
  bool look() {
    if (over_ || ++steps_ % kStepsPerLook != 0) return over_;
    over_ = elapsed() > options_.seconds || queue_bytes_ + entry_bytes_ > options_.max_bytes;
    return over_;
  }

  const BankEntry& entry(int32_t id) const { return entries_[static_cast<std::size_t>(id)]; }

  // Nothing can be found of what has no value in finite fields.
  bool read_targets() {
    for (const TermId id : outputs_) {
      const std::optional<TermValues> values = prints_.of(graph_, id);
      if (!values) return false;
      targets_.push_back(Fingerprints::print(*values));
    }
    return true;
  }

  void add_leaf(TermId id) {
    std::optional<TermValues> values = prints_.of(graph_, id);
    if (!values) return;
    const Fingerprint print = Fingerprints::print(*values);
    BankEntry e;
    e.leaf = id;
    e.dtype = graph_[id].dtype;
    e.free = graph_[id].free;
    e.values = std::move(*values);
    std::vector<int32_t>& same = ids_[{print, e.dtype}];
    if (!same.empty()) return;
    same.push_back(static_cast<int32_t>(entries_.size()));
    if (filter_) {
      e.form = forms_.of(graph_, id);
      e.inverse = forms_.inverse(e.form);
    }
    entries_.push_back(std::move(e));
  }

  bool is_constant(const BankEntry& e) const {
    return e.leaf >= 0 && graph_[e.leaf].op == TermOp::kConst;
  }

  // Queues what the entries from `first` on make with one another and with those before.
  void expand(std::size_t first) {
    const auto end = static_cast<int32_t>(entries_.size());
    for (auto b = static_cast<int32_t>(first); b < end; ++b) {
      if (is_over()) return;
      try_unary(b);
      for (int32_t a = 0; a <= b; ++a) {
        if (look()) return;
        try_pair(a, b);
      }
    }
  }

  // Operations that a term of both takes, and one more; 0 if they are too many.
  std::size_t level_of(const BankEntry& a, const BankEntry& b) const {
    std::size_t count = 1 + a.ops.size();
    auto at = a.ops.begin();
    for (const int32_t op : b.ops) {
      at = std::lower_bound(at, a.ops.end(), op);
      if (at == a.ops.end() || *at != op) ++count;
    }
    return count < queues_.size() ? count : 0;
  }

  bool passes(const HashedForm& form) {
    if (!filter_ || filter_->passes(form)) return true;
    ++result_.filtered;
    return false;
  }

  bool fits(AxisSet free, ir::DType dtype) {
    ++result_.tried;
    const double bytes = extent_of(spec_.axes, free) * static_cast<double>(ir::byte_size(dtype));
    if (bytes <= words_.max_bytes) return true;
    ++result_.too_large;
    return false;
  }

  void queue(std::size_t level, const Derivation& d) {
    queues_[level].push_back(d);
    queue_bytes_ += sizeof(Derivation);
  }

  void try_unary(int32_t id) {
    const BankEntry& e = entry(id);
    const std::size_t level = e.ops.size() + 1;
    if (is_constant(e) || level >= queues_.size()) return;
    for (std::size_t p = 0; p < words_.patterns.size(); ++p) {
      const Pattern& pattern = words_.patterns[p];
      const Term& t = graph_[pattern.term];
      if (graph_[t.args[pattern.hole]].dtype != e.dtype) continue;
      Derivation d{.op = Derivation::Op::kPattern, .pattern = static_cast<int16_t>(p), .a = id};
      if (fits(free_of(d), t.dtype) && passes(form_of(d))) queue(level, d);
    }
    try_reductions(id, ExprKind::kAdd, words_.sums);
    try_reductions(id, ExprKind::kMul, words_.products);
    try_reductions(id, ExprKind::kMax, words_.maxima);
    try_reductions(id, ExprKind::kMin, words_.minima);
  }

  void try_reductions(int32_t id, ExprKind kind, AxisSet axes) {
    const BankEntry& e = entry(id);
    for (AxisSet rest = e.free & axes; rest != 0; rest &= rest - 1) {
      Derivation d{
          .op = Derivation::Op::kReduce, .kind = kind, .bound = rest & ~(rest - 1), .a = id};
      if (fits(free_of(d), e.dtype) && passes(form_of(d))) queue(e.ops.size() + 1, d);
    }
  }

  void try_pair(int32_t a, int32_t b) {
    const BankEntry& x = entry(a);
    const BankEntry& y = entry(b);
    if (x.dtype != y.dtype || (is_constant(x) && is_constant(y))) return;
    const std::size_t level = level_of(x, y);
    if (level == 0) return;
    try_product(level, a, b);
    const bool is_small = fits_pair(x, y);
    const auto try_one = [&](ExprKind kind, int32_t l, int32_t r) {
      ++result_.tried;
      if (!is_small) {
        ++result_.too_large;
        return;
      }
      const Derivation d{.kind = kind, .a = l, .b = r};
      if (passes(form_of(d))) queue(level, d);
    };
    try_one(ExprKind::kAdd, a, b);
    if (a == b) return;
    try_one(ExprKind::kSub, a, b);
    try_one(ExprKind::kSub, b, a);
    if (ir::is_float(x.dtype)) {
      try_one(ExprKind::kDiv, a, b);
      try_one(ExprKind::kDiv, b, a);
    }
    if (words_.has_max) try_one(ExprKind::kMax, a, b);
    if (words_.has_min) try_one(ExprKind::kMin, a, b);
  }

  bool fits_pair(const BankEntry& x, const BankEntry& y) const {
    return extent_of(spec_.axes, x.free | y.free) * static_cast<double>(ir::byte_size(x.dtype)) <=
           words_.max_bytes;
  }

  // The product, and its sums over axes that both have: over another one, its factor alone is summed.
  void try_product(std::size_t level, int32_t a, int32_t b) {
    const BankEntry& x = entry(a);
    const BankEntry& y = entry(b);
    const AxisSet both = x.free & y.free & words_.sums;
    const Derivation whole{.kind = ExprKind::kMul, .a = a, .b = b};
    HashedForm form;
    bool is_possible = true;
    if (filter_) {
      form = product(forms_.hashed(x.form), forms_.hashed(y.form));
      is_possible = filter_->passes(form);
    }
    if (fits(x.free | y.free, x.dtype)) {
      if (is_possible) queue(level, whole);
      if (!is_possible) ++result_.filtered;
    }
    for (AxisSet bound = both; bound != 0; bound = (bound - 1) & both) {
      Derivation d{.op = Derivation::Op::kContract, .bound = bound, .a = a, .b = b};
      if (!fits((x.free | y.free) & ~bound, x.dtype)) continue;
      // What divides a form with its sum divides it without.
      if (!is_possible) {
        ++result_.filtered;
      } else if (!filter_ || passes(scaled(form, forms_.extent_hash(bound)))) {
        queue(level, d);
      }
    }
  }

  AxisSet free_of(const Derivation& d) const {
    AxisSet free = entry(d.a).free;
    if (d.b >= 0) free |= entry(d.b).free;
    if (d.op == Derivation::Op::kPattern) {
      const Pattern& pattern = words_.patterns[static_cast<std::size_t>(d.pattern)];
      const Term& t = graph_[pattern.term];
      for (std::size_t i = 0; i < t.args.size(); ++i) {
        if (i != pattern.hole) free |= graph_[t.args[i]].free;
      }
    }
    return free & ~d.bound;
  }

  ir::DType dtype_of(const Derivation& d) const {
    if (d.op != Derivation::Op::kPattern) return entry(d.a).dtype;
    return graph_[words_.patterns[static_cast<std::size_t>(d.pattern)].term].dtype;
  }

  // The operation alone, without its args.
  static Term operation(const Derivation& d) {
    Term t;
    t.op = d.op == Derivation::Op::kBinary ? TermOp::kBinary : TermOp::kReduce;
    t.kind = d.kind;
    t.bound = d.bound;
    return t;
  }

  // Enough for the filter: forms of binary operations are not made.
  HashedForm form_of(const Derivation& d) {
    if (!filter_) return {};
    const BankEntry& a = entry(d.a);
    if (d.op == Derivation::Op::kReduce && d.kind == ExprKind::kAdd) {
      return scaled(forms_.hashed(a.form), forms_.extent_hash(d.bound));
    }
    if (d.op != Derivation::Op::kBinary) return forms_.hashed(whole_form_of(d));
    const BankEntry& b = entry(d.b);
    switch (d.kind) {
      case ExprKind::kAdd: return sum(forms_.hashed(a.form), forms_.hashed(b.form));
      case ExprKind::kSub: return difference(forms_.hashed(a.form), forms_.hashed(b.form));
      case ExprKind::kMul: return product(forms_.hashed(a.form), forms_.hashed(b.form));
      case ExprKind::kDiv: return product(forms_.hashed(a.form), forms_.hashed(b.inverse));
      default: return forms_.hashed(whole_form_of(d));
    }
  }

  NfId whole_form_of(const Derivation& d) {
    std::vector<NfId> args = {entry(d.a).form};
    switch (d.op) {
      case Derivation::Op::kBinary: args.push_back(entry(d.b).form); break;
      case Derivation::Op::kReduce: break;
      case Derivation::Op::kContract:
        return forms_.summed(d.bound, forms_.product(args[0], entry(d.b).form));
      case Derivation::Op::kPattern: {
        const Pattern& pattern = words_.patterns[static_cast<std::size_t>(d.pattern)];
        const Term& t = graph_[pattern.term];
        std::vector<NfId> all;
        for (std::size_t i = 0; i < t.args.size(); ++i) {
          all.push_back(i == pattern.hole ? args[0] : forms_.of(graph_, t.args[i]));
        }
        return forms_.apply(t, all);
      }
    }
    return forms_.apply(operation(d), args);
  }

  std::optional<TermValues> values_of(const Derivation& d) {
    const TermValues& a = entry(d.a).values;
    if (d.op == Derivation::Op::kContract) return prints_.contract(d.bound, a, entry(d.b).values);
    if (d.op != Derivation::Op::kPattern) {
      std::vector<const TermValues*> args = {&a};
      if (d.b >= 0) args.push_back(&entry(d.b).values);
      return prints_.apply(operation(d), args);
    }
    const Pattern& pattern = words_.patterns[static_cast<std::size_t>(d.pattern)];
    const Term& t = graph_[pattern.term];
    std::vector<TermValues> fixed;
    for (std::size_t i = 0; i < t.args.size(); ++i) {
      fixed.push_back(i == pattern.hole ? TermValues{} : *prints_.of(graph_, t.args[i]));
    }
    std::vector<const TermValues*> args;
    for (std::size_t i = 0; i < t.args.size(); ++i) {
      args.push_back(i == pattern.hole ? &a : &fixed[i]);
    }
    return prints_.apply(t, args);
  }

  void evaluate(const Derivation& d) {
    ++result_.evaluated;
    std::optional<TermValues> values = values_of(d);
    if (!values) return;
    const Fingerprint print = Fingerprints::print(*values);
    const ir::DType dtype = dtype_of(d);
    std::vector<int32_t>& same = ids_[{print, dtype}];
    const NfId form = filter_ ? whole_form_of(d) : 0;
    for (const int32_t id : same) {
      if (forms_.hash(entry(id).form) == forms_.hash(form)) return add_derivation(id, d);
    }
    if (same.size() >= kMaxForms || (!same.empty() && entry(same[0]).leaf >= 0)) return;
    const bool is_target = std::find(targets_.begin(), targets_.end(), print) != targets_.end();
    if (entries_.size() >= static_cast<std::size_t>(options_.capacity) && !is_target) {
      ++result_.dropped;
      return;
    }
    const auto id = static_cast<int32_t>(entries_.size());
    BankEntry e;
    e.dtype = dtype;
    e.free = values->free;
    entry_bytes_ += sizeof(BankEntry) + values->values.size() * sizeof(Residues);
    e.values = std::move(*values);
    if (filter_) {
      e.form = form;
      e.inverse = forms_.inverse(form);
    }
    same.push_back(id);
    entries_.push_back(std::move(e));
    add_derivation(id, d);
  }

  std::vector<int32_t> ops_of(const Derivation& d) const {
    std::vector<int32_t> ops = entry(d.a).ops;
    if (d.b >= 0) {
      const std::vector<int32_t>& more = entry(d.b).ops;
      std::vector<int32_t> both;
      std::set_union(ops.begin(), ops.end(), more.begin(), more.end(), std::back_inserter(both));
      ops = std::move(both);
    }
    return ops;
  }

  // Keeps kMaxDerivations: those that no other beats in both costs, then the cheapest.
  void add_derivation(int32_t id, const Derivation& d) {
    BankEntry& e = entries_[static_cast<std::size_t>(id)];
    if (e.leaf >= 0) return;
    std::vector<int32_t> ops = ops_of(d);
    if (std::binary_search(ops.begin(), ops.end(), id)) return;  // made of itself
    const OpCost own = cost_of(spec_.axes, graph_, words_.patterns, d, e.free, e.dtype);
    OpCost cost = own;
    for (const int32_t op : ops) {
      cost.flops += entry(op).own.flops;
      cost.bytes += entry(op).own.bytes;
    }
    const bool is_cheapest = std::all_of(e.costs.begin(), e.costs.end(),
                                         [&](const OpCost& c) { return cost.total() < c.total(); });
    ops.insert(std::upper_bound(ops.begin(), ops.end(), id), id);
    if (e.ops.empty() || (is_cheapest && ops.size() <= e.ops.size())) {
      e.ops = std::move(ops);
      e.own = own;
    }
    e.derivations.push_back(d);
    e.costs.push_back(cost);
    if (e.derivations.size() > kMaxDerivations) drop_worst(e);
  }

  static void drop_worst(BankEntry& e) {
    const auto is_beaten = [&](const OpCost& c) {
      return std::any_of(e.costs.begin(), e.costs.end(), [&](const OpCost& other) {
        return other.flops <= c.flops && other.bytes <= c.bytes && other != c;
      });
    };
    std::size_t worst = 0;
    for (std::size_t i = 1; i < e.costs.size(); ++i) {
      const bool beaten = is_beaten(e.costs[i]), worst_beaten = is_beaten(e.costs[worst]);
      const bool is_worse =
          beaten != worst_beaten ? beaten : e.costs[i].total() >= e.costs[worst].total();
      if (is_worse) worst = i;
    }
    e.derivations.erase(e.derivations.begin() + static_cast<std::ptrdiff_t>(worst));
    e.costs.erase(e.costs.begin() + static_cast<std::ptrdiff_t>(worst));
  }

  void read_forms() {
    std::vector<std::vector<int32_t>> ids;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const auto at = ids_.find({targets_[i], graph_[outputs_[i]].dtype});
      if (at == ids_.end() || at->second.empty()) return;
      ids.push_back(at->second);
    }
    result_.reached = true;
    result_.forms = extract(entries_, ids, spec_.axes, words_.patterns, graph_, options_.max_forms);
    std::erase_if(result_.forms, [&](const BankForm& f) { return f.outputs == outputs_; });
  }

  const Spec& spec_;
  TermGraph& graph_;
  BankOptions options_;
  Fingerprints prints_;
  NormalForms forms_;
  std::vector<TermId> outputs_;
  Vocabulary words_;
  std::optional<FormFilter> filter_;
  std::vector<Fingerprint> targets_;  // of the outputs
  std::vector<BankEntry> entries_;
  std::map<std::pair<Fingerprint, ir::DType>, std::vector<int32_t>> ids_;
  std::vector<std::vector<Derivation>> queues_;  // by number of operations
  std::size_t queue_bytes_ = 0, entry_bytes_ = 0;
  Clock::time_point start_ = Clock::now();
  int64_t steps_ = 0;
  bool over_ = false;
  BankResult result_;
};

}  // namespace

BankResult enumerate(const Spec& spec, TermGraph& graph, const BankOptions& options) {
  return Bank(spec, graph, options).run();
}

}  // namespace prunerc::search::algebra

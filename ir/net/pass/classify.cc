#include "ir/net/pass/classify.h"

#include "ir/arith/linear.h"
#include "ir/builder.h"
#include "ir/net/pass/stage.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <optional>
#include <set>

namespace prunerc::net {
namespace {

using ir::Block;
using ir::Buffer;
using ir::Expr;
using ir::Load;
using ir::Store;
using ir::VarId;

/// Fewer reads of an input are its halves or neighbours, not a window.
constexpr int kFewestOfWindow = 4;

class Classifier {
 public:
  explicit Classifier(const ir::Program& program) : program_(program) {}

  CallFacts run() {
    for (const ir::BufferId param : program_.params()) {
      const Buffer& buffer = program_.buffer(param);
      if (buffer.role == ir::BufferRole::kInput) facts_.reads.push_back(PortRead::kSame);
      num_outputs_ += buffer.role == ir::BufferRole::kOutput;
    }
    facts_.kind = kind();
    return facts_;
  }

 private:
  CallKind kind() {
    if (!program_.root().defined() || !program_.domain().empty()) return CallKind::kOther;
    for (const Block* block : blocks_of(program_)) {
      const std::optional<Stage> stage = stage_of(*block);
      bool data = false;
      ir::walk(
          block->body, [](ir::Stmt) { return true; },
          [&](Expr e) {
            for (const Load* load : loads_of(e)) data = data || is_gather(*load);
          });
      if (data) return CallKind::kOpaque;
      if (!stage) return CallKind::kOther;
      stages_.push_back(*stage);
    }
    if (num_outputs_ != 1) return CallKind::kOther;
    const bool any = std::any_of(stages_.begin(), stages_.end(),
                                 [](const Stage& stage) { return stage.reduces; });
    return any ? kind_of_reductions() : kind_of_elements();
  }

  // --- without a reduction

  CallKind kind_of_elements() {
    const Buffer& out = program_.buffer(program_.params().back());
    for (const Stage& stage : stages_) {
      if (!same_shape(program_.buffer(stage.store->buffer), out)) return CallKind::kOther;
      facts_.num_operations += num_operations(stage.value);
    }
    if (stages_.size() == 1 && stages_[0].value.as<Load>() != nullptr) return kind_of_copy();
    bool broadcasts = false;
    std::set<ir::BufferId> elsewhere;
    for (const Stage& stage : stages_) {
      for (const Load* load : loads_of(stage.value)) {
        const PortRead read = read_of(*load, *stage.store);
        if (read == PortRead::kElsewhere) elsewhere.insert(load->buffer);
        broadcasts |= read == PortRead::kBroadcast;
        note(load->buffer, read);
      }
    }
    if (elsewhere.size() == 1 && reads_one_window(*elsewhere.begin())) return CallKind::kWindow;
    if (!elsewhere.empty()) return CallKind::kOther;
    return broadcasts ? CallKind::kBroadcast : CallKind::kPointwise;
  }

  // All reads of the input stand in one statement, at places a constant apart: a window, written out.
  bool reads_one_window(ir::BufferId input) const {
    if (program_.buffer(input).role != ir::BufferRole::kInput) return false;
    ir::IrBuilder b(program_);
    const Load* first = nullptr;
    const Stage* home = nullptr;
    int num_reads = 0;
    for (const Stage& stage : stages_) {
      for (const Load* load : loads_of(stage.value)) {
        if (load->buffer != input) continue;
        if (++num_reads == 1) {
          first = load;
          home = &stage;
        }
        if (home != &stage || !are_apart_by_constants(b, *first, *load)) return false;
      }
    }
    return num_reads >= kFewestOfWindow;
  }

  static bool are_apart_by_constants(ir::IrBuilder& b, const Load& one, const Load& other) {
    const ir::VarRanges no_ranges;
    for (std::size_t d = 0; d < one.indices.size(); ++d) {
      const ir::Linear apart = ir::to_linear(b, other.indices[d], no_ranges) -
                               ir::to_linear(b, one.indices[d], no_ranges);
      if (!apart.is_constant()) return false;
    }
    return true;
  }

  CallKind kind_of_copy() {
    const Store& store = *stages_[0].store;
    const Load& load = *stages_[0].value.as<Load>();
    const PortRead read = read_of(load, store);
    note(load.buffer, read);
    facts_.keeps_innermost = !load.indices.empty() && !store.indices.empty() &&
                             ends_with(load.indices.back(), store.indices.back());
    if (read == PortRead::kSame) {
      facts_.is_copy = true;
      return CallKind::kPointwise;
    }
    for (const ir::IterVar& iter : stages_[0].block->iters) {
      if (extent_of(iter.extent) > 1 && !ir::mentions(load.indices, iter.var->id))
        return read == PortRead::kBroadcast ? CallKind::kBroadcast : CallKind::kOther;
    }
    note(load.buffer, PortRead::kElsewhere);
    facts_.is_copy = true;
    return CallKind::kView;
  }

  // e is `var`, or something plus `var`.
  static bool ends_with(Expr e, Expr var) {
    if (const ir::Add* add = e.as<ir::Add>())
      return ends_with(add->rhs, var) || ends_with(add->lhs, var);
    const ir::Var* own = e.as<ir::Var>();
    const ir::Var* wanted = var.as<ir::Var>();
    return own != nullptr && wanted != nullptr && own->id == wanted->id;
  }

  PortRead read_of(const Load& load, const Store& store) const {
    const Buffer& from = program_.buffer(load.buffer);
    const Buffer& to = program_.buffer(store.buffer);
    const bool is_same = same_shape_but_units(from, to);
    std::size_t next = 0;
    for (std::size_t d = 0; d < load.indices.size(); ++d) {
      if (extent_of(from.shape[d]) == 1) continue;
      const ir::Var* var = load.indices[d].as<ir::Var>();
      if (var == nullptr) return PortRead::kElsewhere;
      // Own indices, in the output's order.
      std::size_t at = next;
      while (at < store.indices.size() && !is_var(store.indices[at], var->id)) ++at;
      if (at == store.indices.size() || extent_of(to.shape[at]) != extent_of(from.shape[d]))
        return PortRead::kElsewhere;
      next = at + 1;
    }
    return is_same ? PortRead::kSame : PortRead::kBroadcast;
  }

  static bool is_var(Expr e, VarId id) {
    const ir::Var* var = e.as<ir::Var>();
    return var != nullptr && var->id == id;
  }

  void note(ir::BufferId buffer, PortRead read) {
    for (std::size_t i = 0; i < facts_.reads.size(); ++i) {
      if (program_.params()[i] == buffer) facts_.reads[i] = std::max(facts_.reads[i], read);
    }
  }

  // --- with reductions

  CallKind kind_of_reductions() {
    std::fill(facts_.reads.begin(), facts_.reads.end(), PortRead::kElsewhere);
    int num_linear = 0, num_reductions = 0;
    bool has_window = false, is_last = true;
    const Buffer* reduced = nullptr;
    for (const Stage& stage : stages_) {
      if (!stage.reduces) continue;
      ++num_reductions;
      num_linear += is_contraction(stage);
      for (const Load* load : loads_of(stage.value)) {
        has_window |= reads_window(*load, stage);
        if (!mentions_any(*load, stage.reduce_vars)) continue;
        is_last = is_last && reduces_last(*load, stage);
        reduced = &program_.buffer(load->buffer);
      }
    }
    has_window |= has_padding();
    if (num_linear > 1 || (num_linear == 1 && num_reductions > 1)) return CallKind::kOther;
    facts_.has_window = has_window;
    if (num_linear == 1) return CallKind::kLinear;
    if (has_window) return num_reductions == 1 ? CallKind::kWindow : CallKind::kOther;
    if (reduced == nullptr) return CallKind::kOther;
    const Buffer& out = program_.buffer(program_.params().back());
    if (num_elements(out) == num_elements(*reduced))
      return is_last && facts_.row_elems > 0 ? CallKind::kRows : CallKind::kOther;
    if (num_reductions > 1) return CallKind::kOther;
    if (!is_last) facts_.row_elems = 0;
    return CallKind::kReduce;
  }

  // A number, or the one element of a tensor.
  static bool is_one_for_all(Expr fill) {
    const auto* load = fill.as<Load>();
    return !ir::has_load(fill) ||
           (load != nullptr && std::all_of(load->indices.begin(), load->indices.end(),
                                           [](Expr e) { return e.as<ir::IntImm>() != nullptr; }));
  }

  // A copy with something else around it, which a reduction reads.
  bool has_padding() const {
    return std::any_of(stages_.begin(), stages_.end(), [&](const Stage& stage) {
      const ir::Select* select = stage.value.as<ir::Select>();
      return !stage.reduces && select != nullptr && select->on_true.as<Load>() != nullptr &&
             is_one_for_all(select->on_false) && !ir::has_load(select->condition) &&
             program_.buffer(stage.store->buffer).role == ir::BufferRole::kIntermediate;
    });
  }

  // Axes that are reduced are the last ones; all rows of a program have one length.
  bool reduces_last(const Load& load, const Stage& stage) {
    const Buffer& from = program_.buffer(load.buffer);
    int64_t elems = 1;
    bool inside = false;
    for (std::size_t d = 0; d < load.indices.size(); ++d) {
      if (extent_of(from.shape[d]) == 1) continue;
      const bool is_reduced = ir::mentions(load.indices[d], stage.reduce_vars);
      if (inside && !is_reduced) return false;
      inside = inside || is_reduced;
      if (is_reduced) elems *= extent_of(from.shape[d]);
    }
    if (facts_.row_elems != 0 && facts_.row_elems != elems) return false;
    facts_.row_elems = elems;
    return true;
  }

  const ir::Program& program_;
  std::vector<Stage> stages_;
  int num_outputs_ = 0;
  CallFacts facts_;
};

}  // namespace

std::string_view to_string(CallKind kind) {
  switch (kind) {
    case CallKind::kPointwise: return "pointwise";
    case CallKind::kBroadcast: return "broadcast";
    case CallKind::kView: return "view";
    case CallKind::kReduce: return "reduce";
    case CallKind::kLinear: return "linear";
    case CallKind::kWindow: return "window";
    case CallKind::kRows: return "rows";
    case CallKind::kOpaque: return "opaque";
    case CallKind::kOther: return "other";
  }
  return "other";
}

CallFacts classify(const ir::Program& program) { return Classifier(program).run(); }

}  // namespace prunerc::net

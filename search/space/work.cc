#include "search/space/work.h"

#include "ir/analysis/flops.h"
#include "ir/analysis/masks/masks.h"
#include "ir/map.h"
#include "ir/visit.h"
#include "schedule/schedule.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace prunerc::search {
namespace {

bool has_load(ir::Expr e) {
  bool found = false;
  ir::walk(e, [&](ir::Expr part) {
    found |= part.as<ir::Load>() != nullptr;
    return !found;
  });
  return found;
}

/// Elements that are read of one buffer.
struct Reads {
  bool is_direct = false;  // also at subscripts without data
  double gathered = 0;
};

class ReadCounter {
 public:
  void stmt(ir::Stmt s, double times) {
    if (const ir::Loop* loop = s.as<ir::Loop>()) {
      const ir::IntImm* extent = loop->extent.as<ir::IntImm>();
      // Of unknown length: nothing under it is told apart from reading all.
      times *= extent != nullptr ? static_cast<double>(extent->value) : kAll;
    }
    if (const ir::Store* store = s.as<ir::Store>()) {
      for (ir::Expr index : store->indices) index_ops_ += times * ir::count_ops(index).integer;
    }
    ir::for_each_child(
        s, [&](ir::Stmt child) { stmt(child, times); }, [&](ir::Expr e) { expr(e, times); });
  }
  /// Integer operations in data-dependent subscripts.
  double index_ops() const { return index_ops_; }
  const Reads* find(ir::BufferId id) const {
    const auto at = reads_.find(id.value);
    return at == reads_.end() ? nullptr : &at->second;
  }

 private:
  static constexpr double kAll = 1e18;

  void expr(ir::Expr e, double times) {
    ir::walk(e, [&](ir::Expr part) {
      const ir::Load* load = part.as<ir::Load>();
      if (load == nullptr) return true;
      Reads& reads = reads_[load->buffer.value];
      const bool by_data = std::any_of(load->indices.begin(), load->indices.end(), has_load);
      if (by_data) reads.gathered += times;
      reads.is_direct |= !by_data;
      return true;
    });
    ir::walk(e, [&](ir::Expr part) {
      const ir::Load* load = part.as<ir::Load>();
      if (load == nullptr) return true;
      for (ir::Expr index : load->indices) index_ops_ += times * ir::count_ops(index).integer;
      return false;  // those of its subscripts are among these
    });
  }

  double index_ops_ = 0;
  std::map<int32_t, Reads> reads_;
};

// What a run need not do of the blocks behind masks (ir/analysis/masks), by block.
class MaskedWork {
 public:
  explicit MaskedWork(const ir::Program& program) {
    ir::IrBuilder b(program);
    ir::Masks masks(b, program);
    ir::walk(
        program.root(),
        [&](ir::Stmt s) {
          // What stands behind a condition is counted by that.
          const auto* block = s.as<ir::Block>();
          if (block != nullptr && !block->guard.defined()) add(*block, masks.needed_where(*block));
          return block == nullptr && s.as<ir::If>() == nullptr;
        },
        [](ir::Expr) {});
  }

  bool has(ir::BlockId id) const { return left_out_.contains(id); }
  double float_ops() const { return float_ops_; }
  double integer_ops() const { return integer_ops_; }

 private:
  void add(const ir::Block& block, const std::vector<ir::Linear>& needed) {
    const auto* store = block.body.as<ir::Store>();
    const std::optional<double> share = ir::share_where(block, needed);
    if (store == nullptr || !share || *share > 1 - ir::kLeastMaskedPart) return;
    double times = 1 - *share;
    for (const ir::IterVar& iter : block.iters) {
      times *= static_cast<double>(iter.extent.as<ir::IntImm>()->value);
    }
    const ir::OpCounts ops = ir::count_ops(store->value);
    float_ops_ += times * ops.flops();
    integer_ops_ += times * ops.integer;
    left_out_.insert(block.id);
  }

  std::set<ir::BlockId> left_out_;
  double float_ops_ = 0, integer_ops_ = 0;
};

// The program with updates that a condition on positions turns off (select(c, x, constant)) behind
// that condition, where counting sees how often it holds. A transposed convolution computes what
// its congruences let through.
ir::Program without_masked_updates(const ir::Program& program, const MaskedWork& masked) {
  ir::IrBuilder b(program);
  const std::function<ir::Stmt(ir::Stmt)> go = [&](ir::Stmt s) -> ir::Stmt {
    if (!s.defined()) return s;
    const auto* block = s.as<ir::Block>();
    if (block != nullptr && masked.has(block->id)) return s;
    const auto* store = s.as<ir::Store>();
    const ir::BinaryNode* step = store != nullptr ? ir::as_binary(store->value) : nullptr;
    const auto* held = step != nullptr ? step->lhs.as<ir::Load>() : nullptr;
    const auto* update = step != nullptr ? step->rhs.as<ir::Select>() : nullptr;
    const bool masks = held != nullptr && update != nullptr && held->buffer == store->buffer &&
                       !has_load(update->condition) &&
                       (update->on_false.as<ir::IntImm>() != nullptr ||
                        update->on_false.as<ir::FloatImm>() != nullptr);
    if (masks) {
      const ir::Expr next = b.binary(step->kind, step->lhs, update->on_true);
      return b.if_then(update->condition, b.store(store->buffer, store->indices, next));
    }
    return ir::map_children(b, s, go, [](ir::Expr e) { return e; });
  };
  return b.finish(go(program.root()));
}

// Running reductions take a step for each element, whatever their definition repeats.
ir::Program with_scans(const ir::Program& program) {
  schedule::Schedule s(program);
  for (const ir::BlockId id : s.blocks()) static_cast<void>(s.scan(id).ok());
  return s.program();
}

std::optional<double> num_elements(const ir::Buffer& buffer) {
  double num = 1;
  for (ir::Expr extent : buffer.shape) {
    const ir::IntImm* c = extent.as<ir::IntImm>();
    if (c == nullptr) return std::nullopt;
    num *= static_cast<double>(c->value);
  }
  return num;
}

double touched_bytes(const ir::Program& program, const ReadCounter& counter) {
  double total = 0;
  for (ir::BufferId id : program.params()) {
    const ir::Buffer& buffer = program.buffer(id);
    std::optional<double> num = num_elements(buffer);
    if (!num) return 0;
    const Reads* reads = counter.find(id);
    const bool is_input = buffer.role == ir::BufferRole::kInput;
    if (is_input && reads != nullptr && !reads->is_direct) num = std::min(*num, reads->gathered);
    total += *num * static_cast<double>(ir::byte_size(buffer.dtype));
  }
  return total;
}

}  // namespace

Work work_of(const ir::Program& program) {
  Work work;
  if (!program.root().defined()) return work;
  ReadCounter counter;
  counter.stmt(program.root(), 1);
  const ir::Program scanned = with_scans(program);
  const MaskedWork masked(scanned);
  const Result<ir::OpCounts> ops = ir::count_ops(without_masked_updates(scanned, masked));
  if (ops.ok()) {
    work.float_ops = std::max(0.0, ops->flops() - masked.float_ops());
    work.integer_ops = std::max(0.0, ops->integer - counter.index_ops() - masked.integer_ops());
  }
  work.bytes = touched_bytes(program, counter);
  return work;
}

}  // namespace prunerc::search

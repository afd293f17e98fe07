#include "costmodel/feature/cpu_flow.h"

#include "costmodel/latency/levels.h"
#include "costmodel/latency/traffic.h"
#include "ir/support/check.h"

#include <algorithm>

namespace prunerc::costmodel {
namespace {

/// A product's result and its two operands.
constexpr std::size_t kUses = 3;
/// Place of the stride among a buffer's features.
constexpr std::size_t kStride = kNumAccessFeatures - 1;
/// Without reuse the traffic counts twice (statement.cc).
constexpr double kNoReuse = 0.5;

enum class Location : uint8_t { kGlobal, kShared, kLocal };
enum class Access : uint8_t { kRead, kWrite };

/// What moves between two levels: `unique` is what there is of it on the nearer one.
struct Movement {
  TaskTile moved, unique;
  Sym reuse_count = 0, reuse_iterations = 0, reuse_bytes = 0;  // 0: none
};

bool reads(const StoreNest& store, ir::BufferId id) {
  return std::any_of(store.accesses.begin(), store.accesses.end(),
                     [&](const StoreAccess& a) { return !a.is_write && a.access->buffer == id; });
}

class CpuFlow {
 public:
  CpuFlow(const StoreTable& stores, const ir::Target& target, LayoutBuilder* out)
      : table_(stores.table()), stores_(stores.stores()), target_(target), out_(*out) {}

  void run() {
    const std::vector<StoreLayout>& layouts = out_.layout.stores;
    for (std::size_t s = 0; s < stores_.size(); ++s) {
      if (layouts[s].uses.size() != kUses || !reads(stores_[s], result_of(s))) continue;
      add_product(s);
      return;
    }
  }

 private:
  ir::BufferId result_of(std::size_t s) const { return stores_[s].store->buffer; }

  void add_product(std::size_t s) {
    const CpuLevels levels(table_, *stores_[s].nest, target_.vector_bytes, line_bytes(target_));
    const StoreLayout& layout = out_.layout.stores[s];
    const UseLayout &sum = layout.uses[0], &left = layout.uses[1], &right = layout.uses[2];
    const Slot none = out_.raw(0);
    const Slot tile_bytes =
        out_.log(levels.held(sum.buffer) * static_cast<double>(target_.vector_bytes));
    add_init(s, tile_bytes);
    for (const UseLayout* operand : {&left, &right}) {
      const Movement fetch = fetch_of(levels, operand->buffer);
      move(Location::kGlobal, Access::kRead, fetch, operand->slots[kStride], none);
      Movement fill;
      fill.moved = fetch.moved;
      fill.unique = levels.task_tile(operand->buffer);
      move(Location::kShared, Access::kWrite, fill, operand->slots[kStride],
           out_.log(fill.unique.bytes));
    }
    for (const UseLayout* operand : {&left, &right}) {
      use(layout.ops, Location::kShared, *operand,
          out_.log(levels.task_tile(operand->buffer).bytes));
    }
    use(layout.ops, Location::kLocal, sum, tile_bytes);
    Movement back;
    back.moved = fetch_of(levels, sum.buffer).moved;
    back.unique = levels.task_tile(sum.buffer);
    move(Location::kLocal, Access::kRead, back, sum.slots[kStride], tile_bytes);
    back.unique = levels.whole(sum.buffer);
    move(Location::kGlobal, Access::kWrite, back, sum.slots[kStride], none);
    PRUNERC_CHECK(out_.layout.paper_steps.size() == kNumPaperFlowSteps, "each step is a row");
  }

  // Of what starts the sum: the last store before it that does not read it.
  void add_init(std::size_t sum, Slot tile_bytes) {
    for (std::size_t s = sum; s-- > 0;) {
      if (result_of(s) != result_of(sum) || reads(stores_[s], result_of(s))) continue;
      const StoreLayout& layout = out_.layout.stores[s];
      use(layout.ops, Location::kLocal, layout.uses.front(), tile_bytes);
      return;
    }
    move(Location::kLocal, Access::kWrite, {}, out_.raw(0), tile_bytes);
  }

  // What all tasks bring in of one buffer. What several of them bring in is used again a task later.
  Movement fetch_of(const CpuLevels& levels, ir::BufferId id) const {
    const TaskTile tile = levels.task_tile(id);
    Movement out;
    out.moved = {tile.bytes * tile.outside, tile.line_bytes * tile.outside, 1};
    out.unique = levels.whole(id);
    const Sym count = out.moved.bytes / max(1, out.unique.bytes);
    const Sym again = less(1, count);
    Sym task_bytes = 0;
    for (const ir::BufferId other : levels.buffers()) task_bytes += levels.task_tile(other).bytes;
    out.reuse_count = select(again, count, 0);
    out.reuse_iterations = select(again, levels.iterations() / tile.outside, 0);
    out.reuse_bytes = select(again, task_bytes, 0);
    return out;
  }

  std::vector<Slot> begin(Slot ops, Location location) {
    std::vector<Slot> row = {ops};
    for (const Location at : {Location::kGlobal, Location::kShared, Location::kLocal}) {
      row.push_back(out_.raw(at == location ? 1 : 0));
    }
    return row;
  }

  void end(std::vector<Slot> row, Slot alloc_bytes) {
    row.push_back(alloc_bytes);
    PRUNERC_CHECK(row.size() == kNumPaperFlowFeatures, "feature.def and its writer agree");
    PaperStepLayout step;
    std::copy(row.begin(), row.end(), step.begin());
    out_.layout.paper_steps.push_back(step);
  }

  // A step that is in the program, at another level.
  void use(Slot ops, Location location, const UseLayout& known, Slot alloc_bytes) {
    std::vector<Slot> row = begin(ops, location);
    row.insert(row.end(), known.slots.begin(), known.slots.end());
    end(std::move(row), alloc_bytes);
  }

  // A step that a GPU's program would have: no arithmetic.
  void move(Location location, Access access, const Movement& m, Slot stride, Slot alloc_bytes) {
    const double line = line_bytes(target_);
    std::vector<Slot> row = begin(out_.raw(0), location);
    row.push_back(out_.raw(access == Access::kRead ? 1 : 0));
    row.push_back(out_.raw(access == Access::kWrite ? 1 : 0));
    row.push_back(out_.raw(0));
    const Sym volumes[] = {m.moved.bytes, m.unique.bytes, m.moved.line_bytes / line,
                           m.unique.line_bytes / line};
    for (const Sym v : volumes) row.push_back(out_.log(v));
    const Sym again = less(0, m.reuse_count);
    for (const Sym type : {again, Sym(0), logical_not(again)}) row.push_back(out_.raw(type));
    for (const Sym v : {m.reuse_iterations, m.reuse_bytes, m.reuse_count}) {
      row.push_back(out_.log(v));
    }
    const Sym per = select(again, m.reuse_count, kNoReuse);
    for (const Sym v : volumes) row.push_back(out_.log(v / per));
    row.push_back(stride);
    end(std::move(row), alloc_bytes);
  }

  const NestTable& table_;
  const std::vector<StoreNest>& stores_;
  const ir::Target& target_;
  LayoutBuilder& out_;
};

}  // namespace

void add_cpu_paper_flow(const StoreTable& stores, const ir::Target& target, LayoutBuilder* out) {
  CpuFlow(stores, target, out).run();
}

}  // namespace prunerc::costmodel

#include "codegen/races.h"

#include "codegen/gpu_storage.h"
#include "codegen/lower/analysis/kernel.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/storage_plan.h"
#include "ir/evaluate_int.h"
#include "ir/tensor/bulk_copy.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

namespace prunerc::codegen {
namespace {

using namespace ir;

/// Indices along the axes; kAll where the threads along an axis act together.
using Thread = std::array<int16_t, kNumThreadDims>;
constexpr int16_t kAll = -1;

std::string to_text(const Thread& thread) {
  if (std::all_of(thread.begin(), thread.end(), [](int16_t i) { return i == kAll; }))
    return "all threads";
  std::string out;
  for (const int16_t i : thread) {
    out += (out.empty() ? "" : ", ") + (i == kAll ? "*" : std::to_string(i));
  }
  return "thread (" + out + ")";
}

/// What is known of one byte. Epochs count barriers, steps those of warps as well.
struct Cell {
  int64_t write_epoch = -1;
  int64_t read_epoch = -1;
  int64_t write_step = -1;
  int64_t read_step = -1;
  Thread writer{}, reader{};
  bool several_readers = false;  // in the last step
  bool several_warps = false;    // have read it
  bool in_flight = false;        // an asynchronous copy has not delivered it
};

/// A stretch of memory: the block's shared memory or the workspace, by bytes, or a parameter, by
/// elements. One block touches little of it.
class Arena {
 public:
  Cell& at(int64_t index) {
    std::vector<Cell>& page = pages_[index / kPageCells];
    if (page.empty()) page.resize(kPageCells);
    return page[static_cast<std::size_t>(index % kPageCells)];
  }

 private:
  static constexpr int64_t kPageCells = 256;
  std::unordered_map<int64_t, std::vector<Cell>> pages_;
};

/// Where a buffer begins, and cells of one element.
struct Place {
  Arena* arena = nullptr;
  int64_t offset = 0;
  int64_t elem_cells = 1;
};

class Replay {
 public:
  Replay(const Program& program, const GpuStorage& storage, const RaceOptions& options,
         RaceReport* report)
      : program_(program), storage_(storage), options_(options), report_(*report) {}

  void run(const Kernel& kernel) {
    kernel_ = &kernel;
    written_.clear();
    visible_.clear();
    walk(
        kernel.body,
        [&](Stmt s) {
          // Stages of a ring buffer are waited for at mbarriers, by producer and consumer.
          const Loop* loop = s.as<Loop>();
          if (loop != nullptr && is_bulk_copy(*loop)) return false;
          if (const Store* store = s.as<Store>()) written_.insert(store->buffer);
          return true;
        },
        [](Expr) {});
    int64_t num_blocks = 1;
    for (const Loop* loop : kernel.grid) num_blocks *= extent_of(*loop);
    const int64_t chosen = std::min(num_blocks, options_.max_blocks);
    for (int64_t i = 0; i < chosen && report_.is_complete; ++i) {
      run_block(chosen == 1 ? 0 : i * (num_blocks - 1) / (chosen - 1));
    }
  }

 private:
  static int64_t extent_of(const Loop& loop) {
    const IntImm* extent = loop.extent.as<IntImm>();
    return extent == nullptr ? 1 : extent->value;  // find_kernels has seen to it
  }

  void run_block(int64_t block) {
    ++report_.num_blocks;
    arenas_.clear();
    epoch_ = step_ = 0;
    flying_.clear();
    open_group_.clear();
    thread_.fill(kAll);
    for (std::size_t i = kernel_->grid.size(); i-- > 0;) {
      const int64_t extent = extent_of(*kernel_->grid[i]);
      set(kernel_->grid[i]->var->id, block % extent);
      block /= extent;
    }
    visit(kernel_->body);
  }

  // ---- values ----

  void set(VarId var, int64_t value) {
    const auto at = static_cast<std::size_t>(var.value);
    if (at >= values_.size()) values_.resize(at + 1);
    values_[at] = value;
  }

  std::optional<int64_t> value_of(Expr e) const {
    return evaluate_int(e, [&](Expr leaf) -> std::optional<int64_t> {
      const Var* var = leaf.as<Var>();
      if (var == nullptr || static_cast<std::size_t>(var->id.value) >= values_.size())
        return std::nullopt;
      return values_[static_cast<std::size_t>(var->id.value)];
    });
  }

  // ---- what happens, in the order of one thread; threads one after the other within a loop ----

  /// Does anything in there matter to other threads?
  bool is_visible(Stmt s) {
    if (!s.defined()) return false;
    const auto [it, is_new] = visible_.emplace(s.node(), false);
    if (!is_new) return it->second;
    bool found = false;
    walk(
        s,
        [&](Stmt x) {
          const Loop* loop = x.as<Loop>();
          const Store* store = x.as<Store>();
          found = found || (store != nullptr && is_shared(store->buffer)) ||
                  (loop != nullptr && (attr_of(*loop, kSyncAttr) || attr_of(*loop, kWaitAttr) ||
                                       attr_of(*loop, kCommitAttr)));
          return !found;
        },
        [&](Expr e) {
          walk(e, [&](Expr x) {
            const Load* load = x.as<Load>();
            found = found || (load != nullptr && is_shared(load->buffer));
            return !found;
          });
        });
    visible_[s.node()] = found;
    return found;
  }

  bool is_shared(BufferId id) const {
    return program_.buffer(id).scope != Scope::kLocal && written_.count(id) != 0;
  }

  void visit(Stmt s) {
    if (!report_.is_complete || !is_visible(s)) return;
    if (const Loop* loop = s.as<Loop>()) return visit_loop(*loop);
    if (const If* branch = s.as<If>()) return visit_if(*branch);
    if (const Store* store = s.as<Store>()) {
      for (Expr index : store->indices) visit_value(index);
      visit_value(store->value);
      return access(store->buffer, store->indices, true);
    }
    for_each_child(
        s, [&](Stmt child) { visit(child); }, [&](Expr e) { visit_value(e); });
  }

  void visit_loop(const Loop& loop) {
    if (const std::optional<int64_t> pending = attr_of(loop, kWaitAttr)) wait(*pending);
    if (const int64_t sync = attr_of(loop, kSyncAttr).value_or(0); sync != 0) {
      // A barrier that some threads pass alone is not one of the block's.
      const bool alone =
          std::any_of(thread_.begin(), thread_.end(), [](int16_t i) { return i != kAll; });
      if (alone) ++report_.num_unknown;
      ++step_;
      if (sync == kBlockSync) ++epoch_;
    }
    const std::optional<int64_t> extent = value_of(loop.extent);
    if (!extent) {
      ++report_.num_unknown;
      return;
    }
    const bool was_async = std::exchange(is_async_, is_async_ || attr_of(loop, kAsyncAttr));
    const bool is_lane = is_lane_axis(loop.loop_kind);
    for (int64_t i = 0; i < *extent && report_.is_complete; ++i) {
      set(loop.var->id, i);
      if (is_lane) {
        thread_[static_cast<std::size_t>(axis_of(loop.loop_kind))] = static_cast<int16_t>(i);
      }
      visit(loop.body);
    }
    if (is_lane) thread_[static_cast<std::size_t>(axis_of(loop.loop_kind))] = kAll;
    is_async_ = was_async;
    if (attr_of(loop, kCommitAttr)) flying_.push_back(std::exchange(open_group_, {}));
  }

  void visit_if(const If& branch) {
    visit_value(branch.condition);
    const std::optional<int64_t> holds = value_of(branch.condition);
    if (!holds) ++report_.num_unknown;
    if (!holds || *holds != 0) visit(branch.then_body);
    if (!holds || *holds == 0) visit(branch.else_body);
  }

  // The loads of an expression that is evaluated here; select evaluates one side only.
  void visit_value(Expr e) {
    if (const Select* select = e.as<Select>()) {
      visit_value(select->condition);
      const std::optional<int64_t> holds = value_of(select->condition);
      if (!holds || *holds != 0) visit_value(select->on_true);
      if (!holds || *holds == 0) visit_value(select->on_false);
      return;
    }
    for_each_child(e, [&](Expr child) { visit_value(child); });
    if (const Load* load = e.as<Load>()) access(load->buffer, load->indices, false);
  }

  // ---- memory ----

  static constexpr int64_t kSharedMemory = 0;
  static constexpr int64_t kWorkspace = 1;
  static constexpr int64_t kFirstParam = 2;

  Place place_of(BufferId id) {
    const Buffer& buffer = program_.buffer(id);
    Place place;
    const auto planned = storage_.extents.find(id);
    if (planned == storage_.extents.end()) {
      place.arena = &arenas_[kFirstParam + id.value];
    } else {
      place.arena = &arenas_[buffer.scope == Scope::kShared ? kSharedMemory : kWorkspace];
      place.offset = planned->second.offset;
      place.elem_cells = byte_size(buffer.dtype);
    }
    return place;
  }

  void access(BufferId id, std::span<const Expr> indices, bool is_write) {
    if (!is_shared(id)) return;
    if (++report_.num_accesses > options_.max_accesses) {
      report_.is_complete = false;
      return;
    }
    const Buffer& buffer = program_.buffer(id);
    int64_t flat = 0;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      const std::optional<int64_t> index = value_of(indices[d]);
      const IntImm* extent = buffer.shape[d].as<IntImm>();
      if (!index || extent == nullptr) {
        ++report_.num_unknown;
        return;
      }
      flat = flat * extent->value + *index;
    }
    const Place place = place_of(id);
    touch(place, flat, is_write, id, indices);
  }

  void touch(const Place& place, int64_t flat, bool is_write, BufferId id,
             std::span<const Expr> indices) {
    const int64_t first = place.offset + flat * place.elem_cells;
    if (first < 0) return;  // FPV finds places outside of a buffer
    const Thread me = thread();
    const char* found = nullptr;
    for (int64_t at = first; at < first + place.elem_cells; ++at) {
      Cell& cell = place.arena->at(at);
      if (found == nullptr) {
        found = conflict(cell, me, is_write);
        if (found != nullptr) complain(found, cell, me, is_write, id, indices);
      }
      record(cell, me, is_write);
    }
    if (is_write && is_async_) open_group_.push_back({place.arena, first, place.elem_cells, me});
  }

  // Axes of one thread have no other.
  Thread thread() const {
    Thread out = thread_;
    for (std::size_t a = 0; a < out.size(); ++a) {
      if (kernel_->threads[a] == 1) out[a] = 0;
    }
    return out;
  }

  // Known where thread.x is a warp.
  bool is_same_warp(const Thread& x, const Thread& y) const {
    const bool is_one = x[1] != kAll && x[2] != kAll;
    return kernel_->threads[0] == kWarpSize && is_one && x[1] == y[1] && x[2] == y[2];
  }

  // Is what another thread did then over for this one?
  bool is_over(int64_t step, const Thread& other, const Thread& me) const {
    return other == me || (step != step_ && is_same_warp(other, me));
  }

  const char* conflict(const Cell& cell, const Thread& me, bool is_write) const {
    if (cell.in_flight) return "an asynchronous copy to it is under way";
    if (cell.write_epoch == epoch_ && !is_over(cell.write_step, cell.writer, me)) return "written";
    if (!is_write || cell.read_epoch != epoch_) return nullptr;
    const bool by_others = cell.several_warps || (cell.several_readers && cell.read_step == step_);
    return by_others || !is_over(cell.read_step, cell.reader, me) ? "read" : nullptr;
  }

  void record(Cell& cell, const Thread& me, bool is_write) {
    if (is_write) {
      cell.write_epoch = epoch_;
      cell.write_step = step_;
      cell.writer = me;
      cell.in_flight = is_async_;
      return;
    }
    const bool is_again = cell.read_epoch == epoch_;
    const bool is_other = cell.reader != me;
    cell.several_warps =
        is_again && (cell.several_warps || (is_other && !is_same_warp(cell.reader, me)));
    cell.several_readers =
        is_again && cell.read_step == step_ && (cell.several_readers || is_other);
    cell.read_epoch = epoch_;
    cell.read_step = step_;
    cell.reader = me;
  }

  void complain(std::string_view what, const Cell& cell, const Thread& me, bool is_write,
                BufferId id, std::span<const Expr> indices) {
    if (report_.races.size() >= static_cast<std::size_t>(options_.max_races)) return;
    std::string index;
    for (Expr e : indices) {
      index += (index.empty() ? "" : ", ") + std::to_string(value_of(e).value_or(-1));
    }
    std::string text = fmt::format("{}[{}] is {} by {}", program_.buffer(id).name, index,
                                   is_write ? "written" : "read", to_text(me));
    if (what == "written") {
      text += fmt::format(" after {} wrote it, with no barrier between", to_text(cell.writer));
    } else if (what == "read") {
      text += fmt::format(
          " after {} read it, with no barrier between",
          cell.several_readers || cell.several_warps ? "several threads" : to_text(cell.reader));
    } else {
      text += fmt::format(" while {}", what);
    }
    report_.races.push_back(std::move(text));
  }

  // All groups but the last `pending` arrive: what they copied is written by whoever asked for it.
  void wait(int64_t pending) {
    while (static_cast<int64_t>(flying_.size()) > pending) {
      for (const Copy& copy : flying_.front()) {
        for (int64_t at = copy.first; at < copy.first + copy.cells; ++at) {
          Cell& cell = copy.arena->at(at);
          cell.in_flight = false;
          cell.write_epoch = epoch_;
          cell.write_step = step_;
          cell.writer = copy.by;
        }
      }
      flying_.pop_front();
    }
  }

  struct Copy {
    Arena* arena;
    int64_t first, cells;
    Thread by;
  };

  const Program& program_;
  const GpuStorage& storage_;
  const RaceOptions& options_;
  RaceReport& report_;
  const Kernel* kernel_ = nullptr;
  std::set<BufferId> written_;
  std::unordered_map<const StmtNode*, bool> visible_;
  std::vector<int64_t> values_;  // by variable
  std::map<int64_t, Arena> arenas_;
  Thread thread_{};
  int64_t epoch_ = 0, step_ = 0;
  bool is_async_ = false;
  std::vector<Copy> open_group_;
  std::deque<std::vector<Copy>> flying_;
};

}  // namespace

Result<RaceReport> find_races(const Program& lowered, const RaceOptions& options) {
  PRUNERC_TRY(const std::vector<Kernel> kernels, find_kernels(lowered));
  PRUNERC_TRY(const GpuStorage storage, plan_gpu_storage(lowered));
  RaceReport report;
  Replay replay(lowered, storage, options, &report);
  for (const Kernel& kernel : kernels) {
    if (kernel.num_threads() > 1) replay.run(kernel);
  }
  return report;
}

}  // namespace prunerc::codegen

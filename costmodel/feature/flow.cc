#include "costmodel/feature/flow.h"

#include "costmodel/feature/cpu_flow.h"
#include "costmodel/latency/gpu_kernel.h"
#include "ir/support/check.h"
#include "ir/thread_axis.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>

namespace prunerc::costmodel {
namespace {

/// Init of the accumulator; two operands from global into shared memory; both read, accumulated.
constexpr std::string_view kPaperPattern = "20101112";
static_assert(kPaperPattern.size() == kNumReleasedFlowSteps);
/// Place of the moved bytes among a step's features.
constexpr std::size_t kBytes = 7;

enum class Level : uint8_t { kMemory, kCache, kShared, kRegister, kFragment };
constexpr std::size_t kNumLevels = 5;
/// Truth, by level.
using Levels = std::array<Sym, kNumLevels>;

Levels at_level(Level level) {
  Levels out = {};
  out[static_cast<std::size_t>(level)] = 1;
  return out;
}

Levels near_instructions(const Nest& nest) {
  const bool is_tensor = tensor_depth(nest) < nest.loops.size();
  return at_level(is_tensor ? Level::kFragment : Level::kRegister);
}

bool share(const Nest& a, const Nest& b, std::size_t num_loops) {
  if (a.loops.size() < num_loops || b.loops.size() < num_loops) return false;
  for (std::size_t i = 0; i < num_loops; ++i) {
    if (a.loops[i].id != b.loops[i].id) return false;
  }
  return true;
}

/// What is known of a step besides its features.
struct Step {
  std::size_t store = 0;
  ir::BufferId buffer;
  ir::Scope scope = ir::Scope::kGlobal;
};

class FlowMaker {
 public:
  FlowMaker(const StoreTable& stores, const ir::Target& target, LayoutBuilder* out)
      : table_(stores.table()), stores_(stores.stores()), target_(target), out_(*out) {
    const std::size_t num_buffers = table_.program().buffers().size();
    is_fragment_.assign(num_buffers, false);
    for (const Nest& nest : table_.nests()) {
      if (tensor_depth(nest) == nest.loops.size()) continue;
      for (const NestAccess& a : nest.accesses) {
        is_fragment_[static_cast<std::size_t>(a.buffer.value)] =
            buffer(a.buffer).scope == ir::Scope::kLocal;
      }
    }
    for (const ir::Buffer& b : table_.program().buffers()) levels_.push_back(levels_of(b));
  }

  void run() {
    for (const std::size_t s : order()) add_store(s);
    if (target_.kind != ir::TargetKind::kCpu) find_pattern();
  }

 private:
  const ir::Buffer& buffer(ir::BufferId id) const { return table_.program().buffer(id); }
  bool is_intermediate(ir::BufferId id) const {
    return buffer(id).role == ir::BufferRole::kIntermediate;
  }
  const Levels& levels(ir::BufferId id) const {
    return levels_[static_cast<std::size_t>(id.value)];
  }

  // Bytes of a buffer that are in use at one time.
  Sym live_bytes(ir::BufferId id) const {
    Sym out = static_cast<double>(ir::byte_size(buffer(id).dtype));
    for (const Sym extent : table_.shape(id)) out *= extent;
    return out;
  }

  Levels levels_of(const ir::Buffer& b) const {
    if (b.scope == ir::Scope::kShared) return at_level(Level::kShared);
    if (b.scope == ir::Scope::kLocal) {
      const bool is_fragment = is_fragment_[static_cast<std::size_t>(b.id.value)];
      return at_level(is_fragment ? Level::kFragment : Level::kRegister);
    }
    if (!is_intermediate(b.id)) return at_level(Level::kMemory);
    Levels out = {};
    const Sym fits = less_equal(live_bytes(b.id), static_cast<double>(target_.l2_bytes));
    out[static_cast<std::size_t>(Level::kCache)] = fits;
    out[static_cast<std::size_t>(Level::kMemory)] = logical_not(fits);
    return out;
  }

  // Inits where lowering puts them: before what happens while their buffer lives. Loops of one
  // iteration must not matter, so it is not the reduction's outermost loop that decides.
  std::vector<std::size_t> order() const {
    std::vector<std::size_t> place(stores_.size()), out(stores_.size());
    std::iota(out.begin(), out.end(), std::size_t{0});
    for (std::size_t s = 0; s < stores_.size(); ++s) {
      const Nest& nest = *stores_[s].nest;
      place[s] = 2 * s + 1;
      if (!nest.is_init || !is_intermediate(stores_[s].store->buffer)) continue;
      const auto alloc_depth =
          static_cast<std::size_t>(table_.alloc_depth(stores_[s].store->buffer));
      std::size_t first = s;
      while (first > 0 &&
             share(nest, *stores_[first - 1].nest, std::max<std::size_t>(alloc_depth, 1))) {
        --first;
      }
      place[s] = 2 * first;
    }
    std::stable_sort(out.begin(), out.end(),
                     [&](std::size_t a, std::size_t b) { return place[a] < place[b]; });
    return out;
  }

  void add_store(std::size_t s) {
    const StoreLayout& layout = out_.layout.stores[s];
    int operand = 0;
    for (std::size_t u = 1; u < layout.uses.size(); ++u) add_step(s, layout.uses[u], operand++);
    add_step(s, layout.uses.front(), operand);
  }

  void add_step(std::size_t s, const UseLayout& use, int operand) {
    const StoreNest& store = stores_[s];
    const Nest& nest = *store.nest;
    const ir::Scope scope = buffer(use.buffer).scope;
    const bool is_write = use.buffer == store.store->buffer;
    std::vector<Slot> slots = {out_.layout.stores[s].ops};
    const auto raw = [&](Sym value) { slots.push_back(out_.raw(value)); };
    const auto log = [&](Sym value) { slots.push_back(out_.log(value)); };
    for (const ir::Scope of : {ir::Scope::kGlobal, ir::Scope::kShared, ir::Scope::kLocal}) {
      raw(of == scope ? 1 : 0);
    }
    slots.insert(slots.end(), use.slots.begin(), use.slots.end());
    log(is_intermediate(use.buffer) ? live_bytes(use.buffer) : 0);
    const Levels from = is_write ? source(s) : levels(use.buffer);
    for (const Sym level : from) raw(level);
    for (const Sym level : levels(store.store->buffer)) raw(level);
    log(vector_width(nest, first_place(store, use.buffer)));
    raw(is_write && is_write_back(store) ? 1 : 0);
    raw(nest.is_init ? 1 : 0);
    log(is_intermediate(use.buffer) ? iterations_outside(nest, use.buffer) : 0);
    log(concurrent(nest));
    log(operand);
    PRUNERC_CHECK(slots.size() == kNumFlowFeatures, "feature.def and its writer agree");
    StepLayout step;
    std::copy(slots.begin(), slots.end(), step.begin());
    out_.layout.steps.push_back(step);
    steps_.push_back({s, use.buffer, scope});
  }

  // Where what is written comes from: of a copy the copied buffer.
  Levels source(std::size_t s) const {
    const std::vector<UseLayout>& uses = out_.layout.stores[s].uses;
    const bool is_copy = uses.size() == 2 && stores_[s].store->value.as<ir::Load>() != nullptr;
    return is_copy ? levels(uses[1].buffer) : near_instructions(*stores_[s].nest);
  }

  static const NestAccess& first_place(const StoreNest& store, ir::BufferId id) {
    return *std::find_if(store.accesses.begin(), store.accesses.end(), [&](const StoreAccess& a) {
              return a.access->buffer == id;
            })->access;
  }

  Sym vector_width(const Nest& nest, const NestAccess& a) const {
    Sym width = 1;
    for (std::size_t d = 0; d < nest.loops.size(); ++d) {
      if (nest.loops[d].kind != ir::LoopKind::kVectorized) continue;
      const Sym is_dense = logical_and(a.moves[d], equal(abs(table_.address_step(a, d)), 1));
      width *= select(is_dense, nest.loops[d].extent, 1);
    }
    return width;
  }

  bool is_write_back(const StoreNest& store) const {
    const ir::Buffer& to = buffer(store.store->buffer);
    if (to.scope != ir::Scope::kGlobal) return false;
    return std::any_of(store.accesses.begin(), store.accesses.end(), [&](const StoreAccess& a) {
      const ir::BufferId from = a.access->buffer;
      if (from == to.id || !is_intermediate(from)) return false;
      return buffer(from).scope != ir::Scope::kGlobal || !is_intermediate(to.id);
    });
  }

  Sym iterations_outside(const Nest& nest, ir::BufferId id) const {
    Poly out = 1;
    const auto alloc_depth = static_cast<std::size_t>(table_.alloc_depth(id));
    for (std::size_t d = 0; d < std::min(alloc_depth, nest.loops.size()); ++d) {
      out = table_.space().multiply(out, nest.loops[d].trips);
    }
    return table_.space().symbol(out);
  }

  Sym concurrent(const Nest& nest) const {
    Poly out = 1;
    for (const NestLoop& loop : nest.loops) {
      const bool counts = loop.kind == ir::LoopKind::kParallel || ir::is_thread_axis(loop.kind);
      if (counts) out = table_.space().multiply(out, loop.trips);
    }
    return table_.space().symbol(out);
  }

  void find_pattern() {
    std::string digits;
    for (const Step& step : steps_) {
      digits += step.scope == ir::Scope::kGlobal   ? '0'
                : step.scope == ir::Scope::kShared ? '1'
                                                   : '2';
    }
    const std::size_t first = digits.find(kPaperPattern);
    if (first == std::string::npos) return;
    const std::size_t end = first + kNumReleasedFlowSteps;
    for (std::size_t i = first; i < end; ++i) add_paper_step(i);
    const ir::BufferId result = steps_[end - 1].buffer;
    for (std::size_t i = end; i < steps_.size(); ++i) {
      if (steps_[i].buffer != result) continue;
      std::size_t last = i;
      while (last + 1 < steps_.size() && steps_[last + 1].store == steps_[i].store) ++last;
      if (digits[last] != '0') continue;
      add_paper_step(i);
      add_paper_step(last);
      return;
    }
  }

  void add_paper_step(std::size_t i) {
    PaperStepLayout step;
    std::copy_n(out_.layout.steps[i].begin(), step.size(), step.begin());
    out_.layout.paper_steps.push_back(step);
  }

  const NestTable& table_;
  const std::vector<StoreNest>& stores_;
  const ir::Target& target_;
  LayoutBuilder& out_;
  std::vector<bool> is_fragment_;  // by buffer
  std::vector<Levels> levels_;     // by buffer
  std::vector<Step> steps_;
};

}  // namespace

void add_flow(const StoreTable& stores, const ir::Target& target, LayoutBuilder* out) {
  FlowMaker(stores, target, out).run();
  if (target.kind == ir::TargetKind::kCpu) add_cpu_paper_flow(stores, target, out);
}

std::size_t num_flow_steps(const FeatureLayout& layout) {
  return std::min(layout.steps.size(), kMaxFlowSteps);
}

void write_flow(const FeatureLayout& layout, const float* values, FlowFeatures* out) {
  const std::size_t count = num_flow_steps(layout);
  std::vector<std::size_t> kept(layout.steps.size());
  std::iota(kept.begin(), kept.end(), std::size_t{0});
  if (kept.size() > count) {
    std::stable_sort(kept.begin(), kept.end(), [&](std::size_t a, std::size_t b) {
      return values[layout.steps[a][kBytes]] > values[layout.steps[b][kBytes]];
    });
    kept.resize(count);
    std::sort(kept.begin(), kept.end());
  }
  for (std::size_t i = 0; i < count; ++i) {
    const StepLayout& step = layout.steps[kept[i]];
    for (std::size_t f = 0; f < step.size(); ++f) out[i][f] = values[step[f]];
  }
}

void write_paper_flow(const FeatureLayout& layout, const float* values, PaperFlow* out) {
  *out = {};
  for (std::size_t i = 0; i < layout.paper_steps.size(); ++i) {
    const PaperStepLayout& step = layout.paper_steps[i];
    for (std::size_t f = 0; f < kNumPaperFlowFeatures; ++f) (*out)[i][f] = values[step[f]];
  }
}

}  // namespace prunerc::costmodel

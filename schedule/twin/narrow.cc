#include "schedule/twin/narrow.h"

#include "ir/tensor/intrinsic.h"
#include "ir/visit.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace prunerc::schedule {
namespace {

using ir::BlockId;
using ir::LoopId;

constexpr std::string_view kPrefix = "wgmma_m64n";
/// A split by less may be one of the sum, whose steps have up to 32 elements.
constexpr int64_t kLeastColumns = 64;
/// Units: bytes. That of the rows of 16 columns that two of the narrowest tiles have.
constexpr int64_t kLeastSwizzle = 32;
/// Of values that are chosen: groups, tiles of a block, stages.
constexpr int64_t kMostChosen = 2;

// The columns of a product of a warpgroup; 0: the name is another instruction's.
int64_t columns_of(std::string_view name) {
  int64_t columns = 0;
  if (!name.starts_with(kPrefix) || !ir::find_tensor(name).ok()) return 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), columns);
  return columns;
}

std::string with_columns(std::string_view name, int64_t columns) {
  const std::string_view rest = name.substr(name.find('k', kPrefix.size()));
  return std::string(kPrefix) + std::to_string(columns) + std::string(rest);
}

class Narrower {
 public:
  Narrower(const ir::Program& base, const Trace& trace, int64_t columns)
      : base_(base), columns_(columns), out_(trace) {}

  std::optional<Trace> run() {
    if (!find_products()) return std::nullopt;
    for (Instruction& step : out_.instructions) {
      if (step.primitive == PrimitiveKind::kSplit) narrow_split(step);
      if (step.primitive == PrimitiveKind::kTensorize) narrow_product(step);
      if (step.primitive == PrimitiveKind::kSwizzle) step.operands[2] = Int(kLeastSwizzle);
      note_outputs(step);
    }
    for (Instruction& step : out_.instructions) {
      if (step.primitive == PrimitiveKind::kPadEinsum) narrow_padding(step);
    }
    narrow_choices();
    return std::move(out_);
  }

 private:
  // False if there are none, or of different widths.
  bool find_products() {
    for (const Instruction& step : out_.instructions) {
      if (step.primitive != PrimitiveKind::kTensorize) continue;
      const std::string& name = std::get<std::string>(step.operands[1]);
      const int64_t columns = columns_of(name);
      if (columns < kLeastColumns) continue;
      if (columns <= columns_ || (from_ != 0 && from_ != columns)) return false;
      if (!ir::find_tensor(with_columns(name, columns_)).ok()) return false;
      from_ = columns;
      rows_.insert(std::get<LoopId>(step.operands[0]));
    }
    return from_ != 0;
  }

  void narrow_product(Instruction& step) {
    std::string& name = std::get<std::string>(step.operands[1]);
    if (columns_of(name) == from_) name = with_columns(name, columns_);
  }

  bool is_width(const Int& item) const { return !item.ref.valid() && item.value == from_; }

  void narrow_split(Instruction& step) {
    const LoopId loop = std::get<LoopId>(step.operands[0]);
    std::vector<Int>& factors = std::get<std::vector<Int>>(step.operands[1]);
    if (factors.empty() || !is_width(factors.back())) return;
    const bool is_own = made_.count(loop) == 0;
    if (!is_own && moved_columns_.count(loop) == 0) return;
    const bool has_rows =
        std::any_of(step.outputs.begin(), step.outputs.end(), [&](const Output& output) {
          const LoopId* made = std::get_if<LoopId>(&output);
          return made != nullptr && rows_.count(*made) > 0;
        });
    if (has_rows) return;
    factors.back().value = columns_;
    if (is_own) column_loops_.insert(loop);
  }

  void note_outputs(const Instruction& step) {
    for (const Output& output : step.outputs) {
      if (const LoopId* loop = std::get_if<LoopId>(&output)) made_.insert(*loop);
    }
    if (step.primitive != PrimitiveKind::kReverseComputeAt || step.outputs.empty()) return;
    if (const LoopId* last = std::get_if<LoopId>(&step.outputs.back())) {
      moved_columns_.insert(*last);
    }
  }

  // By variables of the block; an invalid id where one is no loop.
  std::vector<LoopId> loops_of(BlockId id) const {
    std::unordered_map<ir::VarId, LoopId> loops;
    std::vector<LoopId> out;
    ir::walk(
        base_.root(),
        [&](ir::Stmt s) {
          if (const ir::Loop* loop = s.as<ir::Loop>()) loops[loop->var->id] = loop->id;
          const ir::Block* block = s.as<ir::Block>();
          if (block == nullptr || block->id != id) return true;
          for (const ir::IterVar& iter : block->iters) {
            const ir::Var* var = iter.binding.as<ir::Var>();
            const auto at = var != nullptr ? loops.find(var->id) : loops.end();
            out.push_back(at != loops.end() ? at->second : LoopId());
          }
          return true;
        },
        [](ir::Expr) {});
    return out;
  }

  void narrow_padding(Instruction& step) {
    const std::vector<LoopId> loops = loops_of(std::get<BlockId>(step.operands[0]));
    std::vector<Int>& multiples = std::get<std::vector<Int>>(step.operands[1]);
    for (std::size_t i = 0; i < loops.size() && i < multiples.size(); ++i) {
      if (column_loops_.count(loops[i]) > 0 && is_width(multiples[i])) {
        multiples[i].value = columns_;
      }
    }
  }

  void narrow_choices() {
    std::size_t next = 0;
    for (Instruction& step : out_.instructions) {
      if (!step.is_sample() || next >= out_.decisions.size()) continue;
      const Decision& decision = out_.decisions[next++];
      if (step.primitive != PrimitiveKind::kSampleCategorical || decision.empty()) continue;
      std::vector<Int>& values = std::get<std::vector<Int>>(step.operands[0]);
      const auto chosen = static_cast<std::size_t>(decision[0]);
      if (chosen >= values.size()) continue;
      // Odd ones may have to divide an odd number of tiles.
      int64_t& value = values[chosen].value;
      value = std::min(value, value % 2 == 0 ? kMostChosen : kMostChosen + 1);
    }
  }

  const ir::Program& base_;
  const int64_t columns_;
  Trace out_;
  int64_t from_ = 0;                          // columns of the products as they are
  std::unordered_set<LoopId> rows_;           // that are tensorized
  std::unordered_set<LoopId> made_;           // by the steps so far
  std::unordered_set<LoopId> moved_columns_;  // innermost ones of moved consumers
  std::unordered_set<LoopId> column_loops_;   // of the base
};

}  // namespace

std::optional<Trace> narrowed(const ir::Program& base, const Trace& trace, int64_t columns) {
  return Narrower(base, trace, columns).run();
}

}  // namespace prunerc::schedule

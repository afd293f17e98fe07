// A mapping applied: copies of the operands as matrices, fused variables, padding, layouts, tiles.
#include "ir/visit.h"
#include "schedule/mapping/mapping.h"
#include "schedule/mapping/text.h"
#include "schedule/rewrite/site.h"

#include <algorithm>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

// "v3*8 + v4" for variables fused in this order.
std::string fused_text(const Block& block, const std::vector<int>& iters) {
  std::string out;
  for (int i : iters) {
    const std::string name = "v" + std::to_string(i);
    const int64_t extent = *constant(block.iters[static_cast<std::size_t>(i)].extent);
    out = out.empty() ? name : "(" + out + ")*" + std::to_string(extent) + " + " + name;
  }
  return out;
}

std::string inputs_text(const Block& block) {
  std::string out;
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    out += (i > 0 ? ", v" : "v") + std::to_string(i);
  }
  return "(" + out + ") -> (";
}

class Application {
 public:
  Application(Schedule& schedule, BlockId id, const TensorMapping& mapping,
              const TensorIntrinsic& tensor)
      : schedule_(schedule), id_(id), mapping_(mapping), tensor_(tensor) {}

  Result<std::vector<LoopId>> run() {
    PRUNERC_TRY_VOID(reindex());
    PRUNERC_TRY_VOID(fuse());
    PRUNERC_TRY_VOID(pad());
    PRUNERC_TRY_VOID(lay_out());
    return tile();
  }

 private:
  Result<const Block*> block() const {
    PRUNERC_TRY(const Site site, find_block(schedule_.program(), id_));
    return site.block();
  }
  std::vector<std::size_t> variables_of(std::size_t operand) const;
  Result<void> reindex();
  Result<void> fuse();
  Result<void> pad();
  Result<void> lay_out();
  Result<std::vector<LoopId>> tile();
  std::size_t num_outer() const { return mapping_.outer.size(); }

  Schedule& schedule_;
  BlockId id_;
  const TensorMapping& mapping_;
  const TensorIntrinsic& tensor_;
  std::vector<BlockId> copies_;  // by the intrinsic's operands
};

// The intrinsic's variables along the operand's dimensions.
std::vector<std::size_t> Application::variables_of(std::size_t operand) const {
  const BufferId buffer = tensor_.operands[operand].buffer;
  std::vector<std::size_t> out;
  auto add = [&](std::span<const Expr> indices) {
    for (Expr index : indices) {
      for (std::size_t t = 0; t < tensor_.block().iters.size(); ++t) {
        const Var* var = index.as<Var>();
        if (var != nullptr && var->id == tensor_.block().iters[t].var->id) out.push_back(t);
      }
    }
  };
  if (tensor_.store().buffer == buffer) {
    add(tensor_.store().indices);
    return out;
  }
  walk(tensor_.store().value, [&](Expr e) {
    const Load* load = e.as<Load>();
    if (load != nullptr && load->buffer == buffer && out.empty()) add(load->indices);
    return true;
  });
  return out;
}

// Operands as matrices: [outer variables.., fused variables in the intrinsic's order].
Result<void> Application::reindex() {
  copies_.assign(tensor_.operands.size(), BlockId());
  PRUNERC_TRY(const Block* const original, block());
  const std::vector<Access> reads(original->reads.begin(), original->reads.end());
  std::vector<BufferId> wanted;  // reads may be renumbered by each copy
  for (int read : mapping_.reads) {
    const bool exists = read >= 0 && read < static_cast<int>(reads.size());
    wanted.push_back(exists ? reads[static_cast<std::size_t>(read)].buffer : BufferId());
  }
  for (std::size_t o = 0; o < tensor_.operands.size(); ++o) {
    PRUNERC_TRY(const Block* const now, block());
    const std::span<const Access> accesses = wanted[o].valid() ? now->reads : now->writes;
    int index = 0;
    while (wanted[o].valid() && index < static_cast<int>(accesses.size()) &&
           accesses[static_cast<std::size_t>(index)].buffer != wanted[o]) {
      ++index;
    }
    std::vector<std::string> outputs;
    for (int i : mapping_.outer) {
      const VarId var = now->iters[static_cast<std::size_t>(i)].var->id;
      const Access& access = accesses[static_cast<std::size_t>(index)];
      const bool used = std::any_of(access.region.begin(), access.region.end(),
                                    [&](const Range& range) { return mentions(range.min, var); });
      if (used) outputs.push_back("v" + std::to_string(i));
    }
    for (std::size_t t : variables_of(o)) outputs.push_back(fused_text(*now, mapping_.fused[t]));
    const std::string map = inputs_text(*now) + joined(outputs) + ")";
    PRUNERC_TRY(copies_[o], wanted[o].valid()
                                ? schedule_.reindex_cache_read(id_, index, Scope::kGlobal, map)
                                : schedule_.reindex_cache_write(id_, 0, Scope::kGlobal, map));
  }
  return {};
}

Result<void> Application::fuse() {
  PRUNERC_TRY(const Block* const now, block());
  std::vector<std::string> outputs;
  for (int i : mapping_.outer) outputs.push_back("v" + std::to_string(i));
  for (const std::vector<int>& iters : mapping_.fused) outputs.push_back(fused_text(*now, iters));
  PRUNERC_TRY_VOID(
      schedule_.transform_block_layout(id_, inputs_text(*now) + joined(outputs) + ")"));
  return {};
}

Result<void> Application::pad() {
  if (mapping_.padded == mapping_.extents) return {};
  std::vector<Int> multiples(num_outer(), Int(1));
  for (std::size_t t = 0; t < mapping_.padded.size(); ++t) {
    const bool pads = mapping_.padded[t] != mapping_.extents[t];
    multiples.emplace_back(pads ? *constant(tensor_.block().iters[t].extent) : 1);
  }
  PRUNERC_TRY_VOID(schedule_.pad_einsum(id_, multiples));
  return {};
}

// Operands that must lie tile by tile get that layout: [outer.., tiles.., tile].
Result<void> Application::lay_out() {
  for (std::size_t o = 0; o < tensor_.operands.size(); ++o) {
    const TensorOperand& operand = tensor_.operands[o];
    const std::vector<std::size_t> variables = variables_of(o);
    const bool any = std::find(operand.strides.begin(), operand.strides.end(),
                               TensorOperand::kAnyStride) != operand.strides.end();
    if (any || variables.size() < 2) continue;
    PRUNERC_TRY(const Block* const now, block());
    // Reads and writes keep their order: which buffer is the operand follows from its variables.
    const std::span<const Access> accesses = operand.is_output ? now->writes : now->reads;
    for (const Access& access : accesses) {
      bool fits = access.region.size() >= variables.size();
      for (std::size_t d = 0; fits && d < variables.size(); ++d) {
        const std::size_t at = access.region.size() - variables.size() + d;
        const Var* var = access.region[at].min.as<Var>();
        fits = var != nullptr && var->id == now->iters[num_outer() + variables[d]].var->id;
      }
      if (!fits) continue;
      std::vector<std::string> names, tiles, inside;
      for (std::size_t d = 0; d < access.region.size(); ++d) {
        names.push_back("d" + std::to_string(d));
        if (d + variables.size() < access.region.size()) {
          tiles.push_back(names.back());
          continue;
        }
        const std::size_t t = variables[d + variables.size() - access.region.size()];
        const std::string by = std::to_string(*constant(tensor_.block().iters[t].extent));
        tiles.push_back(names.back() + " // " + by);
        inside.push_back(names.back() + " % " + by);
      }
      tiles.insert(tiles.end(), inside.begin(), inside.end());
      const std::vector<BlockId> writers = schedule_.producers(id_);
      for (BlockId writer : writers) {
        PRUNERC_TRY(const Site site, find_block(schedule_.program(), writer));
        if (site.block()->writes.empty() || site.block()->writes[0].buffer != access.buffer)
          continue;
        PRUNERC_TRY_VOID(schedule_.transform_layout(
            writer, 0, "(" + joined(names) + ") -> (" + joined(tiles) + ")"));
      }
      break;
    }
  }
  return {};
}

Result<std::vector<LoopId>> Application::tile() {
  std::vector<LoopId> loops = schedule_.loops_of(id_);
  std::vector<LoopId> outside(loops.begin(),
                              loops.begin() + static_cast<std::ptrdiff_t>(num_outer()));
  std::vector<LoopId> inside;
  for (std::size_t t = 0; t < tensor_.block().iters.size(); ++t) {
    const int64_t tile = *constant(tensor_.block().iters[t].extent);
    PRUNERC_TRY(const std::vector<LoopId> parts,
                schedule_.split(loops[num_outer() + t], {Int(-1), Int(tile)}));
    outside.push_back(parts[0]);
    inside.push_back(parts[1]);
  }
  std::vector<LoopId> order = outside;
  order.insert(order.end(), inside.begin(), inside.end());
  PRUNERC_TRY_VOID(schedule_.reorder(order));
  PRUNERC_TRY_VOID(schedule_.tensorize(inside[0], tensor_.name));
  return outside;
}

}  // namespace

Result<std::vector<LoopId>> apply_mapping(Schedule& schedule, BlockId block,
                                          const TensorMapping& mapping) {
  PRUNERC_TRY(const TensorIntrinsic* const tensor, find_tensor(mapping.intrinsic));
  Schedule trial = schedule.fork();
  PRUNERC_TRY(std::vector<LoopId> loops, Application(trial, block, mapping, *tensor).run());
  schedule = std::move(trial);
  return loops;
}

}  // namespace prunerc::schedule

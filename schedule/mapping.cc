#include "schedule/mapping.h"

#include "ir/visit.h"
#include "schedule/primitive/flow.h"
#include "schedule/primitive/nest.h"
#include "schedule/primitive/reducer.h"

#include <algorithm>
#include <tuple>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

/// More mappings than this are not listed: every subset of many variables would be.
constexpr std::size_t kMaxMappings = 4096;
/// Keeps sums of extents far from overflow.
constexpr int64_t kMaxExtent = int64_t{1} << 40;

// An operand of a product: an element, perhaps converted.
struct Factor {
  const Load* load = nullptr;
  DType converted = DType::kF32;
};

std::optional<Factor> factor_of(Expr e) {
  Factor out;
  out.converted = e.dtype();
  if (const Cast* cast = e.as<Cast>()) e = cast->operand;
  out.load = e.as<Load>();
  return out.load != nullptr ? std::optional<Factor>(out) : std::nullopt;
}

// store: T[..] = T[..] + x*y
struct Product {
  const Store* store = nullptr;
  Factor factors[2];
};

std::optional<Product> product_of(const Block& block) {
  const std::optional<Reducer> reducer = match_reducer(block);
  if (!reducer || reducer->op != ExprKind::kAdd) return std::nullopt;
  const Mul* mul = reducer->update.as<Mul>();
  if (mul == nullptr) return std::nullopt;
  const std::optional<Factor> x = factor_of(mul->lhs), y = factor_of(mul->rhs);
  if (!x || !y || x->load->buffer == y->load->buffer) return std::nullopt;
  return Product{reducer->store, {*x, *y}};
}

bool mentions_any(std::span<const Expr> indices, VarId var) {
  return std::any_of(indices.begin(), indices.end(), [&](Expr e) { return mentions(e, var); });
}

// Bit i: operand i has the variable in its subscripts.
using Mask = unsigned;

int64_t product(const std::vector<int64_t>& items) {
  int64_t out = 1;
  for (int64_t i : items) {
    if (__builtin_mul_overflow(out, i, &out)) return INT64_MAX;
  }
  return out;
}

class Finder {
 public:
  Finder(const Program& program, BlockId id, std::string_view name)
      : program_(program), id_(id), name_(name) {}

  Result<std::vector<TensorMapping>> run();

 private:
  Error none(std::string why) const {
    return error(Diag::kTensorNoMapping, id_, std::string(name_), std::move(why));
  }
  Result<void> read_block();
  Result<void> read_intrinsic();
  bool types_fit(bool swapped) const;
  void masks(bool swapped);
  void propose(bool swapped);
  void subsets(std::size_t t, TensorMapping& mapping, bool swapped);
  void finish(TensorMapping mapping, bool swapped);
  int read_position(BufferId buffer) const;

  const Program& program_;
  BlockId id_;
  std::string_view name_;
  LeafBlock leaf_;
  const TensorIntrinsic* tensor_ = nullptr;
  Product mine_, theirs_;
  std::size_t first_ = 0, second_ = 0;  // the intrinsic's operands of its two factors
  std::size_t output_ = 0;
  std::vector<Mask> iter_masks_, tensor_masks_;
  std::vector<std::vector<int>> fitting_;  // by the intrinsic's variables
  std::vector<TensorMapping> found_;
};

Result<void> Finder::read_block() {
  const Flow flow(program_);
  PRUNERC_TRY(const std::size_t place, flow.find(id_));
  leaf_ = flow[place];
  const std::string fault = plain_nest_fault(program_, leaf_);
  if (!fault.empty()) return none(fault);
  const std::optional<Product> product = product_of(*leaf_.block);
  if (!product) return none("it is no sum of products of two buffers");
  mine_ = *product;
  return {};
}

Result<void> Finder::read_intrinsic() {
  PRUNERC_TRY(tensor_, find_tensor(name_));
  const std::optional<Product> product = product_of(tensor_->block());
  if (!product) return none("the intrinsic is no sum of products");
  theirs_ = *product;
  for (std::size_t i = 0; i < tensor_->operands.size(); ++i) {
    const BufferId buffer = tensor_->operands[i].buffer;
    if (buffer == theirs_.store->buffer) output_ = i;
    if (buffer == theirs_.factors[0].load->buffer) first_ = i;
    if (buffer == theirs_.factors[1].load->buffer) second_ = i;
  }
  for (const IterVar& iter : tensor_->block().iters) {
    Mask mask = 0;
    auto add = [&](std::size_t operand, std::span<const Expr> indices) {
      if (mentions_any(indices, iter.var->id)) mask |= 1U << operand;
    };
    add(output_, theirs_.store->indices);
    add(first_, theirs_.factors[0].load->indices);
    add(second_, theirs_.factors[1].load->indices);
    tensor_masks_.push_back(mask);
  }
  return {};
}

bool Finder::types_fit(bool swapped) const {
  auto type = [](const Program& program, BufferId id) { return program.buffer(id).dtype; };
  for (int i = 0; i < 2; ++i) {
    const Factor& mine = mine_.factors[swapped ? 1 - i : i];
    const Factor& theirs = theirs_.factors[i];
    if (mine.converted != theirs.converted ||
        type(program_, mine.load->buffer) != type(tensor_->description, theirs.load->buffer)) {
      return false;
    }
  }
  return type(program_, mine_.store->buffer) == type(tensor_->description, theirs_.store->buffer);
}

void Finder::masks(bool swapped) {
  iter_masks_.clear();
  for (const IterVar& iter : leaf_.block->iters) {
    Mask mask = 0;
    auto add = [&](std::size_t operand, std::span<const Expr> indices) {
      if (mentions_any(indices, iter.var->id)) mask |= 1U << operand;
    };
    add(output_, mine_.store->indices);
    add(first_, mine_.factors[swapped ? 1 : 0].load->indices);
    add(second_, mine_.factors[swapped ? 0 : 1].load->indices);
    iter_masks_.push_back(mask);
  }
  fitting_.assign(tensor_masks_.size(), {});
  for (std::size_t t = 0; t < tensor_masks_.size(); ++t) {
    for (std::size_t i = 0; i < iter_masks_.size(); ++i) {
      const bool same_kind = leaf_.block->iters[i].kind == tensor_->block().iters[t].kind;
      if (iter_masks_[i] == tensor_masks_[t] && same_kind) {
        fitting_[t].push_back(static_cast<int>(i));
      }
    }
  }
}

int Finder::read_position(BufferId buffer) const {
  int at = 0;
  for (const Access& access : leaf_.block->reads) {
    if (access.buffer == buffer) return at;
    ++at;
  }
  return -1;
}

// Every choice of at least one fitting variable for each of the intrinsic's.
void Finder::subsets(std::size_t t, TensorMapping& mapping, bool swapped) {
  if (found_.size() >= kMaxMappings) return;
  if (t == fitting_.size()) return finish(mapping, swapped);
  const std::size_t n = std::min<std::size_t>(fitting_[t].size(), 12);
  for (unsigned chosen = (1U << n) - 1; chosen > 0; --chosen) {
    mapping.fused[t].clear();
    for (std::size_t i = 0; i < n; ++i) {
      if ((chosen >> i & 1U) != 0) mapping.fused[t].push_back(fitting_[t][i]);
    }
    subsets(t + 1, mapping, swapped);
  }
}

void Finder::finish(TensorMapping mapping, bool swapped) {
  const std::span<const IterVar> iters = leaf_.block->iters;
  auto extent = [&](int i) { return *constant(iters[static_cast<std::size_t>(i)].extent); };
  std::vector<bool> used(iters.size(), false);
  double useful = 1;
  for (std::size_t t = 0; t < mapping.fused.size(); ++t) {
    int64_t fused = 1;
    for (int i : mapping.fused[t]) {
      used[static_cast<std::size_t>(i)] = true;
      if (__builtin_mul_overflow(fused, extent(i), &fused)) return;
    }
    const int64_t tile = *constant(tensor_->block().iters[t].extent);
    if (fused > kMaxExtent) return;
    mapping.extents.push_back(fused);
    mapping.padded.push_back((fused + tile - 1) / tile * tile);
    useful *= static_cast<double>(fused) / static_cast<double>(mapping.padded.back());
  }
  for (std::size_t i = 0; i < iters.size(); ++i) {
    if (!used[i]) mapping.outer.push_back(static_cast<int>(i));
  }
  mapping.useful = useful;
  for (std::size_t o = 0; o < tensor_->operands.size(); ++o) {
    std::vector<int64_t> shape;
    for (std::size_t t = 0; t < mapping.fused.size(); ++t) {
      if ((tensor_masks_[t] >> o & 1U) != 0) shape.push_back(mapping.padded[t]);
    }
    for (int i : mapping.outer) {
      if ((iter_masks_[static_cast<std::size_t>(i)] >> o & 1U) != 0) shape.push_back(extent(i));
    }
    const int64_t elems = product(shape);
    if (__builtin_add_overflow(mapping.copied_elems, elems, &mapping.copied_elems)) return;
  }
  mapping.reads.assign(tensor_->operands.size(), -1);
  mapping.reads[first_] = read_position(mine_.factors[swapped ? 1 : 0].load->buffer);
  mapping.reads[second_] = read_position(mine_.factors[swapped ? 0 : 1].load->buffer);
  found_.push_back(std::move(mapping));
}

void Finder::propose(bool swapped) {
  if (!types_fit(swapped)) return;
  masks(swapped);
  TensorMapping mapping;
  mapping.intrinsic = tensor_->name;
  mapping.fused.resize(tensor_masks_.size());
  subsets(0, mapping, swapped);
}

Result<std::vector<TensorMapping>> Finder::run() {
  PRUNERC_TRY_VOID(read_block());
  PRUNERC_TRY_VOID(read_intrinsic());
  if (!types_fit(false) && !types_fit(true)) return none("the types of the operands differ");
  propose(false);
  propose(true);
  if (found_.empty()) return none("a variable of the intrinsic has no counterpart");
  std::stable_sort(found_.begin(), found_.end(), [](const auto& x, const auto& y) {
    return std::make_tuple(-x.useful, x.copied_elems, x.outer.size()) <
           std::make_tuple(-y.useful, y.copied_elems, y.outer.size());
  });
  return std::move(found_);
}

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

std::string joined(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ", ") + item;
  return out;
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
  for (const IterVar& iter : tensor_.block().iters) multiples.emplace_back(*constant(iter.extent));
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

std::string to_string(const Program& program, BlockId id, const TensorMapping& mapping) {
  const Result<Site> site = find_block(program, id);
  const Result<const TensorIntrinsic*> tensor = find_tensor(mapping.intrinsic);
  if (!site.ok() || !tensor.ok()) return mapping.intrinsic;
  auto names = [&](const std::vector<int>& iters) {
    std::vector<std::string> out;
    for (int i : iters) {
      out.emplace_back(site->block()->iters[static_cast<std::size_t>(i)].var->name);
    }
    return "(" + joined(out) + ")";
  };
  std::string out = mapping.intrinsic;
  for (std::size_t t = 0; t < mapping.fused.size(); ++t) {
    out += (t == 0 ? ": " : ", ") + std::string((*tensor)->block().iters[t].var->name) + " = " +
           names(mapping.fused[t]);
  }
  return out + ", outside " + names(mapping.outer) + ", " +
         std::to_string(static_cast<int>(mapping.useful * 100)) + "% useful";
}

Result<std::vector<TensorMapping>> tensor_mappings(const Program& program, BlockId block,
                                                   std::string_view intrinsic) {
  return Finder(program, block, intrinsic).run();
}

Result<std::vector<LoopId>> apply_mapping(Schedule& schedule, BlockId block,
                                          const TensorMapping& mapping) {
  PRUNERC_TRY(const TensorIntrinsic* const tensor, find_tensor(mapping.intrinsic));
  Schedule trial = schedule.fork();
  PRUNERC_TRY(std::vector<LoopId> loops, Application(trial, block, mapping, *tensor).run());
  schedule = std::move(trial);
  return loops;
}

}  // namespace prunerc::schedule

#include "schedule/mapping/mapping.h"

#include "ir/visit.h"
#include "schedule/legality/canonical_nest.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"
#include "schedule/mapping/text.h"
#include "schedule/rewrite/buffer.h"
#include "schedule/rewrite/nest.h"

#include <algorithm>
#include <tuple>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

/// More mappings than this are not listed: every subset of many variables would be.
constexpr std::size_t kMaxMappings = 4096;

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
  const Dataflow flow(program_);
  PRUNERC_TRY(const std::size_t place, flow.find(id_));
  leaf_ = flow[place];
  const std::string fault = canonical_nest_fault(program_, leaf_);
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
    const auto fits = [&](std::size_t i, bool unit) {
      const IterVar& iter = leaf_.block->iters[i];
      const bool alike = unit ? constant(iter.extent) == 1 : iter_masks_[i] == tensor_masks_[t];
      return alike && iter.kind == tensor_->block().iters[t].kind;
    };
    // One row of a product has lost its variable: a subscript of extent 1 is 0.
    for (const bool unit : {false, true}) {
      if (!fitting_[t].empty()) break;
      for (std::size_t i = 0; i < iter_masks_.size(); ++i) {
        if (fits(i, unit)) fitting_[t].push_back(static_cast<int>(i));
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
      if (used[static_cast<std::size_t>(i)]) return;
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

}  // namespace prunerc::schedule

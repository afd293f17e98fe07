// What an index map does to a box: its image, whether it pads, its inverse.
#include "ir/arith/iter_map.h"
#include "ir/arith/simplify.h"
#include "ir/tensor/index_map.h"

#include <algorithm>
#include <set>

namespace prunerc::ir {
namespace {

/// Boxes up to this many elements are enumerated where the structure of a map says nothing.
constexpr int64_t kMaxEnumerated = 1 << 16;
constexpr int64_t kMaxImage = int64_t{1} << 40;

struct Box {
  std::vector<const Var*> vars;
  std::vector<Expr> values;
  VarRanges ranges;

  Box(IrBuilder& b, std::span<const int64_t> extents) {
    for (std::size_t i = 0; i < extents.size(); ++i) {
      vars.push_back(b.fresh_var("i" + std::to_string(i)));
      values.emplace_back(vars.back());
      ranges.bind(vars.back(), b.int_imm(extents[i]));
    }
  }
};

IterMapResult detect(IrBuilder& b, const IndexMap& map, const Box& box) {
  std::vector<Expr> outputs = map.apply(b, box.values);
  for (Expr& e : outputs) e = simplify(b, e, box.ranges);
  return detect_iter_map(b, outputs, box.vars, {}, box.ranges, IterMapLevel::kBijective);
}

// The image of the box if the map sends it to all of [0, shape), one to one; else empty.
std::vector<int64_t> bijective_image(const IndexMap& map, std::span<const int64_t> box) {
  IrBuilder b("layout");
  const Box domain(b, box);
  const IterMapResult found = detect(b, map, domain);
  if (!found.ok() || !found.map.bijective) return {};
  std::vector<int64_t> shape;
  for (std::size_t i = 0; i < found.map.indices.size(); ++i) {
    const IterSum& index = found.map.indices[i];
    const Linear& extent = found.map.extents[i];
    const bool up = std::all_of(index.splits.begin(), index.splits.end(),
                                [](const IterSplit& s) { return s.scale.coef > 0; });
    if (!extent.is_constant() || !index.base.is_constant(0) || !up) return {};
    if (!index.splits.empty() && index.splits.back().scale.coef != 1) return {};
    shape.push_back(extent.constant);
  }
  return shape;
}

int64_t product(std::span<const int64_t> extents) {
  int64_t out = 1;
  for (int64_t e : extents) {
    if (__builtin_mul_overflow(out, e, &out)) return INT64_MAX;
  }
  return out;
}

std::string text_of(std::span<const int64_t> box) {
  std::string out = "[";
  for (std::size_t i = 0; i < box.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(box[i]);
  return out + "]";
}

// Every point of the box; false if two of them meet or one leaves the nonnegative numbers.
bool enumerate(const IndexMap& map, std::span<const int64_t> domain, std::vector<int64_t>* shape) {
  std::set<std::vector<int64_t>> seen;
  std::vector<int64_t> point(domain.size(), 0);
  shape->assign(static_cast<std::size_t>(map.num_outputs()), 1);
  for (int64_t n = product(domain); n > 0; --n) {
    std::vector<int64_t> image = map.at(point);
    for (std::size_t d = 0; d < image.size(); ++d) {
      if (image[d] < 0) return false;
      (*shape)[d] = std::max((*shape)[d], image[d] + 1);
    }
    if (!seen.insert(std::move(image)).second) return false;
    for (std::size_t d = domain.size(); d-- > 0;) {
      if (++point[d] < domain[d]) break;
      point[d] = 0;
    }
  }
  return true;
}

}  // namespace

Result<Layout> make_layout(const IndexMap& map, std::span<const int64_t> domain) {
  if (static_cast<int>(domain.size()) != map.num_inputs()) {
    return error(Diag::kIndexMapArity, text_of(domain), static_cast<int64_t>(domain.size()),
                 static_cast<int64_t>(map.num_inputs()));
  }
  Layout layout;
  layout.domain.assign(domain.begin(), domain.end());
  std::vector<int64_t> padded = layout.domain;
  for (std::size_t i = 0; i < padded.size(); ++i) {
    padded[i] = map.round_up(static_cast<int>(i), padded[i]);
  }
  for (const std::vector<int64_t>* box : {&padded, &layout.domain}) {
    layout.shape = bijective_image(map, *box);
    if (layout.shape.empty() || product(layout.shape) > kMaxImage) continue;
    layout.whole = *box;
    layout.pads = *box != layout.domain;
    return layout;
  }
  if (product(domain) <= kMaxEnumerated && enumerate(map, domain, &layout.shape) &&
      product(layout.shape) <= kMaxImage) {
    layout.pads = product(layout.shape) != product(domain);
    return layout;
  }
  return error(Diag::kIndexMapNotInjective, map.text(), text_of(domain));
}

std::vector<Expr> invert_layout(IrBuilder& b, const IndexMap& map, const Layout& layout,
                                std::span<const Expr> outputs, const VarRanges& ranges) {
  PRUNERC_CHECK(!layout.whole.empty() || layout.domain.empty(), "the layout has an inverse");
  const Box box(b, layout.whole);
  const IterMapResult found = detect(b, map, box);
  Result<std::vector<Expr>> inverse = invert_iter_map(b, found.map, box.vars, outputs, ranges);
  PRUNERC_CHECK(inverse.ok(), "make_layout has shown that the map is a bijection");
  return *inverse;
}

}  // namespace prunerc::ir

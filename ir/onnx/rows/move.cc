// Moving elements: views, and copies of parts.
#include "ir/onnx/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace prunerc::onnx {
namespace {

std::string target(std::size_t rank) { return at("Y", index_list(static_cast<int>(rank))); }

/// Subscripts that read `from` where i0.. run over `to`, for shapes of equally many elements: axes are
/// split and joined in the smallest groups, so that what stays as it was is an index alone.
std::vector<std::string> reshaped(const std::vector<int64_t>& from,
                                  const std::vector<int64_t>& to) {
  std::vector<std::string> reads(from.size());
  std::size_t f = 0, t = 0;
  while (f < from.size() || t < to.size()) {
    std::size_t f_end = f, t_end = t;
    int64_t left = 1, right = 1;
    if (f_end < from.size()) left = from[f_end++];
    if (t_end < to.size()) right = to[t_end++];
    while (left != right) {
      if (left < right) {
        left *= from[f_end++];
      } else {
        right *= to[t_end++];
      }
    }
    // The position within the group, counted by the indices of `to`.
    std::string flat;
    for (std::size_t i = t; i < t_end; ++i) {
      const int64_t step = product(to, i + 1, t_end);
      if (to[i] == 1) continue;
      const std::string term = step == 1 ? fmt::format("i{}", i) : fmt::format("i{}*{}", i, step);
      flat += flat.empty() ? term : " + " + term;
    }
    if (flat.empty()) flat = "0";
    const bool is_sum = flat.find('+') != std::string::npos || flat.find('*') != std::string::npos;
    for (std::size_t i = f; i < f_end; ++i) {
      const int64_t step = product(from, i + 1, f_end);
      std::string read = from[i] == 1 ? "0" : flat;
      if (from[i] != 1 && (step != 1 || step * from[i] != left)) {
        const std::string whole = is_sum ? "(" + flat + ")" : flat;
        read = step == 1 ? whole : fmt::format("{}/{}", whole, step);
        if (step * from[i] != left)
          read = fmt::format("{}%{}", step == 1 ? whole : "(" + read + ")", from[i]);
      }
      reads[i] = read;
    }
    f = f_end;
    t = t_end;
  }
  return reads;
}

// Elements that are known keep their bytes.
const Value* known_reshaped(Row& row, const Value& x, const std::vector<int64_t>& shape) {
  ir::Tensor tensor(x.dtype, shape);
  if (!tensor.data.empty())
    std::copy_n(reinterpret_cast<const std::byte*>(x.known->bytes.data()), tensor.data.size(),
                tensor.data.data());
  return row.constant(tensor);
}

Result<const Value*> reshape_to(Row& row, const Value& x, const std::vector<int64_t>& shape,
                                std::string_view stem) {
  if (shape == x.shape) return &x;
  if (shape.size() > kMaxRank) return row.unsupported("more than 16 dimensions");
  if (!tensor_bytes(ir::byte_size(x.dtype), shape))
    return row.unsupported("a shape that cannot be");
  constexpr int64_t kSmall = 100'000;
  if (x.known && x.num_elements() <= kSmall) return known_reshaped(row, x, shape);
  if (x.num_elements() == 0) return row.constant(ir::Tensor(x.dtype, shape));
  return row.call(stem, {{"X", &x}}, x.dtype, shape,
                  fmt::format("{} = {};", target(shape.size()), at("X", reshaped(x.shape, shape))));
}

// The product, or -1 if it does not fit.
int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(n, extent, &n)) return -1;
  }
  return n;
}

Result<void> reshape(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(std::vector<int64_t> shape, row.ints(1, "shape"));
  const bool keeps_zero = row.attr_int("allowzero", 0) != 0;
  std::optional<std::size_t> open;
  std::vector<int64_t> known;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !keeps_zero) {
      if (i >= x->shape.size()) return row.unsupported("a 0 where the operand has no dimension");
      shape[i] = x->shape[i];
    }
    if (shape[i] == -1 && !open) {
      open = i;
      continue;
    }
    known.push_back(shape[i]);
  }
  const int64_t n = count_of(known);
  if (n < 0 || (open && (n == 0 || x->num_elements() % n != 0)))
    return row.unsupported("a shape of other elements");
  if (open) shape[*open] = x->num_elements() / n;
  if (count_of(shape) != x->num_elements()) return row.unsupported("a shape of other elements");
  PRUNERC_TRY(const Value* const y, reshape_to(row, *x, shape, "reshape"));
  row.set(0, y);
  return {};
}

Result<void> flatten(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  const int64_t given = row.attr_int("axis", 1);
  const int64_t axis = given < 0 ? given + x->rank() : given;
  if (axis < 0 || axis > x->rank()) return row.unsupported("an axis that is none");
  const auto cut = static_cast<std::size_t>(axis);
  PRUNERC_TRY(
      const Value* const y,
      reshape_to(row, *x, {product(x->shape, 0, cut), product(x->shape, cut, x->shape.size())},
                 "flatten"));
  row.set(0, y);
  return {};
}

Result<void> squeeze(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const std::vector<int64_t> axes, row.ints(1, "axes"));
  std::vector<bool> goes(x->shape.size(), false);
  for (const int64_t given : axes) {
    const std::optional<int> axis = axis_of(given, x->rank());
    if (!axis || x->shape[static_cast<std::size_t>(*axis)] != 1)
      return row.unsupported("an axis that is none, or not 1");
    goes[static_cast<std::size_t>(*axis)] = true;
  }
  std::vector<int64_t> shape;
  for (std::size_t i = 0; i < x->shape.size(); ++i) {
    if (!(axes.empty() ? x->shape[i] == 1 : goes[i])) shape.push_back(x->shape[i]);
  }
  PRUNERC_TRY(const Value* const y, reshape_to(row, *x, shape, "squeeze"));
  row.set(0, y);
  return {};
}

Result<void> unsqueeze(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const std::vector<int64_t> axes, row.ints(1, "axes"));
  const std::size_t rank = x->shape.size() + axes.size();
  if (rank > kMaxRank) return row.unsupported("more than 16 dimensions");
  std::vector<bool> is_new(rank, false);
  for (const int64_t given : axes) {
    const std::optional<int> axis = axis_of(given, static_cast<int>(rank));
    if (!axis || is_new[static_cast<std::size_t>(*axis)])
      return row.unsupported("an axis that is none, or twice");
    is_new[static_cast<std::size_t>(*axis)] = true;
  }
  std::vector<int64_t> shape;
  for (std::size_t i = 0, next = 0; i < rank; ++i)
    shape.push_back(is_new[i] ? 1 : x->shape[next++]);
  PRUNERC_TRY(const Value* const y, reshape_to(row, *x, shape, "unsqueeze"));
  row.set(0, y);
  return {};
}

Result<void> transpose(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  std::vector<int64_t> order = row.attr_ints("perm");
  if (order.empty()) {
    for (int64_t i = x->rank(); i-- > 0;) order.push_back(i);
  }
  std::vector<int64_t> sorted = order, shape;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted.size() != x->shape.size() || sorted[i] != static_cast<int64_t>(i))
      return row.unsupported("an order of other axes");
  }
  std::vector<std::string> reads(order.size());
  bool moves = false;
  int64_t last = -1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto from = static_cast<std::size_t>(order[i]);
    shape.push_back(x->shape[from]);
    reads[from] = fmt::format("i{}", i);
    if (x->shape[from] == 1) continue;
    moves |= order[i] < last;
    last = order[i];
  }
  if (!moves) {
    // Only axes of extent 1 change places: the same bytes.
    PRUNERC_TRY(const Value* const y, reshape_to(row, *x, shape, "reshape"));
    row.set(0, y);
    return {};
  }
  PRUNERC_TRY(const Value* const y,
              row.call("transpose", {{"X", x}}, x->dtype, shape,
                       fmt::format("{} = {};", target(shape.size()), at("X", reads))));
  row.set(0, y);
  return {};
}

// Parts one after the other along an axis.
Result<const Value*> joined(Row& row, const std::vector<const Value*>& parts, std::size_t axis) {
  std::vector<Arg> args;
  std::string body;
  std::vector<int64_t> shape = parts[0]->shape;
  int64_t first = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const auto known = std::find_if(args.begin(), args.end(),
                                    [&](const Arg& arg) { return arg.value == parts[p]; });
    const std::string name = known != args.end() ? known->name : fmt::format("A{}", p);
    if (known == args.end()) args.push_back({name, parts[p]});
    std::vector<std::string> reads = index_list(static_cast<int>(shape.size()));
    // An index that stands alone says the extent, which is a part's.
    reads[axis] = first > 0 ? fmt::format("i{} - {}", axis, first) : fmt::format("i{} + 0", axis);
    first += parts[p]->shape[axis];
    body += p + 1 == parts.size()
                ? at(name, reads)
                : fmt::format("if i{} < {} then {} else ", axis, first, at(name, reads));
  }
  shape[axis] = first;
  return row.call("concat", std::move(args), parts[0]->dtype, shape,
                  fmt::format("{} = {};", target(shape.size()), body));
}

Result<void> concat(Row& row) {
  std::vector<const Value*> parts;
  for (std::size_t i = 0; i < row.num_inputs(); ++i) {
    PRUNERC_TRY(const Value* const part, row.need(i));
    parts.push_back(part);
  }
  PRUNERC_TRY(const Value* const y, concatenated(row, parts, row.attr_int("axis", 1)));
  row.set(0, y);
  return {};
}

Result<void> split(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  const std::optional<int> axis = axis_of(row.attr_int("axis", 0), x->rank());
  if (!axis) return row.unsupported("an axis that is none");
  const auto a = static_cast<std::size_t>(*axis);
  PRUNERC_TRY(std::vector<int64_t> sizes, row.ints(1, "split"));
  const auto parts = static_cast<int64_t>(row.node().outputs.size());
  if (sizes.empty() && parts > 0) {
    const int64_t each = (x->shape[a] + parts - 1) / parts;
    int64_t left = x->shape[a];
    for (int64_t i = 0; i < parts; ++i) {
      sizes.push_back(std::min(each, left));
      left -= sizes.back();
    }
  }
  int64_t first = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || sizes[i] > x->shape[a] - first)
      return row.unsupported("parts that do not fit");
    std::vector<int64_t> shape = x->shape;
    shape[a] = sizes[i];
    std::vector<std::string> reads = index_list(x->rank());
    if (sizes[i] != x->shape[a]) reads[a] += fmt::format(" + {}", first);
    if (row.wants_output(i)) {
      PRUNERC_TRY(const Value* const y,
                  row.call("split", {{"X", x}}, x->dtype, shape,
                           fmt::format("{} = {};", target(shape.size()), at("X", reads))));
      row.set(i, y);
    }
    first += sizes[i];
  }
  if (first != x->shape[a]) return row.unsupported("parts that do not fit");
  return {};
}

Result<void> slice(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const std::vector<int64_t> starts, row.ints(1, "starts"));
  PRUNERC_TRY(const std::vector<int64_t> ends, row.ints(2, "ends"));
  PRUNERC_TRY(std::vector<int64_t> axes, row.ints(3, "axes"));
  std::vector<int64_t> steps;
  if (row.in(4) != nullptr) {
    PRUNERC_TRY(steps, row.known_ints(4));
  }
  if (axes.empty()) {
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return row.unsupported("operands of different lengths");
  std::vector<int64_t> shape = x->shape;
  std::vector<std::string> reads = index_list(x->rank());
  std::vector<bool> is_cut(x->shape.size(), false);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::optional<int> axis = axis_of(axes[i], x->rank());
    if (!axis || steps[i] == 0 || steps[i] == std::numeric_limits<int64_t>::min())
      return row.unsupported("an axis that is none, or a step of 0");
    const auto a = static_cast<std::size_t>(*axis);
    if (is_cut[a]) return row.unsupported("an axis that is there twice");
    is_cut[a] = true;
    const int64_t n = x->shape[a], step = steps[i];
    const auto clamped = [&](int64_t value, int64_t low, int64_t high) {
      if (value < 0) value = value < -n ? -n - 1 + n : value + n;
      return std::clamp(value, low, high);
    };
    int64_t begin = 0, end = 0;
    if (n > 0) {
      begin = step > 0 ? clamped(starts[i], 0, n) : clamped(starts[i], 0, n - 1);
      end = step > 0 ? clamped(ends[i], 0, n) : (ends[i] < -n ? -1 : clamped(ends[i], -1, n - 1));
    }
    const int64_t length = step > 0 ? end - begin : begin - end, size = step > 0 ? step : -step;
    shape[a] = length <= 0 ? 0 : (length - 1) / size + 1;
    if (step == 1 && shape[a] == n) continue;
    const std::string index = reads[a];
    reads[a] = shape[a] == 1 ? fmt::format("{}", begin)
               : step == 1   ? fmt::format("{} + {}", index, begin)
               : step > 0    ? fmt::format("{}*{} + {}", index, step, begin)
                             : fmt::format("{} - {}*{}", begin, index, size);
  }
  if (shape == x->shape && reads == index_list(x->rank())) {
    row.set(0, x);
    return {};
  }
  PRUNERC_TRY(const Value* const y,
              row.call("slice", {{"X", x}}, x->dtype, shape,
                       fmt::format("{} = {};", target(shape.size()), at("X", reads))));
  row.set(0, y);
  return {};
}

Result<void> expand(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const std::vector<int64_t> asked, row.known_ints(1));
  const auto shape = asked.size() > kMaxRank || count_of(asked) < 0
                         ? std::nullopt
                         : broadcast_shape(x->shape, asked);
  if (!shape) return row.unsupported("shapes that do not fit together");
  if (*shape == x->shape) {
    row.set(0, x);
    return {};
  }
  PRUNERC_TRY(
      const Value* const y,
      row.call("expand", {{"X", x}}, x->dtype, *shape,
               fmt::format("{} = {};", target(shape->size()),
                           broadcast_read("X", x->shape, static_cast<int>(shape->size())))));
  row.set(0, y);
  return {};
}

Result<void> tile(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const std::vector<int64_t> repeats, row.known_ints(1));
  if (repeats.size() != x->shape.size()) return row.unsupported("repeats of another rank");
  std::vector<int64_t> shape = x->shape;
  std::vector<std::string> reads;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (repeats[i] < 0 || __builtin_mul_overflow(shape[i], repeats[i], &shape[i]))
      return row.unsupported("repeats that do not fit");
    reads.push_back(x->shape[i] == 1  ? "0"
                    : repeats[i] == 1 ? fmt::format("i{}", i)
                                      : fmt::format("i{}%{}", i, x->shape[i]));
  }
  if (shape == x->shape) {
    row.set(0, x);
    return {};
  }
  PRUNERC_TRY(const Value* const y,
              row.call("tile", {{"X", x}}, x->dtype, shape,
                       fmt::format("{} = {};", target(shape.size()), at("X", reads))));
  row.set(0, y);
  return {};
}

/// What is read for a padded axis in the modes that repeat the operand.
std::string mirrored(const std::string& index, int64_t before, int64_t n, std::string_view mode) {
  const std::string place = fmt::format("({} - {})", index, before);
  if (mode == "edge")
    return fmt::format("(if {0} < 0 then 0 else if {0} > {1} then {1} else {0})", place, n - 1);
  if (mode == "wrap") return fmt::format("({} + {}) % {}", place, (before / n + 1) * n, n);
  if (n == 1) return "0";
  // There and back again: a period of 2n - 2.
  const int64_t period = 2 * n - 2;
  const std::string turn =
      fmt::format("(({} + {}) % {})", place, (before / period + 1) * period, period);
  return fmt::format("(if {0} < {1} then {0} else {2} - {0})", turn, n, period);
}

Result<void> pad(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const std::vector<int64_t> pads, row.ints(1, row.opset() < 2 ? "paddings" : "pads"));
  PRUNERC_TRY(const std::string mode,
              row.attr_choice("mode", {"constant", "reflect", "edge", "wrap"}));
  std::vector<int64_t> axes;
  if (row.in(3) != nullptr) {
    PRUNERC_TRY(axes, row.known_ints(3));
  } else {
    for (int64_t i = 0; i < x->rank(); ++i) axes.push_back(i);
  }
  if (pads.size() != 2 * axes.size()) return row.unsupported("pads of another rank");
  std::vector<int64_t> shape = x->shape, before(shape.size(), 0), after(shape.size(), 0);
  std::vector<bool> is_padded(shape.size(), false);
  constexpr int64_t kMost = int64_t{1} << 31;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::optional<int> axis = axis_of(axes[i], x->rank());
    if (!axis || std::max(pads[i], pads[i + axes.size()]) > kMost ||
        std::min(pads[i], pads[i + axes.size()]) < -kMost)
      return row.unsupported("an axis that is none, or pads out of range");
    const auto a = static_cast<std::size_t>(*axis);
    if (is_padded[a]) return row.unsupported("an axis that is there twice");
    is_padded[a] = true;
    before[a] = pads[i];
    after[a] = pads[i + axes.size()];
    shape[a] += before[a] + after[a];
    if (shape[a] < 0 || shape[a] > kMost) return row.unsupported("pads that do not fit");
  }
  std::vector<Arg> args = {{"X", x}};
  std::vector<std::string> reads = index_list(x->rank());
  bool leaves = false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (mode != "constant" && (before[i] > 0 || after[i] > 0)) {
      if (x->shape[i] == 0) return row.unsupported("an empty tensor");
      // What a negative one cuts off is gone before the rest repeats.
      const int64_t cut = std::max<int64_t>(0, -before[i]);
      const int64_t kept = x->shape[i] - cut - std::max<int64_t>(0, -after[i]);
      if (kept < 1) return row.unsupported("pads that leave nothing to repeat");
      reads[i] = mirrored(reads[i], std::max<int64_t>(0, before[i]), kept, mode);
      if (cut > 0) reads[i] += fmt::format(" + {}", cut);
      continue;
    }
    if (before[i] != 0 || after[i] != 0)
      reads[i] +=
          before[i] > 0 ? fmt::format(" - {}", before[i]) : fmt::format(" + {}", -before[i]);
    leaves |= before[i] > 0 || after[i] > 0;
  }
  std::string otherwise = number_text(x->dtype, 0);
  if (const Value* const value = row.in(2);
      value != nullptr && value->num_elements() == 1 && row.opset() >= 11) {
    args.push_back({"v", value});
    otherwise = at("v", std::vector<std::string>(value->shape.size(), "0"));
  } else if (row.opset() < 11) {
    otherwise = number_text(x->dtype, row.attr_float("value", 0));
  }
  if (!leaves) args.resize(1);
  const std::string read =
      leaves ? fmt::format("{} or {}", at("X", reads), otherwise) : at("X", reads);
  PRUNERC_TRY(const Value* const y, row.call("pad", std::move(args), x->dtype, shape,
                                             fmt::format("{} = {};", target(shape.size()), read)));
  row.set(0, y);
  return {};
}

Result<void> depth_to_space(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  const int64_t b = row.attr_int("blocksize", 0);
  constexpr int64_t kMost = 1 << 10;
  if (x->rank() != 4 || b < 1 || b > kMost)
    return row.unsupported("an operand or a block size like these");
  const int64_t c = x->shape[1], h = x->shape[2], w = x->shape[3];
  std::vector<int64_t> shape;
  std::string read;
  if (row.node().op == "SpaceToDepth") {
    if (h % b != 0 || w % b != 0) return row.unsupported("blocks that do not fit");
    shape = {x->shape[0], c * b * b, h / b, w / b};
    read = fmt::format("X[i0, i1%{0}, i2*{1} + i1/{2}, i3*{1} + i1/{0}%{1}]", c, b, c * b);
  } else {
    if (c % (b * b) != 0) return row.unsupported("blocks that do not fit");
    const int64_t depth = c / (b * b);
    PRUNERC_TRY(const std::string mode, row.attr_choice("mode", {"DCR", "CRD"}));
    shape = {x->shape[0], depth, h * b, w * b};
    read = mode == "CRD"
               ? fmt::format("X[i0, i1*{2} + i2%{0}*{0} + i3%{0}, i2/{0}, i3/{0}]", b, depth, b * b)
               : fmt::format("X[i0, i2%{0}*{2} + i3%{0}*{1} + i1, i2/{0}, i3/{0}]", b, depth,
                             depth * b);
  }
  PRUNERC_TRY(const Value* const y, row.call("depth_to_space", {{"X", x}}, x->dtype, shape,
                                             fmt::format("Y[i0,i1,i2,i3] = {};", read)));
  row.set(0, y);
  return {};
}

Result<void> trilu(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  int64_t k = 0;
  if (row.in(1) != nullptr) {
    PRUNERC_TRY(const std::vector<int64_t> given, row.known_ints(1));
    if (given.size() != 1) return row.unsupported("a diagonal that is no number");
    k = std::clamp<int64_t>(given[0], -(int64_t{1} << 40), int64_t{1} << 40);
  }
  if (x->rank() < 2) return row.unsupported("an operand of this rank");
  const std::string y_at = at("Y", index_list(x->rank())), x_at = at("X", index_list(x->rank()));
  const bool upper = row.attr_int("upper", 1) != 0;
  PRUNERC_TRY(const Value* const y,
              row.call("trilu", {{"X", x}}, x->dtype, x->shape,
                       fmt::format("{} = if i{} {} i{} + {} then {} else {};", y_at, x->rank() - 1,
                                   upper ? ">=" : "<=", x->rank() - 2,
                                   number_text(ir::DType::kI64, static_cast<double>(k)), x_at,
                                   number_text(x->dtype, 0))));
  row.set(0, y);
  return {};
}

constexpr RowEntry kRows[] = {{"Reshape", reshape},
                              {"Flatten", flatten},
                              {"Squeeze", squeeze},
                              {"Unsqueeze", unsqueeze},
                              {"Transpose", transpose},
                              {"Concat", concat},
                              {"Split", split},
                              {"Slice", slice},
                              {"Expand", expand},
                              {"Tile", tile},
                              {"Pad", pad},
                              {"DepthToSpace", depth_to_space},
                              {"SpaceToDepth", depth_to_space},
                              {"Trilu", trilu}};

}  // namespace

std::span<const RowEntry> move_rows() { return kRows; }

Result<const Value*> concatenated(Row& row, const std::vector<const Value*>& parts, int64_t along) {
  if (parts.empty()) return row.unsupported("no parts");
  const std::optional<int> axis = axis_of(along, parts[0]->rank());
  if (!axis) return row.unsupported("an axis that is none");
  const auto a = static_cast<std::size_t>(*axis);
  std::vector<int64_t> shape = parts[0]->shape;
  shape[a] = 0;
  std::vector<const Value*> kept;
  for (const Value* part : parts) {
    if (part->rank() != parts[0]->rank() || part->dtype != parts[0]->dtype)
      return row.unsupported("parts of different ranks or types");
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (i != a && part->shape[i] != shape[i]) return row.unsupported("parts of different shapes");
    }
    shape[a] += part->shape[a];
    if (part->shape[a] > 0) kept.push_back(part);
  }
  if (kept.empty()) return row.constant(ir::Tensor(parts[0]->dtype, shape));
  PRUNERC_TRY(kept, joined_in_groups(std::move(kept), [&](const std::vector<const Value*>& group) {
                return joined(row, group, a);
              }));
  if (kept.size() == 1) return kept[0];
  return joined(row, kept, a);
}

}  // namespace prunerc::onnx

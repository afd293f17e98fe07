// Images read at places that other tensors say.
#include "ir/onnx/row.h"

#include <fmt/format.h>

#include <cmath>

namespace prunerc::onnx {
namespace {

constexpr std::string_view kAxisNames = "zyx";

struct Sampling {
  std::string mode, padding;
  bool aligns = false;
  bool is_narrow = false;
};

/// The place along one axis as a number of pixels, brought inside as the padding asks.
std::string place_text(const Sampling& how, int64_t extent, const std::string& grid) {
  const std::string raw = how.aligns ? fmt::format("({} + 1) / 2 * {}", grid, extent - 1)
                                     : fmt::format("(({} + 1) * {} - 1) / 2", grid, extent);
  // Of the four that a cubic reads each is clamped by itself.
  if (how.padding == "border" && how.mode != "cubic")
    return fmt::format("clamp({}, 0, {})", raw, extent - 1);
  return raw;
}

/// There and back again between `low` and `high`.
std::string reflected(const std::string& x, double low, double high) {
  const std::string l = number_text(ir::DType::kF32, low);
  if (high - low <= 0) return l;
  const std::string range = number_text(ir::DType::kF32, high - low),
                    period = number_text(ir::DType::kF32, 2 * (high - low));
  const std::string rest =
      fmt::format("(({0} - {1}) - {2} * floor(({0} - {1}) / {2}))", x, l, period);
  return fmt::format("{} + (if {} <= {} then {} else {} - {})", l, rest, range, rest, period, rest);
}

/// The subscript of pixel number `pixel`, a whole number as a float.
std::string subscript(const Sampling& how, int64_t extent, const std::string& pixel) {
  if (how.padding == "zeros") return fmt::format("i64({})", pixel);
  if (how.padding == "reflection" && how.mode == "cubic") {
    const double low = how.aligns ? 0 : -0.5;
    const std::string text = reflected(pixel, low, static_cast<double>(extent - 1) - low);
    return fmt::format("i64(clamp({}, 0, {}))", text, extent - 1);
  }
  // One beyond the edge weighs nothing, or is the edge.
  return fmt::format("i64(clamp({}, 0, {}))", pixel, extent - 1);
}

std::vector<std::string> weights_of(const Sampling& how, const std::string& f) {
  if (how.mode == "nearest") return {"1"};
  if (how.mode == "linear") return {fmt::format("(1 - {})", f), f};
  const auto outer = [](const std::string& x) {  // 1 to 2 away
    return fmt::format("(((-0.75 * {0} + 3.75) * {0} - 6) * {0} + 3)", x);
  };
  const auto inner = [](const std::string& x) {
    return fmt::format("((1.25 * {0} - 2.25) * {0} * {0} + 1)", x);
  };
  return {outer("(" + f + " + 1)"), inner(f), inner("(1 - " + f + ")"), outer("(2 - " + f + ")")};
}

Result<void> grid_sample(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const grid, row.need(1));
  Sampling how;
  how.mode = row.attr_string("mode", "linear");
  if (how.mode == "bilinear") how.mode = "linear";
  if (how.mode == "bicubic") how.mode = "cubic";
  how.padding = row.attr_string("padding_mode", "zeros");
  how.aligns = row.attr_int("align_corners", 0) != 0;
  how.is_narrow = ir::byte_size(x->dtype) < 4;
  const int rank = x->rank() - 2;
  if (rank < 1 || rank > 3 || grid->rank() != x->rank() || grid->shape[0] != x->shape[0] ||
      grid->shape.back() != rank || !ir::is_float(x->dtype) || !ir::is_float(grid->dtype) ||
      x->num_elements() == 0)
    return row.unsupported("operands of these shapes or types");
  if ((how.mode != "linear" && how.mode != "nearest" && how.mode != "cubic") ||
      (how.padding != "zeros" && how.padding != "border" && how.padding != "reflection") ||
      (how.mode == "cubic" && rank > 2))
    return row.unsupported("a mode like this");
  std::vector<std::string> where = {"n"};
  std::vector<int64_t> shape = {x->shape[0], x->shape[1]};
  for (int i = 0; i < rank; ++i) {
    where.push_back(fmt::format("o{}", i));
    shape.push_back(grid->shape[static_cast<std::size_t>(i) + 1]);
  }
  const bool is_wide = x->dtype == ir::DType::kF64;
  std::string body;
  std::vector<std::vector<std::string>> weights, places;
  for (int i = 0; i < rank; ++i) {
    const int64_t extent = x->shape[static_cast<std::size_t>(i) + 2];
    const std::string axis(1, kAxisNames[static_cast<std::size_t>(i + 3 - rank)]);
    std::vector<std::string> of_grid = where;
    of_grid.push_back(std::to_string(rank - 1 - i));
    std::string read = at("G", of_grid);
    if (grid->dtype != x->dtype || how.is_narrow)
      read = fmt::format("{}({})", is_wide ? "f64" : "f32", read);
    const auto let = [&](const std::string& stem, const std::string& value) {
      body += fmt::format("let {} = {};\n  ", at(stem + axis, where), value);
      return at(stem + axis, where);
    };
    std::string place = let("p", place_text(how, extent, read));
    // The nearest pixel is chosen before it is turned back into the image.
    const bool is_nearest = how.mode == "nearest";
    if (is_nearest) place = let("b", fmt::format("round({})", place));
    if (how.padding == "reflection") {
      const double low = how.aligns ? 0 : -0.5;
      place = let("r", reflected(place, low, static_cast<double>(extent - 1) - low));
    }
    const std::string base = is_nearest ? place : let("b", fmt::format("floor({})", place));
    weights.push_back(weights_of(how, fmt::format("({} - {})", place, base)));
    places.emplace_back();
    const int64_t first = how.mode == "cubic" ? -1 : 0;
    for (std::size_t t = 0; t < weights.back().size(); ++t) {
      places.back().push_back(subscript(
          how, extent,
          fmt::format(
              "({} + {})", base,
              number_text(ir::DType::kF32, static_cast<double>(first) + static_cast<double>(t)))));
      if (weights.back().size() > 1) {
        const std::string name = fmt::format("w{}", t);
        weights.back()[t] = let(name, weights.back()[t]);
      }
    }
  }
  // All combinations of neighbours.
  std::string sum;
  std::vector<std::size_t> at_tap(static_cast<std::size_t>(rank), 0);
  for (bool is_done = false; !is_done;) {
    std::vector<std::string> reads = {"n", "c"};
    std::string product;
    for (std::size_t i = 0; i < at_tap.size(); ++i) {
      reads.push_back(places[i][at_tap[i]]);
      if (weights[i].size() > 1) product += weights[i][at_tap[i]] + " * ";
    }
    std::string read = fmt::format("({} or 0)", at("X", reads));
    if (how.is_narrow && how.mode != "nearest") read = fmt::format("f32({})", read);
    sum += (sum.empty() ? "" : " + ") + product + read;
    is_done = true;
    for (std::size_t i = at_tap.size(); i-- > 0 && is_done;) {
      if (++at_tap[i] < weights[i].size()) {
        is_done = false;
      } else {
        at_tap[i] = 0;
      }
    }
  }
  if (how.is_narrow && how.mode != "nearest")
    sum = fmt::format("{}({})", ir::to_string(x->dtype), sum);
  std::vector<std::string> target = where;
  target.insert(target.begin() + 1, "c");
  PRUNERC_TRY(const Value* const y,
              row.call("grid_sample", {{"X", x}, {"G", grid}}, x->dtype, shape,
                       fmt::format("{}{} = {};", body, at("Y", target), sum)));
  row.set(0, y);
  return {};
}

Result<void> affine_grid(Row& row) {
  constexpr int64_t kMost = int64_t{1} << 24;
  PRUNERC_TRY(const Value* const theta, row.need(0));
  PRUNERC_TRY(const std::vector<int64_t> size, row.known_ints(1));
  const auto rank = static_cast<int64_t>(size.size()) - 2;
  if (rank < 2 || rank > 3 || !ir::is_float(theta->dtype) || ir::byte_size(theta->dtype) < 4 ||
      theta->shape != std::vector<int64_t>{size[0], rank, rank + 1})
    return row.unsupported("operands of these shapes or types");
  const bool aligns = row.attr_int("align_corners", 0) != 0;
  std::vector<Arg> args = {{"T", theta}};
  std::vector<int64_t> shape = {size[0]};
  std::vector<std::string> target = {"n"};
  std::string sum;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t extent = size[static_cast<std::size_t>(i) + 2];
    if (extent < 1 || extent > kMost) return row.unsupported("sizes out of range");
    ir::Tensor places(theta->dtype, {extent});
    for (int64_t e = 0; e < extent; ++e) {
      const auto at_e = static_cast<double>(e), n = static_cast<double>(extent);
      places.set(e, !aligns ? (2 * at_e + 1) / n - 1 : extent == 1 ? -1 : 2 * at_e / (n - 1) - 1);
    }
    const std::string name = fmt::format("P{}", i), index = fmt::format("o{}", i);
    args.push_back({name, row.constant(places)});
    shape.push_back(extent);
    target.push_back(index);
    // The last axis of the image is the grid's first number.
    sum += fmt::format("T[n, k, {}] * {}[{}] + ", rank - 1 - i, name, index);
  }
  shape.push_back(rank);
  target.push_back("k");
  PRUNERC_TRY(const Value* const y,
              row.call("affine_grid", std::move(args), theta->dtype, shape,
                       fmt::format("{} = {}T[n, k, {}];", at("Y", target), sum, rank)));
  row.set(0, y);
  return {};
}

constexpr RowEntry kRows[] = {{"GridSample", grid_sample}, {"AffineGrid", affine_grid}};

}  // namespace

std::span<const RowEntry> sample_rows() { return kRows; }

}  // namespace prunerc::onnx

#include "search/algebra/winograd.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>

namespace prunerc::search::algebra {
namespace {

using ir::ExprKind;

// A window axis and the output axis that it moves along, at one subscript of the input.
struct Window {
  AxisId out = 0, tap = 0;
  std::size_t subscript = 0;
};

// sum[ci, kh, kw] X[.., oh + kh, .., ow + kw] * F[.., co, .. ci, .. kh, kw]
struct Convolution {
  TermId id = 0, input = 0, weights = 0;
  Window rows, columns;
  AxisId channel_in = -1, channel_out = -1;
  std::vector<AxisId> batch;  // axes of the input alone
};

int64_t extent_of(const Spec& spec, AxisId axis) {
  return spec.axes[static_cast<std::size_t>(axis)].extent;
}

// out + tap of a subscript, where tap is bound.
std::optional<Window> window_of(const Subscript& s, AxisSet bound) {
  if (s.digits.size() != 2 || s.base != 0) return std::nullopt;
  Window found;
  int num_taps = 0;
  for (const Digit& d : s.digits) {
    if (d.lower != 1 || d.extent != 0 || d.scale != 1) return std::nullopt;
    const bool is_tap = (bound & axis_bit(d.axis)) != 0;
    (is_tap ? found.tap : found.out) = d.axis;
    num_taps += is_tap ? 1 : 0;
  }
  return num_taps == 1 ? std::optional(found) : std::nullopt;
}

bool match_operands(const Spec& spec, AxisSet bound, Convolution* c) {
  const Term& x = spec.graph[c->input];
  const Term& f = spec.graph[c->weights];
  if (x.op != TermOp::kLoad || f.op != TermOp::kLoad || x.dtype != ir::DType::kF32) return false;
  std::vector<Window> windows;
  AxisSet plain = 0;
  for (std::size_t i = 0; i < x.index.size(); ++i) {
    if (const AxisId axis = x.index[i].plain(); axis >= 0) plain |= axis_bit(axis);
    if (x.index[i].plain() >= 0 || x.index[i].digits.empty()) continue;
    std::optional<Window> w = window_of(x.index[i], bound);
    if (!w) return false;
    w->subscript = i;
    windows.push_back(*w);
  }
  if (windows.size() != 2) return false;
  c->rows = windows[0];
  c->columns = windows[1];
  AxisSet of_weights = 0;
  for (const Subscript& s : f.index) {
    if (s.plain() < 0) return false;
    of_weights |= axis_bit(s.plain());
  }
  const AxisSet taps = axis_bit(c->rows.tap) | axis_bit(c->columns.tap);
  if ((of_weights & taps) != taps || (plain & taps) != 0) return false;
  for (AxisId axis = 0; axis < static_cast<AxisId>(spec.axes.size()); ++axis) {
    const AxisSet bit = axis_bit(axis);
    if ((bit & taps) != 0) continue;
    const bool in_x = (plain & bit) != 0;
    const bool in_f = (of_weights & bit) != 0;
    if ((bound & bit) != 0) {
      if (!in_x || !in_f || c->channel_in >= 0) return false;
      c->channel_in = axis;
    } else if (in_f) {
      if (in_x || c->channel_out >= 0) return false;
      c->channel_out = axis;
    } else if (in_x) {
      c->batch.push_back(axis);
    }
  }
  return c->channel_in >= 0 && c->channel_out >= 0;
}

std::optional<Convolution> match(const Spec& spec, TermId id) {
  const Term& t = spec.graph[id];
  if (t.op != TermOp::kReduce || t.kind != ExprKind::kAdd) return std::nullopt;
  const Term& product = spec.graph[t.args[0]];
  if (product.op != TermOp::kBinary || product.kind != ExprKind::kMul) return std::nullopt;
  for (const int first : {0, 1}) {
    Convolution c;
    c.id = id;
    c.input = product.args[static_cast<std::size_t>(first)];
    c.weights = product.args[static_cast<std::size_t>(1 - first)];
    if (!match_operands(spec, t.bound, &c)) continue;
    const bool is_square = extent_of(spec, c.rows.tap) == extent_of(spec, c.columns.tap);
    const bool is_wide = extent_of(spec, c.channel_in) >= kMinWinogradChannels &&
                         extent_of(spec, c.channel_out) >= kMinWinogradChannels;
    if (is_square && is_wide) return c;
  }
  return std::nullopt;
}

class Transform {
 public:
  Transform(Spec& spec, const Convolution& c, int m)
      : spec_(spec),
        c_(c),
        m_(m),
        r_(static_cast<int>(extent_of(spec, c.rows.tap))),
        matrices_(toom_cook(m, r_)) {}

  // The convolution's value, read from tiles.
  TermId run() {
    const int n = m_ + r_ - 1;
    for (const AxisId tap : {c_.rows.tap, c_.columns.tap}) {
      spec_.axes[static_cast<std::size_t>(tap)].twin = r_;
    }
    tile_rows_ = add_tiles("ty", c_.rows.out);
    tile_columns_ = add_tiles("tx", c_.columns.out);
    row_ = add_axis(spec_, "u", n, n);
    column_ = add_axis(spec_, "v", n, n);
    const ir::BufferId weights = transform_weights();
    const ir::BufferId input = transform_input();
    const std::vector<AxisId> tiles = with(c_.batch, {tile_rows_, tile_columns_});
    // The products: one matrix product for each of n x n places.
    const TermId product =
        graph().reduce(ExprKind::kAdd, axis_bit(c_.channel_in),
                       graph().mul(load(input, with({row_, column_}, with(tiles, {c_.channel_in}))),
                                   load(weights, {row_, column_, c_.channel_in, c_.channel_out})));
    const std::vector<AxisId> place = with(tiles, {c_.channel_out});
    const ir::BufferId products =
        add_buffer(spec_, "winograd_m", with({row_, column_}, place), product);
    return transform_output(products, place);
  }

 private:
  TermGraph& graph() { return spec_.graph; }

  static std::vector<AxisId> with(std::vector<AxisId> axes, const std::vector<AxisId>& more) {
    axes.insert(axes.end(), more.begin(), more.end());
    return axes;
  }

  AxisId add_tiles(const std::string& name, AxisId out) {
    Axis& axis = spec_.axes[static_cast<std::size_t>(out)];
    const int64_t tiles = (axis.extent + m_ - 1) / m_;
    const int64_t twin = std::min<int64_t>(tiles, 2);
    axis.twin = axis.extent % m_ == 0 ? twin * m_ : std::min(axis.extent, twin * m_ - 1);
    return add_axis(spec_, name, tiles, twin);
  }

  TermId load(ir::BufferId buffer, const std::vector<AxisId>& axes) {
    std::vector<Subscript> index;
    for (const AxisId axis : axes) index.push_back(plain_subscript(axis));
    return graph().load(buffer, std::move(index), ir::DType::kF32);
  }

  // sum_k coefficients[k] * terms[k].
  TermId combine(std::span<const int64_t> coefficients, std::span<const TermId> terms) {
    TermId sum = -1;
    for (std::size_t k = 0; k < terms.size(); ++k) {
      const int64_t c = coefficients[k];
      if (c == 0) continue;
      TermId part = terms[k];
      const bool subtract = c < 0 && sum >= 0;
      const auto factor = static_cast<double>(subtract ? -c : c);
      if (factor != 1) part = graph().mul(part, graph().constant(factor, ir::DType::kF32));
      sum = sum < 0 ? part : subtract ? graph().sub(sum, part) : graph().add(sum, part);
    }
    return sum < 0 ? graph().constant(0, ir::DType::kF32) : sum;
  }

  // The row of `matrix` that the subscript says, times the terms.
  TermId multiply(const std::vector<std::vector<int64_t>>& matrix, const Subscript& at,
                  std::span<const TermId> terms) {
    TermId value = combine(matrix.back(), terms);
    for (std::size_t i = matrix.size() - 1; i-- > 0;) {
      Condition is_row{Condition::Kind::kZero, at};
      is_row.value.base = -static_cast<int64_t>(i);
      value = graph().select(graph().mask({is_row}), combine(matrix[i], terms), value);
    }
    return value;
  }

  // The weights with a tap replaced by a constant.
  TermId at_tap(TermId id, AxisId tap, int64_t value) {
    return replace_axes(graph(), id, {{tap, Subscript{{}, value}}});
  }

  ir::BufferId transform_weights() {
    std::vector<TermId> taps;
    for (int k = 0; k < r_; ++k) taps.push_back(at_tap(c_.weights, c_.rows.tap, k));
    const std::vector<AxisId> channels = {c_.channel_in, c_.channel_out};
    const std::vector<AxisId> half = with({row_, c_.columns.tap}, channels);
    const ir::BufferId rows =
        add_buffer(spec_, "winograd_g", half, multiply(matrices_.g, plain_subscript(row_), taps));
    const TermId whole = load(rows, half);
    taps.clear();
    for (int k = 0; k < r_; ++k) taps.push_back(at_tap(whole, c_.columns.tap, k));
    return add_buffer(spec_, "winograd_u", with({row_, column_}, channels),
                      multiply(matrices_.g, plain_subscript(column_), taps));
  }

  // At tile*m + i in that dimension, or 0 outside of the input.
  TermId element(TermId of, std::size_t subscript, AxisId tile, int64_t i, int64_t extent) {
    Term t = graph()[of];
    const Subscript at = plain_subscript(tile) * m_ + Subscript{{}, i};
    t.index[subscript] = at;
    const TermId value = graph().put(std::move(t));
    const int64_t last = (extent_of(spec_, tile) - 1) * m_ + i;
    if (last < extent) return value;
    const Condition inside{Condition::Kind::kAtMostZero, at + Subscript{{}, 1 - extent}};
    return graph().select(graph().mask({inside}), value, graph().constant(0, ir::DType::kF32));
  }

  // The input with channels last: a copy, so that all transforms run along channels.
  ir::BufferId copy_input(AxisId y, AxisId x) {
    Term t = graph()[c_.input];
    t.index[c_.rows.subscript] = plain_subscript(y);
    t.index[c_.columns.subscript] = plain_subscript(x);
    const TermId input = graph().put(std::move(t));
    return add_buffer(spec_, "winograd_x", with(c_.batch, {y, x, c_.channel_in}), input);
  }

  ir::BufferId transform_input() {
    const int n = m_ + r_ - 1;
    const int64_t height = extent_of(spec_, c_.rows.out) + r_ - 1;
    const int64_t width = extent_of(spec_, c_.columns.out) + r_ - 1;
    const AxisId y = add_axis(spec_, "y", height, 0);
    const AxisId x = add_axis(spec_, "x", width, 0);
    const std::vector<AxisId> image = with(c_.batch, {y, x, c_.channel_in});
    const TermId input = load(copy_input(y, x), image);
    std::vector<TermId> parts;
    for (int i = 0; i < n; ++i) {
      parts.push_back(element(input, c_.batch.size(), tile_rows_, i, height));
    }
    const std::vector<AxisId> half = with(with({row_}, c_.batch), {tile_rows_, x, c_.channel_in});
    const ir::BufferId rows =
        add_buffer(spec_, "winograd_d", half, multiply(matrices_.b, plain_subscript(row_), parts));
    const TermId whole = load(rows, half);
    parts.clear();
    for (int j = 0; j < n; ++j) {
      parts.push_back(element(whole, half.size() - 2, tile_columns_, j, width));
    }
    return add_buffer(
        spec_, "winograd_v",
        with(with({row_, column_}, c_.batch), {tile_rows_, tile_columns_, c_.channel_in}),
        multiply(matrices_.b, plain_subscript(column_), parts));
  }

  // Rows of a tile, then whole pixels, channels last.
  TermId transform_output(ir::BufferId products, const std::vector<AxisId>& place) {
    const int n = m_ + r_ - 1;
    const AxisId row = add_axis(spec_, "y_i", m_, m_);
    std::vector<TermId> parts;
    for (int i = 0; i < n; ++i) {
      parts.push_back(replace_axes(graph(), load(products, with({row_, column_}, place)),
                                   {{row_, Subscript{{}, i}}}));
    }
    const std::vector<AxisId> half = with({row, column_}, place);
    const ir::BufferId rows =
        add_buffer(spec_, "winograd_z", half, multiply(matrices_.a, plain_subscript(row), parts));
    const auto digit = [&](AxisId axis, int64_t lower, int64_t extent) {
      return Subscript{{Digit{axis, lower, extent, 1}}, 0};
    };
    parts.clear();
    for (int j = 0; j < n; ++j) {
      parts.push_back(replace_axes(graph(), load(rows, half),
                                   {{column_, Subscript{{}, j}},
                                    {row, digit(c_.rows.out, 1, m_)},
                                    {tile_rows_, digit(c_.rows.out, m_, 0)},
                                    {tile_columns_, digit(c_.columns.out, m_, 0)}}));
    }
    const auto scale = static_cast<double>(matrices_.scale * matrices_.scale);
    const TermId value = graph().div(multiply(matrices_.a, digit(c_.columns.out, 1, m_), parts),
                                     graph().constant(scale, ir::DType::kF32));
    const std::vector<AxisId> pixels =
        with(c_.batch, {c_.rows.out, c_.columns.out, c_.channel_out});
    return load(add_buffer(spec_, "winograd_y", pixels, value), pixels);
  }

  Spec& spec_;
  const Convolution c_;
  const int m_, r_;
  const ToomCook matrices_;
  AxisId tile_rows_ = 0, tile_columns_ = 0, row_ = 0, column_ = 0;
};

}  // namespace

ToomCook toom_cook(int m, int r) {
  const int n = m + r - 1;
  std::vector<int64_t> points;
  for (int64_t p = 0; static_cast<int>(points.size()) < n - 1; ++p) {
    points.push_back(p);
    if (p > 0 && static_cast<int>(points.size()) < n - 1) points.push_back(-p);
  }
  const auto power = [](int64_t x, int k) {
    int64_t out = 1;
    for (int i = 0; i < k; ++i) out *= x;
    return out;
  };
  // Coefficients of the product of (x - p) over all points but one (-1: over all).
  const auto product = [&](int without) {
    std::vector<int64_t> out(static_cast<std::size_t>(n), 0);
    out[0] = 1;
    for (int i = 0; i < n - 1; ++i) {
      if (i == without) continue;
      for (std::size_t k = out.size(); k-- > 0;) {
        out[k] = (k > 0 ? out[k - 1] : 0) - points[static_cast<std::size_t>(i)] * out[k];
      }
    }
    return out;
  };
  std::vector<int64_t> divisors;
  ToomCook t;
  for (int j = 0; j < n - 1; ++j) {
    int64_t f = 1;
    for (int l = 0; l < n - 1; ++l) {
      if (l != j) f *= points[static_cast<std::size_t>(j)] - points[static_cast<std::size_t>(l)];
    }
    divisors.push_back(f);
    t.scale = std::lcm(t.scale, std::abs(f));
    t.b.push_back(product(j));
  }
  t.b.push_back(product(-1));
  for (int j = 0; j < n; ++j) {
    std::vector<int64_t> row(static_cast<std::size_t>(r), 0);
    for (int k = 0; k < r; ++k) {
      if (j < n - 1) {
        const auto at = static_cast<std::size_t>(j);
        row[static_cast<std::size_t>(k)] = power(points[at], k) * (t.scale / divisors[at]);
      } else if (k == r - 1) {
        row[static_cast<std::size_t>(k)] = t.scale;
      }
    }
    t.g.push_back(std::move(row));
  }
  for (int i = 0; i < m; ++i) {
    std::vector<int64_t> row;
    for (int j = 0; j < n - 1; ++j) row.push_back(power(points[static_cast<std::size_t>(j)], i));
    row.push_back(i == m - 1 ? 1 : 0);
    t.a.push_back(std::move(row));
  }
  return t;
}

std::string winograd(Spec& spec, int m) {
  std::vector<TermId> roots;
  for (const Output& output : spec.outputs) roots.push_back(output.value);
  std::string words;
  for (const TermId id : reachable(spec.graph, roots)) {
    const std::optional<Convolution> c = match(spec, id);
    const bool fits =
        c && spec.axes.size() + 8 <= kMaxAxes && m + extent_of(spec, c->rows.tap) <= 8;
    if (!fits) continue;
    const std::size_t num_outputs = spec.outputs.size();
    const TermId value = Transform(spec, *c, m).run();
    for (std::size_t i = 0; i < num_outputs; ++i) {
      spec.outputs[i].value = replace_terms(spec.graph, spec.outputs[i].value, {{id, value}});
    }
    words = fmt::format("Winograd F({}x{}, {}x{})", m, m, extent_of(spec, c->rows.tap),
                        extent_of(spec, c->rows.tap));
    break;
  }
  return words;
}

}  // namespace prunerc::search::algebra

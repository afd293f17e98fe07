// Parts of tensors put elsewhere: crops, windows laid back, caches, sequences turned round.
#include "ir/onnx/row.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::onnx {
namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 31;

std::string target(const Value& x) { return at("Y", index_list(x.rank())); }

Result<void> center_crop_pad(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const std::vector<int64_t> extents, row.known_ints(1));
  std::vector<int64_t> axes = row.attr_ints("axes");
  for (int64_t i = 0; i < x->rank() && !row.has("axes"); ++i) axes.push_back(i);
  if (axes.size() != extents.size()) return row.unsupported("a shape of another rank");
  std::vector<int64_t> shape = x->shape;
  std::vector<std::string> reads = index_list(x->rank());
  bool leaves = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::optional<int> axis = axis_of(axes[i], x->rank());
    if (!axis || extents[i] < 0 || extents[i] > kMaxExtent)
      return row.unsupported("an axis that is none, or a shape out of range");
    const auto a = static_cast<std::size_t>(*axis);
    const int64_t more = extents[i] - x->shape[a];
    shape[a] = extents[i];
    if (more < 0) reads[a] = fmt::format("i{} + {}", a, -more / 2);
    if (more > 0) reads[a] = fmt::format("i{} - {}", a, more / 2);
    leaves |= more > 0;
  }
  PRUNERC_TRY(const Value* const y,
              row.call("center_crop_pad", {{"X", x}}, x->dtype, shape,
                       fmt::format("{} = {}{};", target(*x), at("X", reads),
                                   leaves ? " or " + number_text(x->dtype, 0) : "")));
  row.set(0, y);
  return {};
}

// Which elements stay must be known, for it says the shape.
Result<void> compress(Row& row) {
  PRUNERC_TRY(const Value* x, row.need(0));
  PRUNERC_TRY(const std::vector<double> keeps, row.known_numbers(1));
  int64_t axis = 0;
  if (row.has("axis")) {
    const std::optional<int> given = axis_of(row.attr_int("axis", 0), x->rank());
    if (!given) return row.unsupported("an axis that is none");
    axis = *given;
  } else if (x->rank() != 1) {
    // The elements in their order.
    std::vector<std::string> reads(x->shape.size());
    int64_t step = 1;
    for (std::size_t i = x->shape.size(); i-- > 0;) {
      reads[i] = fmt::format("(i0/{})%{}", step, std::max<int64_t>(x->shape[i], 1));
      step *= x->shape[i];
    }
    PRUNERC_TRY(x, row.call("flatten", {{"X", x}}, x->dtype, {step},
                            fmt::format("Y[i0] = {};", at("X", reads))));
  }
  const auto a = static_cast<std::size_t>(axis);
  std::vector<int64_t> ids;
  for (std::size_t i = 0; i < keeps.size() && static_cast<int64_t>(i) < x->shape[a]; ++i) {
    if (keeps[i] != 0) ids.push_back(static_cast<int64_t>(i));
  }
  std::vector<int64_t> shape = x->shape;
  shape[a] = static_cast<int64_t>(ids.size());
  std::vector<std::string> reads = index_list(x->rank());
  reads[a] = fmt::format("I[i{}]", a);
  PRUNERC_TRY(const Value* const y,
              row.call("compress", {{"X", x}, {"I", row.int_vector(ids)}}, x->dtype, shape,
                       fmt::format("{} = {} or {};", target(*x), at("X", reads),
                                   number_text(x->dtype, 0))));
  row.set(0, y);
  return {};
}

Result<void> reverse_sequence(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const lengths, row.need(1));
  const std::optional<int> batch = axis_of(row.attr_int("batch_axis", 1), x->rank()),
                           time = axis_of(row.attr_int("time_axis", 0), x->rank());
  if (!batch || !time || *batch == *time || !ir::is_int(lengths->dtype) ||
      lengths->shape != std::vector<int64_t>{x->shape[static_cast<std::size_t>(*batch)]})
    return row.unsupported("axes or lengths like these");
  std::vector<std::string> reads = index_list(x->rank());
  const std::string here = fmt::format("i64(i{})", *time),
                    length = fmt::format("i64(L[i{}])", *batch);
  reads[static_cast<std::size_t>(*time)] =
      fmt::format("(if {0} < {1} then {1} - 1 - {0} else {0})", here, length);
  PRUNERC_TRY(const Value* const y,
              row.call("reverse_sequence", {{"X", x}, {"L", lengths}}, x->dtype, x->shape,
                       fmt::format("{} = {} or {};", target(*x), at("X", reads),
                                   number_text(x->dtype, 0))));
  row.set(0, y);
  return {};
}

// A cache into which new places are written.
Result<void> tensor_scatter(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const update, row.need(1));
  const Value* const places = row.in(2);
  const std::optional<int> axis = axis_of(row.attr_int("axis", -2), x->rank());
  const std::string mode = row.attr_string("mode", "linear");
  if (!axis || *axis == 0 || update->rank() != x->rank() || update->dtype != x->dtype ||
      (mode != "linear" && mode != "circular"))
    return row.unsupported("an axis, a mode or operands like these");
  const auto a = static_cast<std::size_t>(*axis);
  for (std::size_t i = 0; i < x->shape.size(); ++i) {
    if (i == a ? update->shape[i] > x->shape[i] : update->shape[i] != x->shape[i])
      return row.unsupported("an update of another shape");
  }
  if (places != nullptr &&
      (places->shape != std::vector<int64_t>{x->shape[0]} || !ir::is_int(places->dtype)))
    return row.unsupported("places of another shape");
  std::vector<Arg> args = {{"X", x}, {"U", update}};
  if (places != nullptr) args.push_back({"W", places});
  std::string since =
      places == nullptr ? fmt::format("i64(i{})", a) : fmt::format("i64(i{}) - i64(W[i0])", a);
  if (mode == "circular") since = fmt::format("({}) % {}", since, x->shape[a]);
  const std::vector<std::string> index = index_list(x->rank());
  const std::string at_since = at("d", index);
  std::vector<std::string> reads = index;
  reads[a] = at_since;
  std::string ranges;
  for (std::size_t i = 0; i < index.size(); ++i)
    ranges += fmt::format("{}{} in 0..{}", i == 0 ? "" : ", ", index[i], x->shape[i]);
  PRUNERC_TRY(
      const Value* const y,
      row.call("tensor_scatter", std::move(args), x->dtype, x->shape,
               fmt::format("let d[{0}] = {1};\n  {2} = if {3} >= 0 && {3} < {4} then ({5} or {6}) "
                           "else {7};",
                           ranges, since, target(*x), at_since, update->shape[a], at("U", reads),
                           number_text(x->dtype, 0), at("X", index))));
  row.set(0, y);
  return {};
}

struct Column {
  int64_t image, block, stride, dilation, before, count;
};

Result<std::vector<Column>> columns_of(Row& row) {
  PRUNERC_TRY(const std::vector<int64_t> image, row.known_ints(1));
  PRUNERC_TRY(const std::vector<int64_t> block, row.known_ints(2));
  const std::size_t rank = image.size();
  std::vector<int64_t> strides = row.attr_ints("strides"), dilations = row.attr_ints("dilations"),
                       pads = row.attr_ints("pads");
  if (strides.empty()) strides.assign(rank, 1);
  if (dilations.empty()) dilations.assign(rank, 1);
  if (pads.empty()) pads.assign(2 * rank, 0);
  if (rank < 1 || rank > 4 || block.size() != rank || strides.size() != rank ||
      dilations.size() != rank || pads.size() != 2 * rank)
    return row.unsupported("attributes of another rank");
  constexpr int64_t kMost = 1 << 20;
  std::vector<Column> out;
  for (std::size_t i = 0; i < rank; ++i) {
    const int64_t after = pads[rank + i];
    for (const int64_t number : {image[i], block[i], strides[i], dilations[i]}) {
      if (number < 1 || number > kMost) return row.unsupported("attributes out of range");
    }
    if (pads[i] < 0 || pads[i] > kMost || after < 0 || after > kMost)
      return row.unsupported("attributes out of range");
    const int64_t room = image[i] + pads[i] + after - dilations[i] * (block[i] - 1) - 1;
    if (room < 0) return row.unsupported("blocks that do not fit");
    out.push_back({image[i], block[i], strides[i], dilations[i], pads[i], room / strides[i] + 1});
  }
  return out;
}

// Windows laid back over their image: each pixel sums what windows hold of it.
Result<void> column_to_image(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const std::vector<Column> columns, columns_of(row));
  int64_t block = 1, count = 1;
  constexpr int64_t kMost = int64_t{1} << 40;
  for (const Column& c : columns) {
    if (__builtin_mul_overflow(block, c.block, &block) ||
        __builtin_mul_overflow(count, c.count, &count) || block > kMost || count > kMost)
      return row.unsupported("blocks out of range");
  }
  if (x->rank() != 3 || x->shape[1] % block != 0 || x->shape[2] != count || !ir::is_float(x->dtype))
    return row.unsupported("an operand of this shape or type");
  std::vector<int64_t> shape = {x->shape[0], x->shape[1] / block};
  std::vector<std::string> index = {"n", "c"}, over, inside;
  std::string within = block == 1 ? "c" : fmt::format("c*{}", block), place;
  int64_t block_step = block, count_step = count;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& c = columns[i];
    shape.push_back(c.image);
    index.push_back(fmt::format("o{}", i));
    over.push_back(fmt::format("k{} in 0..{}", i, c.block));
    block_step /= c.block;
    count_step /= c.count;
    within += fmt::format(" + k{}*{}", i, block_step);
    const std::string shifted = fmt::format("(o{0} + {1} - k{0}*{2})", i, c.before, c.dilation);
    inside.push_back(fmt::format("{} >= 0", shifted));
    inside.push_back(fmt::format("{} < {}", shifted, c.stride * c.count));
    if (c.stride > 1) inside.push_back(fmt::format("{} % {} == 0", shifted, c.stride));
    place += fmt::format("{}{}/{}*{}", i == 0 ? "" : " + ", shifted, c.stride, count_step);
  }
  const bool is_narrow = ir::byte_size(x->dtype) < 4;
  std::string sum = fmt::format("sum{}[{} | {}] (X[n, {}, {}] or 0)", is_narrow ? ":f32" : "",
                                fmt::join(over, ", "), fmt::join(inside, " && "), within, place);
  if (is_narrow) sum = fmt::format("{}({})", ir::to_string(x->dtype), sum);
  PRUNERC_TRY(const Value* const y, row.call("col2im", {{"X", x}}, x->dtype, shape,
                                             fmt::format("{} = {};", at("Y", index), sum)));
  row.set(0, y);
  return {};
}

// Its result's shape follows from the elements, so these must be known.
Result<void> non_zero(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const std::vector<double> elements, row.known_numbers(0));
  std::vector<int64_t> places;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (elements[i] != 0) places.push_back(static_cast<int64_t>(i));
  }
  const auto n = static_cast<int64_t>(places.size());
  ir::Tensor tensor(ir::DType::kI64, {x->rank(), n});
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = places[static_cast<std::size_t>(i)];
    for (int axis = x->rank(); axis-- > 0;) {
      const int64_t extent = x->shape[static_cast<std::size_t>(axis)];
      tensor.set_int(axis * n + i, rest % extent);
      rest /= extent;
    }
  }
  row.set(0, row.constant(tensor));
  return {};
}

Result<void> determinant(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (x->rank() < 2 || !ir::is_float(x->dtype) || ir::byte_size(x->dtype) < 4)
    return row.unsupported("operands of this shape or type");
  const int64_t n = x->shape.back();
  if (n < 1 || n > 3 || x->shape[x->shape.size() - 2] != n)
    return row.unsupported("matrices larger than 3 by 3");
  const std::vector<std::string> batch = index_list(x->rank() - 2);
  const auto element = [&](int64_t i, int64_t j) {
    std::vector<std::string> reads = batch;
    reads.push_back(std::to_string(i));
    reads.push_back(std::to_string(j % n));
    return at("X", reads);
  };
  std::string text = element(0, 0);
  if (n == 2)
    text = fmt::format("{} * {} - {} * {}", element(0, 0), element(1, 1), element(0, 1),
                       element(1, 0));
  if (n == 3) {
    text.clear();
    for (int64_t j = 0; j < 3; ++j)
      text +=
          fmt::format("{}{} * ({} * {} - {} * {})", j == 0 ? "" : " + ", element(0, j),
                      element(1, j + 1), element(2, j + 2), element(1, j + 2), element(2, j + 1));
  }
  PRUNERC_TRY(const Value* const y,
              row.call("det", {{"X", x}}, x->dtype,
                       std::vector<int64_t>(x->shape.begin(), x->shape.end() - 2),
                       fmt::format("{} = {};", at("Y", batch), text)));
  row.set(0, y);
  return {};
}

constexpr RowEntry kRows[] = {{"CenterCropPad", center_crop_pad},
                              {"Compress", compress},
                              {"ReverseSequence", reverse_sequence},
                              {"TensorScatter", tensor_scatter},
                              {"Col2Im", column_to_image},
                              {"NonZero", non_zero},
                              {"Det", determinant}};

}  // namespace

std::span<const RowEntry> part_rows() { return kRows; }

}  // namespace prunerc::onnx

// Elements that other elements choose.
#include "ir/onnx/row.h"

#include <fmt/format.h>

namespace prunerc::onnx {
namespace {

std::string target(std::size_t rank) { return at("Y", index_list(static_cast<int>(rank))); }

/// What an id reads: negative ones count from the end, others out of range read the first or last.
std::string place(const std::string& id, int64_t extent) {
  return fmt::format("clamp(if {0} < 0 then {0} + {1} else {0}, 0, {2})", id, extent, extent - 1);
}

// Ids that are known and evenly spaced are a slice.
std::optional<std::pair<int64_t, int64_t>> evenly_spaced(const Value& ids, int64_t extent) {
  constexpr int64_t kMost = 1 << 20;
  const int64_t n = ids.num_elements();
  if (!ids.known || ids.rank() > 1 || n == 0 || n > kMost) return std::nullopt;
  const auto id = [&](int64_t i) {
    const int64_t value = ids.int_element(i);
    return value < 0 ? value + extent : value;
  };
  for (int64_t i = 0; i < n; ++i) {
    if (id(i) < 0 || id(i) >= extent) return std::nullopt;
  }
  const int64_t first = id(0), step = n > 1 ? id(1) - first : 0;
  for (int64_t i = 0; i < n; ++i) {
    if (id(i) != first + i * step) return std::nullopt;
  }
  return std::pair(first, step);
}

Result<void> gather(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const ids, row.need(1));
  const std::optional<int> axis = axis_of(row.attr_int("axis", 0), x->rank());
  if (!axis || !ir::is_int(ids->dtype))
    return row.unsupported("an axis that is none, or ids that are no whole numbers");
  const auto a = static_cast<std::size_t>(*axis);
  const std::size_t q = ids->shape.size();
  std::vector<int64_t> shape(x->shape.begin(), x->shape.begin() + *axis);
  shape.insert(shape.end(), ids->shape.begin(), ids->shape.end());
  shape.insert(shape.end(), x->shape.begin() + *axis + 1, x->shape.end());
  std::vector<std::string> reads, of_ids;
  for (std::size_t i = 0; i < q; ++i) of_ids.push_back(fmt::format("i{}", a + i));
  for (std::size_t i = 0; i < x->shape.size(); ++i)
    reads.push_back(i < a ? fmt::format("i{}", i) : i == a ? "" : fmt::format("i{}", i + q - 1));
  std::vector<Arg> args = {{"X", x}};
  std::string text;
  if (const auto spaced = evenly_spaced(*ids, x->shape[a])) {
    const auto [first, step] = *spaced;
    reads[a] = q == 0 || step == 0 ? fmt::format("{}", first)
               : step > 0          ? fmt::format("i{}*{} + {}", a, step, first)
                                   : fmt::format("{} - i{}*{}", first, a, -step);
    text = at("X", reads);
  } else {
    args.push_back({"I", ids});
    reads[a] = place(at("I", of_ids), x->shape[a]);
    text = fmt::format("{} or {}", at("X", reads), number_text(x->dtype, 0));
  }
  PRUNERC_TRY(const Value* const y, row.call("gather", std::move(args), x->dtype, shape,
                                             fmt::format("{} = {};", target(shape.size()), text)));
  row.set(0, y);
  return {};
}

Result<void> gather_elements(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const ids, row.need(1));
  const std::optional<int> axis = axis_of(row.attr_int("axis", 0), x->rank());
  if (!axis || ids->rank() != x->rank() || !ir::is_int(ids->dtype))
    return row.unsupported("an axis or ids like these");
  std::vector<std::string> reads = index_list(x->rank());
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (static_cast<int>(i) != *axis && ids->shape[i] > x->shape[i])
      return row.unsupported("ids of another shape");
    if (ids->shape[i] != x->shape[i]) reads[i] += " + 0";
  }
  const auto a = static_cast<std::size_t>(*axis);
  reads[a] = place(at("I", index_list(x->rank())), x->shape[a]);
  PRUNERC_TRY(const Value* const y,
              row.call("gather_elements", {{"X", x}, {"I", ids}}, x->dtype, ids->shape,
                       fmt::format("{} = {} or {};", target(ids->shape.size()), at("X", reads),
                                   number_text(x->dtype, 0))));
  row.set(0, y);
  return {};
}

Result<void> gather_nd(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const ids, row.need(1));
  const int64_t batch = row.attr_int("batch_dims", 0);
  if (ids->rank() < 1 || !ir::is_int(ids->dtype) || batch < 0 || batch >= ids->rank() ||
      batch > x->rank())
    return row.unsupported("batch dimensions like these");
  const int64_t depth = ids->shape.back();
  if (depth < 1 || depth > x->rank() - batch) return row.unsupported("ids of this depth");
  const auto b = static_cast<std::size_t>(batch), d = static_cast<std::size_t>(depth);
  std::vector<int64_t> shape(ids->shape.begin(), ids->shape.end() - 1);
  const std::size_t ahead = shape.size();
  shape.insert(shape.end(), x->shape.begin() + batch + depth, x->shape.end());
  std::vector<std::string> reads;
  for (std::size_t i = 0; i < x->shape.size(); ++i) {
    if (i < b) {
      reads.push_back(fmt::format("i{}", i));
    } else if (i < b + d) {
      std::vector<std::string> of_ids = index_list(static_cast<int>(ahead));
      of_ids.push_back(fmt::format("{}", i - b));
      reads.push_back(place(at("I", of_ids), x->shape[i]));
    } else {
      reads.push_back(fmt::format("i{}", ahead + i - b - d));
    }
  }
  PRUNERC_TRY(const Value* const y,
              row.call("gather_nd", {{"X", x}, {"I", ids}}, x->dtype, shape,
                       fmt::format("{} = {} or {};", target(shape.size()), at("X", reads),
                                   number_text(x->dtype, 0))));
  row.set(0, y);
  return {};
}

Result<void> one_hot(Row& row) {
  PRUNERC_TRY(const Value* const ids, row.need(0));
  PRUNERC_TRY(const Value* const values, row.need(2));
  PRUNERC_TRY(const std::vector<double> depths, row.known_numbers(1));
  if (depths.size() != 1 || depths[0] < 1 || depths[0] > 1e9 ||
      values->shape != std::vector<int64_t>{2})
    return row.unsupported("a depth or values like these");
  const auto depth = static_cast<int64_t>(depths[0]);
  const std::optional<int> axis = axis_of(row.attr_int("axis", -1), ids->rank() + 1);
  if (!axis) return row.unsupported("an axis that is none");
  std::vector<int64_t> shape = ids->shape;
  shape.insert(shape.begin() + *axis, depth);
  std::vector<std::string> of_ids = index_list(static_cast<int>(shape.size()));
  const std::string here = of_ids[static_cast<std::size_t>(*axis)];
  of_ids.erase(of_ids.begin() + *axis);
  const std::string id = fmt::format("i64({})", at("I", of_ids));
  PRUNERC_TRY(
      const Value* const y,
      row.call("one_hot", {{"I", ids}, {"v", values}}, values->dtype, shape,
               fmt::format(
                   "{0} = if i64({1}) == (if {2} < 0 then {2} + {3} else {2}) then v[1] else v[0];",
                   target(shape.size()), here, id, depth)));
  row.set(0, y);
  return {};
}

/// How an update joins what is there: "" replaces it.
std::optional<std::string> joined(std::string_view how, const std::string& old,
                                  const std::string& update) {
  if (how == "none") return update;
  if (how == "add") return old + " + " + update;
  if (how == "mul") return old + " * " + update;
  if (how == "max" || how == "min") return fmt::format("{}({}, {})", how, old, update);
  return std::nullopt;
}

// Each element asks which update comes last, or joins all of them: as many questions as updates.
Result<void> scatter_elements(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const ids, row.need(1));
  PRUNERC_TRY(const Value* const updates, row.need(2));
  const std::optional<int> axis = axis_of(row.attr_int("axis", 0), x->rank());
  if (!axis || ids->rank() != x->rank() || updates->shape != ids->shape ||
      updates->dtype != x->dtype || !ir::is_int(ids->dtype))
    return row.unsupported("operands like these");
  const auto a = static_cast<std::size_t>(*axis);
  const std::string how = row.attr_string("reduction", "none");
  const std::vector<std::string> index = index_list(x->rank());
  std::vector<std::string> read = index;
  read[a] = "k";
  std::string inside;
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (i == a || ids->shape[i] == x->shape[i]) continue;
    if (ids->shape[i] > x->shape[i]) return row.unsupported("ids of another shape");
    inside += fmt::format("{} < {} && ", index[i], ids->shape[i]);
    read[i] += " + 0";
  }
  const std::string id = fmt::format("({} or {})", at("I", read), x->shape[a] * 2);
  const std::string wide = fmt::format("i64({})", id);
  const std::string hits = fmt::format("{}(if {} < 0 then {} + {} else {}) == i64({})", inside,
                                       wide, wide, x->shape[a], wide, index[a]);
  const std::string over = fmt::format("k in 0..{}", ids->shape[a]);
  const std::string y = at("Y", index), old = at("X", index), zero = number_text(x->dtype, 0);
  const std::string update = fmt::format("({} or {})", at("U", read), zero);
  std::string body;
  if (how == "none") {
    const std::string last = at("last", index);
    std::vector<std::string> chosen = read;
    chosen[a] = last;
    body = fmt::format(
        "let {0} = max[{1}] (if {2} then i64(k) else -1);\n  {3} = if {0} < 0 then {4} else ({5} "
        "or {6});",
        last, over, hits, y, old, at("U", chosen), zero);
  } else {
    const std::string neutral = how == "add" ? zero : how == "mul" ? number_text(x->dtype, 1) : old;
    const auto result = joined(how, old, at("r", index));
    if (!result) return row.unsupported("this reduction");
    const bool is_small = ir::byte_size(x->dtype) < 4;
    if (is_small) return row.unsupported("this type");
    body =
        fmt::format("let {0} = {1}[{2}] (if {3} then {4} else {5});\n  {6} = {7};", at("r", index),
                    how == "add"   ? "sum"
                    : how == "mul" ? "prod"
                                   : how,
                    over, hits, update, neutral, y, *result);
  }
  PRUNERC_TRY(const Value* const result,
              row.call("scatter_elements", {{"X", x}, {"I", ids}, {"U", updates}}, x->dtype,
                       x->shape, body));
  row.set(0, result);
  return {};
}

Result<void> scatter_nd(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const ids, row.need(1));
  PRUNERC_TRY(const Value* const updates, row.need(2));
  const std::string how = row.attr_string("reduction", "none");
  if (ids->rank() < 1 || !ir::is_int(ids->dtype) || updates->dtype != x->dtype)
    return row.unsupported("operands like these");
  if (how != "none" && ir::byte_size(x->dtype) < 4) return row.unsupported("this type");
  const int64_t depth = ids->shape.back();
  if (depth < 1 || depth > x->rank()) return row.unsupported("ids of this depth");
  // The updates' leading axes are one reduction.
  std::vector<std::string> over, of_ids;
  for (int i = 0; i + 1 < ids->rank(); ++i) {
    over.push_back(fmt::format("k{} in 0..{}", i, ids->shape[static_cast<std::size_t>(i)]));
    of_ids.push_back(fmt::format("k{}", i));
  }
  if (over.empty()) over.push_back("q in 0..1");
  const std::vector<std::string> index = index_list(x->rank());
  std::vector<std::string> of_updates = of_ids;
  std::string hits;
  for (std::size_t d = 0; d < static_cast<std::size_t>(depth); ++d) {
    std::vector<std::string> one = of_ids;
    one.push_back(fmt::format("{}", d));
    const std::string id = fmt::format("i64({})", at("I", one));
    hits += fmt::format("{}(if {} < 0 then {} + {} else {}) == i64({})", d == 0 ? "" : " && ", id,
                        id, x->shape[d], id, index[d]);
  }
  for (std::size_t i = static_cast<std::size_t>(depth); i < index.size(); ++i)
    of_updates.push_back(index[i]);
  std::vector<int64_t> expected(ids->shape.begin(), ids->shape.end() - 1);
  expected.insert(expected.end(), x->shape.begin() + depth, x->shape.end());
  if (updates->shape != expected) return row.unsupported("updates of another shape");
  const std::string y = at("Y", index), old = at("X", index), update = at("U", of_updates),
                    zero = number_text(x->dtype, 0);
  const std::string all = fmt::format("{}", fmt::join(over, ","));
  std::string body;
  if (how == "none") {
    int64_t step = 1;
    std::string number = "0";
    std::vector<std::string> chosen(of_updates);
    const std::string last = at("last", index);
    for (std::size_t i = of_ids.size(); i-- > 0;) {
      number += fmt::format(" + {}*{}", of_ids[i], step);
      chosen[i] = fmt::format("({} / {}) % {}", last, step, ids->shape[i]);
      step *= ids->shape[i];
    }
    body = fmt::format(
        "let {0} = max[{1}] (if {2} then i64({3}) else -1);\n  {4} = if {0} < 0 then {5} else ({6} "
        "or {7});",
        last, all, hits, number, y, old, at("U", chosen), zero);
  } else {
    const auto result = joined(how, old, at("r", index));
    if (!result) return row.unsupported("this reduction");
    const std::string neutral = how == "add" ? zero : how == "mul" ? number_text(x->dtype, 1) : old;
    body =
        fmt::format("let {0} = {1}[{2}] (if {3} then {4} else {5});\n  {6} = {7};", at("r", index),
                    how == "add"   ? "sum"
                    : how == "mul" ? "prod"
                                   : how,
                    all, hits, update, neutral, y, *result);
  }
  PRUNERC_TRY(
      const Value* const result,
      row.call("scatter_nd", {{"X", x}, {"I", ids}, {"U", updates}}, x->dtype, x->shape, body));
  row.set(0, result);
  return {};
}

// The place of an element is how many come before it: k questions for each, right for any k.
Result<void> top_k(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  int64_t k = row.attr_int("k", 0);
  if (row.opset() >= 10) {
    PRUNERC_TRY(const std::vector<int64_t> given, row.known_ints(1));
    if (given.size() != 1) return row.unsupported("a k that is no number");
    k = given[0];
  }
  const std::optional<int> axis = axis_of(row.attr_int("axis", -1), x->rank());
  if (!axis || ir::is_bool(x->dtype)) return row.unsupported("an axis that is none, or this type");
  const auto a = static_cast<std::size_t>(*axis);
  if (k < 1 || k > x->shape[a]) return row.unsupported("a k like this");
  const bool largest = row.attr_int("largest", 1) != 0;
  const std::vector<std::string> index = index_list(x->rank());
  std::vector<std::string> other = index, place_k = index;
  other[a] = "j";
  place_k[a] = "j";
  std::vector<int64_t> shape = x->shape;
  shape[a] = k;
  const std::string mine = at("X", index), theirs = at("X", other), here = index[a];
  const std::string before = fmt::format("{0} {2} {1} || ({0} == {1} && j < {3})", theirs, mine,
                                         largest ? ">" : "<", here);
  PRUNERC_TRY(const Value* const order,
              row.call("rank_of", {{"X", x}}, ir::DType::kI64, x->shape,
                       fmt::format("{} = sum[j] (if {} then i64(1) else i64(0));",
                                   target(x->shape.size()), before)));
  std::vector<std::string> of_order = index;
  of_order[a] = "j";
  const std::string hit = fmt::format("{} == i64({})", at("R", of_order), here);
  PRUNERC_TRY(
      const std::vector<const Value*> results,
      row.call("top_k", {{"X", x}, {"R", order}},
               {{"V", x->dtype, shape}, {"I", ir::DType::kI64, shape}},
               fmt::format(
                   "{0} = max[j in 0..{1}] (if {2} then i64(j) else 0);\n  {3} = {4} or {5};",
                   at("I", index), x->shape[a], hit, at("V", index),
                   [&] {
                     std::vector<std::string> chosen = index;
                     chosen[a] = at("I", index);
                     return at("X", chosen);
                   }(),
                   number_text(x->dtype, 0))));
  row.set(0, results[0]);
  row.set(1, results[1]);
  return {};
}

constexpr RowEntry kRows[] = {{"Gather", gather},
                              {"GatherElements", gather_elements},
                              {"GatherND", gather_nd},
                              {"OneHot", one_hot},
                              {"ScatterElements", scatter_elements},
                              {"Scatter", scatter_elements},
                              {"ScatterND", scatter_nd},
                              {"TopK", top_k}};

}  // namespace

std::span<const RowEntry> index_rows() { return kRows; }

}  // namespace prunerc::onnx

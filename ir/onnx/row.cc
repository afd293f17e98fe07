#include "ir/onnx/row.h"

#include "ir/lang/limits.h"
#include "ir/onnx/importer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace prunerc::onnx {
namespace {

// One element as a tensor of its own.
ir::Tensor one_element(const Value& value, int64_t position) {
  ir::Tensor out(value.dtype, {});
  std::memcpy(out.data.data(),
              value.known->bytes.data() + position * static_cast<int64_t>(out.data.size()),
              out.data.size());
  return out;
}

constexpr std::span<const RowEntry> (*kGroups[])() = {pointwise_rows,
                                                      shape_rows,
                                                      move_rows,
                                                      linear_rows,
                                                      conv_rows,
                                                      pool_rows,
                                                      norm_rows,
                                                      reduce_rows,
                                                      index_rows,
                                                      resize_rows,
                                                      quant_rows,
                                                      recurrent_rows,
                                                      attention_rows,
                                                      math_rows,
                                                      sample_rows,
                                                      region_rows,
                                                      part_rows,
                                                      sequence_rows,
                                                      contrib_norm_rows,
                                                      contrib_pointwise_rows,
                                                      contrib_product_rows,
                                                      contrib_quant_rows,
                                                      contrib_attention_rows};

}  // namespace

RowFn find_row(std::string_view op) {
  for (const auto group : kGroups) {
    for (const RowEntry& row : group()) {
      if (row.op == op) return row.fn;
    }
  }
  return nullptr;
}

std::vector<std::string_view> row_names() {
  std::vector<std::string_view> names;
  for (const auto group : kGroups) {
    for (const RowEntry& row : group()) names.push_back(row.op);
  }
  return names;
}

int64_t product(const std::vector<int64_t>& shape, std::size_t first, std::size_t end) {
  int64_t n = 1;
  for (std::size_t i = first; i < std::min(end, shape.size()); ++i) n *= shape[i];
  return n;
}

int64_t Value::num_elements() const { return product(shape); }

double Value::element(int64_t position) const { return one_element(*this, position).get(0); }
int64_t Value::int_element(int64_t position) const {
  return one_element(*this, position).get_int(0);
}

Result<const Value*> Row::need(std::size_t i) const {
  if (in(i) != nullptr) return in(i);
  return error(Diag::kOnnxNode, node_.op, node_.name, fmt::format("input {} is missing", i));
}

const Attribute* Row::find(std::string_view attribute) const {
  for (const Attribute& item : attributes_) {
    if (item.name == attribute) return &item;
  }
  return nullptr;
}

const Attribute* Row::find_typed(std::string_view name, bool (*fits)(const Attribute&)) const {
  const Attribute* const found = find(name);
  if (found == nullptr || fits(*found)) return found;
  if (mistyped_.empty()) mistyped_ = found->name;
  return nullptr;
}

namespace {

bool is_single(const Attribute& a) { return a.f || a.i || a.s || a.tensor || a.graph; }

}  // namespace

int64_t Row::attr_int(std::string_view name, int64_t otherwise) const {
  const Attribute* const found =
      find_typed(name, [](const Attribute& a) { return a.i.has_value(); });
  return found != nullptr ? *found->i : otherwise;
}

double Row::attr_float(std::string_view name, double otherwise) const {
  const Attribute* const found =
      find_typed(name, [](const Attribute& a) { return a.f.has_value(); });
  return found != nullptr ? static_cast<double>(*found->f) : otherwise;
}

std::string Row::attr_string(std::string_view name, std::string otherwise) const {
  const Attribute* const found =
      find_typed(name, [](const Attribute& a) { return a.s.has_value(); });
  return found != nullptr ? *found->s : std::move(otherwise);
}

Result<std::string> Row::attr_choice(std::string_view name,
                                     std::initializer_list<std::string_view> choices) const {
  std::string given = attr_string(name, std::string(*choices.begin()));
  if (std::find(choices.begin(), choices.end(), given) != choices.end()) return given;
  return unsupported(fmt::format("'{}' as its {}", given, name));
}

// Of an empty list the type is not known.
std::vector<int64_t> Row::attr_ints(std::string_view name) const {
  const Attribute* const found = find_typed(name, [](const Attribute& a) {
    return !is_single(a) && a.floats.empty() && a.strings.empty();
  });
  return found != nullptr ? found->ints : std::vector<int64_t>{};
}

std::vector<double> Row::attr_floats(std::string_view name) const {
  const Attribute* const found = find_typed(name, [](const Attribute& a) {
    return !is_single(a) && a.ints.empty() && a.strings.empty();
  });
  if (found == nullptr) return {};
  return {found->floats.begin(), found->floats.end()};
}

Result<std::vector<int64_t>> Row::known_ints(std::size_t i) const {
  PRUNERC_TRY(const Value* const value, need(i));
  if (!value->known) {
    return error(
        Diag::kOnnxOperand, node_.op, node_.name,
        importer_.input_name(value).empty() ? node_.inputs[i] : importer_.input_name(value));
  }
  if (ir::is_float(value->dtype)) return unsupported("an operand of numbers that are not whole");
  const ir::Tensor tensor = tensor_of(*value->known);
  std::vector<int64_t> out;
  for (int64_t e = 0; e < tensor.num_elements(); ++e) out.push_back(tensor.get_int(e));
  return out;
}

Result<std::vector<double>> Row::known_numbers(std::size_t i) const {
  PRUNERC_TRY(const Value* const value, need(i));
  if (!value->known) {
    return error(
        Diag::kOnnxOperand, node_.op, node_.name,
        importer_.input_name(value).empty() ? node_.inputs[i] : importer_.input_name(value));
  }
  const ir::Tensor tensor = tensor_of(*value->known);
  std::vector<double> out;
  for (int64_t e = 0; e < tensor.num_elements(); ++e) out.push_back(tensor.get(e));
  return out;
}

Result<std::vector<int64_t>> Row::ints(std::size_t input, std::string_view attribute) const {
  if (in(input) != nullptr) return known_ints(input);
  return attr_ints(attribute);
}

Result<const Value*> Row::call(std::string_view stem, std::vector<Arg> args, ir::DType dtype,
                               std::vector<int64_t> shape, std::string_view body) {
  PRUNERC_TRY(const std::vector<const Value*> results,
              importer_.call(stem, args, {{"Y", dtype, std::move(shape)}}, body));
  return results[0];
}

Result<std::vector<const Value*>> Row::call(std::string_view stem, std::vector<Arg> args,
                                            std::vector<Out> outs, std::string_view body) {
  return importer_.call(stem, args, outs, body);
}

const Value* Row::constant(const ir::Tensor& tensor) { return importer_.constant(tensor); }
const Value* Row::constant(const Constant& constant) { return importer_.constant(constant); }

const Value* Row::scalar(ir::DType dtype, double value) {
  ir::Tensor tensor(dtype, {});
  tensor.set(0, value);
  return constant(tensor);
}

const Value* Row::int_vector(const std::vector<int64_t>& values) {
  ir::Tensor tensor(ir::DType::kI64, {static_cast<int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i)
    tensor.set_int(static_cast<int64_t>(i), values[i]);
  return constant(tensor);
}

const Value* Row::sequence(std::vector<const Value*> parts) {
  return importer_.sequence(std::move(parts));
}

const Value* Row::standing_for(const Value* result, int32_t onnx_type) {
  // The importer's, though rows see it as const.
  const_cast<Value*>(result)->stands_for = onnx_type;
  return result;
}

Error Row::unsupported(std::string_view why) const {
  return error(Diag::kOnnxNode, node_.op, node_.name, std::string(why));
}

Result<std::vector<const Value*>> joined_in_groups(std::vector<const Value*> values,
                                                   const Joiner& join) {
  constexpr std::size_t kGroup = 16;
  static_assert(kMaxJoined <= lang::kMaxListLength);
  while (values.size() > kMaxJoined) {
    std::vector<const Value*> groups;
    for (std::size_t i = 0; i < values.size(); i += kGroup) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(i);
      const std::vector<const Value*> group(
          first, first + static_cast<std::ptrdiff_t>(std::min(kGroup, values.size() - i)));
      if (group.size() == 1) {
        groups.push_back(group[0]);
        continue;
      }
      PRUNERC_TRY(const Value* const one, join(group));
      groups.push_back(one);
    }
    values = std::move(groups);
  }
  return values;
}

}  // namespace prunerc::onnx

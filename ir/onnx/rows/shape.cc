// Numbers about shapes, and tensors made of numbers.
#include "ir/onnx/importer.h"
#include "ir/onnx/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace prunerc::onnx {
namespace {

Result<void> shape(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  const int64_t rank = x->rank();
  const auto clamped = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t first = clamped(row.attr_int("start", 0)),
                last = clamped(row.attr_int("end", rank));
  std::vector<int64_t> extents;
  for (int64_t i = first; i < last; ++i) extents.push_back(x->shape[static_cast<std::size_t>(i)]);
  row.set(0, row.int_vector(extents));
  return {};
}

Result<void> size(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  ir::Tensor tensor(ir::DType::kI64, {});
  tensor.set_int(0, x->num_elements());
  row.set(0, row.constant(tensor));
  return {};
}

Result<void> constant(Row& row) {
  if (const Attribute* const value = row.find("value"); value != nullptr && value->tensor) {
    if (!value->tensor->dtype && !value->tensor->stand_in)
      return row.unsupported("the type " + type_name(value->tensor->onnx_type));
    row.set(0, row.importer().held(*value->tensor));
    return {};
  }
  if (row.has("value_int")) {
    ir::Tensor tensor(ir::DType::kI64, {});
    tensor.set_int(0, row.attr_int("value_int", 0));
    row.set(0, row.constant(tensor));
  } else if (row.has("value_float")) {
    row.set(0, row.scalar(ir::DType::kF32, row.attr_float("value_float", 0)));
  } else if (row.has("value_ints")) {
    row.set(0, row.int_vector(row.attr_ints("value_ints")));
  } else if (row.has("value_floats")) {
    const std::vector<double> values = row.attr_floats("value_floats");
    ir::Tensor tensor(ir::DType::kF32, {static_cast<int64_t>(values.size())});
    for (std::size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<int64_t>(i), values[i]);
    row.set(0, row.constant(tensor));
  } else {
    return row.unsupported("a value that is no tensor of numbers");
  }
  return {};
}

// The same number everywhere.
Result<void> fill(Row& row, const std::vector<int64_t>& shape, ir::DType dtype,
                  const std::string& number) {
  const int rank = static_cast<int>(shape.size());
  PRUNERC_TRY(const Value* const result,
              row.call("fill", {}, dtype, shape,
                       fmt::format("{} = {};", at("Y", index_list(rank)), number)));
  row.set(0, result);
  return {};
}

Result<void> constant_of_shape(Row& row) {
  PRUNERC_TRY(const std::vector<int64_t> shape, row.known_ints(0));
  const Attribute* const value = row.find("value");
  if (value == nullptr || !value->tensor)
    return fill(row, shape, ir::DType::kF32, number_text(ir::DType::kF32, 0));
  if (!value->tensor->dtype || value->tensor->num_elements() != 1)
    return row.unsupported("the type " + type_name(value->tensor->onnx_type));
  const ir::Tensor number = tensor_of(*value->tensor);
  if (ir::is_int(number.dtype))
    return fill(row, shape, number.dtype, whole_text(number.get_int(0)));
  if (std::isnan(number.get(0))) return row.unsupported("a fill of NaN");
  return fill(row, shape, number.dtype, number_text(number.dtype, number.get(0)));
}

constexpr int64_t kMostInRange = int64_t{1} << 24;

// Exactly: the distance of two numbers, and a step, may need 64 bits without a sign.
Result<void> whole_range(Row& row, ir::DType dtype) {
  std::vector<int64_t> numbers;
  for (std::size_t i = 0; i < 3; ++i) {
    PRUNERC_TRY(const std::vector<int64_t> one, row.known_ints(i));
    if (one.size() != 1) return row.unsupported("an operand that is no number");
    numbers.push_back(one[0]);
  }
  const int64_t start = numbers[0], limit = numbers[1], step = numbers[2];
  if (step == 0) return row.unsupported("steps of 0");
  const auto first = static_cast<uint64_t>(start), each = static_cast<uint64_t>(step);
  const uint64_t distance =
      step > 0 ? static_cast<uint64_t>(limit) - first : first - static_cast<uint64_t>(limit);
  const bool is_empty = step > 0 ? limit <= start : limit >= start;
  const uint64_t count = is_empty ? 0 : (distance - 1) / (step > 0 ? each : 0 - each) + 1;
  if (count > static_cast<uint64_t>(kMostInRange)) return row.unsupported("so many elements");
  ir::Tensor tensor(dtype, {static_cast<int64_t>(count)});
  for (uint64_t i = 0; i < count; ++i)
    tensor.set_int(static_cast<int64_t>(i), static_cast<int64_t>(first + i * each));
  row.set(0, row.constant(tensor));
  return {};
}

Result<void> range(Row& row) {
  PRUNERC_TRY(const Value* const start, row.need(0));
  if (ir::is_int(start->dtype)) return whole_range(row, start->dtype);
  std::vector<double> numbers;
  for (std::size_t i = 0; i < 3; ++i) {
    PRUNERC_TRY(const std::vector<double> one, row.known_numbers(i));
    if (one.size() != 1) return row.unsupported("an operand that is no number");
    numbers.push_back(one[0]);
  }
  if (numbers[2] == 0) return row.unsupported("steps of 0");
  const double count = std::ceil((numbers[1] - numbers[0]) / numbers[2]);
  if (!(count <= static_cast<double>(kMostInRange))) return row.unsupported("so many elements");
  ir::Tensor tensor(start->dtype, {static_cast<int64_t>(std::max(0.0, count))});
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = numbers[0] + static_cast<double>(i) * numbers[2];
    tensor.set(i, value);
  }
  row.set(0, row.constant(tensor));
  return {};
}

Result<void> eye_like(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (x->rank() != 2) return row.unsupported("an operand that is no matrix");
  ir::DType dtype = x->dtype;
  if (row.has("dtype")) {
    const auto given = dtype_of(static_cast<int32_t>(row.attr_int("dtype", 1)));
    if (!given) return row.unsupported("this type");
    dtype = *given;
  }
  constexpr int64_t kFar = int64_t{1} << 40;
  const int64_t k = std::clamp(row.attr_int("k", 0), -kFar, kFar);
  PRUNERC_TRY(const Value* const result,
              row.call("eye", {}, dtype, x->shape,
                       fmt::format("Y[i0,i1] = if i1 == i0 + {} then {} else {};", whole_text(k),
                                   number_text(dtype, 1), number_text(dtype, 0))));
  row.set(0, result);
  return {};
}

// A branch that is known now.
Result<void> branch(Row& row) {
  PRUNERC_TRY(const std::vector<double> condition, row.known_numbers(0));
  const Attribute* const taken =
      row.find(condition.size() == 1 && condition[0] != 0 ? "then_branch" : "else_branch");
  if (condition.size() != 1 || taken == nullptr || !taken->graph)
    return row.unsupported("such branches");
  PRUNERC_TRY(const std::vector<const Value*> results,
              row.importer().import_graph(*taken->graph, {}));
  for (std::size_t i = 0; i < results.size() && i < row.results().size(); ++i) {
    if (results[i] == nullptr) return row.unsupported("what its branch needs");
    row.set(i, results[i]);
  }
  return {};
}

// What a loop's condition says now; it goes on where none is given.
Result<bool> goes_on(Row& row, const Value* condition) {
  if (condition == nullptr) return true;
  if (condition->known && condition->num_elements() == 1) return condition->element(0) != 0;
  std::string input = row.importer().input_name(condition);
  if (!input.empty())
    return error(Diag::kOnnxOperand, row.node().op, row.node().name, std::move(input));
  return row.unsupported("a condition that is known only at run time");
}

// A number of the rank that the body says: in older models it is a tensor of one element.
const Value* number_for(Row& row, const ValueInfo& input, ir::DType dtype, int64_t number) {
  const std::size_t rank = input.has_shape && input.shape.size() == 1 ? 1 : 0;
  ir::Tensor tensor(dtype, std::vector<int64_t>(rank, 1));
  tensor.set_int(0, number);
  return row.constant(tensor);
}

/// Longer loops are no network.
constexpr int64_t kMaxIterations = 4096;

/// The number of the iteration, the condition and the values that go from one to the next; and what each one gives.
struct Carried {
  std::vector<const Value*> state;
  std::vector<std::vector<const Value*>> scans;
};

Result<void> iterate(Row& row, const Graph& body, int64_t most, Carried& c) {
  const std::size_t kept = c.state.size() - 1;  // of the results: the condition, too
  for (int64_t i = 0; i < most; ++i) {
    PRUNERC_TRY(const bool runs, goes_on(row, c.state[1]));
    if (!runs && row.in(1) == nullptr)
      return row.unsupported(
          "a condition of the body alone: ONNX ignores it, ONNX Runtime does not");
    if (!runs) break;
    // Without a condition all that there may be are sure.
    const int64_t sure = row.in(1) == nullptr ? most : i + 1;
    if (sure > kMaxIterations) return row.unsupported("more than 4096 iterations");
    if (body.nodes.size() * static_cast<std::size_t>(sure) > kMaxNodes / 2)
      return row.unsupported("so many nodes in all its iterations");
    c.state[0] = number_for(row, body.inputs[0], ir::DType::kI64, i);
    if (c.state[1] == nullptr) c.state[1] = number_for(row, body.inputs[1], ir::DType::kBool, 1);
    PRUNERC_TRY(const std::vector<const Value*> results,
                row.importer().import_graph(body, c.state));
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (results[r] == nullptr) return row.unsupported("what its body needs");
      (r < kept ? c.state[1 + r] : c.scans[r - kept].emplace_back()) = results[r];
    }
  }
  return {};
}

// A loop whose number of iterations is known: its body, so many times.
Result<void> loop(Row& row) {
  const Attribute* const body = row.find("body");
  int64_t most = kMaxIterations + 1;
  if (row.in(0) != nullptr) {
    PRUNERC_TRY(const std::vector<int64_t> given, row.known_ints(0));
    if (given.size() != 1) return row.unsupported("a number of iterations like this");
    most = std::min(most, given[0]);
  }
  if (body == nullptr || !body->graph) return row.unsupported("a loop without a body");
  const std::size_t carried = row.num_inputs() > 2 ? row.num_inputs() - 2 : 0,
                    results = body->graph->outputs.size();
  if (results < 1 + carried || body->graph->inputs.size() != 2 + carried)
    return row.unsupported("a body of other operands");
  Carried c{{nullptr, row.in(1)}, {}};
  for (std::size_t i = 0; i < carried; ++i) {
    PRUNERC_TRY(const Value* const value, row.need(2 + i));
    c.state.push_back(value);
  }
  c.scans.resize(results - 1 - carried);
  PRUNERC_TRY_VOID(iterate(row, *body->graph, most, c));
  for (std::size_t i = 0; i < carried; ++i) row.set(i, c.state[2 + i]);
  for (std::size_t i = 0; i < c.scans.size(); ++i) {
    if (!row.wants_output(carried + i)) continue;
    if (c.scans[i].empty()) return row.unsupported("no iterations");
    PRUNERC_TRY(const Value* const all, stacked(row, c.scans[i], 0));
    row.set(carried + i, all);
  }
  return {};
}

constexpr RowEntry kRows[] = {{"Shape", shape},       {"Size", size},
                              {"Constant", constant}, {"ConstantOfShape", constant_of_shape},
                              {"Range", range},       {"EyeLike", eye_like},
                              {"If", branch},         {"Loop", loop}};

}  // namespace

std::span<const RowEntry> shape_rows() { return kRows; }

}  // namespace prunerc::onnx

// Sequences of tensors: lists that are known while importing, of which nothing remains in the net.
#include "ir/onnx/row.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::onnx {
namespace {

constexpr std::size_t kMaxParts = 4096;

Result<std::vector<const Value*>> need_parts(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (!x->is_sequence) return row.unsupported("an operand that is no sequence");
  return x->parts;
}

// The place that an operand says, negative ones from the end; it is below `end`.
Result<std::ptrdiff_t> place_of(Row& row, std::size_t input, std::size_t count, std::size_t end) {
  PRUNERC_TRY(const std::vector<int64_t> given, row.known_ints(input));
  const auto n = static_cast<int64_t>(count);
  if (given.size() != 1 || given[0] < -n || given[0] >= static_cast<int64_t>(end))
    return row.unsupported("a place that the sequence does not have");
  return static_cast<std::ptrdiff_t>(given[0] < 0 ? given[0] + n : given[0]);
}

Result<void> construct(Row& row) {
  if (row.num_inputs() > kMaxParts) return row.unsupported("more than 4096 parts");
  std::vector<const Value*> parts;
  for (std::size_t i = 0; i < row.num_inputs(); ++i) {
    PRUNERC_TRY(const Value* const part, row.need(i));
    if (part->dtype != row.in(0)->dtype) return row.unsupported("parts of two types");
    parts.push_back(part);
  }
  row.set(0, row.sequence(std::move(parts)));
  return {};
}

Result<void> element(Row& row) {
  PRUNERC_TRY(const std::vector<const Value*> parts, need_parts(row));
  PRUNERC_TRY(const std::ptrdiff_t place, place_of(row, 1, parts.size(), parts.size()));
  row.set(0, parts[static_cast<std::size_t>(place)]);
  return {};
}

Result<void> insert(Row& row) {
  PRUNERC_TRY(std::vector<const Value*> parts, need_parts(row));
  PRUNERC_TRY(const Value* const part, row.need(1));
  if (part->is_sequence || (!parts.empty() && part->dtype != parts[0]->dtype))
    return row.unsupported("a part of this type");
  if (parts.size() == kMaxParts) return row.unsupported("more than 4096 parts");
  auto place = static_cast<std::ptrdiff_t>(parts.size());
  if (row.in(2) != nullptr) {
    PRUNERC_TRY(place, place_of(row, 2, parts.size(), parts.size() + 1));
  }
  parts.insert(parts.begin() + place, part);
  row.set(0, row.sequence(std::move(parts)));
  return {};
}

Result<void> erase(Row& row) {
  PRUNERC_TRY(std::vector<const Value*> parts, need_parts(row));
  if (parts.empty()) return row.unsupported("a sequence without parts");
  auto place = static_cast<std::ptrdiff_t>(parts.size()) - 1;
  if (row.in(1) != nullptr) {
    PRUNERC_TRY(place, place_of(row, 1, parts.size(), parts.size()));
  }
  parts.erase(parts.begin() + place);
  row.set(0, row.sequence(std::move(parts)));
  return {};
}

Result<void> length(Row& row) {
  PRUNERC_TRY(const std::vector<const Value*> parts, need_parts(row));
  ir::Tensor tensor(ir::DType::kI64, {});
  tensor.set_int(0, static_cast<int64_t>(parts.size()));
  row.set(0, row.constant(tensor));
  return {};
}

// How long the parts are: as the operand says, a list or one number for all but the last; else 1 each.
Result<std::vector<int64_t>> sizes_of(Row& row, int64_t extent) {
  std::vector<int64_t> sizes;
  int64_t each = 1;
  if (row.in(1) != nullptr) {
    PRUNERC_TRY(sizes, row.known_ints(1));
    if (sizes.size() > kMaxParts) return row.unsupported("more than 4096 parts");
    if (row.in(1)->rank() > 0) {
      int64_t left = extent;
      for (const int64_t size : sizes) {
        if (size < 0 || size > left) return row.unsupported("parts that do not fit");
        left -= size;
      }
      if (left != 0) return row.unsupported("parts that do not fit");
      return sizes;
    }
    each = sizes[0];
    sizes.clear();
  }
  if (each < 1) return row.unsupported("parts that do not fit");
  if ((extent - 1) / each >= static_cast<int64_t>(kMaxParts))
    return row.unsupported("more than 4096 parts");
  for (int64_t first = 0; first < extent; first += each)
    sizes.push_back(std::min(each, extent - first));
  return sizes;
}

Result<void> split(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  const std::optional<int> axis = axis_of(row.attr_int("axis", 0), x->rank());
  if (!axis) return row.unsupported("an axis that is none");
  const auto a = static_cast<std::size_t>(*axis);
  const bool keeps = row.in(1) != nullptr || row.attr_int("keepdims", 1) != 0;
  PRUNERC_TRY(const std::vector<int64_t> sizes, sizes_of(row, x->shape[a]));
  std::vector<const Value*> parts;
  int64_t first = 0;
  for (const int64_t size : sizes) {
    std::vector<int64_t> shape = x->shape;
    std::vector<std::string> target = index_list(x->rank()), reads = target;
    shape[a] = size;
    reads[a] = size == 1 ? fmt::format("{}", first) : fmt::format("{} + {}", reads[a], first);
    if (!keeps) {
      shape.erase(shape.begin() + *axis);
      target.erase(target.begin() + *axis);
    }
    PRUNERC_TRY(const Value* const part,
                row.call("part", {{"X", x}}, x->dtype, shape,
                         fmt::format("{} = {};", at("Y", target), at("X", reads))));
    parts.push_back(part);
    first += size;
  }
  row.set(0, row.sequence(std::move(parts)));
  return {};
}

Result<void> concat(Row& row) {
  PRUNERC_TRY(const std::vector<const Value*> parts, need_parts(row));
  if (parts.empty()) return row.unsupported("a sequence without parts");
  const bool is_new = row.attr_int("new_axis", 0) != 0;
  PRUNERC_TRY(const Value* const y,
              (is_new ? stacked : concatenated)(row, parts, row.attr_int("axis", 0)));
  row.set(0, y);
  return {};
}

Result<void> empty(Row& row) {
  row.set(0, row.sequence({}));
  return {};
}

constexpr RowEntry kRows[] = {{"SequenceConstruct", construct}, {"SequenceEmpty", empty},
                              {"SequenceAt", element},          {"SequenceInsert", insert},
                              {"SequenceErase", erase},         {"SequenceLength", length},
                              {"SplitToSequence", split},       {"ConcatFromSequence", concat}};

}  // namespace

std::span<const RowEntry> sequence_rows() { return kRows; }

bool takes_sequences(std::string_view op) {
  return op == "SequenceAt" || op == "SequenceInsert" || op == "SequenceErase" ||
         op == "SequenceLength" || op == "ConcatFromSequence" || op == "Identity" || op == "Loop";
}

Result<const Value*> stacked(Row& row, const std::vector<const Value*>& parts, int64_t along) {
  if (parts.empty()) return row.unsupported("no parts");
  const int rank = parts[0]->rank();
  const std::optional<int> axis = axis_of(along, rank + 1);
  if (!axis) return row.unsupported("an axis that is none");
  std::vector<const Value*> longer;
  for (const Value* part : parts) {
    if (part->rank() != rank || part->is_sequence || part->stands_for != 0)
      return row.unsupported("parts of different ranks or types");
    std::vector<int64_t> shape = part->shape;
    shape.insert(shape.begin() + *axis, 1);
    const std::vector<std::string> target = index_list(rank + 1);
    std::vector<std::string> reads = target;
    reads.erase(reads.begin() + *axis);
    PRUNERC_TRY(const Value* const one,
                row.call("unsqueeze", {{"X", part}}, part->dtype, shape,
                         fmt::format("{} = {};", at("Y", target), at("X", reads))));
    longer.push_back(one);
  }
  return concatenated(row, longer, *axis);
}

}  // namespace prunerc::onnx

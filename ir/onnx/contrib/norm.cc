// Normalisations of ONNX Runtime's own domain: with what is added before.
#include "ir/onnx/text/norm.h"

#include "ir/onnx/text/integer.h"

#include <fmt/format.h>

namespace prunerc::onnx {
namespace {

// Sums of 16-bit floats stay wide until they are normalised.
ir::DType wide_of(ir::DType dtype) { return is_narrow(dtype) ? ir::DType::kF32 : dtype; }

std::string widened(const Value& value, const std::string& read) {
  return is_narrow(value.dtype) ? fmt::format("f32({})", read) : read;
}

/// What is normalised, as the model sees it.
struct Normed {
  ir::DType dtype;
  std::vector<int64_t> shape;
};

// One number for each place of the last axis, or nothing.
Result<void> check_parameter(const Row& row, const Value* value, const Normed& x) {
  if (value == nullptr) return {};
  if (value->shape != std::vector<int64_t>{x.shape.back()})
    return row.unsupported("parameters of another shape");
  if (value->dtype != x.dtype) return row.unsupported("parameters of another type");
  return {};
}

Result<RowNorm> norm_of_last(const Row& row, const Normed& x, const Value& gamma,
                             const Value* beta) {
  PRUNERC_TRY_VOID(check_parameter(row, &gamma, x));
  PRUNERC_TRY_VOID(check_parameter(row, beta, x));
  const int rank = static_cast<int>(x.shape.size());
  RowNorm n;
  n.first = x.shape.size() - 1;
  n.epsilon = number_text(ir::DType::kF32, row.attr_float("epsilon", 1e-12F));
  n.more = {{"g", &gamma}};
  n.scale = parameter(gamma, "g", rank, is_narrow(x.dtype));
  if (beta != nullptr) {
    n.more.push_back({"b", beta});
    n.shift = parameter(*beta, "b", rank, is_narrow(x.dtype));
  }
  n.result = x.dtype;
  return n;
}

// The sum in the type that the model reads it in.
Result<const Value*> narrowed(Row& row, const Value& sum, ir::DType dtype) {
  if (sum.dtype == dtype) return &sum;
  const std::vector<std::string> index = index_list(sum.rank());
  return row.call(
      "narrowed", {{"X", &sum}}, dtype, sum.shape,
      fmt::format("{} = {}({});", at("Y", index), ir::to_string(dtype), at("X", index)));
}

Result<void> skip_norm(Row& row, bool has_mean) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const skip, row.need(1));
  PRUNERC_TRY(const Value* const gamma, row.need(2));
  const Value* const beta = has_mean ? row.in(3) : nullptr;
  const Value* const bias = row.in(has_mean ? 4 : 3);
  if (!ir::is_float(x->dtype) || skip->dtype != x->dtype || x->rank() < 2 || x->rank() > 3)
    return row.unsupported("operands of these shapes or types");
  if (skip->rank() < 2 || broadcast_shape(x->shape, skip->shape) != x->shape ||
      product(skip->shape, skip->shape.size() - 2) != product(x->shape, x->shape.size() - 2))
    return row.unsupported("a second operand of another shape");
  if (!has_mean && (row.wants_output(1) || row.wants_output(2)))
    return row.unsupported("mean and deviation as outputs");
  const Normed normed{x->dtype, x->shape};
  PRUNERC_TRY_VOID(check_parameter(row, bias, normed));
  PRUNERC_TRY(RowNorm n, norm_of_last(row, normed, *gamma, beta));
  n.has_mean = has_mean;
  std::vector<Arg> args = {{"X", x}, {"S", skip}};
  std::string sum = widened(*x, at("X", index_list(x->rank()))) + " + " +
                    widened(*skip, broadcast_read("S", skip->shape, x->rank()));
  if (bias != nullptr) {
    args.push_back({"b", bias});
    sum += " + " + parameter(*bias, "b", x->rank(), is_narrow(x->dtype));
  }
  PRUNERC_TRY(const Value* const total,
              row.call("skip_sum", std::move(args), wide_of(x->dtype), x->shape,
                       fmt::format("{} = {};", at("Y", index_list(x->rank())), sum)));
  PRUNERC_TRY_VOID(norm_rows_of(row, *total, n, has_mean ? "layer_norm" : "rms_norm"));
  if (row.wants_output(3)) {
    PRUNERC_TRY(const Value* const shown, narrowed(row, *total, x->dtype));
    row.set(3, shown);
  }
  return {};
}
Result<void> skip_layer_norm(Row& row) { return skip_norm(row, true); }
Result<void> skip_rms_norm(Row& row) { return skip_norm(row, false); }

enum class Tables { kFloats, kBytes };

// What the table at input `i` holds where `read` reads it, as a float. Bytes have their scale six inputs behind
// and their zero point eleven.
Result<std::string> number_of(Row& row, Tables tables, std::size_t i, const std::string& read,
                              std::vector<Arg>& args) {
  PRUNERC_TRY(const Value* const table, row.need(i));
  if (tables == Tables::kFloats) return widened(*table, read);
  PRUNERC_TRY(const Value* const scale, row.need(i + 6));
  PRUNERC_TRY(const Value* const zero, row.need(i + 11));
  if (!is_byte(*table) || scale->dtype != ir::DType::kF32 || zero->dtype != table->dtype ||
      scale->num_elements() != 1 || zero->num_elements() != 1)
    return row.unsupported("a scale or zero point of another shape or type");
  args.push_back({fmt::format("s{}", i), scale});
  args.push_back({fmt::format("z{}", i), zero});
  return fmt::format("f32(i32({}) - i32({})) * {}", read, single_read(args.back().name, *zero),
                     single_read(args[args.size() - 2].name, *scale));
}

// The parameter at input `i` in floats.
Result<const Value*> parameter_of(Row& row, Tables tables, std::size_t i) {
  PRUNERC_TRY(const Value* const value, row.need(i));
  if (tables == Tables::kFloats) return value;
  if (value->rank() != 1) return row.unsupported("parameters of another shape");
  std::vector<Arg> args = {{"X", value}};
  PRUNERC_TRY(const std::string number, number_of(row, tables, i, "X[c]", args));
  return row.call("dequantize", std::move(args), ir::DType::kF32, value->shape,
                  fmt::format("Y[c] = {};", number));
}

/// What the embeddings of a token are summed from.
struct Embedding {
  std::vector<Arg> args;
  std::string sum;
};

Result<Embedding> embedding_of(Row& row, const Value& ids, Tables tables) {
  PRUNERC_TRY(const Value* const words, row.need(2));
  PRUNERC_TRY(const Value* const places, row.need(3));
  const Value *const segment_ids = row.in(1), *const segments = row.in(4),
                     *const place_ids = tables == Tables::kFloats ? row.in(8) : nullptr;
  if ((segment_ids == nullptr) != (segments == nullptr))
    return row.unsupported("segments without their embedding, or the other way round");
  for (const Value* table : {words, places, segments}) {
    if (table != nullptr &&
        (table->rank() != 2 || table->shape[1] != words->shape.back() ||
         table->dtype != words->dtype ||
         !(tables == Tables::kFloats ? ir::is_float(table->dtype) : is_byte(*table))))
      return row.unsupported("embeddings of these shapes or types");
  }
  Embedding out;
  out.args = {{"I", &ids}, {"W", words}, {"P", places}};
  std::string read_place = "P[i1 + 0,i2]";
  if (place_ids != nullptr) {
    if (place_ids->shape != ids.shape && place_ids->shape != std::vector<int64_t>{1, ids.shape[1]})
      return row.unsupported("positions of another shape");
    if (!ir::is_int(place_ids->dtype)) return row.unsupported("positions of this type");
    out.args.push_back({"Q", place_ids});
    read_place = fmt::format("(P[{},i2] or 0)", broadcast_read("Q", place_ids->shape, 2));
  } else if (places->shape[0] < ids.shape[1]) {
    return row.unsupported("more tokens than positions");
  }
  PRUNERC_TRY(out.sum, number_of(row, tables, 2, "(W[I[i0,i1],i2] or 0)", out.args));
  PRUNERC_TRY(const std::string place, number_of(row, tables, 3, read_place, out.args));
  out.sum += " + " + place;
  if (segments != nullptr) {
    if (segment_ids->shape != ids.shape || !ir::is_int(segment_ids->dtype))
      return row.unsupported("segments of another shape or type");
    out.args.push_back({"G", segment_ids});
    out.args.push_back({"S", segments});
    PRUNERC_TRY(const std::string segment,
                number_of(row, tables, 4, "(S[G[i0,i1],i2] or 0)", out.args));
    out.sum += " + " + segment;
  }
  return out;
}

// How many tokens of each sequence count.
Result<const Value*> mask_index(Row& row, const Value& ids) {
  const Value* const mask = row.in(7);
  const std::vector<int64_t> shape = {ids.shape[0]};
  if (mask == nullptr) return row.constant(ir::Tensor(ir::DType::kI32, shape));
  if (mask->shape != ids.shape || mask->dtype != ir::DType::kI32)
    return row.unsupported("a mask of another shape or type");
  return row.call("mask_index", {{"M", mask}}, ir::DType::kI32, shape,
                  "Y[b] = sum[s] (if M[b,s] == 1 then i32(1) else i32(0));");
}

Result<void> embedded(Row& row, Tables tables) {
  PRUNERC_TRY(const Value* const ids, row.need(0));
  PRUNERC_TRY(const Value* const gamma, parameter_of(row, tables, 5));
  PRUNERC_TRY(const Value* const beta, parameter_of(row, tables, 6));
  if (ids->rank() != 2 || !ir::is_int(ids->dtype))
    return row.unsupported("ids of this shape or type");
  PRUNERC_TRY(const Embedding embedding, embedding_of(row, *ids, tables));
  const Value& words = *embedding.args[1].value;
  const ir::DType dtype = tables == Tables::kFloats ? words.dtype : ir::DType::kF32;
  const std::vector<int64_t> shape = {ids->shape[0], ids->shape[1], words.shape[1]};
  PRUNERC_TRY(const Value* const sum, row.call("embedding", embedding.args, wide_of(dtype), shape,
                                               fmt::format("Y[i0,i1,i2] = {};", embedding.sum)));
  PRUNERC_TRY(const RowNorm n, norm_of_last(row, {dtype, shape}, *gamma, beta));
  PRUNERC_TRY(const std::vector<const Value*> y, norm_of(row, *sum, n, "layer_norm"));
  row.set(0, y[0]);
  PRUNERC_TRY(const Value* const lengths, mask_index(row, *ids));
  row.set(1, lengths);
  PRUNERC_TRY(const Value* const shown, narrowed(row, *sum, dtype));
  row.set(2, shown);
  return {};
}
Result<void> embed_layer_norm(Row& row) { return embedded(row, Tables::kFloats); }
Result<void> quantized_embed_layer_norm(Row& row) { return embedded(row, Tables::kBytes); }

constexpr RowEntry kRows[] = {
    {"com.microsoft.SkipLayerNormalization", skip_layer_norm},
    {"com.microsoft.SkipSimplifiedLayerNormalization", skip_rms_norm},
    {"com.microsoft.EmbedLayerNormalization", embed_layer_norm},
    {"com.microsoft.QEmbedLayerNormalization", quantized_embed_layer_norm}};

}  // namespace

std::span<const RowEntry> contrib_norm_rows() { return kRows; }

}  // namespace prunerc::onnx

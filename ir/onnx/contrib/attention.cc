// Attention of ONNX Runtime's own domain.
#include "ir/onnx/contrib/attention.h"

#include "ir/onnx/text/product.h"

#include <fmt/format.h>

#include <cmath>

namespace prunerc::onnx {

Result<const Value*> columns(Row& row, const Value& x, int64_t first, int64_t width) {
  return row.call("columns", {{"X", &x}}, x.dtype, {x.shape[0], x.shape[1], width},
                  fmt::format("Y[i0,i1,i2] = X[i0,i1,i2 + {}];", first));
}

Result<double> scale_of(const Row& row, int64_t width) {
  const double scale = row.attr_float("scale", 0);
  if (!std::isfinite(scale)) return row.unsupported("a scale that is no number");
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(width));
}

Result<std::string> score_bias(Row& row, const Value& bias, const Heads& q, int64_t total,
                               int64_t keys) {
  const std::vector<int64_t> shape = {q.batch, q.heads, q.length, total};
  if (bias.rank() != 4 || broadcast_shape(shape, bias.shape) != shape ||
      bias.shape[2] != shape[2] || bias.shape[3] != total || bias.dtype != q.value->dtype)
    return row.unsupported("an attention_bias of another shape or type");
  std::string read = fmt::format("B[{}, {}, t, {}]", bias.shape[0] == 1 ? "0" : "b",
                                 bias.shape[1] == 1 ? "0" : "h", total < keys ? "s + 0" : "s");
  if (total < keys) read = fmt::format("({} or 0)", read);
  return ir::byte_size(bias.dtype) < 4 ? fmt::format("f32({})", read) : read;
}

namespace {

// --- MultiHeadAttention

/// Scores far above it are no matter beside it.
constexpr double kLeastFilter = -1e30;

// Masked keys have a number added to their scores; of keys that are all masked each counts.
Result<std::string> padding_text(Row& row, const Value& mask, const Heads& q, int64_t total) {
  const double filter = row.attr_float("mask_filter_value", -10000);
  if (mask.dtype != ir::DType::kI32) return row.unsupported("a mask of this type");
  if (!std::isfinite(filter)) return row.unsupported("a mask_filter_value that is no number");
  // A later key has the least number there, and counts where all keys before it are masked.
  if (filter < kLeastFilter && row.attr_int("unidirectional", 0) == 1)
    return row.unsupported("unidirectional attention with a mask_filter_value this low");
  std::string seen;
  if (mask.shape == std::vector<int64_t>{q.batch}) {
    seen = "i64(s) < i64(M[b])";
  } else if (mask.shape == std::vector<int64_t>{q.batch, total}) {
    seen = "M[b, s] > 0";
  } else if (mask.shape == std::vector<int64_t>{q.batch, q.length, total}) {
    seen = "M[b, t, s] > 0";
  } else {
    return row.unsupported("a mask of another shape");
  }
  return fmt::format("(if {} then f32(0) else f32({}))", seen,
                     number_text(ir::DType::kF32, filter));
}

Result<Mask> score_mask(Row& row, const Heads& q, int64_t total, const Value* mask,
                        const Value* bias) {
  Mask out;
  if (bias != nullptr) {
    PRUNERC_TRY(out.added, score_bias(row, *bias, q, total, total));
    out.args.push_back({"B", bias});
  }
  if (mask != nullptr) {
    PRUNERC_TRY(const std::string padding, padding_text(row, *mask, q, total));
    out.args.push_back({"M", mask});
    out.added = out.added.empty() ? padding : fmt::format("({} + {})", out.added, padding);
  }
  return out;
}

// What a projection adds, from `first` on in the bias of all three.
Result<const Value*> with_bias(Row& row, const Value& x, const Value* bias, int64_t first) {
  if (bias == nullptr) return &x;
  if (x.rank() != 3 || bias->rank() != 1 || bias->dtype != x.dtype ||
      bias->shape[0] < first + x.shape[2])
    return row.unsupported("a bias of another shape or type");
  return row.call("add_bias", {{"X", &x}, {"b", bias}}, x.dtype, x.shape,
                  fmt::format("Y[i0,i1,i2] = X[i0,i1,i2] + b[i2 + {}];", first));
}

Result<void> check_mha(const Row& row) {
  if (row.in(8) != nullptr || row.in(9) != nullptr)
    return row.unsupported(
        "buffers that past and present share (past_sequence_length, cache_indirection)");
  if (row.wants_output(3)) return row.unsupported("the scores as an output (qk)");
  if ((row.in(6) == nullptr) != (row.in(7) == nullptr))
    return row.unsupported("a past of keys or values alone");
  if (row.in(1) == nullptr || row.in(2) == nullptr)
    return row.unsupported(row.in(1) == nullptr ? "queries, keys and values in one operand"
                                                : "keys and values in one operand");
  return {};
}

Result<void> multi_head_attention(Row& row) {
  PRUNERC_TRY(const Value* q_in, row.need(0));
  PRUNERC_TRY_VOID(check_mha(row));
  const Value *k_in = row.in(1), *v_in = row.in(2);
  const Value* const bias = row.in(3);
  if (q_in->rank() != 3 || k_in->rank() != v_in->rank())
    return row.unsupported("operands of these ranks");
  const int64_t hidden = q_in->shape[2];
  PRUNERC_TRY(q_in, with_bias(row, *q_in, bias, 0));
  // Keys that have heads already, those of another network, have their bias, too.
  if (k_in->rank() == 3) {
    PRUNERC_TRY(k_in, with_bias(row, *k_in, bias, hidden));
    PRUNERC_TRY(v_in, with_bias(row, *v_in, bias, 2 * hidden));
    if (bias != nullptr && bias->shape[0] != 2 * hidden + v_in->shape[2])
      return row.unsupported("a bias of another shape or type");
  }
  const int64_t count = row.attr_int("num_heads", 0);
  const auto q = heads_of(*q_in, count), k_now = heads_of(*k_in, count),
             v_now = heads_of(*v_in, count);
  if (!q || !k_now || !v_now || !ir::is_float(q_in->dtype) || k_in->dtype != q_in->dtype ||
      v_in->dtype != q_in->dtype)
    return row.unsupported("operands of these shapes or types");
  AttentionPlan plan;
  plan.q = *q;
  PRUNERC_TRY(plan.k, with_past(row, *k_now, row.in(6), row.wants_output(1)));
  PRUNERC_TRY(plan.v, with_past(row, *v_now, row.in(7), row.wants_output(2)));
  const Heads &k = plan.k, &v = plan.v;
  if (k.batch != q->batch || v.batch != q->batch || k.width != q->width || v.length != k.length ||
      k.heads != count || v.heads != count)
    return row.unsupported("operands that do not fit together");
  if (row.attr_int("unidirectional", 0) == 1) {
    if (q->length != k_now->length)
      return row.unsupported("unidirectional attention to keys of another length");
    plan.causal = causal_text(k.length - k_now->length);
  }
  PRUNERC_TRY(plan.mask, score_mask(row, *q, k.length, row.in(4), row.in(5)));
  PRUNERC_TRY(plan.scale, scale_of(row, q->width));
  PRUNERC_TRY(const std::vector<const Value*> results, attention_of(row, plan));
  row.set(0, results[0]);
  row.set(1, k.value);
  row.set(2, v.value);
  return {};
}

// --- Attention and QAttention: queries, keys and values are one product, [batch, place, all three].

/// Of which widths the three are, and what there is beside them.
struct Projected {
  const Value* all = nullptr;
  std::vector<int64_t> widths;
  const Value *mask = nullptr, *past = nullptr, *bias = nullptr;
};

// The keys (0) or the values (1) of a past [2, batch, head, place, element].
Result<const Value*> past_part(Row& row, const Value* past, int which) {
  if (past == nullptr || past->num_elements() == 0) return nullptr;
  if (past->rank() != 5 || past->shape[0] != 2)
    return row.unsupported("a past of another shape or type");
  const std::vector<int64_t> shape(past->shape.begin() + 1, past->shape.end());
  return row.call("past_part", {{"X", past}}, past->dtype, shape,
                  fmt::format("Y[i0,i1,i2,i3] = X[{},i0,i1,i2,i3];", which));
}

Result<void> projected_attention(Row& row, const Projected& p) {
  if (row.attr_int("do_rotary", 0) != 0) return row.unsupported("the attribute do_rotary");
  if (row.attr_int("past_present_share_buffer", 0) != 0)
    return row.unsupported("buffers that past and present share");
  std::vector<Heads> parts;
  int64_t first = 0;
  for (const int64_t width : p.widths) {
    PRUNERC_TRY(const Value* const part, columns(row, *p.all, first, width));
    const auto heads = heads_of(*part, row.attr_int("num_heads", 0));
    if (!heads) return row.unsupported("heads that do not divide the projections");
    parts.push_back(*heads);
    first += width;
  }
  AttentionPlan plan;
  plan.q = parts[0];
  PRUNERC_TRY(const Value* const past_k, past_part(row, p.past, 0));
  PRUNERC_TRY(const Value* const past_v, past_part(row, p.past, 1));
  PRUNERC_TRY(plan.k, with_past(row, parts[1], past_k, row.wants_output(1)));
  PRUNERC_TRY(plan.v, with_past(row, parts[2], past_v, row.wants_output(1)));
  if (plan.k.width != plan.q.width) return row.unsupported("queries and keys of two widths");
  if (row.attr_int("unidirectional", 0) == 1)
    plan.causal = causal_text(plan.k.length - plan.q.length);
  PRUNERC_TRY(plan.mask, score_mask(row, plan.q, plan.k.length, p.mask, p.bias));
  PRUNERC_TRY(plan.scale, scale_of(row, plan.q.width));
  PRUNERC_TRY(const std::vector<const Value*> results, attention_of(row, plan));
  row.set(0, results[0]);
  if (!row.wants_output(1)) return {};
  if (plan.v.width != plan.k.width) return row.unsupported("keys and values of two widths");
  PRUNERC_TRY(const Value* const present,
              row.call("present_pair", {{"K", plan.k.value}, {"V", plan.v.value}}, p.all->dtype,
                       {2, plan.k.batch, plan.k.heads, plan.k.length, plan.k.width},
                       "Y[i0,i1,i2,i3,i4] = if i0 == 0 then K[i1,i2,i3,i4] else V[i1,i2,i3,i4];"));
  row.set(1, present);
  return {};
}

// Of equal widths, unless the node says others.
Result<std::vector<int64_t>> widths_of(Row& row, const Value& all) {
  std::vector<int64_t> widths = row.attr_ints("qkv_hidden_sizes");
  const int64_t sum = all.shape.back();
  if (widths.empty() && sum % 3 == 0) widths.assign(3, sum / 3);
  bool fits = all.rank() == 3 && widths.size() == 3;
  int64_t left = sum;
  for (const int64_t width : widths) {
    fits = fits && width >= 1 && width <= left;
    left -= fits ? width : 0;
  }
  if (!fits || left != 0) return row.unsupported("projections of these widths");
  return widths;
}

Result<void> projecting_attention(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const weights, row.need(1));
  const Value* const bias = row.in(2);
  if (x->rank() != 3 || weights->rank() != 2 || !ir::is_float(x->dtype) ||
      weights->dtype != x->dtype)
    return row.unsupported("operands of these shapes or types");
  if (row.in(6) != nullptr) return row.unsupported("the input past_sequence_length");
  PRUNERC_TRY(const ProductText p, product_text_of(row, *x, *weights));
  std::vector<Arg> args = {{"A", x}, {"B", weights}};
  std::string value = at("acc", p.target);
  if (bias != nullptr) {
    if (bias->shape != std::vector<int64_t>{p.shape.back()} || bias->dtype != x->dtype)
      return row.unsupported("a bias of another shape or type");
    args.push_back({"c", bias});
    value += " + c[j]";
  }
  Projected projected;
  PRUNERC_TRY(projected.all,
              row.call("projections", std::move(args), x->dtype, p.shape,
                       fmt::format("let {} = {}[k] {} * {};\n  {} = {};", at("acc", p.target),
                                   sum_of(x->dtype), p.left, p.right, at("Y", p.target),
                                   rounded(x->dtype, value))));
  PRUNERC_TRY(projected.widths, widths_of(row, *projected.all));
  projected.mask = row.in(3);
  projected.past = row.in(4);
  projected.bias = row.in(5);
  return projected_attention(row, projected);
}

Result<void> quantized_attention(Row& row) {
  ToFloat o{};
  PRUNERC_TRY(o.a, row.need(0));
  PRUNERC_TRY(o.b, row.need(1));
  PRUNERC_TRY(o.bias, row.need(2));
  PRUNERC_TRY(o.a_scale, row.need(3));
  PRUNERC_TRY(o.b_scale, row.need(4));
  o.a_zero = row.in(6);
  o.b_zero = row.in(7);
  if (o.a->rank() != 3 || o.b->rank() != 2)
    return row.unsupported("operands of these shapes or types");
  Projected projected;
  PRUNERC_TRY(projected.all, integer_to_float(row, o));
  PRUNERC_TRY(projected.widths, widths_of(row, *projected.all));
  projected.mask = row.in(5);
  projected.past = row.in(8);
  return projected_attention(row, projected);
}

// --- RotaryEmbedding

Result<void> rotary_embedding(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const places, row.need(1));
  Rotation r;
  PRUNERC_TRY(r.cosines, row.need(2));
  PRUNERC_TRY(r.sines, row.need(3));
  if (row.attr_float("scale", 1) != 1) return row.unsupported("a scale");
  if (row.attr_int("is_packed_batching", 0) != 0)
    return row.unsupported("sequences of several lengths in one (is_packed_batching)");
  if (r.cosines->rank() != 2 || r.sines->shape != r.cosines->shape ||
      r.cosines->dtype != x->dtype || r.sines->dtype != x->dtype)
    return row.unsupported("tables of another shape or type");
  const int64_t said = row.attr_int("rotary_embedding_dim", 0);
  r.turned = 2 * r.cosines->shape[1];
  int64_t count = row.attr_int("num_heads", 0);
  // Without a number of heads the tables say how wide they are.
  if (count == 0 && said == 0 && x->rank() == 3 && r.turned > 0) count = x->shape[2] / r.turned;
  const auto heads = heads_of(*x, count);
  if (!heads || !ir::is_float(x->dtype)) return row.unsupported("an operand of this shape or type");
  if (r.turned < 2 || r.turned != (said != 0 ? said : heads->width) || r.turned > heads->width)
    return row.unsupported("a number of turned elements that the tables do not have");
  r.x = *heads;
  r.are_neighbours = row.attr_int("interleaved", 0) == 1;
  const bool is_offset = places->shape == std::vector<int64_t>{1};
  if (!ir::is_int(places->dtype) ||
      (!is_offset && places->shape != std::vector<int64_t>{heads->batch, heads->length}))
    return row.unsupported("positions of another shape or type");
  r.places = {{"P", places}};
  r.place =
      is_offset ? fmt::format("P[0] + i64({})", token(r.x)) : fmt::format("P[i0, {}]", token(r.x));
  PRUNERC_TRY(const Value* const y, rotated(row, r));
  row.set(0, y);
  return {};
}

constexpr RowEntry kRows[] = {{"com.microsoft.MultiHeadAttention", multi_head_attention},
                              {"com.microsoft.Attention", projecting_attention},
                              {"com.microsoft.QAttention", quantized_attention},
                              {"com.microsoft.RotaryEmbedding", rotary_embedding},
                              {"com.microsoft.GroupQueryAttention", group_query_attention}};

}  // namespace

std::span<const RowEntry> contrib_attention_rows() { return kRows; }

}  // namespace prunerc::onnx

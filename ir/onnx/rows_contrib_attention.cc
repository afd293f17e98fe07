// Attention of ONNX Runtime's own domain.
#include "ir/onnx/attention_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace prunerc::onnx {
namespace {

// Columns [first, first + width) of the last axis.
Result<const Value*> columns(Row& row, const Value& x, int64_t first, int64_t width) {
  return row.call("columns", {{"X", &x}}, x.dtype, {x.shape[0], x.shape[1], width},
                  fmt::format("Y[i0,i1,i2] = X[i0,i1,i2 + {}];", first));
}

Result<double> scale_of(const Row& row, int64_t width) {
  const double scale = row.attr_float("scale", 0);
  if (!std::isfinite(scale)) return row.unsupported("a scale that is no number");
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(width));
}

// A bias of the scores, [batch or 1, heads or 1, places, total], with more keys behind it that nobody sees.
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

// --- MultiHeadAttention

// Masked keys have a number added to their scores; of keys that are all masked each counts.
Result<std::string> padding_text(Row& row, const Value& mask, const Heads& q, int64_t total) {
  const double filter = row.attr_float("mask_filter_value", -10000);
  if (mask.dtype != ir::DType::kI32 || !std::isfinite(filter))
    return row.unsupported("a key_padding_mask of this type");
  std::string seen;
  if (mask.shape == std::vector<int64_t>{q.batch}) {
    seen = "i64(s) < i64(M[b])";
  } else if (mask.shape == std::vector<int64_t>{q.batch, total}) {
    seen = "M[b, s] > 0";
  } else if (mask.shape == std::vector<int64_t>{q.batch, q.length, total}) {
    seen = "M[b, t, s] > 0";
  } else {
    return row.unsupported("a key_padding_mask of another shape");
  }
  return fmt::format("(if {} then f32(0) else f32({}))", seen,
                     number_text(ir::DType::kF32, filter));
}

Result<Mask> mha_mask(Row& row, const Heads& q, int64_t total) {
  Mask out;
  if (const Value* const bias = row.in(5); bias != nullptr) {
    PRUNERC_TRY(out.added, score_bias(row, *bias, q, total, total));
    out.args.push_back({"B", bias});
  }
  if (const Value* const mask = row.in(4); mask != nullptr) {
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
    return row.unsupported("queries, keys and values in one operand");
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
  if (row.attr_int("unidirectional", 0) != 0) {
    if (q->length != k_now->length)
      return row.unsupported("unidirectional attention to keys of another length");
    plan.causal = causal_text(k.length - k_now->length);
  }
  PRUNERC_TRY(plan.mask, mha_mask(row, *q, k.length));
  PRUNERC_TRY(plan.scale, scale_of(row, q->width));
  PRUNERC_TRY(const std::vector<const Value*> results, attention_of(row, plan));
  row.set(0, results[0]);
  row.set(1, k.value);
  row.set(2, v.value);
  return {};
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
  r.are_neighbours = row.attr_int("interleaved", 0) != 0;
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

// --- GroupQueryAttention

/// Which keys there are, by the batch b: `length` new ones behind those of earlier calls.
struct Cache {
  const Value *lengths = nullptr, *past_k = nullptr, *past_v = nullptr;
  int64_t length = 0;  ///< of the queries, too
  int64_t total = 0;   ///< of the longest sequence
  int64_t room = 0;    ///< of the present
  bool is_first = false,
       is_full = false;  ///< no earlier keys; all sequences are known to be as long as the longest

  /// How many earlier ones. Only where it is not the first call.
  std::string before(std::string_view batch) const {
    return length == 1 ? fmt::format("i64(N[{}])", batch)
                       : fmt::format("(i64(N[{}]) - {})", batch, length - 1);
  }
};

Result<void> check_gqa(const Row& row) {
  const std::pair<std::size_t, std::string_view> inputs[] = {{12, "k_scale"},
                                                             {13, "v_scale"},
                                                             {14, "q_norm_weight"},
                                                             {15, "k_norm_weight"},
                                                             {16, "query_seqlens"}};
  for (const auto& [i, name] : inputs) {
    if (row.in(i) != nullptr) return row.unsupported(fmt::format("the input {}", name));
  }
  for (const std::string_view name : {"kv_cache_bit_width", "sliding_window_cache", "qk_output"}) {
    if (row.attr_int(name, 0) != 0) return row.unsupported(fmt::format("the attribute {}", name));
  }
  for (const std::string_view name : {"k_quant_type", "v_quant_type"}) {
    if (row.attr_string(name, "NONE") != "NONE")
      return row.unsupported(fmt::format("the attribute {}", name));
  }
  if (row.wants_output(3)) return row.unsupported("the scores as an output (output_qk)");
  return {};
}

bool are_all(const Value& lengths, int64_t last) {
  if (!lengths.known) return false;
  for (int64_t i = 0; i < lengths.num_elements(); ++i) {
    if (lengths.int_element(i) != last) return false;
  }
  return true;
}

Result<Cache> cache_of(Row& row, const Heads& k) {
  Cache c;
  c.past_k = row.in(3);
  c.past_v = row.in(4);
  c.length = k.length;
  PRUNERC_TRY(c.lengths, row.need(5));
  PRUNERC_TRY(const std::vector<int64_t> total, row.known_ints(6));
  if ((c.past_k == nullptr) != (c.past_v == nullptr))
    return row.unsupported("a past of keys or values alone");
  if (c.lengths->shape != std::vector<int64_t>{k.batch} || c.lengths->dtype != ir::DType::kI32)
    return row.unsupported("seqlens_k of another shape or type");
  int64_t earlier = 0;
  if (c.past_k != nullptr) {
    for (const Value* past : {c.past_k, c.past_v}) {
      if (past->rank() != 4 || past->dtype != k.value->dtype || past->shape[0] != k.batch ||
          past->shape[1] != k.heads || past->shape[3] != k.width ||
          past->shape[2] != c.past_k->shape[2])
        return row.unsupported("a past of another shape or type");
    }
    earlier = c.past_k->shape[2];
  }
  if (total.size() != 1 || total[0] < c.length ||
      (total[0] > earlier && total[0] != earlier + c.length))
    return row.unsupported("a total_sequence_length that does not fit past and new keys");
  c.total = total[0];
  c.room = std::max(earlier, c.total);
  c.is_first = c.total == c.length;
  c.is_full = c.is_first && are_all(*c.lengths, c.total - 1);
  if (!c.is_first && c.length > 1 && k.batch > 1)
    return row.unsupported("several new keys of several sequences behind a past");
  return c;
}

// Earlier and new keys (or values) in the room that there is; behind them zeros.
Result<Heads> present_of(Row& row, const Heads& now, const Value* past, const Cache& c) {
  if (c.is_first && c.room == c.length) return with_past(row, now, nullptr, true);
  std::vector<Arg> args = {{"X", now.value}};
  std::string body;
  if (c.is_first) {
    body = fmt::format("if s < {} then {} else {}", c.length, now.read("X", "h", "s + 0", "e"),
                       number_text(now.value->dtype, 0));
  } else {
    args.push_back({"P", past});
    args.push_back({"N", c.lengths});
    body =
        fmt::format("if i64(s) < {0} then (P[b, h, s + 0, e] or 0) else ({1} or 0)", c.before("b"),
                    now.read("X", "h", fmt::format("i64(s) - {}", c.before("b")), "e"));
  }
  PRUNERC_TRY(const Value* const all, row.call("present", std::move(args), now.value->dtype,
                                               {now.batch, now.heads, c.room, now.width},
                                               fmt::format("Y[b, h, s, e] = {};", body)));
  return Heads{all, false, now.batch, now.heads, c.room, now.width};
}

// Queries and new keys turn by their places.
Result<void> rotate(Row& row, const Cache& c, Heads& q, Heads& k) {
  if (row.attr_int("do_rotary", 0) == 0) return {};
  Rotation r;
  PRUNERC_TRY(r.cosines, row.need(7));
  PRUNERC_TRY(r.sines, row.need(8));
  if (r.cosines->rank() != 2 || r.sines->shape != r.cosines->shape ||
      r.cosines->dtype != q.value->dtype || r.sines->dtype != q.value->dtype)
    return row.unsupported("tables of another shape or type");
  r.turned = 2 * r.cosines->shape[1];
  if (r.turned < 2 || r.turned > q.width || r.cosines->shape[0] < c.total)
    return row.unsupported("tables of fewer or more elements than turn");
  r.are_neighbours = row.attr_int("rotary_interleaved", 0) != 0;
  const Value* const places = row.in(9);
  if (places != nullptr) {
    if (!ir::is_int(places->dtype) || places->shape != std::vector<int64_t>{q.batch, q.length})
      return row.unsupported("position_ids of another shape or type");
    // In the first call the places follow from the first one.
    r.places = {{"P", places}};
    r.place = c.is_first ? "P[0, 0] + i64(i1)" : "P[i0, i1]";
  } else if (c.is_first) {
    r.place = "i1 + 0";
  } else {
    r.places = {{"N", c.lengths}};
    r.place = fmt::format("{} + i64(i1)", c.before("i0"));
  }
  for (Heads* const x : {&q, &k}) {
    r.x = *x;
    PRUNERC_TRY(x->value, rotated(row, r));
  }
  return {};
}

// What a query sees.
Result<void> see(Row& row, const Cache& c, AttentionPlan& plan) {
  const bool is_causal = row.attr_int("causal", 1) != 0;
  const int64_t window = row.attr_int("local_window_size", -1);
  if (window == 0 || window < -1 || window > (int64_t{1} << 31) || (window > 0 && !is_causal))
    return row.unsupported("a local_window_size like this");
  const std::string here = c.is_first ? "t" : fmt::format("i64(t) + {}", c.before("b")),
                    key = c.is_first ? "s" : "i64(s)";
  if (is_causal) plan.causal = fmt::format("{} <= {}", key, here);
  if (window > 0) plan.causal += fmt::format(" && {} + {} > {}", key, window, here);
  // Rows behind the end of a sequence see what the last one sees.
  if (!c.is_full && (c.is_first || !is_causal)) plan.mask.hides = "i64(s) <= i64(N[b])";
  if (!c.is_full) plan.mask.args.push_back({"N", c.lengths});
  if (const Value* const bias = row.in(10); bias != nullptr) {
    PRUNERC_TRY(plan.mask.added, score_bias(row, *bias, plan.q, c.total, plan.k.length));
    plan.mask.args.push_back({"B", bias});
  }
  if (const Value* const sink = row.in(11); sink != nullptr) {
    if (sink->shape != std::vector<int64_t>{plan.q.heads} || sink->dtype != plan.q.value->dtype)
      return row.unsupported("a head_sink of another shape or type");
    plan.mask.args.push_back({"Z", sink});
    plan.sink = ir::byte_size(sink->dtype) < 4 ? "f32(Z[h])" : "Z[h]";
  } else if (row.attr_int("smooth_softmax", 0) != 0) {
    plan.sink = "f32(0)";
  }
  return {};
}

// Three operands, or one with all three side by side.
Result<std::vector<Heads>> split_operands(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  const int64_t heads = row.attr_int("num_heads", 0), kv_heads = row.attr_int("kv_num_heads", 0);
  constexpr int64_t kMost = 1 << 20;
  if (x->rank() != 3 || !ir::is_float(x->dtype) || heads < 1 || kv_heads < 1 || heads > kMost ||
      kv_heads > kMost || heads % kv_heads != 0)
    return row.unsupported("queries of this shape or type, or these numbers of heads");
  const Value *q = x, *k = row.in(1), *v = row.in(2);
  if ((k == nullptr) != (v == nullptr)) return row.unsupported("keys or values alone");
  if (k == nullptr) {
    const int64_t all = heads + 2 * kv_heads, width = x->shape[2] / all;
    if (width < 1 || x->shape[2] % all != 0)
      return row.unsupported("queries, keys and values that do not fit one operand");
    PRUNERC_TRY(q, columns(row, *x, 0, heads * width));
    PRUNERC_TRY(k, columns(row, *x, heads * width, kv_heads * width));
    PRUNERC_TRY(v, columns(row, *x, (heads + kv_heads) * width, kv_heads * width));
  }
  std::vector<Heads> out;
  for (const auto& [value, count] :
       {std::pair(q, heads), std::pair(k, kv_heads), std::pair(v, kv_heads)}) {
    const auto part = heads_of(*value, count);
    if (!part || value->rank() != 3 || value->dtype != x->dtype)
      return row.unsupported("operands of these shapes or types");
    out.push_back(*part);
    if (part->batch != out[0].batch || part->length != out[0].length || part->width != out[0].width)
      return row.unsupported("operands that do not fit together");
  }
  return out;
}

Result<void> group_query_attention(Row& row) {
  PRUNERC_TRY_VOID(check_gqa(row));
  PRUNERC_TRY(std::vector<Heads> parts, split_operands(row));
  PRUNERC_TRY(const Cache c, cache_of(row, parts[1]));
  AttentionPlan plan;
  PRUNERC_TRY_VOID(rotate(row, c, parts[0], parts[1]));
  plan.q = parts[0];
  PRUNERC_TRY(const Heads k, present_of(row, parts[1], c.past_k, c));
  PRUNERC_TRY(const Heads v, present_of(row, parts[2], c.past_v, c));
  row.set(1, k.value);
  row.set(2, v.value);
  // The first call sees nothing but what is new.
  plan.k = c.is_first ? parts[1] : k;
  plan.v = c.is_first ? parts[2] : v;
  plan.cap = row.attr_float("softcap", 0);
  if (!std::isfinite(plan.cap) || plan.cap < 0) return row.unsupported("a softcap like this");
  PRUNERC_TRY(plan.scale, scale_of(row, plan.q.width));
  PRUNERC_TRY_VOID(see(row, c, plan));
  PRUNERC_TRY(const std::vector<const Value*> results, attention_of(row, plan));
  row.set(0, results[0]);
  return {};
}

constexpr RowEntry kRows[] = {{"com.microsoft.MultiHeadAttention", multi_head_attention},
                              {"com.microsoft.RotaryEmbedding", rotary_embedding},
                              {"com.microsoft.GroupQueryAttention", group_query_attention}};

}  // namespace

std::span<const RowEntry> contrib_attention_rows() { return kRows; }

}  // namespace prunerc::onnx

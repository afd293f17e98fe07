// Attention of groups of heads to common keys, with a cache, of ONNX Runtime's own domain.
#include "ir/onnx/contrib/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace prunerc::onnx {
namespace {

/// Which keys there are, by the batch b: `length` new ones behind those of earlier calls.
struct Cache {
  const Value *lengths = nullptr, *past_k = nullptr, *past_v = nullptr;
  int64_t length = 0;     ///< of the queries, too
  int64_t total = 0;      ///< of the longest sequence
  int64_t room = 0;       ///< of the present
  bool is_first = false;  ///< there are no earlier ones
  bool is_full = false;   ///< and all sequences are known to be as long as the longest

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
  if (row.attr_int("do_rotary", 0) != 1) return {};
  Rotation r;
  PRUNERC_TRY(r.cosines, row.need(7));
  PRUNERC_TRY(r.sines, row.need(8));
  if (r.cosines->rank() != 2 || r.sines->shape != r.cosines->shape ||
      r.cosines->dtype != q.value->dtype || r.sines->dtype != q.value->dtype)
    return row.unsupported("tables of another shape or type");
  r.turned = 2 * r.cosines->shape[1];
  if (r.turned < 2 || r.turned > q.width || r.cosines->shape[0] < c.total)
    return row.unsupported("tables of fewer or more elements than turn");
  r.are_neighbours = row.attr_int("rotary_interleaved", 0) == 1;
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
  if (window == 0 || window < -1 || window > (int64_t{1} << 31))
    return row.unsupported(fmt::format("a local_window_size of {}", window));
  if (window > 0 && !is_causal) return row.unsupported("a local_window_size without causal");
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
  } else if (row.attr_int("smooth_softmax", -1) == 1) {
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

}  // namespace

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

}  // namespace prunerc::onnx

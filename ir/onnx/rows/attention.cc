// Attention and what is done to its operands before.
#include "ir/onnx/text/attention.h"

#include <fmt/format.h>

#include <cmath>

namespace prunerc::onnx {
namespace {

Result<Mask> mask_of(Row& row, const Heads& q, int64_t total) {
  Mask out;
  if (const Value* const mask = row.in(3); mask != nullptr) {
    const std::vector<int64_t> all = {q.batch, q.heads, q.length, total};
    const std::vector<std::string> names = {"b", "h", "t", "s"};
    if (mask->rank() < 1 || mask->rank() > 4 || mask->num_elements() == 0)
      return row.unsupported("a mask of this shape");
    const std::size_t ahead = 4 - mask->shape.size();
    std::vector<std::string> reads;
    for (std::size_t i = 0; i < mask->shape.size(); ++i) {
      const int64_t extent = mask->shape[i], wanted = all[ahead + i];
      const bool is_short = ahead + i == 3 && extent < wanted;
      if (extent != wanted && extent != 1 && !is_short)
        return row.unsupported("a mask of another shape");
      reads.push_back(is_short ? "s + 0" : extent == 1 ? "0" : names[ahead + i]);
    }
    out.args.push_back({"M", mask});
    const bool is_short = mask->shape.back() < total, is_bool = ir::is_bool(mask->dtype);
    if (!is_bool && !ir::is_float(mask->dtype)) return row.unsupported("a mask of whole numbers");
    std::string read = at("M", reads);
    if (is_short) read = fmt::format("({} or {})", read, is_bool ? "false" : "(-inf)");
    if (is_bool) {
      out.hides = read;
    } else {
      out.added = ir::byte_size(mask->dtype) < 4 ? fmt::format("f32({})", read) : read;
    }
  }
  if (const Value* const lengths = row.in(6); lengths != nullptr) {
    if (lengths->shape != std::vector<int64_t>{q.batch} || !ir::is_int(lengths->dtype))
      return row.unsupported("lengths of another shape");
    out.args.push_back({"N", lengths});
    out.hides += (out.hides.empty() ? "" : " && ") + std::string("i64(s) < i64(N[b])");
  }
  return out;
}

Result<void> attention(Row& row) {
  PRUNERC_TRY(const Value* const q_in, row.need(0));
  PRUNERC_TRY(const Value* const k_in, row.need(1));
  PRUNERC_TRY(const Value* const v_in, row.need(2));
  const auto q = heads_of(*q_in, row.attr_int("q_num_heads", 0));
  const auto k_now = heads_of(*k_in, row.attr_int("kv_num_heads", 0));
  const auto v_now = heads_of(*v_in, row.attr_int("kv_num_heads", 0));
  if (!q || !k_now || !v_now || !ir::is_float(q_in->dtype) || k_in->dtype != q_in->dtype ||
      v_in->dtype != q_in->dtype)
    return row.unsupported("operands of these shapes or types");
  if ((row.in(4) == nullptr) != (row.in(5) == nullptr))
    return row.unsupported("a past of keys or values alone");
  PRUNERC_TRY(const Heads k, with_past(row, *k_now, row.in(4), row.wants_output(1)));
  PRUNERC_TRY(const Heads v, with_past(row, *v_now, row.in(5), row.wants_output(2)));
  row.set(1, k.value);
  row.set(2, v.value);
  if (k.batch != q->batch || v.batch != q->batch || k.width != q->width || v.length != k.length ||
      v.heads != k.heads || q->heads % k.heads != 0)
    return row.unsupported("operands that do not fit together");
  AttentionPlan plan;
  plan.q = *q;
  plan.k = k;
  plan.v = v;
  const int64_t wanted = row.wants_output(3) ? row.attr_int("qk_matmul_output_mode", 0) : -1;
  const double cap = row.attr_float("softcap", 0);
  const double scale = row.attr_float("scale", 1 / std::sqrt(static_cast<double>(q->width)));
  // Operator sets 23 and 24 were published with two meanings of this.
  if (row.in(3) != nullptr && cap > 0)
    return row.unsupported("a mask and softcap: releases of ONNX differ on which comes first");
  if (wanted == 1 && cap > 0) return row.unsupported("scores after softcap alone");
  if (wanted > 3 || (row.wants_output(3) && wanted < 0) || !std::isfinite(scale) ||
      !std::isfinite(cap))
    return row.unsupported("attributes like these");
  PRUNERC_TRY(plan.mask, mask_of(row, *q, k.length));
  if (row.attr_int("is_causal", 0) != 0) {
    // Keys that lengths count are a cache that holds those of the queries last.
    plan.causal = row.in(6) != nullptr && row.in(4) == nullptr
                      ? fmt::format("i64(s) - i64(t) <= i64(N[b]) - {}", q->length)
                      : causal_text(k.length - k_now->length);
  }
  plan.scale = scale;
  plan.cap = cap;
  plan.scores = wanted;
  PRUNERC_TRY(const std::vector<const Value*> results, attention_of(row, plan));
  row.set(0, results[0]);
  if (wanted >= 0) row.set(3, results[1]);
  return {};
}

Result<void> rotary_embedding(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const cosines, row.need(1));
  PRUNERC_TRY(const Value* const sines, row.need(2));
  const auto heads = heads_of(*x, row.attr_int("num_heads", 0));
  if (!heads || !ir::is_float(x->dtype)) return row.unsupported("an operand of this shape or type");
  const int64_t width = heads->width;
  int64_t turned = row.attr_int("rotary_embedding_dim", 0);
  if (turned == 0) turned = width;
  if (turned < 2 || turned % 2 != 0 || turned > width)
    return row.unsupported("a number of turned elements like this");
  const int64_t half = turned / 2;
  const Value* const places = row.in(3);
  std::vector<int64_t> wanted = {heads->batch, heads->length, half};
  if (places != nullptr) {
    if (cosines->rank() != 2 ||
        places->shape != std::vector<int64_t>{heads->batch, heads->length} ||
        !ir::is_int(places->dtype))
      return row.unsupported("positions of another shape");
    wanted = {cosines->shape[0], half};
  }
  if (cosines->shape != wanted || sines->shape != wanted || cosines->dtype != x->dtype ||
      sines->dtype != x->dtype)
    return row.unsupported("tables of another shape or type");
  Rotation r{*heads, cosines, sines, {}, {}, turned, row.attr_int("interleaved", 0) != 0};
  if (places != nullptr) {
    r.places = {{"P", places}};
    r.place = fmt::format("P[i0, {}]", token(*heads));
  }
  PRUNERC_TRY(const Value* const y, rotated(row, r));
  row.set(0, y);
  return {};
}

constexpr RowEntry kRows[] = {{"Attention", attention}, {"RotaryEmbedding", rotary_embedding}};

}  // namespace

std::span<const RowEntry> attention_rows() { return kRows; }

}  // namespace prunerc::onnx

// Attention: scores, softmax and the weighted sum are one operator.
#include "ir/onnx/row.h"

#include <fmt/format.h>

#include <cmath>

namespace prunerc::onnx {
namespace {

/// Q, K or V: heads are an axis of their own, or lie side by side in the last one.
struct Heads {
  const Value* value = nullptr;
  bool is_packed = false;
  int64_t batch = 0, heads = 0, length = 0, width = 0;

  std::string read(std::string_view name, const std::string& head, const std::string& place,
                   const std::string& element) const {
    if (!is_packed) return fmt::format("{}[b, {}, {}, {}]", name, head, place, element);
    const std::string last = heads == 1   ? element
                             : width == 1 ? head
                                          : fmt::format("({})*{} + {}", head, width, element);
    return fmt::format("{}[b, {}, {}]", name, place, last);
  }
};

std::optional<Heads> heads_of(const Value& x, int64_t heads) {
  Heads out;
  out.value = &x;
  out.is_packed = x.rank() == 3;
  if (x.rank() == 4) {
    out = {&x, false, x.shape[0], x.shape[1], x.shape[2], x.shape[3]};
  } else if (x.rank() == 3 && heads >= 1 && x.shape[2] % heads == 0) {
    out = {&x, true, x.shape[0], heads, x.shape[1], x.shape[2] / heads};
  } else {
    return std::nullopt;
  }
  return x.num_elements() == 0 ? std::nullopt : std::optional<Heads>(out);
}

/// Keys or values with those of earlier calls in front, as [batch, head, place, element].
Result<Heads> with_past(Row& row, const Heads& now, const Value* past, bool is_wanted) {
  if (past == nullptr && !(is_wanted && now.is_packed)) return now;
  int64_t before = 0;
  std::vector<Arg> args = {{"X", now.value}};
  std::string body;
  if (past != nullptr && past->num_elements() > 0) {
    if (past->rank() != 4 || past->dtype != now.value->dtype || past->shape[0] != now.batch ||
        past->shape[1] != now.heads || past->shape[3] != now.width)
      return row.unsupported("a past of another shape or type");
    before = past->shape[2];
    args.push_back({"P", past});
    body = fmt::format("if s < {} then P[b, h, s + 0, e] else ", before);
  }
  const std::vector<int64_t> shape = {now.batch, now.heads, now.length + before, now.width};
  body += now.read("X", "h", before > 0 ? fmt::format("s - {}", before) : "s", "e");
  PRUNERC_TRY(const Value* const all,
              row.call(before > 0 ? "present" : "heads", std::move(args), now.value->dtype, shape,
                       fmt::format("Y[b, h, s, e] = {};", body)));
  return Heads{all, false, now.batch, now.heads, now.length + before, now.width};
}

/// What is added to the scores, or hides them.
struct Mask {
  std::vector<Arg> args;
  std::string hides;  ///< a condition: what is seen; empty: all
  std::string added;  ///< empty: nothing
};

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

/// How far a query sees. Empty: everything.
std::string causal_condition(Row& row, int64_t before) {
  if (row.attr_int("is_causal", 0) == 0) return {};
  return before == 0 ? "s <= t" : fmt::format("s <= t + {}", before);
}

struct Text {
  std::string lets;
  std::string scores;  ///< by name: what the softmax reads
  std::string qk;      ///< what qk_matmul_output asks for
};

// One `let` for each step that there is.
Text score_text(const std::string& product, double scale, const Mask& mask,
                const std::string& causal, double cap, int64_t wanted) {
  Text out;
  const auto step = [&](std::string_view name, const std::string& value) {
    out.lets += fmt::format("let {}[b, h, t, s] = {};\n  ", name, value);
    out.scores = fmt::format("{}[b, h, t, s]", name);
  };
  step("a", fmt::format("({}) * {}", product, number_text(ir::DType::kF32, scale)));
  if (wanted == 0) out.qk = out.scores;
  // Before the mask, or what it hides would have a finite score.
  if (cap > 0) {
    const std::string number = number_text(ir::DType::kF32, cap);
    step("d", fmt::format("{0} * tanh({1} / {0})", number, out.scores));
  }
  std::string seen = mask.hides;
  if (!causal.empty()) seen += (seen.empty() ? "" : " && ") + causal;
  const std::string added =
      mask.added.empty() ? out.scores : fmt::format("{} + {}", out.scores, mask.added);
  if (!seen.empty()) {
    step("c", fmt::format("if {} then {} else -inf", seen, added));
  } else if (!mask.added.empty()) {
    step("c", added);
  }
  if (wanted == 1 || wanted == 2) out.qk = out.scores;
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
  const bool is_narrow = ir::byte_size(q_in->dtype) < 4;
  const bool wants_qk = row.wants_output(3);
  const int64_t wanted = wants_qk ? row.attr_int("qk_matmul_output_mode", 0) : -1;
  const double cap = row.attr_float("softcap", 0);
  const double scale = row.attr_float("scale", 1 / std::sqrt(static_cast<double>(q->width)));
  // Operator sets 23 and 24 were published with two meanings of this.
  if (row.in(3) != nullptr && cap > 0)
    return row.unsupported("a mask and softcap: releases of ONNX differ on which comes first");
  if (wanted == 1 && cap > 0) return row.unsupported("scores after softcap alone");
  if (wanted > 3 || !std::isfinite(scale) || !std::isfinite(cap))
    return row.unsupported("attributes like these");
  const int64_t before = k.length - k_now->length;
  PRUNERC_TRY(Mask mask, mask_of(row, *q, k.length));
  std::string causal = causal_condition(row, before);
  const int64_t group = q->heads / k.heads;
  const std::string head = k.heads == 1 ? "0" : group == 1 ? "h" : fmt::format("h/{}", group);
  const std::string sum = is_narrow ? "sum:f32" : "sum";
  const std::string product = fmt::format("{}[e in 0..{}] {} * {}", sum, q->width,
                                          q->read("Q", "h", "t", "e"), k.read("K", head, "s", "e"));
  // A triangle alone is a condition of the reductions, as the schedules like it.
  const bool is_triangle = !causal.empty() && mask.args.empty() && wanted <= 0 && cap == 0;
  const Text text = score_text(product, scale, mask, is_triangle ? "" : causal, cap, wanted);
  std::string body = text.lets;
  // Ranges stand where no subscript says them.
  const std::string ranges = fmt::format("b in 0..{}, h in 0..{}, t in 0..{}, s in 0..{}", q->batch,
                                         q->heads, q->length, k.length);
  body.replace(body.find("b, h, t, s"), 10, ranges);
  const std::string exponent = fmt::format("exp({} - m[b, h, t])", text.scores);
  const std::string max_of = is_triangle ? fmt::format("max[s | {}] {}", causal, text.scores)
                                         : fmt::format("max[s] {}", text.scores);
  // A query that sees nothing gives zeros.
  const bool may_be_blind = !mask.args.empty();
  const std::string sees = is_triangle ? causal : may_be_blind ? "m[b, h, t] > -inf" : "";
  const std::string p =
      sees.empty() ? exponent : fmt::format("if {} then {} else 0", sees, exponent);
  body += fmt::format("let m[b, h, t] = {};\n  let p[b, h, t, s] = {};\n  ", max_of, p);
  const std::string l = may_be_blind ? "max(l[b, h, t], 1)" : "l[b, h, t]";
  body += fmt::format(
      "let l[b, h, t] = sum[s] p[b, h, t, s];\n  "
      "let o[b, h, t, e in 0..{}] = {}[s] p[b, h, t, s] * {};\n  ",
      v.width, sum, v.read("V", head, "s", "e"));
  const auto narrowed = [&](const std::string& value) {
    return is_narrow ? fmt::format("{}({})", ir::to_string(q_in->dtype), value) : value;
  };
  body += fmt::format("Y[{}] = {};", q->is_packed ? "b, t, h, e" : "b, h, t, e",
                      narrowed("o[b, h, t, e] / " + l));
  std::vector<Arg> args = {{"Q", q_in}, {"K", k.value}, {"V", v.value}};
  args.insert(args.end(), mask.args.begin(), mask.args.end());
  std::vector<Out> outs = {{"Y", q_in->dtype, {q->batch, q->heads, q->length, v.width}}};
  if (q->is_packed) std::swap(outs[0].shape[1], outs[0].shape[2]);
  if (wants_qk) {
    outs.push_back({"S", q_in->dtype, {q->batch, q->heads, q->length, k.length}});
    body += fmt::format("\n  S[b, h, t, s] = {};",
                        narrowed(wanted == 3 ? "p[b, h, t, s] / " + l : text.qk));
  }
  PRUNERC_TRY(const std::vector<const Value*> results,
              row.call("attention", std::move(args), outs, body));
  const Value* y = results[0];
  if (q->is_packed) {
    PRUNERC_TRY(
        y, row.call("join_heads", {{"X", y}}, y->dtype, {q->batch, q->length, q->heads * v.width},
                    fmt::format("Y[b, t, i] = X[b, t, i/{0}, i%{0}];", v.width)));
  }
  row.set(0, y);
  if (wants_qk) row.set(3, results[1]);
  return {};
}

// Pairs of elements turn by an angle that follows from the place.
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
  std::vector<Arg> args = {{"X", x}, {"C", cosines}, {"S", sines}};
  if (places != nullptr) args.push_back({"P", places});
  const bool is_narrow = ir::byte_size(x->dtype) < 4;
  const auto wide = [&](const std::string& text) {
    return is_narrow ? fmt::format("f32({})", text) : text;
  };
  const bool pairs = row.attr_int("interleaved", 0) != 0;
  const std::string token = heads->is_packed ? "i1" : "i2";
  const std::string last = heads->is_packed ? "i2" : "i3";
  const std::string element =
      heads->is_packed && heads->heads > 1 ? fmt::format("({}%{})", last, width) : last;
  const std::string pair =
      pairs ? fmt::format("{}/2%{}", element, half) : fmt::format("{}%{}", element, half);
  const auto angle = [&](std::string_view name) {
    return wide(places != nullptr ? fmt::format("({}[P[i0, {}], {}] or 0)", name, token, pair)
                                  : fmt::format("{}[i0, {}, {}]", name, token, pair));
  };
  const auto partner = [&](const std::string& subscript) {
    return wide(heads->is_packed ? fmt::format("(X[i0, i1, {}] or 0)", subscript)
                                 : fmt::format("(X[i0, i1, i2, {}] or 0)", subscript));
  };
  const std::string own = wide(heads->is_packed ? "X[i0, i1, i2]" : "X[i0, i1, i2, i3]");
  const std::string step = pairs ? "1" : std::to_string(half);
  const std::string is_first =
      pairs ? fmt::format("{}%2 == 0", element) : fmt::format("{} < {}", element, half);
  const std::string first =
      fmt::format("{} * {} - {} * {}", angle("C"), own, angle("S"), partner(last + " + " + step));
  const std::string second =
      fmt::format("{} * {} + {} * {}", angle("C"), own, angle("S"), partner(last + " - " + step));
  std::string body = fmt::format("if {} then {} else {}", is_first, first, second);
  if (turned < width) body = fmt::format("if {} >= {} then {} else {}", element, turned, own, body);
  if (is_narrow) body = fmt::format("{}({})", ir::to_string(x->dtype), body);
  PRUNERC_TRY(const Value* const y,
              row.call("rotary_embedding", std::move(args), x->dtype, x->shape,
                       fmt::format("{} = {};", at("Y", index_list(x->rank())), body)));
  row.set(0, y);
  return {};
}

constexpr RowEntry kRows[] = {{"Attention", attention}, {"RotaryEmbedding", rotary_embedding}};

}  // namespace

std::span<const RowEntry> attention_rows() { return kRows; }

}  // namespace prunerc::onnx

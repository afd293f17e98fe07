#include "ir/onnx/text/attention.h"

#include <fmt/format.h>

namespace prunerc::onnx {

std::string Heads::read(std::string_view name, const std::string& head, const std::string& place,
                        const std::string& element) const {
  if (!is_packed) return fmt::format("{}[b, {}, {}, {}]", name, head, place, element);
  const std::string last = heads == 1   ? element
                           : width == 1 ? head
                                        : fmt::format("({})*{} + {}", head, width, element);
  return fmt::format("{}[b, {}, {}]", name, place, last);
}

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

namespace {

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

// How the softmax goes over the scores, and what weighs the values.
std::string softmax_text(const AttentionPlan& plan, const Text& text,
                         const std::string& condition) {
  const std::string max_of = condition.empty()
                                 ? fmt::format("max[s] {}", text.scores)
                                 : fmt::format("max[s | {}] {}", condition, text.scores);
  const std::string exponent = fmt::format("exp({} - m[b, h, t])", text.scores);
  // A query that sees nothing gives zeros.
  const std::string sees = !condition.empty()        ? condition
                           : !plan.mask.args.empty() ? "m[b, h, t] > -inf"
                                                     : "";
  return fmt::format(
      "let m[b, h, t] = {};\n  let p[b, h, t, s] = {};\n  let l[b, h, t] = sum[s] p[b, h, t, "
      "s];\n  ",
      plan.sink.empty() ? max_of : fmt::format("max({}, {})", max_of, plan.sink),
      sees.empty() ? exponent : fmt::format("if {} then {} else 0", sees, exponent));
}

// What the weights are divided by. The largest is 1, if there is any.
std::string sum_text(const AttentionPlan& plan) {
  std::string sum = "l[b, h, t]";
  if (!plan.sink.empty()) sum += fmt::format(" + exp({} - m[b, h, t])", plan.sink);
  if (!plan.mask.args.empty()) return fmt::format("max({}, 1)", sum);
  return plan.sink.empty() ? sum : fmt::format("({})", sum);
}

}  // namespace

std::string causal_text(int64_t before) {
  return before == 0 ? "s <= t" : fmt::format("s <= t + {}", before);
}

Result<std::vector<const Value*>> attention_of(Row& row, const AttentionPlan& plan) {
  const Heads &q = plan.q, &k = plan.k, &v = plan.v;
  const ir::DType dtype = q.value->dtype;
  const bool is_narrow = ir::byte_size(dtype) < 4;
  const int64_t group = q.heads / k.heads;
  const std::string head = k.heads == 1 ? "0" : group == 1 ? "h" : fmt::format("h/{}", group);
  const std::string sum = is_narrow ? "sum:f32" : "sum";
  const std::string product = fmt::format("{}[e in 0..{}] {} * {}", sum, q.width,
                                          q.read("Q", "h", "t", "e"), k.read("K", head, "s", "e"));
  // A triangle alone is a condition of the reductions, as the schedules like it.
  const bool is_triangle =
      !plan.causal.empty() && plan.mask.args.empty() && plan.scores <= 0 && plan.cap == 0;
  const Text text = score_text(product, plan.scale, plan.mask, is_triangle ? "" : plan.causal,
                               plan.cap, plan.scores);
  std::string body = text.lets;
  // Ranges stand where no subscript says them.
  const std::string ranges = fmt::format("b in 0..{}, h in 0..{}, t in 0..{}, s in 0..{}", q.batch,
                                         q.heads, q.length, k.length);
  body.replace(body.find("b, h, t, s"), 10, ranges);
  body += softmax_text(plan, text, is_triangle ? plan.causal : "");
  const std::string l = sum_text(plan);
  body += fmt::format("let o[b, h, t, e in 0..{}] = {}[s] p[b, h, t, s] * {};\n  ", v.width, sum,
                      v.read("V", head, "s", "e"));
  const auto narrowed = [&](const std::string& value) {
    return is_narrow ? fmt::format("{}({})", ir::to_string(dtype), value) : value;
  };
  body += fmt::format("Y[{}] = {};", q.is_packed ? "b, t, h, e" : "b, h, t, e",
                      narrowed("o[b, h, t, e] / " + l));
  std::vector<Arg> args = {{"Q", q.value}, {"K", k.value}, {"V", v.value}};
  args.insert(args.end(), plan.mask.args.begin(), plan.mask.args.end());
  std::vector<Out> outs = {{"Y", dtype, {q.batch, q.heads, q.length, v.width}}};
  if (q.is_packed) std::swap(outs[0].shape[1], outs[0].shape[2]);
  if (plan.scores >= 0) {
    outs.push_back({"S", dtype, {q.batch, q.heads, q.length, k.length}});
    body += fmt::format("\n  S[b, h, t, s] = {};",
                        narrowed(plan.scores == 3 ? "p[b, h, t, s] / " + l : text.qk));
  }
  PRUNERC_TRY(std::vector<const Value*> results,
              row.call("attention", std::move(args), outs, body));
  if (q.is_packed) {
    PRUNERC_TRY(results[0], row.call("join_heads", {{"X", results[0]}}, dtype,
                                     {q.batch, q.length, q.heads * v.width},
                                     fmt::format("Y[b, t, i] = X[b, t, i/{0}, i%{0}];", v.width)));
  }
  return results;
}

std::string token(const Heads& x) { return x.is_packed ? "i1" : "i2"; }

Result<const Value*> rotated(Row& row, const Rotation& r) {
  const Heads& heads = r.x;
  const Value* const x = heads.value;
  const int64_t width = heads.width, half = r.turned / 2;
  std::vector<Arg> args = {{"X", x}, {"C", r.cosines}, {"S", r.sines}};
  args.insert(args.end(), r.places.begin(), r.places.end());
  const bool is_narrow = ir::byte_size(x->dtype) < 4;
  const auto wide = [&](const std::string& text) {
    return is_narrow ? fmt::format("f32({})", text) : text;
  };
  const bool pairs = r.are_neighbours;
  const std::string last = heads.is_packed ? "i2" : "i3";
  const std::string element =
      heads.is_packed && heads.heads > 1 ? fmt::format("({}%{})", last, width) : last;
  const std::string pair =
      pairs ? fmt::format("{}/2%{}", element, half) : fmt::format("{}%{}", element, half);
  const auto angle = [&](std::string_view name) {
    return wide(r.place.empty() ? fmt::format("{}[i0, {}, {}]", name, token(heads), pair)
                                : fmt::format("({}[{}, {}] or 0)", name, r.place, pair));
  };
  const auto partner = [&](const std::string& subscript) {
    return wide(heads.is_packed ? fmt::format("(X[i0, i1, {}] or 0)", subscript)
                                : fmt::format("(X[i0, i1, i2, {}] or 0)", subscript));
  };
  const std::string own = wide(heads.is_packed ? "X[i0, i1, i2]" : "X[i0, i1, i2, i3]");
  const std::string step = pairs ? "1" : std::to_string(half);
  const std::string is_first =
      pairs ? fmt::format("{}%2 == 0", element) : fmt::format("{} < {}", element, half);
  const std::string first =
      fmt::format("{} * {} - {} * {}", angle("C"), own, angle("S"), partner(last + " + " + step));
  const std::string second =
      fmt::format("{} * {} + {} * {}", angle("C"), own, angle("S"), partner(last + " - " + step));
  std::string body = fmt::format("if {} then {} else {}", is_first, first, second);
  if (r.turned < width)
    body = fmt::format("if {} >= {} then {} else {}", element, r.turned, own, body);
  if (is_narrow) body = fmt::format("{}({})", ir::to_string(x->dtype), body);
  return row.call("rotary_embedding", std::move(args), x->dtype, x->shape,
                  fmt::format("{} = {};", at("Y", index_list(x->rank())), body));
}

}  // namespace prunerc::onnx

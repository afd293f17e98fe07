// Recurrent networks, unrolled: a product for all steps at once, then for each step a product with the
// state and a cell of single elements.
#include "ir/onnx/importer.h"
#include "ir/onnx/row.h"
#include "ir/onnx/text/integer.h"
#include "ir/onnx/text/product.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace prunerc::onnx {
namespace {

constexpr int64_t kMaxSteps = 1024;
/// So many states are joined by one call.
constexpr std::size_t kJoined = 8;

/// An activation; $ is its argument.
struct Activation {
  std::string_view name, text;
  double alpha, beta;
};
constexpr Activation kActivations[] = {
    {"sigmoid", "sigmoid($)", 0, 0},
    {"tanh", "tanh($)", 0, 0},
    {"relu", "max(0, $)", 0, 0},
    {"affine", "A * $ + B", 1, 0},
    {"leakyrelu", "if $ < 0 then A * $ else $", 0.01, 0},
    {"thresholdedrelu", "if $ > A then $ else 0", 1, 0},
    {"scaledtanh", "A * tanh(B * $)", 1, 1},
    {"hardsigmoid", "min(1, max(0, A * $ + B))", 0.2, 0.5},
    {"elu", "if $ < 0 then A * (exp($) - 1) else $", 1, 0},
    {"softsign", "$ / (1 + abs($))", 0, 0},
    {"softplus", "max($, 0) + log(1 + exp(-abs($)))", 0, 0},
};

/// A chosen one with its numbers in it.
using Function = std::string;

std::string applied(const Function& function, const std::string& argument, double clip) {
  const std::string bound = number_text(ir::DType::kF32, clip);
  // NaN stays: max and min give their second operand.
  const std::string inside =
      clip > 0 ? fmt::format("min({1}, max(-{1}, {0}))", argument, bound) : "(" + argument + ")";
  std::string out;
  for (const char c : function) out += c == '$' ? inside : std::string(1, c);
  return "(" + out + ")";
}

enum class Weights { kFloats, kBytes };

struct Form {
  int64_t gates;
  std::vector<std::string_view> activations;
  Weights weights = Weights::kFloats;
};

/// Weights of 8 bits of one direction, [inputs, gates * hidden]; a scale and a zero point for all or for each column.
struct Bytes {
  const Value *values = nullptr, *scale = nullptr, *zero = nullptr;
};

/// All that the three have in common.
struct Layer {
  const Value *x = nullptr, *w = nullptr, *r = nullptr, *bias = nullptr, *peepholes = nullptr;
  const Value* lengths = nullptr;  // of the sequences; null: all have all steps
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 0, gates = 0;
  bool is_batch_first = false, starts_reversed = false;
  double clip = 0;
  std::vector<Function> functions;  // by direction, then as the form has them
  std::size_t functions_each = 0;
  std::vector<Bytes> input_bytes, state_bytes;  // by direction; none: w and r are floats

  const Function& function(int64_t direction, std::size_t i) const {
    return functions[static_cast<std::size_t>(direction) * functions_each + i];
  }
  bool is_reversed(int64_t direction) const { return direction == 1 || starts_reversed; }
  bool has_cell() const { return gates == 4; }
};

Result<std::vector<Function>> functions_of(Row& row, const Form& form, int64_t directions) {
  std::vector<std::string> names;
  if (const Attribute* const given = row.find("activations"); given != nullptr)
    names = given->strings;
  const std::size_t wanted = form.activations.size() * static_cast<std::size_t>(directions);
  if (names.empty()) {
    for (std::size_t i = 0; i < wanted; ++i)
      names.emplace_back(form.activations[i % form.activations.size()]);
  }
  if (names.size() != wanted) return row.unsupported("a number of activations like this");
  const std::vector<double> alphas = row.attr_floats("activation_alpha"),
                            betas = row.attr_floats("activation_beta");
  std::size_t next_alpha = 0, next_beta = 0;
  std::vector<Function> out;
  for (std::string& name : names) {
    for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    const auto* const found =
        std::find_if(std::begin(kActivations), std::end(kActivations),
                     [&](const Activation& item) { return item.name == name; });
    if (found == std::end(kActivations)) return row.unsupported("this activation");
    // Only those that have the number take one of the list.
    const bool has_alpha = found->text.find('A') != std::string_view::npos,
               has_beta = found->text.find('B') != std::string_view::npos;
    const double alpha =
        has_alpha && next_alpha < alphas.size() ? alphas[next_alpha++] : found->alpha;
    const double beta = has_beta && next_beta < betas.size() ? betas[next_beta++] : found->beta;
    if (!std::isfinite(alpha) || !std::isfinite(beta)) return row.unsupported("such activations");
    Function text;
    for (const char c : found->text) {
      text += c == 'A'   ? number_text(ir::DType::kF32, alpha)
              : c == 'B' ? number_text(ir::DType::kF32, beta)
                         : std::string(1, c);
    }
    out.push_back(std::move(text));
  }
  return out;
}

bool has_shape(const Value* value, const std::vector<int64_t>& shape) {
  return value == nullptr || value->shape == shape;
}

bool has_types(const Layer& l, const Form& form) {
  if (l.x->rank() != 3 || l.w->rank() != 3 || l.r->rank() != 3 || l.x->num_elements() == 0 ||
      (l.bias != nullptr && l.bias->dtype != l.x->dtype))
    return false;
  if (form.weights == Weights::kBytes)
    return l.x->dtype == ir::DType::kF32 && is_byte(*l.w) && is_byte(*l.r);
  return ir::is_float(l.x->dtype) && ir::byte_size(l.x->dtype) >= 4 && l.w->dtype == l.x->dtype &&
         l.r->dtype == l.x->dtype;
}

// Bytes lie turned: their rows are what they are multiplied with.
bool has_shapes(const Layer& l, const Form& form) {
  std::vector<int64_t> w = {l.directions, l.gates * l.hidden, l.inputs},
                       r = {l.directions, l.gates * l.hidden, l.hidden};
  if (form.weights == Weights::kBytes) {
    std::swap(w[1], w[2]);
    std::swap(r[1], r[2]);
  }
  return has_shape(l.w, w) && has_shape(l.r, r) &&
         has_shape(l.bias, {l.directions, 2 * l.gates * l.hidden});
}

// Null: every sequence is known to have all steps.
Result<const Value*> lengths_of(Row& row, const Layer& l) {
  const Value* const lengths = row.in(4);
  if (lengths == nullptr) return lengths;
  if (lengths->shape != std::vector<int64_t>{l.batch} || !ir::is_int(lengths->dtype))
    return row.unsupported("lengths of another shape or type");
  bool is_full = lengths->known.has_value();
  for (int64_t i = 0; is_full && i < l.batch; ++i) is_full = lengths->int_element(i) == l.steps;
  return is_full ? nullptr : lengths;
}

Result<Layer> layer_of(Row& row, const Form& form) {
  Layer l;
  PRUNERC_TRY(l.x, row.need(0));
  PRUNERC_TRY(l.w, row.need(1));
  PRUNERC_TRY(l.r, row.need(2));
  l.bias = row.in(3);
  l.is_batch_first = row.attr_int("layout", 0) != 0;
  l.clip = row.attr_float("clip", 0);
  l.gates = form.gates;
  if (!has_types(l, form)) return row.unsupported("operands of these shapes or types");
  l.steps = l.x->shape[l.is_batch_first ? 1 : 0];
  l.batch = l.x->shape[l.is_batch_first ? 0 : 1];
  l.inputs = l.x->shape[2];
  l.directions = l.w->shape[0];
  l.hidden = l.r->shape[form.weights == Weights::kBytes ? 1 : 2];
  PRUNERC_TRY(const std::string direction,
              row.attr_choice("direction", {"forward", "reverse", "bidirectional"}));
  l.starts_reversed = direction == "reverse";
  if (l.directions != (direction == "bidirectional" ? 2 : 1) || l.hidden < 1 ||
      l.hidden > (int64_t{1} << 24) || row.attr_int("hidden_size", l.hidden) != l.hidden ||
      !std::isfinite(l.clip) || !has_shapes(l, form))
    return row.unsupported("operands that do not fit together");
  if (l.steps > kMaxSteps) return row.unsupported("more than 1024 steps");
  PRUNERC_TRY(l.lengths, lengths_of(row, l));
  // What has ended would count where all of a state is spread over 8 bits.
  if (l.lengths != nullptr && form.weights == Weights::kBytes)
    return row.unsupported("sequences of different lengths");
  PRUNERC_TRY(l.functions, functions_of(row, form, l.directions));
  l.functions_each = form.activations.size();
  return l;
}

std::string bias_text(const Layer& l, int64_t direction, const std::string& gate, bool both) {
  const int64_t second = l.gates * l.hidden;
  if (!both) return fmt::format("B[{}, {} + 0]", direction, gate);
  return fmt::format("B[{0}, {1} + 0] + B[{0}, {1} + {2}]", direction, gate, second);
}

// What there is of one direction; without a copy where the model holds it.
Result<const Value*> of_direction(Row& row, const Value& x, int64_t direction) {
  const std::vector<int64_t> shape(x.shape.begin() + 1, x.shape.end());
  if (x.known) {
    Constant part = *x.known;
    const std::size_t size = part.bytes.size() / static_cast<std::size_t>(x.shape[0]);
    part.bytes = part.bytes.substr(static_cast<std::size_t>(direction) * size, size);
    part.shape = shape;
    return row.importer().held(part);
  }
  const std::vector<std::string> index = index_list(x.rank() - 1);
  std::vector<std::string> reads = index;
  reads.insert(reads.begin(), std::to_string(direction));
  return row.call("of_direction", {{"X", &x}}, x.dtype, shape,
                  fmt::format("{} = {};", at("Y", index), at("X", reads)));
}

// The matrix w by direction, and its scale and zero point, inputs `first` and the next one.
Result<std::vector<Bytes>> bytes_of(Row& row, const Layer& l, const Value& w, std::size_t first) {
  PRUNERC_TRY(const Value* const scale, row.need(first));
  PRUNERC_TRY(const Value* const zero, row.need(first + 1));
  for (const Value* item : {scale, zero}) {
    if (item->dtype != (item == scale ? ir::DType::kF32 : w.dtype))
      return row.unsupported("a scale or zero point of another type");
    if (item->shape != std::vector<int64_t>{l.directions} &&
        item->shape != std::vector<int64_t>{l.directions, l.gates * l.hidden})
      return row.unsupported("scales or zero points of another shape");
  }
  std::vector<Bytes> out(static_cast<std::size_t>(l.directions));
  for (std::size_t d = 0; d < out.size(); ++d) {
    const auto direction = static_cast<int64_t>(d);
    PRUNERC_TRY(out[d].values, of_direction(row, w, direction));
    PRUNERC_TRY(out[d].scale, of_direction(row, *scale, direction));
    PRUNERC_TRY(out[d].zero, of_direction(row, *zero, direction));
  }
  return out;
}

// What is multiplied becomes 8 bits, too, spread over all that it holds.
Result<const Value*> bytes_product(Row& row, const Value& x, const Bytes& w, const Value* bias) {
  PRUNERC_TRY(const Quantized q, dynamically_quantized(row, x));
  return integer_to_float(row, {q.values, q.scale, q.zero, w.values, w.scale, w.zero, bias});
}

// [step, batch, gates * hidden]. `inner`: gates from here on take the state's bias later.
Result<const Value*> projected(Row& row, const Layer& l, int64_t direction,
                               std::optional<int64_t> inner) {
  if (!l.input_bytes.empty()) {
    const Value* bias = nullptr;
    if (l.bias != nullptr) {
      PRUNERC_TRY(bias, row.call("bias_of_gates", {{"B", l.bias}}, l.x->dtype, {l.gates * l.hidden},
                                 fmt::format("Y[g] = {};", bias_text(l, direction, "g", true))));
    }
    return bytes_product(row, *l.x, l.input_bytes[static_cast<std::size_t>(direction)], bias);
  }
  std::vector<Arg> args = {{"X", l.x}, {"W", l.w}};
  const std::string x_at = l.is_batch_first ? "X[b, t, k]" : "X[t, b, k]";
  const std::string sum = fmt::format("sum[k] {} * W[{}, g, k]", x_at, direction);
  const int64_t width = l.gates * l.hidden;
  std::string body;
  if (l.bias == nullptr) {
    body = fmt::format("Y[t, b, g] = {};", sum);
  } else {
    args.push_back({"B", l.bias});
    const std::string bias =
        inner ? fmt::format("(if g < {} then {} else {})", *inner,
                            bias_text(l, direction, "g", true), bias_text(l, direction, "g", false))
              : "(" + bias_text(l, direction, "g", true) + ")";
    body = fmt::format("let a[t, b, g] = {};\n  Y[t, b, g] = a[t, b, g] + {};", sum, bias);
  }
  return row.call("gates_of_inputs", std::move(args), l.x->dtype, {l.steps, l.batch, width}, body);
}

// The gates of one step; which one is an operand, so that all steps are one operator.
Result<const Value*> step_of(Row& row, const Value& all, int64_t step) {
  if (all.shape[0] == 1) {
    return row.call("step", {{"X", &all}}, all.dtype, {all.shape[1], all.shape[2]},
                    "Y[b, g] = X[0, b, g];");
  }
  const Value* const at = row.scalar(ir::DType::kI64, static_cast<double>(step));
  return row.call("step", {{"X", &all}, {"t", at}}, all.dtype, {all.shape[1], all.shape[2]},
                  "Y[b, g] = X[t, b, g] or 0;");
}

/// The state before the first step: [batch, hidden].
Result<const Value*> first_state(Row& row, const Layer& l, const Value* given, int64_t direction) {
  const std::vector<int64_t> shape = {l.batch, l.hidden};
  if (given == nullptr) return row.call("zeros", {}, l.x->dtype, shape, "Y[b, h] = 0;");
  const std::vector<int64_t> wanted = l.is_batch_first
                                          ? std::vector<int64_t>{l.batch, l.directions, l.hidden}
                                          : std::vector<int64_t>{l.directions, l.batch, l.hidden};
  if (given->shape != wanted || given->dtype != l.x->dtype)
    return row.unsupported("a first state of another shape");
  return row.call(
      "first_state", {{"X", given}}, l.x->dtype, shape,
      fmt::format("Y[b, h] = X[{}];", l.is_batch_first ? fmt::format("b, {}, h", direction)
                                                       : fmt::format("{}, b, h", direction)));
}

// [batch, hidden] each -> [n, batch, hidden], by calls of few operands.
Result<const Value*> stacked(Row& row, std::vector<const Value*> parts) {
  const std::vector<int64_t> shape = parts[0]->shape;
  bool is_first = true;
  while (is_first || parts.size() > 1) {
    std::vector<const Value*> joined;
    for (std::size_t i = 0; i < parts.size(); i += kJoined) {
      const std::size_t end = std::min(i + kJoined, parts.size());
      if (!is_first && end - i == 1) {
        joined.push_back(parts[i]);
        continue;
      }
      std::vector<Arg> args;
      std::string body;
      int64_t before = 0;
      for (std::size_t p = i; p < end; ++p) {
        const std::string name = fmt::format("A{}", p - i);
        args.push_back({name, parts[p]});
        const int64_t length = is_first ? 1 : parts[p]->shape[0];
        const std::string read = is_first ? fmt::format("{}[b, h]", name)
                                          : fmt::format("{}[t - {}, b, h]", name, before);
        before += length;
        body += p + 1 == end ? read : fmt::format("if t < {} then {} else ", before, read);
      }
      PRUNERC_TRY(const Value* const y,
                  row.call("stack", std::move(args), parts[i]->dtype, {before, shape[0], shape[1]},
                           fmt::format("Y[t, b, h] = {};", body)));
      joined.push_back(y);
    }
    parts = std::move(joined);
    is_first = false;
  }
  return parts[0];
}

/// What one direction gives: states in the order of time, and the last.
struct Track {
  std::vector<const Value*> states;
  const Value *last = nullptr, *last_cell = nullptr;
};

struct State {
  const Value *h = nullptr, *c = nullptr;
};
using StepFn = Result<State> (*)(Row& row, const Layer& l, int64_t direction, const Value& gates,
                                 const State& before);

Result<const Value*> with_state(Row& row, const Layer& l, int64_t direction, const Value& gates,
                                const Value& h) {
  if (!l.state_bytes.empty()) {
    PRUNERC_TRY(const Value* const product,
                bytes_product(row, h, l.state_bytes[static_cast<std::size_t>(direction)], nullptr));
    return row.call("gates", {{"G", &gates}, {"P", product}}, l.x->dtype, gates.shape,
                    "Y[b, g] = G[b, g] + P[b, g];");
  }
  return row.call("gates", {{"G", &gates}, {"H", &h}, {"R", l.r}}, l.x->dtype, gates.shape,
                  fmt::format("Y[b, g] = G[b, g] + (sum[k] H[b, k] * R[{}, g, k]);", direction));
}

Result<State> rnn_step(Row& row, const Layer& l, int64_t direction, const Value& gates,
                       const State& before) {
  PRUNERC_TRY(const Value* const a, with_state(row, l, direction, gates, *before.h));
  PRUNERC_TRY(
      const Value* const h,
      row.call("rnn_cell", {{"A", a}}, a->dtype, {l.batch, l.hidden},
               fmt::format("Y[b, h] = {};", applied(l.function(direction, 0), "A[b, h]", l.clip))));
  return State{h, nullptr};
}

Result<State> lstm_step(Row& row, const Layer& l, int64_t direction, const Value& gates,
                        const State& before) {
  PRUNERC_TRY(const Value* const a, with_state(row, l, direction, gates, *before.h));
  std::vector<Arg> args = {{"A", a}, {"C", before.c}};
  if (l.peepholes != nullptr) args.push_back({"P", l.peepholes});
  const auto gate = [&](int64_t number, std::string_view cell, int64_t hole) {
    std::string text = fmt::format("A[b, h + {}]", number * l.hidden);
    if (l.peepholes != nullptr && !cell.empty())
      text += fmt::format(" + P[{}, h + {}] * {}", direction, hole * l.hidden, cell);
    return text;
  };
  const Function &f = l.function(direction, 0), &g = l.function(direction, 1),
                 &h = l.function(direction, 2);
  const std::string input = applied(f, gate(0, "C[b, h]", 0), l.clip);
  const std::string forget = row.attr_int("input_forget", 0) != 0
                                 ? "(1 - i[b, h])"
                                 : applied(f, gate(2, "C[b, h]", 2), l.clip);
  PRUNERC_TRY(
      const std::vector<const Value*> results,
      row.call(
          "lstm_cell", std::move(args),
          {{"Y", a->dtype, {l.batch, l.hidden}}, {"D", a->dtype, {l.batch, l.hidden}}},
          fmt::format("let i[b, h in 0..{}] = {};\n  D[b, h] = {} * C[b, h] + i[b, h] * {};\n  "
                      "Y[b, h] = {} * {};",
                      l.hidden, input, forget, applied(g, gate(3, "", 0), l.clip),
                      applied(f, gate(1, "D[b, h]", 1), l.clip), applied(h, "D[b, h]", 0))));
  return State{results[0], results[1]};
}

Result<State> gru_step(Row& row, const Layer& l, int64_t direction, const Value& gates,
                       const State& before) {
  const bool is_linear = row.attr_int("linear_before_reset", 0) != 0;
  const int64_t n = l.hidden;
  const Function &f = l.function(direction, 0), &g = l.function(direction, 1);
  const std::string state_bias =
      l.bias != nullptr ? fmt::format(" + B[{}, h + {}]", direction, 5 * n) : "";
  // Of the state: update and reset gates, and the third where it is reset after the product.
  const int64_t width = is_linear ? 3 * n : 2 * n;
  PRUNERC_TRY(
      const Value* const a,
      row.call("gates_of_state", {{"H", before.h}, {"R", l.r}}, l.x->dtype, {l.batch, width},
               fmt::format("Y[b, g] = sum[k] H[b, k] * R[{}, g{}, k];", direction,
                           is_linear ? "" : " + 0")));
  const std::string update = applied(f, "G[b, h + 0] + A[b, h + 0]", l.clip);
  const std::string reset = applied(f, fmt::format("G[b, h + {0}] + A[b, h + {0}]", n), l.clip);
  std::vector<Arg> args = {{"G", &gates}, {"A", a}, {"H", before.h}};
  if (l.bias != nullptr) args.push_back({"B", l.bias});
  const Value* product = nullptr;
  if (!is_linear) {
    PRUNERC_TRY(const Value* const kept,
                row.call("gru_reset", {{"G", &gates}, {"A", a}, {"H", before.h}}, a->dtype,
                         {l.batch, n}, fmt::format("Y[b, h] = {} * H[b, h];", reset)));
    PRUNERC_TRY(product, row.call("gru_product", {{"H", kept}, {"R", l.r}}, a->dtype, {l.batch, n},
                                  fmt::format("Y[b, h] = sum[k] H[b, k] * R[{}, h + {}, k];",
                                              direction, 2 * n)));
    args.push_back({"M", product});
  }
  const std::string inner =
      is_linear ? fmt::format("G[b, h + {0}] + {1} * (A[b, h + {0}]{2})", 2 * n, reset, state_bias)
                : fmt::format("G[b, h + {}] + M[b, h]{}", 2 * n, state_bias);
  PRUNERC_TRY(
      const Value* const h,
      row.call("gru_cell", std::move(args), a->dtype, {l.batch, n},
               fmt::format("let z[b, h in 0..{}] = {};\n  Y[b, h] = (1 - z[b, h]) * {} + z[b, h] * "
                           "H[b, h];",
                           n, update, applied(g, inner, l.clip))));
  return State{h, nullptr};
}

/// What remains of a state where a sequence has ended, and what is seen of it.
struct Kept {
  const Value *state, *seen;
};
Result<Kept> kept_of(Row& row, const Layer& l, int64_t step, const Value& now,
                     const Value& before) {
  const Value* const at = row.scalar(ir::DType::kI64, static_cast<double>(step));
  PRUNERC_TRY(const std::vector<const Value*> results,
              row.call("kept", {{"A", &now}, {"B", &before}, {"L", l.lengths}, {"t", at}},
                       {{"Y", now.dtype, now.shape}, {"Z", now.dtype, now.shape}},
                       "Y[b, h] = if t < i64(L[b]) then A[b, h] else B[b, h];\n  "
                       "Z[b, h] = if t < i64(L[b]) then A[b, h] else 0;"));
  return Kept{results[0], results[1]};
}

// As ONNX Runtime has it, a sequence of no steps ends in zeros, whatever it begins with.
Result<const Value*> ended(Row& row, const Layer& l, const Value& last) {
  return row.call("ended", {{"A", &last}, {"L", l.lengths}}, last.dtype, last.shape,
                  "Y[b, h] = if i64(L[b]) > 0 then A[b, h] else 0;");
}

Result<Track> run_direction(Row& row, const Layer& l, int64_t direction, StepFn step,
                            std::optional<int64_t> inner) {
  PRUNERC_TRY(const Value* const all, projected(row, l, direction, inner));
  State state;
  PRUNERC_TRY(state.h, first_state(row, l, row.in(5), direction));
  PRUNERC_TRY(state.c, first_state(row, l, l.has_cell() ? row.in(6) : nullptr, direction));
  Track track;
  for (int64_t i = 0; i < l.steps; ++i) {
    const int64_t t = l.is_reversed(direction) ? l.steps - 1 - i : i;
    PRUNERC_TRY(const Value* const gates, step_of(row, *all, t));
    const State before = state;
    PRUNERC_TRY(state, step(row, l, direction, *gates, before));
    Kept h{state.h, state.h};
    if (l.lengths != nullptr) {
      PRUNERC_TRY(h, kept_of(row, l, t, *state.h, *before.h));
      state.h = h.state;
    }
    if (l.lengths != nullptr && l.has_cell()) {
      PRUNERC_TRY(const Kept c, kept_of(row, l, t, *state.c, *before.c));
      state.c = c.state;
    }
    track.states.push_back(h.seen);
  }
  if (l.lengths != nullptr) {
    PRUNERC_TRY(state.h, ended(row, l, *state.h));
  }
  if (l.lengths != nullptr && l.has_cell()) {
    PRUNERC_TRY(state.c, ended(row, l, *state.c));
  }
  track.last = state.h;
  track.last_cell = state.c;
  if (l.is_reversed(direction)) std::reverse(track.states.begin(), track.states.end());
  return track;
}

// [directions, batch, hidden], or with the batch first.
Result<const Value*> last_states(Row& row, const Layer& l, const std::vector<const Value*>& last) {
  PRUNERC_TRY(const Value* const all, stacked(row, last));
  if (!l.is_batch_first) return all;
  return row.call("batch_first", {{"X", all}}, all->dtype, {l.batch, l.directions, l.hidden},
                  "Y[b, d, h] = X[d, b, h];");
}

// [steps, directions, batch, hidden], or with the batch first.
Result<const Value*> all_states(Row& row, const Layer& l, const std::vector<Track>& tracks) {
  std::vector<Arg> args;
  std::string read;
  for (std::size_t d = 0; d < tracks.size(); ++d) {
    PRUNERC_TRY(const Value* const states, stacked(row, tracks[d].states));
    args.push_back({fmt::format("A{}", d), states});
    read += d + 1 == tracks.size() ? fmt::format("A{}[t, b, h]", d)
                                   : fmt::format("if d == {0} then A{0}[t, b, h] else ", d);
  }
  std::vector<int64_t> shape = {l.steps, l.directions, l.batch, l.hidden};
  if (l.is_batch_first) shape = {l.batch, l.steps, l.directions, l.hidden};
  return row.call("states", std::move(args), l.x->dtype, shape,
                  fmt::format("Y[{}] = {};", l.is_batch_first ? "b, t, d, h" : "t, d, b, h", read));
}

Result<void> recurrent(Row& row, const Form& form, StepFn step, std::optional<int64_t> inner) {
  PRUNERC_TRY(Layer l, layer_of(row, form));
  if (inner) *inner *= l.hidden;
  if (l.has_cell() && row.in(7) != nullptr) {
    l.peepholes = row.in(7);
    if (!has_shape(l.peepholes, {l.directions, 3 * l.hidden}) || l.peepholes->dtype != l.x->dtype)
      return row.unsupported("peepholes of another shape or type");
  }
  if (form.weights == Weights::kBytes) {
    PRUNERC_TRY(l.input_bytes, bytes_of(row, l, *l.w, 8));
    PRUNERC_TRY(l.state_bytes, bytes_of(row, l, *l.r, 10));
  }
  std::vector<Track> tracks;
  for (int64_t d = 0; d < l.directions; ++d) {
    PRUNERC_TRY(Track track, run_direction(row, l, d, step, inner));
    tracks.push_back(std::move(track));
  }
  if (row.wants_output(0)) {
    PRUNERC_TRY(const Value* const y, all_states(row, l, tracks));
    row.set(0, y);
  }
  std::vector<const Value*> last, cells;
  for (const Track& track : tracks) {
    last.push_back(track.last);
    cells.push_back(track.last_cell);
  }
  if (row.wants_output(1)) {
    PRUNERC_TRY(const Value* const y, last_states(row, l, last));
    row.set(1, y);
  }
  if (row.wants_output(2)) {
    PRUNERC_TRY(const Value* const y, last_states(row, l, cells));
    row.set(2, y);
  }
  return {};
}

Result<void> lstm(Row& row) {
  return recurrent(row, {4, {"sigmoid", "tanh", "tanh"}}, lstm_step, std::nullopt);
}
Result<void> gru(Row& row) {
  // The third gate's second bias belongs to the state.
  return recurrent(row, {3, {"sigmoid", "tanh"}}, gru_step, 2);
}
Result<void> rnn(Row& row) { return recurrent(row, {1, {"tanh"}}, rnn_step, std::nullopt); }

constexpr RowEntry kRows[] = {{"LSTM", lstm}, {"GRU", gru}, {"RNN", rnn}};

}  // namespace

std::span<const RowEntry> recurrent_rows() { return kRows; }

Result<void> dynamic_quantize_lstm(Row& row) {
  if (row.has("layout")) return row.unsupported("the attribute layout");
  return recurrent(row, {4, {"sigmoid", "tanh", "tanh"}, Weights::kBytes}, lstm_step, std::nullopt);
}

}  // namespace prunerc::onnx

#include "ir/interp/elements.h"

#include "ir/interp/bounded.h"
#include "ir/interp/evaluate.h"
#include "ir/interp/producers.h"
#include "ir/visit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

namespace prunerc::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Bounded whole(int64_t value, double error = 0) {
  return {static_cast<double>(value), value, error};
}

}  // namespace

class ElementEvaluator::Impl {
 public:
  Impl(Program program, const ElementOptions& options)
      : program_(std::move(program)), options_(options) {}

  Result<void> prepare(std::span<const Tensor> inputs);
  Result<Reference> element(int output, int64_t position);

 private:
  /// The element being computed: loads of it give what has been accumulated.
  struct Frame {
    BufferId buffer;
    int64_t position = -1;
    std::size_t producer = 0;
    std::optional<Bounded> value;
  };
  struct BufferState {
    const Tensor* input = nullptr;
    std::vector<int64_t> shape;
    std::vector<Producer> producers;
    std::unordered_map<int64_t, Bounded> known;
  };

  BufferState& state(BufferId id) { return buffers_[static_cast<std::size_t>(id.value)]; }
  int64_t& var(int32_t id) { return vars_[static_cast<std::size_t>(id)]; }
  void fail(Error e) {
    if (!failure_.has_value()) failure_ = std::move(e);
  }

  Bounded stored(BufferId buffer, int64_t position);
  std::optional<Bounded> produced(BufferId buffer, int64_t position, std::size_t num_producers);
  bool bind(const Producer& p, const std::vector<int64_t>& shape, int64_t position);
  std::optional<Bounded> run(const Producer& p, Frame* frame);
  bool next_reduce_point(const Producer& p);
  int64_t index(Expr e);
  Bounded eval(Expr e);
  Bounded load(const Load& n);
  Bounded binary(const BinaryNode& n);
  Bounded integers(const BinaryNode& n, const Bounded& a, const Bounded& b);
  Bounded compare(const BinaryNode& n, const Bounded& a, const Bounded& b);
  Bounded cast(const Cast& n);
  Bounded select(const Select& n);

  Program program_;
  ElementOptions options_;
  std::vector<BufferState> buffers_;
  std::vector<int64_t> vars_;
  Frame* frame_ = nullptr;
  int depth_ = 0;
  int64_t steps_ = 0;
  int64_t num_known_ = 0;
  std::optional<Error> failure_;
};

Result<void> ElementEvaluator::Impl::prepare(std::span<const Tensor> inputs) {
  PRUNERC_TRY(std::vector<std::vector<Producer>> producers, find_producers(program_));
  vars_.assign(static_cast<std::size_t>(program_.next_ids().var), 0);
  for (const Buffer& buffer : program_.buffers()) {
    BufferState s;
    s.shape = shape_of(buffer);
    s.producers = std::move(producers[static_cast<std::size_t>(buffer.id.value)]);
    buffers_.push_back(std::move(s));
  }
  std::size_t next = 0;
  for (BufferId id : program_.params()) {
    const Buffer& buffer = program_.buffer(id);
    if (buffer.role != BufferRole::kInput) continue;
    const bool fits = next < inputs.size() && inputs[next].dtype == buffer.dtype &&
                      inputs[next].shape == state(id).shape;
    if (!fits) {
      return error(Diag::kInterpInput, std::string(buffer.name),
                   std::string("a tensor of its type and shape"), std::string("another"));
    }
    state(id).input = &inputs[next++];
  }
  return {};
}

// --- elements of buffers

Bounded ElementEvaluator::Impl::stored(BufferId buffer, int64_t position) {
  BufferState& s = state(buffer);
  if (s.input != nullptr) {
    return is_float(s.input->dtype) ? Bounded{s.input->get(position), 0, 0}
                                    : whole(s.input->get_int(position));
  }
  if (const auto found = s.known.find(position); found != s.known.end()) return found->second;
  const std::optional<Bounded> value = produced(buffer, position, s.producers.size());
  if (!value) {
    fail(error(Diag::kInterpUninitialised, std::string(program_.buffer(buffer).name), position));
    return {};
  }
  if (++num_known_ > options_.max_memory_elements) {
    fail(error(Diag::kInterpTooLarge, std::string(program_.buffer(buffer).name),
               options_.max_memory_elements));
  }
  s.known.emplace(position, *value);
  return *value;
}

// The value after the first `num_producers` producers of the buffer; nullopt if none of them writes
// the element.
std::optional<Bounded> ElementEvaluator::Impl::produced(BufferId buffer, int64_t position,
                                                        std::size_t num_producers) {
  if (++depth_ > options_.max_depth) {
    fail(error(Diag::kUnsupported, std::string("a deeper chain of producers")));
  }
  std::optional<Bounded> value;
  for (std::size_t i = num_producers; i-- > 0 && !failure_.has_value() && !value;) {
    const Producer& p = state(buffer).producers[i];
    // The producer may be running already, for another element (a scan): its variables are put
    // back.
    std::vector<int64_t> saved;
    for (const ProducerIter& iter : p.iters) {
      saved.push_back(var(iter.var));
      saved.push_back(iter.loop_var >= 0 ? var(iter.loop_var) : 0);
    }
    if (bind(p, state(buffer).shape, position)) {
      Frame frame{buffer, position, i, std::nullopt};
      Frame* const outer = std::exchange(frame_, &frame);
      value = run(p, &frame);
      frame_ = outer;
    }
    for (std::size_t k = 0; k < p.iters.size(); ++k) {
      var(p.iters[k].var) = saved[2 * k];
      if (p.iters[k].loop_var >= 0) var(p.iters[k].loop_var) = saved[2 * k + 1];
    }
  }
  --depth_;
  return value;
}

// Sets the variables so that the producer's store hits the element; false if it never does.
bool ElementEvaluator::Impl::bind(const Producer& p, const std::vector<int64_t>& shape,
                                  int64_t position) {
  const auto set = [&](const ProducerIter& iter, int64_t value) {
    var(iter.var) = value;
    if (iter.loop_var >= 0) var(iter.loop_var) = value;
  };
  for (const ProducerIter& iter : p.iters) set(iter, 0);
  for (std::size_t d = shape.size(); d-- > 0;) {
    const int64_t at = position % shape[d] - p.indices[d].offset;
    position /= shape[d];
    if (p.indices[d].iter < 0) {
      if (at != 0) return false;
      continue;
    }
    const ProducerIter& iter = p.iters[static_cast<std::size_t>(p.indices[d].iter)];
    if (at < 0 || at >= iter.extent) return false;
    set(iter, at);
  }
  return true;
}

bool ElementEvaluator::Impl::next_reduce_point(const Producer& p) {
  for (std::size_t i = p.iters.size(); i-- > 0;) {
    const ProducerIter& iter = p.iters[i];
    if (!iter.is_reduce) continue;
    const int64_t next = var(iter.var) + 1 < iter.extent ? var(iter.var) + 1 : 0;
    var(iter.var) = next;
    if (iter.loop_var >= 0) var(iter.loop_var) = next;
    if (next != 0) return true;
  }
  return false;
}

std::optional<Bounded> ElementEvaluator::Impl::run(const Producer& p, Frame* frame) {
  const DType dtype = p.body->value.dtype();
  double magnitudes = 0;
  double errors = 0;
  int64_t num_terms = 0;
  bool is_whole = true;
  bool is_first = true;
  bool has_run = false;
  do {
    if (failure_.has_value()) return std::nullopt;
    if (++steps_ > options_.max_steps) fail(error(Diag::kInterpStepBudget, options_.max_steps));
    const bool was_first = std::exchange(is_first, false);
    if (p.block->guard.defined() && eval(p.block->guard).integer == 0) continue;
    has_run = true;
    if (was_first && p.init != nullptr) frame->value = eval(p.init->value);
    if (!p.term.defined()) {
      frame->value = eval(p.body->value);
      continue;
    }
    const Bounded term = eval(p.term);
    if (!frame->value) {
      frame->value = produced(frame->buffer, frame->position, frame->producer);
      if (!frame->value) return std::nullopt;
    }
    frame->value->value += term.value;
    magnitudes += std::fabs(term.value);
    errors += term.error;
    is_whole = is_whole && term.error == 0 && term.value == std::trunc(term.value);
    ++num_terms;
  } while (next_reduce_point(p));
  if (!has_run) return std::nullopt;
  if (!p.term.defined()) return frame->value;
  // The start counts as one more term. Whole numbers below 2^p are added without error.
  Bounded sum = *frame->value;
  magnitudes += std::fabs(sum.value);
  const bool is_exact = is_whole && sum.error == 0 && magnitudes * unit_roundoff(dtype) <= 1;
  sum.error += errors;
  if (!is_exact) sum.error += sum_error(dtype, num_terms + 1, magnitudes);
  return is_exact ? sum : rounded(dtype, sum);
}

// --- expressions

int64_t ElementEvaluator::Impl::index(Expr e) {
  if (const Var* v = e.as<Var>()) return var(v->id.value);
  if (const IntImm* c = e.as<IntImm>()) return c->value;
  if (const Add* a = e.as<Add>()) return wrapping_add(index(a->lhs), index(a->rhs));
  if (const Mul* m = e.as<Mul>()) return wrapping_mul(index(m->lhs), index(m->rhs));
  const Bounded value = eval(e);
  if (value.error > 0) fail(error(Diag::kUnsupported, std::string("an index made of floats")));
  return value.integer;
}

Bounded ElementEvaluator::Impl::load(const Load& n) {
  const BufferState& s = state(n.buffer);
  int64_t position = 0;
  for (std::size_t d = 0; d < n.indices.size(); ++d) {
    const int64_t at = index(n.indices[d]);
    if (at < 0 || at >= s.shape[d]) {
      fail(error(Diag::kInterpOutOfBounds, at, static_cast<int64_t>(d),
                 std::string(program_.buffer(n.buffer).name)));
      return {};
    }
    position = position * s.shape[d] + at;
  }
  if (failure_.has_value()) return {};
  if (frame_ != nullptr && frame_->buffer == n.buffer && frame_->position == position) {
    Frame* const frame = frame_;
    if (!frame->value) frame->value = produced(n.buffer, position, frame->producer);
    if (frame->value) return *frame->value;
    fail(error(Diag::kInterpUninitialised, std::string(program_.buffer(n.buffer).name), position));
    return {};
  }
  return stored(n.buffer, position);
}

Bounded ElementEvaluator::Impl::compare(const BinaryNode& n, const Bounded& a, const Bounded& b) {
  const bool floats = is_float(n.lhs.dtype());
  const int order = floats ? (a.value < b.value   ? -1
                              : a.value > b.value ? 1
                                                  : 0)
                           : (a.integer < b.integer   ? -1
                              : a.integer > b.integer ? 1
                                                      : 0);
  const bool unordered = floats && (std::isnan(a.value) || std::isnan(b.value));
  const double slack = a.error + b.error;
  const bool uncertain = slack > 0 && !(std::fabs(a.value - b.value) > slack);
  bool result = false;
  if (n.kind == ExprKind::kEq) result = order == 0 && !unordered;
  if (n.kind == ExprKind::kNe) result = order != 0 || unordered;
  if (n.kind == ExprKind::kLt) result = order < 0;
  if (n.kind == ExprKind::kLe) result = order <= 0 && !unordered;
  return whole(result ? 1 : 0, uncertain ? 1 : 0);
}

Bounded ElementEvaluator::Impl::integers(const BinaryNode& n, const Bounded& a, const Bounded& b) {
  // What floats have made uncertain stays so; beyond sums nothing useful can be said.
  const double sum = a.error + b.error;
  const double error = sum == 0 ? 0 : kInfinity;
  const DType t = n.dtype;
  const bool divides = n.kind == ExprKind::kFloorDiv || n.kind == ExprKind::kFloorMod;
  if (divides && b.integer == 0) {
    fail(prunerc::error(Diag::kInterpDivisionByZero));
    return {};
  }
  switch (n.kind) {
    case ExprKind::kAdd: return whole(wrap_int(t, wrapping_add(a.integer, b.integer)), sum);
    case ExprKind::kSub: return whole(wrap_int(t, wrapping_sub(a.integer, b.integer)), sum);
    case ExprKind::kMul: return whole(wrap_int(t, wrapping_mul(a.integer, b.integer)), error);
    case ExprKind::kFloorDiv: return whole(wrap_int(t, floor_div(a.integer, b.integer)), error);
    case ExprKind::kFloorMod: return whole(floor_mod(a.integer, b.integer), error);
    case ExprKind::kMin: return whole(std::min(a.integer, b.integer), std::max(a.error, b.error));
    case ExprKind::kMax: return whole(std::max(a.integer, b.integer), std::max(a.error, b.error));
    default: break;  // comparisons and logic are the caller's
  }
  PRUNERC_UNREACHABLE("integer operation");
}

Bounded ElementEvaluator::Impl::binary(const BinaryNode& n) {
  const Bounded a = eval(n.lhs);
  if (n.kind == ExprKind::kAnd || n.kind == ExprKind::kOr) {
    const bool decided = (n.kind == ExprKind::kOr) == (a.integer != 0);
    if (decided) return a;
    const Bounded b = eval(n.rhs);
    return whole(b.integer, std::max(a.error, b.error));
  }
  const Bounded b = eval(n.rhs);
  if (n.kind >= ExprKind::kEq && n.kind <= ExprKind::kLe) return compare(n, a, b);
  if (!is_float(n.dtype)) return integers(n, a, b);
  const Bounded out = combine_floats(n.kind, a, b);
  const bool chooses = n.kind == ExprKind::kMin || n.kind == ExprKind::kMax;
  return chooses ? out : rounded(n.dtype, out);
}

Bounded ElementEvaluator::Impl::cast(const Cast& n) {
  const Bounded x = eval(n.operand);
  const bool from_float = is_float(n.operand.dtype());
  if (is_float(n.dtype)) {
    return rounded(n.dtype, {from_float ? x.value : static_cast<double>(x.integer), 0, x.error});
  }
  if (is_bool(n.dtype)) {
    const bool value = from_float ? x.value != 0 : x.integer != 0;
    return whole(value ? 1 : 0, x.error > 0 && std::fabs(x.value) <= x.error ? 1 : 0);
  }
  if (!from_float) {
    const int64_t value = wrap_int(n.dtype, x.integer);
    return whole(value, value == x.integer || x.error == 0 ? x.error : kInfinity);
  }
  const int64_t value = saturate_to(n.dtype, x.value);
  if (x.error == 0) return whole(value);
  const auto off = [&](double at) {
    return std::fabs(static_cast<double>(saturate_to(n.dtype, at)) - static_cast<double>(value));
  };
  return whole(value, std::max(off(x.value - x.error), off(x.value + x.error)));
}

Bounded ElementEvaluator::Impl::select(const Select& n) {
  const Bounded condition = eval(n.condition);
  Bounded chosen = eval(condition.integer != 0 ? n.on_true : n.on_false);
  if (condition.error == 0) return chosen;
  // A kernel may take the other branch.
  const Bounded other = eval(condition.integer != 0 ? n.on_false : n.on_true);
  chosen.error = std::max(chosen.error, std::fabs(chosen.value - other.value) + other.error);
  return chosen;
}

Bounded ElementEvaluator::Impl::eval(Expr e) {
  if (failure_.has_value()) return {};
  if (const BinaryNode* b = as_binary(e)) return binary(*b);
  if (const Load* l = e.as<Load>()) return load(*l);
  if (const IntImm* c = e.as<IntImm>()) return whole(c->value);
  if (const FloatImm* c = e.as<FloatImm>()) return {c->value, 0, 0};
  if (const Var* v = e.as<Var>()) return whole(var(v->id.value));
  if (const Not* n = e.as<Not>()) {
    const Bounded operand = eval(n->operand);
    return whole(operand.integer == 0 ? 1 : 0, operand.error);
  }
  if (const Select* s = e.as<Select>()) return select(*s);
  if (const Cast* c = e.as<Cast>()) return cast(*c);
  const Call* call = e.as<Call>();
  PRUNERC_CHECK(call != nullptr, "a kind of expression that a program without parameters has");
  Bounded args[3];
  for (std::size_t i = 0; i < call->args.size(); ++i) args[i] = eval(call->args[i]);
  if (is_float(call->dtype)) {
    return rounded(call->dtype,
                   call_bounded(call->intrinsic, call->dtype, args[0], args[1], args[2]));
  }
  const int64_t value = args[0].integer;
  return whole(value < 0 ? wrap_int(call->dtype, wrapping_sub(0, value)) : value, args[0].error);
}

Result<Reference> ElementEvaluator::Impl::element(int output, int64_t position) {
  failure_.reset();
  depth_ = 0;
  int number = 0;
  for (BufferId id : program_.params()) {
    const Buffer& buffer = program_.buffer(id);
    if (buffer.role != BufferRole::kOutput || number++ != output) continue;
    int64_t num_elements = 1;
    for (int64_t extent : state(id).shape) num_elements *= extent;
    if (position < 0 || position >= num_elements) {
      return error(Diag::kInterpOutOfBounds, position, int64_t{0}, std::string(buffer.name));
    }
    const Bounded value = stored(id, position);
    if (!failure_.has_value()) return Reference{value.value, value.integer, value.error};
    return *failure_;
  }
  return error(Diag::kInterpInput, int64_t{output}, std::string("an output"),
               std::string("none of that number"));
}

ElementEvaluator::ElementEvaluator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ElementEvaluator::ElementEvaluator(ElementEvaluator&&) noexcept = default;
ElementEvaluator& ElementEvaluator::operator=(ElementEvaluator&&) noexcept = default;
ElementEvaluator::~ElementEvaluator() = default;

Result<ElementEvaluator> ElementEvaluator::create(const Program& program,
                                                  std::span<const Tensor> inputs,
                                                  const ElementOptions& options) {
  auto impl = std::make_unique<Impl>(program, options);
  PRUNERC_TRY_VOID(impl->prepare(inputs));
  return ElementEvaluator(std::move(impl));
}

Result<Reference> ElementEvaluator::element(int output, int64_t position) {
  return impl_->element(output, position);
}

Result<std::vector<Reference>> interpret_elements(const Program& program,
                                                  std::span<const Tensor> inputs, int output,
                                                  std::span<const int64_t> positions,
                                                  const ElementOptions& options) {
  PRUNERC_TRY(ElementEvaluator evaluator, ElementEvaluator::create(program, inputs, options));
  std::vector<Reference> out;
  for (int64_t position : positions) {
    PRUNERC_TRY(const Reference reference, evaluator.element(output, position));
    out.push_back(reference);
  }
  return out;
}

}  // namespace prunerc::ir

#include "ir/interp/elements.h"

#include "ir/interp/bounded_eval.h"
#include "ir/interp/producers.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

namespace prunerc::ir {

class ElementEvaluator::Impl : public BoundedEval {
 public:
  Impl(Program program, const ElementOptions& options)
      : BoundedEval(std::move(program), options.factor_error), options_(options) {}

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
    std::vector<std::unordered_map<int64_t, Bounded>>
        known;  // by number of producers that have run
  };

  BufferState& state(BufferId id) { return buffers_[static_cast<std::size_t>(id.value)]; }

  Bounded stored(BufferId buffer, int64_t position, std::size_t num_producers);
  std::size_t num_before(BufferId buffer, int64_t position);
  bool has_stored(const Producer& p, const std::vector<int64_t>& shape, int64_t position);
  std::optional<Bounded> produced(BufferId buffer, int64_t position, std::size_t num_producers);
  bool bind(const Producer& p, const std::vector<int64_t>& shape, int64_t position);
  std::optional<Bounded> run(const Producer& p, Frame* frame);
  bool next_reduce_point(const Producer& p);
  Bounded load(const Load& n) override;

  ElementOptions options_;
  std::vector<BufferState> buffers_;
  Frame* frame_ = nullptr;
  int depth_ = 0;
  int64_t steps_ = 0;
  int64_t num_known_ = 0;
};

Result<void> ElementEvaluator::Impl::prepare(std::span<const Tensor> inputs) {
  PRUNERC_TRY(std::vector<std::vector<Producer>> producers, find_producers(program_));
  for (const Buffer& buffer : program_.buffers()) {
    BufferState s;
    s.shape = shape_of(buffer);
    s.producers = std::move(producers[static_cast<std::size_t>(buffer.id.value)]);
    s.known.resize(s.producers.size() + 1);
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

// What an element holds once the first `num_producers` producers of its buffer have run.
Bounded ElementEvaluator::Impl::stored(BufferId buffer, int64_t position,
                                       std::size_t num_producers) {
  BufferState& s = state(buffer);
  if (s.input != nullptr) {
    return is_float(s.input->dtype) ? Bounded{s.input->get(position), 0, 0}
                                    : whole(s.input->get_int(position));
  }
  std::unordered_map<int64_t, Bounded>& known = s.known[num_producers];
  if (const auto found = known.find(position); found != known.end()) return found->second;
  const std::optional<Bounded> value = produced(buffer, position, num_producers);
  if (!value) {
    fail(error(Diag::kInterpUninitialised, std::string(program_.buffer(buffer).name), position));
    return {};
  }
  if (++num_known_ > options_.max_memory_elements) {
    fail(error(Diag::kInterpTooLarge, std::string(program_.buffer(buffer).name),
               options_.max_memory_elements));
  }
  known.emplace(position, *value);
  return *value;
}

// How many producers of the buffer have stored the element when the block that is running reads it,
// in the order of the program.
std::size_t ElementEvaluator::Impl::num_before(BufferId buffer, int64_t position) {
  const BufferState& s = state(buffer);
  if (frame_ == nullptr) return s.producers.size();
  const Producer& reader = state(frame_->buffer).producers[frame_->producer];
  std::size_t before = 0;
  while (before < s.producers.size() && s.producers[before].order < reader.order) ++before;
  const auto interleaves = [&](const Producer& p) {
    return p.order != reader.order && !p.loops.empty() && !reader.loops.empty() &&
           p.loops.front() == reader.loops.front();
  };
  const bool is_own = buffer == frame_->buffer;
  const bool is_one = s.producers.size() == 1;
  if (!is_one && std::any_of(s.producers.begin(), s.producers.end(), interleaves)) {
    fail(error(Diag::kUnsupported,
               std::string("element evaluation of a buffer that a loop writes in several places")));
  }
  if (!is_own) return before;
  if (reader.num_reduce_points == 1) {
    return before + (has_stored(reader, s.shape, position) ? 1 : 0);
  }
  if (!is_one) {
    fail(error(Diag::kUnsupported,
               std::string("element evaluation of a reduction over its own buffer")));
  }
  return before + 1;
}

// Whether the producer, which is running, comes to the element before where it is.
bool ElementEvaluator::Impl::has_stored(const Producer& p, const std::vector<int64_t>& shape,
                                        int64_t position) {
  std::vector<int64_t> wanted(p.iters.size(), 0);
  for (std::size_t d = shape.size(); d-- > 0;) {
    const int64_t at = position % shape[d] - p.indices[d].offset;
    position /= shape[d];
    if (p.indices[d].iter >= 0) wanted[static_cast<std::size_t>(p.indices[d].iter)] = at;
  }
  for (const int32_t loop : p.loops) {
    for (std::size_t i = 0; i < p.iters.size(); ++i) {
      if (p.iters[i].loop_var != loop) continue;
      const int64_t now = var(p.iters[i].var);
      if (wanted[i] != now) return wanted[i] < now;
    }
  }
  return true;
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
    const Bounded term = eval_term(p.term);
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
  const bool is_exact = is_whole && sum.error == 0 && sum.value == std::trunc(sum.value) &&
                        magnitudes * unit_roundoff(dtype) <= 1;
  sum.error += errors;
  if (!is_exact) sum.error += sum_error(dtype, num_terms + 1, magnitudes);
  return is_exact ? sum : rounded(dtype, sum);
}

Bounded ElementEvaluator::Impl::load(const Load& n) {
  const int64_t at = position(n.buffer, n.indices, state(n.buffer).shape);
  if (failure_.has_value()) return {};
  if (frame_ != nullptr && frame_->buffer == n.buffer && frame_->position == at) {
    Frame* const frame = frame_;
    if (!frame->value) frame->value = produced(n.buffer, at, frame->producer);
    if (frame->value) return *frame->value;
    fail(error(Diag::kInterpUninitialised, std::string(program_.buffer(n.buffer).name), at));
    return {};
  }
  return stored(n.buffer, at, num_before(n.buffer, at));
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
    const Bounded value = stored(id, position, state(id).producers.size());
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

}  // namespace prunerc::ir

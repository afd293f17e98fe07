#include "tools/driver/reference.h"

#include "codegen/codegen.h"
#include "ir/arith/loop_index.h"
#include "ir/interp/bounded.h"
#include "ir/interp/bounded_run.h"
#include "ir/interp/producers.h"
#include "ir/interp/tensor.h"
#include "ir/visit.h"
#include "schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

namespace prunerc {
namespace {

/// Above this much arithmetic the unscheduled program is too slow to run whole; sampled outputs are
/// checked alone.
constexpr double kMaxReferenceFlops = 2e10;
/// Outputs evaluated in double, and block instances spent on them: about a quarter of a second.
constexpr int64_t kMaxSampled = 2048;
constexpr int64_t kMaxSampleSteps = 3'000'000;
/// The same on real inputs, which come on top: coarse arithmetic shows in any element.
constexpr int64_t kMaxRealSampled = 256;
constexpr int64_t kMaxRealSteps = 500'000;
/// Allowed error in units of sqrt(K) roundings of the largest value. Source: the probabilistic
/// bound of Higham and Mary 2019 with head-room for reassociated sums and vector math of a few ulp.
constexpr double kErrorFactor = 32;
/// The same in units of what one factor of a product may be off by, where tf32 is allowed.
constexpr double kTf32Factor = 8;
/// Whole numbers up to this leave a float room for sums of them in any order.
constexpr double kExactLargest = 1 << 20;

struct Facts {
  bool exact = true;         // small whole inputs give the same bits in every order of evaluation
  double reduction = 1;      // length of the longest reduction
  double roundoff = 0;       // the coarsest float type that a value passes through
  bool has_factors = false;  // a sum adds products of f32 elements
  bool computes_factors = false;  // and one of these is no input
};

// What a factor of these may be off by on the target (search/DESIGN.md, D17).
double factor_error_of(const ir::Target& target) {
  const bool is_gpu = target.kind != ir::TargetKind::kCpu;
  return is_gpu && target.allow_tf32 != 0 ? ir::kTf32Error : 0;
}

// Elements of inputs and zeros, as a copy with padding has them.
bool is_given(const std::set<ir::BufferId>& given, ir::Expr e) {
  if (const ir::Load* load = e.as<ir::Load>()) return given.count(load->buffer) > 0;
  if (const ir::FloatImm* imm = e.as<ir::FloatImm>()) return imm->value == 0;
  const ir::Select* select = e.as<ir::Select>();
  return select != nullptr && is_given(given, select->on_true) && is_given(given, select->on_false);
}

// What sums add, and the buffers that hold what is given.
void look_at_store(Facts& facts, std::set<ir::BufferId>& given, const ir::Store& store) {
  const ir::Expr term = ir::added_term(store);
  const ir::Mul* product = term.defined() ? term.as<ir::Mul>() : nullptr;
  if (product != nullptr && product->dtype == ir::DType::kF32) {
    const ir::Load* x = product->lhs.as<ir::Load>();
    const ir::Load* y = product->rhs.as<ir::Load>();
    if (x != nullptr && y != nullptr) {
      facts.has_factors = true;
      facts.computes_factors |= !is_given(given, product->lhs) || !is_given(given, product->rhs);
    }
  }
  if (is_given(given, store.value)) {
    given.insert(store.buffer);
  } else {
    given.erase(store.buffer);
  }
}

void look(Facts& facts, ir::Expr e) {
  ir::walk(e, [&](ir::Expr part) {
    if (ir::is_float(part.dtype())) {
      facts.roundoff = std::max(facts.roundoff, ir::unit_roundoff(part.dtype()));
    }
    if (part.as<ir::Div>() != nullptr) facts.exact = false;
    if (const ir::Call* call = part.as<ir::Call>()) {
      facts.exact &=
          call->intrinsic == ir::Intrinsic::kAbs || call->intrinsic == ir::Intrinsic::kFloor ||
          call->intrinsic == ir::Intrinsic::kCeil || call->intrinsic == ir::Intrinsic::kRound;
    }
    if (const ir::FloatImm* imm = part.as<ir::FloatImm>()) {
      facts.exact &= std::isinf(imm->value) || imm->value * 16 == std::floor(imm->value * 16);
    }
    return true;
  });
}

Facts facts_of(const ir::Program& program) {
  Facts facts;
  std::set<ir::BufferId> given;
  for (const ir::Buffer& buffer : program.buffers()) {
    if (buffer.role == ir::BufferRole::kInput) given.insert(buffer.id);
  }
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
        if (const ir::Store* store = s.as<ir::Store>()) look_at_store(facts, given, *store);
        if (const ir::Block* block = s.as<ir::Block>()) {
          double length = 1;
          for (const ir::IterVar& iter : block->iters) {
            const ir::IntImm* extent = iter.extent.as<ir::IntImm>();
            if (iter.kind == ir::IterKind::kReduce && extent != nullptr) {
              length *= static_cast<double>(extent->value);
            }
          }
          facts.reduction = std::max(facts.reduction, length);
        }
        return true;
      },
      [&](ir::Expr e) { look(facts, e); });
  // 8 * 8 * K must stay a whole number below 2^24; products of more factors leave that range, hence
  // the head-room.
  if (facts.reduction > (1 << 14) || facts.roundoff > ir::unit_roundoff(ir::DType::kF32)) {
    facts.exact = false;
  }
  return facts;
}

ir::Tensor as_tensor(const codegen::ArtifactParam& param, const std::string& bytes) {
  ir::Tensor tensor(param.dtype, param.shape);
  if (bytes.size() == tensor.data.size() && !bytes.empty()) {
    std::memcpy(tensor.data.data(), bytes.data(), bytes.size());
  }
  return tensor;
}

// The loop that runs along the block's last output axis, if the block writes that axis at one of
// its variables as it is.
ir::LoopId contiguous_loop(const ir::Program& program, ir::BlockId id) {
  const ir::LoopIndex index(program);
  const ir::Block* block = index.block(id);
  if (block == nullptr || block->writes.empty() || block->writes[0].region.empty()) return {};
  const ir::Var* last = block->writes[0].region.back().min.as<ir::Var>();
  if (last == nullptr) return {};
  for (const ir::IterVar& iter : block->iters) {
    const ir::Var* bound = iter.binding.as<ir::Var>();
    if (iter.var->id != last->id || bound == nullptr) continue;
    for (const ir::Loop* loop : index.loops()) {
      if (loop->var->id == bound->id) return loop->id;
    }
  }
  return {};
}

}  // namespace

ir::Program reference_schedule(const ir::Program& base, const ir::Target& target) {
  schedule::Schedule scheduled(base);
  for (const ir::BlockId id : scheduled.blocks()) {
    schedule::Schedule attempt = scheduled.fork();
    const ir::LoopId loop = contiguous_loop(base, id);
    if (!loop.valid()) continue;
    const auto parts = attempt.split(loop, {-1, std::max<int64_t>(1, target.vector_bytes / 4)});
    if (!parts.ok()) continue;
    std::vector<ir::LoopId> order;
    for (const ir::LoopId other : attempt.loops_of(id)) {
      if (other != (*parts)[0] && other != (*parts)[1]) order.push_back(other);
    }
    order.insert(order.end(), parts->begin(), parts->end());
    if (!attempt.reorder(order).ok() || !attempt.vectorize(parts->back()).ok()) continue;
    // Refused where the outermost loop carries a sum.
    schedule::Schedule shared = attempt.fork();
    scheduled = shared.parallel(order.front()).ok() ? shared : attempt;
  }
  return scheduled.program();
}

bool References::has_whole_floats(const ir::Program& program) {
  const Facts facts = facts_of(program);
  return facts.exact && facts.roundoff > 0;
}

std::vector<runtime::InputSpec> References::inputs(const ir::Program& program, uint64_t seed,
                                                   Values values) {
  const bool exact = values == Values::kUsual && facts_of(program).exact;
  std::vector<runtime::InputSpec> specs;
  for (ir::BufferId id : program.params()) {
    if (program.buffer(id).role != ir::BufferRole::kInput) continue;
    specs.push_back({exact ? runtime::Fill::kSmallInt : runtime::Fill::kUniform,
                     hash_combine(seed, specs.size()),
                     {}});
  }
  return specs;
}

std::string References::describe_inputs(const ir::Program& program, uint64_t seed) {
  return fmt::format("{}, seed {}",
                     facts_of(program).exact ? "whole numbers in [-8, 8]" : "floats in [-1, 1)",
                     seed);
}

std::vector<ir::Tensor> References::tensors(const ir::Program& program, uint64_t seed,
                                            Values values) {
  std::vector<ir::Tensor> tensors;
  const std::vector<runtime::InputSpec> specs = inputs(program, seed, values);
  for (ir::BufferId id : program.params()) {
    const ir::Buffer& buffer = program.buffer(id);
    if (buffer.role != ir::BufferRole::kInput) continue;
    ir::Tensor tensor(buffer.dtype, ir::shape_of(buffer));
    const runtime::InputSpec& spec = specs[tensors.size()];
    runtime::fill_tensor(spec.fill, spec.seed, tensor.dtype, tensor.num_elements(),
                         tensor.data.data());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<void> References::run_unscheduled(const search::Task& task, const ir::Program& filled,
                                         uint64_t seed, double within_s, Expected* out) {
  if (task.flops > kMaxReferenceFlops) return {};
  // Candidates for a GPU are compared with what this machine's CPU computes.
  const ir::Target target =
      task.target.kind == ir::TargetKind::kCpu ? task.target : codegen::host_target(ir::Target{});
  const Result<codegen::Artifact> artifact =
      codegen::compile_cpu(reference_schedule(task.base, target), target, {});
  if (!artifact.ok()) return {};
  runtime::Job job;
  job.artifact = &*artifact;
  job.inputs = inputs(filled, seed);
  job.check = runtime::Check::kNone;
  job.want_outputs = true;
  job.run_limit_ns = static_cast<int64_t>(within_s * 1e9);
  runtime::JobOutcome ran = device_.run(job);
  if (ran.measurement.status == MeasureStatus::kCrash) {
    return error(Diag::kProgramInvalid, task.name,
                 "as it is written it crashes: " + ran.measurement.detail);
  }
  out->outputs = std::move(ran.outputs);
  return {};
}

namespace {

// Faults of the program itself, as opposed to what an evaluator cannot do.
bool is_fault(const Error& error) {
  switch (error.id()) {
    case Diag::kInterpOutOfBounds:
    case Diag::kInterpUninitialised:
    case Diag::kInterpUnwrittenOutput:
    case Diag::kInterpDivisionByZero:
    case Diag::kInterpIterRange: return true;
    default: return false;
  }
}

Error invalid(const search::Task& task, const ir::Program& filled, uint64_t seed,
              const Error& fault) {
  return error(
      Diag::kProgramInvalid, task.name,
      fmt::format("{}, on {}", fault.message(), References::describe_inputs(filled, seed)));
}

}  // namespace

// Small programs of a form that elements cannot be evaluated of alone.
Result<void> References::evaluate_all(const search::Task& task, const ir::Program& filled,
                                      uint64_t seed, Values values, Expected* out) {
  Result<std::vector<std::vector<ir::Reference>>> all = ir::run_bounded(
      task.base, tensors(filled, seed, values), {.factor_error = factor_error_of(task.target)});
  if (!all.ok()) {
    return is_fault(all.error()) ? invalid(task, filled, seed, all.error()) : Result<void>();
  }
  for (std::vector<ir::Reference>& output : *all) {
    std::vector<int64_t> positions(output.size());
    std::iota(positions.begin(), positions.end(), int64_t{0});
    out->positions.push_back(std::move(positions));
    out->references.push_back(std::move(output));
  }
  return {};
}

Result<void> References::evaluate_sample(const search::Task& task, const ir::Program& filled,
                                         uint64_t seed, Values values, Expected* out) {
  const std::vector<ir::Tensor> inputs = tensors(filled, seed, values);
  ir::ElementOptions options;
  const bool is_real = values == Values::kReal;
  options.max_steps = is_real ? kMaxRealSteps : kMaxSampleSteps;
  options.factor_error = factor_error_of(task.target);
  Result<ir::ElementEvaluator> evaluator = ir::ElementEvaluator::create(task.base, inputs, options);
  if (!evaluator.ok()) return evaluate_all(task, filled, seed, values, out);
  Rng rng(seed, 0x73616D70);
  int output_idx = 0;
  for (ir::BufferId id : task.base.params()) {
    const ir::Buffer& buffer = task.base.buffer(id);
    if (buffer.role != ir::BufferRole::kOutput) continue;
    const std::vector<int64_t> wanted =
        ir::sample_positions(ir::shape_of(buffer), is_real ? kMaxRealSampled : kMaxSampled, rng);
    std::vector<int64_t> positions;
    std::vector<ir::Reference> references;
    for (const int64_t position : wanted) {
      Result<ir::Reference> reference = evaluator->element(output_idx, position);
      if (!reference.ok()) {
        if (is_fault(reference.error())) return invalid(task, filled, seed, reference.error());
        // The budget is shared by all outputs; corners and edges come first.
        break;
      }
      positions.push_back(position);
      references.push_back(*reference);
    }
    out->positions.push_back(std::move(positions));
    out->references.push_back(std::move(references));
    ++output_idx;
  }
  return {};
}

Result<const References::Expected*> References::expected(const search::Task& task,
                                                         const ir::Program& filled, uint64_t seed,
                                                         double within_s, Values values) {
  const bool is_real = values == Values::kReal;
  const std::string key = fmt::format("{}/{}{}", task.key.hash, seed, is_real ? "/real" : "");
  if (key == last_key_) return &last_;
  Expected fresh;
  const Facts facts = facts_of(task.base);
  fresh.relative = kErrorFactor * std::sqrt(facts.reduction) * facts.roundoff;
  const Facts of_filled = facts_of(filled);
  fresh.tf32 = (facts.has_factors || of_filled.has_factors) && factor_error_of(task.target) > 0;
  // The operator as written may have no such products where what was made of it has.
  if (fresh.tf32 && !facts.has_factors)
    fresh.coarser = 2 * ir::kTf32Error / ir::unit_roundoff(ir::DType::kF32);
  if (fresh.tf32) fresh.relative += kTf32Factor * factor_error_of(task.target);
  // Sums of whole numbers may be no numbers of tf32.
  const bool computes_factors = facts.computes_factors || of_filled.computes_factors;
  fresh.exact = facts.exact && of_filled.exact && !(fresh.tf32 && computes_factors);
  // The evaluation first: a program that leaves its buffers is not run at all.
  PRUNERC_TRY_VOID(evaluate_sample(task, filled, seed, values, &fresh));
  if (!is_real) PRUNERC_TRY_VOID(run_unscheduled(task, filled, seed, within_s, &fresh));
  std::size_t num_sampled = 0;
  for (const auto& positions : fresh.positions) num_sampled += positions.size();
  if (fresh.outputs.empty() && num_sampled == 0 && !is_real) {
    return error(Diag::kInternal, std::string("neither the unscheduled program nor its elements "
                                              "could be evaluated"));
  }
  last_key_ = key;
  last_ = std::move(fresh);
  return &last_;
}

namespace {

/// How far outputs may be from a reference.
struct Allowance {
  double relative = 0;       // a part of the largest value
  double exact_largest = 0;  // nothing, where no value is larger
  double factor = 1;         // of bounds of single elements
};

// Compares all elements with the unscheduled program's; false and result.what at the first
// difference.
bool compare_all(const std::string& name, const ir::Tensor& reference, const ir::Tensor& got,
                 const Allowance& allowed, Comparison& result) {
  const int64_t n = reference.num_elements();
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double r = std::fabs(reference.get(i));
    if (std::isfinite(r)) largest = std::max(largest, r);
  }
  const bool is_exact = largest <= allowed.exact_largest ||
                        (allowed.exact_largest > 0 && !ir::is_float(reference.dtype));
  const double bound = is_exact ? 0 : allowed.relative * largest;
  for (int64_t i = 0; i < n; ++i) {
    const double r = reference.get(i);
    const double g = got.get(i);
    double difference = r == g || (std::isnan(r) && std::isnan(g)) ? 0 : std::fabs(r - g);
    // Integers of 64 bits that are one double.
    if (difference == 0 && !ir::is_float(got.dtype) && reference.get_int(i) != got.get_int(i))
      difference = 1;
    if (!(difference <= bound)) {
      result.what =
          fmt::format("{}[{}] is {:.9g}, the unscheduled program gives {:.9g} (allowed: {:.3g})",
                      name, i, g, r, bound);
      return false;
    }
    if (bound > 0) result.worst = std::max(result.worst, difference / bound);
    result.num_elems += std::isnan(r) ? 0 : 1;
  }
  return true;
}

// Compares chosen elements with their values in double.
bool compare_sample(const std::string& name, const std::vector<int64_t>& positions,
                    const std::vector<ir::Reference>& references, const ir::Tensor& got,
                    const Allowance& allowed, Comparison& result) {
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const double g = got.get(positions[i]);
    ir::Reference reference = references[i];
    reference.bound *= allowed.factor;
    const bool is_other_int = !ir::is_float(got.dtype) && reference.bound == 0 &&
                              got.get_int(positions[i]) != reference.integer;
    if (is_other_int || !ir::accepts(reference, got.dtype, g)) {
      result.what = fmt::format("{}[{}] is {:.9g}, in double it is {:.9g} (allowed: {:.3g})", name,
                                positions[i], g, reference.value, reference.bound);
      return false;
    }
    const bool says_something = !std::isnan(reference.value) && std::isfinite(reference.bound);
    result.num_exact += says_something ? 1 : 0;
  }
  return true;
}

std::string what_was_compared(const Comparison& result, bool to_the_bit) {
  std::string what;
  if (result.num_elems > 0) {
    what =
        fmt::format("{} outputs equal to the unscheduled program{}", result.num_elems,
                    to_the_bit ? std::string(" to the bit")
                               : fmt::format(", largest error {:.2g} of the bound", result.worst));
  }
  if (result.num_exact > 0) {
    what += fmt::format("{}{} of them in double", what.empty() ? "" : ", ", result.num_exact);
  }
  return what.empty() ? "no output is a number" : what;
}

}  // namespace

Result<Comparison> References::compare_with(const search::Task& task, const ir::Program& filled,
                                            uint64_t seed, const std::vector<std::string>& outputs,
                                            double within_s, Values values) {
  PRUNERC_TRY(const Expected* want, expected(task, filled, seed, within_s, values));
  Allowance allowed;
  allowed.factor = task.spec_error * want->coarser;
  allowed.relative = task.spec_error * want->relative;
  // Products of many factors are larger, and round.
  if (want->exact) allowed.exact_largest = kExactLargest;
  Comparison result;
  std::size_t i = 0;
  for (ir::BufferId id : task.base.params()) {
    const ir::Buffer& buffer = task.base.buffer(id);
    if (buffer.role != ir::BufferRole::kOutput) continue;
    if (i >= outputs.size())
      return error(Diag::kInternal, std::string("the kernel gave too few outputs"));
    const codegen::ArtifactParam param{std::string(buffer.name), buffer.dtype, ir::shape_of(buffer),
                                       codegen::ParamRole::kOutput};
    const ir::Tensor got = as_tensor(param, outputs[i]);
    if (outputs[i].size() != got.data.size())
      return error(Diag::kInternal, std::string("the kernel gave an output of another size"));
    if (i < want->outputs.size() &&
        !compare_all(param.name, as_tensor(param, want->outputs[i]), got, allowed, result)) {
      return result;
    }
    if (i < want->positions.size() && !compare_sample(param.name, want->positions[i],
                                                      want->references[i], got, allowed, result)) {
      return result;
    }
    ++i;
  }
  result.ok = true;
  const bool to_the_bit = allowed.relative == 0 || (allowed.exact_largest > 0 && result.worst == 0);
  result.what = what_was_compared(result, to_the_bit);
  if (want->tf32 && (result.num_elems == 0 || !to_the_bit))
    result.what += ", f32 factors within tf32";
  return result;
}

Result<Comparison> References::compare(const search::Task& task, uint64_t seed,
                                       const std::vector<std::string>& outputs, double within_s,
                                       Values values) {
  if (!task.is_derived()) return compare_with(task, task.base, seed, outputs, within_s, values);
  search::Task own = task;
  own.spec_error = 1;
  PRUNERC_TRY(Comparison result, compare_with(own, task.base, seed, outputs, within_s, values));
  if (!result.ok) return result;
  search::Task spec = search::make_task(task.name, task.spec, task.target);
  spec.spec_error = task.spec_error;
  PRUNERC_TRY(const Comparison beside,
              compare_with(spec, task.base, seed, outputs, within_s, values));
  result.ok = beside.ok;
  const std::string what = beside.ok ? beside.what : "of the operator as written: " + beside.what;
  result.what = beside.ok ? result.what + "; of the operator as written: " + what : what;
  return result;
}

}  // namespace prunerc

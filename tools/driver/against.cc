#include "tools/driver/against.h"

#include "ir/interp/bounded.h"
#include "ir/interp/bounded_run.h"
#include "ir/interp/elements.h"
#include "ir/support/rng.h"
#include "schedule/twin/shrink.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace prunerc {
namespace {

/// Of rounding in the reference, and of the last place of a value: room for another order and for
/// functions of a few units.
constexpr double kBoundFactor = 4;
constexpr double kUnits = 16;
/// A reference that costs more (schedule::cost_of) is evaluated at samples; about a second.
constexpr int64_t kMaxWholeCost = 3'000'000;
/// Elements of a large output, and block instances spent on them.
constexpr int64_t kMaxSampled = 512;
constexpr int64_t kMaxSampleSteps = 2'000'000;

/// How an input's floats are drawn; integers and bools are small in all of them.
struct Family {
  const char* words;
  double (*draw)(Rng& rng, double scale);
};

double uniform(Rng& rng) { return 2 * rng.uniform() - 1; }

// `scale` is what the narrowest type of the program bears.
constexpr Family kFamilies[] = {
    {"floats in [-1, 1)", [](Rng& rng, double) { return uniform(rng); }},
    {"whole numbers in [-8, 8]",
     [](Rng& rng, double) { return static_cast<double>(rng.below(17)) - 8; }},
    {"large floats, all of about one size",
     [](Rng& rng, double scale) { return scale * (1 + uniform(rng) / 16); }},
    {"floats of magnitudes from very small to large, of both signs",
     [](Rng& rng, double scale) {
       return uniform(rng) * std::exp2(std::log2(scale) * uniform(rng));
     }},
};

// A million, or for types with a short range what products of two bear.
double scale_of(const ir::Program& program) {
  for (const ir::Buffer& buffer : program.buffers()) {
    if (buffer.dtype == ir::DType::kF16) return 0x1p6;
  }
  return 0x1p20;
}

std::vector<ir::Tensor> draw_inputs(const ir::Program& program, const Family& family,
                                    uint64_t seed) {
  std::vector<ir::Tensor> inputs;
  const double scale = scale_of(program);
  for (const ir::BufferId id : program.params()) {
    const ir::Buffer& buffer = program.buffer(id);
    if (buffer.role != ir::BufferRole::kInput) continue;
    ir::Tensor tensor(buffer.dtype, ir::shape_of(buffer));
    const uint64_t own = hash_combine(seed, inputs.size());
    if (ir::is_float(buffer.dtype)) {
      Rng rng(own);
      for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set(i, family.draw(rng, scale));
    } else {
      runtime::fill_tensor(runtime::Fill::kUniform, own, buffer.dtype, tensor.num_elements(),
                           tensor.data.data());
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

/// What some elements of each output must be.
struct Wanted {
  std::vector<std::vector<int64_t>> positions;  // empty: all in order
  std::vector<std::vector<ir::Reference>> references;
};

Result<Wanted> sample(const ir::Program& spec, const std::vector<ir::Tensor>& inputs,
                      uint64_t seed) {
  Wanted out;
  PRUNERC_TRY(ir::ElementEvaluator evaluator,
              ir::ElementEvaluator::create(spec, inputs, {.max_steps = kMaxSampleSteps}));
  Rng rng(seed);
  for (const ir::BufferId id : spec.params()) {
    const ir::Buffer& buffer = spec.buffer(id);
    if (buffer.role != ir::BufferRole::kOutput) continue;
    std::vector<int64_t> positions;
    std::vector<ir::Reference> references;
    for (const int64_t at : ir::sample_positions(ir::shape_of(buffer), kMaxSampled, rng)) {
      const Result<ir::Reference> one =
          evaluator.element(static_cast<int>(out.positions.size()), at);
      if (!one.ok() && one.error().id() == Diag::kInterpStepBudget && !positions.empty()) break;
      if (!one.ok()) return one.error();
      positions.push_back(at);
      references.push_back(*one);
    }
    out.positions.push_back(std::move(positions));
    out.references.push_back(std::move(references));
  }
  return out;
}

Result<Wanted> evaluate(const ir::Program& spec, const std::vector<ir::Tensor>& inputs,
                        uint64_t seed) {
  if (schedule::cost_of(spec) > kMaxWholeCost) return sample(spec, inputs, seed);
  Result<std::vector<std::vector<ir::Reference>>> all = ir::run_bounded(spec, inputs);
  if (all.ok()) return Wanted{{}, std::move(all).value()};
  const Diag id = all.error().id();
  const bool is_large = id == Diag::kInterpStepBudget || id == Diag::kInterpTooLarge;
  return is_large ? sample(spec, inputs, seed) : Result<Wanted>(all.error());
}

double allowed(const ir::Reference& reference, ir::DType dtype) {
  const double units = kUnits * ir::unit_roundoff(dtype) * std::fabs(reference.value);
  return kBoundFactor * reference.bound + units;
}

// False and a description at the first element that differs.
bool compare(const ir::Buffer& buffer, const ir::Tensor& got, const std::vector<int64_t>& positions,
             const std::vector<ir::Reference>& references, ValueVerdict* verdict) {
  for (std::size_t i = 0; i < references.size(); ++i) {
    const int64_t at = positions.empty() ? static_cast<int64_t>(i) : positions[i];
    const ir::Reference& want = references[i];
    if (!std::isfinite(want.value) || !std::isfinite(want.bound)) {
      ++verdict->num_overflows;
      continue;
    }
    ++verdict->num_elems;
    const double found = got.get(at);
    const double most = allowed(want, buffer.dtype);
    const bool same = ir::is_float(buffer.dtype) || want.bound > 0
                          ? std::fabs(found - want.value) <= most
                          : got.get_int(at) == want.integer;
    if (same) continue;
    verdict->what = fmt::format("{}[{}] is {:.9g}, the reference gives {:.9g} (allowed: {:.3g})",
                                buffer.name, at, found, want.value, most);
    return false;
  }
  return true;
}

runtime::JobOutcome run(const codegen::Artifact& artifact, runtime::Device& device,
                        const std::vector<ir::Tensor>& inputs) {
  runtime::Job job;
  job.artifact = &artifact;
  for (const ir::Tensor& tensor : inputs) {
    job.inputs.push_back(
        {runtime::Fill::kBytes, 0,
         std::string_view(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size())});
  }
  job.want_outputs = true;
  return device.run(job);
}

void refuse(ValueVerdict* verdict, const std::string& what, const Family& family, uint64_t seed) {
  verdict->ok = false;
  verdict->what = fmt::format("{}, on {}, seed {}", what, family.words, seed);
}

Result<void> compare_family(const ir::Program& spec, const codegen::Artifact& artifact,
                            runtime::Device& device, const Family& family, uint64_t seed,
                            ValueVerdict* verdict) {
  const std::vector<ir::Tensor> inputs = draw_inputs(spec, family, seed);
  PRUNERC_TRY(const Wanted wanted, evaluate(spec, inputs, seed));
  const runtime::JobOutcome ran = run(artifact, device, inputs);
  const runtime::Measurement& m = ran.measurement;
  if (m.status == MeasureStatus::kDeviceLost) return error(Diag::kWorkerStart, m.detail);
  if (m.status == MeasureStatus::kTimeout)
    return error(Diag::kTimeLimit, std::string("the kernel"), "its limit: " + m.detail);
  if (!m.ok()) {
    refuse(verdict, fmt::format("{}: {}", describe(m.status), m.detail), family, seed);
    return {};
  }
  std::size_t o = 0;
  for (const ir::BufferId id : spec.params()) {
    const ir::Buffer& buffer = spec.buffer(id);
    if (buffer.role != ir::BufferRole::kOutput) continue;
    ir::Tensor got(buffer.dtype, ir::shape_of(buffer));
    if (o >= ran.outputs.size() || ran.outputs[o].size() != got.data.size()) {
      return error(Diag::kInternal, std::string("the kernel gave other outputs"));
    }
    if (!got.data.empty()) std::memcpy(got.data.data(), ran.outputs[o].data(), got.data.size());
    const std::vector<int64_t> none;
    if (!compare(buffer, got, wanted.positions.empty() ? none : wanted.positions[o],
                 wanted.references[o], verdict)) {
      refuse(verdict, verdict->what, family, seed);
      return {};
    }
    ++o;
  }
  return {};
}

}  // namespace

Result<ValueVerdict> compare_values(const ir::Program& spec, const codegen::Artifact& artifact,
                                    runtime::Device& device, uint64_t seed) {
  ValueVerdict verdict;
  std::string families;
  for (const Family& family : kFamilies) {
    PRUNERC_TRY_VOID(compare_family(spec, artifact, device, family, seed, &verdict));
    if (!verdict.ok) return verdict;
    families += fmt::format("{}{}", families.empty() ? "" : "; ", family.words);
  }
  verdict.what =
      fmt::format("{} elements within what rounding may do to the reference, on {} (seed {})",
                  verdict.num_elems, families, seed);
  if (verdict.num_overflows > 0) {
    verdict.what += fmt::format("; {} more are beyond what the reference itself can hold",
                                verdict.num_overflows);
  }
  return verdict;
}

}  // namespace prunerc

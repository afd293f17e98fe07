#include "tools/driver/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "codegen/codegen.h"
#include "ir/interp/tensor.h"
#include "ir/visit.h"

namespace prunerc {
namespace {

/// Above this much arithmetic the unscheduled program is too slow to run whole; sampled outputs are checked alone.
constexpr double kMaxReferenceFlops = 2e10;
/// Allowed error in units of sqrt(K) roundings of the largest value. Source: the probabilistic bound of Higham and Mary
/// 2019 with head-room for reassociated sums and vector math of a few ulp.
constexpr double kErrorFactor = 32;

double unit_roundoff(ir::DType t) {
  switch (t) {
    case ir::DType::kF64: return 0x1p-53;
    case ir::DType::kF32: return 0x1p-24;
    case ir::DType::kF16: return 0x1p-11;
    case ir::DType::kBF16: return 0x1p-8;
    case ir::DType::kI64:
    case ir::DType::kI32:
    case ir::DType::kI8:
    case ir::DType::kU8:
    case ir::DType::kBool: return 0;
  }
  PRUNERC_UNREACHABLE("dtype");
}

struct Facts {
  bool exact = true;      // small whole inputs give the same bits in every order of evaluation
  double reduction = 1;   // length of the longest reduction
  double roundoff = 0;    // the coarsest float type that a value passes through
};

void look(Facts& facts, ir::Expr e) {
  ir::walk(e, [&](ir::Expr part) {
    if (ir::is_float(part.dtype())) {
      facts.roundoff = std::max(facts.roundoff, unit_roundoff(part.dtype()));
    }
    if (part.as<ir::Div>() != nullptr) facts.exact = false;
    if (const ir::Call* call = part.as<ir::Call>()) {
      facts.exact &= call->intrinsic == ir::Intrinsic::kAbs ||
                     call->intrinsic == ir::Intrinsic::kFloor ||
                     call->intrinsic == ir::Intrinsic::kCeil ||
                     call->intrinsic == ir::Intrinsic::kRound;
    }
    if (const ir::FloatImm* imm = part.as<ir::FloatImm>()) {
      facts.exact &= std::isinf(imm->value) || imm->value * 16 == std::floor(imm->value * 16);
    }
    return true;
  });
}

Facts facts_of(const ir::Program& program) {
  Facts facts;
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
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
  // 8 * 8 * K must stay a whole number below 2^24; products of more factors leave that range, hence the head-room.
  if (facts.reduction > (1 << 14) || facts.roundoff > unit_roundoff(ir::DType::kF32)) {
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

}  // namespace

std::vector<runtime::InputSpec> References::inputs(const ir::Program& program, uint64_t seed) {
  const bool exact = facts_of(program).exact;
  std::vector<runtime::InputSpec> specs;
  for (ir::BufferId id : program.params()) {
    if (program.buffer(id).role != ir::BufferRole::kInput) continue;
    specs.push_back({exact ? runtime::Fill::kSmallInt : runtime::Fill::kUniform,
                     hash_combine(seed, specs.size()), {}});
  }
  return specs;
}

Result<const References::Expected*> References::expected(const search::Task& task, uint64_t seed) {
  const std::string key = fmt::format("{}/{}", task.key.hash, seed);
  if (const auto found = expected_.find(key); found != expected_.end()) return &found->second;
  Expected fresh;
  const Facts facts = facts_of(task.base);
  fresh.relative = facts.exact ? 0 : kErrorFactor * std::sqrt(facts.reduction) * facts.roundoff;
  if (task.flops <= kMaxReferenceFlops) {
    PRUNERC_TRY(const codegen::Artifact artifact, codegen::compile_cpu(task.base, task.target, {}));
    runtime::Job job;
    job.artifact = &artifact;
    job.inputs = inputs(task.base, seed);
    job.check = runtime::Check::kNone;
    job.want_outputs = true;
    runtime::JobOutcome ran = device_.run(job);
    if (ran.outputs.empty()) {
      return error(Diag::kInternal, "the unscheduled program did not run: " + ran.measurement.detail);
    }
    fresh.outputs = std::move(ran.outputs);
  }
  return &expected_.emplace(key, std::move(fresh)).first->second;
}

Result<Comparison> References::compare(const search::Task& task, uint64_t seed,
                                       const std::vector<std::string>& outputs) {
  PRUNERC_TRY(const Expected* want, expected(task, seed));
  Comparison result;
  std::size_t output_idx = 0;
  for (ir::BufferId id : task.base.params()) {
    const ir::Buffer& buffer = task.base.buffer(id);
    if (buffer.role != ir::BufferRole::kOutput) continue;
    const codegen::ArtifactParam param{std::string(buffer.name), buffer.dtype, ir::shape_of(buffer),
                                       codegen::ParamRole::kOutput};
    const ir::Tensor reference = as_tensor(param, want->outputs.at(output_idx));
    const ir::Tensor got = as_tensor(param, outputs.at(output_idx));
    ++output_idx;
    const int64_t n = reference.num_elements();
    double largest = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double r = std::fabs(reference.get(i));
      if (std::isfinite(r)) largest = std::max(largest, r);
    }
    const double bound = want->relative * largest + want->relative * 0x1p-100;
    for (int64_t i = 0; i < n; ++i) {
      const double r = reference.get(i);
      const double g = got.get(i);
      const double difference = r == g || (std::isnan(r) && std::isnan(g)) ? 0 : std::fabs(r - g);
      if (!(difference <= bound)) {
        result.what = fmt::format("{}[{}] is {:.9g}, expected {:.9g} within {:.3g}", param.name, i, g,
                                  r, bound);
        return result;
      }
      if (bound > 0) result.worst = std::max(result.worst, difference / bound);
    }
    result.num_elems += n;
  }
  result.ok = true;
  result.what = fmt::format("{} outputs equal to the unscheduled program, {}", result.num_elems,
                            want->relative == 0
                                ? std::string("to the bit")
                                : fmt::format("largest error {:.2g} of the bound", result.worst));
  return result;
}

}  // namespace prunerc

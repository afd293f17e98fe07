#include "search/algebra/form_check.h"

#include "ir/interp/bounded_run.h"
#include "ir/interp/interpreter.h"
#include "ir/map.h"
#include "ir/support/rng.h"
#include "schedule/twin/shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace prunerc::search::algebra {
namespace {

Result<ir::Program> shrunk(const ir::Program& program, const LoopAxes& loops,
                           std::span<const Axis> axes, int64_t scale) {
  schedule::LoopExtents wanted;
  for (const auto& [loop, axis] : loops) {
    const Axis& a = axes[static_cast<std::size_t>(axis)];
    if (a.twin > 0) wanted[loop] = std::min(a.extent, a.twin * scale);
  }
  return schedule::shrink(program, wanted, {});
}

/// So much of all elements must be finite in the operator, else nothing is known.
constexpr double kLeastCompared = 0.25;
/// Smaller constants are taken for what they are.
constexpr double kLeastCount = 8;

// The program with float constants replaced, and their reciprocals.
ir::Program with_constants(const ir::Program& program, const std::map<double, double>& constants) {
  ir::IrBuilder b(program);
  const ir::ExprFn replace = [&](ir::Expr e) -> ir::Expr {
    if (const auto* f = e.as<ir::FloatImm>()) {
      for (const auto& [from, to] : constants) {
        if (f->value == ir::round_to(e.dtype(), from)) return b.float_imm(to, e.dtype());
        if (f->value == ir::round_to(e.dtype(), 1 / from)) return b.float_imm(1 / to, e.dtype());
      }
      return e;
    }
    return ir::map_children(b, e, replace);
  };
  return b.finish(ir::map_exprs(b, program.root(), replace));
}

bool same_params(const ir::Program& a, const ir::Program& b) {
  if (a.params().size() != b.params().size()) return false;
  for (std::size_t i = 0; i < a.params().size(); ++i) {
    const ir::Buffer& x = a.buffer(a.params()[i]);
    const ir::Buffer& y = b.buffer(b.params()[i]);
    if (x.dtype != y.dtype || x.role != y.role || ir::shape_of(x) != ir::shape_of(y)) return false;
  }
  return true;
}

std::set<TermId> exps_of(const Spec& spec) {
  std::vector<TermId> roots;
  for (const Output& output : spec.outputs) roots.push_back(output.value);
  std::set<TermId> out;
  for (const TermId id : reachable(spec.graph, roots)) {
    const Term& t = spec.graph[id];
    const bool grows = t.op == TermOp::kCall &&
                       (t.intrinsic == ir::Intrinsic::kExp || t.intrinsic == ir::Intrinsic::kPow);
    if (grows) out.insert(id);
  }
  return out;
}

// How an input's floats are drawn: by element and by row.
struct Family {
  const char* words;
  double (*draw)(Rng& rng, int64_t element, int64_t row);
};

double normal(Rng& rng) {
  const double u = 1 - rng.uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * rng.uniform());
}

constexpr Family kFamilies[] = {
    {"usual floats", [](Rng& rng, int64_t, int64_t) { return normal(rng); }},
    {"floats 30 times as large", [](Rng& rng, int64_t, int64_t) { return 30 * normal(rng); }},
    {"floats in (0, 1)", [](Rng& rng, int64_t, int64_t) { return rng.uniform(); }},
    {"floats in (-1, 0)", [](Rng& rng, int64_t, int64_t) { return -rng.uniform(); }},
    {"small floats", [](Rng& rng, int64_t, int64_t) { return 1e-4 * normal(rng); }},
    {"a few huge floats",
     [](Rng& rng, int64_t, int64_t) { return rng.chance(0.05) ? 1e4 : normal(rng) / 100; }},
    {"rows far from zero",
     [](Rng& rng, int64_t, int64_t row) {
       return 1000 * (1 + static_cast<double>(row % 7) / 8) + normal(rng);
     }},
    {"rows of nearly equal floats",
     [](Rng& rng, int64_t, int64_t row) {
       return 1 + static_cast<double>(row % 7) / 8 + (row % 2 == 0 ? 0 : 1e-4 * normal(rng));
     }},
};

std::vector<ir::Tensor> draw_inputs(const ir::Program& program, const Family& family,
                                    uint64_t seed) {
  std::vector<ir::Tensor> inputs;
  for (const ir::BufferId id : program.params()) {
    const ir::Buffer& buffer = program.buffer(id);
    if (buffer.role != ir::BufferRole::kInput) continue;
    ir::Tensor tensor(buffer.dtype, ir::shape_of(buffer));
    Rng rng(seed, inputs.size());
    const int64_t row = tensor.shape.empty() ? 1 : std::max<int64_t>(1, tensor.shape.back());
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      if (ir::is_float(buffer.dtype)) {
        tensor.set(i, family.draw(rng, i, i / row));
      } else {
        tensor.set_int(i, rng.between(0, 3));
      }
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

// How far an element of the form is off, and how far the operator may be; an infinite error if the
// form is not finite where the operator is.
struct Excess {
  double error = 0, allowed = 0;
  bool is_compared = true;
};

Excess excess(const ir::Reference& wanted, ir::DType dtype, double spec, double form) {
  if (!ir::is_float(dtype)) return {spec == form ? 0 : HUGE_VAL, 0};
  const bool is_finite =
      std::isfinite(wanted.value) && std::isfinite(wanted.bound) && std::isfinite(spec);
  if (!is_finite) return {0, 0, false};
  const double allowed = std::max(wanted.bound, kNormalFactor * std::fabs(spec - wanted.value));
  if (!std::isfinite(form)) return {HUGE_VAL, allowed};
  return {std::fabs(form - wanted.value), allowed};
}

// The extents of the form's axes follow those of the parameters that they run over. False where one runs over
// none, or over a part of one.
bool follow_params(const Spec& form, const ir::Program& small_spec, std::vector<Axis>* axes) {
  std::vector<int64_t> twins(axes->size(), 0);
  const auto follow = [&](ir::BufferId buffer, std::span<const Subscript> index) {
    const auto& params = form.program.params();
    const auto at = std::find(params.begin(), params.end(), buffer);
    if (at == params.end()) return;
    const ir::BufferId other = small_spec.params()[static_cast<std::size_t>(at - params.begin())];
    const std::vector<int64_t> whole = ir::shape_of(form.program.buffer(buffer));
    const std::vector<int64_t> small = ir::shape_of(small_spec.buffer(other));
    for (std::size_t d = 0; d < index.size(); ++d) {
      const AxisId axis = index[d].plain();
      if (axis < 0) continue;
      const auto a = static_cast<std::size_t>(axis);
      if ((*axes)[a].extent == whole[d]) twins[a] = small[d];
    }
  };
  for (TermId id = 0; id < form.graph.size(); ++id) {
    if (form.graph[id].op == TermOp::kLoad) follow(form.graph[id].buffer, form.graph[id].index);
  }
  for (const Output& output : form.outputs) follow(output.buffer, output.index);
  for (std::size_t i = 0; i < axes->size(); ++i) {
    if (twins[i] == 0) return false;
    (*axes)[i].twin = twins[i];
  }
  return true;
}

double ratio(double error, double allowed) {
  return error == 0 ? 0 : error / std::max(allowed, 1e-300);
}

}  // namespace

namespace {

Result<SmallPair> of_same_shapes(SmallPair small) {
  if (same_params(small.spec, small.form)) return small;
  return error(Diag::kUnsupported, "a form whose parameters shrink to other shapes");
}

}  // namespace

Result<SmallPair> shrink_pair(const ir::Program& spec, const LoopAxes& spec_loops,
                              const Lowered& form, std::span<const Axis> axes, int64_t scale) {
  SmallPair small;
  PRUNERC_TRY(small.spec, shrunk(spec, spec_loops, axes, scale));
  PRUNERC_TRY(small.form, shrunk(form.program, form.loops, axes, scale));
  return of_same_shapes(std::move(small));
}

Result<SmallPair> shrink_programs(const ir::Program& spec, const ir::Program& form, int64_t scale) {
  PRUNERC_TRY(const Spec a, lift(spec));
  PRUNERC_TRY(const Spec b, lift(form));
  if (!a.kept.empty() || !b.kept.empty() || a.names_positions || b.names_positions) {
    return error(Diag::kUnsupported, "small extents of what is no term, or names a position");
  }
  SmallPair small;
  PRUNERC_TRY(small.spec, shrunk(spec, a.loops, a.axes, scale));
  std::vector<Axis> axes = b.axes;
  if (small.spec.params().size() != form.params().size() || !follow_params(b, small.spec, &axes)) {
    return error(Diag::kUnsupported, "a form with loops over no dimension of a parameter");
  }
  PRUNERC_TRY(small.form, shrunk(form, b.loops, axes, 1));
  return of_same_shapes(std::move(small));
}

SmallPair with_small_counts(const SmallPair& small, const Spec& spec, std::span<const Axis> axes,
                            int64_t scale) {
  std::map<double, double> counts;
  for (TermId id = 0; id < spec.graph.size(); ++id) {
    const Term& t = spec.graph[id];
    if (t.op != TermOp::kReduce) continue;
    double whole = 1, part = 1;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if ((t.bound >> i & 1) == 0) continue;
      whole *= static_cast<double>(axes[i].extent);
      part *=
          static_cast<double>(std::min(axes[i].extent, std::max<int64_t>(1, axes[i].twin * scale)));
    }
    if (whole >= kLeastCount) counts.try_emplace(whole, part);
  }
  return {with_constants(small.spec, counts), with_constants(small.form, counts)};
}

ir::FpvVerdict check_form(const SmallPair& small, double log2_error, uint64_t seed) {
  ir::FpvOptions options;
  options.log2_error = log2_error;
  options.seed = seed;
  options.max_steps = int64_t{1} << 26;
  return ir::check_equivalent(small.spec, small.form, options);
}

bool keeps_ranges(const Spec& spec, const Spec& form) {
  const std::set<TermId> known = exps_of(spec);
  const std::set<TermId> used = exps_of(form);
  return std::includes(known.begin(), known.end(), used.begin(), used.end());
}

NumericVerdict check_numerics(const SmallPair& small, uint64_t seed) {
  NumericVerdict verdict;
  int64_t num_elements = 0, num_compared = 0;
  for (const Family& family : kFamilies) {
    const std::vector<ir::Tensor> inputs = draw_inputs(small.spec, family, seed);
    const auto wanted = ir::run_bounded(small.spec, inputs);
    if (!wanted.ok()) {
      verdict.what = "not evaluated: " + wanted.error().message();
      return verdict;
    }
    const auto spec = ir::interpret(small.spec, inputs);
    const auto form = ir::interpret(small.form, inputs);
    if (!spec.ok() || !form.ok()) {
      verdict.what =
          "not evaluated: " + (spec.ok() ? form.error().message() : spec.error().message());
      return verdict;
    }
    for (std::size_t o = 0; o < wanted->size(); ++o) {
      double worst = 0, allowed = 0;
      for (std::size_t i = 0; i < (*wanted)[o].size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        const Excess e =
            excess((*wanted)[o][i], (*spec)[o].dtype, (*spec)[o].get(at), (*form)[o].get(at));
        ++num_elements;
        num_compared += e.is_compared ? 1 : 0;
        worst = std::max(worst, e.error);
        allowed = std::max(allowed, e.allowed);
        if (ratio(e.error, e.allowed) <= verdict.factor) continue;
        verdict.factor = ratio(e.error, e.allowed);
        verdict.what = fmt::format("{}: {} instead of {}", family.words, (*form)[o].get(at),
                                   (*wanted)[o][i].value);
      }
      verdict.norm_factor = std::max(verdict.norm_factor, ratio(worst, allowed));
    }
  }
  verdict.is_known = true;
  if (static_cast<double>(num_compared) < kLeastCompared * static_cast<double>(num_elements)) {
    verdict.what = "too few values are finite for numbers to be compared";
    return verdict;
  }
  if (verdict.factor <= 1) {
    verdict.numerics = NumericClass::kNormal;
  } else if (verdict.norm_factor <= kLooseFactor) {
    verdict.numerics = NumericClass::kLoose;
  }
  return verdict;
}

}  // namespace prunerc::search::algebra

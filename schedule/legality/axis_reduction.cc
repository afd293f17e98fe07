#include "schedule/legality/axis_reduction.h"

#include "ir/query.h"
#include "schedule/legality/canonical_nest.h"
#include "schedule/legality/elementwise.h"
#include "schedule/legality/instance_order.h"

#include <algorithm>
#include <optional>
#include <string>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

void collect_factors(Expr e, Factors* out) {
  if (const Mul* product = e.as<Mul>()) {
    collect_factors(product->lhs, out);
    collect_factors(product->rhs, out);
  } else if (const Div* quotient = e.as<Div>()) {
    collect_factors(quotient->lhs, out);
    Factors below;
    collect_factors(quotient->rhs, &below);
    out->below.insert(out->below.end(), below.above.begin(), below.above.end());
    out->above.insert(out->above.end(), below.below.begin(), below.below.end());
  } else {
    out->above.push_back(e);
  }
}

}  // namespace

Result<AxisReduction> read_axis_reduction(IrBuilder& b, const Dataflow& flow, std::size_t place,
                                          ExprKind op) {
  AxisReduction out;
  out.place = place;
  out.block = flow[place].block;
  const std::string fault = canonical_nest_fault(flow.program(), flow[place]);
  if (!fault.empty()) return not_simple(*out.block, "have its own loops alone: " + fault);
  if (!out.block->attrs.empty() || out.block->combiner != nullptr) {
    return not_simple(*out.block, "have no attributes, and no `combine`");
  }
  const std::optional<Reducer> reducer = match_reducer(*out.block);
  const Store* init = out.block->init.defined() ? out.block->init.as<Store>() : nullptr;
  const bool starts = init != nullptr && is_identity(op, init->value);
  const std::string what = op == ExprKind::kMax ? "maximum" : "sum";
  if (!reducer || reducer->op != op || !starts || !is_float(reducer->update.dtype())) {
    return not_simple(*out.block, "be a " + what + " of floats from its identity on");
  }
  // What is rescaled grows, on the way or of its own, beyond what the program holds.
  if (byte_size(reducer->update.dtype()) < 4) {
    return not_simple(*out.block, "be a " + what + " of f32 or f64");
  }
  out.reducer = *reducer;
  for (const IterVar& iter : out.block->iters) {
    if (iter.kind == IterKind::kSpatial) continue;
    if (out.axis != nullptr) return not_simple(*out.block, "reduce along one variable");
    out.axis = &iter;
  }
  if (out.axis == nullptr) return not_simple(*out.block, "reduce along one variable");
  if (!is_at_variables(*out.block, out.reducer.store->indices)) {
    return not_simple(*out.block, "write at its variables");
  }
  PRUNERC_TRY_VOID(check_sole_writer(flow, place));
  PRUNERC_TRY_VOID(check_sources_final(b, flow, place));
  PRUNERC_TRY_VOID(check_movable(b, flow, place));
  return out;
}

bool is_var(Expr e, const IterVar& iter) {
  const Var* var = e.as<Var>();
  return var != nullptr && var->id == iter.var->id;
}

bool is_at_variables(const Block& block, std::span<const Expr> indices) {
  std::size_t num_spatial = 0;
  bool fits = true;
  for (const IterVar& iter : block.iters) {
    const bool is_spatial = iter.kind == IterKind::kSpatial;
    const auto uses = std::count_if(indices.begin(), indices.end(),
                                    [&](Expr index) { return is_var(index, iter); });
    num_spatial += is_spatial ? 1 : 0;
    fits = fits && uses == (is_spatial ? 1 : 0);
  }
  return fits && indices.size() == num_spatial;
}

Factors factors_of(Expr product) {
  Factors out;
  collect_factors(product, &out);
  return out;
}

Expr without_float_casts(Expr e) {
  const Cast* cast = e.as<Cast>();
  while (cast != nullptr && is_float(cast->dtype) && is_float(cast->operand.dtype())) {
    e = cast->operand;
    cast = e.as<Cast>();
  }
  return e;
}

const Load* sole_factor(const AxisReduction& sum, BufferId buffer) {
  const auto reads = [&](Expr e) { return loads_from(e, buffer); };
  const Factors factors = factors_of(sum.reducer.update);
  const auto reader = std::find_if(factors.above.begin(), factors.above.end(), reads);
  if (reader == factors.above.end() || std::any_of(reader + 1, factors.above.end(), reads) ||
      std::any_of(factors.below.begin(), factors.below.end(), reads)) {
    return nullptr;
  }
  const Load* load = without_float_casts(*reader).as<Load>();
  if (load == nullptr || load->buffer != buffer) return nullptr;
  return std::any_of(load->indices.begin(), load->indices.end(), reads) ? nullptr : load;
}

Exponent exponent_of(Expr power) {
  const ir::Call* call = power.as<ir::Call>();
  if (call == nullptr || call->intrinsic != Intrinsic::kExp) return {};
  const Sub* distance = call->args[0].as<Sub>();
  const Load* load = distance == nullptr ? nullptr : distance->rhs.as<Load>();
  return load == nullptr ? Exponent{} : Exponent{distance->lhs, load};
}

}  // namespace prunerc::schedule

#include "ir/arith/evaluate.h"

#include "ir/evaluate_int.h"

namespace prunerc::ir {
namespace {

template <typename Id>
std::optional<int64_t> look_up(const std::vector<std::pair<Id, int64_t>>& values, Id id) {
  for (const auto& entry : values) {
    if (entry.first == id) return entry.second;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> evaluate(Expr e, const Point& at) {
  return evaluate_int(e, [&](Expr leaf) {
    const Var* v = leaf.as<Var>();
    return v != nullptr ? look_up(at.vars, v->id) : look_up(at.params, leaf.as<TileParam>()->id);
  });
}

}  // namespace prunerc::ir

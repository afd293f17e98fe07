// Values that travel between the lanes of a warp.
#include "codegen/cuda/printer.h"
#include "codegen/lower/analysis/kernel.h"
#include "codegen/lower/analysis/statements.h"
#include "ir/arith/prove.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>

namespace prunerc::codegen {

using namespace ir;

// The lane that others get an element of in this loop; null if it is no shuffle.
Expr KernelPrinter::shuffled_lane(const Loop& loop) {
  const Expr lane(loop.var);
  if (const auto step = attr_of(loop, kShuffleAttr)) return b_.add(lane, b_.int_imm(*step));
  const auto step = attr_of(loop, kExchangeAttr);
  const bool is_exchange =
      step && *step > 0 && *step < kWarpSize && std::has_single_bit(static_cast<uint64_t>(*step));
  return is_exchange ? exchange_partner(b_, lane, *step) : Expr();
}

// P[t] = P[t] op P[t + step], all lanes of a warp at once. Lanes beyond the condition compute what
// nobody uses. Or Q[t] = P[t] op P[t ^ step].
bool KernelPrinter::shuffle_loop(const Loop& loop) {
  const Expr lane = shuffled_lane(loop);
  if (!lane.defined()) return false;
  const std::optional<int64_t> down = attr_of(loop, kShuffleAttr);
  exchanges_ = !down;
  shuffle_body(loop.body, {down ? "pr_shfl_down" : "pr_shfl_xor",
                           down ? *down : *attr_of(loop, kExchangeAttr), lane});
  exchanges_ = false;
  return true;
}

// Is this what the other lane holds?
bool KernelPrinter::is_shuffled(const Load& load, const Shuffle& shuffle) {
  const std::size_t num_dims = num_lane_dims(load.buffer);
  return std::any_of(
      load.indices.begin(), load.indices.begin() + static_cast<std::ptrdiff_t>(num_dims),
      [&](Expr index) { return prove_equal(index, shuffle.lane, ranges_) == Proof::kYes; });
}

namespace {

// May a part of the value be left out?
bool is_lazy(Expr value) {
  bool found = false;
  walk(value, [&](Expr e) {
    found = found || e.as<Select>() != nullptr || e.as<And>() != nullptr || e.as<Or>() != nullptr;
    return !found;
  });
  return found;
}

}  // namespace

// Fetches what the statements read of other lanes, as far as no loop among them decides where,
// before any of them stores: what is fetched later may have changed, and a branch that a lane does
// not take would leave it out.
void KernelPrinter::fetch_shuffled(Stmt s, const Shuffle& shuffle) {
  const Store* only = s.as<Store>();
  const bool in_place = only != nullptr && !is_lazy(only->value);
  std::map<uint64_t, std::string> names;
  std::vector<VarId> inner;
  const auto fetch = [&](const Load& load) {
    const bool is_inner = std::any_of(inner.begin(), inner.end(),
                                      [&](VarId id) { return mentions(load.indices, id); });
    if (is_inner || loaded_.count(&load) != 0 || !is_shuffled(load, shuffle)) return;
    const std::string fetched = fmt::format("{}({}, {})", shuffle.function,
                                            element(load.buffer, load.indices), shuffle.step);
    std::string& name = names[Expr(&load).hash()];
    if (!in_place && name.empty()) {
      name = fresh("s");
      line(fmt::format("const {} {} = {};", register_type(load.dtype), name, fetched));
    }
    loaded_[&load] = in_place ? fetched : name;
  };
  const std::function<void(Stmt)> go = [&](Stmt part) {
    const Loop* loop = part.as<Loop>();
    if (loop != nullptr) inner.push_back(loop->var->id);
    for_each_child(part, go, [&](Expr value) {
      walk(value, [&](Expr e) {
        if (const Load* load = e.as<Load>()) fetch(*load);
        return true;
      });
    });
    if (loop != nullptr) inner.pop_back();
  };
  go(s);
}

void KernelPrinter::shuffle_body(Stmt s, const Shuffle& shuffle) {
  if (!s.defined()) return;
  if (const If* branch = s.as<If>()) {
    // Under it the other lane may have been simplified, to a constant even.
    const VarRanges::Mark mark = ranges_.mark();
    ranges_.assume(branch->condition);
    shuffle_body(branch->then_body, shuffle);
    return ranges_.rewind(mark);
  }
  fetch_shuffled(s, shuffle);
  std::vector<Stmt> parts = {s};
  if (const Seq* seq = s.as<Seq>()) parts.assign(seq->stmts.begin(), seq->stmts.end());
  for (Stmt part : parts) {
    const Loop* inner = part.as<Loop>();
    if (inner == nullptr) {
      statement(part);
      continue;
    }
    const VarRanges::Mark mark = ranges_.mark();
    ranges_.bind(inner->var, inner->extent);
    const std::string name = vars_[inner->var->id] = fresh("i");
    line("#pragma unroll");
    open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", name, index_value(inner->extent).text));
    shuffle_body(inner->body, shuffle);
    close();
    ranges_.rewind(mark);
  }
}

}  // namespace prunerc::codegen

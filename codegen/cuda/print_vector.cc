// Accesses of several elements at once.
#include "codegen/cuda/drop_guards.h"
#include "codegen/cuda/printer.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/analysis/vectorization.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "ir/map.h"
#include "ir/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace prunerc::codegen {

using namespace ir;

namespace {

constexpr int64_t kMaxVectorBytes = 16;
/// Of a thread, for copies that it has asked for; and bytes of one.
constexpr int64_t kInFlightRegisters = 32, kRegisterBytes = 4;
/// Copies that each take addresses or a condition of their own.
constexpr int64_t kOwnAddresses = 8;
/// The first with cp.async.
constexpr int64_t kAmpere = 80;

}  // namespace

// The flat index at lane 0, if the lanes are neighbours and the first one stands at a multiple of
// the vector.
std::optional<Expr> KernelPrinter::lane_base(BufferId id, std::span<const Expr> indices,
                                             const Loop& loop) {
  const int64_t lanes = loop.extent.as<IntImm>()->value;
  const Linear linear = to_linear(b_, flat(id, indices), ranges_);
  if (linear.overflow || linear.has_data) return std::nullopt;
  Linear base = linear;
  bool found = false;
  for (std::size_t t = 0; t < linear.terms.size(); ++t) {
    const Term& term = linear.terms[t];
    const bool lane = std::any_of(term.factors().begin(), term.factors().end(),
                                  [&](Expr atom) { return mentions(atom, loop.var->id); });
    if (!lane) continue;
    const bool is_index = term.degree == 1 && term.coef == 1 && term.atoms[0].as<Var>() != nullptr;
    if (!is_index || found) return std::nullopt;
    found = true;
    base = base - Linear::of(term);
  }
  if (!found || base.constant % lanes != 0 || coefficient_gcd(base) % lanes != 0) {
    return std::nullopt;
  }
  return to_expr(b_, base);
}

// Unrolled and nothing but a value for registers.
bool KernelPrinter::is_update(const Loop& loop) const {
  const If* branch = loop.body.as<If>();
  const Stmt body =
      branch != nullptr && !branch->else_body.defined() ? branch->then_body : loop.body;
  const Store* store = body.as<Store>();
  // What an iteration stores may decide about the next.
  if (branch != nullptr && ir::has_load(branch->condition)) return false;
  return loop.loop_kind == LoopKind::kUnrolled && loop.extent.as<IntImm>() != nullptr &&
         store != nullptr && buffer(store->buffer).scope == Scope::kLocal;
}

void KernelPrinter::vector_loop(const Loop& loop) {
  // A condition of all lanes stands before the access.
  const If* branch = loop.body.as<If>();
  if (branch != nullptr && !branch->else_body.defined() &&
      !mentions(branch->condition, loop.var->id)) {
    const VarRanges::Mark mark = ranges_.mark();
    open(fmt::format("if ({})", value(branch->condition).text));
    ranges_.assume(branch->condition);
    Loop inner = loop;
    inner.body = branch->then_body;
    vector_loop(inner);
    ranges_.rewind(mark);
    return close();
  }
  const Store* store = loop.body.as<Store>();
  const IntImm* extent = loop.extent.as<IntImm>();
  const bool may = store != nullptr && extent != nullptr && can_vectorize_here(loop);
  if (may && (vector_copy(loop, *store) || padded_copy(loop, *store) || vector_store(loop, *store)))
    return;
  if (store != nullptr && extent != nullptr && vector_update(loop, *store)) return;
  serial_loop(loop);
}

bool KernelPrinter::can_vectorize_here(const Loop& loop) {
  const Store& store = *loop.body.as<Store>();
  // A lane that reads what another one writes needs them in order.
  bool reads_own = false;
  walk(store.value, [&](Expr e) {
    const Load* load = e.as<Load>();
    reads_own = reads_own || (load != nullptr && load->buffer == store.buffer);
    return true;
  });
  return !reads_own && buffer(store.buffer).scope != Scope::kLocal;
}

namespace {

// Pieces of at most 16 bytes: (first lane, lanes).
std::vector<std::pair<int64_t, int64_t>> pieces(int64_t lanes, int64_t bytes) {
  const int64_t step = std::min(lanes, kMaxVectorBytes / bytes);
  std::vector<std::pair<int64_t, int64_t>> out;
  for (int64_t at = 0; at < lanes; at += step) out.push_back({at, step});
  return out;
}

bool is_vector(int64_t lanes, int64_t bytes) {
  const bool power = lanes > 1 && (lanes & (lanes - 1)) == 0;
  return power && lanes * bytes >= 2 && lanes * bytes <= 64;
}

}  // namespace

// dst[base .. base + n) = src[base' .. base' + n)
bool KernelPrinter::vector_copy(const Loop& loop, const Store& store) {
  const Load* load = store.value.as<Load>();
  const int64_t lanes = loop.extent.as<IntImm>()->value;
  const int64_t bytes = byte_size(store.value.dtype());
  if (load == nullptr || !is_vector(lanes, bytes)) return false;
  if (buffer(load->buffer).scope == Scope::kLocal) return false;
  const std::optional<Expr> to = lane_base(store.buffer, store.indices, loop);
  const std::optional<Expr> from = lane_base(load->buffer, load->indices, loop);
  if (!to || !from) return false;
  for (const auto& [at, n] : pieces(lanes, bytes)) {
    const Expr offset = b_.int_imm(at);
    const bool is_async = can_be_async(store, *load, n * bytes);
    line(fmt::format("{}<{}>({}, {});", is_async ? "pr_cp_async" : "pr_copy", n * bytes,
                     address(store.buffer, simplify(b_, b_.add(*to, offset), ranges_)),
                     address(load->buffer, simplify(b_, b_.add(*from, offset), ranges_))));
  }
  return true;
}

// cp.async copies 4, 8 or 16 bytes from global to shared memory.
bool KernelPrinter::can_be_async(const Store& store, const Load& load, int64_t bytes) const {
  return is_async_ && bytes >= 4 && b_.buffer(store.buffer).scope == Scope::kShared &&
         b_.buffer(load.buffer).scope == Scope::kGlobal;
}

namespace {

bool is_zero(Expr e) {
  const FloatImm* real = e.as<FloatImm>();
  const IntImm* integer = e.as<IntImm>();
  return (real != nullptr && real->value == 0 && !std::signbit(real->value)) ||
         (integer != nullptr && integer->value == 0);
}

}  // namespace

// dst[..] = condition of all lanes ? src[..] : 0; conditions may stand inside each other, as the
// padding of a window in that of a tile.
bool KernelPrinter::padded_copy(const Loop& loop, const Store& store) {
  Expr condition;
  Expr value_inside = store.value;
  while (const Select* select = value_inside.as<Select>()) {
    if (mentions(select->condition, loop.var->id) || !is_zero(select->on_false)) return false;
    condition =
        condition.defined() ? b_.logical_and(condition, select->condition) : select->condition;
    value_inside = select->on_true;
  }
  const Load* load = value_inside.as<Load>();
  const int64_t lanes = loop.extent.as<IntImm>()->value;
  const int64_t bytes = byte_size(store.value.dtype());
  if (load == nullptr || !condition.defined() || !is_vector(lanes, bytes) ||
      buffer(load->buffer).scope == Scope::kLocal) {
    return false;
  }
  const std::optional<Expr> to = lane_base(store.buffer, store.indices, loop);
  const VarRanges::Mark mark = ranges_.mark();
  ranges_.assume(condition);
  const std::optional<Expr> from = lane_base(load->buffer, load->indices, loop);
  ranges_.rewind(mark);
  if (!to || !from) return false;
  const std::string valid = value(condition).text;
  for (const auto& [at, n] : pieces(lanes, bytes)) {
    const Expr offset = b_.int_imm(at);
    const bool is_async = can_be_async(store, *load, n * bytes);
    line(fmt::format("{}<{}>({}, {}, {});", is_async ? "pr_cp_async_zfill" : "pr_copy_zfill",
                     n * bytes, address(store.buffer, simplify(b_, b_.add(*to, offset), ranges_)),
                     address(load->buffer, simplify(b_, b_.add(*from, offset), ranges_)), valid));
  }
  return true;
}

// A single element on its way to shared memory.
bool KernelPrinter::element_copy(const Store& store) {
  Expr condition;
  Expr inside = store.value;
  while (const Select* select = inside.as<Select>()) {
    if (!is_zero(select->on_false)) return false;
    condition =
        condition.defined() ? b_.logical_and(condition, select->condition) : select->condition;
    inside = select->on_true;
  }
  const Load* load = inside.as<Load>();
  const int64_t bytes = byte_size(store.value.dtype());
  if (load == nullptr || !can_be_async(store, *load, bytes)) return false;
  const Expr to = flat(store.buffer, store.indices);
  const VarRanges::Mark mark = ranges_.mark();
  if (condition.defined()) ranges_.assume(condition);
  const Expr from = flat(load->buffer, load->indices);
  ranges_.rewind(mark);
  const std::string places = address(store.buffer, to) + ", " + address(load->buffer, from);
  line(condition.defined()
           ? fmt::format("pr_cp_async_zfill<{}>({}, {});", bytes, places, value(condition).text)
           : fmt::format("pr_cp_async<{}>({});", bytes, places));
  return true;
}

namespace {

// The store that is all there is in a loop, below others over lanes and conditions, and its lanes in a
// vector; null if there is something else, or a barrier. Do conditions differ from iteration to iteration?
const Store* only_store(const Loop& around, int64_t* lanes, bool* is_guarded) {
  Stmt s = around.body;
  while (s.as<Store>() == nullptr) {
    const If* branch = s.as<If>();
    if (branch != nullptr && !branch->else_body.defined()) {
      *is_guarded = *is_guarded || mentions(branch->condition, around.var->id);
      s = branch->then_body;
      continue;
    }
    const Loop* loop = s.as<Loop>();
    if (loop == nullptr || attr_of(*loop, kSyncAttr).value_or(0) != 0) return nullptr;
    const bool is_vector = loop->loop_kind == LoopKind::kVectorized;
    if (!is_vector && !is_lane_axis(loop->loop_kind)) return nullptr;
    if (is_vector) *lanes *= constant_or(loop->extent, 1);
    s = loop->body;
  }
  return s.as<Store>();
}

// Iterations of so many that are written out, `most` or, for no rest to remain, down to half of it.
int64_t times_of(int64_t extent, int64_t most) {
  most = std::clamp<int64_t>(most, 1, std::max<int64_t>(extent, 1));
  for (int64_t n = most; 2 * n >= most; --n) {
    if (extent % n == 0) return n;
  }
  return most;
}

}  // namespace

// Of a loop that copies into shared memory: iterations that are written out, for all of them to load
// before the first one stores. cp.async needs no registers for that: beside products of warpgroups it
// has them for addresses, most of which are the same from tile to tile. Conditions of windows are not
// multiplied elsewhere, and nothing is that is written out already.
int64_t KernelPrinter::copies_in_flight(const Loop& loop) const {
  int64_t lanes = 1;
  bool is_guarded = false;
  const Store* store = only_store(loop, &lanes, &is_guarded);
  if (store == nullptr || copies_ > 1) return 1;
  Expr inside = store->value;
  while (const Select* select = inside.as<Select>()) inside = select->on_true;
  const Load* load = inside.as<Load>();
  if (load == nullptr || buffer(store->buffer).scope != Scope::kShared ||
      buffer(load->buffer).scope != Scope::kGlobal) {
    return 1;
  }
  const int64_t bytes = lanes * byte_size(store->value.dtype());
  const bool is_async = can_be_async(*store, *load, bytes) && target_.compute_capability >= kAmpere;
  const bool is_plain = !is_async && !is_guarded && store->value.as<Load>() != nullptr;
  if (!is_plain && !multiplies_in_warpgroups()) return 1;
  const int64_t registers = kInFlightRegisters * kRegisterBytes / std::max(bytes, kRegisterBytes);
  return times_of(constant_or(loop.extent, 1), is_plain   ? registers
                                               : is_async ? kOwnAddresses
                                                          : std::min(registers, kOwnAddresses));
}

// Loads that need no condition come in vectors, the result goes out as one; between, a loop.
bool KernelPrinter::vector_store(const Loop& loop, const Store& store) {
  const int64_t lanes = loop.extent.as<IntImm>()->value;
  const DType dtype = store.value.dtype();
  const int64_t bytes = byte_size(dtype);
  if (!is_vector(lanes, bytes)) return false;
  const std::optional<Expr> to = lane_base(store.buffer, store.indices, loop);
  if (!to) return false;
  line("{");
  ++indent_;
  std::vector<const ExprNode*> bound;
  const std::string lane = vars_[loop.var->id] = fresh("i");
  load_vectors(store.value, loop, lane, &bound);
  const std::string result = fresh("v");
  line(fmt::format("{} {}[{}];", memory_type(dtype), result, lanes));
  line("#pragma unroll");
  line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {2}[{0}] = {3};", lane, lanes, result,
                   to_memory(dtype, value(store.value)).text));
  for (const auto& [at, n] : pieces(lanes, bytes)) {
    line(fmt::format("pr_store<{}>({}, {} + {});", n * bytes,
                     address(store.buffer, simplify(b_, b_.add(*to, b_.int_imm(at)), ranges_)),
                     result, at));
  }
  for (const ExprNode* node : bound) loaded_.erase(node);
  close();
  return true;
}

// What goes to registers one by one, lanes or not, still comes in vectors.
bool KernelPrinter::vector_update(const Loop& loop, const Store& store) {
  if (buffer(store.buffer).scope != Scope::kLocal || fragments_.count(store.buffer) != 0) {
    return false;
  }
  if (vector_loads(store.value, loop).empty()) return false;
  const int64_t lanes = loop.extent.as<IntImm>()->value;
  line("{");
  ++indent_;
  std::vector<const ExprNode*> bound;
  const std::string lane = vars_[loop.var->id] = fresh("i");
  load_vectors(store.value, loop, lane, &bound);
  line("#pragma unroll");
  open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", lane, lanes));
  this->store(store);
  close();
  for (const ExprNode* node : bound) loaded_.erase(node);
  close();
  return true;
}

bool KernelPrinter::reads_vector(Expr e, const Loop& loop) {
  const Load* load = e.as<Load>();
  return load != nullptr && loaded_.count(e.node()) == 0 &&
         buffer(load->buffer).scope != Scope::kLocal &&
         is_vector(loop.extent.as<IntImm>()->value, byte_size(load->dtype)) &&
         lane_base(load->buffer, load->indices, loop).has_value();
}

namespace {

/// What may leave a load out: data of the lane itself, or what may do so for whole tiles.
enum class Hidden : uint8_t { kByLane, kByTiles };

// Does an index decide a part of it, or data that all lanes share?
bool may_hide_tiles(Expr condition, VarId lane) {
  if (const Not* n = condition.as<Not>()) return may_hide_tiles(n->operand, lane);
  if (condition.as<And>() != nullptr || condition.as<Or>() != nullptr) {
    const BinaryNode* both = as_binary(condition);
    return may_hide_tiles(both->lhs, lane) || may_hide_tiles(both->rhs, lane);
  }
  return !has_load(condition) || !mentions(condition, lane);
}

// f(load, hidden) of each load in e but those in subscripts.
template <typename F>
void for_each_load(Expr e, VarId lane, Hidden hidden, F&& f) {
  if (const Load* load = e.as<Load>()) return f(*load, hidden);
  Expr condition;
  if (const Select* select = e.as<Select>()) condition = select->condition;
  if (e.as<And>() != nullptr || e.as<Or>() != nullptr) condition = as_binary(e)->lhs;
  const bool by_tiles = condition.defined() && may_hide_tiles(condition, lane);
  for_each_child(e, [&](Expr child) {
    const bool hides = by_tiles && !child.is(condition);
    for_each_load(child, lane, hides ? Hidden::kByTiles : hidden, f);
  });
}

}  // namespace

// The loads that are done whatever conditions say; and those that data of the lane decide about, of elements that are there in
// any case and that no thread of the kernel writes. What an index or a row's data hide may be whole tiles.
std::vector<const Load*> KernelPrinter::vector_loads(Expr value, const Loop& loop) {
  std::vector<const Load*> out;
  for_each_load(value, loop.var->id, Hidden::kByLane, [&](const Load& load, Hidden hidden) {
    if (!reads_vector(&load, loop)) return;
    const auto may_be_done = [&] {
      return hidden == Hidden::kByLane && stored_.count(load.buffer) == 0 &&
             is_in_shape(b_, load.buffer, load.indices, ranges_);
    };
    if (always_loads(value, &load) || may_be_done()) out.push_back(&load);
  });
  return out;
}

void KernelPrinter::load_vectors(Expr value, const Loop& loop, const std::string& lane,
                                 std::vector<const ExprNode*>* bound) {
  const int64_t lanes = loop.extent.as<IntImm>()->value;
  for (const Load* load : vector_loads(value, loop)) {
    const auto same = std::find_if(bound->begin(), bound->end(), [&](const ExprNode* other) {
      return structural_equal(Expr(other), Expr(load));
    });
    std::string text = same != bound->end() ? loaded_.at(*same) : "";
    if (text.empty()) {
      const std::optional<Expr> from = lane_base(load->buffer, load->indices, loop);
      const int64_t bytes = byte_size(load->dtype);
      const std::string name = fresh("v");
      line(fmt::format("{} {}[{}];", memory_type(load->dtype), name, lanes));
      for (const auto& [at, n] : pieces(lanes, bytes)) {
        const Expr place = simplify(b_, b_.add(*from, b_.int_imm(at)), ranges_);
        line(fmt::format("pr_load<{}>({} + {}, {});", n * bytes, name, at,
                         address(load->buffer, place)));
      }
      text = to_register(load->dtype, {fmt::format("{}[{}]", name, lane)}).text;
    }
    loaded_[load] = std::move(text);
    bound->push_back(load);
  }
}

}  // namespace prunerc::codegen

// The way out of a warpgroup's registers. Each warp writes panels of its 16 rows into shared memory
// of its own, from where TMA stores them: no thread waits for memory, and no warp for another.
//     for reg in 64 { for e in 2 { C[row(lane, reg), column(lane, reg, e)] = .. } }
// ~>  for panel { until the panel's slot was read; stmatrix; fence; one lane: TMA store }
#include "codegen/cuda/printer.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/storage_plan.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::codegen {

using namespace ir;

namespace {

constexpr int64_t kWarpGroup = 128;
constexpr int64_t kWarpsPerGroup = kWarpGroup / kWarpSize;
/// What one row of 8 x 8 matrices of stmatrix takes. Units: columns.
constexpr int64_t kMatrix = 8;
constexpr int64_t kPair = 2;  // neighbours in one lane
constexpr int64_t kAlignment = 1024;
constexpr int64_t kMaxSlots = 4;
/// Of one panel; the widest that a box may have with a swizzle. Units: bytes.
constexpr int64_t kWidths[] = {128, 64, 32, 16};

// Is it how wgmma spreads sums? Source: PTX ISA, figure "WGMMA .m64nNk16 D fragment layout".
bool holds_sums(const Fragment& f) {
  if (f.lanes != kWarpGroup) return false;
  for (int lane = 0; lane < f.lanes; ++lane) {
    for (int reg = 0; reg < f.registers; ++reg) {
      const int64_t at[] = {lane, reg};
      const std::vector<int64_t> expected = {lane / 32 * 16 + lane / 4 % 8 + reg / 2 % 2 * 8,
                                             reg / 4 * 8 + lane % 4 * 2 + reg % 2};
      if (f.map.at(at) != expected) return false;
    }
  }
  return true;
}

// Rows or columns that conditions may count at once; `rest` is the place in one.
struct Step {
  int64_t size;
  Expr rest;
};

// Places in a fragment, said by rows and columns of panels instead of lanes and registers.
class Places {
 public:
  Places(IrBuilder& b, const VarRanges& ranges, std::vector<VarId> vars, std::vector<Step> steps,
         std::span<const Expr> within, std::span<const Expr> place)
      : b_(b), ranges_(ranges), vars_(std::move(vars)), steps_(std::move(steps)) {
    for (Expr e : within) within_.push_back(to_linear(b_, e, ranges_));
    for (Expr e : place) place_.push_back(to_linear(b_, e, ranges_));
  }

  // Null if e does not move by whole rows and columns.
  std::optional<Expr> rewritten(Expr e) const {
    const Linear linear = to_linear(b_, e, ranges_);
    if (linear.overflow || linear.has_data) return std::nullopt;
    if (!is_inside(linear)) return e;
    for (std::size_t d = 0; d < within_.size(); ++d) {
      for (const int64_t sign : {1, -1}) {
        const Linear rest = linear - within_[d] * sign;
        if (!is_inside(rest)) return to_expr(b_, rest + place_[d] * sign);
      }
    }
    return std::nullopt;
  }

  // 0 < slack, for a bound that is so.
  std::optional<Expr> condition(Expr e) const {
    const Lt* less = e.as<Lt>();
    const Le* most = e.as<Le>();
    if (less == nullptr && most == nullptr) return std::nullopt;
    const Expr slack = less != nullptr ? b_.sub(less->rhs, less->lhs)
                                       : b_.add(b_.sub(most->rhs, most->lhs), b_.int_imm(1));
    if (const std::optional<Expr> moved = rewritten(slack)) return b_.lt(b_.int_imm(0), *moved);
    // Where the matrix ends behind whole steps, the condition was divided by them: 0 < slack is
    // 0 < slack * size - rest with rest below size.
    for (const Step& step : steps_) {
      const Expr whole = b_.sub(b_.mul(slack, b_.int_imm(step.size)), step.rest);
      if (const std::optional<Expr> moved = rewritten(whole)) return b_.lt(b_.int_imm(0), *moved);
    }
    return std::nullopt;
  }

 private:
  bool is_inside(const Linear& linear) const {
    for (const Term& term : linear.terms) {
      for (Expr atom : term.factors()) {
        for (VarId id : vars_) {
          if (mentions(atom, id)) return true;
        }
      }
    }
    return false;
  }

  IrBuilder& b_;
  const VarRanges& ranges_;
  std::vector<VarId> vars_;
  std::vector<Step> steps_;
  std::vector<Linear> within_, place_;
};

// A nest's conditions and the store inside of them.
const Store* guarded_store(Stmt s, std::vector<Expr>* conditions) {
  while (const If* branch = s.as<If>()) {
    if (branch->else_body.defined()) return nullptr;
    for (Expr condition : conjuncts(branch->condition)) conditions->push_back(condition);
    s = branch->then_body;
  }
  return s.as<Store>();
}

bool is_packed(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

}  // namespace

// Below a condition on the lane a warp does not meet.
void KernelPrinter::find_staged_stores(Stmt s) {
  if (!s.defined() || failed_) return;
  const VarRanges::Mark mark = ranges_.mark();
  const Var* const saved_lane = lane_;
  if (const If* branch = s.as<If>()) {
    if (lane_ != nullptr && mentions(branch->condition, lane_->id)) return;
    ranges_.assume(branch->condition);
    find_staged_stores(branch->then_body);
    ranges_.rewind(mark);
    return find_staged_stores(branch->else_body);
  }
  if (const Loop* loop = s.as<Loop>()) {
    if (is_bulk_copy(*loop) || warp_intrinsic(*loop) != nullptr) return;
    ranges_.bind(loop->var, loop->extent);
    if (loop->loop_kind == LoopKind::kThreadX) lane_ = loop->var;
    if (lane_ != nullptr && attr_of(*loop, kFragmentAttr) == kPair) note_staged_store(*loop);
  }
  for_each_child(
      s, [&](Stmt child) { find_staged_stores(child); }, [](Expr) {});
  lane_ = saved_lane;
  ranges_.rewind(mark);
}

// What does not fit stays a store by each thread.
void KernelPrinter::note_staged_store(const Loop& outer) {
  const Loop* inner = outer.body.as<Loop>();
  if (inner == nullptr || kernel_.threads[0] != kWarpGroup || kernel_.threads[2] != 1) return;
  std::vector<Expr> conditions;
  const Store* store = guarded_store(inner->body, &conditions);
  if (store == nullptr || buffer(store->buffer).scope != Scope::kGlobal) return;
  const DType dtype = buffer(store->buffer).dtype;
  const int64_t elem = byte_size(dtype);
  if (!is_packed(dtype) && dtype != DType::kF32 && dtype != DType::kI32) return;
  if (loaded_buffers(kernel_.body).count(store->buffer) != 0 ||
      num_stores(kernel_.body, store->buffer) != 1) {
    return;
  }
  const Fragment* fragment = nullptr;
  for (BufferId id : loaded_buffers(outer.body)) {
    const auto it = fragments_.find(id);
    if (it != fragments_.end() && holds_sums(it->second)) fragment = &it->second;
  }
  if (fragment == nullptr || constant_or(outer.extent, 0) * kPair != fragment->registers) return;
  const int64_t all = fragment->tile[1];
  const auto* width = std::find_if(std::begin(kWidths), std::end(kWidths),
                                   [&](int64_t bytes) { return all * elem % bytes == 0; });
  if (width == std::end(kWidths)) return;

  StagedStore staged{.box = {}, .warp = b_.fresh_var("warp"), .panel = b_.fresh_var("panel")};
  staged.columns = *width / elem;
  staged.panels = all / staged.columns;
  ranges_.bind(inner->var, inner->extent);
  ranges_.bind(staged.warp, b_.int_imm(kWarpsPerGroup));
  ranges_.bind(staged.panel, b_.int_imm(staged.panels));
  Loop row = make_loop(b_, "row", kStagedRows), column = make_loop(b_, "column", staged.columns);
  const Expr rows = b_.int_imm(kStagedRows), columns = b_.int_imm(staged.columns);
  const Expr place[] = {b_.add(b_.mul(Expr(staged.warp), rows), Expr(row.var)),
                        b_.add(b_.mul(Expr(staged.panel), columns), Expr(column.var))};
  const Expr reg = b_.add(b_.mul(Expr(outer.var), b_.int_imm(kPair)), Expr(inner->var));
  const Expr in_lane[] = {Expr(lane_), reg};
  const auto digit = [&](int64_t lower, int64_t extent) {
    return b_.floormod(b_.floordiv(Expr(lane_), b_.int_imm(lower)), b_.int_imm(extent));
  };
  const Expr pair = b_.mul(digit(1, kMatrix / kPair), b_.int_imm(kPair));
  const std::vector<Step> steps = {{kMatrix, b_.add(pair, Expr(inner->var))},
                                   {kPair, Expr(inner->var)},
                                   {kMatrix, digit(kMatrix / kPair, kMatrix)}};
  const Places places(b_, ranges_, {lane_->id, outer.var->id, inner->var->id}, steps,
                      fragment->map.apply(b_, in_lane), place);

  std::vector<Expr> indices;
  for (Expr index : store->indices) {
    const std::optional<Expr> moved = places.rewritten(index);
    if (!moved) return;
    indices.push_back(*moved);
  }
  for (Expr& condition : conditions) {
    const std::optional<Expr> moved = places.condition(condition);
    if (!moved) return;
    condition = *moved;
  }
  // As a copy out of the output: the engine must leave out what the conditions leave out.
  const Expr shape[] = {rows, columns};
  const BufferId panel =
      b_.add_buffer("panel", dtype, shape, Scope::kShared, BufferRole::kIntermediate);
  const Expr at[] = {Expr(row.var), Expr(column.var)};
  column.body = if_all(b_, conditions, b_.store(panel, at, b_.load(store->buffer, indices)));
  row.body = b_.loop(column);
  const Stmt nest = b_.loop(row);
  Result<BulkCopy> box = match_bulk_copy(b_, *nest.as<Loop>(), ranges_);
  if (!box.ok() || box->window || box->rows != kStagedRows || box->columns != staged.columns)
    return;
  staged.box = *std::move(box);
  staged.has_guard = !conditions.empty();
  staged_.emplace(outer.id, std::move(staged));
}

// As many slots for each warp as there is room for; every tile begins with the first one.
void KernelPrinter::place_staged_stores(KernelText* out) {
  const int64_t warps = kernel_.num_threads() / kWarpSize;
  for (auto it = staged_.begin(); it != staged_.end();) {
    StagedStore& staged = it->second;
    const Buffer& to = buffer(staged.box.from);
    const int64_t elem = byte_size(to.dtype);
    staged.offset = align_up(out->shared_bytes, kAlignment);
    const int64_t limit = target_.smem_bytes_per_block;
    const auto end = [&] { return staged.offset + warps * staged.slots * staged.slot_bytes(elem); };
    staged.slots = std::min(kMaxSlots, staged.panels);
    while (staged.slots > 1 &&
           (staged.panels % staged.slots != 0 || (limit > 0 && end() > limit))) {
      --staged.slots;
    }
    if (limit > 0 && end() > limit) {
      it = staged_.erase(it);
      continue;
    }
    out->shared_bytes = end();
    const int64_t width = staged.columns * elem;
    const TensorMap map{.base = {},
                        .dtype = to.dtype,
                        .rows = staged.box.matrix_rows,
                        .cols = staged.box.matrix_columns,
                        .pitch_bytes = staged.box.pitch * elem,
                        .box_rows = kStagedRows,
                        .box_cols = staged.columns,
                        .swizzle_bytes = width > kSwizzlePiece ? width : 0};
    staged.map = static_cast<std::ptrdiff_t>(maps_.size());
    maps_.push_back({staged.box.from, map});
    ++it;
  }
}

bool KernelPrinter::loaded_global(Expr e) const {
  bool found = false;
  walk(e, [&](Expr x) {
    const Load* load = x.as<Load>();
    found = found || (load != nullptr && buffer(load->buffer).scope != Scope::kLocal);
    return !found;
  });
  return found;
}

// Two neighbours of a row, as values to store or as one register of stmatrix.
void KernelPrinter::staged_pair(const Loop& inner, const StagedStore& staged,
                                const std::string& to) {
  std::vector<Expr> conditions;
  const Store& store = *guarded_store(inner.body, &conditions);
  const DType dtype = store.value.dtype();
  std::vector<const ExprNode*> bound;
  const std::string lane = vars_[inner.var->id] = fresh("i");
  const std::string pair = fresh("v");
  // What the conditions keep inside of other buffers is read behind them.
  std::string guard;
  if (staged.has_guard && !loaded_global(store.value)) {
    conditions.clear();
  } else if (staged.has_guard) {
    for (Expr condition : conditions) {
      guard += (guard.empty() ? "" : " && ") + within(value(condition), Prec::kAnd);
    }
    guard = "if (" + guard + ") ";
  } else {
    load_vectors(store.value, inner, lane, &bound);
  }
  const Text element = value(store.value);
  const bool packs = is_packed(dtype);
  line(
      fmt::format("{} {}[{}]{};", register_type(dtype), pair, kPair, guard.empty() ? "" : " = {}"));
  line("#pragma unroll");
  line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {2}{3}[{0}] = {4};", lane, kPair, guard,
                   pair, packs && !element.unrounded.empty() ? element.unrounded : element.text));
  if (packs) {
    line(fmt::format("{} = pr_pack_{}({}[0], {}[1]);", to, dtype == DType::kF16 ? "f16" : "bf16",
                     pair, pair));
  } else {
    line(fmt::format("pr_store<{}>({}, {});", kPair * byte_size(dtype), to, pair));
  }
  for (const ExprNode* node : bound) loaded_.erase(node);
}

void KernelPrinter::staged_store(const Loop& outer, const StagedStore& staged) {
  const Loop& inner = *outer.body.as<Loop>();
  const DType dtype = buffer(staged.box.from).dtype;
  const bool packs = is_packed(dtype);
  const int64_t width = staged.columns * byte_size(dtype);
  const int64_t bytes = staged.slot_bytes(byte_size(dtype));
  const std::string slots = fresh("stage"), panel = fresh("p"), group = fresh("g");
  const std::string pair = vars_[outer.var->id] = fresh("i");
  const std::string to = fresh("to");
  const auto at = [&](const std::string& index) {
    if (width <= kSwizzlePiece) return to + " + " + index;
    return fmt::format("{} + pr_swizzled<{}, {}>({})", to, width, byte_size(dtype), index);
  };
  const auto unrolled = [&](const std::string& name, int64_t extent) {
    line("#pragma unroll");
    open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", name, extent));
  };
  const std::string warp =
      kernel_.threads[1] == 1 ? "tx / 32" : fmt::format("(ty * {} + tx / 32)", kWarpsPerGroup);
  line(fmt::format("unsigned char* const {} = smem + {} + {} * {};", slots, staged.offset, warp,
                   staged.slots * bytes));
  unrolled(panel, staged.panels);
  line(fmt::format("{0}* const {1} = ({0}*)({2} + {3} % {4} * {5});", memory_type(dtype), to, slots,
                   panel, staged.slots, bytes));
  line(fmt::format("pr_tma_store_wait<{}>();", staged.slots - 1));
  line("pr_sync_warp();");
  // Groups of columns that one stmatrix stores, or that are in a lane's next two registers.
  const int64_t columns = packs ? std::min(staged.columns, 2 * kMatrix) : kMatrix;
  const int64_t pairs = columns / kMatrix * 2;  // rows 0 to 7 and 8 to 15 of each matrix
  unrolled(group, staged.columns / columns);
  const std::string number = fresh("m");
  const std::string registers = fresh("w");
  if (packs) line(fmt::format("unsigned {}[{}];", registers, pairs));
  unrolled(number, pairs);
  line(fmt::format("const int {} = {} * {} + {} * {} + {};", pair, panel,
                   staged.columns / kMatrix * 2, group, pairs, number));
  staged_pair(inner, staged,
              packs ? fmt::format("{}[{}]", registers, number)
                    : at(fmt::format("(tx % 32 / 4 + {} * 8) * {} + {} * {} + tx % 4 * 2", number,
                                     staged.columns, group, columns)));
  close();
  if (packs) {
    const std::string second = columns > kMatrix ? " + tx % 32 / 16 * 8" : "";
    line(fmt::format(
        "pr_stmatrix_x{}({}, {});", pairs,
        at(fmt::format("tx % 16 * {} + {} * {}{}", staged.columns, group, columns, second)),
        registers));
  }
  close();
  line("pr_fence_proxy_async();");
  line("pr_sync_warp();");
  vars_[staged.warp->id] = "tx / 32";
  vars_[staged.panel->id] = panel;
  open("if (tx % 32 == 0)");
  line(fmt::format("pr_tma_store_2d(&map{}, {}, {}, {});", staged.map, to,
                   index_value(staged.box.x).text, index_value(staged.box.y).text));
  line("pr_tma_store_commit();");
  close();
  close();
}

}  // namespace prunerc::codegen

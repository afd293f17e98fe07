// Warp specialisation: in kernels with ring buffers (lower/gpu/multibuffer_bulk_copies.cc) one more
// row of threads is the producer, which starts bulk copies, the others are the consumer, which
// computes; where rows are lanes of warpgroups (ir/thread_axis.h) one more of these along thread.z is
// the producer. Both run the same loops; they wait for each other at two mbarriers for each stage of a
// ring buffer, `full` and `empty`, whose phases each of them counts in one bit for each stage.
#include "codegen/cuda/printer.h"
#include "codegen/lower/analysis/statements.h"
#include "ir/arith/prove.h"
#include "ir/arith/simplify.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::codegen {

using namespace ir;

namespace {

constexpr int64_t kMbarrierBytes = 8;
constexpr int64_t kWarpGroup = 128;
/// Rows and columns of one box. Source: cuTensorMapEncodeTiled.
constexpr int64_t kMaxBox = 256;
constexpr int64_t kUnswizzledAlignment = 128;
/// Blocks of a cluster. Source: CUDA programming guide, thread block clusters.
constexpr int64_t kMaxCluster = 8;

/// Registers of a thread of the producer and of the consumer, by the consumer's number of
/// warpgroups: together at most 64 Ki. One has all that it can name without. Source: PTX ISA,
/// setmaxnreg.
struct RegisterSplit {
  int64_t warpgroups;
  int producer, consumer;
};
constexpr RegisterSplit kRegisterSplits[] = {{2, 40, 232}, {3, 24, 160}};

// s without what the engine does.
Stmt without_copies(IrBuilder& b, Stmt s) {
  const Loop* loop = s.as<Loop>();
  if (loop != nullptr && is_bulk_copy(*loop)) return {};
  return map_stmts(b, s, [&](Stmt child) { return without_copies(b, child); });
}

std::optional<PixelBox> pixels_of(const BulkCopy& copy) {
  if (!copy.window) return std::nullopt;
  const PixelWindow& window = *copy.window;
  return PixelBox{.height = window.extents[0],
                  .width = window.extents[1],
                  .lower = window.lower,
                  .upper = {window.upper(0), window.upper(1)},
                  .steps = window.steps};
}

}  // namespace

Stmt KernelPrinter::own_statements() { return without_copies(b_, kernel_.body); }

// Blocks of a cluster may read the same boxes if all of them come to the same copies. A cluster is
// a permission: it is left out where blocks do not divide into whole ones.
void KernelPrinter::find_cluster() {
  const Loop* blocks = nullptr;
  for (const Loop* loop : kernel_.grid) {
    if (loop->loop_kind == LoopKind::kBlockX) blocks = loop;
  }
  const int64_t asked = blocks != nullptr ? attr_of(*blocks, kClusterAttr).value_or(1) : 1;
  if (asked < 2 || asked > kMaxCluster || kernel_.blocks[0] % asked != 0 ||
      kernel_.threads[0] != kWarpGroup) {
    return;
  }
  bool varies = false;
  walk(
      kernel_.body,
      [&](Stmt s) {
        const Loop* loop = s.as<Loop>();
        const bool differs =
            s.as<If>() != nullptr || (loop != nullptr && loop->extent.as<IntImm>() == nullptr);
        varies = varies || (differs && holds_bulk_copy(s));
        return !varies;
      },
      [](Expr) {});
  if (!varies) cluster_ = asked;
}

// With block.x = q * cluster + rank: does e not depend on the rank?
bool KernelPrinter::is_same_in_cluster(Expr e) {
  const auto it = std::find_if(kernel_.grid.begin(), kernel_.grid.end(), [](const Loop* loop) {
    return loop->loop_kind == LoopKind::kBlockX;
  });
  const Var* group = b_.fresh_var("group");
  const Var* rank = b_.fresh_var("rank");
  const VarRanges::Mark mark = ranges_.mark();
  ranges_.bind(group, b_.int_imm(kernel_.blocks[0] / cluster_));
  ranges_.bind(rank, b_.int_imm(cluster_));
  const VarMap map = {
      {(*it)->var->id, b_.add(b_.mul(Expr(group), b_.int_imm(cluster_)), Expr(rank))}};
  const bool same = !mentions(simplify(b_, substitute(b_, e, map), ranges_), rank->id);
  ranges_.rewind(mark);
  return same;
}

void KernelPrinter::find_ring_buffers(Stmt s) {
  if (!s.defined() || failed_) return;
  const VarRanges::Mark mark = ranges_.mark();
  if (const Loop* loop = s.as<Loop>()) {
    if (is_bulk_copy(*loop)) return note_bulk_copy(*loop);
    ranges_.bind(loop->var, loop->extent);
    if (const std::optional<int64_t> num_stages = attr_of(*loop, kRingAttr)) {
      RingBuffer& ring = ring_buffers_[loop->id];
      ring.num_stages = *num_stages;
      ring.name = std::to_string(ring_buffers_.size() - 1);
      open_ring_ = &ring;
    }
  }
  for_each_child(
      s, [&](Stmt child) { find_ring_buffers(child); }, [](Expr) {});
  ranges_.rewind(mark);
}

void KernelPrinter::note_bulk_copy(const Loop& loop) {
  const auto refuse = [&](std::string why) {
    failed_ = prunerc::error(Diag::kBulkForm, loop.id, std::move(why));
  };
  Result<BulkCopy> found = match_bulk_copy(b_, loop, ranges_);
  if (!found.ok()) return void(failed_ = found.error());
  if (open_ring_ == nullptr) return refuse("no loop around it has a ring buffer");
  if (stored_buffers(kernel_.body).count(found->from) != 0) {
    return refuse("its kernel writes what it copies");
  }
  const Buffer& to = buffer(found->to);
  const auto swizzle = storage_.swizzles.find(found->to);
  const bool is_swizzled = swizzle != storage_.swizzles.end();
  const int64_t elem = byte_size(to.dtype);
  BulkLoad load{.copy = *std::move(found)};
  const int64_t width = is_swizzled ? swizzle->second / elem : load.copy.columns;
  load.box_rows = load.copy.rows;
  while (load.box_rows > kMaxBox && load.box_rows % 2 == 0) load.box_rows /= 2;
  load.box_columns = width;
  if (cluster_ > 1 && !load.copy.window && is_same_in_cluster(load.copy.y) &&
      is_same_in_cluster(load.copy.x)) {
    while (load.num_boxes() % cluster_ != 0 && load.box_rows % (2 * kSwizzleRows) == 0) {
      load.box_rows /= 2;
    }
    load.is_shared = load.num_boxes() % cluster_ == 0;
  }
  const std::size_t rank = to.shape.size();
  const int64_t alignment = is_swizzled ? kSwizzleRows * swizzle->second : kUnswizzledAlignment;
  const bool whole_rows =
      is_swizzled || load.copy.columns == to.shape[rank - 1].as<IntImm>()->value;
  if (load.copy.columns % width != 0 || width > kMaxBox || load.box_rows > kMaxBox || !whole_rows ||
      !is_multiple(load.copy.base[rank - 1], width) ||
      !is_multiple(flat(load.copy.to, load.copy.base), alignment / elem) ||
      (load.copy.rows > load.box_rows && load.box_rows * width * elem % alignment != 0)) {
    return refuse("its box does not fill aligned rows of '" + std::string(to.name) + "'");
  }
  const TensorMap map{.base = {},
                      .dtype = to.dtype,
                      .rows = load.copy.matrix_rows,
                      .cols = load.copy.matrix_columns,
                      .pitch_bytes = load.copy.pitch * elem,
                      .box_rows = load.box_rows,
                      .box_cols = load.box_columns,
                      .swizzle_bytes = is_swizzled ? swizzle->second : 0,
                      .pixels = pixels_of(load.copy)};
  const KernelMap wanted{load.copy.from, map};
  auto it = std::find(maps_.begin(), maps_.end(), wanted);
  if (it == maps_.end()) it = maps_.insert(maps_.end(), wanted);
  load.map = it - maps_.begin();
  open_ring_->bytes += load.copy.rows * load.copy.columns * elem;
  open_ring_->buffers.insert(load.copy.to);
  open_ring_->is_shared = open_ring_->is_shared || load.is_shared;
  loads_.emplace(loop.id, std::move(load));
}

// Are its tiles read by anything else than wgmma?
bool KernelPrinter::is_read_by_threads(const RingBuffer& ring, Stmt s) const {
  const Loop* loop = s.as<Loop>();
  if (loop != nullptr && is_bulk_copy(*loop)) return false;
  const TensorIntrinsic* intrinsic = loop != nullptr ? warp_intrinsic(*loop) : nullptr;
  if (intrinsic != nullptr && is_wgmma(*intrinsic)) return false;
  if (s.as<Store>() != nullptr) {
    const std::set<BufferId> read = loaded_buffers(s);
    return std::any_of(read.begin(), read.end(),
                       [&](BufferId id) { return ring.buffers.count(id) != 0; });
  }
  bool found = false;
  for_each_child(
      s, [&](Stmt child) { found = found || (child.defined() && is_read_by_threads(ring, child)); },
      [](Expr) {});
  return found;
}

void KernelPrinter::place_mbarriers(KernelText* out) {
  for (auto& [id, ring] : ring_buffers_) {
    out->shared_bytes = align_up(out->shared_bytes, kMbarrierBytes);
    ring.offset = out->shared_bytes;
    out->shared_bytes += 2 * kMbarrierBytes * ring.num_stages;
    ring.is_read_by_threads = is_read_by_threads(ring, kernel_.body);
  }
  find_overlaps(kernel_.body);
}

void KernelPrinter::find_overlaps(Stmt s) {
  if (!s.defined()) return;
  const VarRanges::Mark mark = ranges_.mark();
  if (const Loop* loop = s.as<Loop>()) {
    const auto it = ring_buffers_.find(loop->id);
    if (it != ring_buffers_.end()) it->second.overlaps = overlaps_products(*loop, it->second);
    ranges_.bind(loop->var, loop->extent);
  }
  for_each_child(
      s, [&](Stmt child) { find_overlaps(child); }, [](Expr) {});
  ranges_.rewind(mark);
}

// Does the consumer do nothing but one group of products an iteration? Then it is issued while the
// one before is in flight, whose stage is released behind that.
bool KernelPrinter::overlaps_products(const Loop& loop, const RingBuffer& ring) {
  if (ring.is_read_by_threads || ring.num_stages < 2) return false;
  // Behind the loop the last stage is released: it must have run.
  const std::optional<int64_t> extent = constant_value(loop.extent);
  const Expr one = b_.int_imm(1);
  if (extent ? *extent < 2 : prove(b_.le(one, loop.extent), ranges_) != Proof::kYes) return false;
  return only_multiplies(without_copies(b_, loop.body));
}

std::size_t KernelPrinter::producer_axis() const {
  const bool in_rows = rows_of_lanes(kWarpGroup, kernel_.threads[0], kernel_.threads[1]) > 1;
  return in_rows && multiplies_in_warpgroups() ? 2 : 1;
}

void KernelPrinter::begin_mbarriers() {
  const int64_t consumers = kernel_.num_threads();
  const int64_t rows = kernel_.threads[1] * kernel_.threads[2];
  for (const auto& [id, ring] : ring_buffers_) {
    line(fmt::format("pr_u64* const full{} = (pr_u64*)(smem + {});", ring.name, ring.offset));
    line(fmt::format("pr_u64* const empty{0} = full{0} + {1};", ring.name, ring.num_stages));
  }
  open(producer_axis() == 2 ? "if (tx == 0 && ty == 0 && tz == 0)" : "if (tx == 0 && ty == 0)");
  for (const auto& [id, ring] : ring_buffers_) {
    open(fmt::format("for (int i = 0; i < {}; ++i)", ring.num_stages));
    line(fmt::format("pr_mbar_init(full{} + i, 1);", ring.name));
    // Blocks that a box goes to must all be done with its place.
    line(fmt::format(
        "pr_mbar_init(empty{} + i, {});", ring.name,
        (ring.is_read_by_threads ? consumers : rows) * (ring.is_shared ? cluster_ : 1)));
    close();
  }
  line("pr_fence_mbar_init();");
  close();
  line(cluster_ > 1 ? "pr_cluster_sync();" : "pr_sync();");
}

// The statements of one role, or of all threads; what is on its way out of shared memory must have
// been read before that goes.
void KernelPrinter::one_role(Stmt body) {
  statement(body);
  if (!staged_.empty() && role_ != Role::kProducer) line("pr_tma_store_wait<0>();");
}

// The kernel's body in both roles; its outermost Allocs are those of the ring buffers.
void KernelPrinter::both_roles(Stmt body) {
  while (const Alloc* alloc = body.as<Alloc>()) {
    if (buffer(alloc->buffer).scope != Scope::kShared) break;
    declare_shared(alloc->buffer);
    body = alloc->body;
  }
  begin_mbarriers();
  const bool has_plane = producer_axis() == 2;
  const auto split =
      std::find_if(std::begin(kRegisterSplits), std::end(kRegisterSplits), [&](const auto& one) {
        return one.warpgroups * kWarpGroup == kernel_.num_threads() &&
               (kernel_.threads[0] == kWarpGroup || has_plane);
      });
  const bool splits = split != std::end(kRegisterSplits);
  const auto phases = [&](const char* start) {
    for (const auto& [id, ring] : ring_buffers_) {
      line(fmt::format("unsigned phase{} = {};", ring.name, start));
    }
  };
  open(fmt::format("if ({} == {})", has_plane ? "tz" : "ty", kernel_.threads[producer_axis()]));
  if (splits) line(fmt::format("pr_reg_dec<{}>();", split->producer));
  open(has_plane ? "if (tx == 0 && ty == 0)" : "if (tx == 0)");
  phases("~0u");  // no stage was ever full: the first wait for each is over
  role_ = Role::kProducer;
  statement(body);
  close();
  --indent_;
  line("} else {");
  ++indent_;
  if (splits) line(fmt::format("pr_reg_inc<{}>();", split->consumer));
  phases("0");
  role_ = Role::kConsumer;
  one_role(body);
  role_ = Role::kBoth;
  close();
  // Nobody goes while others may still write into its memory or arrive at its mbarriers.
  if (cluster_ > 1) line("pr_cluster_sync();");
}

bool KernelPrinter::belongs_to_other_role(Stmt s) const {
  const Loop* loop = s.as<Loop>();
  if (role_ == Role::kConsumer) return loop != nullptr && is_bulk_copy(*loop);
  return role_ == Role::kProducer && !holds_bulk_copy(s);
}

// The loop's body, between the waits of its ring buffer.
void KernelPrinter::loop_body(const Loop& loop) {
  const auto it = ring_buffers_.find(loop.id);
  if (it == ring_buffers_.end()) return statement(loop.body);
  const RingBuffer& ring = it->second;
  const std::string full = "full" + ring.name, empty = "empty" + ring.name;
  const std::string at = ring.stage = fresh("at");
  line(fmt::format("const int {} = {} % {};", at, vars_.at(loop.var->id), ring.num_stages));
  line(fmt::format("pr_mbar_wait({} + {}, phase{} >> {} & 1);",
                   role_ == Role::kProducer ? empty : full, at, ring.name, at));
  line(fmt::format("phase{} ^= 1u << {};", ring.name, at));
  if (role_ == Role::kProducer)
    line(fmt::format("pr_mbar_expect_tx({} + {}, {});", full, at, ring.bytes));
  const RingBuffer* const outer = std::exchange(current_ring_, &ring);
  statement(loop.body);
  current_ring_ = outer;
  if (role_ == Role::kProducer) return;
  if (!ring.overlaps) return release(ring, at, "");
  const std::string number = vars_.at(loop.var->id);
  release(ring, fmt::format("({} + {}) % {}", at, ring.num_stages - 1, ring.num_stages),
          number + " > 0");
}

// The consumer is done with a stage.
void KernelPrinter::release(const RingBuffer& ring, const std::string& stage,
                            const std::string& condition) {
  const std::string rest = condition.empty() ? "" : " && " + condition;
  if (ring.is_shared && ring.is_read_by_threads) {
    for (int64_t rank = 0; rank < cluster_; ++rank) {
      line(fmt::format("pr_mbar_arrive_at(empty{} + {}, {});", ring.name, stage, rank));
    }
  } else if (ring.is_shared) {
    // One lane for each block.
    line(fmt::format("if (tx < {}{}) pr_mbar_arrive_at(empty{} + {}, tx);", cluster_, rest,
                     ring.name, stage));
  } else {
    const std::string who = ring.is_read_by_threads ? "" : "if (tx == 0" + rest + ") ";
    line(fmt::format("{}pr_mbar_arrive(empty{} + {});", who, ring.name, stage));
  }
}

// Behind a loop whose last group of products is in flight.
void KernelPrinter::end_ring(const Loop& loop) {
  const auto it = ring_buffers_.find(loop.id);
  if (role_ != Role::kConsumer || it == ring_buffers_.end() || !it->second.overlaps) return;
  line("pr_wgmma_wait<0>();");
  const Expr last =
      b_.floormod(b_.sub(loop.extent, b_.int_imm(1)), b_.int_imm(it->second.num_stages));
  release(it->second, within(index_value(simplify(b_, last, ranges_)), Prec::kMul), "");
}

// Where the box at this row and column comes from: what an instruction takes of coordinates.
std::string KernelPrinter::bulk_source(const BulkLoad& load, int64_t row, int64_t column) {
  const auto text = [&](Expr e) { return index_value(simplify(b_, e, ranges_)).text; };
  const std::string x = text(b_.add(load.copy.x, b_.int_imm(column)));
  if (!load.copy.window) return x + ", " + text(b_.add(load.copy.y, b_.int_imm(row)));
  const PixelWindow& window = *load.copy.window;
  const Expr number = b_.add(window.first, b_.int_imm(row));
  const Expr width = b_.int_imm(window.bases[1]), height = b_.int_imm(window.bases[0]);
  const auto place = [&](Expr digit, std::size_t d) {
    return text(b_.add(b_.mul(digit, b_.int_imm(window.steps[d])), b_.int_imm(window.lower[d])));
  };
  const Expr line = b_.floordiv(number, width);
  return fmt::format("{}, {}, {}, {}, {}, {}", x, place(b_.floormod(number, width), 1),
                     place(b_.floormod(line, height), 0),
                     text(b_.add(b_.floordiv(line, height), window.image)), text(window.offset[1]),
                     text(window.offset[0]));
}

void KernelPrinter::bulk_loop(const Loop& loop) {
  const BulkLoad& load = loads_.at(loop.id);
  const std::size_t rank = load.copy.base.size();
  int64_t num_started = 0;
  for (int64_t column = 0; column < load.copy.columns; column += load.box_columns) {
    for (int64_t row = 0; row < load.copy.rows; row += load.box_rows) {
      std::vector<Expr> to = load.copy.base;
      to[rank - 2] = b_.add(to[rank - 2], b_.int_imm(row));
      to[rank - 1] = b_.add(to[rank - 1], b_.int_imm(column));
      const std::string box = fmt::format(
          "{}, &map{}, {}, full{} + {}", unswizzled_address(load.copy.to, flat(load.copy.to, to)),
          load.map, bulk_source(load, row, column), current_ring_->name, current_ring_->stage);
      if (!load.is_shared) {
        line(fmt::format("pr_tma_load_{}({});", load.copy.window ? "im2col" : "2d", box));
        continue;
      }
      line(fmt::format("if (pr_block_x() % {} == {}) pr_tma_load_2d_multicast({}, {});", cluster_,
                       num_started++ % cluster_, box, (1 << cluster_) - 1));
    }
  }
}

Result<void> KernelPrinter::check_specialised() const {
  const Dim3& threads = kernel_.threads;
  const bool counts_groups = threads[2] == 1 || producer_axis() == 2;
  if (ring_buffers_.empty() || (counts_groups && threads[0] % kWarpSize == 0)) return {};
  return prunerc::error(Diag::kThreadKernel, ring_buffers_.begin()->first,
                        "beside bulk copies thread.x must have whole warps, and thread.z count "
                        "nothing but warpgroups");
}

}  // namespace prunerc::codegen

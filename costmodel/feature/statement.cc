#include "costmodel/feature/statement.h"

#include "costmodel/feature/layout.h"
#include "costmodel/latency/nest.h"
#include "ir/analysis/prologue.h"
#include "ir/support/check.h"
#include "ir/thread_axis.h"

#include <algorithm>

namespace prunerc::costmodel {
namespace {

/// Bytes that move together.
constexpr double kLineBytes = 64;
/// Of the eight places of a loop kind.
constexpr int kNumPlaces = 8;

/// Slots of one group in its order.
template <std::size_t kSize>
class Writer {
 public:
  Writer(LayoutBuilder* builder, std::array<Slot, kSize>* out) : builder_(*builder), out_(*out) {}
  void raw(Sym value) { out_[at_++] = builder_.raw(value); }
  void log(Sym value) { out_[at_++] = builder_.log(value); }
  bool is_full() const { return at_ == kSize; }

 private:
  LayoutBuilder& builder_;
  std::array<Slot, kSize>& out_;
  std::size_t at_ = 0;
};

/// What one statement does to one buffer.
struct BufferUse {
  Sym bytes, unique_bytes, lines, unique_lines;
  Sym by_loop = 0, serial = 0;  // truths
  Sym reuse_iterations = 0, reuse_bytes = 0, reuse_count = 0;
  Sym stride = 0;
};

/// What a store touches of one buffer.
struct Touched {
  ir::BufferId id;
  double element_bytes = 4;
  bool is_read = false, is_write = false;
  std::vector<const NestAccess*> accesses;
  std::vector<Sym> moves;  // truth, by loop: it changes some subscript and makes iterations
  std::vector<Sym> bytes;  // by depth: while the loops from there inwards run
  std::vector<Sym> box;    // elements by dimension, of all loops
};

class Extractor {
 public:
  Extractor(const NestTable& table, const StoreNest& store, const ir::Target& target,
            LayoutBuilder* builder)
      : table_(table), store_(store), loops_(store.nest->loops), target_(target), out_(*builder) {
    const std::size_t n = loops_.size();
    ParamSpace& space = table.space();
    inner_.assign(n + 1, Sym(1));
    Poly trips = 1;
    for (std::size_t d = n; d-- > 0;) {
      trips = space.multiply(trips, loops_[d].trips);
      inner_[d] = space.symbol(trips);
    }
    for (const NestLoop& loop : loops_) present_.push_back(less(1, loop.extent));
    for (const StoreAccess& access : store.accesses) touch(access);
    total_bytes_.assign(n + 1, Sym(0));
    for (Touched& t : touched_) {
      measure(&t);
      for (std::size_t d = 0; d <= n; ++d) total_bytes_[d] += t.bytes[d];
    }
  }

  StoreLayout extract() {
    StoreLayout out;
    write_loops(&out);
    for (const Touched& t : touched_) out.uses.push_back(write_use(t));
    write_curve(&out);
    write_scopes(&out);
    out.ops = out_.log(store_.ops.sum() * all());
    return out;
  }

 private:
  Sym all() const { return inner_[0]; }

  void touch(const StoreAccess& access) {
    const ir::BufferId id = access.access->buffer;
    auto at = std::find_if(touched_.begin(), touched_.end(),
                           [&](const Touched& t) { return t.id == id; });
    if (at == touched_.end()) {
      at = touched_.insert(at, Touched{});
      at->id = id;
      at->element_bytes = static_cast<double>(access.access->element_bytes);
    }
    at->accesses.push_back(access.access);
    (access.is_write ? at->is_write : at->is_read) = true;
  }

  // Of several accesses the largest in each dimension.
  std::vector<Sym> box(const Touched& t, std::size_t depth) const {
    std::vector<Sym> out = table_.declared_shape(t.id);
    for (std::size_t d = 0; d < out.size(); ++d) {
      Sym reach = 1;
      for (const NestAccess* a : t.accesses) reach = max(reach, a->facts[d].reach[depth]);
      out[d] = min(out[d], reach);
    }
    return out;
  }

  void measure(Touched* t) const {
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      Sym moves = 0;
      for (const NestAccess* a : t->accesses) moves = logical_or(moves, a->moves[i]);
      t->moves.push_back(logical_and(present_[i], moves));
    }
    for (std::size_t d = 0; d <= loops_.size(); ++d) {
      const std::vector<Sym> elements = box(*t, d);
      Sym bytes = t->element_bytes;
      for (const Sym extent : elements) bytes *= extent;
      t->bytes.push_back(bytes);
      if (d == 0) t->box = elements;
    }
  }

  void write_loops(StoreLayout* out) {
    Writer w(&out_, &out->loops);
    for (const StoreOps::ByType* t : {&store_.ops.of_float, &store_.ops.of_int}) {
      for (const Sym n : {t->mad, t->add_sub, t->mul, t->div_mod, t->compare, t->math, t->other}) {
        w.log(n * all());
      }
    }
    w.log(store_.ops.of_bool * all());
    w.log(store_.ops.select * all());
    for (const ir::LoopKind kind :
         {ir::LoopKind::kVectorized, ir::LoopKind::kUnrolled, ir::LoopKind::kParallel}) {
      write_kind(w, kind);
    }
    write_launch(w);
    PRUNERC_CHECK(w.is_full(), "feature.def and its writer agree");
  }

  Sym product_of(ir::LoopKind kind) const {
    Sym out = 1;
    for (const NestLoop& loop : loops_) {
      if (loop.kind == kind) out *= loop.extent;
    }
    return out;
  }

  Sym any_of(ir::LoopKind kind) const {
    Sym out = 0;
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      if (loops_[i].kind == kind) out = logical_or(out, present_[i]);
    }
    return out;
  }

  void write_kind(Writer<kNumLoopFeatures>& w, ir::LoopKind kind) const {
    const Sym any = any_of(kind);
    Sym count = 0, innermost = 0;
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      if (loops_[i].kind != kind) continue;
      count += present_[i];
      innermost = select(present_[i], loops_[i].extent, innermost);
    }
    w.log(count);
    w.log(select(any, product_of(kind), 0));
    w.log(innermost);
    w.raw(logical_not(any));
    for (int place = 1; place + 1 < kNumPlaces; ++place) w.raw(0);
    w.raw(any);
  }

  void write_launch(Writer<kNumLoopFeatures>& w) const {
    using ir::LoopKind;
    const bool on_gpu = target_.kind != ir::TargetKind::kCpu;
    w.raw(on_gpu ? 1 : 0);
    for (const LoopKind kind : {LoopKind::kBlockX, LoopKind::kBlockY, LoopKind::kBlockZ,
                                LoopKind::kThreadX, LoopKind::kThreadY, LoopKind::kThreadZ}) {
      w.log(on_gpu ? product_of(kind) : 0);
    }
    const Sym vthreads = product_of(LoopKind::kVThreadX) * product_of(LoopKind::kVThreadY) *
                         product_of(LoopKind::kVThreadZ);
    w.log(on_gpu ? vthreads : 0);
  }

  // Distance in elements between two neighbours along a loop.
  Sym stride(const NestAccess& a, std::size_t depth) const {
    const std::vector<Sym>& extents = table_.declared_shape(a.buffer);
    Sym total = 0, width = 1;
    for (std::size_t d = extents.size(); d-- > 0;) {
      total += width * a.facts[d].step[depth];
      width *= extents[d];
    }
    return abs(total);
  }

  BufferUse use_of(const Touched& t) const {
    BufferUse use;
    use.bytes = all() * t.element_bytes;
    use.unique_bytes = t.bytes[0];
    use.unique_lines = max(1, use.unique_bytes / min(kLineBytes, run_bytes(t)));
    // Innermost loops that leave the access where it is bring no line in.
    Sym held = all(), share = 1;
    for (std::size_t d = 0; d < loops_.size(); ++d) {
      const Sym step = stride(*t.accesses.front(), d);
      held = select(t.moves[d], inner_[d + 1], held);
      share = select(t.moves[d], min(1, step * t.element_bytes / kLineBytes), share);
      use.stride = select(present_[d], select(t.moves[d], step, 0), use.stride);
    }
    use.lines = max(1, all() / held * share);
    find_reuse(t, &use);
    return use;
  }

  // Bytes that lie side by side in what is touched.
  Sym run_bytes(const Touched& t) const {
    const std::vector<Sym>& extents = table_.declared_shape(t.id);
    Sym run = t.element_bytes, is_whole = 1;
    for (std::size_t d = extents.size(); d-- > 0;) {
      run *= select(is_whole, t.box[d], 1);
      is_whole = logical_and(is_whole, less_equal(extents[d], t.box[d]));
    }
    return run;
  }

  // The innermost loop that makes iterations and leaves the buffer where it is, or comes to it
  // again by another access, decides.
  void find_reuse(const Touched& t, BufferUse* use) const {
    const auto count = static_cast<double>(t.accesses.size());
    for (std::size_t d = 0; d < loops_.size(); ++d) {
      const Sym stays = logical_and(present_[d], logical_not(t.moves[d]));
      const Sym again = count > 1 ? t.moves[d] : Sym(0);
      const auto set = [&](Sym* value, Sym by_loop, Sym serial) {
        *value = select(stays, by_loop, select(again, serial, *value));
      };
      set(&use->by_loop, 1, 0);
      set(&use->serial, 0, 1);
      set(&use->reuse_count, loops_[d].extent, count - 1);
      set(&use->reuse_iterations, inner_[d + 1], inner_[d + 1] / count);
      set(&use->reuse_bytes, total_bytes_[d + 1], total_bytes_[d + 1] / count);
    }
  }

  UseLayout write_use(const Touched& t) {
    const BufferUse use = use_of(t);
    UseLayout out;
    out.buffer = t.id;
    Writer w(&out_, &out.slots);
    w.raw(t.is_read && !t.is_write ? 1 : 0);
    w.raw(t.is_write && !t.is_read ? 1 : 0);
    w.raw(t.is_read && t.is_write ? 1 : 0);
    const Sym volumes[] = {use.bytes, use.unique_bytes, use.lines, use.unique_lines};
    for (const Sym v : volumes) w.log(v);
    w.raw(use.by_loop);
    w.raw(use.serial);
    w.raw(logical_not(logical_or(use.by_loop, use.serial)));
    w.log(use.reuse_iterations);
    w.log(use.reuse_bytes);
    w.log(use.reuse_count);
    // Without reuse the traffic counts twice.
    const Sym per = select(less(0, use.reuse_count), use.reuse_count, 0.5);
    for (const Sym v : volumes) w.log(v / per);
    w.log(use.stride);
    PRUNERC_CHECK(w.is_full(), "feature.def and its writer agree");
    return out;
  }

  void write_curve(StoreLayout* out) {
    const Sym ops = max(1, store_.ops.sum());
    for (std::size_t d = loops_.size(); d-- > 0;) {
      const Sym at = log2(ops * inner_[d]);
      const Sym ratio = at / max(1, log2(total_bytes_[d]));
      out->curve.push_back({out_.raw(select(present_[d], at, -1)), out_.raw(ratio)});
    }
  }

  void write_scopes(StoreLayout* out) {
    const ir::BufferId id = store_.store->buffer;
    const bool is_param = table_.program().buffer(id).role != ir::BufferRole::kIntermediate;
    const auto alloc_depth =
        std::min(static_cast<std::size_t>(is_param ? 0 : table_.alloc_depth(id)), loops_.size());
    Sym bytes = touched_.front().element_bytes;
    for (const Sym extent : table_.declared_shape(id)) bytes *= extent;
    Poly outside = 1;
    for (std::size_t d = 0; d < alloc_depth; ++d) {
      outside = table_.space().multiply(outside, loops_[d].trips);
    }
    const Sym outer = table_.space().symbol(outside);
    Sym count = 0;
    for (const Sym present : present_) count += present;
    Writer w(&out_, &out->scopes);
    w.log(bytes);
    w.log(bytes * outer);
    w.log(outer);
    w.log(inner_[alloc_depth]);
    w.log(all());
    w.log(count);
    w.log(select(any_of(ir::LoopKind::kUnrolled), product_of(ir::LoopKind::kUnrolled), 0));
    PRUNERC_CHECK(w.is_full(), "feature.def and its writer agree");
  }

  const NestTable& table_;
  const StoreNest& store_;
  const std::vector<NestLoop>& loops_;
  const ir::Target& target_;
  LayoutBuilder& out_;
  std::vector<Sym> present_;      // truth, by loop: makes iterations
  std::vector<Sym> inner_;        // iterations of the loops from a depth inwards
  std::vector<Sym> total_bytes_;  // that these touch of all buffers
  std::vector<Touched> touched_;  // in order of their first access
};

}  // namespace

void add_statements(const StoreTable& stores, const ir::Target& target, LayoutBuilder* out) {
  for (const StoreNest& store : stores.stores()) {
    StoreLayout made = Extractor(stores.table(), store, target, out).extract();
    out->layout.stores.push_back(std::move(made));
  }
}

std::vector<StatementFeatures> statement_features(const ir::Program& whole,
                                                  const ir::Target& target) {
  const ir::Program program = ir::repeated_part(whole, target);
  ParamSpace space(program.domain());
  const NestTable table(program, space);
  LayoutBuilder builder;
  add_statements(StoreTable(table), target, &builder);
  PRUNERC_CHECK(builder.outputs.empty(), "a program without parameters");
  std::vector<StatementFeatures> out(builder.layout.stores.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    write_statement(builder.layout.stores[i], builder.layout.values.data(), &out[i]);
  }
  return out;
}

}  // namespace prunerc::costmodel

#include "costmodel/feature/statement.h"

#include "costmodel/feature/stores.h"
#include "ir/support/check.h"
#include "ir/thread_axis.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>

namespace prunerc::costmodel {
namespace {

/// Bytes that move together.
constexpr double kLineBytes = 64;
constexpr int kIntensitySamples = 10;
/// Of the eight places of a loop kind.
constexpr int kNumPlaces = 8;

double slog(double x) { return std::copysign(std::log2(std::abs(x) + 1), x); }

double product(std::span<const double> values) {
  double out = 1;
  for (const double v : values) out *= v;
  return out;
}

// Product of the extents of loops first .. last.
double iterations(const StoreNest& nest, std::size_t first, std::size_t last) {
  double out = 1;
  for (std::size_t i = first; i < last; ++i) out *= nest.loops[i].extent;
  return out;
}

enum class Reuse : uint8_t { kLoop, kSerial, kNone };

/// What one statement does to one buffer.
struct BufferUse {
  bool is_read = false, is_write = false;
  double bytes = 0, unique_bytes = 0, lines = 0, unique_lines = 0;
  Reuse reuse = Reuse::kNone;
  double reuse_iterations = 0, reuse_bytes = 0, reuse_count = 0;
  double stride = 0;

  auto rank() const {
    return std::make_tuple(reuse_bytes, unique_bytes, unique_lines,
                           is_read && is_write ? 2
                           : is_write          ? 1
                                               : 0);
  }
};

class Writer {
 public:
  explicit Writer(StatementFeatures* out) : out_(*out) {}
  void raw(double value) { out_[at_++] = static_cast<float>(value); }
  void log(double value) { raw(slog(value)); }
  void one_hot(int chosen, int count) {
    for (int i = 0; i < count; ++i) raw(i == chosen ? 1 : 0);
  }
  void skip(int count) { at_ += static_cast<std::size_t>(count); }
  std::size_t at() const { return at_; }

 private:
  StatementFeatures& out_;
  std::size_t at_ = 0;
};

class Extractor {
 public:
  Extractor(const StoreTable& table, const StoreNest& nest, const ir::Target& target)
      : table_(table), nest_(nest), target_(target) {
    for (const StoreAccess& access : nest.accesses) {
      if (std::find(buffers_.begin(), buffers_.end(), access.buffer) == buffers_.end()) {
        buffers_.push_back(access.buffer);
      }
    }
  }

  StatementFeatures extract() const {
    StatementFeatures out = {};
    Writer w(&out);
    write_ops(w);
    for (const ir::LoopKind kind :
         {ir::LoopKind::kVectorized, ir::LoopKind::kUnrolled, ir::LoopKind::kParallel}) {
      write_loops(w, kind);
    }
    write_launch(w);
    write_buffers(w);
    write_intensity(w);
    write_allocation(w);
    w.log(all());
    w.log(static_cast<double>(nest_.loops.size()));
    w.log(loops_of(ir::LoopKind::kUnrolled).empty() ? 0
                                                    : product(loops_of(ir::LoopKind::kUnrolled)));
    PRUNERC_CHECK(w.at() == kNumStatementFeatures, "statement.def and its writer agree");
    return out;
  }

 private:
  double all() const { return iterations(nest_, 0, nest_.loops.size()); }
  double element_bytes(ir::BufferId id) const {
    return static_cast<double>(ir::byte_size(table_.program().buffer(id).dtype));
  }

  void write_ops(Writer& w) const {
    const double times = all();
    for (const StoreOps::ByType* t : {&nest_.ops.of_float, &nest_.ops.of_int}) {
      for (const double n :
           {t->mad, t->add_sub, t->mul, t->div_mod, t->compare, t->math, t->other}) {
        w.log(n * times);
      }
    }
    w.log(nest_.ops.of_bool * times);
    w.log(nest_.ops.select * times);
  }

  std::vector<double> loops_of(ir::LoopKind kind) const {
    std::vector<double> out;
    for (const StoreLoop& loop : nest_.loops) {
      if (loop.kind == kind) out.push_back(loop.extent);
    }
    return out;
  }

  void write_loops(Writer& w, ir::LoopKind kind) const {
    const std::vector<double> extents = loops_of(kind);
    w.log(static_cast<double>(extents.size()));
    w.log(extents.empty() ? 0 : product(extents));
    w.log(extents.empty() ? 0 : extents.back());
    w.one_hot(extents.empty() ? 0 : kNumPlaces - 1, kNumPlaces);
  }

  void write_launch(Writer& w) const {
    using ir::LoopKind;
    w.raw(target_.kind == ir::TargetKind::kCpu ? 0 : 1);
    const bool on_gpu = target_.kind != ir::TargetKind::kCpu;
    const auto write = [&](std::initializer_list<LoopKind> kinds) {
      double extent = 1;
      for (const LoopKind kind : kinds) extent *= product(loops_of(kind));
      w.log(on_gpu ? extent : 0);
    };
    for (const LoopKind kind : {LoopKind::kBlockX, LoopKind::kBlockY, LoopKind::kBlockZ,
                                LoopKind::kThreadX, LoopKind::kThreadY, LoopKind::kThreadZ}) {
      write({kind});
    }
    write({LoopKind::kVThreadX, LoopKind::kVThreadY, LoopKind::kVThreadZ});
  }

  std::vector<const StoreAccess*> accesses_of(ir::BufferId id) const {
    std::vector<const StoreAccess*> out;
    for (const StoreAccess& access : nest_.accesses) {
      if (access.buffer == id) out.push_back(&access);
    }
    return out;
  }

  // Elements of the buffer that the loops from `depth` inwards touch: the largest of its accesses
  // in each dimension.
  std::vector<double> touched(ir::BufferId id, std::size_t depth) const {
    std::vector<double> out;
    for (const StoreAccess* access : accesses_of(id)) {
      const std::vector<double> region = table_.region(nest_, *access, depth);
      out.resize(region.size(), 1);
      for (std::size_t d = 0; d < region.size(); ++d) out[d] = std::max(out[d], region[d]);
    }
    return out;
  }

  double touched_bytes(ir::BufferId id, std::size_t depth) const {
    return product(touched(id, depth)) * element_bytes(id);
  }
  double all_touched_bytes(std::size_t depth) const {
    double total = 0;
    for (const ir::BufferId id : buffers_) total += touched_bytes(id, depth);
    return total;
  }

  bool moves(ir::BufferId id, std::size_t depth) const {
    for (const StoreAccess* access : accesses_of(id)) {
      if (table_.moves(nest_, *access, depth)) return true;
    }
    return false;
  }

  BufferUse use_of(ir::BufferId id) const {
    BufferUse use;
    for (const StoreAccess* access : accesses_of(id)) {
      (access->is_write ? use.is_write : use.is_read) = true;
    }
    measure_traffic(id, &use);
    find_reuse(id, &use);
    return use;
  }

  void measure_traffic(ir::BufferId id, BufferUse* use) const {
    const double bytes = element_bytes(id);
    const std::size_t num_loops = nest_.loops.size();
    use->bytes = all() * bytes;
    use->unique_bytes = touched_bytes(id, 0);
    // Innermost loops that leave the access where it is bring no line in.
    std::size_t inner = num_loops;
    while (inner > 0 && !moves(id, inner - 1)) --inner;
    const double held = iterations(nest_, inner, num_loops);
    double line_share = 1;
    if (inner > 0) {
      const double stride = table_.stride(nest_, *accesses_of(id).front(), inner - 1);
      line_share = std::min(1.0, stride * bytes / kLineBytes);
      if (inner == num_loops) use->stride = stride;
    }
    use->lines = std::max(1.0, all() / held * line_share);
    use->unique_lines = std::max(1.0, use->unique_bytes / std::min(kLineBytes, run_bytes(id)));
  }

  // Bytes that lie side by side in what is touched.
  double run_bytes(ir::BufferId id) const {
    const std::vector<double> region = touched(id, 0);
    const std::vector<double> extents = table_.shape(id);
    double run = element_bytes(id);
    for (std::size_t d = region.size(); d-- > 0;) {
      run *= region[d];
      if (region[d] < extents[d]) break;
    }
    return run;
  }

  void find_reuse(ir::BufferId id, BufferUse* use) const {
    const std::size_t num_loops = nest_.loops.size();
    const double num_accesses = static_cast<double>(accesses_of(id).size());
    for (std::size_t depth = num_loops; depth-- > 0;) {
      if (!moves(id, depth)) {
        use->reuse = Reuse::kLoop;
        use->reuse_count = nest_.loops[depth].extent;
        use->reuse_iterations = iterations(nest_, depth + 1, num_loops);
        use->reuse_bytes = all_touched_bytes(depth + 1);
        return;
      }
      if (num_accesses > 1) {
        use->reuse = Reuse::kSerial;
        use->reuse_count = num_accesses - 1;
        use->reuse_iterations = iterations(nest_, depth + 1, num_loops) / num_accesses;
        use->reuse_bytes = all_touched_bytes(depth + 1) / num_accesses;
        return;
      }
    }
  }

  void write_buffers(Writer& w) const {
    std::vector<BufferUse> uses;
    for (const ir::BufferId id : buffers_) uses.push_back(use_of(id));
    std::stable_sort(uses.begin(), uses.end(),
                     [](const BufferUse& a, const BufferUse& b) { return a.rank() < b.rank(); });
    for (std::size_t i = 0; i < kNumFeatureBuffers; ++i) {
      if (i < uses.size()) {
        write_use(w, uses[i]);
      } else {
        w.skip(kNumAccessFeatures);
      }
    }
  }

  static void write_use(Writer& w, const BufferUse& use) {
    w.one_hot(use.is_read && use.is_write ? 2 : use.is_write ? 1 : 0, 3);
    for (const double v : {use.bytes, use.unique_bytes, use.lines, use.unique_lines}) w.log(v);
    w.one_hot(static_cast<int>(use.reuse), 3);
    for (const double v : {use.reuse_iterations, use.reuse_bytes, use.reuse_count}) w.log(v);
    // Without reuse the traffic counts twice.
    const double per = use.reuse_count > 0 ? use.reuse_count : 0.5;
    for (const double v : {use.bytes, use.unique_bytes, use.lines, use.unique_lines}) {
      w.log(v / per);
    }
    w.log(use.stride);
  }

  // The curve of log2(operations) over log2(bytes) from the innermost loop outwards, read at equal
  // steps of log2(operations).
  void write_intensity(Writer& w) const {
    std::vector<double> ops, ratio;
    double total = std::max(1.0, nest_.ops.sum());
    for (std::size_t depth = nest_.loops.size(); depth-- > 0;) {
      total *= nest_.loops[depth].extent;
      ops.push_back(std::log2(total));
      ratio.push_back(ops.back() / std::max(1.0, std::log2(all_touched_bytes(depth))));
    }
    if (ops.empty() || ops.back() <= 0) return w.skip(kIntensitySamples);
    for (int i = 0; i < kIntensitySamples; ++i) {
      const double at = ops.back() * (i + 1) / kIntensitySamples;
      const auto next =
          static_cast<std::size_t>(std::lower_bound(ops.begin(), ops.end() - 1, at) - ops.begin());
      const double x0 = next == 0 ? 0 : ops[next - 1], y0 = next == 0 ? 0 : ratio[next - 1];
      const double width = ops[next] - x0;
      const double part = width > 0 ? std::min(1.0, (at - x0) / width) : 1;
      w.raw(y0 + part * (ratio[next] - y0));
    }
  }

  void write_allocation(Writer& w) const {
    const ir::BufferId id = nest_.store->buffer;
    const bool is_param = table_.program().buffer(id).role != ir::BufferRole::kIntermediate;
    const std::size_t home = is_param ? 0 : table_.home_depth(id);
    const double bytes = product(table_.shape(id)) * element_bytes(id);
    const double outer = iterations(nest_, 0, std::min(home, nest_.loops.size()));
    w.log(bytes);
    w.log(bytes * outer);
    w.log(outer);
    w.log(all() / outer);
  }

  const StoreTable& table_;
  const StoreNest& nest_;
  const ir::Target& target_;
  std::vector<ir::BufferId> buffers_;  // in order of their first access
};

std::vector<FeatureName> make_names() {
  std::vector<FeatureName> names;
  std::vector<FeatureName> of_buffer;
  const auto flush = [&] {
    for (int i = 0; i < kNumFeatureBuffers && !of_buffer.empty(); ++i) {
      for (const FeatureName& f : of_buffer) {
        names.push_back({"B" + std::to_string(i) + "." + f.name, f.unit});
      }
    }
    of_buffer.clear();
  };
#define PRUNERC_STATEMENT_FEATURE(name, unit) flush(), names.push_back({#name, #unit});
#define PRUNERC_ACCESS_FEATURE(name, unit) of_buffer.push_back({#name, #unit});
#include "costmodel/feature/statement.def"
#undef PRUNERC_STATEMENT_FEATURE
#undef PRUNERC_ACCESS_FEATURE
  return names;
}

}  // namespace

std::vector<StatementFeatures> statement_features(const ir::Program& program,
                                                  const ir::Target& target) {
  const StoreTable table(program);
  std::vector<StatementFeatures> out;
  for (const StoreNest& nest : table.nests()) {
    out.push_back(Extractor(table, nest, target).extract());
  }
  return out;
}

std::span<const FeatureName> statement_feature_names() {
  static const std::vector<FeatureName> names = make_names();
  return names;
}

int find_statement_feature(std::string_view name) {
  const std::span<const FeatureName> names = statement_feature_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace prunerc::costmodel

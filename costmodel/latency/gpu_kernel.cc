#include "costmodel/latency/gpu_kernel.h"

#include "ir/equal.h"
#include "ir/tensor/bulk_copy.h"
#include "ir/thread_axis.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

namespace prunerc::costmodel {
namespace {

/// CUDA's own limits, the same for every architecture that it names.
constexpr double kMaxGrid[] = {2147483647, 65535, 65535};
constexpr double kMaxBlock[] = {1024, 1024, 64};
/// As schedule/legality/gpu_limits.cc has it.
constexpr double kMaxVthreads = 64;
/// Addresses, counters and what else the simplest kernel holds.
constexpr double kBaseRegisters = 16;
constexpr double kRegisterBytes = 4;

constexpr std::string_view kTensor = "tensor_";
constexpr double kWarp = 32;
constexpr double kWarpgroup = 128;
/// Of a warp those that have values of different rows.
constexpr double kLanesOfRows = 8;

std::size_t dimension(ir::LoopKind kind) {
  return (static_cast<std::size_t>(kind) - static_cast<std::size_t>(ir::LoopKind::kBlockX)) % 3;
}

bool is_vthread(ir::LoopKind kind) {
  return ir::is_thread_axis(kind) && !ir::is_block_axis(kind) && !ir::is_lane_axis(kind);
}

ir::LoopId kernel_of(const Nest& nest) {
  for (const NestLoop& loop : nest.loops) {
    if (ir::is_thread_axis(loop.kind)) return loop.id;
  }
  return {};
}

// Between which nests of the kernel a buffer lives: loops that it outlives count whole.
struct Lifetime {
  std::size_t first = 0, last = 0;
  Sym bytes;
};

class Meter {
 public:
  Meter(const NestTable& table, GpuKernel* kernel) : table_(table), kernel_(*kernel) {}

  void run() {
    for (const std::size_t n : kernel_.nests) extents(table_.nests()[n]);
    // Lanes of tensor instructions are thread.x, whether a loop says so or not, or rows of it (ir/thread_axis.h).
    const bool in_rows = kernel_.block[0].is(kWarp) && kernel_.block[1].is(lanes_ / kWarp);
    if (!in_rows) kernel_.block[0] = max(kernel_.block[0], lanes_);
    bool copies_in_bulk = false;
    std::vector<Lifetime> shared, local;
    for (const ir::Buffer& buffer : table_.program().buffers()) {
      if (buffer.scope == ir::Scope::kGlobal) continue;
      Lifetime life;
      if (!lifetime(buffer.id, &life)) continue;
      if (buffer.scope == ir::Scope::kShared) {
        life.bytes = shared_bytes(buffer);
        // The copy engine runs ahead: its tiles share their room with nothing.
        if (is_ring(buffer.id)) {
          life = {0, kernel_.nests.size() - 1, life.bytes};
          copies_in_bulk = true;
        }
        shared.push_back(life);
      } else {
        // Registers are whole.
        life.bytes = ceil(local_bytes(buffer) / kRegisterBytes);
        local.push_back(life);
      }
    }
    // One more warpgroup brings them; where one more row of threads does, that counts for nothing.
    if (copies_in_bulk && in_rows && lanes_ > kWarp) kernel_.block[2] += 1;
    kernel_.smem_bytes = peak(shared);
    kernel_.registers = kBaseRegisters + peak(local);
  }

 private:
  void extents(const Nest& nest) {
    Sym vthreads = 1;
    for (const NestLoop& loop : nest.loops) {
      if (ir::is_block_axis(loop.kind)) {
        Sym& axis = kernel_.grid[dimension(loop.kind)];
        axis = max(axis, loop.extent);
        kernel_.cluster = max(kernel_.cluster, table_.space().attr(*loop.loop, "cluster", 1));
      } else if (ir::is_lane_axis(loop.kind)) {
        Sym& axis = kernel_.block[dimension(loop.kind)];
        axis = max(axis, loop.extent);
      } else if (is_vthread(loop.kind)) {
        vthreads *= loop.extent;
      }
      lanes_ = std::max(lanes_, tensor_lanes(*loop.loop));
    }
    kernel_.vthreads = max(kernel_.vthreads, vthreads);
  }

  bool lifetime(ir::BufferId buffer, Lifetime* out) const {
    const auto alloc_depth = static_cast<std::size_t>(table_.alloc_depth(buffer));
    bool is_used = false;
    for (std::size_t i = 0; i < kernel_.nests.size(); ++i) {
      const Nest& nest = table_.nests()[kernel_.nests[i]];
      if (!uses(nest, buffer)) continue;
      std::size_t first = i, last = i;
      const auto shares = [&](std::size_t other) {
        const Nest& next = table_.nests()[kernel_.nests[other]];
        return nest.loops.size() > alloc_depth && next.loops.size() > alloc_depth &&
               next.loops[alloc_depth].id == nest.loops[alloc_depth].id;
      };
      while (first > 0 && shares(first - 1)) --first;
      while (last + 1 < kernel_.nests.size() && shares(last + 1)) ++last;
      out->first = is_used ? std::min(out->first, first) : first;
      out->last = is_used ? std::max(out->last, last) : last;
      is_used = true;
    }
    return is_used;
  }

  static bool uses(const Nest& nest, ir::BufferId buffer) {
    return std::any_of(nest.accesses.begin(), nest.accesses.end(),
                       [&](const NestAccess& a) { return a.buffer == buffer; });
  }

  // Is it filled by bulk copies?
  bool is_ring(ir::BufferId buffer) const {
    return std::any_of(kernel_.nests.begin(), kernel_.nests.end(), [&](std::size_t n) {
      const Nest& nest = table_.nests()[n];
      return uses(nest, buffer) &&
             std::any_of(nest.loops.begin(), nest.loops.end(),
                         [](const NestLoop& loop) { return ir::is_bulk_copy(*loop.loop); });
    });
  }

  // Copies of what begins anew inside of pipelines, as legality counts them (schedule/legality/gpu_limits.cc).
  Sym ring_copies(ir::BufferId buffer) const {
    const auto alloc_depth = static_cast<std::size_t>(table_.alloc_depth(buffer));
    const bool has_all = is_ring(buffer);
    Sym copies = 1;
    for (const std::size_t n : kernel_.nests) {
      const Nest& nest = table_.nests()[n];
      if (!uses(nest, buffer)) continue;
      for (std::size_t i = 0; i < std::min(alloc_depth, nest.loops.size()); ++i) {
        const NestLoop& loop = nest.loops[i];
        const Sym stages = table_.space().attr(*loop.loop, "software_pipeline", 1);
        copies = max(copies, has_all ? stages : min(stages, loop.extent));
      }
    }
    return copies;
  }

  Sym shared_bytes(const ir::Buffer& buffer) const {
    const std::vector<Sym>& shape = table_.shape(buffer.id);
    Sym elements = shape.empty() ? Sym(1) : shape[0] * table_.strides(buffer.id)[0];
    double copies = 1;
    for (const std::size_t n : kernel_.nests) {
      const ir::Block* block = table_.nests()[n].block;
      if (block == nullptr) continue;
      for (const ir::Attr& attr : block->attrs) {
        const auto write = static_cast<std::size_t>(attr.value);
        if (attr.key == "double_buffer" && attr.value >= 0 && write < block->writes.size() &&
            block->writes[write].buffer == buffer.id) {
          copies = 2;
        }
      }
    }
    return elements * max(copies, ring_copies(buffer.id)) *
           static_cast<double>(ir::byte_size(buffer.dtype));
  }

  // The elements that one thread touches, lanes of tensor instructions being several.
  Sym local_bytes(const ir::Buffer& buffer) const {
    const int alloc_depth = table_.alloc_depth(buffer.id);
    Sym most = 1;
    const double lanes = fragment_lanes(table_, buffer.id);
    for (const std::size_t n : kernel_.nests) {
      const Nest& nest = table_.nests()[n];
      for (const NestAccess& a : nest.accesses) {
        if (a.buffer != buffer.id) continue;
        std::vector<bool> is_kept(nest.loops.size());
        for (std::size_t i = 0; i < is_kept.size(); ++i) {
          const ir::LoopKind kind = nest.loops[i].kind;
          is_kept[i] = static_cast<int>(i) >= alloc_depth && !ir::is_block_axis(kind) &&
                       !ir::is_lane_axis(kind);
        }
        most = max(most, distinct_elements(table_, nest, a, is_kept));
      }
    }
    return most * static_cast<double>(ir::byte_size(buffer.dtype)) / lanes;
  }

  static Sym peak(const std::vector<Lifetime>& lives) {
    Sym most = 0;
    for (const Lifetime& at : lives) {
      Sym total = 0;
      for (const Lifetime& other : lives) {
        if (other.first <= at.first && at.first <= other.last) total += other.bytes;
      }
      most = max(most, total);
    }
    return most;
  }

  const NestTable& table_;
  GpuKernel& kernel_;
  double lanes_ = 1;  // the most of a tensor instruction
};

}  // namespace

double tensor_lanes(const ir::Loop& loop) {
  for (const ir::Attr& attr : loop.attrs) {
    if (!attr.key.starts_with(kTensor)) continue;
    const Result<const ir::TensorIntrinsic*> known =
        ir::find_tensor(attr.key.substr(kTensor.size()));
    if (known.ok() && (*known)->family == "cpu") return 1;
    return attr.key.find("wgmma") != attr.key.npos ? kWarpgroup : kWarp;
  }
  return 1;
}

namespace {

// How lanes hold registers: the dimensions along rows and columns of instructions' tiles. Values of rows have no columns.
struct Spread {
  double lanes = 1;
  std::optional<std::size_t> row, column;
};
using Spreads = std::map<ir::BufferId, Spread>;

std::vector<const NestAccess*> local_accesses(const NestTable& table, const Nest& nest) {
  std::vector<const NestAccess*> out;
  for (const NestAccess& a : nest.accesses) {
    if (table.program().buffer(a.buffer).scope == ir::Scope::kLocal) out.push_back(&a);
  }
  return out;
}

// Operands of an instruction: two of their dimensions move with its loops.
Spreads operands(const NestTable& table) {
  Spreads out;
  for (const Nest& nest : table.nests()) {
    const std::size_t depth = tensor_depth(nest);
    if (depth == nest.loops.size()) continue;
    for (const NestAccess* a : local_accesses(table, nest)) {
      Spread& spread = out[a->buffer];
      spread.lanes = std::max(spread.lanes, tensor_lanes(*nest.loops[depth].loop));
      std::vector<std::size_t> wide;
      for (std::size_t d = 0; d < a->facts.size(); ++d) {
        const auto first = a->facts[d].moves.begin() + static_cast<std::ptrdiff_t>(depth);
        if (std::any_of(first, a->facts[d].moves.end(), [](Sym moves) { return !moves.is(0); }))
          wide.push_back(d);
      }
      if (wide.size() == 2) spread.row = wide[0], spread.column = wide[1];
    }
  }
  return out;
}

std::optional<std::size_t> dimension_of(const NestAccess& a, ir::Expr index) {
  for (std::size_t d = 0; d < a.indices.size(); ++d) {
    if (structural_equal(a.indices[d], index)) return d;
  }
  return std::nullopt;
}

// What a nest exchanges with registers that are spread, elements or rows, as legality counts it (schedule/legality/gpu_limits.cc).
bool spread_in(const NestTable& table, const Nest& nest, bool has_column, Spreads* spreads) {
  bool grew = false;
  const std::vector<const NestAccess*> all = local_accesses(table, nest);
  for (const NestAccess* from : all) {
    const auto known = spreads->find(from->buffer);
    if (known == spreads->end() || !known->second.row) continue;
    const Spread spread = known->second;
    for (const NestAccess* to : all) {
      if (spreads->count(to->buffer) != 0) continue;
      const auto row = dimension_of(*to, from->indices[*spread.row]);
      const auto column =
          spread.column ? dimension_of(*to, from->indices[*spread.column]) : std::nullopt;
      const bool is_made = to->is_write && spread.lanes == kWarp;
      if (!row || column.has_value() != has_column) continue;
      if (!column && spread.column && !is_made) continue;
      (*spreads)[to->buffer] = {column ? spread.lanes : kLanesOfRows, row, column};
      grew = true;
    }
  }
  return grew;
}

// Code of a warp whose threads nobody has named: its registers meet those of the warp's instructions.
bool is_of_warp(const Nest& nest) {
  return std::none_of(nest.loops.begin(), nest.loops.end(),
                      [](const NestLoop& loop) { return loop.kind == ir::LoopKind::kThreadX; });
}

}  // namespace

double fragment_lanes(const NestTable& table, ir::BufferId buffer) {
  if (table.program().buffer(buffer).scope != ir::Scope::kLocal) return 1;
  Spreads spreads = operands(table);
  for (const bool has_column : {true, false}) {
    for (bool grew = !spreads.empty(); grew;) {
      grew = false;
      for (const Nest& nest : table.nests()) {
        if (tensor_depth(nest) == nest.loops.size() && is_of_warp(nest))
          grew = spread_in(table, nest, has_column, &spreads) || grew;
      }
    }
  }
  const auto found = spreads.find(buffer);
  return found == spreads.end() ? 1 : found->second.lanes;
}

bool packs_bytes(const NestTable& table, ir::BufferId fragment) {
  if (ir::byte_size(table.program().buffer(fragment).dtype) != 1) return false;
  for (const Nest& nest : table.nests()) {
    const std::size_t depth = tensor_depth(nest);
    if (depth == nest.loops.size() || !is_product(nest)) continue;
    const auto read = std::find_if(nest.accesses.begin(), nest.accesses.end(),
                                   [&](const NestAccess& a) { return a.buffer == fragment; });
    if (read == nest.accesses.end()) continue;
    for (std::size_t i = depth; i < nest.loops.size(); ++i) {
      const bool is_summed =
          std::none_of(nest.accesses.begin(), nest.accesses.end(),
                       [&](const NestAccess& a) { return a.is_write && !a.moves[i].is(0); });
      if (is_summed && !read->moves[i].is(0)) return !table.address_step(*read, i).is(1);
    }
  }
  return false;
}

Sym distinct_elements(const NestTable& table, const Nest& nest, const NestAccess& a,
                      const std::vector<bool>& is_kept) {
  const std::vector<Sym> box = table.box(nest, a, is_kept);
  Sym elements = 1;
  for (std::size_t d = 0; d < box.size(); ++d) {
    Sym steps = 1;
    for (std::size_t i = 0; i < is_kept.size(); ++i) {
      if (is_kept[i]) steps *= select(a.facts[d].moves[i], nest.loops[i].extent, 1);
    }
    elements *= min(box[d], steps);
  }
  return elements;
}

std::size_t tensor_depth(const Nest& nest) {
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    if (tensor_lanes(*nest.loops[i].loop) > 1) return i;
  }
  return nest.loops.size();
}

std::vector<GpuKernel> gpu_kernels(const NestTable& table) {
  std::vector<GpuKernel> out;
  for (std::size_t n = 0; n < table.nests().size(); ++n) {
    const Nest& nest = table.nests()[n];
    const ir::LoopId loop = kernel_of(nest);
    if (out.empty() || out.back().loop != loop || !loop.valid()) {
      out.emplace_back();
      out.back().loop = loop;
    }
    if (nest.block != nullptr) out.back().name = nest.block->name;
    out.back().nests.push_back(n);
  }
  for (GpuKernel& kernel : out) Meter(table, &kernel).run();
  return out;
}

std::vector<LatencyLimit> gpu_limits(const std::vector<GpuKernel>& kernels,
                                     const ir::Target& target) {
  std::vector<LatencyLimit> out;
  const auto add = [&](std::string what, Sym have, double most) {
    // What holds for all candidates needs no test.
    if (most > 0 && !less_equal(have, most).is(1)) out.push_back({std::move(what), have, most});
  };
  constexpr const char* kAxes[] = {"x", "y", "z"};
  const auto warp = static_cast<double>(std::max<int64_t>(target.warp_size, 1));
  for (const GpuKernel& k : kernels) {
    for (std::size_t d = 0; d < 3; ++d) {
      add("blocks along " + std::string(kAxes[d]), k.grid[d], kMaxGrid[d]);
      add("threads of a block along " + std::string(kAxes[d]), k.block[d], kMaxBlock[d]);
    }
    add("threads of a block", k.threads(), static_cast<double>(target.max_threads_per_block));
    add("virtual threads", k.vthreads, kMaxVthreads);
    add("bytes of shared memory", k.smem_bytes, static_cast<double>(target.smem_bytes_per_block));
    add("registers of a thread", k.registers, static_cast<double>(target.max_registers_per_thread));
    add("registers of a block", k.registers * (ceil(k.threads() / warp) * warp),
        static_cast<double>(target.registers_per_sm));
  }
  return out;
}

}  // namespace prunerc::costmodel

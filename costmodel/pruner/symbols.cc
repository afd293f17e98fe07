#include "costmodel/pruner/symbols.h"

#include "costmodel/latency/gpu_kernel.h"
#include "costmodel/latency/warp.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <algorithm>
#include <iterator>

namespace prunerc::costmodel {
namespace {

using ir::Expr;
using ir::ExprKind;

bool is_outside(ir::LoopKind kind) { return ir::is_block_axis(kind) || ir::is_lane_axis(kind); }

/// Extents of the fragments that tensor cores multiply (WMMA's).
constexpr double kFragment = 16;

class Reader {
 public:
  Reader(const NestTable& table, const Nest& nest)
      : table_(table), nest_(nest), tensor_depth_(tensor_depth(nest)) {
    if (is_tensor()) lanes_ = tensor_lanes(*nest.loops[tensor_depth_].loop);
  }

  StatementSymbols read(const StatementSymbols& before, double transaction_bytes) const {
    StatementSymbols s;
    s.accesses = before.accesses;
    s.buffer = written().buffer;
    const ThreadExtents extents = thread_extents(nest_);
    s.blocks = extents.blocks;
    s.threads = extents.threads;
    s.vthreads = extents.vthreads;
    const double ops = count_pruner_ops(nest_);
    s.flops = extents.per_thread * ops * s.blocks * s.threads;
    // The lanes of a tensor instruction share its loops.
    s.flops_per_thread = extents.per_thread * ops / lanes_;
    s.threads *= lanes_;
    if (ops > 0) {
      compute(s);
    } else {
      move(s, extents.per_thread);
    }
    transactions(s, transaction_bytes);
    return s;
  }

 private:
  const NestAccess& written() const {
    return *std::find_if(nest_.accesses.begin(), nest_.accesses.end(),
                         [](const NestAccess& a) { return a.is_write; });
  }

  const ir::Buffer& buffer(ir::BufferId id) const { return table_.program().buffer(id); }

  // Truth, by loop: a loop of one thread that moves some access of the buffer.
  std::vector<Sym> loops_of(ir::BufferId id) const {
    std::vector<Sym> out(nest_.loops.size());
    for (std::size_t i = 0; i < nest_.loops.size(); ++i) {
      if (is_outside(nest_.loops[i].kind)) continue;
      for (const NestAccess& access : nest_.accesses) {
        if (access.buffer == id) out[i] = logical_or(out[i], access.moves[i]);
      }
    }
    return out;
  }

  Sym footprint(ir::BufferId id, const std::vector<Sym>* within) const {
    const std::vector<Sym> loops = loops_of(id);
    Sym out = 1;
    for (std::size_t i = 0; i < loops.size(); ++i) {
      const Sym counts = within == nullptr ? loops[i] : logical_and(loops[i], (*within)[i]);
      out *= select(counts, nest_.loops[i].extent, 1);
    }
    return out;
  }

  // Buffers in order of their first access.
  std::vector<ir::BufferId> buffers() const {
    std::vector<ir::BufferId> out;
    for (const NestAccess& access : nest_.accesses) {
      if (std::find(out.begin(), out.end(), access.buffer) == out.end())
        out.push_back(access.buffer);
    }
    return out;
  }

  void compute(StatementSymbols& s) const {
    std::vector<Sym> held = loops_of(s.buffer);
    for (std::size_t i = tensor_depth_; i < held.size(); ++i) held[i] = 1;
    for (const ir::BufferId id : buffers()) {
      s.registers += footprint(id, &held) / lanes_;
      s.accesses += footprint(id, nullptr) / lanes_;
    }
    s.reuse = 1 + s.flops_per_thread / s.accesses;
    if (is_tensor()) fragments(s);
  }

  bool is_tensor() const { return tensor_depth_ < nest_.loops.size(); }

  // A warp's tile along rows, columns and the reduction: loops that move the same buffers.
  void fragments(StatementSymbols& s) const {
    Sym tile[1 << 3];
    std::fill(std::begin(tile), std::end(tile), Sym(1));
    const std::vector<ir::BufferId> all = buffers();
    std::vector<std::vector<Sym>> moved;
    for (const ir::BufferId id : all) {
      moved.push_back(loops_of(id));
      const auto bytes = static_cast<double>(ir::byte_size(buffer(id).dtype));
      if (id == s.buffer) continue;
      s.fragment_bytes = s.fragment_bytes.is(0) ? Sym(bytes) : min(s.fragment_bytes, bytes);
    }
    // Of a product of two operands, as tensor instructions are.
    for (std::size_t by = 1; by < std::size(tile) && all.size() == 3; ++by) {
      for (std::size_t i = 0; i < nest_.loops.size(); ++i) {
        Sym counts = 1;
        for (std::size_t b = 0; b < all.size(); ++b) {
          const bool wanted = ((by >> b) & 1) != 0;
          counts = logical_and(counts, wanted ? moved[b][i] : logical_not(moved[b][i]));
        }
        tile[by] *= select(counts, nest_.loops[i].extent, 1);
      }
    }
    constexpr std::size_t kPairs[] = {0b011, 0b101, 0b110};  // two of the three buffers
    for (const std::size_t by : kPairs) {
      s.aligned *= tile[by] / (ceil(tile[by] / kFragment) * kFragment);
    }
  }

  void move(StatementSymbols& s, Sym per_thread) const {
    const auto bytes = static_cast<double>(ir::byte_size(buffer(s.buffer).dtype));
    if (buffer(s.buffer).scope == ir::Scope::kShared) {
      const std::vector<Sym> of_result = loops_of(s.buffer);
      s.shared = footprint(buffers().front(), &of_result) * s.threads;
      s.dram = s.shared * s.blocks;
      s.shared_bytes = bytes;
      for (const Sym extent : table_.shape(s.buffer)) s.shared_bytes *= extent;
    } else if (buffer(s.buffer).scope == ir::Scope::kGlobal) {
      s.dram = per_thread * s.blocks * s.threads;
    }
    s.dram_bytes = s.dram * bytes;
  }

  // What one warp asks of global memory at once.
  void transactions(StatementSymbols& s, double transaction_bytes) const {
    for (const NestAccess& access : nest_.accesses) {
      if (buffer(access.buffer).scope != ir::Scope::kGlobal) continue;
      const WarpRequest request = warp_request(table_, nest_, access, transaction_bytes);
      s.useful_bytes += request.useful_bytes;
      s.transferred_bytes += request.sectors * transaction_bytes;
    }
  }

  const NestTable& table_;
  const Nest& nest_;
  const std::size_t tensor_depth_;
  double lanes_ = 1;  // that run an instance together
};

}  // namespace

double count_pruner_ops(const Nest& nest) {
  double ops = 0;
  ir::walk(
      nest.body, [](ir::Stmt) { return true; },
      [&](Expr value) {
        ir::walk(value, [&](Expr e) {
          switch (e.kind()) {
            case ExprKind::kAdd:
            case ExprKind::kSub:
            case ExprKind::kMul:
            case ExprKind::kDiv: ops += ir::is_float(e.dtype()) ? 1 : 0; break;
            default: break;
          }
          return e.as<ir::Load>() == nullptr;  // subscripts are no data
        });
      });
  return ops;
}

std::vector<StatementSymbols> pruner_symbols(const NestTable& table, const PrunerDevice& device) {
  std::vector<StatementSymbols> out;
  for (const Nest& nest : table.nests()) {
    const auto written = std::find_if(nest.accesses.begin(), nest.accesses.end(),
                                      [](const NestAccess& a) { return a.is_write; });
    if (nest.block == nullptr || written == nest.accesses.end()) continue;
    auto known = std::find_if(out.begin(), out.end(), [&](const StatementSymbols& s) {
      return s.buffer == written->buffer;
    });
    if (known == out.end()) known = out.insert(out.end(), StatementSymbols{});
    *known = device.vector_bytes > 0 ? cpu_symbols(table, nest, device, *known)
                                     : Reader(table, nest).read(*known, device.transaction_bytes);
  }
  return out;
}

}  // namespace prunerc::costmodel

#include "costmodel/pruner/symbols.h"

#include "costmodel/latency/warp.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <algorithm>

namespace prunerc::costmodel {
namespace {

using ir::Expr;
using ir::ExprKind;

bool is_outside(ir::LoopKind kind) { return ir::is_block_axis(kind) || ir::is_lane_axis(kind); }

// Float additions, subtractions, products and quotients. Comparisons and calls are not counted.
double count_ops(ir::Stmt body) {
  double ops = 0;
  ir::walk(
      body, [](ir::Stmt) { return true; },
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

class Reader {
 public:
  Reader(const NestTable& table, const Nest& nest) : table_(table), nest_(nest) {}

  StatementSymbols read(const StatementSymbols& before, double transaction_bytes) const {
    StatementSymbols s;
    s.accesses = before.accesses;
    s.buffer = written().buffer;
    const ThreadExtents extents = thread_extents(nest_);
    s.blocks = extents.blocks;
    s.threads = extents.threads;
    s.vthreads = extents.vthreads;
    const double ops = count_ops(nest_.is_init ? nest_.block->init : nest_.block->body);
    s.flops_per_thread = extents.per_thread * ops;
    s.flops = s.flops_per_thread * s.blocks * s.threads;
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
    const std::vector<Sym> of_result = loops_of(s.buffer);
    for (const ir::BufferId id : buffers()) {
      s.registers += footprint(id, &of_result);
      s.accesses += footprint(id, nullptr);
    }
    s.reuse = 1 + s.flops_per_thread / s.accesses;
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
};

}  // namespace

std::vector<StatementSymbols> pruner_symbols(const NestTable& table, double transaction_bytes) {
  std::vector<StatementSymbols> out;
  for (const Nest& nest : table.nests()) {
    const auto written = std::find_if(nest.accesses.begin(), nest.accesses.end(),
                                      [](const NestAccess& a) { return a.is_write; });
    if (nest.block == nullptr || written == nest.accesses.end()) continue;
    auto known = std::find_if(out.begin(), out.end(), [&](const StatementSymbols& s) {
      return s.buffer == written->buffer;
    });
    if (known == out.end()) known = out.insert(out.end(), StatementSymbols{});
    *known = Reader(table, nest).read(*known, transaction_bytes);
  }
  return out;
}

}  // namespace prunerc::costmodel

#include "costmodel/pruner/symbols.h"

#include "costmodel/latency/nest.h"
#include "ir/evaluate_int.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

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

  StatementSymbols read(StatementSymbols before, int64_t transaction_bytes) {
    StatementSymbols s;
    s.accesses = before.accesses;
    s.buffer = written().buffer;
    double per_thread = 1;
    for (const NestLoop& loop : nest_.loops) {
      const auto extent = static_cast<double>(loop.extent);
      if (ir::is_block_axis(loop.kind)) {
        s.blocks *= extent;
      } else if (ir::is_lane_axis(loop.kind)) {
        s.threads *= extent;
      } else {
        per_thread *= extent;
        if (ir::is_thread_axis(loop.kind)) s.vthreads *= extent;
      }
    }
    const ir::Stmt body = nest_.is_init ? nest_.block->init : nest_.block->body;
    s.flops_per_thread = per_thread * count_ops(body);
    s.flops = s.flops_per_thread * s.blocks * s.threads;
    if (s.flops_per_thread > 0) {
      compute(s);
    } else {
      move(s, per_thread);
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

  bool moves(const NestAccess& access, std::size_t loop) const {
    return std::any_of(access.indices.begin(), access.indices.end(), [&](Expr index) {
      return table_.depends(nest_, index, static_cast<int>(loop));
    });
  }

  // Loops of one thread that move the access.
  std::set<std::size_t> loops_of(ir::BufferId id) const {
    std::set<std::size_t> out;
    for (std::size_t i = 0; i < nest_.loops.size(); ++i) {
      if (is_outside(nest_.loops[i].kind)) continue;
      for (const NestAccess& access : nest_.accesses) {
        if (access.buffer == id && moves(access, i)) out.insert(i);
      }
    }
    return out;
  }

  double footprint(ir::BufferId id, const std::set<std::size_t>* within) const {
    double out = 1;
    for (const std::size_t i : loops_of(id)) {
      if (within == nullptr || within->count(i) != 0)
        out *= static_cast<double>(nest_.loops[i].extent);
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
    const std::set<std::size_t> of_result = loops_of(s.buffer);
    for (const ir::BufferId id : buffers()) {
      s.registers += footprint(id, &of_result);
      s.accesses += footprint(id, nullptr);
    }
    s.reuse = 1 + s.flops_per_thread / s.accesses;
  }

  void move(StatementSymbols& s, double per_thread) const {
    const auto bytes = static_cast<double>(ir::byte_size(buffer(s.buffer).dtype));
    if (buffer(s.buffer).scope == ir::Scope::kShared) {
      const std::set<std::size_t> of_result = loops_of(s.buffer);
      s.shared = footprint(buffers().front(), &of_result) * s.threads;
      s.dram = s.shared * s.blocks;
      s.shared_bytes = bytes;
      for (const double extent : table_.shape(s.buffer)) s.shared_bytes *= extent;
    } else if (buffer(s.buffer).scope == ir::Scope::kGlobal) {
      s.dram = per_thread * s.blocks * s.threads;
    }
    s.dram_bytes = s.dram * bytes;
  }

  // ---- what one warp asks of global memory at once ----

  std::optional<int64_t> value(Expr e, const std::unordered_map<int32_t, int64_t>& at) const {
    return ir::evaluate_int(e, [&](Expr leaf) -> std::optional<int64_t> {
      const auto* var = leaf.as<ir::Var>();
      if (var == nullptr) return std::nullopt;
      if (const auto known = at.find(var->id.value); known != at.end()) return known->second;
      for (const ir::IterVar& iter : nest_.block->iters) {
        if (iter.var->id == var->id) return value(iter.binding, at);
      }
      return 0;  // a loop that stands still
    });
  }

  std::optional<int64_t> address(const NestAccess& access,
                                 const std::unordered_map<int32_t, int64_t>& at) const {
    int64_t out = 0;
    const ir::Buffer& target = buffer(access.buffer);
    for (std::size_t d = 0; d < access.indices.size(); ++d) {
      const std::optional<int64_t> index = value(access.indices[d], at);
      const auto* extent = target.shape[d].as<ir::IntImm>();
      if (!index || extent == nullptr) return std::nullopt;
      out = out * extent->value + *index;
    }
    return out * access.element_bytes;
  }

  // The loops whose iterations one warp runs at once, the fastest first: lanes of a vector,
  // threads.
  std::vector<const NestLoop*> warp_loops() const {
    std::vector<const NestLoop*> out;
    for (std::size_t i = nest_.loops.size(); i-- > 0;) {
      if (nest_.loops[i].kind == ir::LoopKind::kVectorized) out.push_back(&nest_.loops[i]);
    }
    for (const ir::LoopKind kind :
         {ir::LoopKind::kThreadX, ir::LoopKind::kThreadY, ir::LoopKind::kThreadZ}) {
      for (const NestLoop& loop : nest_.loops) {
        if (loop.kind == kind) out.push_back(&loop);
      }
    }
    return out;
  }

  void transactions(StatementSymbols& s, int64_t transaction_bytes) const {
    constexpr int64_t kWarp = 32;
    const std::vector<const NestLoop*> loops = warp_loops();
    int64_t lanes = 1, vector = 1;
    for (const NestLoop* loop : loops) {
      lanes *= loop->extent;
      if (loop->kind == ir::LoopKind::kVectorized) vector *= loop->extent;
    }
    lanes = std::min(lanes, kWarp * vector);
    for (const NestAccess& access : nest_.accesses) {
      if (buffer(access.buffer).scope != ir::Scope::kGlobal) continue;
      std::set<int64_t> places, pieces;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        std::unordered_map<int32_t, int64_t> at;
        int64_t rest = lane;
        for (const NestLoop* loop : loops) {
          at[loop->var.value] = rest % loop->extent;
          rest /= loop->extent;
        }
        const std::optional<int64_t> byte = address(access, at);
        if (!byte) return;
        places.insert(*byte);
        pieces.insert(ir::floor_div(*byte, transaction_bytes));
      }
      s.useful_bytes +=
          static_cast<double>(places.size()) * static_cast<double>(access.element_bytes);
      s.transferred_bytes +=
          static_cast<double>(pieces.size()) * static_cast<double>(transaction_bytes);
    }
  }

  const NestTable& table_;
  const Nest& nest_;
};

}  // namespace

std::vector<StatementSymbols> pruner_symbols(const ir::Program& scheduled,
                                             int64_t transaction_bytes) {
  const NestTable table(scheduled);
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

#include "search/algebra/roofline.h"

#include "ir/analysis/flops.h"
#include "ir/builder.h"
#include "ir/query.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace prunerc::search::algebra {
namespace {

// Bytes per ns where nothing was measured: a desktop's.
constexpr double kL2Rate = 100, kL3Rate = 50, kMemoryRate = 20;
/// Rows of a task in sketch "chain", whose intermediates stay where the task runs.
constexpr double kChainRows = 24;

struct Nest {
  double flops = 0;
  bool reduces = false;
  std::map<ir::BufferId, double>
      again;  // how often elements are read for want of an axis to share them
  std::set<ir::BufferId> reads, writes;
  std::map<ir::BufferId, std::vector<bool>>
      apart;  // dimensions along which instances share nothing
  bool shares_rows =
      false;  // a sum of products, one factor the same along an axis that is no vector
};

bool shares_rows(const ir::Block& block) {
  const bool reduces = std::any_of(block.iters.begin(), block.iters.end(), [](const auto& iter) {
    return iter.kind == ir::IterKind::kReduce;
  });
  if (!reduces || block.writes.size() != 1 || block.writes[0].region.empty()) return false;
  const auto moves = [](const ir::Access& access, ir::VarId var) {
    return std::any_of(access.region.begin(), access.region.end(),
                       [&](const ir::Range& range) { return ir::mentions(range.min, var); });
  };
  return std::any_of(block.iters.begin(), block.iters.end(), [&](const ir::IterVar& iter) {
    const bool is_vector = ir::mentions(block.writes[0].region.back().min, iter.var->id);
    if (iter.kind != ir::IterKind::kSpatial || is_vector) return false;
    if (ir::constant_value(iter.extent) == 1) return false;
    return std::any_of(block.reads.begin(), block.reads.end(), [&](const ir::Access& access) {
      return access.buffer != block.writes[0].buffer && !moves(access, iter.var->id);
    });
  });
}

// Dimensions whose subscript is a spatial variable of the block, in all accesses so far.
void find_apart(const ir::Block& block, ir::BufferId id, std::span<const ir::Expr> indices,
                Nest* nest) {
  std::vector<bool>& apart =
      nest->apart.try_emplace(id, std::vector<bool>(indices.size(), true)).first->second;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    const auto* var = indices[d].as<ir::Var>();
    const bool is_spatial =
        var != nullptr && std::any_of(block.iters.begin(), block.iters.end(), [&](const auto& i) {
          return i.var->id == var->id && i.kind == ir::IterKind::kSpatial;
        });
    apart[d] = apart[d] && is_spatial;
  }
}

double ops_of(const ir::OpCounts& ops) {
  return ops.mul_add + ops.compare + ops.integer + 4 * ops.divide + kSpecialFlops * ops.special;
}

// X[h // 8] moves with h, though it takes a new element every 8 steps: no tile shares it.
double divided_by(const ir::Load& load) {
  double product = 1;
  for (ir::Expr index : load.indices) {
    ir::walk(index, [&](ir::Expr e) {
      const auto* div = e.as<ir::FloorDiv>();
      if (div != nullptr && div->lhs.kind() == ir::ExprKind::kVar) {
        product *= static_cast<double>(ir::constant_value(div->rhs).value_or(1));
      }
      return true;
    });
  }
  return product;
}

Nest read_nest(const ir::Program& program, ir::Stmt root) {
  Nest nest;
  ir::IrBuilder b(program);
  if (const Result<ir::OpCounts> ops = ir::count_ops(b.finish(root)); ops.ok()) {
    nest.flops = ops_of(*ops);
  }
  const ir::Block* inside = nullptr;
  ir::walk(
      root,
      [&](ir::Stmt s) {
        if (const auto* store = s.as<ir::Store>()) {
          nest.writes.insert(store->buffer);
          if (inside != nullptr) find_apart(*inside, store->buffer, store->indices, &nest);
        }
        if (const auto* block = s.as<ir::Block>()) {
          inside = block;
          nest.shares_rows = nest.shares_rows || shares_rows(*block);
          for (const ir::IterVar& iter : block->iters) {
            nest.reduces = nest.reduces || iter.kind != ir::IterKind::kSpatial;
          }
        }
        return true;
      },
      [&](ir::Expr e) {
        ir::walk(e, [&](ir::Expr part) {
          const auto* load = part.as<ir::Load>();
          if (load == nullptr) return true;
          nest.reads.insert(load->buffer);
          if (inside != nullptr) find_apart(*inside, load->buffer, load->indices, &nest);
          double& again = nest.again.try_emplace(load->buffer, 1).first->second;
          again = std::max(again, divided_by(*load));
          return true;
        });
      });
  for (const ir::BufferId id : nest.writes) nest.reads.erase(id);
  return nest;
}

double bytes_of(const ir::Buffer& buffer) {
  auto bytes = static_cast<double>(ir::byte_size(buffer.dtype));
  for (ir::Expr extent : buffer.shape) {
    bytes *= static_cast<double>(ir::constant_value(extent).value_or(1));
  }
  return bytes;
}

// Of one instance along the dimensions that all nests have apart, but for vectors: what a task of sketch
// "chain" holds for each of its rows; all of it where there is no chain.
double bytes_of_row(const ir::Buffer& buffer, const std::vector<Nest>& nests) {
  const auto num_products =
      std::count_if(nests.begin(), nests.end(), [](const Nest& nest) { return nest.shares_rows; });
  auto bytes = static_cast<double>(ir::byte_size(buffer.dtype));
  for (std::size_t d = 0; d < buffer.shape.size(); ++d) {
    const bool may_be = num_products >= 2 && d + 1 < buffer.shape.size();
    const bool is_apart = may_be && std::all_of(nests.begin(), nests.end(), [&](const Nest& nest) {
                            const auto found = nest.apart.find(buffer.id);
                            return found == nest.apart.end() || found->second[d];
                          });
    if (!is_apart) bytes *= static_cast<double>(ir::constant_value(buffer.shape[d]).value_or(1));
  }
  return bytes;
}

class Rates {
 public:
  explicit Rates(const ir::Target& target) : target_(target) {
    const ir::Platform& p = target.platform;
    const bool many = target.num_threads > 1;
    const auto pick = [&](double all, double one, double usual) {
      return (many && all > 0 ? all : one > 0 ? one : usual * 1e9) / 1e9;
    };
    l2_ = pick(p.l2_bandwidth_all, p.l2_bandwidth, kL2Rate);
    l3_ = pick(p.l3_bandwidth_all, p.l3_bandwidth, kL3Rate);
    memory_ = pick(p.memory_bandwidth_all, p.memory_bandwidth, kMemoryRate);
    near_bytes_ =
        target.kind == ir::TargetKind::kCpu ? target.l2_bytes / 2 : target.smem_bytes_per_block;
    const double measured = many ? p.fma_gflops_all : p.fma_gflops;
    flops_ = measured > 0 ? measured
                          : std::max(1.0, target.peak_gflops()) *
                                static_cast<double>(std::max<int64_t>(1, target.num_threads));
  }
  double flops_ns(double flops) const { return flops / flops_; }
  double bytes_ns(const ir::Buffer& buffer, double bytes, double row_bytes,
                  bool is_constant) const {
    if (is_constant || buffer.role != ir::BufferRole::kIntermediate) return bytes / memory_;
    if (kChainRows * row_bytes <= static_cast<double>(near_bytes_)) return bytes / l2_;
    if (bytes <= static_cast<double>(target_.l2_bytes) / 2) return bytes / l2_;
    if (bytes <= static_cast<double>(target_.l3_bytes) / 2) return bytes / l3_;
    return bytes / memory_;
  }

 private:
  const ir::Target& target_;
  double flops_ = 1, l2_ = 1, l3_ = 1, memory_ = 1;
  int64_t near_bytes_ = 0;  // what a task may hold of its rows
};

// The nest that each runs in: an elementwise nest in that which writes what it alone reads.
std::vector<std::size_t> fuse(const ir::Program& program, const std::vector<Nest>& nests,
                              const std::map<ir::BufferId, int>& readers) {
  std::vector<std::size_t> groups(nests.size());
  std::map<ir::BufferId, std::size_t> writers;
  for (std::size_t n = 0; n < nests.size(); ++n) {
    const Nest& nest = nests[n];
    groups[n] = n;
    for (const ir::BufferId id : nest.reads) {
      if (nest.reduces || nest.writes.size() != 1 || writers.count(id) == 0) continue;
      const double size = bytes_of(program.buffer(*nest.writes.begin()));
      if (readers.at(id) == 1 && bytes_of(program.buffer(id)) == size) {
        groups[n] = groups[writers.at(id)];
      }
    }
    for (const ir::BufferId id : nest.writes) {
      if (program.buffer(id).role == ir::BufferRole::kIntermediate) writers[id] = n;
    }
  }
  return groups;
}

// Whether what touches the buffer runs in one nest, so that it never leaves registers.
bool is_inside(const std::vector<Nest>& nests, const std::vector<std::size_t>& groups,
               ir::BufferId id) {
  std::set<std::size_t> touching;
  int num_nests = 0;
  for (std::size_t n = 0; n < nests.size(); ++n) {
    if (nests[n].reads.count(id) + nests[n].writes.count(id) == 0) continue;
    touching.insert(groups[n]);
    ++num_nests;
  }
  return num_nests > 1 && touching.size() == 1;
}

}  // namespace

Roofline roofline(const ir::Program& program, const ir::Target& target) {
  std::vector<Nest> nests;
  const ir::Stmt root = program.root();
  if (!root.defined()) return {};
  if (const auto* seq = root.as<ir::Seq>()) {
    for (ir::Stmt s : seq->stmts) nests.push_back(read_nest(program, s));
  } else {
    nests.push_back(read_nest(program, root));
  }
  std::map<ir::BufferId, int> readers;
  for (const Nest& nest : nests) {
    for (const ir::BufferId id : nest.reads) ++readers[id];
  }
  // What follows from constants is computed once, before the first call.
  std::set<ir::BufferId> constant;
  for (const ir::Buffer& buffer : program.buffers()) {
    if (buffer.is_const) constant.insert(buffer.id);
  }
  const auto is_ahead = [&](const Nest& nest) {
    return !nest.reads.empty() &&
           std::all_of(nest.reads.begin(), nest.reads.end(),
                       [&](ir::BufferId id) { return constant.count(id) > 0; });
  };
  const std::vector<std::size_t> groups = fuse(program, nests, readers);
  const Rates rates(target);
  Roofline out;
  std::vector<double> flops(nests.size()), moved_ns(nests.size());
  for (std::size_t n = 0; n < nests.size(); ++n) {
    const Nest& nest = nests[n];
    if (is_ahead(nest)) {
      constant.insert(nest.writes.begin(), nest.writes.end());
      continue;
    }
    for (const auto* side : {&nest.reads, &nest.writes}) {
      for (const ir::BufferId id : *side) {
        if (is_inside(nests, groups, id)) continue;
        const auto again = nest.again.find(id);
        const double bytes =
            bytes_of(program.buffer(id)) * (again == nest.again.end() ? 1 : again->second);
        out.bytes += bytes;
        moved_ns[groups[n]] +=
            rates.bytes_ns(program.buffer(id), bytes, bytes_of_row(program.buffer(id), nests),
                           constant.count(id) > 0);
      }
    }
    out.flops += nest.flops;
    flops[groups[n]] += nest.flops;
  }
  for (std::size_t n = 0; n < nests.size(); ++n) {
    out.limit_ns += std::max(rates.flops_ns(flops[n]), moved_ns[n]);
  }
  return out;
}

}  // namespace prunerc::search::algebra

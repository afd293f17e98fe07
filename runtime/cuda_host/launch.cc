#include "runtime/cuda_host/launch.h"

#include "runtime/cuda_host/block.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace prunerc::runtime::cuda_host {
namespace {

Thread& of(PrHostThread* self) { return *static_cast<Thread*>(self->runtime); }
uint64_t* bits(unsigned long long* bar) { return reinterpret_cast<uint64_t*>(bar); }

std::vector<int64_t> block_order(int64_t num_blocks, const ExecutionOptions& options) {
  std::vector<int64_t> order(static_cast<size_t>(num_blocks));
  std::iota(order.begin(), order.end(), 0);
  if (options.order == ThreadOrder::kDescending) std::reverse(order.begin(), order.end());
  if (options.order == ThreadOrder::kRandom) {
    std::mt19937_64 rng(options.seed);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng() % i]);
  }
  return order;
}

}  // namespace

std::string_view to_string(ThreadOrder order) {
  switch (order) {
    case ThreadOrder::kAscending: return "ascending";
    case ThreadOrder::kDescending: return "descending";
    case ThreadOrder::kRandom: return "random";
  }
  return "";
}

std::string_view to_string(AsyncMode mode) {
  switch (mode) {
    case AsyncMode::kEager: return "eager";
    case AsyncMode::kLazy: return "lazy";
    case AsyncMode::kLateMma: return "late wgmma";
  }
  return "";
}

const PrHostApi& host_api() {
  static const PrHostApi api = {
      .barrier = [](PrHostThread* t, int id, int threads,
                    int wait) { of(t).block->barrier(of(t), id, threads, wait != 0); },
      .cluster_barrier = [](PrHostThread* t) { of(t).block->cluster_barrier(of(t)); },
      .warp = [](PrHostThread* t, const PrHostCollective* op) { of(t).block->warp_op(of(t), *op); },
      .cp_async = [](PrHostThread* t, void* dst, const void* src, int bytes,
                     int valid) { cp_async(of(t), dst, src, bytes, valid != 0); },
      .cp_async_commit = [](PrHostThread* t) { cp_async_commit(of(t)); },
      .cp_async_wait = [](PrHostThread* t, int keep) { cp_async_wait(of(t), keep); },
      .mbar_init = [](PrHostThread* t, unsigned long long* bar,
                      int count) { mbar_init(of(t), bits(bar), count); },
      .mbar_arrive = [](PrHostThread* t,
                        unsigned long long* bar) { mbar_arrive(of(t), bits(bar)); },
      .mbar_arrive_at = [](PrHostThread* t, unsigned long long* bar,
                           int rank) { mbar_arrive_at(of(t), bits(bar), rank); },
      .mbar_expect_tx = [](PrHostThread* t, unsigned long long* bar,
                           int bytes) { mbar_expect_tx(of(t), bits(bar), bytes); },
      .mbar_wait = [](PrHostThread* t, unsigned long long* bar,
                      int parity) { mbar_wait(of(t), bits(bar), parity); },
      .tma_load = [](PrHostThread* t, void* dst, const PrHostTensorMap* map, int x, int y,
                     unsigned long long* bar) { tma_load(of(t), dst, *map, x, y, bits(bar)); },
      .tma_load_multicast =
          [](PrHostThread* t, void* dst, const PrHostTensorMap* map, int x, int y,
             unsigned long long* bar,
             int mask) { tma_load_multicast(of(t), dst, *map, x, y, bits(bar), mask); },
      .tma_load_im2col =
          [](PrHostThread* t, void* dst, const PrHostTensorMap* map, int c, const PrHostPixel* at,
             unsigned long long* bar) { tma_load_im2col(of(t), dst, *map, c, *at, bits(bar)); },
      .tma_store = [](PrHostThread* t, const PrHostTensorMap* map, const void* src, int x,
                      int y) { tma_store(of(t), *map, src, x, y); },
      .tma_store_commit = [](PrHostThread* t) { tma_store_commit(of(t)); },
      .tma_store_wait = [](PrHostThread* t, int keep) { tma_store_wait(of(t), keep); },
      .wgmma = [](PrHostThread* t, const PrHostWgmma* op) { wgmma(of(t), *op); },
      .wgmma_commit = [](PrHostThread* t) { wgmma_commit(of(t)); },
      .wgmma_wait = [](PrHostThread* t, int keep) { wgmma_wait(of(t), keep); },
      .fault = [](PrHostThread* t, const char* what) { of(t).block->fault(of(t), what); },
  };
  return api;
}

std::string launch(const Grid& grid, PrHostKernel kernel, void** args,
                   const ExecutionOptions& options) {
  if (grid.cluster < 1 || grid.cluster > kMaxCluster || grid.blocks[0] % grid.cluster != 0)
    return "clusters do not divide the grid";
  const int64_t threads = grid.threads[0] * grid.threads[1] * grid.threads[2];
  if (grid.cluster > 1 && threads % kWarpGroupSize != 0)
    return "the blocks of a cluster are no whole warpgroups";
  // Clusters, and their first blocks.
  const int64_t nx = grid.blocks[0] / grid.cluster, ny = grid.blocks[1], nz = grid.blocks[2];
  const std::vector<int64_t> order = block_order(nx * ny * nz, options);
  const BlockShape shape = {.threads = grid.threads,
                            .shared_bytes = grid.shared_bytes,
                            .cluster = static_cast<int>(grid.cluster)};
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::string fault;
  const auto work = [&](uint64_t worker) {
    ExecutionOptions own = options;
    own.seed = options.seed + worker;
    Block block(shape, own);
    for (size_t i = next++; i < order.size(); i = next++) {
      const int64_t at = order[i];
      std::string what =
          block.run({at % nx * grid.cluster, at / nx % ny, at / (nx * ny)}, kernel, args);
      if (what.empty()) continue;
      next = order.size();
      const std::lock_guard lock(mutex);
      if (fault.empty()) fault = std::move(what);
    }
  };
  const int64_t num_workers = std::clamp<int64_t>(options.num_threads, 1, nx * ny * nz);
  std::vector<std::thread> workers;
  for (int64_t i = 1; i < num_workers; ++i) workers.emplace_back(work, static_cast<uint64_t>(i));
  work(0);
  for (std::thread& worker : workers) worker.join();
  return fault;
}

}  // namespace prunerc::runtime::cuda_host

// Shards: how a batch is cut for threads. The cut depends on the batch only, and what shards add up
// is added in their order, so that results are the same for any number of threads.
#ifndef PRUNERC_COSTMODEL_NN_SHARDS_H_
#define PRUNERC_COSTMODEL_NN_SHARDS_H_

#include "costmodel/nn/matrix.h"
#include "ir/support/parallel.h"

#include <cstddef>
#include <functional>
#include <vector>

namespace prunerc::costmodel::nn {

/// Items first .. first + count.
struct Shard {
  int first = 0;
  int count = 0;
  bool operator==(const Shard&) const = default;
};

/// Cuts `count` items into at most `most` shards of nearly one size, of no less than `least` items
/// where there are so many.
std::vector<Shard> make_shards(int count, int least, int most);

/// body(i) for i in 0 .. count, by the pool's threads, or by the caller alone if `pool` is null.
void run_shards(ThreadPool* pool, std::size_t count, const std::function<void(std::size_t)>& body);

/// total[k] += parts[0][k] + parts[1][k] + ..., in this order. Parts are as long as `total`.
template <typename T>
void add_in_order(ThreadPool* pool, const std::vector<Vector<T>>& parts, Vector<T>* total);

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_SHARDS_H_

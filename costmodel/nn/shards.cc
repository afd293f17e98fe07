#include "costmodel/nn/shards.h"

#include <algorithm>

namespace prunerc::costmodel::nn {
namespace {

/// Numbers that one thread adds up at a time: as many as a small cache holds.
constexpr std::size_t kBlock = 8192;

}  // namespace

std::vector<Shard> make_shards(int count, int least, int most) {
  const int shards = std::clamp(count / std::max(least, 1), 1, std::max(most, 1));
  std::vector<Shard> result;
  int first = 0;
  for (int i = 0; i < shards; ++i) {
    const int end = static_cast<int>(int64_t{count} * (i + 1) / shards);
    result.push_back({first, end - first});
    first = end;
  }
  return result;
}

void run_shards(ThreadPool* pool, std::size_t count, const std::function<void(std::size_t)>& body) {
  if (pool != nullptr) {
    pool->for_each(count, body);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) body(i);
}

template <typename T>
void add_in_order(ThreadPool* pool, const std::vector<Vector<T>>& parts, Vector<T>* total) {
  const std::size_t blocks = (total->size() + kBlock - 1) / kBlock;
  run_shards(pool, blocks, [&](std::size_t block) {
    const std::size_t first = block * kBlock;
    const std::size_t end = std::min(first + kBlock, total->size());
    T* const out = total->data();
    for (const Vector<T>& part : parts) {
      const T* const in = part.data();
      for (std::size_t k = first; k < end; ++k) out[k] += in[k];
    }
  });
}

template void add_in_order<float>(ThreadPool*, const std::vector<Vector<float>>&, Vector<float>*);
template void add_in_order<double>(ThreadPool*, const std::vector<Vector<double>>&,
                                   Vector<double>*);

}  // namespace prunerc::costmodel::nn

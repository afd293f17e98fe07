// ValueSets: max and min as what they are without an order, sets of values.
#ifndef PRUNERC_IR_FPV_VALUE_SET_H_
#define PRUNERC_IR_FPV_VALUE_SET_H_

#include "ir/fpv/value.h"

#include <cstdint>
#include <span>
#include <vector>

namespace prunerc::ir {

/// The free idempotent, commutative, associative operation on values. join(x, y) gives x or y if
/// one holds the other, else a value that is a keyed hash of the set of everything joined into it;
/// a value that came out of join is recognised later by its bits. Sets are binary tries over hashes
/// of their elements: their form depends on the set alone, and versions share parts.
/// Source: Okasaki and Gill, Fast Mergeable Integer Maps, 1998.
class ValueSets {
 public:
  ValueSets(uint64_t key, const FpPrimes& primes) : key_(mix64(key)), primes_(primes) {}

  FpValue join(FpValue x, FpValue y);
  /// x joined with each of `ys`; what lies between is not remembered.
  FpValue join(FpValue x, std::span<const FpValue> ys);
  /// Memory in use, for limits.
  std::size_t num_nodes() const { return nodes_.size(); }

 private:
  struct Node {
    uint64_t prefix = 0;  // a leaf: the element's hash; else its bits above `bit`
    uint64_t bit = 0;     // 0: a leaf; else the highest bit in which the children differ
    uint64_t sum = 0;     // of the elements' hashes under two keys: names the set
    uint64_t sum2 = 0;
    int32_t zero = -1, one = -1;
    bool operator==(const Node&) const = default;
  };
  struct Entry {
    FpValue value;
    int32_t set = -1;  // -1: free
  };
  int32_t set_of(FpValue x);
  FpValue value_of(int32_t set);
  bool same(int32_t a, int32_t b) const {
    return at(a).sum == at(b).sum && at(a).sum2 == at(b).sum2;
  }
  Entry& entry_of(FpValue value);
  void remember(FpValue value, int32_t set);
  int32_t merge(int32_t a, int32_t b);
  int32_t put(const Node& node) {
    nodes_.push_back(node);
    return static_cast<int32_t>(nodes_.size()) - 1;
  }
  int32_t fork(int32_t a, int32_t b);
  int32_t with_children(const Node& node, int32_t zero, int32_t one);
  const Node& at(int32_t id) const { return nodes_[static_cast<std::size_t>(id)]; }

  uint64_t key_;
  FpPrimes primes_;
  std::vector<Node> nodes_;
  std::vector<Entry> made_;  // joined value -> its set; open addressing
  std::size_t num_made_ = 0;
};

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_FPV_VALUE_SET_H_

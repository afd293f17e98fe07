#include "ir/fpv/value_set.h"

#include <algorithm>
#include <bit>

namespace prunerc::ir {

FpValue ValueSets::join(FpValue x, FpValue y) { return join(x, std::span(&y, 1)); }

FpValue ValueSets::join(FpValue x, std::span<const FpValue> ys) {
  const int32_t start = set_of(x);
  int32_t all = start;
  FpValue last = x;
  int32_t last_set = start;
  for (const FpValue& y : ys) {
    if (y == x) continue;
    last = y;
    last_set = set_of(y);
    all = merge(all, last_set);
  }
  if (same(all, start)) return x;
  if (same(all, last_set)) return last;
  return value_of(all);
}

FpValue ValueSets::value_of(int32_t set) {
  const uint64_t h = hash_combine(at(set).sum ^ key_, at(set).sum2);
  const uint64_t more = mix64(h + key_);
  const FpValue out = residues(h, more, primes_);
  remember(out, set);
  return out;
}

ValueSets::Entry& ValueSets::entry_of(FpValue value) {
  std::size_t i = mix64(value.word()) & (made_.size() - 1);
  while (made_[i].set >= 0 && made_[i].value != value) i = (i + 1) & (made_.size() - 1);
  return made_[i];
}

void ValueSets::remember(FpValue value, int32_t set) {
  if (2 * (num_made_ + 1) > made_.size()) {
    std::vector<Entry> old(std::max<std::size_t>(64, 2 * made_.size()));
    old.swap(made_);
    for (const Entry& entry : old) {
      if (entry.set >= 0) entry_of(entry.value) = entry;
    }
  }
  Entry& entry = entry_of(value);
  if (entry.set >= 0) return;
  entry = {value, set};
  ++num_made_;
}

int32_t ValueSets::set_of(FpValue x) {
  if (!made_.empty()) {
    const Entry& entry = entry_of(x);
    if (entry.set >= 0) return entry.set;
  }
  Node leaf;
  leaf.prefix = x.hash(key_);
  leaf.sum = mix64(leaf.prefix ^ key_);
  leaf.sum2 = mix64(leaf.prefix + 0x9E3779B97F4A7C15ULL);
  return put(leaf);
}

// A node over two sets whose elements differ first in one bit.
int32_t ValueSets::fork(int32_t a, int32_t b) {
  const uint64_t differ = at(a).prefix ^ at(b).prefix;
  Node node;
  node.bit = uint64_t{1} << (63 - std::countl_zero(differ));
  node.prefix = at(a).prefix & ~(node.bit | (node.bit - 1));
  const bool a_is_one = (at(a).prefix & node.bit) != 0;
  return with_children(node, a_is_one ? b : a, a_is_one ? a : b);
}

int32_t ValueSets::with_children(const Node& shape, int32_t zero, int32_t one) {
  Node node = shape;
  node.zero = zero;
  node.one = one;
  node.sum = at(zero).sum + at(one).sum;
  node.sum2 = at(zero).sum2 + at(one).sum2;
  return put(node);
}

// The union; `a` or `b` itself where it is one of them. Recursion is at most 64 deep.
int32_t ValueSets::merge(int32_t a, int32_t b) {
  if (a == b) return a;
  const Node x = at(a);
  const Node y = at(b);
  if (x.sum == y.sum && x.sum2 == y.sum2) return a;
  if (x.bit < y.bit) {
    const int32_t merged = merge(b, a);
    return merged;
  }
  // x branches at the higher bit (or both are leaves, which differ).
  const uint64_t above = x.bit == 0 ? ~uint64_t{0} : ~(x.bit | (x.bit - 1));
  if (((x.prefix ^ y.prefix) & above) != 0) return fork(a, b);
  if (x.bit == y.bit) {
    const int32_t zero = merge(x.zero, y.zero);
    const int32_t one = merge(x.one, y.one);
    if (zero == x.zero && one == x.one) return a;
    if (zero == y.zero && one == y.one) return b;
    return with_children(x, zero, one);
  }
  if ((y.prefix & x.bit) != 0) {
    const int32_t one = merge(x.one, b);
    return one == x.one ? a : with_children(x, x.zero, one);
  }
  const int32_t zero = merge(x.zero, b);
  return zero == x.zero ? a : with_children(x, zero, x.one);
}

}  // namespace prunerc::ir

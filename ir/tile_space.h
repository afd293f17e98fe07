// The ways to tile one loop, as plain numbers: counted exactly, numbered, drawn uniformly, with
// neighbours.
#ifndef PRUNERC_IR_TILE_SPACE_H_
#define PRUNERC_IR_TILE_SPACE_H_

#include "ir/domain.h"
#include "ir/support/rng.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace prunerc::ir {

/// Prime factors with their exponents, ascending; none for n < 2. The last one may be composite if
/// n exceeds 2^40, so that no number takes long. Cost: O(sqrt(n)) divisions, at most 2^20.
std::vector<std::pair<int64_t, int>> prime_factors(int64_t n);
/// All divisors, ascending.
std::vector<int64_t> divisors(int64_t n);
/// Ways to distribute `items` equal things over `bins` levels: binomial(items + bins - 1, items).
/// Saturates at UINT64_MAX.
uint64_t compositions(int items, int bins);

/// Tile vectors (outermost first) of one extent. Perfect: their product is the extent. Covering:
/// the outermost is ceildiv(extent, product of the rest), and the padded extent exceeds the extent
/// by at most a quarter. With `max_innermost` > 0 the innermost is at most that. Immutable once
/// made; may be shared by threads.
class TileSpace {
 public:
  /// Extents and levels of at least 1. Empty for a covering space of an extent above
  /// kMaxCoveringExtent.
  TileSpace(int64_t extent, int levels, TileKind kind, int64_t max_innermost);
  /// Cost: perfect, O(sqrt(extent)) once; covering, O(levels * extent^(3/4)) once.
  explicit TileSpace(const TileVector& tiles)
      : TileSpace(tiles.extent, static_cast<int>(tiles.params.size()), tiles.kind,
                  tiles.max_innermost) {}

  static constexpr int64_t kMaxCoveringExtent = int64_t{1} << 30;
  /// Padding that a covering tile may add: extent / kMaxWaste.
  static constexpr int64_t kMaxWaste = 4;

  int64_t extent() const { return extent_; }
  int levels() const { return levels_; }
  TileKind kind() const { return kind_; }
  /// Number of tile vectors; 0 if none fits. Saturates at UINT64_MAX.
  uint64_t count() const { return count_; }
  /// Whether the vector belongs to the space.
  bool contains(std::span<const int64_t> tiles) const;
  /// The vector with this number, 0 <= rank < count(). Every vector has exactly one number.
  std::vector<int64_t> unrank(uint64_t rank) const;
  /// Each vector with equal probability. The space is not empty.
  std::vector<int64_t> sample(Rng& rng) const { return unrank(rng.below(count_)); }
  /// One step away. Perfect: a prime factor moved between two levels. Covering: an inner tile one
  /// larger or smaller, doubled or halved (with the outermost following). In a fixed order, without
  /// repetitions.
  std::vector<std::vector<int64_t>> neighbours(std::span<const int64_t> tiles) const;

 private:
  /// How many ordered tuples of `k` positive integers have a product of at most x, for every
  /// x = bound / t.
  class ProductCounts {
   public:
    ProductCounts() = default;
    ProductCounts(int64_t bound, int max_k);
    /// x has the form floor(bound / t), or is 0.
    bool has(int64_t x) const;
    uint64_t at(int k, int64_t x) const;

   private:
    std::size_t index(int64_t x) const;
    int64_t bound_ = 0;
    int64_t root_ = 0;
    std::vector<std::vector<uint64_t>> counts_;  // [k][index of x]
  };
  /// Covering vectors with one outermost tile: those whose inner product lies in [low, high].
  struct Band {
    int64_t outermost, low, high;
    uint64_t first_rank, num;
  };

  void count_perfect();
  void count_covering();
  std::vector<int64_t> unrank_perfect(uint64_t rank) const;
  std::vector<int64_t> unrank_covering(uint64_t rank) const;
  uint64_t count_up_to(int k, int64_t x) const;
  template <typename F>
  void for_each_run(int k, int64_t cap, int64_t low, int64_t high, F&& f) const;
  uint64_t count_band(int64_t low, int64_t high) const;
  int64_t unrank_factor(int k, int64_t cap, int64_t low, int64_t high, uint64_t* rank) const;

  int64_t extent_;
  int levels_;
  TileKind kind_;
  int64_t max_innermost_;
  uint64_t count_ = 0;
  // Perfect: the innermost tile of each group, with the number of the first vector that has it.
  std::vector<std::pair<int64_t, uint64_t>> innermost_;
  // Covering.
  ProductCounts upper_, lower_;  // of floor(padded limit / t), of floor((extent - 1) / t)
  std::vector<Band> bands_;
};

/// All parameter values of a Domain, without its constraints: counted, numbered, drawn. Immutable;
/// holds no handles, so it may outlive the program.
class DomainSpace {
 public:
  explicit DomainSpace(const Domain& domain);

  std::size_t num_params() const { return num_params_; }
  /// Saturates at UINT64_MAX; 0 if some tile vector has no value.
  uint64_t count() const { return count_; }
  /// Values by ParamId.
  std::vector<int64_t> unrank(uint64_t rank) const;
  /// Uniform. count() is not 0.
  std::vector<int64_t> sample(Rng& rng) const;
  bool contains(std::span<const int64_t> params) const;
  /// A neighbour in one tile vector, or another value of one choice; the same values if there is
  /// only one point.
  std::vector<int64_t> mutate(std::span<const int64_t> params, Rng& rng) const;
  /// Each whole tile vector and each choice from one of two parents.
  std::vector<int64_t> crossover(std::span<const int64_t> a, std::span<const int64_t> b,
                                 Rng& rng) const;

 private:
  struct Group {
    std::vector<ParamId> params;
    TileSpace tiles;
    std::vector<int64_t> values;  // of a choice; empty for a tile vector
    uint64_t count() const { return values.empty() ? tiles.count() : values.size(); }
  };
  void set(const Group& group, uint64_t rank, std::vector<int64_t>* params) const;
  void set(const Group& group, const std::vector<int64_t>& values,
           std::vector<int64_t>* params) const;
  std::vector<int64_t> values_of(const Group& group, std::span<const int64_t> params) const;

  std::size_t num_params_;
  std::vector<Group> groups_;
  uint64_t count_ = 1;
};

/// Shorthand for one use; whoever draws often keeps a TileSpace.
uint64_t count_perfect_tiles(int64_t extent, int levels, int64_t max_innermost = 0);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_TILE_SPACE_H_

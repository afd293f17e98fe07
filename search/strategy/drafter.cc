#include "search/strategy/drafter.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace prunerc::search {
namespace {

/// Of the children; the rest are crossovers.
constexpr double kMutationShare = 0.6;
/// A second gene changes along, now and then: some are only good together.
constexpr double kSecondChange = 0.3;
/// Blocks with fewer new candidates than this share, one after another, end the drawing.
constexpr double kLeastNew = 1.0 / 64;
constexpr int kFruitlessBlocks = 16;
/// Feasible candidates of the uniform sample that are kept.
constexpr std::size_t kSampleSize = 1024;
/// Children are bred from parents chosen before the block; the choice is renewed so often.
constexpr int64_t kGeneration = 4096;

bool better(const Drafted& a, const Drafted& b) {
  return a.ns != b.ns ? a.ns < b.ns : a.key < b.key;
}

}  // namespace

Drafter::Drafter(DraftSketch& sketch, std::size_t keep, std::span<const double> coefficients,
                 uint64_t seed)
    : sketch_(sketch),
      keep_(std::max<std::size_t>(keep, 1)),
      coefficients_(coefficients.begin(), coefficients.end()),
      rng_(seed, static_cast<uint64_t>(sketch.sketch)),
      genes_(sketch.tables.size(), std::vector<int32_t>(2 * kBlock)),
      columns_(sketch.num_params, std::vector<double>(kBlock)),
      ns_(kBlock),
      fits_(kBlock),
      keys_(2 * kBlock),
      worst_(std::numeric_limits<double>::infinity()) {
  for (const std::vector<double>& column : columns_) column_of_.push_back(column.data());
}

uint64_t Drafter::key_of(std::size_t row) const {
  uint64_t key = 0;
  for (std::size_t d = 0; d < genes_.size(); ++d) {
    key = mix64(key + static_cast<uint64_t>(genes_[d][row]) + 0x9E3779B97F4A7C15ULL);
  }
  return key;
}

void Drafter::put(std::size_t row, std::span<const int32_t> genes) {
  for (std::size_t d = 0; d < genes_.size(); ++d) genes_[d][row] = genes[d];
}

void Drafter::exclude(std::span<const int32_t> genes) {
  const std::size_t free = num_waiting_ + num_proposed_;
  put(free, genes);
  seen_.insert(key_of(free));
}

void Drafter::add_parent(std::span<const int32_t> genes) {
  parents_.push_back({0, 0, {genes.begin(), genes.end()}});
}

void Drafter::propose(std::span<const int32_t> genes) {
  put(num_waiting_ + num_proposed_++, genes);
  if (num_proposed_ < kBlock) return;
  num_proposed_ = 0;
  take(kBlock, true);
}

void Drafter::finish() {
  take(std::exchange(num_proposed_, 0), true);
  score(num_waiting_, true);
}

void Drafter::draw(int64_t n) {
  finish();
  int fruitless = 0;
  while (n > 0 && fruitless < kFruitlessBlocks) {
    const std::size_t size = static_cast<std::size_t>(std::min<int64_t>(n, kBlock));
    for (std::size_t d = 0; d < genes_.size(); ++d) {
      const GeneTable& table = sketch_.tables[d];
      int32_t* const genes = genes_[d].data() + num_waiting_;
      for (std::size_t row = 0; row < size; ++row) genes[row] = table.draw(rng_);
    }
    const std::size_t num_new = take(size, true);
    const bool few = static_cast<double>(num_new) < kLeastNew * static_cast<double>(size);
    fruitless = few ? fruitless + 1 : 0;
    n -= static_cast<int64_t>(size);
  }
  score(num_waiting_, true);
}

void Drafter::breed_row(std::size_t row, std::span<const Drafted> parents) {
  // The better of three drawn ranks.
  const auto select = [&]() -> const Drafted& {
    uint64_t rank = rng_.below(parents.size());
    for (int i = 0; i < 2; ++i) rank = std::min(rank, rng_.below(parents.size()));
    return parents[rank];
  };
  put(row, select().genes);
  if (rng_.chance(kMutationShare)) {
    const int changes = rng_.chance(kSecondChange) ? 2 : 1;
    for (int i = 0; i < changes; ++i) {
      const auto d = static_cast<std::size_t>(rng_.below(genes_.size()));
      genes_[d][row] = sketch_.tables[d].neighbour(genes_[d][row], rng_);
    }
    return;
  }
  const Drafted& other = select();
  for (std::size_t d = 0; d < genes_.size(); ++d) {
    if (rng_.chance(0.5)) genes_[d][row] = other.genes[d];
  }
}

void Drafter::breed(int64_t n) {
  finish();
  if (genes_.empty()) return;
  int fruitless = 0;
  while (n > 0 && fruitless < kFruitlessBlocks) {
    std::vector<Drafted> parents = parents_;
    for (Drafted& held : best()) parents.push_back(std::move(held));
    if (parents.empty()) return;
    const int64_t generation = std::min(n, kGeneration);
    n -= generation;
    for (int64_t left = generation; left > 0; left -= static_cast<int64_t>(kBlock)) {
      const auto size = static_cast<std::size_t>(std::min<int64_t>(left, kBlock));
      for (std::size_t row = 0; row < size; ++row) breed_row(num_waiting_ + row, parents);
      const std::size_t num_new = take(size, false);
      const bool few = static_cast<double>(num_new) < kLeastNew * static_cast<double>(size);
      fruitless = few ? fruitless + 1 : 0;
    }
    score(num_waiting_, false);
  }
}

std::size_t Drafter::take(std::size_t n, bool to_sample) {
  counts_.proposed += static_cast<int64_t>(n);
  const std::size_t end = num_waiting_ + n;
  for (std::size_t row = num_waiting_; row < end; ++row) {
    keys_[row] = key_of(row);
    seen_.prefetch(keys_[row]);
  }
  std::size_t kept = num_waiting_;
  for (std::size_t row = num_waiting_; row < end; ++row) {
    if (!seen_.insert(keys_[row])) continue;
    keys_[kept] = keys_[row];
    for (std::vector<int32_t>& genes : genes_) genes[kept] = genes[row];
    ++kept;
  }
  const std::size_t num_new = kept - num_waiting_;
  num_waiting_ = kept;
  if (num_waiting_ >= kBlock) score(kBlock, to_sample);
  return num_new;
}

void Drafter::score(std::size_t n, bool to_sample) {
  if (n == 0) return;
  gather(n);
  double* const outputs[] = {ns_.data(), fits_.data()};
  sketch_.symbols.score.evaluate(column_of_, n, outputs, scratch_, coefficients_);
  counts_.scored += static_cast<int64_t>(n);
  for (std::size_t row = 0; row < n; ++row) {
    if (fits_[row] == 0) continue;
    ++counts_.feasible;
    if (ns_[row] < worst_) offer(ns_[row], keys_[row], row);
    if (!to_sample || sample_.size() >= kSampleSize) continue;
    sample_.push_back({ns_[row], keys_[row], {}});
    for (const std::vector<int32_t>& genes : genes_) sample_.back().genes.push_back(genes[row]);
  }
  const auto move_up = [&](auto& rows) {
    std::copy(rows.begin() + static_cast<std::ptrdiff_t>(n),
              rows.begin() + static_cast<std::ptrdiff_t>(num_waiting_), rows.begin());
  };
  move_up(keys_);
  for (std::vector<int32_t>& genes : genes_) move_up(genes);
  num_waiting_ -= n;
}

void Drafter::gather(std::size_t n) {
  for (std::size_t d = 0; d < genes_.size(); ++d) {
    const int32_t* const genes = genes_[d].data();
    for (std::size_t level = 0; level < sketch_.params[d].size(); ++level) {
      const ir::ParamId param = sketch_.params[d][level];
      if (!param.valid() || !sketch_.symbols.score.reads(param)) continue;
      const double* const from = sketch_.tables[d].column(level);
      double* const to = columns_[static_cast<std::size_t>(param.value)].data();
      for (std::size_t row = 0; row < n; ++row) to[row] = from[genes[row]];
    }
  }
}

void Drafter::offer(double ns, uint64_t key, std::size_t row) {
  Drafted drafted{ns, key, {}};
  drafted.genes.reserve(genes_.size());
  for (const std::vector<int32_t>& genes : genes_) drafted.genes.push_back(genes[row]);
  held_.push_back(std::move(drafted));
  if (held_.size() >= 2 * keep_) prune();
}

void Drafter::prune() {
  std::nth_element(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(keep_) - 1,
                   held_.end(), better);
  held_.resize(keep_);
  worst_ = held_.back().ns;
}

std::vector<Drafted> Drafter::best() const {
  std::vector<Drafted> out = held_;
  std::sort(out.begin(), out.end(), better);
  if (out.size() > keep_) out.resize(keep_);
  return out;
}

}  // namespace prunerc::search

// The grid strategy: every candidate of every sketch in turn, in mixed radix.
#include "ir/tile_space.h"
#include "search/space/members.h"
#include "search/space/sampler.h"
#include "search/strategy/strategies.h"

#include <optional>
#include <set>

namespace prunerc::search {
namespace {

/// Decision vectors that are tried between two that are legal before a sketch is given up.
constexpr int kMaxWithoutNew = 4096;

// All decisions of one place, by number.
class Choices {
 public:
  explicit Choices(const schedule::DecisionSpace& space) {
    using schedule::PrimitiveKind;
    if (space.primitive == PrimitiveKind::kSampleCategorical) {
      for (std::size_t i = 0; i < space.weights.size(); ++i) {
        if (space.weights[i] > 0) listed_.push_back(static_cast<int64_t>(i));
      }
    } else if (space.primitive == PrimitiveKind::kSampleComputeLocation) {
      listed_ = space.values;
    } else {
      const bool covering = space.primitive == PrimitiveKind::kSampleCoveringTile;
      const ir::TileKind kind = covering ? ir::TileKind::kCovering : ir::TileKind::kPerfect;
      tiles_.emplace(space.extent, space.num_tiles, kind, space.max_innermost);
    }
  }

  uint64_t count() const { return tiles_ ? tiles_->count() : listed_.size(); }

  // A partitioned tile is numbered as a perfect one: some numbers are no decision of the space, and
  // give no candidate.
  schedule::Decision at(uint64_t number) const {
    if (!tiles_) return {listed_[static_cast<std::size_t>(number)]};
    schedule::Decision decision = tiles_->unrank(number);
    // What is inferred is not decided.
    if (tiles_->kind() == ir::TileKind::kCovering) decision.erase(decision.begin());
    return decision;
  }

 private:
  std::vector<int64_t> listed_;
  std::optional<ir::TileSpace> tiles_;
};

// The candidates of one sketch, counted up; the first decision moves fastest.
class Odometer {
 public:
  Odometer(const SearchSpace& space, int sketch) : space_(&space), sketch_(sketch) {
    if (space.members != nullptr) {
      num_left_ = space.members->of_sketch(sketch).size();
      at_end_ = num_left_ == 0;
      return;
    }
    for (const schedule::DecisionSpace& s :
         space.sketches[static_cast<std::size_t>(sketch)].spaces) {
      choices_.emplace_back(s);
      at_end_ = at_end_ || choices_.back().count() == 0;
    }
    place_.resize(choices_.size());
  }

  bool at_end() const { return at_end_; }

  Genome take() {
    if (space_->members != nullptr) {
      const std::span<const int> members = space_->members->of_sketch(sketch_);
      const int member = members[members.size() - num_left_];
      at_end_ = --num_left_ == 0;
      return {sketch_, space_->members->candidate(member).trace.decisions};
    }
    Genome genome{sketch_, {}};
    for (std::size_t i = 0; i < place_.size(); ++i) {
      genome.decisions.push_back(choices_[i].at(place_[i]));
    }
    advance();
    return genome;
  }

 private:
  void advance() {
    for (std::size_t i = 0; i < place_.size(); ++i) {
      if (++place_[i] < choices_[i].count()) return;
      place_[i] = 0;
    }
    at_end_ = true;
  }

  const SearchSpace* space_;
  int sketch_;
  std::vector<Choices> choices_;
  std::vector<uint64_t> place_;
  std::size_t num_left_ = 0;  // of members
  bool at_end_ = false;
};

class Grid final : public Strategy {
 public:
  explicit Grid(const StrategyContext& context) : context_(context) {
    for (std::size_t i = 0; i < context.space.sketches.size(); ++i) {
      Odometer odometer(context.space, static_cast<int>(i));
      if (!odometer.at_end()) odometers_.push_back(std::move(odometer));
    }
  }

  int64_t num_drafted() const override { return num_drafted_; }

  std::vector<Candidate> ask(std::size_t n) override {
    std::vector<Candidate> batch;
    int num_without_new = 0;
    while (batch.size() < n && num_without_new < kMaxWithoutNew && !odometers_.empty()) {
      std::vector<Genome> genomes;
      while (genomes.size() < n - batch.size() && !odometers_.empty()) {
        next_ = next_ % odometers_.size();
        genomes.push_back(odometers_[next_].take());
        // One of each sketch in turn: the first one alone would last for days.
        if (odometers_[next_].at_end()) {
          odometers_.erase(odometers_.begin() + static_cast<std::ptrdiff_t>(next_));
        } else {
          ++next_;
        }
      }
      for (std::optional<Candidate>& made :
           instantiate_all(context_.task, context_.space, genomes, context_.pool)) {
        ++num_without_new;
        if (!made) continue;
        ++num_drafted_;
        if (!seen_.insert(made->fingerprint).second) continue;
        num_without_new = 0;
        batch.push_back(*std::move(made));
      }
    }
    return batch;
  }

  void tell(std::span<const Candidate> candidates, std::span<const Measurement>) override {
    for (const Candidate& candidate : candidates) seen_.insert(candidate.fingerprint);
  }

 private:
  const StrategyContext context_;
  std::vector<Odometer> odometers_;
  std::size_t next_ = 0;
  std::set<Fingerprint> seen_;
  int64_t num_drafted_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_grid(const StrategyContext& context) {
  return std::make_unique<Grid>(context);
}

}  // namespace prunerc::search

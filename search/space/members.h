// Members: a space cut down to listed candidates, those that a pool has times of. Whatever samples
// or varies genomes lands on one of them.
#ifndef PRUNERC_SEARCH_SPACE_MEMBERS_H_
#define PRUNERC_SEARCH_SPACE_MEMBERS_H_

#include "ir/support/hash.h"
#include "search/space/candidate.h"
#include "search/space/space.h"

#include <map>
#include <optional>
#include <span>
#include <vector>

namespace prunerc::search {

/// How far apart the decisions of two candidates of one sketch are: steps of categorical decisions
/// and of places, factors of two of tiles.
double decision_distance(const Sketch& sketch, std::span<const schedule::Decision> a,
                         std::span<const schedule::Decision> b);

/// Members are numbered in the order of their rows. Threads: any, it never changes.
class Members {
 public:
  /// By row; empty: there is no candidate of it, or it is left out as the space has its program
  /// already.
  Members(std::vector<Sketch> sketches, std::vector<std::optional<Candidate>> rows);

  int size() const { return static_cast<int>(candidates_.size()); }
  const Candidate& candidate(int member) const {
    return candidates_[static_cast<std::size_t>(member)];
  }
  /// The row of a member.
  int row(int member) const { return rows_[static_cast<std::size_t>(member)]; }
  /// Rows that are no member.
  int num_stale() const { return num_stale_; }

  /// Members of a sketch, in order.
  std::span<const int> of_sketch(int sketch) const {
    return by_sketch_[static_cast<std::size_t>(sketch)];
  }
  /// Sketches that have members.
  std::span<const int> sketches() const { return used_sketches_; }

  /// The member with these decisions; -1 if there is none.
  int find(int sketch, std::span<const schedule::Decision> decisions) const;
  /// The member with this program; -1 if there is none.
  int find(const Fingerprint& program) const;
  /// The member of the sketch nearest to the decisions, other than `except`, the first of equally
  /// near ones; -1 if the sketch has none.
  int nearest(int sketch, std::span<const schedule::Decision> decisions, int except = -1) const;

 private:
  std::vector<Sketch> sketches_;
  std::vector<Candidate> candidates_;
  std::vector<int> rows_;
  std::vector<std::vector<double>> places_;  // decisions as coordinates
  std::vector<std::vector<int>> by_sketch_;
  std::vector<int> used_sketches_;
  std::map<std::pair<int, std::vector<schedule::Decision>>, int> by_decisions_;
  std::map<Fingerprint, int> by_program_;
  int num_stale_ = 0;
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_MEMBERS_H_

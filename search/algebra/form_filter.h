// The filter of the search: whether a term can be a part of an output at all.
#ifndef PRUNERC_SEARCH_ALGEBRA_FORM_FILTER_H_
#define PRUNERC_SEARCH_ALGEBRA_FORM_FILTER_H_

#include "search/algebra/normal_form.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace prunerc::search::algebra {

/// Passes what, multiplied by something, is a sub-multiset of an output's form or of one inside of
/// it. As nothing cancels in forms, every subterm of every term that associativity, commutativity,
/// distributivity, moving sums through products and merging divisions and exponentials make of the
/// outputs passes.
/// Source: the idea is that of Mirage's abstract expressions (Wu et al., OSDI 2025, section 4.3).
class FormFilter {
 public:
  /// `forms` are those of the graph, without gauge.
  FormFilter(NormalForms& forms, const TermGraph& graph, std::span<const TermId> outputs);

  /// Cost: a few hash lookups for each monomial.
  bool passes(const HashedForm& form);
  /// Forms of too many monomials, which passed for that as some host has as many.
  int64_t num_beyond() const { return num_beyond_; }
  /// The outputs are too large to say anything: all pass.
  bool is_void() const { return is_void_; }

 private:
  struct Site {
    int32_t host = 0;
    uint64_t monomial = 0;  // that is divided
  };

  void add_host(NfId id);
  void add_parts(const Monomial& m);
  void add_members(const Factor& f);
  void add_inverted(const Monomial& m);
  void add_divisors(int32_t host, const Monomial& m);
  bool is_at(const Site& site, const HashedForm& form, uint64_t anchor) const;

  NormalForms& forms_;
  std::vector<std::unordered_map<uint64_t, int>> hosts_;   // counts
  std::unordered_set<uint64_t> known_;                     // hashes of hosts
  std::unordered_map<uint64_t, std::vector<Site>> sites_;  // by divisor
  std::size_t num_sites_ = 0;
  int largest_ = 0;  // monomials of a host
  int64_t num_beyond_ = 0;
  bool is_void_ = false;
};

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_FORM_FILTER_H_

// What people are told of terms.
#ifndef PRUNERC_SEARCH_ALGEBRA_WORDS_H_
#define PRUNERC_SEARCH_ALGEBRA_WORDS_H_

#include "search/algebra/lift.h"

#include <string>

namespace prunerc::search::algebra {

/// A few characters for a term: the name of its buffer if it has one, else its operation, `depth`
/// operations deep.
std::string words_of(const Spec& spec, TermId id, int depth = 2);

/// The whole term, as to_string.
std::string text_of(const Spec& spec, TermId id);

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_WORDS_H_

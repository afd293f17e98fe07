// Views vanish: stages that only move elements become subscripts of the stages around them.
#ifndef PRUNERC_IR_ANALYSIS_VIEWS_VIEWS_H_
#define PRUNERC_IR_ANALYSIS_VIEWS_VIEWS_H_

#include "ir/program.h"

#include <cstddef>

namespace prunerc::ir {

/// The same function, for an unscheduled program (one nest a stage). A stage T[i..] = S[f(i..)] goes
/// into the subscripts of T's readers, unless `//` or `%` would come of it; one that writes a
/// parameter, Y[i..] = T[permuted i..], makes T's stage write Y. Then intermediates are laid out, and
/// loops ordered, as their readers' loops are, or else as what they copy is. So a kernel between two
/// transposes is the kernel written for the other layout. Sums may be added up in another order.
/// A program of another form, or whose loops stand so already, is returned as it is.
Program absorb_views(const Program& program);

/// Stages that only move elements: what absorb_views left of them.
std::size_t count_views(const Program& program);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_VIEWS_VIEWS_H_

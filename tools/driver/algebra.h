// Tuning of operators together with the programs that are derived from them.
#ifndef PRUNERC_TOOLS_DRIVER_ALGEBRA_H_
#define PRUNERC_TOOLS_DRIVER_ALGEBRA_H_

#include "search/algebra/alternatives.h"
#include "tools/driver/prunerc.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc {

/// Which derived programs are tuned beside an operator.
enum class AlgebraMode : uint8_t {
  kOff,   ///< none
  kAuto,  ///< those whose limit is clearly below the operator's (kWorthwhile)
  kOn,    ///< all
};
std::string_view to_string(AlgebraMode mode);
std::optional<AlgebraMode> algebra_mode_from_string(std::string_view text);

/// In auto mode a derived program's limit is at most this part of its operator's.
inline constexpr double kWorthwhile = 0.95;

/// Makes programs that compute what one does.
using Deriver = std::function<Result<search::algebra::DeriveReport>(
    const ir::Program& spec, const ir::Target& target,
    const search::algebra::DeriveOptions& options)>;
/// The one that this build has; empty if it has none.
Deriver default_deriver();

struct AlgebraOptions {
  AlgebraMode mode = AlgebraMode::kOff;
  Deriver derive = default_deriver();
};

/// What became of an operator's derived programs.
struct AlgebraOutcome {
  search::Task task;                        ///< that won: the operator's, or a derived one
  int num_tuned = 0;                        ///< derived programs that were tuned beside it
  double spec_ns = 0;                       ///< best of the operator as it is written
  double winner_ns = 0;                     ///< of `task`
  std::optional<search::DerivedLink> link;  ///< of a derived winner
  std::string note;  ///< why nothing was derived, or which programs were refused
};

struct AlgebraTuneReport {
  search::TuneReport tune;               ///< a row for each operator, whatever won
  std::vector<AlgebraOutcome> outcomes;  ///< of each
};

/// Tunes each operator with its derived programs as alternatives, with the trials that it would have
/// alone; those without any are tuned together as usual, with their share. Of a limited time each
/// operator with alternatives has its part, deriving included. Errors: those of search::tune.
Result<AlgebraTuneReport> tune_with_algebra(std::span<const search::Task> tasks,
                                            search::Measurer& measurer, search::Database& database,
                                            const search::TuneOptions& options,
                                            const AlgebraOptions& algebra);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_ALGEBRA_H_

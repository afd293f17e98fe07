// What calibration may change in the analyzers: factors of terms, each with its hand value.
#ifndef PRUNERC_COSTMODEL_LATENCY_COEFFICIENTS_H_
#define PRUNERC_COSTMODEL_LATENCY_COEFFICIENTS_H_

#include "costmodel/symbol/sym.h"
#include "ir/target.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace prunerc::costmodel {

/// What one nest or kernel would take if only this unit took time.
enum class TermPart : uint8_t {
#define PRUNERC_TERM_PART(Name, text) k##Name,
#include "costmodel/latency/term_part.def"
#undef PRUNERC_TERM_PART
};
#define PRUNERC_TERM_PART(Name, text) +1
inline constexpr int kNumTermParts = 0
#include "costmodel/latency/term_part.def"
    ;
#undef PRUNERC_TERM_PART
std::string_view to_string(TermPart part);

/// Slots: one factor per TermPart, in that order; then the factor of launches; then the share of
/// the smaller parts that the largest one does not hide.
inline constexpr int kLaunchSlot = kNumTermParts;
inline constexpr int kNotHiddenSlot = kNumTermParts + 1;
inline constexpr int kNumCoefficients = kNumTermParts + 2;

using CoefficientValues = std::array<double, kNumCoefficients>;
/// Factors of 1, and the share that DESIGN.md gives (D6, D11).
CoefficientValues hand_coefficients(ir::TargetKind kind = ir::TargetKind::kCpu);

enum class Coefficients : uint8_t { kConstant, kSymbolic };

/// Combines parts with coefficients: the largest counts in full, of the others a share.
class TermModel {
 public:
  TermModel(SymGraph& graph, ir::TargetKind kind, Coefficients coefficients);
  Sym total(const std::vector<Sym>& parts) const;
  Sym launch(Sym ns) const { return ns * values_[kLaunchSlot]; }

 private:
  std::array<Sym, kNumCoefficients> values_;
};

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_COEFFICIENTS_H_

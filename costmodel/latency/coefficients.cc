#include "costmodel/latency/coefficients.h"

namespace prunerc::costmodel {
namespace {

/// Share of the smaller costs of a nest that the largest one does not hide.
constexpr double kNotHidden = 0.3;
/// Warps that wait leave the units to others: less is lost than on a CPU, and there are more parts.
constexpr double kNotHiddenOnGpus = 0.12;

}  // namespace

std::string_view to_string(TermPart part) {
  switch (part) {
#define PRUNERC_TERM_PART(Name, text) \
  case TermPart::k##Name:             \
    return text;
#include "costmodel/latency/term_part.def"
#undef PRUNERC_TERM_PART
  }
  PRUNERC_UNREACHABLE("part of a term");
}

CoefficientValues hand_coefficients(ir::TargetKind kind) {
  CoefficientValues out;
  out.fill(1);
  out[kNotHiddenSlot] = kind == ir::TargetKind::kCpu ? kNotHidden : kNotHiddenOnGpus;
  return out;
}

TermModel::TermModel(SymGraph& graph, ir::TargetKind kind, Coefficients coefficients) {
  const CoefficientValues hand = hand_coefficients(kind);
  for (std::size_t i = 0; i < hand.size(); ++i) {
    values_[i] = coefficients == Coefficients::kConstant
                     ? Sym(hand[i])
                     : graph.coefficient(static_cast<int32_t>(i));
  }
}

Sym TermModel::total(const std::vector<Sym>& parts) const {
  Sym sum = 0, largest = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Sym part = parts[i] * values_[i];
    sum += part;
    largest = max(largest, part);
  }
  return largest + values_[kNotHiddenSlot] * (sum - largest);
}

}  // namespace prunerc::costmodel

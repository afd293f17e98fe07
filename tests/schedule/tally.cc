#include "tests/schedule/tally.h"

#include <string_view>

namespace prunerc::testing {
namespace {

using schedule::PrimitiveKind;

constexpr PrimitiveKind kAll[] = {
#define PRUNERC_PRIMITIVE(Name, text, operands, outputs) PrimitiveKind::k##Name,
#include "schedule/primitive.def"
#undef PRUNERC_PRIMITIVE
};

// Marks the end of what nothing can be wrong with.
constexpr PrimitiveKind kTotal[] = {PrimitiveKind::kEnterPostproc};

bool takes_anything(PrimitiveKind kind) { return kind == kTotal[0]; }

}  // namespace

int Tally::report(std::ostream& out) const {
  int faults = 0;
  Count all;
  const auto check = [&](std::string_view name, const Count& count) {
    const int cases = count.accepted + count.refused;
    if (cases >= kFewest && count.refused >= kRefused * cases) return;
    ++faults;
    out << name << ": " << count.refused << " of " << cases << " cases are refusals; wanted are "
        << 100 * kRefused << " % of at least " << kFewest << "\n";
  };
  for (const PrimitiveKind kind : kAll) {
    const Count& count = counts_[index(kind)];
    all.accepted += count.accepted;
    all.refused += count.refused;
    if (!takes_anything(kind)) check(to_string(kind), count);
  }
  check("all primitives", all);
  out << "cases of primitives: " << all.accepted << " accepted, " << all.refused << " refused\n";
  return faults;
}

Tally& tally() {
  static Tally all;
  return all;
}

}  // namespace prunerc::testing

// annotate_loop(@L, "key", 4) and annotate_block(@B, "key", 4): an attribute is added or replaced.
// Needs: the key is an identifier, and not one that a primitive sets after a check of its own
// (D19). After: the same program; whoever reads the attribute checks it.
//   for i in 8 @L { block @B [v: S(8) = i] { T[v] = X[v] } }
// ~>
//   for i in 8 @L {key = 4} { block @B [v: S(8) = i] { T[v] = X[v] } }
#include "schedule/primitive.h"
#include "schedule/rewrite/attributes.h"
#include "schedule/rewrite/site.h"

#include <cctype>
#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

bool is_identifier(const std::string& key) {
  if (key.empty() || std::isdigit(static_cast<unsigned char>(key[0])) != 0) return false;
  for (const char c : key) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  }
  return true;
}

Result<Applied> annotate(const Program& program, const Site& site, const Call& call) {
  const std::string& key = call.text(1);
  if (!is_identifier(key)) return error(Diag::kAttrKey, key);
  if (const char* setter = setter_of(key)) {
    return error(Diag::kAttrReserved, key, std::string(setter));
  }
  return with_attr_at(program, site, key, call.integer(2));
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kAnnotateLoop>(const Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, find_loop(program, call.loop(0)));
  return annotate(program, site, call);
}

template <>
Result<Applied> run<PrimitiveKind::kAnnotateBlock>(const Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, find_block(program, call.block(0)));
  return annotate(program, site, call);
}

}  // namespace prunerc::schedule

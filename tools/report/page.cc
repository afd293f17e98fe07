#include "tools/report/page.h"

namespace prunerc::report {
namespace {

// kBefore and kAfter: what stands around the data.
#include "tools/report/page_text.inc"

}  // namespace

std::string page(std::string_view json) {
  std::string out;
  out.reserve(kBefore.size() + json.size() + kAfter.size());
  out += kBefore;
  // In JSON these three stand in strings only, where an escape means the same. Without them nothing can end the
  // element that holds the data.
  for (const char c : json) {
    switch (c) {
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      case '&': out += "\\u0026"; break;
      default: out += c;
    }
  }
  out += kAfter;
  return out;
}

}  // namespace prunerc::report

#include "ir/support/diag.h"

#include "ir/support/file.h"

#include <cstdio>

namespace prunerc {
namespace {

struct DiagRow {
  std::string_view name;
  std::string_view text;
};

constexpr DiagRow kRows[] = {
#define PRUNERC_DIAG(name, text) {#name, text},
#include "ir/support/diag.def"
#undef PRUNERC_DIAG
};

std::string to_text(const DiagArg& arg) {
  struct Visitor {
    std::string operator()(std::monostate) const { return "?"; }
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const {
      char buffer[32];
      std::snprintf(buffer, sizeof buffer, "%g", v);
      return buffer;
    }
    std::string operator()(ir::LoopId id) const { return "@L" + std::to_string(id.value); }
    std::string operator()(ir::BlockId id) const { return "@B" + std::to_string(id.value); }
    std::string operator()(ir::BufferId id) const { return "@T" + std::to_string(id.value); }
    std::string operator()(const std::string& s) const { return s; }
  };
  return std::visit(Visitor{}, arg);
}

}  // namespace

std::string_view diag_name(Diag id) { return kRows[static_cast<std::size_t>(id)].name; }
std::string_view diag_text(Diag id) { return kRows[static_cast<std::size_t>(id)].text; }

std::string message(const ErrorData& error) {
  std::string out;
  if (error.locus.line > 0) {
    out += std::to_string(error.locus.line) + ":" + std::to_string(error.locus.column) + ": ";
  }
  std::size_t next_arg = 0;
  bool detail_is_shown = error.detail.empty();
  const std::string_view text = diag_text(error.id);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_place = text[i] == '{' && i + 1 < text.size() && text[i + 1] == '}';
    if (is_place && next_arg < error.args.size()) {
      out += to_text(error.args[next_arg++]);
      ++i;
    } else if (is_place && !detail_is_shown) {
      // A fourth place is for the detail.
      out += error.detail;
      detail_is_shown = true;
      ++i;
    } else {
      out += text[i];
    }
  }
  if (!detail_is_shown) out += "\n" + error.detail;
  return printable(out);
}

}  // namespace prunerc

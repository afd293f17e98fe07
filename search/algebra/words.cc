#include "search/algebra/words.h"

#include <fmt/format.h>

namespace prunerc::search::algebra {
namespace {

BufferNames names_of(const Spec& spec) {
  BufferNames names;
  for (const ir::Buffer& buffer : spec.program.buffers()) names.emplace_back(buffer.name);
  for (const NewBuffer& buffer : spec.new_buffers) names.push_back(buffer.name);
  return names;
}

std::string_view name_of_sum(ir::ExprKind kind) {
  return kind == ir::ExprKind::kAdd   ? "sum"
         : kind == ir::ExprKind::kMul ? "product"
                                      : ir::to_string(kind);
}

}  // namespace

std::string words_of(const Spec& spec, TermId id, int depth) {
  if (const auto at = spec.labels.find(id); at != spec.labels.end()) return at->second;
  if (const auto at = spec.names.find(id); at != spec.names.end()) {
    return std::string(spec.program.buffer(at->second.buffer).name);
  }
  const Term& t = spec.graph[id];
  if (depth == 0 && !t.args.empty()) return "..";
  const auto arg = [&](std::size_t i) { return words_of(spec, t.args[i], depth - 1); };
  switch (t.op) {
    case TermOp::kLoad: return names_of(spec)[static_cast<std::size_t>(t.buffer.value)];
    case TermOp::kConst: return fmt::format("{:.6g}", t.value);
    case TermOp::kMask: return "mask";
    case TermOp::kBinary:
      if (t.kind == ir::ExprKind::kMax || t.kind == ir::ExprKind::kMin) {
        return fmt::format("{}({}, {})", ir::to_string(t.kind), arg(0), arg(1));
      }
      return fmt::format("({} {} {})", arg(0), ir::to_string(t.kind), arg(1));
    case TermOp::kCall: return fmt::format("{}({})", ir::to_string(t.intrinsic), arg(0));
    case TermOp::kSelect: return fmt::format("({} where masked)", arg(1));
    case TermOp::kCast: return arg(0);
    case TermOp::kReduce: return fmt::format("{}({})", name_of_sum(t.kind), arg(0));
  }
  PRUNERC_UNREACHABLE("term op");
}

std::string text_of(const Spec& spec, TermId id) {
  return to_string(spec.graph, id, spec.axes, names_of(spec));
}

}  // namespace prunerc::search::algebra

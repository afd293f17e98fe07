// Einsum.
#include "ir/onnx/text/product.h"

#include <fmt/format.h>

#include <map>

namespace prunerc::onnx {
namespace {

constexpr std::string_view kEllipsis = "...";

/// One operand's or the output's letters; an ellipsis stands before letter number `ellipsis`.
struct Term {
  std::string letters;
  std::optional<std::size_t> ellipsis;
};

// Errors: anything but letters and one ellipsis.
Result<Term> term_of(Row& row, std::string_view text) {
  Term term;
  while (!text.empty()) {
    if (text.starts_with(kEllipsis) && !term.ellipsis) {
      term.ellipsis = term.letters.size();
      text.remove_prefix(kEllipsis.size());
      continue;
    }
    const char c = text[0];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
      return row.unsupported("such an equation");
    term.letters += c;
    text.remove_prefix(1);
  }
  return term;
}

std::string index_of(char c) { return fmt::format("x{}", static_cast<int>(c)); }

struct Equation {
  std::vector<Term> terms;
  Term output;
};

Result<Equation> equation_of(Row& row) {
  std::string text = row.attr_string("equation", "");
  std::erase(text, ' ');
  const std::size_t arrow = text.find("->");
  Equation out;
  std::string_view inputs = std::string_view(text).substr(0, arrow);
  for (;;) {
    const std::size_t comma = inputs.find(',');
    PRUNERC_TRY(Term term, term_of(row, inputs.substr(0, comma)));
    out.terms.push_back(std::move(term));
    if (comma == std::string_view::npos) break;
    inputs.remove_prefix(comma + 1);
  }
  if (arrow != std::string::npos) {
    PRUNERC_TRY(out.output, term_of(row, std::string_view(text).substr(arrow + 2)));
    return out;
  }
  // Letters that occur once, in their order, behind what the ellipses stand for.
  std::map<char, int> uses;
  for (const Term& term : out.terms) {
    if (term.ellipsis) out.output.ellipsis = 0;
    for (const char c : term.letters) ++uses[c];
  }
  for (const auto& [c, n] : uses) {
    if (n == 1) out.output.letters += c;
  }
  return out;
}

}  // namespace

// "bij,bjk->bik": the language says the same with other signs.
Result<void> einsum(Row& row) {
  PRUNERC_TRY(const Equation equation, equation_of(row));
  const std::vector<Term>& terms = equation.terms;
  if (terms.size() != row.num_inputs()) return row.unsupported("an equation of other operands");
  // What the ellipses stand for, broadcast.
  std::vector<int64_t> batch;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    PRUNERC_TRY(const Value* const x, row.need(t));
    const std::size_t letters = terms[t].letters.size(), rank = x->shape.size();
    if (terms[t].ellipsis ? letters > rank : letters != rank)
      return row.unsupported("an equation of other operands");
    if (ir::is_bool(x->dtype) || x->dtype != row.in(0)->dtype)
      return row.unsupported("operands of these types");
    if (!terms[t].ellipsis) continue;
    const auto first = x->shape.begin() + static_cast<std::ptrdiff_t>(*terms[t].ellipsis);
    const auto common = broadcast_shape(
        batch, std::vector<int64_t>(first, first + static_cast<std::ptrdiff_t>(rank - letters)));
    if (!common) return row.unsupported("shapes that do not fit together");
    batch = *common;
  }
  if (!batch.empty() && !equation.output.ellipsis)
    return row.unsupported("an ellipsis that the output has not");
  std::map<char, int64_t> extents;
  std::vector<Arg> args;
  std::string product;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const Value& x = *row.in(t);
    const std::size_t own = x.shape.size() - terms[t].letters.size();
    std::vector<std::string> reads;
    std::size_t axis = 0;
    for (std::size_t i = 0; i <= terms[t].letters.size(); ++i) {
      for (std::size_t b = 0; terms[t].ellipsis == i && b < own; ++b, ++axis)
        reads.push_back(x.shape[axis] == 1 ? "0" : fmt::format("b{}", batch.size() - own + b));
      if (i == terms[t].letters.size()) break;
      const char c = terms[t].letters[i];
      const auto [known, is_new] = extents.emplace(c, x.shape[axis]);
      if (!is_new && known->second != x.shape[axis]) return row.unsupported("extents that differ");
      reads.push_back(index_of(c));
      ++axis;
    }
    args.push_back({fmt::format("A{}", t), &x});
    product += (t == 0 ? "" : " * ") + at(args.back().name, reads);
  }
  std::vector<std::string> target;
  std::vector<int64_t> shape;
  std::map<char, bool> kept;
  for (std::size_t i = 0; i <= equation.output.letters.size(); ++i) {
    for (std::size_t b = 0; equation.output.ellipsis == i && b < batch.size(); ++b) {
      shape.push_back(batch[b]);
      target.push_back(fmt::format("b{}", b));
    }
    if (i == equation.output.letters.size()) break;
    const char c = equation.output.letters[i];
    if (!extents.contains(c) || kept[c]) return row.unsupported("such an output");
    kept[c] = true;
    shape.push_back(extents[c]);
    target.push_back(index_of(c));
  }
  std::vector<std::string> summed;
  for (const auto& [c, extent] : extents) {
    if (!kept[c]) summed.push_back(fmt::format("{} in 0..{}", index_of(c), extent));
  }
  const ir::DType dtype = row.in(0)->dtype;
  const std::string value =
      summed.empty() ? product
                     : fmt::format("{}[{}] {}", sum_of(dtype), fmt::join(summed, ","), product);
  PRUNERC_TRY(const Value* const y,
              row.call("einsum", std::move(args), dtype, shape,
                       fmt::format("{} = {};", at("Y", target), rounded(dtype, value))));
  row.set(0, y);
  return {};
}

}  // namespace prunerc::onnx

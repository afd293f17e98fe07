// Nets: which operators a network runs, with which sizes, how many times.
#include "ir/lang/parser_impl.h"

#include <charconv>

namespace prunerc::lang {

using Kind = TokenKind;

// A word that means something here alone; elsewhere it is a name like any other.
bool Parser::at_net() const {
  return at(Kind::kName) && current().text == "net" && next().kind == Kind::kName;
}

// net resnet { 3 * conv2d<CI=64, CO=256> as conv2_3; softmax; }
bool Parser::parse_net() {
  take();
  AstNet net;
  const std::optional<AstName> name = parse_name("a net");
  if (!name || !expect(Kind::kLeftBrace)) return false;
  net.name = *name;
  while (!at(Kind::kEnd) && !at(Kind::kRightBrace)) {
    AstNetTask task;
    if (!parse_net_task(task)) return false;
    net.tasks.push_back(std::move(task));
  }
  file_.nets.push_back(std::move(net));
  return expect(Kind::kRightBrace);
}

bool Parser::parse_net_task(AstNetTask& task) {
  if (at(Kind::kInt)) {
    const Token times = current();
    const std::string_view text = times.text;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), task.times);
    if (code != std::errc() || end != text.data() + text.size() || task.times < 1) {
      report_expected("a number of times from 1 on");
      return false;
    }
    take();
    if (!expect(Kind::kStar)) return false;
  }
  // Operators may be called as reducers are.
  if (at(Kind::kReducer) || at(Kind::kBuiltin)) {
    const Token word = take();
    task.op = AstName{word.text, word.range};
  } else {
    const std::optional<AstName> op = parse_name("an operator");
    if (!op) return false;
    task.op = *op;
  }
  if (accept(Kind::kLess)) {
    do {
      if (!parse_binding(task)) return false;
    } while (accept(Kind::kComma));
    if (!expect(Kind::kGreater)) return false;
  }
  if (at(Kind::kName) && current().text == "as") {
    take();
    task.label = parse_name("a label");
    if (!task.label) return false;
  }
  return expect(Kind::kSemicolon);
}

bool Parser::parse_binding(AstNetTask& task) {
  const std::optional<AstName> name = parse_name("a parameter");
  if (!name || !expect(Kind::kAssign)) return false;
  const char* const first = current().text.data();
  accept(Kind::kMinus);
  if (!at(Kind::kInt) && !at(Kind::kFloat) && !at(Kind::kDtype)) {
    report_expected("a number or a type");
    return false;
  }
  const Token last = take();
  const auto length = static_cast<size_t>(last.text.data() + last.text.size() - first);
  task.bindings.emplace_back(*name, std::string_view(first, length));
  return check_count(task.bindings.size(), name->range);
}

}  // namespace prunerc::lang

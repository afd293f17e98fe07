// Nets: with ports a program of calls, without them a list of operators that a network runs, with
// which sizes, how many times.
#include "ir/lang/parse/parser_impl.h"

#include <charconv>

namespace prunerc::lang {

using Kind = TokenKind;

// A word that means something here alone; elsewhere it is a name like any other.
bool Parser::at_net() const {
  return at(Kind::kName) && current().text == "net" && next().kind == Kind::kName;
}

// net resnet { 3 * conv2d<CI=64, CO=256> as conv2_3; softmax; }
// net block(x: f32[8,64]) -> (y: f32[8,64]) weights "block.safetensors" { const W: ...; y = f(x, W); }
bool Parser::parse_net() {
  AstNet net;
  net.op.range = take().range;
  const std::optional<AstName> name = parse_name("a net");
  if (!name) return false;
  net.name = net.op.name = *name;
  net.has_ports = at(Kind::kLess) || at(Kind::kLeftParen);
  const bool is_read = !net.has_ports || parse_net_header(net);
  if (!is_read) skip_header();
  const bool ok = (is_read || at(Kind::kLeftBrace)) && parse_net_body(net);
  net.op.range = range_since(net.op.range.begin);
  file_.nets.push_back(std::move(net));
  return ok;
}

// A line with an error is passed over, so that the others have theirs.
bool Parser::parse_net_body(AstNet& net) {
  if (!expect(Kind::kLeftBrace)) return false;
  while (!at(Kind::kEnd) && !at(Kind::kRightBrace) && !sink_.is_full()) {
    const size_t before = at_;
    if (net.has_ports ? parse_net_item(net) : parse_net_task(net)) continue;
    skip_statement();
    if (at_ == before) take();
  }
  return expect(Kind::kRightBrace);
}

bool Parser::parse_net_header(AstNet& net) {
  if (!parse_signature(net.op)) return false;
  if (!at(Kind::kName) || current().text != "weights") return true;
  take();
  const Token path = current();
  if (!expect(Kind::kString)) return false;
  net.weights = AstImport{unquoted(path.text), path.range};
  return true;
}

bool Parser::parse_net_item(AstNet& net) {
  if (accept(Kind::kConst)) return parse_net_const(net);
  AstStmt stmt;
  stmt.is_let = accept(Kind::kLet);
  const std::optional<AstName> name = parse_name("a tensor");
  if (!name) return false;
  stmt.name = *name;
  if (!at(Kind::kComma) && !at(Kind::kAssign)) {
    report_expected("'=' and a call of an operator");
    return false;
  }
  if (!parse_call_stmt(stmt)) return false;
  stmt.value = nullptr;
  if (net.op.stmts.size() == kMaxNetCalls) {
    sink_.report<LangDiag::kTooManyStatements>(stmt.name.range, "a net", kMaxNetCalls);
    return false;
  }
  net.op.stmts.push_back(std::move(stmt));
  return expect(Kind::kSemicolon);
}

// const W: f32[64,64] = "layer1.weight";
bool Parser::parse_net_const(AstNet& net) {
  AstNetConst item;
  if (!parse_port(item.port)) return false;
  item.port.is_const = true;
  if (accept(Kind::kAssign)) {
    const Token token = current();
    if (accept(Kind::kString)) {
      item.weight = unquoted(token.text);
    } else {
      item.value = parse_sum();
      if (item.value == nullptr) return false;
    }
  }
  net.consts.push_back(std::move(item));
  return expect(Kind::kSemicolon);
}

bool Parser::parse_net_task(AstNet& net) {
  AstNetTask task;
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
  const std::optional<AstName> op = parse_operator_name();
  if (!op) return false;
  task.op = *op;
  if (!parse_bindings(task.bindings)) return false;
  // There is nothing here that a value could be computed from.
  for (const AstBinding& binding : task.bindings) {
    const AstExpr* value = binding.value;
    if (value != nullptr && value->kind == AstKind::kUnary) value = value->args[0];
    if (value == nullptr || value->kind == AstKind::kInt || value->kind == AstKind::kFloat)
      continue;
    sink_.report<LangDiag::kExpected>(binding.range, "a number or a type",
                                      fmt::format("'{}'", text_of(binding.range)));
    return false;
  }
  if (!parse_label(task.label) || !expect(Kind::kSemicolon)) return false;
  net.tasks.push_back(std::move(task));
  return true;
}

}  // namespace prunerc::lang

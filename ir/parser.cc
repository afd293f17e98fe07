#include "ir/parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/equal.h"
#include "ir/lexer.h"
#include "ir/visit.h"

namespace prunerc::ir {
namespace {

// Later passes recurse over trees: these bounds keep them far from the end of the stack.
constexpr int kMaxExprHeight = 1000;
constexpr int kMaxExprNesting = 200;
constexpr int kMaxStmtNesting = 200;

struct Parsed {
  Expr expr;
  int height = 1;
};

class Parser {
 public:
  Parser(std::vector<Token> tokens, std::string_view name)
      : tokens_(std::move(tokens)), b_(name) {}

  Result<Program> program();

 private:
  // Tokens.
  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  const Token& take() { return tokens_[next_ + 1 < tokens_.size() ? next_++ : next_]; }
  bool at(std::string_view text) const {
    return peek().text == text && peek().kind != TokenKind::kString;
  }
  bool accept(std::string_view text) { return at(text) && (take(), true); }
  Error expected(std::string what) const {
    return error_at(peek().locus, Diag::kParseExpected, std::move(what), describe(peek()));
  }
  Result<void> expect(std::string_view text) {
    if (accept(text)) return {};
    return expected("'" + std::string(text) + "'");
  }
  Result<std::string_view> name(const char* what) {
    if (peek().kind != TokenKind::kName) return expected(what);
    return take().text;
  }
  Result<int64_t> integer(const char* what);
  Result<int32_t> id_number(std::string_view sigil, int32_t fresh);
  void reserve_explicit_ids();

  // Declarations.
  Result<void> ports(BufferRole role);
  Result<void> port(BufferRole role, bool with_scope);
  Result<bool> domain_line();
  Result<std::vector<ParamId>> param_list();
  Result<ParamId> param_ref();

  // Statements.
  Result<Stmt> body();  // "{" is taken already; takes "}"
  Result<Stmt> stmt();
  Result<Stmt> loop();
  Result<Stmt> block();
  Result<Stmt> store();
  Result<Stmt> if_stmt();
  Result<Stmt> alloc();
  // "{name =" opens attributes: a store has "[" after its buffer.
  bool at_attrs() const {
    return at("{") && peek(1).kind == TokenKind::kName && peek(2).text == "=";
  }
  Result<std::vector<Attr>> attrs();
  using Names = std::vector<std::pair<std::string_view, const Var*>>;
  Result<Names> iter_list(std::vector<IterVar>* iters);
  Result<std::vector<Access>> accesses();
  Result<Access> access();

  // Expressions.
  Result<Expr> expr(DType type, const char* what);
  Result<Parsed> binary(int level);
  Result<Parsed> unary();
  Result<Parsed> primary();
  Result<Parsed> number(bool negative);
  Result<Parsed> typed(DType type);
  Result<Parsed> function(std::string_view function_name, Locus locus);
  Result<Parsed> combine(ExprKind kind, Parsed lhs, Parsed rhs, Locus locus);
  Result<std::vector<Parsed>> arguments(std::string_view close);
  Result<BufferId> buffer_ref();
  Result<std::vector<Expr>> indices(BufferId buffer, Locus locus, int* height);
  const Var* find_var(std::string_view var_name) const;

  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  IrBuilder b_;
  std::vector<std::pair<std::string_view, const Var*>> scope_;
  std::unordered_map<std::string_view, BufferId> buffers_;
  int num_params_ = 0;
  int stmt_depth_ = 0;
  int expr_depth_ = 0;
};

// --- tokens

Result<int64_t> Parser::integer(const char* what) {
  const bool negative = accept("-");
  if (peek().kind != TokenKind::kNumber) return expected(what);
  const Token& token = take();
  const std::string digits = (negative ? "-" : "") + std::string(token.text);
  int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size()) {
    return error_at(token.locus, Diag::kParseNumber, std::string(token.text.substr(0, 40)));
  }
  return value;
}

// "@L12" after the sigil letter, or the fresh id if the program leaves it out.
Result<int32_t> Parser::id_number(std::string_view sigil, int32_t fresh) {
  if (!accept("@")) return fresh;
  const std::string_view text = peek().text;
  int32_t value = 0;
  const bool fits = peek().kind == TokenKind::kName && text.substr(0, 1) == sigil;
  const auto [end, code] = fits ? std::from_chars(text.data() + 1, text.data() + text.size(), value)
                                : std::from_chars_result{text.data(), std::errc::invalid_argument};
  if (code != std::errc() || end != text.data() + text.size() || value < 0 || value > 1 << 24) {
    return expected("an id such as @" + std::string(sigil) + "0");
  }
  take();
  return value;
}

void Parser::reserve_explicit_ids() {
  IdCounters used;
  for (std::size_t i = 1; i < tokens_.size(); ++i) {
    const std::string_view text = tokens_[i].text;
    if (tokens_[i - 1].text != "@" || text.size() < 2) continue;
    int32_t value = 0;
    const auto [end, code] = std::from_chars(text.data() + 1, text.data() + text.size(), value);
    if (code != std::errc() || value < 0 || value > 1 << 24) continue;
    static_cast<void>(end);
    if (text[0] == 'L') used.loop = std::max(used.loop, value + 1);
    if (text[0] == 'B') used.block = std::max(used.block, value + 1);
  }
  b_.reserve_ids(used);
}

// --- declarations

Result<Program> Parser::program() {
  reserve_explicit_ids();
  PRUNERC_TRY_VOID(expect("program"));
  PRUNERC_TRY_VOID(name("a program name"));
  PRUNERC_TRY_VOID(expect("("));
  PRUNERC_TRY_VOID(ports(BufferRole::kInput));
  PRUNERC_TRY_VOID(expect("->"));
  PRUNERC_TRY_VOID(expect("("));
  PRUNERC_TRY_VOID(ports(BufferRole::kOutput));
  PRUNERC_TRY_VOID(expect("{"));
  while (true) {
    if (accept("buffer")) {
      PRUNERC_TRY_VOID(port(BufferRole::kIntermediate, true));
      continue;
    }
    PRUNERC_TRY(const bool more, domain_line());
    if (!more) break;
  }
  PRUNERC_TRY(const Stmt root, body());
  if (peek().kind != TokenKind::kEnd) return expected("end of text");
  return b_.finish(root);
}

Result<void> Parser::ports(BufferRole role) {
  if (accept(")")) return {};
  while (true) {
    PRUNERC_TRY_VOID(port(role, false));
    if (accept(")")) return {};
    PRUNERC_TRY_VOID(expect(","));
  }
}

Result<void> Parser::port(BufferRole role, bool with_scope) {
  const Locus locus = peek().locus;
  PRUNERC_TRY(const std::string_view buffer_name, name("a buffer name"));
  if (buffers_.count(buffer_name) > 0) {
    return error_at(locus, Diag::kParseDuplicate, std::string(buffer_name));
  }
  PRUNERC_TRY_VOID(expect(":"));
  const std::optional<DType> dtype = dtype_from_string(peek().text);
  if (!dtype) return expected("a type");
  take();
  std::vector<Expr> shape;
  if (accept("[")) {
    while (true) {
      PRUNERC_TRY(const Expr extent, expr(DType::kI64, "an extent"));
      shape.push_back(extent);
      if (accept("]")) break;
      PRUNERC_TRY_VOID(expect(","));
    }
  }
  Scope scope = Scope::kGlobal;
  if (with_scope) {
    const std::optional<Scope> found = scope_from_string(peek().text);
    if (!found) return expected("a storage scope");
    scope = *found;
    take();
  }
  buffers_[buffer_name] = b_.add_buffer(buffer_name, *dtype, shape, scope, role);
  return {};
}

Result<ParamId> Parser::param_ref() {
  PRUNERC_TRY_VOID(expect("$"));
  const Locus locus = peek().locus;
  PRUNERC_TRY(const int64_t index, integer("a parameter number"));
  if (index < 0 || index >= num_params_) {
    return error_at(locus, Diag::kParseUnknownName, "$" + std::to_string(index));
  }
  return ParamId(static_cast<int32_t>(index));
}

Result<std::vector<ParamId>> Parser::param_list() {
  PRUNERC_TRY_VOID(expect("["));
  std::vector<ParamId> params;
  while (!accept("]")) {
    if (!params.empty()) PRUNERC_TRY_VOID(expect(","));
    PRUNERC_TRY(const ParamId id, param_ref());
    params.push_back(id);
  }
  return params;
}

// One line of the domain, if there is one here.
Result<bool> Parser::domain_line() {
  if (accept("param")) {
    PRUNERC_TRY(const std::string_view param_name, name("a parameter name"));
    b_.add_param(param_name);
    ++num_params_;
    return true;
  }
  if (accept("tiles")) {
    TileVector tiles;
    const Locus locus = peek().locus;
    PRUNERC_TRY(tiles.extent, integer("an extent"));
    if (tiles.extent < 1) return error_at(locus, Diag::kParseNumber, std::to_string(tiles.extent));
    if (!at("perfect") && !at("covering")) return expected("'perfect' or 'covering'");
    tiles.kind = take().text == "perfect" ? TileKind::kPerfect : TileKind::kCovering;
    PRUNERC_TRY(const std::vector<ParamId> params, param_list());
    tiles.params = params;
    PRUNERC_TRY_VOID(expect("max"));
    PRUNERC_TRY(tiles.max_innermost, integer("a number"));
    b_.add_tiles(tiles);
    return true;
  }
  if (accept("choice")) {
    PRUNERC_TRY(const ParamId param, param_ref());
    PRUNERC_TRY_VOID(expect("["));
    std::vector<int64_t> values;
    while (!accept("]")) {
      if (!values.empty()) PRUNERC_TRY_VOID(expect(","));
      PRUNERC_TRY(const int64_t value, integer("a value"));
      values.push_back(value);
    }
    b_.add_choice({param, values});
    return true;
  }
  if (accept("require")) {
    PRUNERC_TRY(const Expr constraint, expr(DType::kBool, "a constraint"));
    b_.add_constraint(constraint);
    return true;
  }
  return false;
}

// --- statements

Result<Stmt> Parser::body() {
  if (++stmt_depth_ > kMaxStmtNesting) {
    return error_at(peek().locus, Diag::kParseTooDeep, int64_t{kMaxStmtNesting});
  }
  std::vector<Stmt> stmts;
  while (!accept("}")) {
    PRUNERC_TRY(const Stmt s, stmt());
    stmts.push_back(s);
  }
  --stmt_depth_;
  return b_.seq(stmts);
}

Result<Stmt> Parser::stmt() {
  if (accept("for")) return loop();
  if (at("block") && peek(1).kind == TokenKind::kString) return block();
  if (accept("if")) return if_stmt();
  if (accept("alloc")) return alloc();
  if (peek().kind != TokenKind::kName) return expected("a statement");
  return store();
}

Result<Stmt> Parser::loop() {
  PRUNERC_TRY(const std::string_view var_name, name("a loop variable"));
  PRUNERC_TRY_VOID(expect("in"));
  Loop l;
  PRUNERC_TRY(l.extent, expr(DType::kI64, "an extent"));
  PRUNERC_TRY(const int32_t id, id_number("L", -1));
  l.id = id < 0 ? b_.fresh_loop_id() : LoopId(id);
  l.loop_kind = LoopKind::kSerial;
  if (peek().kind == TokenKind::kName) {
    // "block.x" arrives as three tokens.
    std::string kind(take().text);
    if (accept(".")) kind += "." + std::string(take().text);
    bool known = false;
#define PRUNERC_LOOP_KIND(Name, text)      \
  if (kind == text) {                      \
    l.loop_kind = LoopKind::k##Name;       \
    known = true;                          \
  }
#include "ir/loop_kind.def"
#undef PRUNERC_LOOP_KIND
    if (!known) return error_at(peek().locus, Diag::kParseUnknownName, kind.substr(0, 40));
  }
  std::vector<Attr> found;
  if (at_attrs()) {
    PRUNERC_TRY(found, attrs());
  }
  l.attrs = found;
  PRUNERC_TRY_VOID(expect("{"));
  l.var = b_.fresh_var(var_name);
  scope_.push_back({var_name, l.var});
  const Locus locus = peek().locus;
  PRUNERC_TRY(l.body, body());
  scope_.pop_back();
  if (!l.body.defined()) return error_at(locus, Diag::kParseExpected, "a statement", "'}'");
  return b_.loop(l);
}

Result<std::vector<Attr>> Parser::attrs() {
  PRUNERC_TRY_VOID(expect("{"));
  std::vector<Attr> found;
  while (!accept("}")) {
    if (!found.empty()) PRUNERC_TRY_VOID(expect(","));
    PRUNERC_TRY(const std::string_view key, name("an attribute"));
    PRUNERC_TRY_VOID(expect("="));
    PRUNERC_TRY(const int64_t value, integer("an integer"));
    found.push_back({b_.copy(key), value});
  }
  return found;
}

Result<Parser::Names> Parser::iter_list(std::vector<IterVar>* iters) {
  PRUNERC_TRY_VOID(expect("["));
  Names defined;
  while (!accept("]")) {
    if (!iters->empty()) PRUNERC_TRY_VOID(expect(","));
    IterVar iter;
    PRUNERC_TRY(const std::string_view var_name, name("an iteration variable"));
    PRUNERC_TRY_VOID(expect(":"));
    if (!at("S") && !at("R") && !at("O")) return expected("'S', 'R' or 'O'");
    const std::string_view kind = take().text;
    iter.kind = kind == "S" ? IterKind::kSpatial : kind == "R" ? IterKind::kReduce : IterKind::kOpaque;
    PRUNERC_TRY_VOID(expect("("));
    PRUNERC_TRY(iter.extent, expr(DType::kI64, "an extent"));
    PRUNERC_TRY_VOID(expect(")"));
    PRUNERC_TRY_VOID(expect("="));
    PRUNERC_TRY(iter.binding, expr(DType::kI64, "a binding"));
    iter.var = b_.fresh_var(var_name);
    defined.push_back({var_name, iter.var});
    iters->push_back(iter);
  }
  return defined;
}

// The accesses of a body that declares none: each point it touches, or the whole buffer where an index depends on
// something else than the iteration variables.
bool same_region(std::span<const Range> a, std::span<const Range> b) {
  for (std::size_t d = 0; d < a.size(); ++d) {
    if (!structural_equal(a[d].min, b[d].min) || !structural_equal(a[d].extent, b[d].extent)) {
      return false;
    }
  }
  return true;
}

void infer_accesses(IrBuilder& b, Block* block, std::vector<Access>* reads,
                    std::vector<Access>* writes) {
  auto is_iter = [&](VarId id) {
    return std::any_of(block->iters.begin(), block->iters.end(),
                       [&](const IterVar& iter) { return iter.var->id == id; });
  };
  auto add = [&](std::vector<Access>* list, BufferId id, std::span<const Expr> at_indices) {
    bool simple = true;
    for (Expr index : at_indices) {
      walk(index, [&](Expr e) {
        if (const Var* v = e.as<Var>()) simple &= is_iter(v->id);
        simple &= e.as<Load>() == nullptr;
        return true;
      });
    }
    std::vector<Range> region;
    for (std::size_t d = 0; d < at_indices.size(); ++d) {
      region.push_back(simple ? Range{at_indices[d], b.int_imm(1)}
                              : Range{b.int_imm(0), b.buffer(id).shape[d]});
    }
    const Access access{id, b.copy(region)};
    const bool known = std::any_of(list->begin(), list->end(), [&](const Access& other) {
      return other.buffer == id && same_region(other.region, access.region);
    });
    if (!known) list->push_back(access);
  };
  auto expr = [&](Expr e) {
    walk(e, [&](Expr part) {
      if (const Load* l = part.as<Load>()) add(reads, l->buffer, l->indices);
      return true;
    });
  };
  for (Stmt s : {block->init, block->body}) {
    walk(
        s,
        [&](Stmt child) {
          if (const Store* store = child.as<Store>()) add(writes, store->buffer, store->indices);
          return true;
        },
        expr);
  }
  // A reduction's own accumulator is written; it does not count as read.
  std::erase_if(*reads, [&](const Access& r) {
    return block->init.defined() &&
           std::any_of(writes->begin(), writes->end(),
                       [&](const Access& w) { return w.buffer == r.buffer; });
  });
}

Result<Stmt> Parser::block() {
  take();
  Block blk;
  const std::string_view quoted = take().text;
  blk.name = quoted.substr(1, quoted.size() - 2);
  PRUNERC_TRY(const int32_t id, id_number("B", -1));
  blk.id = id < 0 ? b_.fresh_block_id() : BlockId(id);
  std::vector<IterVar> iters;
  PRUNERC_TRY(const Names defined, iter_list(&iters));
  blk.iters = iters;
  std::vector<Attr> found;
  if (at_attrs()) {
    PRUNERC_TRY(found, attrs());
  }
  blk.attrs = found;
  if (accept("where")) {
    PRUNERC_TRY(blk.guard, expr(DType::kBool, "a guard"));
  }
  PRUNERC_TRY_VOID(expect("{"));
  // Only the inside sees the iteration variables.
  const std::size_t outer = scope_.size();
  scope_.insert(scope_.end(), defined.begin(), defined.end());
  std::vector<Access> reads, writes;
  const bool declared = at("reads") || at("writes");
  if (accept("reads")) {
    PRUNERC_TRY(reads, accesses());
  }
  if (accept("writes")) {
    PRUNERC_TRY(writes, accesses());
  }
  if (at("init") && peek(1).text == "{") {
    take();
    take();
    PRUNERC_TRY(blk.init, body());
  }
  const Locus locus = peek().locus;
  PRUNERC_TRY(blk.body, body());
  scope_.resize(outer);
  if (!blk.body.defined()) return error_at(locus, Diag::kParseExpected, "a statement", "'}'");
  if (!declared) infer_accesses(b_, &blk, &reads, &writes);
  blk.reads = reads;
  blk.writes = writes;
  return b_.block(blk);
}

Result<Access> Parser::access() {
  PRUNERC_TRY(const BufferId id, buffer_ref());
  const Locus locus = peek().locus;
  PRUNERC_TRY_VOID(expect("["));
  std::vector<Range> region;
  while (!accept("]")) {
    if (!region.empty()) PRUNERC_TRY_VOID(expect(","));
    Range r;
    PRUNERC_TRY(r.min, expr(DType::kI64, "an index"));
    r.extent = b_.int_imm(1);
    if (accept("+:")) {
      PRUNERC_TRY(r.extent, expr(DType::kI64, "an extent"));
    }
    region.push_back(r);
  }
  const Buffer& buffer = b_.buffer(id);
  if (region.size() != buffer.shape.size()) {
    return error_at(locus, Diag::kVerifyRank, std::string(buffer.name),
                    static_cast<int64_t>(buffer.shape.size()),
                    static_cast<int64_t>(region.size()));
  }
  return Access{id, b_.copy(region)};
}

Result<std::vector<Access>> Parser::accesses() {
  std::vector<Access> found;
  do {
    PRUNERC_TRY(const Access a, access());
    found.push_back(a);
  } while (accept(","));
  return found;
}

Result<Stmt> Parser::alloc() {
  PRUNERC_TRY(const BufferId id, buffer_ref());
  PRUNERC_TRY_VOID(expect("{"));
  PRUNERC_TRY(const Stmt inside, body());
  return b_.alloc(id, inside);
}

Result<Stmt> Parser::if_stmt() {
  PRUNERC_TRY(const Expr condition, expr(DType::kBool, "a condition"));
  PRUNERC_TRY_VOID(expect("{"));
  PRUNERC_TRY(const Stmt then_body, body());
  Stmt else_body;
  if (accept("else")) {
    PRUNERC_TRY_VOID(expect("{"));
    PRUNERC_TRY(else_body, body());
  }
  return b_.if_then(condition, then_body, else_body);
}

Result<Stmt> Parser::store() {
  PRUNERC_TRY(const BufferId id, buffer_ref());
  const Locus locus = peek().locus;
  PRUNERC_TRY_VOID(expect("["));
  int height = 1;
  PRUNERC_TRY(const std::vector<Expr> at_indices, indices(id, locus, &height));
  PRUNERC_TRY_VOID(expect("="));
  PRUNERC_TRY(const Expr value, expr(b_.buffer(id).dtype, "a value"));
  return b_.store(id, at_indices, value);
}

// --- expressions

Result<Expr> Parser::expr(DType type, const char* what) {
  const Locus locus = peek().locus;
  PRUNERC_TRY(const Parsed p, binary(0));
  if (p.expr.dtype() != type) {
    return error_at(locus, Diag::kTypeMismatch, what, std::string(to_string(type)),
                    std::string(to_string(p.expr.dtype())));
  }
  return p.expr;
}

struct Operator {
  std::string_view text;
  ExprKind kind;
  bool swapped = false;
};

std::optional<Operator> operator_at(int level, const Token& token) {
  static const std::vector<std::vector<Operator>> kLevels = {
      {{"||", ExprKind::kOr}},
      {{"&&", ExprKind::kAnd}},
      {{"==", ExprKind::kEq}, {"!=", ExprKind::kNe}, {"<", ExprKind::kLt}, {"<=", ExprKind::kLe},
       {">", ExprKind::kLt, true}, {">=", ExprKind::kLe, true}},
      {{"+", ExprKind::kAdd}, {"-", ExprKind::kSub}},
      {{"*", ExprKind::kMul}, {"/", ExprKind::kDiv}, {"//", ExprKind::kFloorDiv},
       {"%", ExprKind::kFloorMod}},
  };
  if (token.kind != TokenKind::kSymbol) return std::nullopt;
  for (const Operator& op : kLevels[static_cast<std::size_t>(level)]) {
    if (op.text == token.text) return op;
  }
  return std::nullopt;
}
constexpr int kNumLevels = 5;
constexpr int kCompareLevel = 2;

Result<Parsed> Parser::combine(ExprKind kind, Parsed lhs, Parsed rhs, Locus locus) {
  const Result<DType> type = binary_type(kind, lhs.expr.dtype(), rhs.expr.dtype());
  if (!type.ok()) {
    ErrorData data = type.error().data();
    data.locus = locus;
    return Error(std::move(data));
  }
  const int height = 1 + std::max(lhs.height, rhs.height);
  if (height > kMaxExprHeight) {
    return error_at(locus, Diag::kParseTooDeep, int64_t{kMaxExprHeight});
  }
  return Parsed{b_.binary(kind, lhs.expr, rhs.expr), height};
}

Result<Parsed> Parser::binary(int level) {
  if (level == kNumLevels) return unary();
  PRUNERC_TRY(Parsed lhs, binary(level + 1));
  while (const std::optional<Operator> op = operator_at(level, peek())) {
    const Locus locus = take().locus;
    PRUNERC_TRY(const Parsed rhs, binary(level + 1));
    PRUNERC_TRY(lhs, op->swapped ? combine(op->kind, rhs, lhs, locus)
                                 : combine(op->kind, lhs, rhs, locus));
    if (level == kCompareLevel) break;  // comparisons do not chain
  }
  return lhs;
}

Result<Parsed> Parser::unary() {
  if (++expr_depth_ > kMaxExprNesting) {
    return error_at(peek().locus, Diag::kParseTooDeep, int64_t{kMaxExprNesting});
  }
  const Locus locus = peek().locus;
  Parsed result;
  if (accept("!")) {
    PRUNERC_TRY(const Parsed operand, unary());
    if (!is_bool(operand.expr.dtype())) {
      return error_at(locus, Diag::kTypeUnexpected, "!",
                      std::string(to_string(operand.expr.dtype())));
    }
    result = {b_.logical_not(operand.expr), operand.height + 1};
  } else if (at("-") && peek(1).kind == TokenKind::kNumber) {
    take();
    PRUNERC_TRY(result, number(true));
  } else {
    PRUNERC_TRY(result, primary());
  }
  --expr_depth_;
  return result;
}

Result<Parsed> Parser::number(bool negative) {
  const Token& token = take();
  std::size_t suffix = token.text.find_first_of("fbiu");
  if (suffix == std::string_view::npos) suffix = token.text.size();
  const std::string digits = (negative ? "-" : "") + std::string(token.text.substr(0, suffix));
  const std::string_view type_name = token.text.substr(suffix);
  const std::optional<DType> type = type_name.empty() ? DType::kI64 : dtype_from_string(type_name);
  const Error bad =
      error_at(token.locus, Diag::kParseNumber, std::string(token.text.substr(0, 40)));
  if (!type || is_bool(*type)) return bad;
  const char* const end = digits.data() + digits.size();
  if (is_float(*type)) {
    double value = 0;
    const auto [stop, code] = std::from_chars(digits.data(), end, value);
    if (code != std::errc() || stop != end) return bad;
    return Parsed{b_.float_imm(value, *type)};
  }
  int64_t value = 0;
  const auto [stop, code] = std::from_chars(digits.data(), end, value);
  if (code != std::errc() || stop != end || wrap_to(*type, value) != value) return bad;
  return Parsed{b_.int_imm(value, *type)};
}

// After a type name: a special constant or a cast.
Result<Parsed> Parser::typed(DType type) {
  const Locus locus = peek().locus;
  if (accept(".")) {
    PRUNERC_TRY(const std::string_view special, name("inf, ninf or nan"));
    if (!is_float(type)) {
      return error_at(locus, Diag::kTypeUnexpected, std::string(special.substr(0, 40)),
                      std::string(to_string(type)));
    }
    if (special == "inf") return Parsed{b_.float_imm(HUGE_VAL, type)};
    if (special == "ninf") return Parsed{b_.float_imm(-HUGE_VAL, type)};
    if (special == "nan") return Parsed{b_.float_imm(std::nan(""), type)};
    return error_at(locus, Diag::kParseUnknownName, std::string(special.substr(0, 40)));
  }
  PRUNERC_TRY_VOID(expect("("));
  PRUNERC_TRY(const Parsed operand, binary(0));
  PRUNERC_TRY_VOID(expect(")"));
  return Parsed{b_.cast(type, operand.expr), operand.height + 1};
}

Result<std::vector<Parsed>> Parser::arguments(std::string_view close) {
  std::vector<Parsed> args;
  while (!accept(close)) {
    if (!args.empty()) PRUNERC_TRY_VOID(expect(","));
    PRUNERC_TRY(const Parsed arg, binary(0));
    args.push_back(arg);
  }
  return args;
}

Result<Parsed> Parser::function(std::string_view function_name, Locus locus) {
  PRUNERC_TRY_VOID(expect("("));
  PRUNERC_TRY(const std::vector<Parsed> args, arguments(")"));
  int height = 1;
  std::vector<Expr> exprs;
  for (const Parsed& a : args) {
    height = std::max(height, a.height + 1);
    exprs.push_back(a.expr);
  }
  const auto wrong_count = [&](int64_t wanted) {
    return error_at(locus, Diag::kParseExpected, std::to_string(wanted) + " arguments",
                    std::to_string(exprs.size()));
  };
  const auto types_differ = [&](std::size_t i, std::size_t j) {
    return error_at(locus, Diag::kTypeMismatch, std::string(function_name),
                    std::string(to_string(exprs[i].dtype())),
                    std::string(to_string(exprs[j].dtype())));
  };
  if (function_name == "min" || function_name == "max") {
    if (exprs.size() != 2) return wrong_count(2);
    const ExprKind kind = function_name == "min" ? ExprKind::kMin : ExprKind::kMax;
    return combine(kind, args[0], args[1], locus);
  }
  if (function_name == "select") {
    if (exprs.size() != 3) return wrong_count(3);
    if (!is_bool(exprs[0].dtype())) {
      return error_at(locus, Diag::kTypeMismatch, "a condition", "bool",
                      std::string(to_string(exprs[0].dtype())));
    }
    if (exprs[1].dtype() != exprs[2].dtype()) return types_differ(1, 2);
    return Parsed{b_.select(exprs[0], exprs[1], exprs[2]), height};
  }
  std::optional<Intrinsic> intrinsic;
#define PRUNERC_INTRINSIC(Name, text, num) \
  if (function_name == text) intrinsic = Intrinsic::k##Name;
#include "ir/intrinsic.def"
#undef PRUNERC_INTRINSIC
  if (!intrinsic) {
    return error_at(locus, Diag::kParseUnknownName, std::string(function_name.substr(0, 40)));
  }
  if (static_cast<int>(exprs.size()) != num_args(*intrinsic)) return wrong_count(num_args(*intrinsic));
  const DType type = exprs[0].dtype();
  if (!is_float(type) && !(*intrinsic == Intrinsic::kAbs && is_int(type))) {
    return error_at(locus, Diag::kTypeUnexpected, std::string(function_name),
                    std::string(to_string(type)));
  }
  for (std::size_t i = 1; i < exprs.size(); ++i) {
    if (exprs[i].dtype() != type) return types_differ(0, i);
  }
  return Parsed{b_.call(*intrinsic, exprs), height};
}

Result<Parsed> Parser::primary() {
  const Token& token = peek();
  if (token.kind == TokenKind::kNumber) return number(false);
  if (accept("(")) {
    PRUNERC_TRY(const Parsed inner, binary(0));
    PRUNERC_TRY_VOID(expect(")"));
    return inner;
  }
  if (at("$")) {
    PRUNERC_TRY(const ParamId id, param_ref());
    return Parsed{b_.param(id)};
  }
  if (token.kind != TokenKind::kName) return expected("an expression");
  if (accept("true")) return Parsed{b_.bool_imm(true)};
  if (accept("false")) return Parsed{b_.bool_imm(false)};
  if (const std::optional<DType> type = dtype_from_string(token.text)) {
    take();
    return typed(*type);
  }
  if (peek(1).text == "(") {
    take();
    return function(token.text, token.locus);
  }
  if (peek(1).text == "[") {
    PRUNERC_TRY(const BufferId id, buffer_ref());
    take();
    int height = 2;
    PRUNERC_TRY(const std::vector<Expr> at_indices, indices(id, token.locus, &height));
    return Parsed{b_.load(id, at_indices), height};
  }
  if (const Var* v = find_var(token.text)) {
    take();
    return Parsed{v};
  }
  return error_at(token.locus, Diag::kParseUnknownName, std::string(token.text.substr(0, 40)));
}

const Var* Parser::find_var(std::string_view var_name) const {
  for (auto it = scope_.rbegin(); it != scope_.rend(); ++it) {
    if (it->first == var_name) return it->second;
  }
  return nullptr;
}

Result<BufferId> Parser::buffer_ref() {
  const auto found = buffers_.find(peek().text);
  if (peek().kind != TokenKind::kName) return expected("a buffer name");
  if (found == buffers_.end()) {
    return error_at(peek().locus, Diag::kParseUnknownName, std::string(peek().text.substr(0, 40)));
  }
  take();
  return found->second;
}

// The indices of a load or store, after "[".
Result<std::vector<Expr>> Parser::indices(BufferId id, Locus locus, int* height) {
  PRUNERC_TRY(const std::vector<Parsed> args, arguments("]"));
  const Buffer& buffer = b_.buffer(id);
  if (args.size() != buffer.shape.size()) {
    return error_at(locus, Diag::kVerifyRank, std::string(buffer.name),
                    static_cast<int64_t>(buffer.shape.size()), static_cast<int64_t>(args.size()));
  }
  std::vector<Expr> found;
  for (const Parsed& a : args) {
    if (a.expr.dtype() != DType::kI64) {
      return error_at(locus, Diag::kTypeMismatch, "an index", "i64",
                      std::string(to_string(a.expr.dtype())));
    }
    found.push_back(a.expr);
    *height = std::max(*height, a.height + 1);
  }
  if (*height > kMaxExprHeight) {
    return error_at(locus, Diag::kParseTooDeep, int64_t{kMaxExprHeight});
  }
  return found;
}

}  // namespace

Result<Program> parse(std::string_view text) {
  PRUNERC_TRY(std::vector<Token> tokens, tokenize(text));
  const std::string_view name = tokens.size() > 1 ? tokens[1].text : std::string_view();
  return Parser(std::move(tokens), name).program();
}

}  // namespace prunerc::ir

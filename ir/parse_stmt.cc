// Statements of program text.
#include "ir/equal.h"
#include "ir/parser_impl.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <optional>

namespace prunerc::ir {
namespace {

// The accesses of a body that declares none: each point it touches, or the whole buffer where an
// index depends on something else than the iteration variables.
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
           std::any_of(writes->begin(), writes->end(), [&](const Access& w) {
             return w.buffer == r.buffer && same_region(w.region, r.region);
           });
  });
}

}  // namespace

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
  if (++num_stmts_ > kMaxStmts) {
    return error_at(peek().locus, Diag::kTooMany, "a program", "more statements",
                    std::to_string(kMaxStmts));
  }
  if (accept("for")) return loop();
  if (at("block") && peek(1).kind == TokenKind::kString) return block();
  if (accept("if")) return if_stmt();
  if (accept("alloc")) return alloc();
  if (peek().kind != TokenKind::kName) return expected("a statement");
  return store();
}

Result<LoopKind> Parser::loop_kind() {
  if (peek().kind != TokenKind::kName) return LoopKind::kSerial;
  std::string text(take().text);
  const bool binds = text == "bind" && accept("(");
  if (binds) {
    // "block.x" arrives as three tokens.
    PRUNERC_TRY(const std::string_view axis, name("a thread axis"));
    PRUNERC_TRY_VOID(expect("."));
    PRUNERC_TRY(const std::string_view dim, name("x, y or z"));
    PRUNERC_TRY_VOID(expect(")"));
    text = std::string(axis) + "." + std::string(dim);
  }
  const std::optional<LoopKind> kind = loop_kind_from_string(text);
  if (kind && is_thread_axis(*kind) == binds) return *kind;
  return error_at(peek().locus, Diag::kParseUnknownName, text.substr(0, 40));
}

Result<Stmt> Parser::loop() {
  PRUNERC_TRY(const std::string_view var_name, name("a loop variable"));
  PRUNERC_TRY_VOID(expect("in"));
  Loop l;
  PRUNERC_TRY(l.extent, expr(DType::kI64, "an extent"));
  PRUNERC_TRY(const int32_t id, id_number("L", -1));
  l.id = id < 0 ? b_.fresh_loop_id() : LoopId(id);
  PRUNERC_TRY(l.loop_kind, loop_kind());
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
    iter.kind = kind == "S"   ? IterKind::kSpatial
                : kind == "R" ? IterKind::kReduce
                              : IterKind::kOpaque;
    PRUNERC_TRY_VOID(expect("("));
    PRUNERC_TRY(iter.extent, expr(DType::kI64, "an extent"));
    PRUNERC_TRY_VOID(expect(")"));
    PRUNERC_TRY_VOID(expect("="));
    PRUNERC_TRY(iter.binding, expr(DType::kI64, "a binding"));
    iter.var = b_.fresh_var(var_name);
    defined.push_back({var_name, iter.var});
    iters->push_back(iter);
    if (iters->size() > kMaxBlockIters) {
      return error_at(peek().locus, Diag::kTooMany, "a block", "more iteration variables",
                      std::to_string(kMaxBlockIters));
    }
  }
  return defined;
}

Result<Stmt> Parser::block() {
  if (++num_blocks_ > kMaxBlocks) {
    return error_at(peek().locus, Diag::kTooMany, "a program", "more blocks",
                    std::to_string(kMaxBlocks));
  }
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
  if (at("combine") && peek(1).text == "(") {
    PRUNERC_TRY(blk.combiner, combiner(blk.init));
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

// combine (a, ..), (b, ..) -> (x, ..): one of each for every buffer that the init stores to.
Result<const Combiner*> Parser::combiner(Stmt init) {
  const Locus locus = take().locus;
  const std::vector<BufferId> targets = stored_in_order(init);
  if (targets.empty()) {
    return error_at(locus, Diag::kParseExpected, "an init before its combiner", "'combine'");
  }
  const std::vector<std::pair<std::string_view, const Var*>> outer = std::exchange(scope_, {});
  PRUNERC_TRY(const std::vector<const Var*> left, partial(targets));
  PRUNERC_TRY_VOID(expect(","));
  PRUNERC_TRY(const std::vector<const Var*> right, partial(targets));
  PRUNERC_TRY_VOID(expect("->"));
  PRUNERC_TRY_VOID(expect("("));
  std::vector<Expr> results;
  for (const BufferId target : targets) {
    if (!results.empty()) PRUNERC_TRY_VOID(expect(","));
    PRUNERC_TRY(const Expr result, expr(b_.buffer(target).dtype, "a result of a combiner"));
    results.push_back(result);
  }
  PRUNERC_TRY_VOID(expect(")"));
  scope_ = outer;
  return b_.combiner({left, right, results});
}

Result<std::vector<const Var*>> Parser::partial(std::span<const BufferId> targets) {
  PRUNERC_TRY_VOID(expect("("));
  std::vector<const Var*> out;
  for (const BufferId target : targets) {
    if (!out.empty()) PRUNERC_TRY_VOID(expect(","));
    PRUNERC_TRY(const std::string_view var_name, name("a name for a partial result"));
    out.push_back(b_.fresh_var(var_name, b_.buffer(target).dtype));
    scope_.push_back({var_name, out.back()});
  }
  PRUNERC_TRY_VOID(expect(")"));
  return out;
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
                    static_cast<int64_t>(buffer.shape.size()), static_cast<int64_t>(region.size()));
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

}  // namespace prunerc::ir

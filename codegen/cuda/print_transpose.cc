// Bytes whose rows become columns on their way: a thread reads words, turns them in registers and
// stores words.
#include "codegen/cuda/printer.h"
#include "ir/arith/simplify.h"
#include "ir/map.h"
#include "ir/query.h"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace prunerc::codegen {

using namespace ir;

// for r in 4 unrolled { for c in 4 vectorized {
//   if guard { dst[.., r, .., c] = condition of c ? src[.., c, .., r] : 0 } } }
struct ByteBlock {
  const Loop* columns = nullptr;
  const Store* store = nullptr;
  const Load* load = nullptr;
  Expr guard, condition;  // may be none
};

namespace {

constexpr int64_t kWord = 4;  // bytes of a word, words of a block

bool is_word(const Loop& loop, LoopKind kind) {
  const IntImm* extent = loop.extent.as<IntImm>();
  return loop.loop_kind == kind && extent != nullptr && extent->value == kWord;
}

bool is_zero(Expr e) {
  const IntImm* integer = e.as<IntImm>();
  return integer != nullptr && integer->value == 0;
}

class ByteBlockMatcher {
 public:
  explicit ByteBlockMatcher(IrBuilder& b) : b_(b) {}

  std::optional<ByteBlock> match(const Loop& rows) {
    if (!is_word(rows, LoopKind::kUnrolled)) return std::nullopt;
    out_.columns = take_guards(rows.body).as<Loop>();
    if (out_.columns == nullptr || !is_word(*out_.columns, LoopKind::kVectorized)) {
      return std::nullopt;
    }
    out_.store = take_guards(out_.columns->body).as<Store>();
    if (out_.store == nullptr || byte_size(out_.store->value.dtype()) != 1) return std::nullopt;
    out_.load = take_zeros(out_.store->value).as<Load>();
    if (out_.load == nullptr || out_.load->buffer == out_.store->buffer) return std::nullopt;
    const VarId row = rows.var->id;
    // Read once for all of the block, or for a word.
    for (const Expr e : {out_.guard, out_.condition}) {
      if (e.defined() && (has_load(e) || mentions(e, row))) return std::nullopt;
    }
    if (out_.guard.defined() && mentions(out_.guard, out_.columns->var->id)) return std::nullopt;
    return out_;
  }

 private:
  void add(Expr* all, Expr one) { *all = all->defined() ? b_.logical_and(*all, one) : one; }

  Stmt take_guards(Stmt s) {
    for (const If* branch = s.as<If>(); branch != nullptr && !branch->else_body.defined();
         branch = s.as<If>()) {
      add(&out_.guard, branch->condition);
      s = branch->then_body;
    }
    return s;
  }

  Expr take_zeros(Expr e) {
    for (const Select* select = e.as<Select>(); select != nullptr && is_zero(select->on_false);
         select = e.as<Select>()) {
      add(&out_.condition, select->condition);
      e = select->on_true;
    }
    return e;
  }

  IrBuilder& b_;
  ByteBlock out_;
};

}  // namespace

bool KernelPrinter::transposed_copy(const Loop& rows) {
  const std::optional<ByteBlock> block = ByteBlockMatcher(b_).match(rows);
  if (!block || buffer(block->load->buffer).scope == Scope::kLocal ||
      buffer(block->store->buffer).scope == Scope::kLocal) {
    return false;
  }
  const VarRanges::Mark mark = ranges_.mark();
  // Printed before it is assumed.
  const std::string begin =
      block->guard.defined() ? fmt::format("if ({}) {{", value(block->guard).text) : "{";
  ranges_.bind(block->columns->var, block->columns->extent);
  if (block->guard.defined()) ranges_.assume(block->guard);
  const VarRanges::Mark inside = ranges_.mark();
  const std::optional<Expr> to =
      lane_base(block->store->buffer, block->store->indices, *block->columns);
  if (block->condition.defined()) ranges_.assume(block->condition);
  const std::optional<Expr> from = lane_base(block->load->buffer, block->load->indices, rows);
  ranges_.rewind(inside);
  if (to && from) {
    line(begin);
    ++indent_;
    turn_words(*block, rows, *from, *to);
    close();
  }
  ranges_.rewind(mark);
  return to && from;
}

// Words `from` each column, turned, `to` each row.
void KernelPrinter::turn_words(const ByteBlock& block, const Loop& rows, Expr from, Expr to) {
  const auto at = [&](BufferId id, Expr base, const Var* var, int64_t i) {
    return address(id,
                   simplify(b_, substitute(b_, base, VarMap{{var->id, b_.int_imm(i)}}), ranges_));
  };
  const std::string words = fresh("v");
  line(fmt::format("unsigned {}[{}];", words, kWord));
  const Var* const column = block.columns->var;
  for (int64_t c = 0; c < kWord; ++c) {
    const std::string places =
        fmt::format("{} + {}, {}", words, c, at(block.load->buffer, from, column, c));
    const VarMap here = {{column->id, b_.int_imm(c)}};
    line(block.condition.defined() ? fmt::format("pr_copy_zfill<{}>({}, {});", kWord, places,
                                                 value(substitute(b_, block.condition, here)).text)
                                   : fmt::format("pr_load<{}>({});", kWord, places));
  }
  line(fmt::format("pr_transpose_4x4({});", words));
  for (int64_t r = 0; r < kWord; ++r) {
    line(fmt::format("pr_store<{}>({}, {} + {});", kWord, at(block.store->buffer, to, rows.var, r),
                     words, r));
  }
}

}  // namespace prunerc::codegen

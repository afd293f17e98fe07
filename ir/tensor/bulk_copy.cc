#include "ir/tensor/bulk_copy.h"

#include "ir/arith/linear.h"
#include "ir/arith/prove.h"
#include "ir/arith/simplify.h"
#include "ir/map.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

namespace prunerc::ir {
namespace {

/// The engine's coordinates are signed numbers of 32 bits.
constexpr int64_t kMostCoordinates = (int64_t{1} << 31) - 1;

// The nest, taken apart.
struct Nest {
  std::vector<const Loop*> loops;  // of more than one iteration
  std::vector<Expr> conditions;
  BufferId to, from;
  std::vector<Expr> to_indices, from_indices;
};

bool is_zero(Expr e) {
  const FloatImm* f = e.as<FloatImm>();
  const IntImm* i = e.as<IntImm>();
  return (f != nullptr && f->value == 0 && !std::signbit(f->value)) ||
         (i != nullptr && i->value == 0);
}

class Matcher {
 public:
  Matcher(IrBuilder& b, const VarRanges& outside) : b_(b), ranges_(outside) {}

  // Null and the reason in problem() if the nest is no such copy.
  std::optional<BulkCopy> run(const Loop& top) {
    if (!read(top) || !check_places()) return std::nullopt;
    BulkCopy out;
    if (find_box(&out) && find_matrix(&out) && check_conditions()) return out;
    BulkCopy pixels;
    if (find_window(&pixels)) return pixels;
    return std::nullopt;
  }
  const std::string& problem() const { return problem_; }

 private:
  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  bool read(const Loop& top) {
    Stmt s(&top);
    VarMap values;
    while (true) {
      if (const Loop* loop = s.as<Loop>()) {
        const IntImm* extent = loop->extent.as<IntImm>();
        if (extent == nullptr) return fail("an extent is not constant");
        if (loop->loop_kind != LoopKind::kSerial) return fail("a loop inside is not serial");
        ranges_.bind(loop->var, loop->extent);
        if (extent->value == 1) {
          values[loop->var->id] = b_.int_imm(0);
        } else {
          nest_.loops.push_back(loop);
        }
        s = loop->body;
      } else if (const If* branch = s.as<If>(); branch != nullptr && !branch->else_body.defined()) {
        add_conditions(substitute(b_, branch->condition, values));
        s = branch->then_body;
      } else if (const Block* block = s.as<Block>(); block != nullptr && !block->init.defined()) {
        if (block->guard.defined()) {
          add_conditions(substitute(b_, block->guard, values));
        }
        VarMap iters;
        for (const IterVar& iter : block->iters) {
          iters[iter.var->id] = substitute(b_, iter.binding, values);
        }
        values.insert(iters.begin(), iters.end());
        s = block->body;
      } else {
        break;
      }
    }
    const Store* store = s.as<Store>();
    if (store == nullptr) return fail("it is not loops around one store");
    return read_store(*store, values);
  }

  void add_conditions(Expr all) {
    for (Expr condition : conjuncts(all)) nest_.conditions.push_back(condition);
  }

  bool read_store(const Store& store, const VarMap& values) {
    Expr value = store.value;
    while (const Select* select = value.as<Select>()) {
      if (!is_zero(select->on_false)) return fail("the engine fills with zeros only");
      add_conditions(substitute(b_, select->condition, values));
      value = select->on_true;
    }
    const Load* load = value.as<Load>();
    if (load == nullptr) return fail("its value is no element of a buffer");
    nest_.to = store.buffer;
    nest_.from = load->buffer;
    for (Expr e : store.indices) nest_.to_indices.push_back(substitute(b_, e, values));
    for (Expr e : load->indices) nest_.from_indices.push_back(substitute(b_, e, values));
    return true;
  }

  bool check_places() {
    const Buffer& to = b_.buffer(nest_.to);
    const Buffer& from = b_.buffer(nest_.from);
    if (to.scope != Scope::kShared) return fail("'" + std::string(to.name) + "' is not shared");
    if (from.scope != Scope::kGlobal) return fail("'" + std::string(from.name) + "' is not global");
    if (to.shape.size() < 2 || from.shape.size() < 2) return fail("it has no rows");
    for (const Buffer* buffer : {&to, &from}) {
      for (Expr extent : buffer->shape) {
        if (extent.as<IntImm>() == nullptr) return fail("a shape is not constant");
      }
    }
    return true;
  }

  // The dimension along which the variable counts, by 1 and nothing else; the variable's term is
  // taken out of `indices`.
  std::optional<std::size_t> take(std::vector<Linear>* indices, const Loop& loop) {
    std::optional<std::size_t> found;
    for (std::size_t d = 0; d < indices->size(); ++d) {
      const std::vector<Term> terms = (*indices)[d].terms;
      for (const Term& term : terms) {
        if (!mentions(term.factors(), loop.var->id)) continue;
        if (found || term.degree != 1 || term.coef != 1 || term.atoms[0].as<Var>() == nullptr) {
          return std::nullopt;
        }
        found = d;
        (*indices)[d] = (*indices)[d] - Linear::of(term);
      }
    }
    return found;
  }

  // Does the loop run over the rows of a matrix that has one, and a condition leave out all others?
  bool is_only_row(const Loop& loop) {
    const IntImm* rows = b_.buffer(nest_.from).shape[row_dim_].as<IntImm>();
    const Linear first = Linear::of(1) - to_linear(b_, Expr(loop.var), ranges_);
    return rows->value == 1 && from_[row_dim_].is_constant(0) &&
           std::any_of(nest_.conditions.begin(), nest_.conditions.end(), [&](Expr condition) {
             const Lt* less = condition.as<Lt>();
             const Le* most = condition.as<Le>();
             if (less != nullptr) {
               return to_linear(b_, b_.sub(less->rhs, less->lhs), ranges_) == first;
             }
             return most != nullptr &&
                    to_linear(b_, b_.sub(most->rhs, most->lhs), ranges_) + 1 == first;
           });
  }

  bool find_box(BulkCopy* out) {
    for (Expr e : nest_.to_indices) to_.push_back(to_linear(b_, e, ranges_));
    for (Expr e : nest_.from_indices) from_.push_back(to_linear(b_, e, ranges_));
    whole_ = from_;
    row_dim_ = from_.size() - 2;
    for (const Loop* loop : nest_.loops) {
      const int64_t extent = loop->extent.as<IntImm>()->value;
      const std::optional<std::size_t> to = take(&to_, *loop);
      std::optional<std::size_t> from = take(&from_, *loop);
      if (to && !from && is_only_row(*loop)) {
        // Of a single row the index was simplified to 0; a condition says that there are no others.
        from = row_dim_;
        whole_[row_dim_] = to_linear(b_, Expr(loop->var), ranges_);
      }
      if (!to || !from) return fail("a loop does not count along one dimension of both buffers");
      if (*to + 1 == to_.size() && *from + 1 == from_.size()) {
        out->columns = extent;
      } else if (*to + 2 == to_.size() && *from + 1 < from_.size() && out->rows == 1) {
        out->rows = extent;
        row_dim_ = *from;
      } else {
        return fail("the rows or columns of the two buffers are not the same");
      }
    }
    out->to = nest_.to;
    out->from = nest_.from;
    for (const Linear& index : to_) out->base.push_back(to_expr(b_, index));
    const int64_t bytes = byte_size(b_.buffer(nest_.to).dtype);
    if (out->columns * bytes % kBulkAlignment != 0) {
      return fail("rows of " + std::to_string(out->columns * bytes) + " bytes are no multiple of " +
                  std::to_string(kBulkAlignment));
    }
    return true;
  }

  // Dimensions beside rows and columns move the box by whole rows or by columns.
  bool find_matrix(BulkCopy* out) {
    const Buffer& from = b_.buffer(nest_.from);
    const std::size_t rank = from_.size();
    std::vector<int64_t> strides(rank);
    int64_t elems = 1;
    for (std::size_t d = rank; d-- > 0;) {
      strides[d] = elems;
      elems *= from.shape[d].as<IntImm>()->value;
    }
    const int64_t pitch = strides[row_dim_];
    const int64_t bytes = byte_size(from.dtype);
    if (pitch * bytes % kBulkAlignment != 0) {
      return fail("rows of '" + std::string(from.name) + "' are " + std::to_string(pitch * bytes) +
                  " bytes apart, no multiple of " + std::to_string(kBulkAlignment));
    }
    Linear y = from_[row_dim_], x = from_[rank - 1];
    for (std::size_t d = 0; d + 1 < rank; ++d) {
      if (d == row_dim_) continue;
      if (strides[d] % pitch == 0) {
        y = y + from_[d] * (strides[d] / pitch);
      } else {
        x = x + from_[d] * strides[d];
      }
    }
    if (y.has_data || x.has_data) return fail("data say where its box begins");
    out->y = simplify(b_, to_expr(b_, y), ranges_);
    out->x = simplify(b_, to_expr(b_, x), ranges_);
    out->pitch = pitch;
    out->matrix_rows = elems / pitch;
    is_plain_column_ = row_dim_ + 2 == rank;
    is_plain_row_ = rank == 2;
    out->matrix_columns = is_plain_column_ ? from.shape[rank - 1].as<IntImm>()->value : pitch;
    if (std::max(out->matrix_rows, out->matrix_columns) > kMostCoordinates)
      return fail("'" + std::string(from.name) + "' has more rows or columns than 31 bits count");
    return true;
  }

  // The condition is 0 < slack.
  std::optional<Linear> slack_of(Expr condition) {
    if (const Lt* less = condition.as<Lt>())
      return to_linear(b_, b_.sub(less->rhs, less->lhs), ranges_);
    const Le* most = condition.as<Le>();
    if (most == nullptr) return std::nullopt;
    return to_linear(b_, b_.sub(most->rhs, most->lhs), ranges_) + 1;
  }

  // What the engine leaves out must be what the conditions leave out: each has to say that the
  // element is inside of the matrix.
  bool check_conditions() {
    const Buffer& from = b_.buffer(nest_.from);
    for (Expr condition : nest_.conditions) {
      if (prove(condition, ranges_) == Proof::kYes) continue;
      const std::optional<Linear> slack = slack_of(condition);
      if (!slack) return fail("a condition is no bound of an index");
      bool known = false;
      for (const std::size_t d : {row_dim_, from_.size() - 1}) {
        if (d == row_dim_ ? !is_plain_row_ : !is_plain_column_) continue;
        const int64_t extent = from.shape[d].as<IntImm>()->value;
        known = known || *slack == Linear::of(extent) - whole_[d] || *slack == whole_[d] + 1;
      }
      if (!known) return fail("a condition is not where the matrix ends");
    }
    return true;
  }

  // Rows of pixels; why they are none is not said, as a matrix is what most copies are of.
  bool find_window(BulkCopy* out) {
    const Buffer& from = b_.buffer(nest_.from);
    if (from.shape.size() != 4 || nest_.loops.size() != 2) return false;
    const Loop& lines = *nest_.loops[0];
    const Loop& columns = *nest_.loops[1];
    WindowRows rows{
        .row = lines.var, .column = columns.var, .shape = {}, .indices = {}, .slacks = {}};
    for (Expr extent : from.shape) rows.shape.push_back(extent.as<IntImm>()->value);
    for (Expr e : nest_.from_indices) rows.indices.push_back(to_linear(b_, e, ranges_));
    std::vector<Linear> to, at = rows.indices;
    for (Expr e : nest_.to_indices) to.push_back(to_linear(b_, e, ranges_));
    if (take(&to, lines) != to.size() - 2 || take(&to, columns) != to.size() - 1 ||
        take(&at, columns) != at.size() - 1 || at.back().has_data) {
      return false;
    }
    for (Expr condition : nest_.conditions) {
      if (prove(condition, ranges_, {.max_points = 0}) == Proof::kYes) continue;
      const std::optional<Linear> slack = slack_of(condition);
      if (!slack) return false;
      rows.slacks.push_back(*slack);
    }
    out->window = find_pixel_window(b_, rows, ranges_);
    if (!out->window) return false;
    out->to = nest_.to;
    out->from = nest_.from;
    for (const Linear& index : to) out->base.push_back(to_expr(b_, index));
    out->rows = lines.extent.as<IntImm>()->value;
    out->columns = columns.extent.as<IntImm>()->value;
    out->x = simplify(b_, to_expr(b_, at.back()), ranges_);
    out->matrix_rows = rows.shape[0] * rows.shape[1] * rows.shape[2];
    out->matrix_columns = out->pitch = rows.shape[3];
    const int64_t bytes = byte_size(from.dtype);
    return out->matrix_rows <= kMostCoordinates && out->columns * bytes % kBulkAlignment == 0 &&
           out->pitch * bytes % kBulkAlignment == 0;
  }

  IrBuilder& b_;
  VarRanges ranges_;
  Nest nest_;
  std::vector<Linear> to_, from_;  // indices without the nest's variables
  std::vector<Linear> whole_;      // of `from`, with them
  std::size_t row_dim_ = 0;
  bool is_plain_column_ = false;  // columns beyond the last dimension are outside of the matrix
  bool is_plain_row_ = false;
  std::string problem_;
};

}  // namespace

bool is_bulk_copy(const Loop& loop) {
  return std::any_of(loop.attrs.begin(), loop.attrs.end(),
                     [](const Attr& attr) { return attr.key == kBulkCopyAttr; });
}

bool holds_bulk_copy(Stmt s) {
  bool found = false;
  walk(
      s,
      [&](Stmt x) {
        const Loop* loop = x.as<Loop>();
        found = found || (loop != nullptr && is_bulk_copy(*loop));
        return !found;
      },
      [](Expr) {});
  return found;
}

Result<BulkCopy> match_bulk_copy(IrBuilder& b, const Loop& nest, const VarRanges& ranges) {
  Matcher matcher(b, ranges);
  std::optional<BulkCopy> found = matcher.run(nest);
  if (!found) return error(Diag::kBulkForm, nest.id, matcher.problem());
  return *std::move(found);
}

}  // namespace prunerc::ir

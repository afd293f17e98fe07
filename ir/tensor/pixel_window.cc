#include "ir/tensor/pixel_window.h"

#include "ir/arith/simplify.h"
#include "ir/query.h"

#include <algorithm>

namespace prunerc::ir {
namespace {

// What a tensor map of rank 4 and its instructions can say. Sources: cuTensorMapEncodeIm2col; PTX
// ISA, im2col mode.
constexpr int64_t kLeastCorner = -128, kMostCorner = 127;
constexpr int64_t kMostOffset = 255;
constexpr int64_t kMostStep = 8;
constexpr int64_t kMostExtent = (int64_t{1} << 31) - 1;
constexpr int64_t kMostImageElems = int64_t{1} << 36;  // strides are below 2^40 bytes

constexpr std::size_t kImage = 0, kLine = 1, kColumn = 2, kChannel = 3;  // dimensions

class Finder {
 public:
  Finder(IrBuilder& b, const WindowRows& rows, const VarRanges& ranges)
      : b_(b), rows_(rows), ranges_(ranges) {}

  std::optional<PixelWindow> run() {
    if (moves(rows_.indices[kChannel], rows_.row) || !find_digits()) return std::nullopt;
    for (const bool has_end : {true, false}) {
      if (find_number(has_end) && find_offsets() && fits() && check_slacks()) return out_;
    }
    return std::nullopt;
  }

 private:
  static bool moves(const Linear& index, const Var* by) {
    return std::any_of(index.terms.begin(), index.terms.end(),
                       [&](const Term& t) { return mentions(t.factors(), by->id); });
  }

  // The term that moves with the row, if it is one and of one factor.
  std::optional<Term> moving(const Linear& index) const {
    std::optional<Term> found;
    for (const Term& t : index.terms) {
      if (!mentions(t.factors(), rows_.row->id)) continue;
      if (found || t.degree != 1) return std::nullopt;
      found = t;
    }
    return found;
  }

  // Of x // n and x % n: a constant n; else 0.
  static int64_t divisor_of(const BinaryNode* division) {
    const IntImm* n = division != nullptr ? division->rhs.as<IntImm>() : nullptr;
    return n != nullptr && n->value >= 1 && n->value <= kMostExtent ? n->value : 0;
  }

  // w = x % bases*steps + .., h = (y + x // bases) % bases*steps + .. or without that remainder.
  bool find_digits() {
    const std::optional<Term> w = moving(rows_.indices[kColumn]);
    const std::optional<Term> h = moving(rows_.indices[kLine]);
    if (w && w->atoms[0].as<Var>() != nullptr) {
      // All of them in one line.
      within_ = Linear::of(Expr(rows_.row));
      out_.bases[1] = ranges_.interval(rows_.row->id).hi + 1;
      out_.steps = {1, w->coef};
      return !moves(rows_.indices[kLine], rows_.row);
    }
    if (!w || !h) return false;
    out_.steps = {h->coef, w->coef};
    out_.bases[1] = divisor_of(w->atoms[0].as<FloorMod>());
    std::optional<Term> quotient = h;
    if (const FloorMod* line = h->atoms[0].as<FloorMod>()) {
      out_.bases[0] = divisor_of(line);
      line_ = to_linear(b_, line->lhs, ranges_);
      quotient = moving(*line_);
      if (!quotient || out_.bases[0] == 0) return false;
      line_ = *line_ - Linear::of(*quotient);
    }
    const FloorDiv* division = quotient->atoms[0].as<FloorDiv>();
    if (out_.bases[1] == 0 || divisor_of(division) != out_.bases[1]) return false;
    within_ = to_linear(b_, division->lhs, ranges_);
    return true;
  }

  // Of a single image a condition may say which pixel is the last.
  bool find_end() {
    if (rows_.shape[kImage] != 1) return false;
    for (const Linear& slack : rows_.slacks) {
      const std::optional<Term> row = moving(slack);
      if (!row || row->coef != -1 || row->atoms[0].as<Var>() == nullptr || slack.constant < 1 ||
          slack.constant % out_.bases[1] != 0 || moves(slack, rows_.column)) {
        continue;
      }
      number_ = Linear::of(slack.constant) - slack;
      if (interval_of(number_, ranges_).lo < 0) continue;  // pixels before the image
      out_.bases[0] = slack.constant / out_.bases[1];
      return true;
    }
    return false;
  }

  // Which pixel the row is, from some image on.
  bool find_number(bool has_end) {
    ends_ = true;
    if (line_) {
      number_ = *line_ * out_.bases[1] + within_;
    } else if (!has_end || !find_end()) {
      ends_ = false;
      number_ = within_;
      const Interval range = interval_of(number_, ranges_);
      if (!range.is_bounded() || range.lo < 0) return false;
      out_.bases[0] = range.hi / out_.bases[1] + 1;
    }
    const std::optional<Term> row = moving(number_);
    if (!row || row->coef != 1 || row->atoms[0].as<Var>() == nullptr || number_.overflow ||
        number_.has_data || out_.bases[0] > kMostExtent / out_.bases[1]) {
      return false;
    }
    const Linear first = number_ - Linear::of(Expr(rows_.row));
    out_.first = simplify(b_, to_expr(b_, first), ranges_);
    return true;
  }

  // What the indices are beside the digits of that number does not move: this proves them.
  bool find_offsets() {
    const Expr number = to_expr(b_, number_), width = b_.int_imm(out_.bases[1]);
    const Expr line = b_.floordiv(number, width);
    const Expr digits[] = {line_ ? b_.floormod(line, b_.int_imm(out_.bases[0])) : line,
                           b_.floormod(number, width)};
    for (std::size_t d = 0; d < 2; ++d) {
      const Linear rest =
          rows_.indices[kLine + d] - to_linear(b_, digits[d], ranges_) * out_.steps[d];
      if (moves(rest, rows_.row) || rest.has_data || rest.overflow) return false;
      const Interval range = interval_of(rest, ranges_);
      if (!range.is_bounded() || range.lo < kLeastCorner || range.hi > kMostCorner + kMostOffset)
        return false;
      if (range.hi - range.lo > kMostOffset) return false;
      out_.lower[d] = range.lo;
      out_.offset[d] = simplify(b_, to_expr(b_, rest + -range.lo), ranges_);
    }
    image_ = rows_.indices[kImage];
    if (line_) {
      const Expr image = b_.floordiv(number, b_.int_imm(out_.bases[0] * out_.bases[1]));
      image_ = image_ - to_linear(b_, image, ranges_);
    }
    if (moves(image_, rows_.row) || image_.has_data || image_.overflow) return false;
    out_.image = simplify(b_, to_expr(b_, image_), ranges_);
    return true;
  }

  bool fits() {
    out_.images = rows_.shape[kImage];
    out_.extents = {rows_.shape[kLine], rows_.shape[kColumn]};
    for (std::size_t d = 0; d < 2; ++d) {
      if (out_.steps[d] < 1 || out_.steps[d] > kMostStep || out_.lower[d] > kMostCorner)
        return false;
      if (out_.upper(d) < kLeastCorner || out_.upper(d) > kMostCorner) return false;
    }
    int64_t image = 1;
    for (const int64_t extent : rows_.shape) {
      if (extent < 1 || extent > kMostExtent) return false;
    }
    for (const std::size_t d : {kLine, kColumn, kChannel}) {
      if (rows_.shape[d] > kMostImageElems / image) return false;
      image *= rows_.shape[d];
    }
    return image < kMostImageElems;
  }

  // Each condition has to say that the element is inside of its image, or its image one of all.
  bool check_slacks() const {
    const int64_t size = out_.bases[0] * out_.bases[1];
    const Linear behind = number_ + image_ * size;
    return std::all_of(rows_.slacks.begin(), rows_.slacks.end(), [&](const Linear& slack) {
      if (ends_ && slack == Linear::of(out_.images * size) - behind) return true;
      for (std::size_t d = 0; d < rows_.indices.size(); ++d) {
        const Linear& index = rows_.indices[d];
        if (slack == Linear::of(rows_.shape[d]) - index || slack == index + 1) return true;
      }
      return false;
    });
  }

  IrBuilder& b_;
  const WindowRows& rows_;
  const VarRanges& ranges_;
  PixelWindow out_;
  Linear within_;               // x
  std::optional<Linear> line_;  // y, if h has the remainder
  Linear number_, image_;
  bool ends_ = false;  // are the bases those of a whole image?
};

}  // namespace

std::optional<PixelWindow> find_pixel_window(IrBuilder& b, const WindowRows& rows,
                                             const VarRanges& ranges) {
  return Finder(b, rows, ranges).run();
}

}  // namespace prunerc::ir

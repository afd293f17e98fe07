#include "ir/fpv/bound.h"

#include "ir/fpv/apart.h"
#include "ir/fpv/field.h"
#include "ir/support/check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace prunerc::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Of one value: degrees of numerator and denominator, coefficient bits (for what exponents are), degree in integer
// inputs; of integers the bits that hold them; bits of the factors of a term.
struct Degree {
  double num = 0, den = 0, bits = 0, ints = 0, width = 0, scale = 0;
  bool operator==(const Degree&) const = default;
};

constexpr std::array<double Degree::*, 6> kParts = {&Degree::num,  &Degree::den,   &Degree::bits,
                                                    &Degree::ints, &Degree::width, &Degree::scale};

constexpr Degree kAtom = {1, 0, 0, 0, 0, 0};

// A number of so many bits.
Degree number(double bits) { return {0, 0, bits, 0, bits, bits}; }
Degree number_of(int64_t value) {
  return number(std::log2(1 + std::fabs(static_cast<double>(value))));
}

Degree join(const Degree& a, const Degree& b) {
  return {std::max(a.num, b.num),   std::max(a.den, b.den),     std::max(a.bits, b.bits),
          std::max(a.ints, b.ints), std::max(a.width, b.width), std::max(a.scale, b.scale)};
}
// log2(2^a + 2^b).
double log_sum(double a, double b) {
  if (std::isinf(a) || std::isinf(b)) return kInfinity;
  return std::max(a, b) + std::log2(1 + std::exp2(-std::fabs(a - b)));
}
Degree sum(const Degree& a, const Degree& b) {
  const double width = log_sum(a.width, b.width), scale = std::max(a.scale, b.scale);
  if (a.den == 0 && b.den == 0) {
    return {std::max(a.num, b.num),   0,     log_sum(a.bits, b.bits),
            std::max(a.ints, b.ints), width, scale};
  }
  return {std::max(a.num + b.den, b.num + a.den),
          a.den + b.den,
          a.bits + b.bits + 1,
          a.ints + b.ints,
          width,
          scale};
}
Degree product(const Degree& a, const Degree& b) {
  return {a.num + b.num,   a.den + b.den,     a.bits + b.bits,
          a.ints + b.ints, a.width + b.width, a.scale + b.scale};
}
Degree quotient(const Degree& a, const Degree& b) {
  return product(a, {b.den, b.num, b.bits, b.ints, b.width, b.scale});
}

// Of bits it matters whether there are more than one, and of a factor's whether there are any: sums in nested loops
// are soon as they stay.
Degree coarse(Degree d) {
  d.bits = std::min(d.bits, 2.0);
  d.scale = std::min(d.scale, 1.0);
  return d;
}

// A hash, or the whole number that a constant keeps.
Degree kept(const Degree& x) {
  return x.num + x.den == 0 ? Degree{1, 0, x.bits, 0, 0, x.scale} : kAtom;
}

// Of an integer type: no value needs more, its sign apart.
double width_of(DType dtype) {
  if (is_bool(dtype) || is_float(dtype)) return 0;
  return std::log2(static_cast<double>(max_int(dtype)) + 1);
}

// Of a constant as an integer times a power of two.
double bits_of(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const Dyadic dyadic = dyadic_of(value);
  return std::log2(std::fabs(static_cast<double>(dyadic.odd))) + std::abs(dyadic.exponent);
}

class Analysis {
 public:
  Analysis(const FpCode& code, int64_t max_visits)
      : code_(code),
        max_visits_(max_visits),
        apart_(find_apart(code)),
        slot_bits_(code.slots.size()) {
    for (const FpBuffer& buffer : code.buffers) {
      Degree d;
      if (buffer.role == BufferRole::kInput) {
        d = is_float(buffer.dtype) ? kAtom : Degree{0, 0, 0, 1, width_of(buffer.dtype)};
      }
      state_.push_back(d);
    }
  }

  FpDegrees run() {
    stmt(code_.root);
    // Hashes, conditions and integers that wrap, of what is in the buffers at last.
    is_last_ = true;
    stmt(code_.root);
    for (std::size_t b = 0; b < state_.size(); ++b) {
      const Degree& d = state_[b];
      out_.largest = std::max(out_.largest, d.num + d.den);
      if (code_.buffers[b].role != BufferRole::kOutput) continue;
      out_.numerator = std::max(out_.numerator, d.num);
      out_.denominator = std::max(out_.denominator, d.den);
      out_.int_degree = std::max(out_.int_degree, d.ints);
    }
    return out_;
  }

 private:
  void stmt(int32_t index);
  void loop(int32_t index);
  void iterate(int32_t index, const std::vector<Degree>& entry, std::vector<Degree>* all);
  using States = std::array<std::vector<Degree>, 4>;           // the latest ones, the last one last
  using Grows = std::vector<std::array<bool, kParts.size()>>;  // by buffer
  Grows extrapolate(const States& seen, double count);
  bool reaches_more(int32_t index, const std::vector<Degree>& entry, const Grows& grows);
  void forget(const FpStmt& s);
  Degree value(int32_t e);
  Degree call(const FpExpr& n);
  Degree argument(int32_t e);
  Degree decide(int32_t e);
  Degree held(DType dtype, Degree d);
  Degree unsigned_as(const FpExpr& n, const Degree& d);
  Degree affine(const FpAffine& a);

  const FpCode& code_;
  const int64_t max_visits_;
  const std::vector<std::vector<int32_t>> apart_;  // by loop statement
  std::vector<Degree> state_;
  std::vector<double> slot_bits_;  // of loop variables
  FpDegrees out_;
  int64_t num_visits_ = 0;
  bool is_last_ = false;  // nothing is stored
};

// What a hash or a comparison is of. Integers that are made floats meet more often than floats.
Degree Analysis::argument(int32_t e) {
  const Degree d = value(e);
  out_.compares_data |= d.ints > 0;
  out_.largest = std::max(out_.largest, d.num + d.den);
  return d;
}

// What is done depends on the value, which is no polynomial of integer inputs.
Degree Analysis::decide(int32_t e) {
  if (e < 0) return {};
  const Degree d = value(e);
  out_.compares_data |= d.ints > 0;
  return d;
}

// An integer of the type: modulo a power of two, where polynomials vanish more often than on integers.
Degree Analysis::held(DType dtype, Degree d) {
  const double width = width_of(dtype);
  if (d.width <= width) return d;
  out_.compares_data |= d.ints > 0;
  d.width = width;
  return d;
}

// A difference, or what was signed, as u8.
Degree Analysis::unsigned_as(const FpExpr& n, const Degree& d) {
  const DType from = code_.exprs[static_cast<std::size_t>(n.a)].dtype;
  const bool stays = n.op == FpOp::kWrap && (from == DType::kU8 || is_bool(from));
  out_.compares_data |= n.dtype == DType::kU8 && !stays && d.ints > 0;
  return d;
}

// Loop variables are numbers of as many bits as their extents; lanes are part of one.
Degree Analysis::affine(const FpAffine& a) {
  Degree d = number_of(a.constant);
  const auto add = [&](const Degree& of, int64_t coefficient) {
    const double size = std::fabs(static_cast<double>(coefficient));
    d = sum(d, product(of, number(std::log2(std::max(size, 1.0)))));
  };
  for (const FpAffine::Term& t : a.varying) add(value(t.of), t.coefficient);
  for (const FpAffine::Term& t : a.terms) {
    const auto slot = static_cast<std::size_t>(t.of);
    const int32_t node = code_.slots[slot].node;
    add(node >= 0 ? value(node) : number(slot_bits_[slot]), t.coefficient);
  }
  return held(DType::kI64, d);
}

// Steps, of two iterations each: what is written late in an iteration is read early in the next, and two buffers that
// change places grow in turns.
constexpr int kTried = 8;

// What is to be added to a part that grew by `growth`, the last step last, in kTried steps of `count`. Who pauses may
// grow again.
double further(const std::array<double, 3>& growth, double count) {
  const auto [earlier, previous, last] = growth;
  if (!(last > 0)) return previous > 0 || earlier > 0 ? kInfinity : 0;  // also if infinite already
  // The logarithm of a sum: no further growth is faster than that of the logarithm.
  if (last < previous * 0.95) return 1 + std::log2(count / kTried);
  if (last <= previous * 1.01 + 1e-9) return last * (count - kTried);
  // Steps that grow themselves, as coefficients that are divided by a counter: by less each time, as a
  // logarithm, or by as much at most.
  const double rise = last - previous, before = previous - earlier, rest = count - kTried;
  if (rise < before * 0.95) {
    return rest * (last + rise / std::log2(kTried / (kTried - 1.0)) * std::log2(count / kTried));
  }
  return rise <= before * 1.01 + 1e-9 ? rest * (last + rise * (rest + 1) / 2) : kInfinity;
}

// Once more: elements that no other iteration touches are as they were before the loop. `all`: what is left of all.
void Analysis::iterate(int32_t index, const std::vector<Degree>& entry, std::vector<Degree>* all) {
  stmt(code_.stmts[static_cast<std::size_t>(index)].body);
  const std::vector<Degree> before = std::exchange(*all, state_);
  for (const int32_t buffer : apart_[static_cast<std::size_t>(index)]) {
    const auto b = static_cast<std::size_t>(buffer);
    (*all)[b] = join(before[b], state_[b]);
    state_[b] = entry[b];
  }
}

// The body's effect on the state, as often as the loop runs. What still grows after some
// iterations is taken to go on growing as it did; faster growth has no bound.
void Analysis::loop(int32_t index) {
  const FpStmt& s = code_.stmts[static_cast<std::size_t>(index)];
  if (is_last_) return stmt(s.body);
  const FpExpr& extent = code_.exprs[static_cast<std::size_t>(s.expr)];
  // An extent that is not constant is at most that of a buffer that it indexes.
  const double count = extent.op == FpOp::kConstI ? static_cast<double>(extent.value)
                                                  : static_cast<double>(code_.largest_extent);
  States seen;
  const std::vector<Degree> entry = state_;
  std::vector<Degree> all = seen[3] = state_;
  for (int i = 0; i < 2 * kTried; ++i) {
    const std::vector<Degree> before = state_, all_before = all;
    if (i < count) iterate(index, entry, &all);
    if (state_ == before && all == all_before) {
      state_ = std::move(all);
      return;
    }
    if (i % 2 == 0) continue;
    std::rotate(seen.begin(), seen.begin() + 1, seen.end());
    seen[3] = all;
  }
  state_ = std::move(all);
  const Grows grows = extrapolate(seen, count);
  while (reaches_more(index, entry, grows)) continue;
}

// Adds what iterations add that were not looked at. Returns which parts that makes larger.
Analysis::Grows Analysis::extrapolate(const States& seen, double count) {
  Grows grows(state_.size());
  for (std::size_t b = 0; b < state_.size(); ++b) {
    for (std::size_t p = 0; p < kParts.size(); ++p) {
      double Degree::*const part = kParts[p];
      const auto step = [&](std::size_t i) { return seen[i + 1][b].*part - seen[i][b].*part; };
      const double more = further({step(0), step(1), step(2)}, std::ceil(count / 2));
      state_[b].*part += more;
      grows[b][p] = more > 0;
    }
    if (!is_float(code_.buffers[b].dtype)) state_[b] = held(code_.buffers[b].dtype, state_[b]);
  }
  return grows;
}

// Another iteration: parts that were 0 and are reached only now, through many buffers, have no bound. Nor has what was hidden
// by what an element of an iteration's own held before.
bool Analysis::reaches_more(int32_t index, const std::vector<Degree>& entry, const Grows& grows) {
  const std::vector<Degree> before = state_;
  std::vector<bool> is_apart(state_.size());
  for (const int32_t buffer : apart_[static_cast<std::size_t>(index)]) {
    is_apart[static_cast<std::size_t>(buffer)] = true;
    state_[static_cast<std::size_t>(buffer)] = entry[static_cast<std::size_t>(buffer)];
  }
  stmt(code_.stmts[static_cast<std::size_t>(index)].body);
  bool found = false;
  for (std::size_t b = 0; b < state_.size(); ++b) {
    for (std::size_t p = 0; p < kParts.size(); ++p) {
      double Degree::*const part = kParts[p];
      const bool is_more = is_apart[b] ? !grows[b][p] && state_[b].*part > before[b].*part
                                       : before[b].*part == 0 && state_[b].*part != 0;
      state_[b].*part = is_more ? kInfinity : before[b].*part;
      found = found || is_more;
    }
  }
  return found && !out_.is_too_long;
}

void Analysis::stmt(int32_t index) {
  if (index < 0 || out_.is_too_long) return;
  out_.is_too_long = ++num_visits_ > max_visits_;
  const FpStmt& s = code_.stmts[static_cast<std::size_t>(index)];
  switch (s.kind) {
    case FpStmtKind::kSeq:
      for (int32_t i = 0; i < s.count; ++i) {
        stmt(code_.children[static_cast<std::size_t>(s.first + i)]);
      }
      return;
    case FpStmtKind::kLoop:
    case FpStmtKind::kLanes:
      slot_bits_[static_cast<std::size_t>(s.slot)] = decide(s.expr).width;
      return loop(index);
    case FpStmtKind::kKernel: return stmt(s.body);
    case FpStmtKind::kBlock:
      decide(s.expr);
      stmt(s.other);
      return stmt(s.body);
    case FpStmtKind::kStore: {
      const int32_t buffer = code_.accesses[static_cast<std::size_t>(s.slot)].buffer;
      Degree& d = state_[static_cast<std::size_t>(buffer)];
      const Degree stored = value(s.expr);
      if (!is_last_) d = coarse(join(d, stored));
      return;
    }
    case FpStmtKind::kIf:
      decide(s.expr);
      stmt(s.body);
      return stmt(s.other);
    case FpStmtKind::kForget: return forget(s);
  }
  PRUNERC_UNREACHABLE("statement kind");
}

// No element has a value: what was made of the earlier ones does not grow with the next.
void Analysis::forget(const FpStmt& s) {
  for (int32_t i = 0; i < s.count && !is_last_; ++i) {
    const int32_t buffer = code_.children[static_cast<std::size_t>(s.first + i)];
    Degree& d = state_[static_cast<std::size_t>(buffer)];
    out_.largest = std::max(out_.largest, d.num + d.den);
    d = {};
  }
}

Degree Analysis::call(const FpExpr& n) {
  const Degree x = argument(n.a);
  if (n.b >= 0) argument(n.b);
  switch (n.intrinsic) {
    case Intrinsic::kExp:
    case Intrinsic::kSigmoid:
    case Intrinsic::kTanh:
      // Sums of many as well: products of 1 - e^a are sums of exponentials. Multiples: D3.
      out_.has_products_in_exp |=
          !is_last_ && (x.num > 1 || x.den > 0 || x.bits > 1 || x.scale > 0);
      // 1 / (1 + e^-x).
      return n.intrinsic == Intrinsic::kExp ? kAtom : Degree{1, 1, 2, 0, 0};
    case Intrinsic::kRsqrt: return {0, 1, 0, 0, 0};
    case Intrinsic::kLog:
    case Intrinsic::kSqrt:
    case Intrinsic::kErf:
    case Intrinsic::kSin:
    case Intrinsic::kCos:
    case Intrinsic::kFloor:
    case Intrinsic::kCeil:
    case Intrinsic::kRound:
    case Intrinsic::kAbs: return kept(x);
    case Intrinsic::kPow:
    case Intrinsic::kFma: return kAtom;
  }
  PRUNERC_UNREACHABLE("intrinsic");
}

Degree Analysis::value(int32_t e) {
  const FpExpr& n = code_.exprs[static_cast<std::size_t>(e)];
  switch (n.op) {
    case FpOp::kConstI: return number_of(n.value);
    case FpOp::kConstF: {
      const double bits = bits_of(code_.constants[static_cast<std::size_t>(n.value)].value);
      return {0, 0, bits, 0, 0, bits};
    }
    case FpOp::kAffine: return affine(code_.affines[static_cast<std::size_t>(n.a)]);
    case FpOp::kAddF:
    case FpOp::kSubF: return sum(value(n.a), value(n.b));
    case FpOp::kAddI: return held(n.dtype, sum(value(n.a), value(n.b)));
    case FpOp::kSubI: return held(n.dtype, unsigned_as(n, sum(value(n.a), value(n.b))));
    case FpOp::kMulF: return product(value(n.a), value(n.b));
    case FpOp::kMulI: return held(n.dtype, product(value(n.a), value(n.b)));
    case FpOp::kDivF: return quotient(value(n.a), value(n.b));
    case FpOp::kSelectI:
    case FpOp::kSelectF: decide(n.a); return join(value(n.b), value(n.c));
    case FpOp::kMinF:
    case FpOp::kMaxF: return join(kAtom, join(argument(n.a), argument(n.b)));
    case FpOp::kFloorDiv:
    case FpOp::kFloorMod:
    case FpOp::kMinI:
    case FpOp::kMaxI:
    case FpOp::kEqI:
    case FpOp::kNeI:
    case FpOp::kLtI:
    case FpOp::kLeI:
    case FpOp::kAnd:
    case FpOp::kOr:  // No polynomials: data makes them conditions.
      return join(decide(n.a), decide(n.b));
    case FpOp::kEqF:
    case FpOp::kNeF:
    case FpOp::kLtF:
    case FpOp::kLeF:
    case FpOp::kTruth:
      argument(n.a);
      if (n.b >= 0) argument(n.b);
      out_.compares_data = true;
      return {0, 0, 0, 1, 0};
    case FpOp::kToInt:
      argument(n.a);
      // The hash has 32 bits at most.
      out_.int_mass = std::max(out_.int_mass,
                               n.dtype == DType::kI8 || n.dtype == DType::kU8 ? 0x1p-8 : 0x1p-31);
      return {0, 0, 0, 1, width_of(n.dtype)};
    case FpOp::kToBool:
    case FpOp::kAbsI: return decide(n.a);
    case FpOp::kWrap: return held(n.dtype, unsigned_as(n, value(n.a)));
    case FpOp::kNot:
    case FpOp::kOfInt: return value(n.a);
    case FpOp::kNarrow: return kept(argument(n.a));
    case FpOp::kLoadI:
    case FpOp::kLoadF:
      return state_[static_cast<std::size_t>(code_.accesses[static_cast<std::size_t>(n.a)].buffer)];
    case FpOp::kCallF: return call(n);
  }
  PRUNERC_UNREACHABLE("operation");
}

}  // namespace

FpDegrees find_degrees(const FpCode& code, int64_t max_visits) {
  return Analysis(code, max_visits).run();
}

}  // namespace prunerc::ir

// Digits of iterators and sums of them: the working form of detect_iter_map.
#ifndef PRUNERC_IR_ARITH_DIGITS_H_
#define PRUNERC_IR_ARITH_DIGITS_H_

#include "ir/arith/linear.h"
#include "ir/expr.h"

#include <cstdint>
#include <vector>

namespace prunerc::ir {

// (mark // lower) % extent * scale; lower * extent divides the mark's extent. A mark is an index
// into the detector's iterators.
struct Digit {
  int32_t mark = -1;
  int64_t lower = 1;
  int64_t extent = 1;
  int64_t scale = 1;
};

struct DigitSum {
  std::vector<Digit> digits;  // largest scale first
  Linear base;
};

struct DigitMark {
  const Var* var = nullptr;  // null: fused
  std::vector<Digit> fused;  // mixed radix digits, largest scale first, the last of scale 1
  int64_t extent = 1;
  bool cut = false;  // the guard ends it before the product of its digits
};

bool same_place(const Digit& x, const Digit& y);
void sort_digits(std::vector<Digit>& digits);
// (m // 4) * 4 + m % 4 is m again; expects and keeps order.
void join_digits(std::vector<Digit>& digits);
// Adds the digit, or its scale to that of the same digit; one of scale 0 goes.
void add_digit(std::vector<Digit>& digits, const Digit& digit);
// Scales 1, e0, e0*e1, ...?
bool is_mixed_radix(const std::vector<Digit>& digits, int64_t* product);
bool any_below_one(const std::vector<Digit>& digits);

// The simplifier takes whole multiples out of quotients and remainders: (8*f + g) // 6 becomes
// f + (2*f + g) // 6, one form for equal values, in which f and g are no longer digits of one
// number. This goes back: adds multiples of `divisor` to scales until they are those of a mixed
// radix. What that takes from the quotient is appended to `pulled` (null for a remainder). Inner
// loops (`depths`, by mark) become lower digits where several could. Nothing changes if there is no
// such radix.
void lift_digits(std::vector<Digit>& digits, int64_t divisor, const std::vector<int32_t>& depths,
                 std::vector<Digit>* pulled);

// Of digits of a mixed radix: their quotient by a factor of `divisor`, as far as whole parts of low
// digits fall away. The rest of the divisor.
int64_t strip_digits(std::vector<Digit>& digits, int64_t divisor);

// The digits with those that hold one of `at` and more taken apart.
std::vector<Digit> refined(const std::vector<Digit>& digits, const std::vector<Digit>& at);

// If the digit's mark, or the part of it that the digit lies in, stands among the digits of the
// fused mark `whole`: the same digit as one of `whole`. False if not.
bool embed_digit(Digit& digit, const std::vector<DigitMark>& marks, int32_t whole);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ARITH_DIGITS_H_

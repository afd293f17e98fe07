// FpSize: how large the coefficients of a value are, for the chance that a prime divides them. Internal.
#ifndef PRUNERC_IR_FPV_SIZE_H_
#define PRUNERC_IR_FPV_SIZE_H_

namespace prunerc::ir {

/// An odd number that divides base^power and (largest!)^times, where `base` is a common multiple of numbers up to
/// `largest`; infinite: not known.
struct FpOdd {
  double base = 1, power = 0, largest = 1, times = 0;
  bool operator==(const FpOdd&) const = default;
};

/// Upper bounds for a value P / Q, all but `constant` as logarithms: coefficients of P are multiples of 2^low / odd,
/// and their magnitudes add up to 2^high; those of Q are whole numbers that add up to 2^den. Where an input stands in one
/// term of P, its coefficient is 2^term at most (0 if term is -infinity). Default: of an input. DESIGN.md, D16.
struct FpSize {
  double low = 0, high = 0, term = 0, den = 0;
  double constant = 0;  // the value, where that is known and not 0
  FpOdd odd = {};
  bool operator==(const FpSize&) const = default;
};
FpSize size_of(double constant);
/// Of whole numbers of at most this magnitude.
FpSize size_below(double magnitude);

/// One of both.
FpSize join(const FpSize& a, const FpSize& b);
FpSize sum(const FpSize& a, const FpSize& b);
FpSize product(const FpSize& a, const FpSize& b);
FpSize quotient(const FpSize& a, const FpSize& b);
/// Of n such values.
FpSize sum_of(double n, const FpSize& each);
FpSize product_of(double n, const FpSize& each);

/// Bits of the coefficients of P as whole numbers.
double bits_of(const FpSize& a);
/// The same of the difference of two that are not the same.
double bits_of_difference(const FpSize& a, const FpSize& b);
/// The same of coefficients of inputs that stand in one term each.
double bits_of_term_difference(const FpSize& a);
/// Of the differences of one value and any: those of two have no more bits than both shares and 1.
double bits_in_differences(const FpSize& a);
/// How many primes of so many bits can divide a number that is not 0.
double primes_in(double bits, double of_prime);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_FPV_SIZE_H_

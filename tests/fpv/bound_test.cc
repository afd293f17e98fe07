// At small primes wrong programs do pass now and then: no more often than the computed bound says.
#include "ir/fpv/cone.h"
#include "ir/fpv/fpv.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <string>

namespace prunerc::ir {
namespace {

using namespace testing;  // NOLINT: a test

// A product of vectors; `B` says which element of the second one goes with A[k].
std::string dot(const std::string& b) {
  return "program p(A: f32[6], B: f32[6]) -> (C: f32[1]) { C[0] = 0f32 for k in 6 { C[0] = C[0] + "
         "A[k]*B[" +
         b + "] } }";
}

// Sums of quotients with a denominator for each term.
std::string quotients(const std::string& last) {
  return "program p(A: f32[4], B: f32[4]) -> (C: f32[1]) { C[0] = 0f32 for k in 4 { C[0] = C[0] + "
         "A[k]/B[" +
         last + "] } }";
}

std::string prod(const std::string& index) {
  return "program p(A: f32[6]) -> (C: f32[1]) { C[0] = 1f32 for k in 6 { C[0] = C[0]*A[" + index +
         "] } }";
}

// One query over `keys` keys; `key` says which key row the k-th exponent is made of.
std::string attention(int keys, const std::string& key) {
  const std::string n = std::to_string(keys);
  return "program p(Q: f32[3], K: f32[" + n + ", 3], V: f32[" + n + "]) -> (O: f32[1]) {\n" +
         "buffer a: f32[" + n + "] global buffer l: f32[1] global buffer o: f32[1] global\n" +
         "for k in " + n + " { a[k] = 0f32 for e in 3 { a[k] = a[k] + Q[e]*K[" + key +
         ", e] } }\n l[0] = 0f32 o[0] = 0f32\n for k in " + n +
         " { l[0] = l[0] + exp(a[k]) o[0] = o[0] + exp(a[k])*V[k] }\n O[0] = o[0]/l[0] }";
}

struct Rate {
  double measured = 0;
  double bound = 0;  // the largest of any run
  int runs = 0;
};

Rate measure(const std::string& spec, const std::string& wrong, uint32_t prime, int runs,
             WorldWidth width) {
  const Program left = parse_or_die(spec);
  const Program right = parse_or_die(wrong);
  FpvOptions options;
  options.primes = {prime, prime + 1};
  options.log2_error = 0;  // one test
  options.width = width;
  Rate rate;
  int passed = 0;
  for (int i = 0; i < runs; ++i) {
    options.seed = static_cast<uint64_t>(i) + 1;
    const FpvVerdict verdict = check_equivalent(left, right, options);
    if (verdict.kind == VerdictKind::kUnsupported) continue;  // a denominator was 0
    ++rate.runs;
    if (!verdict.ok()) continue;
    ++passed;
    rate.bound = std::max(rate.bound, std::exp2(verdict.log2_error));
  }
  rate.measured = static_cast<double>(passed) / std::max(1, rate.runs);
  return rate;
}

// The measured rate is below the bound, and is not 0: at such primes the test would show nothing.
void check_rate(const std::string& spec, const std::string& wrong, uint32_t prime, int runs,
                WorldWidth width = WorldWidth::kOne) {
  const Rate rate = measure(spec, wrong, prime, runs, width);
  INFO("p = " << prime << ": " << rate.measured << " of " << rate.runs << " runs, bound "
              << rate.bound << "\n"
              << wrong);
  CHECK(rate.runs > runs / 2);
  CHECK(rate.measured > 0);
  // As far above as chance brings a rate that is the bound.
  CHECK(rate.measured < rate.bound + 3 * std::sqrt(rate.bound / rate.runs));
}

TEST_CASE("false accepts of sums of products stay under the bound") {
  // Both residues must vanish: about 1 / (p q).
  for (uint32_t prime : {23U, 47U}) {
    check_rate(dot("k"), dot("(k + 1) % 6"), prime, 10000);
    check_rate(dot("k"), dot("select(k == 5, 0, k)"), prime, 10000);
  }
}

TEST_CASE("false accepts of products stay under the bound") {
  for (uint32_t prime : {23U, 47U}) {
    check_rate(prod("k"), prod("select(k == 5, 0, k)"), prime, 10000);
  }
}

TEST_CASE("false accepts of fractions stay under the bound") {
  for (uint32_t prime : {47U, 167U}) {
    check_rate(quotients("k"), quotients("select(k == 3, 0, k)"), prime, 20000);
  }
}

TEST_CASE("false accepts over bools stay under the bound, whatever the degree") {
  const auto program = [](const std::string& value) {
    return "program p(A: f32[1], M: bool[3]) -> (C: f32[1]) { C[0] = " + value + " }";
  };
  const std::string all = "A[0]*f32(M[0])*f32(M[1])*f32(M[2])";
  check_rate(program(all), program("A[0]*f32(M[0])*f32(M[1])"), 47, 2000);
  check_rate(program(all), program("0f32*A[0]"), 47, 2000);
}

TEST_CASE("false accepts of roundings stay under the bound, small whole numbers being kept") {
  const auto program = [](const std::string& value) {
    return "program p(A: f32[1]) -> (C: f32[1]) { C[0] = " + value + " }";
  };
  check_rate(program("f32(f16(A[0]))"), program("A[0]"), 47, 20000);
  check_rate(program("f32(f16(exp(A[0])))"), program("exp(A[0])"), 167, 5000);
}

TEST_CASE("false accepts of exponentials stay under the bound, whatever their number") {
  for (int keys : {2, 8, 32}) {
    const std::string wrong = "select(k == 1, 0, k)";
    check_rate(attention(keys, "k"), attention(keys, wrong), 167, 3000);
    check_rate(attention(keys, "k"), attention(keys, wrong), 2039, 5000);
  }
}

// Of one test of a program against itself, at a prime where coefficients do not count.
constexpr double kP = 2039, kQ = 1019;
double bound_of(const std::string& text) {
  FpvOptions options;
  options.primes = {2039, 2040};
  options.log2_error = 0;
  const FpvVerdict verdict = check_equivalent(parse_or_die(text), parse_or_die(text), options);
  INFO(text << "\n" << to_string(verdict));
  CHECK(verdict.ok());
  CHECK(verdict.tests == 1);
  return std::exp2(verdict.log2_error);
}

// D3 and D13 by hand: a difference of this degree vanishes; two arguments of one element meet, or one is taken for one of
// 3 whole numbers or for one of all values that were hashed.
double by_hand(double degree, double hashed, double squares, double all) {
  return degree / kP + 4 * degree / kQ + (2 * hashed + all + 3) * squares / (kP * kQ);
}

TEST_CASE("the bound of one rounding, of both programs, is that by hand") {
  CHECK(bound_of("program p(A: f32[1]) -> (C: f32[1]) { C[0] = f32(f16(A[0])) }") ==
        Approx(1 / (kP * kQ) + (2 * 2 + 2 + 3) * 8 / (kP * kQ)));
  // Of one exponential: two of weight 1.
  CHECK(bound_of("program p(A: f32[1]) -> (C: f32[1]) { C[0] = f32(f16(exp(A[0])*3f32)) }") ==
        Approx(by_hand(1, 2, 8, 2) + (2 + 6) * 2 / kP));
  // Of a sum, which may be 0 for as many as its degree: two of weight 9 * 2.
  CHECK(
      bound_of("program p(A: f32[2]) -> (C: f32[1]) { C[0] = f32(f16(exp(A[0]) + exp(A[1]))) }") ==
      Approx(by_hand(1, 2, 8, 2) + (2 + 6) * 36 / kP));
}

TEST_CASE("roundings count where they are part of an element, whatever is beside it") {
  const auto rows = [](const std::string& n) {
    return "program p(A: f32[" + n + ", 2]) -> (C: f32[" + n + "]) { for i in " + n +
           " { C[i] = f32(f16(exp(A[i, 0])))*f32(f16(exp(A[i, 1]))) } }";
  };
  for (const double n : {1, 64}) {
    CHECK(bound_of(rows(std::to_string(static_cast<int>(n)))) ==
          Approx(by_hand(2, 4, 16, 4 * n) + (4 + 6) * 4 / kP));
  }
}

TEST_CASE("a rounding that an element is made of twice counts once where no others are") {
  CHECK(bound_of("program p(A: f32[1]) -> (C: f32[1]) { buffer P: f32[1] global P[0] = "
                 "f32(f16(exp(A[0]))) C[0] = P[0]*P[0] }") ==
        Approx(by_hand(2, 2, 8, 2) + (2 + 6) * 2 / kP));
}

TEST_CASE("false accepts of roundings of sums of exponentials stay under the bound") {
  const auto program = [](const std::string& value) {
    return "program p(A: f32[4]) -> (C: f32[1]) { C[0] = " + value + " }";
  };
  const std::string sum = "f32(f16(exp(A[0]) + exp(A[1])))";
  check_rate(program(sum), program("f32(f16(exp(A[2]) + exp(A[3])))"), 2039, 20000);
  check_rate(program(sum), program("f32(f16(exp(A[0])*2f32))"), 2039, 20000);
}

TEST_CASE("false accepts modulo two pairs of primes stay under the bound of both") {
  const auto program = [](const std::string& value) {
    return "program p(A: f32[3]) -> (C: f32[1]) { C[0] = " + value + " }";
  };
  check_rate(program("exp(A[0])"), program("exp(A[1])"), 47, 20000, WorldWidth::kTwo);
  check_rate(program("f32(f16(exp(A[0])))"), program("f32(f16(exp(A[1])))"), 47, 20000,
             WorldWidth::kTwo);
  check_rate(program("A[0]*A[1]"), program("A[0]*A[2]"), 23, 40000, WorldWidth::kTwo);
  check_rate(attention(8, "k"), attention(8, "select(k == 1, 0, k)"), 47, 20000, WorldWidth::kTwo);
}

TEST_CASE("where integers are made of roundings, those of all elements count") {
  const auto program = [](const std::string& condition) {
    return "program p(A: f32[512]) -> (C: f32[512]) { buffer P: f32[512] global for i in 512 { "
           "P[i] = "
           "f32(f16(exp(A[i]))) } for j in 512 { C[j] = select(" +
           condition + ", P[j], P[511 - j]) } }";
  };
  FpvOptions options;
  options.primes = {2039, 2040};
  const auto check = [&](const std::string& text) {
    return to_string(check_equivalent(parse_or_die(text), parse_or_die(text), options));
  };
  CHECK(check(program("P[j] < P[511 - j]")) == "unsupported: no bound below one half");
  CHECK(check(program("j < 200")).find("equal (chance of error 2^-2") == 0);
}

// With primes of 31 bits.
FpvVerdict verdict_of(const std::string& spec, const std::string& candidate) {
  FpvOptions options;
  options.log2_error = 0;
  return check_equivalent(parse_or_die(spec), parse_or_die(candidate), options);
}

TEST_CASE("coefficients made of loop variables count") {
  const auto program = [](const std::string& value) {
    return "program p(A: f64[2], B: f64[2]) -> (C: f64[2]) { for i in 2 { C[i] = " + value + " } }";
  };
  const std::string spec = program("A[i]");
  // The product of a p and its q, for all that is known.
  const FpvVerdict one =
      verdict_of(spec, program("A[i] + B[i]*(f64(i*1073742623)*f64(i*536871311))"));
  INFO(to_string(one));
  CHECK((!one.ok() || one.log2_error >= -19.7));
  // As many of them as the loop runs.
  const FpvVerdict many = verdict_of(
      "program p(A: f64[1], B: f64[1]) -> (C: f64[1]) { C[0] = A[0] }",
      "program p(A: f64[1], B: f64[1]) -> (C: f64[1]) { buffer W: f64[1] global W[0] = 1f64 for i "
      "in 4096 { W[0] = W[0]*(f64(i*4 + 536870915)*f64(i*8 + 1073741831)) } C[0] = A[0] + "
      "B[0]*W[0] }");
  INFO(to_string(many));
  CHECK((!many.ok() || many.log2_error >= -8));
}

TEST_CASE("a coefficient that one of the primes divides leaves the other") {
  const std::string head = "program p(A: f64[1], B: f64[1]) -> (C: f64[1]) { C[0] = A[0]";
  const FpvVerdict verdict = verdict_of(head + " }", head + " + B[0]*1073742623f64 }");
  INFO(to_string(verdict));
  CHECK(verdict.log2_error >= std::log2(1 / kNumSafePrimes * 0x1.8p-30));
}

TEST_CASE("of wide integers those near 0 are drawn in two ways") {
  const FpvVerdict verdict =
      verdict_of("program p(A: f32[1], X: i32[1048573]) -> (C: f32[1]) { C[0] = A[0]*f32(X[0]) }",
                 "program p(A: f32[1], X: i32[1048573]) -> (C: f32[1]) { C[0] = f32(X[0])*A[0] }");
  INFO(to_string(verdict));
  CHECK(verdict.log2_error >= std::log2(0x1p-21 + 0x1p-23));
  CHECK(verdict.log2_error < -20.6);
}

TEST_CASE("no more tests are run where integers leave none a bound") {
  std::string product = "A[0]";
  for (int i = 0; i < 64; ++i) product += "*f32(M[" + std::to_string(i) + "])";
  const std::string text =
      "program p(A: f32[1], M: bool[64]) -> (C: f32[1]) { C[0] = " + product + " }";
  const FpvVerdict verdict = check_equivalent(parse_or_die(text), parse_or_die(text));
  CHECK(to_string(verdict) == "unsupported: no bound below one half");
  CHECK(verdict.tests == 1);
}

TEST_CASE("a full table of cones keeps those that it holds, and one for all others") {
  const auto power = [](double degree) { return FpCone{degree, 0, false, {}}; };
  FpCones cones(4);  // with that of constants
  for (const double degree : {2, 3, 4})
    CHECK(cones.at(cones.id_of(power(degree))) == power(degree));
  CHECK(cones.at(cones.id_of(power(6))) == power(6));
  CHECK(cones.at(cones.id_of(power(5))) == power(6));
  CHECK(cones.id_of(power(4)) == cones.id_of(power(5)));
  CHECK(cones.at(cones.id_of(power(4))) == power(6));
  for (const double degree : {2, 3}) CHECK(cones.at(cones.id_of(power(degree))) == power(degree));
  cones.id_of({1, 2, false, {}});
  CHECK(cones.at(cones.id_of(power(5))) == FpCone{6, 2, false, {}});
}

TEST_CASE("false accepts of exponentials of products stay under the bound") {
  const auto program = [](const std::string& value) {
    return "program p(A: f32[8]) -> (C: f32[1]) { C[0] = " + value + " }";
  };
  const std::string product = "A[0]*A[1]*A[2]*A[3]*A[4]*A[5]*A[6]*A[7]";
  check_rate(program("exp(" + product + ")"), program("1f32"), 167, 20000);
  check_rate(program("tanh(" + product + ")"), program("0f32"), 167, 20000);
}

TEST_CASE("the degree of an exponent counts") {
  const std::string head = "program p(A: f32[1]) -> (C: f32[1]) { buffer W: f32[1] global ";
  const FpvVerdict verdict =
      verdict_of(head + "W[0] = A[0] for i in 4095 { W[0] = W[0]*A[0] } C[0] = exp(W[0]) }",
                 head + "C[0] = 1f32 }");
  INFO(to_string(verdict));
  // Of A = 0 alone, or of what the verifier does not know not to be a root.
  CHECK((!verdict.ok() || verdict.log2_error >= std::log2(4096 * 0x1p-30)));
  const std::string same =
      head + "W[0] = A[0] for i in 4095 { W[0] = W[0]*A[0] } C[0] = exp(W[0]) }";
  CHECK(verdict_of(same, same).log2_error >= std::log2(4096 * 0x1p-30));
}

TEST_CASE("exponents that are sums of many inputs are said to want some of their own") {
  const auto assumed = [](const std::string& exponent) {
    const std::string text = "program p(A: f32[4]) -> (C: f32[1]) { C[0] = exp(" + exponent + ") }";
    return verdict_of(text, text).assumes.private_exponents;
  };
  CHECK_FALSE(assumed("A[0] - max(A[1], A[2])"));
  CHECK(assumed("A[0] + A[1] + A[2]"));
  CHECK(assumed("A[0]*A[1]"));
  CHECK(assumed("A[0]*3f32"));
}

TEST_CASE("integers that wrap by a loop variable are decided by data") {
  const auto program = [](const std::string& value) {
    return "program p(X: i32[64]) -> (C: i32[64]) { for i in 64 { C[i] = " + value + " } }";
  };
  const FpvVerdict verdict = verdict_of(program("X[i]*i32(i*1073741824)"),
                                        program("select(i == 2, 0i32, X[i]*i32(i*1073741824))"));
  INFO(to_string(verdict));
  CHECK(verdict.assumes.orders == verdict.ok());
}

}  // namespace
}  // namespace prunerc::ir

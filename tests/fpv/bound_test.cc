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
    return "program p(A: f32[1024]) -> (C: f32[1024]) { buffer P: f32[1024] global for i in 1024 { "
           "P[i] = "
           "f32(f16(exp(A[i]))) } for j in 1024 { C[j] = select(" +
           condition + ", P[j], P[1023 - j]) } }";
  };
  FpvOptions options;
  options.primes = {2039, 2040};
  const auto check = [&](const std::string& text) {
    return to_string(check_equivalent(parse_or_die(text), parse_or_die(text), options));
  };
  CHECK(check(program("P[j] < P[1023 - j]")) == "unsupported: no bound below one half");
  CHECK(check(program("j < 200")).find("equal (chance of error 2^-2") == 0);
}

// With primes of 31 bits.
FpvVerdict verdict_of(const std::string& spec, const std::string& candidate) {
  FpvOptions options;
  options.log2_error = 0;
  return check_equivalent(parse_or_die(spec), parse_or_die(candidate), options);
}

// Of a program beside itself, in one test.
void check_bound(const std::string& text, double from, double to,
                 WorldWidth width = WorldWidth::kOne) {
  FpvOptions options;
  options.log2_error = 0;
  options.width = width;
  const FpvVerdict verdict = check_equivalent(parse_or_die(text), parse_or_die(text), options);
  INFO(text << "\n" << to_string(verdict));
  CHECK(verdict.ok());
  CHECK(verdict.log2_error >= from);
  CHECK(verdict.log2_error <= to);
}

TEST_CASE("coefficients made of loop variables count") {
  const auto program = [](const std::string& value) {
    return "program p(A: f64[2], B: f64[2]) -> (C: f64[2]) { for i in 2 { C[i] = " + value + " } }";
  };
  // The product of a p and its q, for all that is known.
  check_bound(program("A[i] + B[i]*(f64(i*1073742623)*f64(i*536871311))"), -19.7, -18);
  // As many of them as the loop runs.
  check_bound(
      "program p(A: f64[1], B: f64[1]) -> (C: f64[1]) { buffer W: f64[1] global W[0] = 1f64 for i "
      "in 4096 { W[0] = W[0]*(f64(i*4 + 536870915)*f64(i*8 + 1073741831)) } C[0] = A[0] + "
      "B[0]*W[0] }",
      -8, -7);
}

TEST_CASE("a coefficient that one of the primes divides leaves the other") {
  check_bound("program p(A: f64[1], B: f64[1]) -> (C: f64[1]) { C[0] = A[0] + B[0]*1073742623f64 }",
              std::log2(1 / kNumSafePrimes * 0x1.8p-30), -47);
}

TEST_CASE("large and small powers of two make large coefficients") {
  // 2^30 + 2^-30.
  check_bound(
      "program p(A: f64[1], B: f64[1]) -> (C: f64[1]) { C[0] = A[0] + B[0]*1073741824f64 + "
      "B[0]*(1f64/32768f64)*(1f64/32768f64) }",
      -19.7, -18);
}

TEST_CASE("primes that divide the difference of two arguments count") {
  const auto program = [](const std::string& value) {
    return "program p(A: f64[1], B: f64[1]) -> (C: f64[1]) { C[0] = " + value + " }";
  };
  // B times a p and its q.
  const std::string product = "*1073742623f64*536871311f64";
  const std::string sum = "A[0] + B[0]" + product;
  for (const std::string function : {"abs", "sqrt", "exp", "tanh"}) {
    check_bound(program(function + "(" + sum + ")"), -19.7, -17);
  }
  check_bound(program("f64(f16(" + sum + "))"), -19.7, -17);
  check_bound(program("max(" + sum + ", A[0])"), -19.7, -16);
  // Of quotients those of both sides.
  check_bound(program("abs(A[0]/(B[0]" + product + " + 1f64))"), -19.7, -17);
  // A prime for each pair where one residue is all that there is.
  check_bound(program("abs(exp(A[0]) + exp(B[0])" + product + ")"), -19.7, -12);
  check_bound(program("abs(A[0] - B[0]*0.125f64)"), -60, -45);
}

TEST_CASE("of two pairs of primes both must divide") {
  const std::string head = "program p(A: f64[1], B: f64[1]) -> (C: f64[1]) { C[0] = ";
  const std::string product = "*1073742623f64*536871311f64";
  check_bound(head + "abs(A[0] + B[0]" + product + ") }", -39.4, -36, WorldWidth::kTwo);
  check_bound(head + "exp(A[0] + B[0]" + product + ") }", -39.4, -35, WorldWidth::kTwo);
  check_bound(head + "abs(exp(A[0]) + exp(B[0])" + product + ") }", -39.4, -28, WorldWidth::kTwo);
}

// Two programs that differ by multiples of p = 1073742623 and q = 536871311 = 2^29 + 399, one of the primes of D2: they pass
// with this one, which is drawn as often as any other.
void check_shared_prime(const std::string& parameters, const std::string& spec,
                        const std::string& wrong) {
  FpvOptions options;
  options.primes = {1073742623, 1073742624};
  options.log2_error = 0;
  const auto program = [&](const std::string& body) {
    return parse_or_die("program p(" + parameters + ") -> (C: f64[1]) { " + body + " }");
  };
  const FpvVerdict verdict = check_equivalent(program(spec), program(wrong), options);
  INFO(wrong << "\n" << to_string(verdict));
  CHECK(verdict.ok());
  CHECK(verdict.log2_error >= std::log2(1 / kNumSafePrimes) - 1e-6);
}

TEST_CASE("whole numbers that functions keep count as coefficients, whatever they are made of") {
  const char* const values[] = {"256", "64", "3", "31", "32", "1", "143"};
  std::string body = "buffer W: f64[7] global ";
  for (int i = 0; i < 7; ++i) {
    body += "W[" + std::to_string(i) + "] = floor(A[0]*0f64 + " + std::string(values[i]) + "f64) ";
  }
  check_shared_prime("A: f64[1], B: f64[1]",
                     body +
                         "C[0] = A[0] + B[0]*((W[1]*W[0]*W[0] + W[2])*W[0] + W[3])*"
                         "((W[4]*W[0]*W[0] + W[5])*W[0] + W[6])",
                     "C[0] = A[0]");
}

TEST_CASE("a multiple of p and q counts wherever it may vanish") {
  const std::string sum = "A[0] + B[0]*1073742623f64*536871311f64";
  check_shared_prime("A: f64[1], B: f64[1]", "C[0] = A[0]", "C[0] = " + sum);
  check_shared_prime("A: f64[1], B: f64[1]", "C[0] = A[0]", "C[0] = max(" + sum + ", A[0])");
  for (const std::string function : {"abs", "exp", "tanh"}) {
    check_shared_prime("A: f64[1], B: f64[1]", "C[0] = " + function + "(A[0])",
                       "C[0] = " + function + "(" + sum + ")");
  }
  check_shared_prime("A: f64[1], B: f64[1]", "C[0] = f64(f16(A[0]))",
                     "C[0] = f64(f16(" + sum + "))");
}

TEST_CASE("exponents that one of the primes makes equal count") {
  check_shared_prime("A: f64[1]", "C[0] = exp(A[0]*536870912f64)",
                     "C[0] = exp(0f64 - A[0]*399f64)");
  // Also multiples of them.
  check_shared_prime("A: f64[1]", "C[0] = exp(A[0]*268435456f64)*exp(A[0]*268435456f64)",
                     "C[0] = exp(0f64 - A[0]*399f64)");
  check_shared_prime(
      "A: f64[1]",
      "C[0] = abs(exp(A[0]*67108864f64)*exp(A[0]*67108864f64)*exp(A[0]*67108864f64)*"
      "exp(A[0]*67108864f64)*exp(A[0]*67108864f64)*exp(A[0]*67108864f64)*exp(A[0]*67108864f64)*"
      "exp(A[0]*67108864f64))",
      "C[0] = abs(exp(0f64 - A[0]*399f64))");
  check_shared_prime("A: f64[1]", "C[0] = tanh(A[0]*268435456f64)",
                     "C[0] = 1f64 - 2f64/(1f64 + exp(0f64 - A[0]*399f64))");
}

TEST_CASE("an exponent that has each input in one term has that term's coefficient") {
  check_bound(R"(program p(Q: f32[128], K: f32[16, 128], V: f32[16]) -> (O: f32[1]) {
    buffer s: f32[16] global buffer t: f32[16] global
    buffer m: f32[1] global buffer l: f32[1] global buffer o: f32[1] global
    for k in 16 { s[k] = 0f32 for e in 128 { s[k] = s[k] + Q[e]*K[k, e] } t[k] = s[k]*0.0883883476f32 }
    m[0] = f32.ninf for k in 16 { m[0] = max(m[0], t[k]) } l[0] = 0f32 o[0] = 0f32
    for k in 16 { l[0] = l[0] + exp(t[k] - m[0]) o[0] = o[0] + exp(t[k] - m[0])*V[k] }
    O[0] = o[0]/l[0] })",
              -28, -24);
}

// One query over 1024 keys in 32 parts.
const std::string kSplitAttention = R"(
program p(Q: f16[64], K: f16[1024, 64], V: f16[1024, 64]) -> (O: f16[64]) {
  buffer a: f32[1024] global buffer P: f16[1024] global buffer m: f32[32] global
  buffer l: f32[32] global buffer o: f32[32, 64] global buffer w: f32[32] global
  buffer M: f32[1] global buffer L: f32[1] global buffer r: f32[64] global
  for k in 1024 { a[k] = 0f32 for e in 64 { a[k] = a[k] + f32(Q[e])*f32(K[k, e]) } }
  for c in 32 { m[c] = f32.ninf for s in 32 { m[c] = max(m[c], a[c*32 + s]*0.125f32) } }
  for c in 32 { for s in 32 { P[c*32 + s] = f16(exp(a[c*32 + s]*0.125f32 - m[c])) } }
  for c in 32 { l[c] = 0f32 for s in 32 { l[c] = l[c] + f32(P[c*32 + s]) } }
  for c in 32 { for e in 64 { o[c, e] = 0f32 for s in 32 {
    o[c, e] = o[c, e] + f32(P[c*32 + s])*f32(V[c*32 + s, e]) } } }
  M[0] = f32.ninf for c in 32 { M[0] = max(M[0], m[c]) }
  L[0] = 0f32 for c in 32 { L[0] = L[0] + exp(m[c] - M[0])*l[c] }
  for c in 32 { w[c] = exp(m[c] - M[0])/L[0] }
  for e in 64 { r[e] = 0f32 for c in 32 { r[e] = r[e] + w[c]*o[c, e] } O[e] = f16(r[e]) } })";

TEST_CASE("attention, norms and moments keep their verdict") {
  const auto check = [](const std::string& text, int most) {
    FpvOptions options;
    options.log2_error = -40;
    const FpvVerdict verdict = check_equivalent(parse_or_die(text), parse_or_die(text), options);
    INFO(text << "\n" << to_string(verdict));
    CHECK(verdict.ok());
    CHECK(verdict.log2_error <= -40);
    CHECK(verdict.tests <= most);
  };
  check(R"(program p(Q: f32[80], K: f32[512, 80], V: f32[512]) -> (O: f32[1]) {
    buffer s: f32[512] global buffer t: f32[512] global
    buffer m: f32[1] global buffer l: f32[1] global buffer o: f32[1] global
    for k in 512 { s[k] = 0f32 for e in 80 { s[k] = s[k] + Q[e]*K[k, e] } t[k] = s[k]*0.1118034f32 }
    m[0] = f32.ninf for k in 512 { m[0] = max(m[0], t[k]) } l[0] = 0f32 o[0] = 0f32
    for k in 512 { l[0] = l[0] + exp(t[k] - m[0]) o[0] = o[0] + exp(t[k] - m[0])*V[k] }
    O[0] = o[0]/l[0] })",
        4);
  check(R"(program p(X: f32[768]) -> (Y: f16[768]) {
    buffer m: f32[1] global buffer v: f32[1] global m[0] = 0f32 v[0] = 0f32
    for k in 768 { m[0] = m[0] + X[k] } m[0] = m[0]/768f32
    for k in 768 { v[0] = v[0] + (X[k] - m[0])*(X[k] - m[0]) } v[0] = v[0]/768f32
    for k in 768 { Y[k] = f16((X[k] - m[0])*rsqrt(v[0] + 0.00001f32)) } })",
        2);
  check(R"(program p(X: f32[256]) -> (N: f32[1], M: f32[1], V: f32[1]) {
    N[0] = 0f32 M[0] = 0f32 V[0] = 0f32 for k in 256 {
      V[0] = V[0] + (X[k] - M[0])*(X[k] - M[0])*N[0]/(N[0] + 1f32)
      M[0] = M[0] + (X[k] - M[0])/(N[0] + 1f32)
      N[0] = N[0] + 1f32 } })",
        4);
  check(kSplitAttention, 5);
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

TEST_CASE("what is made of two cones is remembered, but not of one that stands for several") {
  FpCones cones(3);
  const uint32_t two = cones.id_of({2, 0, false, {}});
  const uint32_t four = cones.made_of(FpConeOp::kProduct, two, two);
  CHECK(cones.at(four).num == 4);
  CHECK(cones.made_of(FpConeOp::kProduct, two, two) == four);
  // The last number is one for all others from here on.
  CHECK(cones.made_of(FpConeOp::kProduct, two, four) == four);
  for (const double degree : {6, 8, 10}) {
    CHECK(cones.at(four).num == degree);
    CHECK(cones.made_of(FpConeOp::kProduct, two, four) == four);
  }
}

TEST_CASE("cones are made of others by numbers as by themselves") {
  FpCones cones;
  const uint32_t three = cones.id_of(cone_of(3)), input = cones.id_of(kAtomCone);
  const auto made = [&](FpConeOp op, uint32_t a, uint32_t b) {
    return cones.at(cones.made_of(op, a, b));
  };
  for (int times = 0; times < 2; ++times) {
    CHECK(made(FpConeOp::kJoin, three, input) == join(cone_of(3), kAtomCone));
    CHECK(made(FpConeOp::kSum, three, three) == cone_of(6));
    CHECK(made(FpConeOp::kDifference, three, three) == cone_of(0));
    CHECK(made(FpConeOp::kProduct, input, three) == product(kAtomCone, cone_of(3)));
    CHECK(made(FpConeOp::kQuotient, input, three) == quotient(kAtomCone, cone_of(3)));
    CHECK(made(FpConeOp::kSumOf, three, 4) == cone_of(12));
    CHECK(made(FpConeOp::kProductOf, input, 4) == product_of(4, kAtomCone));
  }
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
  for (const std::string sum : {"A[0] + A[1]", "0f32 - A[0]", "1f32*A[0] - A[1]"}) {
    CHECK_FALSE(assumed(sum));
  }
  // Powers of degree 2 and 4 in that of A / 2.
  CHECK(assumed("A[0]*2f32"));
  CHECK(assumed("A[0]/2f32"));
  CHECK(assumed("A[0]*0.5f32 - A[1]"));
}

TEST_CASE("multiples of one exponent are said to be assumed not to be there") {
  const FpvVerdict verdict = verdict_of(
      "program p(A: f64[1]) -> (C: f64[1]) { C[0] = 512f64*exp(2f64*A[0]) - 21080f64*exp(A[0]) + "
      "68850f64*exp(A[0]*0.5f64) - 77469f64 + 34425f64*exp(A[0]*(0f64 - 0.5f64)) - "
      "5270f64*exp(0f64 - A[0]) + 32f64*exp(0f64 - 2f64*A[0]) }",
      "program p(A: f64[1]) -> (C: f64[1]) { C[0] = 0f64*A[0] }");
  INFO(to_string(verdict));
  CHECK((!verdict.ok() || verdict.assumes.private_exponents));
}

TEST_CASE("exponents that are whole numbers, which functions keep, are multiples of one another") {
  for (const char* value : {"exp(floor(7f64))", "exp(f64(f16(7f64)))", "exp(abs(7f64))"}) {
    const std::string program =
        "program p(A: f64[1]) -> (C: f64[1]) { C[0] = A[0]*" + std::string(value) + " }";
    const FpvVerdict verdict = verdict_of(program, program);
    INFO(value << ": " << to_string(verdict));
    CHECK((!verdict.ok() || verdict.assumes.private_exponents));
  }
}

TEST_CASE("what grows in turns, or is reached late, grows with the loop") {
  // After 2000 iterations products of a thousand bytes, one of which is 0.
  const std::string head = "program p(A: f32[1], X: i8[2000]) -> (C: f32[1]) { ";
  const std::string zero = head + "C[0] = 0f32*A[0] }";
  const auto is_bounded = [&](const std::string& body) {
    const FpvVerdict verdict = verdict_of(head + body, zero);
    INFO(body << ": " << to_string(verdict));
    return verdict.ok() && verdict.log2_error < -1;
  };
  CHECK_FALSE(is_bounded(
      "buffer a: f32[1] global buffer b: f32[1] global buffer t: f32[1] global "
      "a[0] = 1f32 b[0] = 1f32 "
      "for i in 2000 { t[0] = b[0]*f32(X[i]) b[0] = a[0] a[0] = t[0] } C[0] = a[0]*A[0] }"));
  // An element of X at the end of a row of buffers, which it leaves in the last iterations.
  constexpr int kNum = 24;
  std::string buffers, inits, moves;
  for (int i = 0; i < kNum; ++i) {
    const std::string name = "b" + std::to_string(i);
    buffers += "buffer " + name + ": f32[1] global ";
    inits += name + "[0] = 0f32 ";
    moves = i == 0 ? name + "[0] = f32(X[i]) "
                   : name + "[0] = b" + std::to_string(i - 1) + "[0] " + moves;
  }
  const std::string last = "b" + std::to_string(kNum - 1) + "[0]";
  std::string product = "A[0]";
  for (int k = 0; k < 16; ++k) product += "*(" + last + " - " + std::to_string(k) + "f32)";
  const FpvVerdict late = verdict_of(
      head + buffers + inits + "for i in 40 { C[0] = " + product + " " + moves + "} }", zero);
  INFO(to_string(late));
  CHECK((!late.ok() || late.log2_error > -9));
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

// What check_equivalent accepts, rejects and finds undefined, on programs written by hand.
#include "ir/fpv/fpv.h"
#include "ir/fpv/world.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::ir {
namespace {

using namespace testing;  // NOLINT: a test

FpvVerdict check(const std::string& spec, const std::string& candidate, double log2_error = -20) {
  FpvOptions options;
  options.log2_error = log2_error;
  return check_equivalent(parse_or_die(spec), parse_or_die(candidate), options);
}

void accepts(const std::string& spec, const std::string& candidate) {
  const FpvVerdict verdict = check(spec, candidate);
  INFO(candidate << "\n" << to_string(verdict));
  CHECK(verdict.kind == VerdictKind::kEqual);
  CHECK(verdict.log2_error <= -20);
}
void rejects(const std::string& spec, const std::string& candidate) {
  const FpvVerdict verdict = check(spec, candidate);
  INFO(candidate << "\n" << to_string(verdict));
  CHECK(verdict.kind == VerdictKind::kNotEqual);
}
void finds_invalid(const std::string& spec, const std::string& candidate, const std::string& why) {
  const FpvVerdict verdict = check(spec, candidate);
  INFO(candidate << "\n" << to_string(verdict));
  CHECK(verdict.kind == VerdictKind::kInvalid);
  CHECK(verdict.text.find(why) != std::string::npos);
}

const std::string kMatmul = R"(program p(A: f32[9, 70], B: f32[70, 11]) -> (C: f32[9, 11]) {
  for i in 9 { for j in 11 { for k in 70 {
    block "C" [vi: S(9) = i, vj: S(11) = j, vk: R(70) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk]*B[vk, vj]
    } } } } })";

TEST_CASE("a product in another order, tiled and with a vectorized inner loop is equal") {
  accepts(kMatmul, R"(program p(A: f32[9, 70], B: f32[70, 11]) -> (C: f32[9, 11]) {
  for i in 9 parallel { for jo in 3 { for k in 70 { for ji in 4 vectorized {
    block "C" [vi: S(9) = i, vj: S(11) = jo*4 + ji, vk: R(70) = k] where jo*4 + ji < 11 {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + B[vk, vj]*A[vi, vk]
    } } } } } })");
}

TEST_CASE("partial sums are equal to one sum") {
  accepts(kMatmul, R"(program p(A: f32[9, 70], B: f32[70, 11]) -> (C: f32[9, 11]) {
  buffer T: f32[7, 9, 11] global
  for f in 136*5 { if f < 7*9 { for j in 11 { for k in 10 {
      block "P" [a: S(7) = f % 7, i: S(9) = f // 7, vj: S(11) = j, r: R(10) = k] {
        init { T[a, i, vj] = 0f32 }
        T[a, i, vj] = fma(A[i, a*10 + r], B[a*10 + r, vj], T[a, i, vj])
      } } } } }
  for i in 9 { for j in 11 { for a in 7 {
    block "C" [vi: S(9) = i, vj: S(11) = j, va: R(7) = a] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + T[va, vi, vj]
    } } } } })");
}

TEST_CASE("products that differ in one term, one operand or one element are not equal") {
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = kMatmul;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  rejects(kMatmul, changed("for k in 70", "for k in 69"));
  rejects(kMatmul, changed("A[vi, vk]*B", "A[vi, (vk + 1) % 70]*B"));
  rejects(kMatmul, changed("= 0f32", "= 1f32"));
  rejects(kMatmul, changed("C[vi, vj] + A", "C[vi, vj] - A"));
  rejects(kMatmul,
          changed("A[vi, vk]*B", "select(vi == 8 && vj == 10 && vk == 69, 0f32, A[vi, vk])*B"));
}

TEST_CASE("what a program must not do is invalid, with its cause") {
  const std::string spec = "program p(A: f32[8]) -> (C: f32[8]) { for i in 8 { C[i] = A[i] } }";
  const auto body = [](const std::string& text) {
    return "program p(A: f32[8]) -> (C: f32[8]) { buffer T: f32[16] global " + text + " }";
  };
  accepts(spec, body("for i in 8 { T[i] = A[i] } for i in 8 { C[i] = T[i] }"));
  finds_invalid(spec, body("for i in 7 { C[i] = A[i] }"), "C[7] is never written");
  finds_invalid(spec, body("for i in 7 { T[i] = A[i] } for i in 8 { C[i] = T[i] }"),
                "T[7] is read before");
  finds_invalid(spec, body("for i in 8 { C[i] = A[(i*3) // 2] }"), "outside buffer 'A'");
  finds_invalid(spec, body("for i in 8 { C[i] = select(i < 9, A[(i*3) // 2], 0f32) }"),
                "index 9 of dimension 0 is outside buffer 'A'");
  finds_invalid(spec, body("for i in 8 { C[i // (i - 3)] = A[i] }"), "division");
  finds_invalid(spec, body("for i in 8 { block \"b\" [v: S(7) = i] { C[v] = A[v] } }"),
                "outside its extent");
  finds_invalid(spec, "program p(A: f32[7]) -> (C: f32[8]) { for i in 8 { C[i] = A[i % 7] } }",
                "parameters");
}

TEST_CASE("iterations that run at the same time must not meet in one element") {
  const std::string spec = R"(program p(A: f32[8, 8]) -> (C: f32[8]) {
    for i in 8 { C[i] = 0f32 for k in 8 { C[i] = C[i] + A[i, k] } } })";
  const auto body = [](const std::string& text) {
    return "program p(A: f32[8, 8]) -> (C: f32[8]) { buffer T: f32[8] global " + text + " }";
  };
  accepts(spec, body("for i in 8 parallel { C[i] = 0f32 for k in 8 { C[i] = C[i] + A[i, k] } }"));
  finds_invalid(spec, body(R"(for i in 8 { C[i] = 0f32 }
    for k in 8 parallel { for i in 8 { C[i] = C[i] + A[i, k] } })"),
                "concurrent");
  finds_invalid(spec, body(R"(for i in 8 { C[i] = 0f32
    for k in 8 parallel { C[i] = C[i] + A[i, k] } })"),
                "concurrent");
  // Two writers of equal values are two writers.
  finds_invalid(spec, body(R"(for i in 8 parallel { T[0] = 1f32 C[i] = 0f32
    for k in 8 { C[i] = C[i] + A[i, k] } })"),
                "concurrent");
  // One loop after the other is no race.
  accepts(spec,
          body(R"(for i in 8 parallel { T[i] = A[i, 0] } for i in 8 parallel { C[i] = T[7 - i] }
    for i in 8 parallel { C[i] = 0f32 for k in 8 { C[i] = C[i] + A[i, k] } })"));
  // Threads of one block wait for each other between two loops; blocks of a grid do not.
  accepts(spec, body(R"(for b in 2 bind(block.x) {
      for t in 4 bind(thread.x) { T[b*4 + t] = A[b*4 + t, 0] }
      for t in 4 bind(thread.x) { C[b*4 + t] = T[b*4 + 3 - t] }
      for t in 4 bind(thread.x) { C[b*4 + t] = 0f32 for k in 8 { C[b*4 + t] = C[b*4 + t] + A[b*4 + t, k] } } })"));
  finds_invalid(spec, body(R"(for b in 2 bind(block.x) {
      for t in 4 bind(thread.x) { T[b*4 + t] = A[b*4 + t, 0] }
      for t in 4 bind(thread.x) { C[b*4 + t] = T[7 - b*4 - t] } })"),
                "read");
}

TEST_CASE("an intermediate of one iteration is not seen by the next") {
  const std::string spec = "program p(A: f32[8]) -> (C: f32[8]) { for i in 8 { C[i] = A[0] } }";
  // T lives inside of the loop: its value of the first iteration is gone in the second.
  finds_invalid(spec, R"(program p(A: f32[8]) -> (C: f32[8]) { buffer T: f32[8] global
    for i in 8 { for u in 2 {
      block "t" [v: S(8) = i, w: S(2) = u] where i < 1 { T[0] = A[0] }
      block "c" [v: S(8) = i, w: S(2) = u] { C[v] = T[0] } } } })",
                "before it is written");
}

TEST_CASE("a scan in one loop sees what earlier iterations wrote") {
  const std::string spec = R"(program p(A: f32[70]) -> (C: f32[70]) {
    for i in 70 { C[i] = 0f32 for k in 70 { if k <= i { C[i] = C[i] + A[k] } } } })";
  accepts(spec, R"(program p(A: f32[70]) -> (C: f32[70]) {
    for i in 70 { C[i] = A[i] + select(0 < i, C[i - 1], 0f32) } })");
  rejects(spec, R"(program p(A: f32[70]) -> (C: f32[70]) { buffer T: f32[70] global
    for i in 70 { T[i] = 0f32 }
    for i in 70 { C[i] = A[i] + select(0 < i, T[i - 1], 0f32) } })");
  // Backwards, so that each lane overwrites what the next one reads.
  accepts(
      "program p(A: f32[70]) -> (C: f32[71]) { for i in 71 { C[i] = A[0] } }",
      R"(program p(A: f32[70]) -> (C: f32[71]) { C[0] = A[0] for i in 70 { C[i + 1] = C[i] } })");
}

const std::string kSoftmax = R"(program p(X: f32[4, 12]) -> (Y: f32[4, 12]) {
  buffer m: f32[4] global buffer s: f32[4] global
  for i in 4 { for j in 12 { block "m" [v: S(4) = i, r: R(12) = j] {
    init { m[v] = f32.ninf } m[v] = max(m[v], X[v, r]) } } }
  for i in 4 { for j in 12 { block "s" [v: S(4) = i, r: R(12) = j] {
    init { s[v] = 0f32 } s[v] = s[v] + exp(X[v, r] - m[v]) } } }
  for i in 4 { for j in 12 { Y[i, j] = exp(X[i, j] - m[i])/s[i] } } })";

// Rows in one pass: the sum is rescaled when the maximum grows.
std::string online(const std::string& rescale, const std::string& last) {
  return R"(program p(X: f32[4, 12]) -> (Y: f32[4, 12]) {
  buffer m: f32[4] global buffer n: f32[4] global buffer s: f32[4] global
  for i in 4 { m[i] = f32.ninf s[i] = 0f32
    for t in 3 {
      n[i] = m[i]
      for j in 4 { n[i] = max(n[i], X[i, t*4 + j]) }
      s[i] = s[i]*)" +
         rescale + R"(
      for j in 4 { s[i] = s[i] + exp(X[i, t*4 + j] - n[i]) }
      m[i] = n[i]
    }
    for j in 12 { Y[i, j] = exp(X[i, j] - )" +
         last + R"()/s[i] } } })";
}

TEST_CASE("softmax in one pass is equal, without its rescaling it is not") {
  accepts(kSoftmax, online("exp(m[i] - n[i])", "m[i]"));
  rejects(kSoftmax, online("1f32", "m[i]"));
  rejects(kSoftmax, online("exp(m[i] - n[i])*exp(m[i] - n[i])", "m[i]"));
  rejects(kSoftmax, online("exp(m[i] - n[i])", "X[i, 0]"));
  // The maximum cancels as long as it is the same everywhere.
  std::string other = kSoftmax;
  other.replace(other.find("max(m[v], X[v, r])"), 18, "max(m[v], X[v, 0])");
  accepts(kSoftmax, other);
}

TEST_CASE("the position of the largest value does not depend on the order of the search") {
  const auto argmax = [](const std::string& loops, const std::string& position) {
    return "program p(X: f32[5, 12]) -> (I: i64[5]) { buffer b: f32[5] global for i in 5 { I[i] = "
           "0i64 - 1i64 "
           "b[i] = f32.ninf " +
           loops + " { if I[i] < 0i64 || b[i] < X[i, " + position + "] || X[i, " + position +
           "] == b[i] && " + position + " < I[i] { I[i] = " + position + " b[i] = X[i, " +
           position + "] } } } }";
  };
  accepts(argmax("for j in 12", "j"), argmax("for j in 12", "(11 - j)"));
  accepts(argmax("for j in 12", "j"), argmax("for j in 12", "(j*5 % 12)"));
  rejects(argmax("for j in 12", "j"), argmax("for j in 11", "j"));
  rejects(argmax("for j in 12", "j"), argmax("for j in 12", "(j // 2 * 2)"));
}

TEST_CASE("integers are exact and wrap") {
  const std::string spec = R"(program p(A: u8[40], B: i8[40]) -> (C: i32[1]) {
    C[0] = 0i32 for k in 40 { C[0] = C[0] + i32(A[k])*i32(B[k]) } })";
  accepts(spec, R"(program p(A: u8[40], B: i8[40]) -> (C: i32[1]) { buffer T: i32[4] global
    for l in 4 { T[l] = 0i32 for k in 10 { T[l] = T[l] + i32(B[k*4 + l])*i32(A[k*4 + l]) } }
    C[0] = T[0] + T[1] + (T[2] + T[3]) })");
  rejects(spec, R"(program p(A: u8[40], B: i8[40]) -> (C: i32[1]) {
    C[0] = 0i32 for k in 40 { C[0] = C[0] + i32(A[k])*i32(u8(B[k])) } })");
}

// Programs of one loop over N elements of X and Z.
std::string elementwise(const std::string& in, const std::string& out, const std::string& value,
                        int n = 64) {
  const std::string size = "[" + std::to_string(n) + "]";
  return "program p(X: " + in + size + ", Z: " + in + size + ") -> (Y: " + out + size +
         ") { for i in " + std::to_string(n) + " { Y[i] = " + value + " } }";
}

TEST_CASE("equals among floats are tried, whatever is made of the comparison") {
  rejects(elementwise("f32", "f32", "f32(X[i] == Z[i])"), elementwise("f32", "f32", "0f32"));
  rejects(elementwise("f32", "f32", "f32(X[i] != Z[i])"), elementwise("f32", "f32", "1f32"));
  rejects(elementwise("f32", "f32", "select(X[i] == Z[i], 1f32, X[i])"),
          elementwise("f32", "f32", "X[i]"));
  // Which of the row is the largest.
  const auto one_hot = [](const std::string& value) {
    return "program p(X: f32[8]) -> (Y: f32[8]) { buffer m: f32[1] global m[0] = f32.ninf "
           "for i in 8 { m[0] = max(m[0], X[i]) } for i in 8 { Y[i] = " +
           value + " } }";
  };
  rejects(one_hot("f32(X[i] == m[0])"), one_hot("0f32"));
  accepts(one_hot("f32(X[i] == m[0])"), one_hot("select(m[0] == X[i], 1f32, 0f32)"));
}

TEST_CASE("an exponential is compared with what is none") {
  const auto program = [](const std::string& value) {
    return "program p(X: f32[8]) -> (Y: f32[8]) { buffer m: f32[1] global m[0] = X[0] for i in 8 { "
           "m[0] = max(m[0], X[i]) } for i in 8 { Y[i] = f32(" +
           value + ") } }";
  };
  rejects(program("exp(X[i] - m[0]) == 1f32"), program("0f32"));
  rejects(program("exp(X[i] - m[0]) < 1f32"), program("exp(X[i] - m[0]) <= 1f32"));
  accepts(program("exp(X[i] - m[0]) == 1f32"), program("1f32 == exp(X[i])/exp(m[0])"));
}

TEST_CASE("values that a program compares with are among its inputs") {
  const auto differs = [](const std::string& spec, const std::string& candidate) {
    const FpvVerdict verdict = check(elementwise("f32", "f32", spec),
                                     elementwise("f32", "f32", candidate), /*log2_error=*/-64);
    INFO(spec << "; " << candidate << ": " << to_string(verdict));
    CHECK(verdict.kind == VerdictKind::kNotEqual);
  };
  differs("select(X[i] < 0f32, 0f32, 1f32)", "select(X[i] <= 0f32, 0f32, 1f32)");
  differs("select(X[i] < 3f32, 0f32, 1f32)", "select(X[i] <= 3f32, 0f32, 1f32)");
  differs("f32(bool(X[i]))", "1f32");
  // Few integers are.
  for (const char* type : {"i32", "i64", "u8"}) {
    const std::string number = (std::string(type) == "u8" ? "77" : "50256") + std::string(type);
    rejects(elementwise(type, "f32", "select(X[i] == " + number + ", 0f32, 1f32)"),
            elementwise(type, "f32", "1f32"));
  }
}

TEST_CASE("integers that may wrap do") {
  rejects(elementwise("i64", "i64", "i64(i32(X[i]))"), elementwise("i64", "i64", "X[i]"));
  rejects(elementwise("i32", "i64", "i64(X[i] + Z[i])"),
          elementwise("i32", "i64", "i64(X[i]) + i64(Z[i])"));
  rejects(elementwise("i64", "f32", "f32(X[i]*Z[i])"),
          elementwise("i64", "f32", "f32(X[i])*f32(Z[i])"));
  accepts(elementwise("i32", "i32", "(X[i] + Z[i])*Z[i]"),
          elementwise("i32", "i32", "X[i]*Z[i] + Z[i]*Z[i]"));
}

TEST_CASE("what a bound over integers cannot cover is said") {
  const auto says = [](const std::string& program, bool orders) {
    const FpvVerdict verdict = check(program, program);
    INFO(program << "\n" << to_string(verdict));
    CHECK(verdict.ok());
    CHECK(verdict.assumes.orders == orders);
    CHECK(verdict.tests >= (orders ? 16 : 1));
  };
  // Others are the same but for few values of the input, or for half of them.
  says(elementwise("u8", "i32", "i32(bool(X[i]))", 1), true);
  says(elementwise("i8", "i32", "i32(abs(X[i]))", 1), true);
  says(elementwise("i8", "i32", "i32(u8(X[i]))", 1), true);
  says(elementwise("u8", "u8", "X[i]*128u8", 1), true);
  says(elementwise("u8", "u8", "X[i] - Z[i]", 1), true);
  says(elementwise("u8", "i32", "i32(X[i])*i32(Z[i])", 1), false);
  // Sums of 64 products fit, however many there are; of 2^18 they do not.
  const auto product = [](const std::string& m, const std::string& k, const std::string& n) {
    return "program p(A: i8[" + m + ", " + k + "], B: i8[" + k + ", " + n + "]) -> (C: i32[" + m +
           ", " + n + "]) { for i in " + m + " { for j in " + n + " { C[i, j] = 0i32 for k in " +
           k + " { C[i, j] = C[i, j] + i32(A[i, k])*i32(B[k, j]) } } } }";
  };
  says(product("64", "64", "64"), false);
  says(product("1", "262144", "1"), true);
  // What grows is hidden for a while by what B held before.
  says(
      "program p(X: i8[40]) -> (Y: i32[40]) { buffer B: i64[40] global buffer R: i64[1] global "
      "for j in 40 { B[j] = i64(X[j])*i64(X[j])*i64(X[j])*i64(X[j]) } R[0] = i64(X[0]) "
      "for i in 40 { R[0] = R[0] + R[0] B[i] = B[i] + B[i] B[i] = R[0] } "
      "for j in 40 { Y[j] = i32(B[j]) } }",
      true);
  // Rows that fit stay as they are beside a sum that grows.
  says(
      "program p(X: i8[64], Z: i32[64]) -> (Y: i32[64], R: i64[1]) { R[0] = 0i64 for i in 64 { "
      "Y[i] = 0i32 "
      "for k in 64 { Y[i] = Y[i] + i32(X[k])*i32(X[i]) } R[0] = R[0] + i64(Z[i]) } }",
      false);
  says(
      "program p(X: f32[1], M: u8[1]) -> (Y: f32[1]) { for i in 1 { Y[i] = X[i] if M[0] == 77u8 { "
      "Y[i] = 0f32 } } }",
      true);
  // Two of these are equal for one input of 256.
  says(elementwise("i8", "f32", "f32(f16(f32(X[i])*0.5f32))", 1), true);
  rejects(elementwise("i8", "f32", "f32(f16(f32(X[i])*0.5f32))", 1),
          elementwise("i8", "f32", "f32(f16(f32(Z[i])*0.5f32))", 1));
  says(elementwise("u8", "f32", "exp(f32(X[i]))", 1), true);
  says(elementwise("i8", "f32", "f32(X[i])*0.5f32", 1), false);
  // Sums of products of bytes stay far below where they wrap.
  says(
      "program p(A: u8[40], B: i8[40]) -> (C: i32[1]) { C[0] = 0i32 for k in 40 { C[0] = C[0] + "
      "i32(A[k])*i32(B[k]) } }",
      false);
  // An integer of 8 bits that is made of floats is one of 256.
  const std::string narrow = elementwise("f32", "u8", "u8(X[i])", 1);
  CHECK(check(narrow, narrow).tests >= 3);
}

TEST_CASE("a degree without a bound gives no verdict") {
  const std::string squares =
      "program p(A: f32[1]) -> (C: f32[1]) { C[0] = A[0] for k in 16 { C[0] = C[0]*C[0] } }";
  const FpvVerdict verdict = check(squares, squares);
  CHECK(to_string(verdict) == "unsupported: a degree without a bound");
}

TEST_CASE("roundings of many elements, and many of one, have a bound") {
  const auto rounds = [](int num, int rows) {
    const std::string n = std::to_string(num);
    const std::string m = std::to_string(rows);
    return "program p(A: f32[" + m + ", " + n + "]) -> (C: f32[" + m + "]) { for i in " + m +
           " { C[i] = 0f32 for k in " + n + " { C[i] = C[i] + f32(bf16(exp(A[i, k]))) } } }";
  };
  accepts(rounds(1000, 1), rounds(1000, 1));
  // Modulo one pair of primes some two of these would be equal.
  accepts(rounds(65536, 1), rounds(65536, 1));
  // Those of other elements do not count.
  accepts(rounds(64, 1024), rounds(64, 1024));
  std::string other = rounds(64, 1024);
  rejects(rounds(64, 1024),
          other.replace(other.find("A[i, k]"), 7, "A[i, select(i == 999, 0, k)]"));
}

TEST_CASE("a degree as large as the primes gives no verdict") {
  std::string text = "C[0] = exp(A[0])";
  for (int i = 0; i < 30; ++i) text += " C[0] = C[0]*C[0]";
  const std::string power = "program p(A: f32[1]) -> (C: f32[1]) { " + text + " }";
  CHECK(to_string(check(power, power)) == "unsupported: no bound below one half");
}

// Weights that are rounded, by their sum, in `tiles` of `n` each but the last; `factor` is what a weight is multiplied with.
std::string weighted(int tiles, int n, const std::string& factor) {
  const std::string at = "t*" + std::to_string(n) + " + k";
  const std::string weight = "f32(f16(exp(A[i, " + at + "] - m[i])))";
  const auto each = [&](const std::string& body) {
    return "for t in " + std::to_string(tiles) + " { for k in " + std::to_string(n) + " { if " +
           at + " < 20000 { " + body + " } } }\n";
  };
  return "program p(A: f32[3, 20000], V: f32[3, 20000]) -> (C: f32[3]) { buffer m: f32[3] global "
         "buffer N: f32[3] global buffer L: f32[3] global\n"
         "for i in 3 { m[i] = f32.ninf N[i] = 0f32 L[i] = 0f32\n" +
         each("m[i] = max(m[i], A[i, " + at + "])") + each("L[i] = L[i] + " + weight) +
         each("N[i] = N[i] + " + weight + "*V[i, " + factor + "]") +
         "}\nfor j in 3 { C[j] = N[j]/L[j] } }";
}

TEST_CASE("where one pair of primes is too small, two tell programs apart in any order") {
  // In lanes, under masks and one by one.
  const std::string spec = weighted(1, 20000, "k");
  accepts(spec, weighted(417, 48, "t*48 + k"));
  accepts(spec, weighted(20000, 1, "t + k"));
  rejects(spec, weighted(417, 48, "select(t == 400, 0, t*48 + k)"));
}

TEST_CASE("a rounding of what has many factors does not count for those of few") {
  const std::string row =
      "program p(A: f32[1024], V: f32[1024]) -> (O: f32[1]) { buffer P: f32[1024] global buffer L: "
      "f32[1] global "
      "buffer S_: f32[1] global for s in 1024 { P[s] = f32(f16(exp(A[s]))) } L[0] = 0f32 S_[0] = "
      "0f32 "
      "for t in 1024 { L[0] = L[0] + P[t] S_[0] = S_[0] + P[t]*V[t] } O[0] = f32(f16(S_[0]/L[0])) "
      "}";
  const FpvVerdict verdict = check(row, row, -64);
  INFO(to_string(verdict));
  CHECK(verdict.log2_error <= -64);
  CHECK(verdict.tests <= 16);
}

TEST_CASE("coefficients that a counter divides have a bound") {
  const auto mean = [](const std::string& step) {
    return "program p(X: f32[300]) -> (M: f32[1]) { buffer N: f32[1] global M[0] = 0f32 N[0] = "
           "0f32 for k in 300 { "
           "M[0] = M[0] + (X[k] - M[0])" +
           step + " N[0] = N[0] + 1f32 } }";
  };
  accepts(mean("/(N[0] + 1f32)"), mean("*(1f32/(1f32 + N[0]))"));
  rejects(mean("/(N[0] + 1f32)"), mean("/(N[0] + 2f32)"));
}

TEST_CASE("what an iteration has for itself does not grow with the iterations") {
  const std::string spec =
      "program p(X: f32[40, 12]) -> (Y: f32[40]) { for i in 40 { Y[i] = 1f32 for k in 12 { Y[i] = "
      "Y[i]*X[i, k] } } }";
  const std::string parts = R"(program p(X: f32[40, 12]) -> (Y: f32[40]) {
  buffer T: f32[4] global
  for i in 40 {
    for a in 4 { for k in 3 { block "T" [va: S(4) = a, vi: S(40) = i, vk: R(3) = k] {
      init { T[va] = 1f32 } T[va] = T[va]*X[vi, vk*4 + va] } } }
    for b in 4 { block "Y" [wi: S(40) = i, wa: R(4) = b] {
      init { Y[wi] = 1f32 } Y[wi] = Y[wi]*T[wa] } } } })";
  accepts(spec, parts);
  CHECK(check(spec, parts).tests == 1);
}

TEST_CASE("loops in loops end the search for a bound") {
  std::string text = "C[0] = C[0] + A[0]";
  for (int i = 0; i < 40; ++i) text = "for k" + std::to_string(i) + " in 2 { " + text + " }";
  const Program program =
      parse_or_die("program p(A: f32[1]) -> (C: f32[1]) { C[0] = 0f32 " + text + " }");
  FpvOptions options;
  options.max_steps = 100'000;
  const FpvVerdict verdict = check_equivalent(program, program, options);
  CHECK(verdict.kind == VerdictKind::kUnsupported);
  CHECK(verdict.text == "loops too deep for a bound");
}

TEST_CASE("a program does not choose the primes that it is tried with") {
  // Those of the seed alone, which anybody knows.
  const FpWorld world(Rng(FpvOptions{}.seed, 0, 0).next(), {}, OrderModel::kSets);
  const std::string vanishes =
      std::to_string(world.p().m) + "f64*" + std::to_string(world.q().m) + "f64";
  rejects(elementwise("f64", "f64", "X[i]"), elementwise("f64", "f64", "X[i] + Z[i]*" + vanishes));
}

TEST_CASE("roundings to narrower floats may be ignored, and that is said") {
  const auto check_ignoring = [](const std::string& spec, const std::string& candidate) {
    FpvOptions options;
    options.roundings = Roundings::kIgnored;
    return check_equivalent(parse_or_die(spec), parse_or_die(candidate), options);
  };
  const std::string spec = elementwise("f32", "f32", "f32(f16(exp(X[i] - Z[i])))*3f32");
  const std::string moved = elementwise("f32", "f32", "f32(f16(exp(X[i])))*exp(0f32 - Z[i])*3f32");
  rejects(spec, moved);
  const FpvVerdict verdict = check_ignoring(spec, moved);
  INFO(to_string(verdict));
  CHECK(verdict.ok());
  CHECK(verdict.log2_error <= -20);
  CHECK(verdict.assumes.roundings);
  CHECK(to_string(verdict).find("but for roundings to narrower floats") != std::string::npos);
  // All else counts as before.
  for (const char* wrong : {"f32(f16(exp(X[i])))*3f32", "f32(f16(exp(X[i])))*exp(Z[i])*3f32",
                            "f32(f16(exp(X[i] - Z[i])))*2f32", "f32(i8(exp(X[i] - Z[i])))*3f32"}) {
    CAPTURE(wrong);
    CHECK(check_ignoring(spec, elementwise("f32", "f32", wrong)).kind == VerdictKind::kNotEqual);
  }
  // What is not seen: a rounding that is lost, added, or to another type.
  for (const char* other : {"exp(X[i] - Z[i])*3f32", "f32(bf16(exp(X[i] - Z[i])))*3f32",
                            "f32(f16(f32(f16(exp(X[i] - Z[i])))*3f32))"}) {
    CAPTURE(other);
    rejects(spec, elementwise("f32", "f32", other));
    const FpvVerdict hidden = check_ignoring(spec, elementwise("f32", "f32", other));
    CHECK(hidden.ok());
    CHECK(hidden.assumes.roundings);
  }
  CHECK_FALSE(check_ignoring(kMatmul, kMatmul).assumes.roundings);
  CHECK_FALSE(check(spec, spec).assumes.roundings);
}

TEST_CASE("the wanted bound is reached with more tests") {
  const FpvVerdict one = check(kMatmul, kMatmul, -20);
  const FpvVerdict two = check(kMatmul, kMatmul, -64);
  CHECK(one.log2_error <= -20);
  CHECK(two.log2_error <= -64);
  CHECK(one.tests < two.tests);
  CHECK(one.assumes.none());
}

TEST_CASE("what is not supported is never called equal") {
  const std::string spec =
      "program p(A: f32[8]) -> (C: f32[8]) { for i in 8 { C[i] = A[i]/(A[i] - A[i]) } }";
  CHECK(check(spec, spec).kind == VerdictKind::kUnsupported);
  const std::string infinite =
      "program p(A: f32[8]) -> (C: f32[8]) { for i in 8 { C[i] = A[i]*f32.inf } }";
  CHECK(check(infinite, infinite).kind == VerdictKind::kUnsupported);
  FpvOptions few;
  few.max_steps = 10;
  const Program program = parse_or_die(kMatmul);
  CHECK(check_equivalent(program, program, few).kind == VerdictKind::kUnsupported);
  FpvOptions small;
  small.max_elements = 10;
  CHECK(check_equivalent(program, program, small).kind == VerdictKind::kUnsupported);
}

TEST_CASE("a program beside itself, which is run once, has the verdict of two that are alike") {
  const char* const texts[] = {
      "program p(A: f32[8]) -> (C: f32[8]) { for i in 8 { C[i] = f32(f16(exp(A[i])/A[7 - i])) } }",
      "program p(A: f32[8]) -> (C: f32[8]) { for i in 7 { C[i] = A[i] } }",
      "program p(A: f32[8]) -> (C: f32[8]) { for i in 8 { C[i] = A[i]*f32.inf } }"};
  for (const char* text : texts) {
    const Program one = parse_or_die(text);
    const Program other = parse_or_die(text);
    INFO(text);
    CHECK(to_string(check_equivalent(one, one)) == to_string(check_equivalent(one, other)));
  }
}

TEST_CASE("nothing is equal to a reference that is itself invalid") {
  const std::string good = "program p(A: f32[8]) -> (C: f32[8]) { for i in 8 { C[i] = A[i] } }";
  for (const char* body : {"for i in 7 { C[i] = A[i] }", "for i in 8 { C[i] = A[i + 1] }"}) {
    const std::string bad = std::string("program p(A: f32[8]) -> (C: f32[8]) { ") + body + " }";
    CHECK(check(bad, good).kind == VerdictKind::kSpecInvalid);
    CHECK(check(bad, bad).kind == VerdictKind::kSpecInvalid);
    CHECK(check(good, bad).kind == VerdictKind::kInvalid);
  }
  CHECK(to_string(check("program p(A: f32[8]) -> (C: f32[8]) { for i in 7 { C[i] = A[i] } }",
                        good)) == "reference invalid: output element C[7] is never written");
}

}  // namespace
}  // namespace prunerc::ir

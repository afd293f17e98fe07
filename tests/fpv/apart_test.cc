// Loops whose iterations have elements of their own: what is claimed holds where all addresses are written down.
#include "ir/fpv/apart.h"

#include "ir/int_math.h"
#include "ir/parser.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace prunerc::ir {
namespace {

using namespace testing;  // NOLINT: a test

/// All addresses of a small program, iteration by iteration, as if every statement ran.
class Listing {
 public:
  using Touched = std::map<int32_t, std::set<int64_t>>;  // by buffer

  explicit Listing(const FpCode& code)
      : code_(code), claimed_(find_apart(code)), vars_(code.slots.size()) {}

  void run() { stmt(code_.root); }
  int num_claims = 0;
  std::string wrong;

 private:
  // Data counts as 0: what is claimed must hold whatever it is.
  int64_t value(int32_t e) {
    const FpExpr& n = code_.exprs[static_cast<std::size_t>(e)];
    switch (n.op) {
      case FpOp::kConstI: return n.value;
      case FpOp::kAffine: return value(code_.affines[static_cast<std::size_t>(n.a)]);
      case FpOp::kMulI: return wrapping_mul(value(n.a), value(n.b));
      case FpOp::kFloorDiv: return floor_div(value(n.a), std::max<int64_t>(1, value(n.b)));
      case FpOp::kFloorMod: return floor_mod(value(n.a), std::max<int64_t>(1, value(n.b)));
      case FpOp::kMinI: return std::min(value(n.a), value(n.b));
      case FpOp::kMaxI: return std::max(value(n.a), value(n.b));
      default: return 0;
    }
  }
  int64_t value(const FpAffine& a) {
    int64_t out = a.constant;
    for (const FpAffine::Term& t : a.terms) {
      const int32_t node = code_.slots[static_cast<std::size_t>(t.of)].node;
      const int64_t x = node < 0 ? vars_[static_cast<std::size_t>(t.of)] : value(node);
      out = wrapping_add(out, wrapping_mul(t.coefficient, x));
    }
    for (const FpAffine::Term& t : a.varying) {
      out = wrapping_add(out, wrapping_mul(t.coefficient, value(t.of)));
    }
    return out;
  }

  void note(int32_t access, Touched* out) {
    const FpAccess& a = code_.accesses[static_cast<std::size_t>(access)];
    (*out)[a.buffer].insert(value(a.flat));
    loads(a.flat, out);
  }
  void loads(const FpAffine& a, Touched* out) {
    for (const FpAffine::Term& t : a.varying) loads(t.of, out);
    for (const FpAffine::Term& t : a.terms)
      loads(code_.slots[static_cast<std::size_t>(t.of)].node, out);
  }
  void loads(int32_t e, Touched* out) {
    if (e < 0) return;
    const FpExpr& n = code_.exprs[static_cast<std::size_t>(e)];
    if (n.op == FpOp::kLoadI || n.op == FpOp::kLoadF) return note(n.a, out);
    if (n.op == FpOp::kConstI || n.op == FpOp::kConstF) return;
    if (n.op == FpOp::kAffine) return loads(code_.affines[static_cast<std::size_t>(n.a)], out);
    for (const int32_t operand : {n.a, n.b, n.c}) loads(operand, out);
  }

  Touched stmt(int32_t index) {
    Touched out;
    if (index < 0) return out;
    const FpStmt& s = code_.stmts[static_cast<std::size_t>(index)];
    const auto add = [&](const Touched& more) {
      for (const auto& [buffer, places] : more) out[buffer].insert(places.begin(), places.end());
    };
    if (s.kind == FpStmtKind::kForget) return out;
    if (s.kind == FpStmtKind::kSeq) {
      for (int32_t i = 0; i < s.count; ++i)
        add(stmt(code_.children[static_cast<std::size_t>(s.first + i)]));
      return out;
    }
    loads(s.expr, &out);
    if (s.kind == FpStmtKind::kStore) note(s.slot, &out);
    if (s.kind != FpStmtKind::kLoop && s.kind != FpStmtKind::kLanes) {
      add(stmt(s.other));
      add(stmt(s.body));
      return out;
    }
    std::vector<Touched> iterations;
    for (int64_t i = 0; i < value(s.expr); ++i) {
      vars_[static_cast<std::size_t>(s.slot)] = i;
      iterations.push_back(stmt(s.body));
      add(iterations.back());
    }
    compare(index, iterations);
    return out;
  }

  void compare(int32_t index, std::vector<Touched>& iterations) {
    for (const int32_t buffer : claimed_[static_cast<std::size_t>(index)]) {
      std::set<int64_t> all;
      std::size_t sum = 0;
      for (Touched& touched : iterations) {
        all.insert(touched[buffer].begin(), touched[buffer].end());
        sum += touched[buffer].size();
      }
      ++num_claims;
      if (all.size() != sum) wrong = code_.buffers[static_cast<std::size_t>(buffer)].name;
    }
  }

  const FpCode& code_;
  const std::vector<std::vector<int32_t>> claimed_;
  std::vector<int64_t> vars_;
};

FpCode code_of(const Program& program) { return compile_fp(program, {}, 1 << 20).value(); }

// The buffers of which the only loop without a loop in it, or the outermost one, is said to have elements of its own.
std::string claims(const std::string& text, bool outermost) {
  const FpCode code = code_of(*parse(text));
  const std::vector<std::vector<int32_t>> found = find_apart(code);
  std::string out;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const FpStmtKind wanted = outermost ? FpStmtKind::kLoop : FpStmtKind::kLanes;
    if (code.stmts[i].kind != wanted) continue;
    for (const int32_t buffer : found[i])
      out += code.buffers[static_cast<std::size_t>(buffer)].name;
  }
  return out;
}

std::string pair(const std::string& body) {
  return "program p(X: f32[64], N: i64[64]) -> (Y: f32[64]) { for i in 4 { for j in 8 { " + body +
         " } } }";
}

TEST_CASE("iterations have elements of their own where their digit is no other's") {
  CHECK(claims(pair("Y[8*i + j] = X[j]"), true) == "Y");
  CHECK(claims(pair("Y[8*i + j] = X[j]"), false) == "XY");
  CHECK(claims(pair("Y[4*j + i] = X[32 + 4*j + i]"), true) == "XY");
  CHECK(claims(pair("Y[i*8 + j] = Y[i*8 + 7 - j]"), true) == "Y");
  CHECK(claims(pair("Y[16*i + 2*(j // 4) + j % 4] = X[i]"), true) == "XY");
}

TEST_CASE("quotients and remainders of other variables are digits, too") {
  const auto fused = [](const std::string& place) {
    return "program p(X: f32[64]) -> (Y: f32[64]) { for o in 4 { for i in 2 { for f in 16 { Y[" +
           place + "] = X[f] } } } }";
  };
  const auto loops = [](const std::string& text) {
    const FpCode code = code_of(*parse(text));
    Listing listing(code);
    listing.run();
    CHECK(listing.wrong == "");
    return listing.num_claims;
  };
  // Claims count once for each time that a loop runs: Y in the innermost loop eight times, X as well.
  CHECK(loops(fused("32*(o // 2) + 16*i + 4*(f // 4) + f % 4")) == 4 + 8);
  CHECK(loops(fused("32*(o // 2) + 16*(o % 2) + f")) == 8 + 8);
  CHECK(loops(fused("8*o + 4*i + f % 4")) == 1 + 4 + 8);
  CHECK(loops(fused("8*o + 4*i + f % 5")) == 8);
}

TEST_CASE("nothing is claimed of iterations that may meet") {
  CHECK(claims(pair("Y[i + j] = X[7*i + j]"), true).empty());
  CHECK(claims(pair("Y[8*i + j] = Y[8*i + j + 1] + X[j]"), true).empty());  // the next one's first
  CHECK(claims(pair("Y[8*i + j] = Y[32 - 8*i + j]"), true).empty());
  CHECK(claims(pair("Y[(i // 2)*8 + j] = X[j]"), true).empty());
  CHECK(claims(pair("Y[3*j + i] = X[0]"), true).empty());
  CHECK(claims(pair("Y[8*i + N[j]] = X[N[8*i + j]]"), true).empty());
  CHECK(claims(pair("Y[8*i + N[8*i + j]] = X[j]"), true) == "N");
  CHECK(claims(pair("Y[j] = X[j]"), true).empty());
  CHECK(claims(pair("Y[56 - 8*i + j] = X[j]"), true).empty());  // is true, but not looked for
}

TEST_CASE("nothing is claimed where places begin anew beyond the ends of i64") {
  // 65 * 1135184250689818561 is 1 more than a power of two that is 0: iteration i writes what the next one reads.
  CHECK(claims("program p(X: f32[1]) -> (Y: f32[65]) { for i in 64 { for j in 2 { Y[i + "
               "65*max(1135184250689818561*j, 0)] = Y[i]*X[0] } } }",
               true)
            .empty());
  CHECK(claims("program p(X: f32[1]) -> (Y: f32[65]) { for i in 64 { for j in 65538 { if j == "
               "65537 { Y[i + "
               "281470681808895*j + 2] = Y[i]*X[0] } } } }",
               true)
            .empty());
}

TEST_CASE("blocks whose variables are made of each other's are looked at once") {
  std::string text = "program p(X: f32[1]) -> (Y: f32[4]) { for i in 2 { ", end = "} }";
  std::string last = "i";
  for (int k = 0; k < 40; ++k) {
    const std::string name = "a" + std::to_string(k);
    text += "block \"b" + std::to_string(k) + "\" [" + name +
            ": S(2) = " + (k == 0 ? "i" : last + "*" + last) + "] { ";
    end += " }";
    last = name;
  }
  const FpCode code = code_of(*parse(text + "for j in 2 { Y[2*" + last + " + j] = X[0] } " + end));
  CHECK(find_apart(code).size() == code.stmts.size());
}

TEST_CASE("what is claimed of random programs holds") {
  int claimed = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed, 11);
    GenPolicy policy = random_policy(rng);
    policy.max_elements = 64;
    policy.max_iterations = 512;
    const Program program = random_program(rng, policy);
    const FpCode code = code_of(program);
    Listing listing(code);
    listing.run();
    INFO(seed);
    CHECK(listing.wrong == "");
    claimed += listing.num_claims;
  }
  CHECK(claimed > 1000);
}

}  // namespace
}  // namespace prunerc::ir

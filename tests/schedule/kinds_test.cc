// Declared iteration kinds against what instances touch; primitives that rely on the proof.
#include "ir/map.h"
#include "ir/printer.h"
#include "ir/visit.h"
#include "schedule/legality/iteration_kind.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::testing {
namespace {

using namespace prunerc::ir;  // NOLINT(google-build-using-namespace)
using schedule::check_iteration_kinds;

const Block& block_of(const Program& program) {
  const Block* found = nullptr;
  walk(
      program.root(),
      [&](Stmt s) {
        if (found == nullptr) found = s.as<Block>();
        return found == nullptr;
      },
      [](Expr) {});
  return *found;
}

// One block over i in 8 and j in 6 with these kinds and this body.
std::string nest(const std::string& i_kind, const std::string& j_kind, const std::string& body) {
  return "program p(X: f32[64, 64]) -> (Y: f32[80, 64]) { for i in 8 @L0 { for j in 6 @L1 { block "
         "\"b\" @B0 [v: " +
         i_kind + "(8) = i, w: " + j_kind + "(6) = j] { " + body + " } } } }";
}

Proof kinds(const std::string& text) {
  const Program program = parse_or_die(text);
  return check_iteration_kinds(program, block_of(program)).proof;
}

const std::string kSum = "init { Y[v, 0] = 0f32 } Y[v, 0] = Y[v, 0] + X[v, w]";

TEST_CASE("hole: kinds are never verified against the body") {
  CHECK(kinds(nest("S", "S", "Y[v, w] = X[v, w]")) == Proof::kYes);
  CHECK(kinds(nest("S", "S", "Y[v*6 + w, 0] = X[v, w]")) == Proof::kYes);
  CHECK(kinds(nest("S", "S", "Y[v*5 + w, 0] = X[v, w]")) == Proof::kNo);
  CHECK(kinds(nest("S", "S", "Y[v*5 + w*8, 0] = X[v, w]")) == Proof::kYes);
  CHECK(kinds(nest("S", "S", "Y[v, 0] = X[v, w]")) == Proof::kNo);
  CHECK(kinds(nest("S", "R", "Y[v, 0] = X[v, w]")) == Proof::kUnknown);
  CHECK(kinds(nest("O", "O", "Y[0, 0] = X[v, w]")) == Proof::kYes);
  CHECK(kinds(nest("S", "O", "Y[v, 0] = X[v, w]")) == Proof::kYes);
  CHECK(kinds(nest("S", "R", kSum)) == Proof::kYes);
  CHECK(kinds(nest("R", "S", kSum)) == Proof::kNo);
  CHECK(kinds(nest("S", "S", kSum)) == Proof::kNo);
  CHECK(kinds(nest("S", "R", "Y[v, w] = X[v, w]")) == Proof::kYes);
  CHECK(kinds(nest("S", "R", "init { Y[v, 0] = 0f32 } Y[v, 0] = X[v, w] - Y[v, 0]")) ==
        Proof::kUnknown);
  CHECK(kinds(nest("S", "S", "Y[v, w] = Y[v + 1, w]")) == Proof::kNo);
  CHECK(kinds(nest("S", "S", "Y[v, w] = Y[v + 8, w]")) == Proof::kYes);
  CHECK(kinds(nest("S", "S", "Y[v*2, w] = Y[v*2 + 1, w]")) == Proof::kYes);
  CHECK(kinds(nest("S", "S", "Y[v*v, w] = X[v, w]")) == Proof::kUnknown);
}

TEST_CASE("kinds are false only where instances that run contradict them") {
  const auto guarded = [](const std::string& iters, const std::string& body) {
    return kinds(
        "program p(X: f32[64, 64]) -> (Y: f32[80, 64]) { for i in 8 @L0 { for j in 6 @L1 { "
        "block \"b\" @B0 [" +
        iters + " { " + body + " } } } }");
  };
  const std::string half = "Y[v // 2, w] = X[v, w]";
  CHECK(guarded("v: S(8) = i, w: S(6) = j]", half) == Proof::kNo);
  CHECK(guarded("v: S(8) = i, w: S(6) = j] where i % 2 == 0", half) == Proof::kYes);
  CHECK(guarded("v: S(8) = i, w: S(6) = j] where i % 3 == 0", half) == Proof::kYes);
  CHECK(guarded("v: S(8) = i, w: S(6) = j] where i < 2", half) == Proof::kNo);
  CHECK(guarded("v: S(16) = i*2, w: S(6) = j]", half) == Proof::kYes);
  CHECK(guarded("v: S(16) = i*2, w: S(6) = j]", "Y[v // 4, w] = X[v, w]") == Proof::kNo);
  // Whether data lets two of them meet is not known.
  CHECK(guarded("v: S(8) = i, w: S(6) = j]", "if X[v, w] < 0f32 { Y[v // 2, w] = X[v, w] }") ==
        Proof::kUnknown);
}

TEST_CASE("a program's kinds are listed block by block, and refused where they are false") {
  const auto program = [](const std::string& first, const std::string& second) {
    return parse_or_die(
        "program p(X: f32[8, 8]) -> (Y: f32[8], Z: f32[8]) { for i in 8 @L0 { for j in 8 "
        "@L1 { block \"y\" @B0 [v: S(8) = i, w: " +
        first +
        "(8) = j] { init { Y[v] = 0f32 } Y[v] = Y[v] + X[v, w] } } } for i in 8 @L2 { block "
        "\"z\" @B1 [v: " +
        second + "(8) = i] { Z[v*v // 8] = Y[v] } } }");
  };
  const std::vector<schedule::DoubtfulKinds> found = schedule::doubtful_kinds(program("S", "S"));
  REQUIRE(found.size() == 2);
  CHECK(found[0].block == BlockId(0));
  CHECK(found[0].check.proof == Proof::kNo);
  CHECK(found[1].block == BlockId(1));
  CHECK(found[1].check.proof == Proof::kUnknown);
  CHECK(schedule::doubtful_kinds(program("R", "O")).empty());
  CHECK_DIAG(schedule::verify_iteration_kinds(program("S", "O")), IterationKind);
  REQUIRE_OK(schedule::verify_iteration_kinds(program("R", "S")));
}

TEST_CASE("a reduction that starts twice is refused") {
  const auto sum = [](const std::string& r) {
    return schedule::verify_iteration_kinds(parse_or_die(
        "program p(X: f32[8, 8]) -> (Y: f32[8]) { for o in 2 { for i in 8 { for k in 8 { block "
        "\"y\" [v: S(8) = i, r: R(8) = " +
        r + "] { init { Y[v] = 0f32 } Y[v] = Y[v] + X[v, r] } } } } }"));
  };
  // All of it may be repeated, by the outermost loop.
  REQUIRE_OK(sum("k"));
  REQUIRE_OK(sum("(k + i) % 8"));
  CHECK_DIAG(sum("k // 2"), IterationKind);
  CHECK_DIAG(sum("k*2 % 8"), IterationKind);
}

TEST_CASE("primitives take what is proved element by element") {
  // No slabs, no bijective map: 5 and 8 have no common differences below the extents.
  const std::string interleaved = nest("S", "S", "Y[v*5 + w*8, 0] = X[v, w]");
  const std::string clashing = nest("S", "S", "Y[v*5 + w*7, 0] = X[v, w]");
  const auto whole = [](const std::string& text) {
    // The elements that the block leaves out.
    std::string out = text;
    out.insert(
        out.find("{ for") + 1,
        " for a in 80 @L8 { for c in 64 @L9 { block \"z\" @B9 [p: S(80) = a, q: S(64) = c] { "
        "Y[p, q] = 0f32 } } }");
    return out;
  };
  for (const std::string_view step :
       {"parallel(@L0)", "vectorize(@L1)", "bind(@L0, \"thread.x\")", "reorder([@L1, @L0])"}) {
    check_steps(whole(interleaved), step);
  }
  check_rejected(whole(clashing), "parallel(@L0)", "BlocksDepend");
  check_rejected(whole(nest("S", "S", "Y[v*3 + w*2, 0] = X[v, w]")), "parallel(@L0)",
                 "BlocksDepend");
  check_rejected(whole(nest("S", "S", "Y[v*3 + w*2, 0] = X[v, w]")), "reorder([@L1, @L0])",
                 "BlockOrderFixed");
  check_rejected(whole(nest("S", "S", "Y[v*v % 8, w] = X[v, w]")), "parallel(@L0)", "BlocksDepend");
}

// Elements of the written regions of an instance, if they can be told.
std::optional<std::vector<std::vector<int64_t>>> elements(IrBuilder& b, const Block& block,
                                                          const VarMap& at) {
  std::vector<std::vector<int64_t>> out;
  for (const Access& write : block.writes) {
    std::vector<int64_t> element = {write.buffer.value};
    for (const Range& range : write.region) {
      const IntImm* index = substitute(b, range.min, at).as<IntImm>();
      const IntImm* extent = range.extent.as<IntImm>();
      if (index == nullptr || extent == nullptr || extent->value != 1) return std::nullopt;
      element.push_back(index->value);
    }
    out.push_back(std::move(element));
  }
  return out;
}

// Does some element belong to two spatial positions? Nullopt if that cannot be tried.
std::optional<bool> collides(const Program& program, const Block& block) {
  IrBuilder b(program);
  std::vector<int64_t> extents;
  int64_t count = 1;
  for (const IterVar& iter : block.iters) {
    extents.push_back(iter.extent.as<IntImm>()->value);
    count *= extents.back();
  }
  if (count > 20'000) return std::nullopt;
  std::map<std::vector<int64_t>, std::vector<int64_t>> owner;
  for (int64_t n = 0; n < count; ++n) {
    VarMap at;
    std::vector<int64_t> position;
    int64_t rest = n;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const int64_t value = rest % extents[i];
      rest /= extents[i];
      at[block.iters[i].var->id] = b.int_imm(value);
      if (block.iters[i].kind == IterKind::kSpatial) position.push_back(value);
    }
    const auto touched = elements(b, block, at);
    if (!touched) return std::nullopt;
    for (const std::vector<int64_t>& element : *touched) {
      const auto [entry, is_new] = owner.try_emplace(element, position);
      if (!is_new && entry->second != position) return true;
    }
  }
  return false;
}

TEST_CASE("random blocks: kinds agree with trying all instances") {
  int tried = 0;
  int known = 0;
  for (int n = 0; n < num_cases(150); ++n) {
    Rng rng(first_seed() + static_cast<uint64_t>(n), 9);
    const Program program = random_program(rng, random_policy(rng));
    walk(
        program.root(),
        [&](Stmt s) {
          const Block* block = s.as<Block>();
          if (block == nullptr) return true;
          const std::optional<bool> truth = collides(program, *block);
          const schedule::KindCheck found = check_iteration_kinds(program, *block);
          if (!truth) return true;
          ++tried;
          known += found.proof != Proof::kUnknown ? 1 : 0;
          INFO("case " << n << ": " << found.reason << "\n" << print(program, s));
          if (*truth) CHECK(found.proof != Proof::kYes);
          if (!*truth) {
            CHECK(found.reason != "instances that differ in a spatial variable write one element");
          }
          return true;
        },
        [](Expr) {});
  }
  CHECK(tried > 100);
  CHECK(known * 100 > tried * 85);
}

}  // namespace
}  // namespace prunerc::testing

// Random programs for what bijection_test.cc shows by example: what is accepted is equal in finite
// fields, and enough is accepted.
#include "ir/fpv/fpv.h"
#include "ir/printer.h"
#include "ir/support/rng.h"
#include "schedule/schedule.h"
#include "tests/schedule/apply.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <string>

namespace prunerc::testing {
namespace {

using Text = std::string;

Text num(int64_t value) { return std::to_string(value); }

struct Tried {
  int accepted = 0;
  int refused = 0;
};

// The steps on the program; what they give must be equal to it.
void apply_and_compare(const Text& program, const Text& steps, Tried* tried) {
  INFO(program);
  INFO(steps);
  const ir::Program base = parse_or_die(program);
  schedule::Schedule s(base, schedule::Verify::kEachStep);
  const Result<void> done = apply_steps(s, steps);
  if (!done.ok()) {
    ++tried->refused;
    return;
  }
  ++tried->accepted;
  ir::FpvOptions options;
  options.log2_error = -20;
  const ir::FpvVerdict verdict = ir::check_equivalent(base, s.program(), options);
  INFO(ir::print(s.program()));
  INFO(ir::to_string(verdict));
  CHECK(verdict.ok());
  check_same_result(base, s.program(), 3);
}

// A matrix of `rows` x `columns` by one index, in a random order; sometimes no bijection.
struct Flat {
  int64_t rows, columns;
  Text subscript;  // of vi, vj
};
Flat random_flat(Rng& rng) {
  Flat out{rng.between(1, 6), rng.between(1, 6), {}};
  const Text r = num(out.rows), c = num(out.columns);
  switch (rng.below(6)) {
    case 0: out.subscript = "vi*" + c + " + vj"; break;
    case 1: out.subscript = "vj*" + r + " + vi"; break;
    case 2: out.subscript = num(out.rows * out.columns - 1) + " - vi*" + c + " - vj"; break;
    case 3: out.subscript = "vi + vj"; break;
    case 4: out.subscript = "vi*" + num(out.columns + 1) + " + vj"; break;
    default: out.subscript = "vi*" + c + " + " + num(out.columns - 1) + " - vj"; break;
  }
  return out;
}

TEST_CASE("property: what is inlined through a random map is equal") {
  Rng rng(first_seed(), 1);
  Tried tried;
  for (int i = 0; i < num_cases(); ++i) {
    const Flat map = random_flat(rng);
    const Text r = num(map.rows), c = num(map.columns);
    const int64_t size = map.rows * (map.columns + 1) + map.rows + map.columns;
    const Text program = "program p(X: f32[" + r + ", " + c + "]) -> (Y: f32[" + r + ", " + c +
                         "]) {\n  buffer T: f32[" + num(size) + "] global\n  for i in " + r +
                         " @L0 { for j in " + c + " @L1 { block \"T\" @B0 [vi: S(" + r +
                         ") = i, vj: S(" + c + ") = j] { T[" + map.subscript +
                         "] = X[vi, vj]*2f32 } } }\n  for i in " + r + " @L2 { for j in " + c +
                         " @L3 { block \"Y\" @B1 [vi: S(" + r + ") = i, vj: S(" + c +
                         ") = j] { Y[vi, vj] = T[" + map.subscript + "] + 1f32 } } }\n}";
    if (map.subscript == "vi + vj" && map.rows > 1 && map.columns > 1) {
      // Elements are overwritten: must be refused.
      const int before = tried.accepted;
      apply_and_compare(program, "compute_inline(@B0)", &tried);
      CHECK(tried.accepted == before);
      continue;
    }
    const char* const steps[] = {"compute_inline(@B0)",          "reverse_compute_inline(@B1)",
                                 "compute_at(@B0, @L2)",         "compute_at(@B0, @L3)",
                                 "reverse_compute_at(@B1, @L0)", "reverse_compute_at(@B1, @L1)"};
    apply_and_compare(program, steps[rng.below(6)], &tried);
  }
  CHECK(tried.accepted >= num_cases() / 4);
  CHECK(tried.refused >= num_cases() / 10);
}

TEST_CASE("property: a reader at quotient and remainder moves, or is inlined, to the same values") {
  Rng rng(first_seed(), 2);
  Tried tried;
  for (int i = 0; i < num_cases(); ++i) {
    const int64_t rows = rng.between(2, 6);
    const int64_t columns = rng.between(2, 6);
    const bool transposed = rng.below(2) == 0;
    const int64_t by = rng.below(6) == 0 ? columns + 1 : transposed ? rows : columns;
    const int64_t first = static_cast<int64_t>(rng.below(3));
    const int64_t size = rng.between(1, rows * columns);
    const Text v = first == 0 ? Text("v") : "(v + " + num(first) + ")";
    const Text at = transposed ? v + " % " + num(by) + ", " + v + " // " + num(by)
                               : v + " // " + num(by) + ", " + v + " % " + num(by);
    // A place outside is not read.
    const Text inside = v + " // " + num(by) + " < " + num(transposed ? columns : rows) + " && " +
                        v + " % " + num(by) + " < " + num(transposed ? rows : columns);
    const Text r = num(rows), c = num(columns), n = num(size);
    const Text program = "program p(X: f32[" + r + ", " + c + "]) -> (Z: f32[" + n +
                         "]) {\n  buffer T: f32[" + r + ", " + c + "] global\n  for i in " + r +
                         " @L0 { for j in " + c + " @L1 { block \"T\" @B0 [vi: S(" + r +
                         ") = i, vj: S(" + c +
                         ") = j] { T[vi, vj] = X[vi, vj]*2f32 } } }\n  for k in " + n +
                         " @L2 { block \"Z\" @B1 [v: S(" + n + ") = k] { Z[v] = select(" + inside +
                         ", T[" + at + "], 5f32) + 3f32 } }\n}";
    const Text factor = num(rng.between(1, 4));
    const Text steps[] = {"reverse_compute_inline(@B1)",
                          "reverse_compute_at(@B1, @L0)",
                          "reverse_compute_at(@B1, @L1)",
                          "split(@L0, [-1, " + factor + "])\nreverse_compute_at(@B1, @L3)",
                          "reorder([@L1, @L0])\nreverse_compute_at(@B1, @L1)",
                          "split(@L2, [-1, " + factor + "])\ncompute_at(@B0, @L3)"};
    apply_and_compare(program, steps[rng.below(6)], &tried);
  }
  CHECK(tried.accepted >= num_cases() / 5);
  CHECK(tried.refused >= num_cases() / 20);
}

TEST_CASE("property: parts of a concatenated buffer vanish one by one in any order") {
  Rng rng(first_seed(), 3);
  Tried tried;
  for (int i = 0; i < num_cases(60); ++i) {
    int64_t at = 0;
    Text blocks, params;
    const int64_t parts = rng.between(2, 4);
    for (int64_t p = 0; p < parts; ++p) {
      const int64_t size = rng.between(1, 5);
      const Text n = num(size), id = num(p);
      // Now and then a part begins too early, on elements of the one before.
      const int64_t begin = at - (at > 0 && rng.below(8) == 0 ? 1 : 0);
      params += (p == 0 ? "" : ", ") + Text("A") + id + ": f32[" + n + "]";
      blocks += "  for i in " + n + " @L" + id + " { block \"T" + id + "\" @B" + id + " [v: S(" +
                n + ") = i] { T[v + " + num(begin) + "] = A" + id + "[v]*" + num(p + 2) +
                "f32 } }\n";
      at = begin + size;
    }
    const Text n = num(at);
    const Text last = num(parts);
    const char* const readers[] = {"T[v]", "T[v] + T[0]", "T[v]*T[v // 2]"};
    const Text program = "program p(" + params + ") -> (Y: f32[" + n + "]) {\n  buffer T: f32[" +
                         n + "] global\n" + blocks + "  for i in " + n + " @L" + last +
                         " { block \"Y\" @B" + last + " [v: S(" + n +
                         ") = i] { Y[v] = " + readers[rng.below(3)] + " } }\n}";
    Text steps;
    const int64_t start = static_cast<int64_t>(rng.below(static_cast<uint64_t>(parts)));
    const int64_t count = rng.between(1, parts);
    for (int64_t p = 0; p < count; ++p) {
      steps += "compute_inline(@B" + num((start + p) % parts) + ")\n";
    }
    apply_and_compare(program, steps, &tried);
  }
  CHECK(tried.accepted > 0);
  CHECK(tried.refused > 0);
}

TEST_CASE("property: padding is taken apart under any tiles") {
  Rng rng(first_seed(), 4);
  Tried tried;
  for (int i = 0; i < num_cases(60); ++i) {
    const int64_t rows = rng.between(2, 9), columns = rng.between(2, 9);
    const int64_t top = rng.between(0, 2), left = rng.between(0, 2);
    const Text r = num(rows + top + 1), c = num(columns + left);
    const Text program = "program p(X: f32[" + num(rows) + ", " + num(columns) + "]) -> (Y: f32[" +
                         r + ", " + c + "]) {\n  for i in " + r + " @L0 { for j in " + c +
                         " @L1 { block \"Y\" @B0 [vi: S(" + r + ") = i, vj: S(" + c +
                         ") = j] { Y[vi, vj] = select(" + num(top) + " <= vi && vi < " +
                         num(rows + top) + " && " + num(left) + " <= vj, X[vi - " + num(top) +
                         ", vj - " + num(left) + "], 4f32) } } }\n}";
    const Text tile = "split(@L0, [-1, " + num(rng.between(1, 4)) + "])\nsplit(@L1, [-1, " +
                      num(rng.between(1, 4)) + "])\nreorder([@L2, @L4, @L3, @L5])\n";
    const Text loops[] = {"@L2", "@L4", "@L3", "@L5"};
    apply_and_compare(program, tile + "decompose_padding(@B0, " + loops[rng.below(4)] + ")",
                      &tried);
  }
  CHECK(tried.accepted == num_cases(60));
}

TEST_CASE("property: tiles move to what needs them") {
  Rng rng(first_seed(), 5);
  Tried tried;
  for (int i = 0; i < num_cases(40); ++i) {
    const int64_t tile = rng.between(1, 4), count = rng.between(1, 4);
    const Text n = num(tile * count), t = num(tile);
    const Text program = "program p(X: f32[" + n + "]) -> (Y: f32[" + n + "]) {\n  buffer T: f32[" +
                         n + "] global\n  for o in " + num(count) +
                         " @L0 { block \"T\" @B0 [vo: S(" + num(count) +
                         ") = o] {\n    reads X[vo*" + t + " +: " + t + "]\n    writes T[vo*" + t +
                         " +: " + t + "]\n    for i in " + t + " @L1 { T[vo*" + t +
                         " + i] = X[vo*" + t + " + i]*2f32 } } }\n  for i in " + n +
                         " @L2 { block \"Y\" @B1 [v: S(" + n + ") = i] { Y[v] = T[v] + 1f32 } }\n}";
    const Text steps = "split(@L2, [-1, " + num(rng.between(1, 5)) + "])\n";
    const char* const last[] = {"compute_at(@B0, @L3)", "compute_at(@B0, @L4)",
                                "compute_at(@B0, @L3)\nparallel(@L3)"};
    apply_and_compare(program, steps + last[rng.below(3)], &tried);
  }
  CHECK(tried.refused == 0);
}

}  // namespace
}  // namespace prunerc::testing

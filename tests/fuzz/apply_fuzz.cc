// Bytes as a program text and a schedule of it, apart by a line "%%": every step is refused with a
// message, or leaves a well-formed program that computes what it did before.
#include "ir/analysis/declared.h"
#include "ir/interp/interpreter.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/support/hash.h"
#include "ir/verify.h"
#include "schedule/primitive.h"
#include "schedule/schedule.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace prunerc;            // NOLINT: a program of its own
using namespace prunerc::ir;        // NOLINT: a program of its own
using namespace prunerc::schedule;  // NOLINT: a program of its own

constexpr std::string_view kMark = "\n%%\n";
constexpr int64_t kMaxElements = 1 << 12;
constexpr int64_t kMaxSteps = 20'000;
constexpr std::size_t kMaxInstructions = 12;

constexpr uint64_t kNumPrimitives = 0
#define PRUNERC_PRIMITIVE(name, text, operands, outputs) +1
#include "schedule/primitive.def"
#undef PRUNERC_PRIMITIVE
    ;

[[noreturn]] void fail(const char* what, const std::string& shown) {
  std::fprintf(stderr, "%s\n%s\n", what, shown.c_str());
  std::abort();
}

// Small whole numbers; nullopt if the program is too large to run here.
std::optional<std::vector<Tensor>> inputs_of(const Program& program, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const Buffer& buffer : program.buffers()) {
    int64_t num_elements = 1;
    for (int64_t extent : shape_of(buffer)) {
      if (extent < 1 || extent > kMaxElements / num_elements) return std::nullopt;
      num_elements *= extent;
    }
  }
  Rng rng(seed);
  for (BufferId id : program.params()) {
    const Buffer& buffer = program.buffer(id);
    if (buffer.role != BufferRole::kInput) continue;
    Tensor tensor(buffer.dtype, shape_of(buffer));
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      tensor.set(i, static_cast<double>(rng.between(is_bool(buffer.dtype) ? 0 : -3, 3)));
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

using Outputs = std::vector<Tensor>;

std::optional<Outputs> run(const Program& program, const std::vector<Tensor>& inputs,
                           ParallelOrder order, int64_t max_steps, std::string* problem) {
  InterpretOptions options;
  options.max_steps = max_steps;
  options.max_elements = 4 * kMaxElements;
  options.parallel_order = order;
  Result<Outputs> outputs = interpret(program, inputs, options);
  if (outputs.ok()) return std::move(outputs).value();
  *problem = outputs.error().message();
  return std::nullopt;
}

// Reordered sums of arbitrary programs round differently; a wrong program is wrong by more.
bool differs(const Outputs& a, const Outputs& b) {
  constexpr double kTolerance = 1e-2;
  for (std::size_t t = 0; t < a.size(); ++t) {
    for (int64_t i = 0; i < a[t].num_elements(); ++i) {
      const double x = a[t].get(i);
      const double y = b[t].get(i);
      // Beyond this, or not finite, the order of evaluation alone may decide.
      if (!(std::fabs(x) < 1e6)) return false;
      if (!(std::fabs(x - y) <= kTolerance * (1 + std::fabs(x)))) return true;
    }
  }
  return false;
}

// What a base must be for its schedules to be comparable: it runs, and in any order of its parallel
// iterations to the same end.
std::optional<Outputs> reference(const Program& base, const std::vector<Tensor>& inputs) {
  std::string problem;
  const std::optional<Outputs> forward =
      run(base, inputs, ParallelOrder::kForward, kMaxSteps, &problem);
  const std::optional<Outputs> backward =
      run(base, inputs, ParallelOrder::kBackward, kMaxSteps, &problem);
  if (!forward || !backward || differs(*forward, *backward)) return std::nullopt;
  return forward;
}

void check_same(const Program& base, const Schedule& s) {
  const std::optional<std::vector<Tensor>> inputs = inputs_of(base, 1);
  if (!inputs) return;
  const std::optional<Outputs> expected = reference(base, *inputs);
  if (!expected) return;
  const std::string shown = print(s.trace()) + print(base) + print(s.program());
  for (ParallelOrder order : {ParallelOrder::kForward, ParallelOrder::kBackward}) {
    std::string problem;
    // Guarded tails, halos and copies may repeat work, within reason.
    const std::optional<Outputs> found =
        run(s.program(), *inputs, order, 1000 * kMaxSteps, &problem);
    if (!found) {
      if (problem.find("longer than") != std::string::npos ||
          problem.find("more than") != std::string::npos) {
        return;
      }
      fail(problem.c_str(), shown);
    }
    if (differs(*expected, *found)) fail("another result", shown);
  }
}

void check(const Program& base, const Trace& trace) {
  Schedule s(base, Verify::kEachStep);
  std::size_t decision = 0;
  for (std::size_t i = 0; i < std::min(trace.instructions.size(), kMaxInstructions); ++i) {
    const Instruction& step = trace.instructions[i];
    const Program before = s.program();
    const auto applied = s.apply(step, step.is_sample() ? trace.decisions[decision++] : Decision{});
    if (applied.ok()) continue;
    const std::string_view diag = diag_name(applied.error().id());
    if (diag == "Internal" || diag.substr(0, 6) == "Verify") {
      fail(applied.error().message().c_str(), print(trace) + print(before));
    }
    if (!s.program().is(before)) fail("a refused step changed the program", print(trace));
  }
  check_same(base, s);
}

// Scopes, axes, keys, maps and intrinsics: whatever some primitive takes as a string.
constexpr std::string_view kStrings[] = {
    "local",
    "shared",
    "global",
    "thread.x",
    "thread.y",
    "block.x",
    "vthread.x",
    "note",
    "read",
    "write",
    "(i) -> (i)",
    "(i, j) -> (j, i)",
    "(i, j) -> (i // 4, j, i % 4)",
    "(i, j, k) -> (k, i, j)",
    "(i) -> (i // 2, i % 2)",
    "x86_vpdpbusd_16x4",
};

// One random instruction as text, its operands drawn by the primitive's row.
std::string random_instruction(Rng& rng) {
  const auto kind = static_cast<PrimitiveKind>(rng.below(kNumPrimitives));
  const Primitive& row = primitive(kind);
  std::string out = std::string(row.name) + "(";
  const auto item = [&rng](char type) -> std::string {
    switch (type) {
      case 'L': return "@L" + std::to_string(rng.below(10));
      case 'B': return "@B" + std::to_string(rng.below(4));
      case 'I': return std::to_string(rng.between(-1, rng.chance(0.5) ? 2 : 9));
      default: return "\"" + std::string(kStrings[rng.below(std::size(kStrings))]) + "\"";
    }
  };
  for (std::size_t i = 0; i < row.operands.size(); ++i) {
    if (out.back() != '(') out += ", ";
    if (row.operands[i] != '*') {
      out += item(row.operands[i]);
      continue;
    }
    ++i;
    out += '[';
    const int64_t count = rng.between(1, 3);
    for (int64_t k = 0; k < count; ++k) out += (k > 0 ? ", " : "") + item(row.operands[i]);
    out += ']';
  }
  return out + ")\n";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t mark = text.find(kMark);
  if (mark == std::string_view::npos) return 0;
  const Result<Trace> trace = parse_trace(text.substr(mark + kMark.size()));
  if (!trace.ok() && trace.error().message().empty()) fail("no message", std::string(text));
  const Result<Program> base = parse(text.substr(0, mark));
  if (!trace.ok() || !base.ok() || !base->domain().empty() || !verify(*base).ok()) return 0;
  // What people declare wrongly is refused where programs are loaded.
  if (check_declared_regions(*base) != Proof::kYes) return 0;
  check(*base, *trace);
  return 0;
}

// Weak, since the test of the corpus is linked without libFuzzer.
extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size,
                                                         size_t max_size);

// Half of the time one more instruction, or one less; else whatever bytes libFuzzer likes.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  Rng rng(seed);
  std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t mark = text.find(kMark);
  if (mark == std::string::npos || rng.chance(0.3)) return LLVMFuzzerMutate(data, size, max_size);
  if (rng.chance(0.25)) {
    const std::size_t line = text.find_last_of('\n', text.size() - 2);
    if (line != std::string::npos && line > mark + kMark.size()) text.resize(line + 1);
  } else {
    if (text.back() != '\n') text += '\n';
    text += random_instruction(rng);
  }
  if (text.size() > max_size) return size;
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

// Bytes as program text: never a crash or a hang; what parses prints, parses again to the same
// program, and runs within its budget of steps or says why not.

#include "ir/equal.h"
#include "ir/interp/interpreter.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/target.h"
#include "ir/tile_space.h"
#include "ir/verify.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace prunerc;      // NOLINT: a program of its own
using namespace prunerc::ir;  // NOLINT: a program of its own

void require(bool holds, const char* what, const std::string& shown) {
  if (holds) return;
  std::fprintf(stderr, "%s\n%s\n", what, shown.c_str());
  std::abort();
}

void run(const Program& program) {
  constexpr int64_t kMaxElements = 1 << 16;
  const DomainSpace space(program.domain());
  std::vector<int64_t> params;
  if (space.count() > 0) {
    Rng rng(1);
    params = space.sample(rng);
    require(space.contains(params), "a sample lies outside its space", print(program));
  }
  std::vector<Tensor> inputs;
  for (BufferId id : program.params()) {
    const Buffer& buffer = program.buffer(id);
    if (buffer.role != BufferRole::kInput) continue;
    int64_t num_elements = 1;
    const std::vector<int64_t> shape = shape_of(buffer, params);
    for (int64_t extent : shape) {
      if (extent < 1 || extent > kMaxElements / num_elements) return;
      num_elements *= extent;
    }
    inputs.emplace_back(buffer.dtype, shape);
  }
  InterpretOptions options;
  options.params = params;
  options.max_steps = 2000;
  options.max_elements = kMaxElements;
  const Result<std::vector<Tensor>> outputs = interpret(program, inputs, options);
  if (!outputs.ok()) require(!outputs.error().message().empty(), "no message", print(program));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const Result<Target> target = target_from_string(text); target.ok()) {
    const Result<Target> again = target_from_string(to_string(*target));
    require(again.ok() && *again == *target, "a target changes", std::string(text));
  }
  const Result<Program> program = parse(text);
  if (!program.ok()) {
    require(!program.error().message().empty(), "no message", std::string(text));
    return 0;
  }
  const std::string printed = print(*program);
  const Result<Program> again = parse(printed);
  require(again.ok(), "what was printed does not parse", printed);
  require(print(*again) == printed, "printing changes", printed);
  require(structural_equal(*again, *program), "parsing changes", printed);
  require(fingerprint(*again) == fingerprint(*program), "the fingerprint changes", printed);
  if (verify(*program).ok()) run(*program);
  return 0;
}

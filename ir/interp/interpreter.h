// The reference semantics: runs a program on tensors, slowly and with every check on. The oracle of
// property tests.
#ifndef PRUNERC_IR_INTERP_INTERPRETER_H_
#define PRUNERC_IR_INTERP_INTERPRETER_H_

#include "ir/interp/tensor.h"
#include "ir/program.h"
#include "ir/support/result.h"

#include <cstdint>
#include <span>
#include <vector>

namespace prunerc::ir {

/// In which order loops that are not serial run. A program whose result depends on it has a race.
enum class ParallelOrder : uint8_t { kForward, kBackward };

struct InterpretOptions {
  std::span<const int64_t> params;          // values of the tile parameters, by ParamId
  int64_t max_steps = 1'000'000'000;        // loop iterations, block instances and stores together
  int64_t max_elements = int64_t{1} << 27;  // of all buffers together
  ParallelOrder parallel_order = ParallelOrder::kForward;
};

/// Runs `program` (which has passed verify) on `inputs`, in declared order; gives the outputs in
/// declared order. Every operation is rounded to its type; integers wrap; loops of every kind run
/// one iteration after the other. Errors: InterpInput, InterpParams, InterpTooLarge,
/// InterpOutOfBounds, InterpUninitialised, InterpUnwrittenOutput, InterpDivisionByZero,
/// InterpIterRange, InterpStepBudget.
Result<std::vector<Tensor>> interpret(const Program& program, std::span<const Tensor> inputs,
                                      const InterpretOptions& options = {});

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_INTERP_INTERPRETER_H_

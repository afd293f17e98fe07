#include "ir/interp/interpreter.h"

#include "ir/interp/code.h"
#include "ir/interp/evaluate.h"
#include "ir/interp/storage.h"

#include <cmath>
#include <optional>
#include <utility>

namespace prunerc::ir {
namespace {

// Runs compiled code. The first failure is kept and stops every loop; values computed after it do
// not matter.
class Machine {
 public:
  Machine(const Code& code, const InterpretOptions& options)
      : code_(code), options_(options), vars_(code.slot_names.size(), 0) {}

  Result<void> set_inputs(std::span<const Tensor> inputs, std::span<const BufferId> params);
  Result<std::vector<Tensor>> run(std::span<const BufferId> params);

 private:
  struct Memory {
    Tensor tensor;
    std::vector<uint8_t> written;  // one per element
  };

  int64_t eval_int(int32_t e);
  double eval_float(int32_t e);
  int64_t position(int32_t access);
  int64_t load_position(int32_t access);
  void exec(int32_t s);
  void exec_loop(const CodeStmt& s);
  void exec_block(const CodeStmt& s);
  void exec_store(const CodeStmt& s);
  int64_t divide(Op op, DType dtype, int64_t a, int64_t b);
  bool step() {
    if (failure_.has_value()) return false;
    if (++steps_ <= options_.max_steps) return true;
    fail(error(Diag::kInterpStepBudget, options_.max_steps));
    return false;
  }
  void fail(Error e) {
    if (!failure_.has_value()) failure_ = std::move(e);
  }

  const Code& code_;
  const InterpretOptions& options_;
  std::vector<int64_t> vars_;
  std::vector<Memory> memory_;
  int64_t steps_ = 0;
  std::optional<Error> failure_;
};

std::string describe(DType dtype, const std::vector<int64_t>& shape) {
  std::string text(to_string(dtype));
  text += "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

Result<void> Machine::set_inputs(std::span<const Tensor> inputs, std::span<const BufferId> params) {
  for (const CodeBuffer& buffer : code_.buffers) {
    Memory memory;
    if (buffer.role != BufferRole::kInput) memory.tensor = Tensor(buffer.dtype, buffer.shape);
    const bool is_input = buffer.role == BufferRole::kInput;
    memory.written.assign(static_cast<std::size_t>(buffer.num_elements), is_input ? 1 : 0);
    memory_.push_back(std::move(memory));
  }
  std::size_t next = 0;
  for (BufferId id : params) {
    const CodeBuffer& buffer = code_.buffers[static_cast<std::size_t>(id.value)];
    if (buffer.role != BufferRole::kInput) continue;
    const std::string wanted = describe(buffer.dtype, buffer.shape);
    if (next >= inputs.size()) {
      return error(Diag::kInterpInput, buffer.name, wanted, std::string("nothing"));
    }
    const Tensor& given = inputs[next++];
    if (given.dtype != buffer.dtype || given.shape != buffer.shape) {
      return error(Diag::kInterpInput, buffer.name, wanted, describe(given.dtype, given.shape));
    }
    memory_[static_cast<std::size_t>(id.value)].tensor = given;
  }
  if (next != inputs.size()) {
    return error(Diag::kInterpInput, static_cast<int64_t>(next), std::string("no tensor"),
                 std::string("one"));
  }
  return {};
}

int64_t Machine::position(int32_t access) {
  const CodeAccess& a = code_.accesses[static_cast<std::size_t>(access)];
  const CodeBuffer& buffer = code_.buffers[static_cast<std::size_t>(a.buffer)];
  int64_t flat = 0;
  for (int32_t d = 0; d < a.rank; ++d) {
    const int64_t index = eval_int(code_.index_exprs[static_cast<std::size_t>(a.first + d)]);
    const int64_t extent = buffer.shape[static_cast<std::size_t>(d)];
    if (index < 0 || index >= extent) {
      fail(error(Diag::kInterpOutOfBounds, index, static_cast<int64_t>(d), buffer.name));
      return -1;
    }
    flat = flat * extent + index;
  }
  return flat;
}

// -1 after a failure.
int64_t Machine::load_position(int32_t access) {
  const int64_t flat = position(access);
  if (flat < 0) return -1;
  const int32_t buffer = code_.accesses[static_cast<std::size_t>(access)].buffer;
  if (memory_[static_cast<std::size_t>(buffer)].written[static_cast<std::size_t>(flat)] == 0) {
    fail(error(Diag::kInterpUninitialised, code_.buffers[static_cast<std::size_t>(buffer)].name,
               flat));
    return -1;
  }
  return flat;
}

int64_t Machine::divide(Op op, DType dtype, int64_t a, int64_t b) {
  if (b == 0) {
    fail(error(Diag::kInterpDivisionByZero));
    return 0;
  }
  return op == Op::kFloorDiv ? wrap_int(dtype, floor_div(a, b)) : floor_mod(a, b);
}

int64_t Machine::eval_int(int32_t e) {
  const CodeExpr& n = code_.exprs[static_cast<std::size_t>(e)];
  switch (n.op) {
    case Op::kConstI: return n.value;
    case Op::kVar: return vars_[static_cast<std::size_t>(n.a)];
    case Op::kAddI: return wrap_int(n.dtype, wrapping_add(eval_int(n.a), eval_int(n.b)));
    case Op::kSubI: return wrap_int(n.dtype, wrapping_sub(eval_int(n.a), eval_int(n.b)));
    case Op::kMulI: return wrap_int(n.dtype, wrapping_mul(eval_int(n.a), eval_int(n.b)));
    case Op::kFloorDiv:
    case Op::kFloorMod: return divide(n.op, n.dtype, eval_int(n.a), eval_int(n.b));
    case Op::kMinI: return std::min(eval_int(n.a), eval_int(n.b));
    case Op::kMaxI: return std::max(eval_int(n.a), eval_int(n.b));
    case Op::kEqI: return eval_int(n.a) == eval_int(n.b);
    case Op::kNeI: return eval_int(n.a) != eval_int(n.b);
    case Op::kLtI: return eval_int(n.a) < eval_int(n.b);
    case Op::kLeI: return eval_int(n.a) <= eval_int(n.b);
    case Op::kEqF: return eval_float(n.a) == eval_float(n.b);
    case Op::kNeF: return eval_float(n.a) != eval_float(n.b);
    case Op::kLtF: return eval_float(n.a) < eval_float(n.b);
    case Op::kLeF: return eval_float(n.a) <= eval_float(n.b);
    case Op::kAnd: return eval_int(n.a) != 0 && eval_int(n.b) != 0;
    case Op::kOr: return eval_int(n.a) != 0 || eval_int(n.b) != 0;
    case Op::kNot: return eval_int(n.a) == 0;
    case Op::kSelectI: return eval_int(n.a) != 0 ? eval_int(n.b) : eval_int(n.c);
    case Op::kWrap: return wrap_int(n.dtype, eval_int(n.a));
    case Op::kToBool: return eval_int(n.a) != 0;
    case Op::kSaturate: return saturate_to(n.dtype, eval_float(n.a));
    case Op::kTruth: return eval_float(n.a) != 0;
    case Op::kAbsI: {
      const int64_t value = eval_int(n.a);
      return value < 0 ? wrap_int(n.dtype, wrapping_sub(0, value)) : value;
    }
    case Op::kLoadI: {
      const int64_t flat = load_position(n.a);
      if (flat < 0) return 0;
      const int32_t buffer = code_.accesses[static_cast<std::size_t>(n.a)].buffer;
      const Tensor& tensor = memory_[static_cast<std::size_t>(buffer)].tensor;
      return load_int(tensor.data.data(), tensor.dtype, flat);
    }
    case Op::kConstF:
    case Op::kAddF:
    case Op::kSubF:
    case Op::kMulF:
    case Op::kDivF:
    case Op::kMinF:
    case Op::kMaxF:
    case Op::kSelectF:
    case Op::kRoundI:
    case Op::kRoundF:
    case Op::kLoadF:
    case Op::kCallF: break;
  }
  PRUNERC_UNREACHABLE("a float where an integer is wanted");
}

double Machine::eval_float(int32_t e) {
  const CodeExpr& n = code_.exprs[static_cast<std::size_t>(e)];
  switch (n.op) {
    case Op::kConstF: return n.real;
    case Op::kAddF: return round_float(n.dtype, eval_float(n.a) + eval_float(n.b));
    case Op::kSubF: return round_float(n.dtype, eval_float(n.a) - eval_float(n.b));
    case Op::kMulF: return round_float(n.dtype, eval_float(n.a) * eval_float(n.b));
    case Op::kDivF: return round_float(n.dtype, eval_float(n.a) / eval_float(n.b));
    case Op::kMinF: return min_float(eval_float(n.a), eval_float(n.b));
    case Op::kMaxF: return max_float(eval_float(n.a), eval_float(n.b));
    case Op::kSelectF: return eval_int(n.a) != 0 ? eval_float(n.b) : eval_float(n.c);
    case Op::kRoundI: return float_of(n.dtype, eval_int(n.a));
    case Op::kRoundF: return round_float(n.dtype, eval_float(n.a));
    case Op::kCallF: {
      const double x = eval_float(n.a);
      const double y = n.b >= 0 ? eval_float(n.b) : 0;
      const double z = n.c >= 0 ? eval_float(n.c) : 0;
      return call_float(n.intrinsic, n.dtype, x, y, z);
    }
    case Op::kLoadF: {
      const int64_t flat = load_position(n.a);
      if (flat < 0) return 0;
      const int32_t buffer = code_.accesses[static_cast<std::size_t>(n.a)].buffer;
      const Tensor& tensor = memory_[static_cast<std::size_t>(buffer)].tensor;
      return load_float(tensor.data.data(), tensor.dtype, flat);
    }
    case Op::kConstI:
    case Op::kVar:
    case Op::kAddI:
    case Op::kSubI:
    case Op::kMulI:
    case Op::kFloorDiv:
    case Op::kFloorMod:
    case Op::kMinI:
    case Op::kMaxI:
    case Op::kEqI:
    case Op::kNeI:
    case Op::kLtI:
    case Op::kLeI:
    case Op::kEqF:
    case Op::kNeF:
    case Op::kLtF:
    case Op::kLeF:
    case Op::kAnd:
    case Op::kOr:
    case Op::kNot:
    case Op::kSelectI:
    case Op::kWrap:
    case Op::kToBool:
    case Op::kSaturate:
    case Op::kTruth:
    case Op::kLoadI:
    case Op::kAbsI: break;
  }
  PRUNERC_UNREACHABLE("an integer where a float is wanted");
}

void Machine::exec_loop(const CodeStmt& s) {
  const int64_t extent = eval_int(s.expr);
  const bool backward = !s.is_serial && options_.parallel_order == ParallelOrder::kBackward;
  int64_t& var = vars_[static_cast<std::size_t>(s.slot)];
  for (int64_t i = 0; i < extent && step(); ++i) {
    var = backward ? extent - 1 - i : i;
    exec(s.body);
  }
}

void Machine::exec_block(const CodeStmt& s) {
  if (!step()) return;
  if (s.expr >= 0 && eval_int(s.expr) == 0) return;
  bool at_start = true;
  for (int32_t i = 0; i < s.count; ++i) {
    const CodeIter& iter = code_.iters[static_cast<std::size_t>(s.first + i)];
    const int64_t value = eval_int(iter.binding);
    if (value < 0 || value >= eval_int(iter.extent)) {
      return fail(error(Diag::kInterpIterRange,
                        code_.slot_names[static_cast<std::size_t>(iter.slot)], BlockId(s.block),
                        value));
    }
    vars_[static_cast<std::size_t>(iter.slot)] = value;
    at_start = at_start && (!iter.is_reduce || value == 0);
  }
  if (s.other >= 0 && at_start) exec(s.other);
  exec(s.body);
}

void Machine::exec_store(const CodeStmt& s) {
  if (!step()) return;
  const double real = s.is_float ? eval_float(s.expr) : 0;
  const int64_t whole = s.is_float ? 0 : eval_int(s.expr);
  const int64_t flat = position(s.slot);
  if (failure_.has_value()) return;
  const int32_t buffer = code_.accesses[static_cast<std::size_t>(s.slot)].buffer;
  Memory& memory = memory_[static_cast<std::size_t>(buffer)];
  if (s.is_float) {
    store_float(memory.tensor.data.data(), memory.tensor.dtype, flat, real);
  } else {
    store_int(memory.tensor.data.data(), memory.tensor.dtype, flat, whole);
  }
  memory.written[static_cast<std::size_t>(flat)] = 1;
}

void Machine::exec(int32_t index) {
  if (index < 0 || failure_.has_value()) return;
  const CodeStmt& s = code_.stmts[static_cast<std::size_t>(index)];
  switch (s.kind) {
    case StmtKind::kSeq:
      for (int32_t i = 0; i < s.count; ++i) {
        exec(code_.children[static_cast<std::size_t>(s.first + i)]);
      }
      return;
    case StmtKind::kLoop: return exec_loop(s);
    case StmtKind::kBlock: return exec_block(s);
    case StmtKind::kStore: return exec_store(s);
    case StmtKind::kIf: return exec(eval_int(s.expr) != 0 ? s.body : s.other);
    case StmtKind::kAlloc: {
      std::vector<uint8_t>& written = memory_[static_cast<std::size_t>(s.slot)].written;
      written.assign(written.size(), 0);
      steps_ += static_cast<int64_t>(written.size()) / 64;  // clearing takes time as well
      return exec(s.body);
    }
  }
  PRUNERC_UNREACHABLE("statement kind");
}

Result<std::vector<Tensor>> Machine::run(std::span<const BufferId> params) {
  exec(code_.root);
  if (failure_.has_value()) return *failure_;
  std::vector<Tensor> outputs;
  for (BufferId id : params) {
    const CodeBuffer& buffer = code_.buffers[static_cast<std::size_t>(id.value)];
    if (buffer.role != BufferRole::kOutput) continue;
    Memory& memory = memory_[static_cast<std::size_t>(id.value)];
    for (std::size_t i = 0; i < memory.written.size(); ++i) {
      if (memory.written[i] == 0) {
        return error(Diag::kInterpUnwrittenOutput, static_cast<int64_t>(i), buffer.name);
      }
    }
    outputs.push_back(std::move(memory.tensor));
  }
  return outputs;
}

}  // namespace

Result<std::vector<Tensor>> interpret(const Program& program, std::span<const Tensor> inputs,
                                      const InterpretOptions& options) {
  PRUNERC_TRY(const Code code, compile_code(program, options.params, options.max_elements));
  Machine machine(code, options);
  PRUNERC_TRY_VOID(machine.set_inputs(inputs, program.params()));
  return machine.run(program.params());
}

}  // namespace prunerc::ir

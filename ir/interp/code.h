// The interpreter's own form of a program: flat vectors of nodes, operands by index, types
// resolved. Internal.
#ifndef PRUNERC_IR_INTERP_CODE_H_
#define PRUNERC_IR_INTERP_CODE_H_

#include "ir/program.h"
#include "ir/support/result.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::ir {

/// Operations split by the domain they work on: I has integer operands (or bool), F floats.
enum class Op : uint8_t {
  kConstI,
  kVar,
  kAddI,
  kSubI,
  kMulI,
  kFloorDiv,
  kFloorMod,
  kMinI,
  kMaxI,
  kEqI,
  kNeI,
  kLtI,
  kLeI,
  kEqF,
  kNeF,
  kLtF,
  kLeF,
  kAnd,
  kOr,
  kNot,
  kSelectI,
  kWrap,
  kToBool,
  kSaturate,
  kTruth,
  kLoadI,
  kAbsI,  // give an integer
  kConstF,
  kAddF,
  kSubF,
  kMulF,
  kDivF,
  kMinF,
  kMaxF,
  kSelectF,
  kRoundI,
  kRoundF,
  kLoadF,
  kCallF,
};

struct CodeExpr {
  Op op = Op::kConstI;
  DType dtype = DType::kI64;  // of the result
  Intrinsic intrinsic = Intrinsic::kExp;
  int32_t a = -1, b = -1, c = -1;  // operands; a: variable slot or access
  int64_t value = 0;
  double real = 0;
};

/// buffer[indices]: `rank` operands from `first` on in Code::index_exprs.
struct CodeAccess {
  int32_t buffer = 0;
  int32_t first = 0;
  int32_t rank = 0;
};

struct CodeIter {
  int32_t slot = 0;
  int32_t extent = 0, binding = 0;  // expressions
  bool is_reduce = false;
};

/// One statement; which fields count depends on the kind. -1: none.
struct CodeStmt {
  StmtKind kind = StmtKind::kSeq;
  int32_t first = 0, count = 0;  // Seq: children; Block: iterations
  int32_t body = -1;             // Loop, Block, If, Alloc
  int32_t other = -1;            // Block: init; If: else
  int32_t expr = -1;             // Loop: extent; Block: guard; If: condition; Store: value
  int32_t slot = -1;             // Loop: variable; Store: access; Alloc: buffer
  int32_t block = -1;            // Block: its id
  bool is_serial = true;         // Loop
  bool is_float = false;         // Store
};

struct CodeBuffer {
  std::string name;
  DType dtype = DType::kF32;
  BufferRole role = BufferRole::kIntermediate;
  std::vector<int64_t> shape;
  int64_t num_elements = 1;
};

struct Code {
  std::vector<CodeExpr> exprs;
  std::vector<CodeStmt> stmts;
  std::vector<CodeAccess> accesses;
  std::vector<CodeIter> iters;
  std::vector<CodeBuffer> buffers;
  std::vector<int32_t> index_exprs;
  std::vector<int32_t> children;
  std::vector<std::string> slot_names;
  int32_t root = -1;
};

/// Errors: InterpParams, InterpTooLarge.
Result<Code> compile_code(const Program& program, std::span<const int64_t> params,
                          int64_t max_elements);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_INTERP_CODE_H_

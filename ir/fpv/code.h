// The verifier's form of a program: loops of up to 64 lanes around expressions without control
// flow, addresses as sums of loop variables. Internal.
#ifndef PRUNERC_IR_FPV_CODE_H_
#define PRUNERC_IR_FPV_CODE_H_

#include "ir/fpv/field.h"
#include "ir/program.h"
#include "ir/support/result.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace prunerc::ir {

/// Operations split by the domain they work on: I has integer operands (or bool), F floats.
enum class FpOp : uint8_t {
  kConstI,
  kAffine,
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
  kToInt,
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
  kOfInt,
  kNarrow,
  kLoadF,
  kCallF,
};

struct FpExpr {
  FpOp op = FpOp::kConstI;
  DType dtype = DType::kI64;  // of the result
  Intrinsic intrinsic = Intrinsic::kExp;
  bool varies = false;  // between the lanes of its loop
  bool has_load = false;
  int32_t a = -1, b = -1, c = -1;  // operands; a: affine form or access
  int64_t value = 0;               // kConstI; kConstF: index of the constant
  bool operator==(const FpExpr&) const = default;
};

/// constant + sum of coefficient * slot + lane_coefficient * lane + sum of coefficient * node.
struct FpAffine {
  struct Term {
    int32_t of = 0;  // slot, or node for `varying`
    int64_t coefficient = 0;
    bool operator==(const Term&) const = default;
  };
  int64_t constant = 0;
  std::vector<Term> terms;  // by slot, no zero coefficients
  int64_t lane_coefficient = 0;
  std::vector<Term> varying;
  bool operator==(const FpAffine&) const = default;
};

/// Where values of affine forms live: a loop variable, or an integer expression that is the same in
/// all lanes and is evaluated when it is asked for.
struct FpSlot {
  int32_t node = -1;  // -1: a loop variable
  bool is_volatile = false;
};

inline constexpr int kNumConcurrencies = 2;
/// How the iterations of a loop may run: one after the other, at the same time as those of the same
/// launch (blocks of a grid, CPU threads), or as threads of one block, which all wait at the end.
enum class Concurrency : int8_t { kNone = -1, kGrid = 0, kThread = 1 };
Concurrency concurrency_of(LoopKind kind);
/// Which of the axes of its concurrency a loop is: iterations of one index of one axis are one and
/// the same block or thread, in whatever loop they stand.
inline constexpr int kNumAxes = 3;
int axis_of(LoopKind kind);

struct FpAccess {
  struct Check {  // of an index that may be outside
    int32_t dim = 0;
    FpAffine index;
    int64_t extent = 0;
  };
  int32_t buffer = 0;
  FpAffine flat;
  std::vector<Check> checks;
  std::array<bool, kNumConcurrencies> may_race = {};
  /// Bit a: threads along axis a combine what they store, so that it belongs to all of them.
  uint8_t combined_axes = 0;
};

struct FpIter {
  int32_t name = 0;  // index into names
  FpAffine binding;
  int32_t extent = 0;  // expression
  bool is_reduce = false;
  bool needs_check = true;  // of being below the extent
};

enum class FpStmtKind : uint8_t { kSeq, kLoop, kLanes, kBlock, kStore, kIf, kForget, kKernel };

/// One statement; which fields count depends on the kind. -1: none.
struct FpStmt {
  FpStmtKind kind = FpStmtKind::kSeq;
  int32_t first = 0, count = 0;  // Seq: children; Block: iterations; Forget: buffers
  int32_t body = -1;             // Loop, Lanes, Block, If, Kernel
  int32_t other = -1;            // Block: init; If: else
  int32_t expr = -1;             // loops: extent; Block: guard; If: condition; Store: value
  int32_t slot = -1;             // loops: variable; Store: access
  int32_t block = -1;            // Block: its id
  Concurrency concurrency = Concurrency::kNone;  // loops
  int8_t axis = 0;                               // of its concurrency
  bool has_order = false;                        // loops: carries a reduction, whose init leads
  bool is_float = false;                         // Store
  bool one_at_a_time = false;                    // Lanes: lanes may depend on each other
  int32_t first_pair = 0, num_pairs = 0;         // Lanes: accesses that must not overlap
  FpOp reduce_op = FpOp::kConstI;  // Store of `element = element op rest`; kConstI: another
  int32_t rest = -1;
};

struct FpBuffer {
  std::string name;
  DType dtype = DType::kF32;
  BufferRole role = BufferRole::kIntermediate;
  std::vector<int64_t> shape;
  int64_t num_elements = 1;
  bool may_race = false;
  bool has_owners = false;  // of scope local, in the hands of several threads
};

struct FpConstant {
  double value = 0;
  DType dtype = DType::kF32;
  bool operator==(const FpConstant&) const = default;
};

/// Elements of an output that matter: for each dimension the first and the last index.
struct FpWindow {
  int32_t buffer = 0;
  std::vector<std::pair<int64_t, int64_t>> box;  // none: no element
};

struct FpCode {
  std::vector<FpExpr> exprs;
  std::vector<FpAffine> affines;
  std::vector<FpSlot> slots;
  std::vector<FpStmt> stmts;
  std::vector<FpAccess> accesses;
  std::vector<FpIter> iters;
  std::vector<FpBuffer> buffers;
  std::vector<FpConstant> constants;
  std::vector<int32_t> children;                   // of Seq, and buffers of Forget
  std::vector<std::pair<int32_t, int32_t>> pairs;  // store, other access
  std::vector<std::string> names;                  // of iteration variables
  int32_t root = -1;
  int32_t depth = 1;  // registers that an expression needs
  bool compares_floats = false;
  bool has_exp = false;
  bool indexes_by_data = false;
  bool ignores_roundings = false;  // some were
  /// Largest extent of a loop of each axis, by concurrency.
  std::array<std::array<int64_t, kNumAxes>, kNumConcurrencies> axes = {};
  int64_t largest_extent = 1;  // of a dimension of a buffer
  // The same of parameters alone: what two programs of one signature agree on.
  int64_t largest_param_extent = 1;
  std::vector<FpWindow> windows;  // of outputs, by buffer; others: all elements
};

/// The window of an output; null: all elements matter.
const FpWindow* window_of(const FpCode& code, int32_t buffer);

/// Position of the first element of the output that matters and that `holds` is true of; -1: none.
template <typename F>
int64_t find_watched(const FpCode& code, int32_t buffer, const F& holds) {
  const FpBuffer& info = code.buffers[static_cast<std::size_t>(buffer)];
  const FpWindow* window = window_of(code, buffer);
  if (window == nullptr) {
    for (int64_t i = 0; i < info.num_elements; ++i) {
      if (holds(i)) return i;
    }
    return -1;
  }
  if (window->box.empty()) return -1;
  std::vector<int64_t> index;
  for (const auto& [first, last] : window->box) index.push_back(first);
  while (true) {
    int64_t position = 0;
    for (std::size_t d = 0; d < index.size(); ++d) position = position * info.shape[d] + index[d];
    if (holds(position)) return position;
    std::size_t d = index.size();
    while (d > 0 && index[d - 1] == window->box[d - 1].second) {
      index[d - 1] = window->box[d - 1].first;
      --d;
    }
    if (d == 0) return -1;
    ++index[d - 1];
  }
}

/// The program is well-formed (ir::verify). Errors: Unsupported, with what is not.
Result<FpCode> compile_fp(const Program& program, std::span<const int64_t> params,
                          int64_t max_elements, Roundings roundings = Roundings::kOpaque);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_FPV_CODE_H_

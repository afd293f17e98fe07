// The compiler from programs to FpCode, split over two files. Internal.
#ifndef PRUNERC_IR_FPV_COMPILER_H_
#define PRUNERC_IR_FPV_COMPILER_H_

#include "ir/fpv/alloc_points.h"
#include "ir/fpv/code.h"

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace prunerc::ir {

/// Registers that instructions pass between threads: operands of tensor loops and what is shuffled (codegen's lowering
/// marks both by attributes), and along which axes they are everyone's.
std::map<BufferId, uint8_t> find_warp_wide(const Program& program);

class FpCompiler {
 public:
  FpCompiler(const Program& program, std::span<const int64_t> params, Roundings roundings);

  Result<void> buffers(int64_t max_elements);
  int32_t stmt(Stmt s);
  FpCode take() { return std::move(code_); }
  void set_root(int32_t root) { code_.root = root; }

 private:
  struct Interval {
    int64_t low = 0, high = 0;
  };
  struct Touch {  // an access inside of the current lane loop
    int32_t access = 0;
    bool is_store = false;
    bool is_init = false;
    int32_t owner = -1;  // the store of `x = x op rest` that it belongs to, by its access
    bool leads = false;  // of an init: it runs in the first lane or in none
  };

  // Expressions: compile_expr.cc.
  int32_t expr(Expr e, int depth);
  int32_t node_of(Expr e, int depth);
  int32_t put(const FpExpr& node, int depth);
  int32_t binary(const BinaryNode& n, int depth);
  int32_t cast(const Cast& n, int depth);
  int32_t call(const Call& n, int depth);
  int32_t constant(double value, DType dtype, int depth);
  FpAffine affine(Expr e, int depth);
  FpAffine scaled(FpAffine a, int64_t factor) const;
  FpAffine sum(const FpAffine& a, const FpAffine& b) const;
  FpAffine opaque(Expr e, int depth);
  int32_t affine_node(const FpAffine& a, int depth);
  int32_t access(BufferId buffer, std::span<const Expr> indices, bool is_store, int depth);
  std::optional<Interval> range(const FpAffine& a) const;
  std::optional<Interval> range(int32_t node) const;

  // Statements: compile.cc.
  int32_t put(const FpStmt& node);
  int32_t seq(const std::vector<int32_t>& children);
  int32_t loop(const Loop& n);
  int32_t loop_alone(const Loop& n);
  int32_t lanes(const Loop& n, FpStmt out);
  int32_t block(const Block& n);
  int32_t store(const Store& n);
  int32_t with_resets(const Loop& n);
  int32_t new_slot(Interval range);
  void find_dependences(FpStmt* out);
  bool may_overlap(const Touch& store, const Touch& other, FpStmt* out);

  // Sharing among iterations: sharing.cc.
  std::array<bool, kNumConcurrencies> races(BufferId buffer) const;
  std::size_t alloc_depth(BufferId buffer) const;
  bool combines(const Loop& loop, BufferId buffer) const;
  void find_owners(BufferId buffer, FpAccess* access);

  const Program& program_;
  std::span<const int64_t> params_;
  Roundings roundings_;
  std::unordered_map<BufferId, std::vector<const Loop*>> alloc_points_;
  std::map<BufferId, uint8_t> warp_wide_;             // axes of threads, as in FpAccess
  std::unordered_map<int32_t, FpAffine> vars_;        // by VarId
  std::unordered_multimap<uint64_t, int32_t> known_;  // hash of an expression -> its node
  std::unordered_map<int32_t, int32_t> temps_;        // node -> its slot
  std::vector<Interval> slot_ranges_;                 // empty: low > high
  std::vector<const Loop*> loops_;                    // around
  FpCode code_;

  int32_t lane_slot_ = -1;          // of the current lane loop
  std::vector<Touch> touches_;      // in it
  std::vector<int32_t> forgotten_;  // buffers whose content ends with each iteration of it
  bool in_init_ = false;
  const Block* block_ = nullptr;  // around
};

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_FPV_COMPILER_H_

// The state and the parts of LLVM IR emission for one kernel; private to codegen/cpu.
#ifndef PRUNERC_CODEGEN_CPU_EMITTER_H_
#define PRUNERC_CODEGEN_CPU_EMITTER_H_

#include "codegen/cpu/tile_region.h"
#include "codegen/cpu/tile_registers.h"
#include "codegen/storage_plan.h"
#include "ir/arith/interval.h"
#include "ir/builder.h"
#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/tensor/intrinsic.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace llvm {
class BasicBlock;
class Constant;
class Function;
class GlobalVariable;
class IRBuilderBase;
class LLVMContext;
class MDNode;
class Module;
class Type;
class Value;
}  // namespace llvm

namespace prunerc::codegen {

/// Loops are unrolled while the copies of one innermost statement stay below this: more would not
/// fit the instruction cache and costs compile time in proportion.
inline constexpr int64_t kMaxUnrolledCopies = 512;

/// A pointer or index that moves by a constant step per lane: base + stride * lane. `multiple`
/// divides base (0: base is 0).
struct Affine {
  llvm::Value* base = nullptr;
  int64_t stride = 0;
  int64_t multiple = 1;
};

/// What vectors the target has.
struct VectorUnit {
  int64_t bytes = 16;
  bool has_avx512 = false;
};

/// Emits a lowered program (loops, conditions, stores, allocations). Values are scalars where they
/// are equal in all lanes of the vectorized loop being emitted, and vectors of `lanes_` elements
/// elsewhere. f16 and bf16 values are held as f32 that are exactly representable in their type.
/// Threads: one emitter belongs to one thread, as does its module.
class Emitter {
 public:
  Emitter(const ir::Program& program, const StoragePlan& plan, const VectorUnit& unit,
          llvm::Module& module, llvm::IRBuilderBase& builder);

  /// The function `symbol` with the ABI of runtime/kernel.h.
  Result<void> emit_entry(std::string_view symbol);

 private:
  // emit.cc: functions, statements, loops.
  void emit(ir::Stmt s);
  void emit_seq(const ir::Seq& seq);
  void emit_if(const ir::If& branch);
  void emit_alloc(const ir::Alloc& alloc);
  void emit_loop(const ir::Loop& loop);
  void emit_loop_kind(const ir::Loop& loop);
  void emit_serial(const ir::Loop& loop, llvm::Value* extent, const std::function<void()>& body);
  void emit_unrolled(const ir::Loop& loop, int64_t extent);
  void emit_vectorized(const ir::Loop& loop, int64_t extent);
  void emit_vector_chunk(const ir::Loop& loop, llvm::Value* base, int64_t multiple, int64_t active);
  void emit_parallel(const ir::Loop& loop, llvm::Value* extent);
  void counted_loop(llvm::Value* extent, bool known_positive, int64_t unroll,
                    const std::function<void(llvm::Value*)>& body);
  llvm::Function* make_function(std::string_view name, bool is_entry);
  llvm::MDNode* loop_metadata(int64_t unroll);
  void bind_var(ir::VarId id, llvm::Value* value, int64_t multiple, int64_t lo, int64_t hi);
  llvm::Value* stack_slot(llvm::Type* type, int64_t count);
  std::vector<ir::BufferId> buffers_used(ir::Stmt s) const;
  std::vector<ir::VarId> vars_used(ir::Stmt s) const;

  // emit_tensor.cc: loops that stand for an instruction.
  void emit_tensor(const ir::Loop& loop, std::string_view name);
  llvm::Value* load_tensor(const ir::TensorOperand& operand, const ir::TensorMatch::Operand& at,
                           llvm::Type* type);

  // emit_tiles.cc: products in tile registers.
  void call_tiles(unsigned id, std::initializer_list<llvm::Value*> args);
  llvm::GlobalVariable* make_tile_config(llvm::Constant* bytes);
  ParallelLoops parallel_loops() const;
  void begin_tiles(ir::Stmt body);
  void configure_tiles();
  void release_tiles();
  void end_tiles();
  bool emit_tile_region(const ir::Loop& loop, ir::Stmt fill = {});
  void emit_tile_nest(const ir::Loop& nest, const ir::TensorIntrinsic& tensor);
  void emit_tiles(const TileRegion& region);
  void emit_tile_items(const TileRegion& region, const std::vector<TileItem>& items,
                       const TilePlan& plan, std::size_t* next);
  void move_tile(unsigned id, int reg, const TilePlace& place);

  // emit_store.cc: stores and reductions.
  void emit_store(const ir::Store& store);
  bool emit_vector_reduction(const ir::Store& store);
  void write(ir::BufferId buffer, std::span<const ir::Expr> indices, llvm::Value* value);
  llvm::Value* contracted(const ir::Store& store);

  // emit_expr.cc: values.
  llvm::Value* eval(ir::Expr e);
  llvm::Value* eval_uncached(ir::Expr e);
  llvm::Value* eval_binary(const ir::BinaryNode& node);
  llvm::Value* eval_compare(const ir::BinaryNode& node);
  llvm::Value* compare_lanes(const ir::BinaryNode& node);
  llvm::Value* eval_logic(const ir::BinaryNode& node);
  llvm::Value* eval_floor(const ir::BinaryNode& node);
  llvm::Value* eval_select(const ir::Select& node);
  llvm::Value* eval_call(const ir::Call& node);
  llvm::Value* arithmetic(ir::ExprKind kind, ir::DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* eval_with_mask(ir::Expr e, llvm::Value* extra_mask);
  bool is_nonnegative(ir::Expr e) const;

  // emit_cast.cc: conversions between types and between registers and memory.
  llvm::Value* cast(llvm::Value* v, ir::DType from, ir::DType to);
  llvm::Value* to_memory(llvm::Value* v, ir::DType dtype);
  llvm::Value* from_memory(llvm::Value* v, ir::DType dtype);
  llvm::Value* round_register(llvm::Value* v, ir::DType dtype);
  llvm::Value* f64_to_f32_odd(llvm::Value* v);
  llvm::Value* saturated_byte(llvm::Value* v, ir::DType to);
  llvm::Value* bf16_bits(llvm::Value* v);
  llvm::Value* constant(ir::DType dtype, double value, int64_t int_value);

  // emit_memory.cc: indices and loads.
  std::optional<Affine> affine(ir::Expr e);
  std::optional<Affine> affine_uncached(ir::Expr e);
  std::optional<Affine> flat_affine(ir::BufferId buffer, std::span<const ir::Expr> indices);
  ir::Expr joined_index(const ir::Buffer& buffer, std::span<const ir::Expr> indices);
  llvm::Value* flat_vector(ir::BufferId buffer, std::span<const ir::Expr> indices);
  llvm::Value* element(ir::BufferId buffer, llvm::Value* offset, bool inbounds);
  llvm::Value* load(const ir::Load& node);
  llvm::Value* load_scalar(ir::BufferId buffer, llvm::Value* offset);
  llvm::Value* load_contiguous(ir::BufferId buffer, llvm::Value* offset);
  llvm::Value* load_part(ir::BufferId id, llvm::Value* offset, int64_t start, int64_t stride);
  llvm::Value* load_strided(ir::BufferId buffer, llvm::Value* offset, int64_t stride);
  llvm::Value* load_turns(const ir::Load& node);
  std::optional<Affine> affine_of_turn(const ir::Load& node, int64_t turn, int64_t turns);
  llvm::Value* load_gather(ir::BufferId buffer, llvm::Value* offsets);
  bool on_private_stack(ir::BufferId buffer) const;
  bool runs_anyway(const ir::Load& node) const;
  /// Room on both sides of a stack buffer for the masked-off lanes of one vector around a valid
  /// element. Units: bytes.
  int64_t stack_slack_bytes() const { return 4 * vector_bytes_; }
  llvm::Value* tag(llvm::Value* access, ir::BufferId buffer);
  llvm::Value* dummy_element();

  // emit_transpose.cc: tiles that are read or stored across their rows.
  /// Of a load, first lane and first row of a tile.
  using TileKey = std::tuple<const ir::Load*, int64_t, int64_t>;
  struct Columns {
    llvm::BasicBlock* block = nullptr;  // that made them
    std::vector<llvm::Value*> values;
  };
  /// An unrolled loop whose copies are the rows of a tile of vectors.
  struct TileRows {
    ir::VarId var;
    int64_t extent = 0;
    std::set<ir::BufferId> stored;  // by the loop
    std::map<TileKey, Columns> columns;
  };
  std::optional<TileRows> tile_rows(const ir::Loop& loop, int64_t extent) const;
  llvm::Value* load_column(const ir::Load& node, const Affine& offset);
  std::vector<llvm::Value*> load_columns(const ir::Load& node, const Affine& offset, int64_t count);
  std::vector<llvm::Value*> transposed(std::vector<llvm::Value*> vectors, int64_t element_bytes);
  bool emit_columns(const ir::Loop& loop, int64_t extent);
  bool is_whole_vector(const ir::Loop& loop) const;
  void store_columns(const ir::Loop& loop, const ir::Store& store, const Affine& at, int64_t first,
                     int64_t count);
  llvm::Value* first_lanes(int64_t count) const;
  void store_row(ir::BufferId buffer, llvm::Value* offset, llvm::Value* row, int64_t count);

  // Small helpers.
  llvm::Type* register_type(ir::DType dtype) const;
  llvm::Type* memory_type(ir::DType dtype) const;
  llvm::Type* like(llvm::Type* scalar, llvm::Value* shape) const;
  llvm::Value* i64(int64_t v) const;
  llvm::Value* splat(llvm::Value* v);
  void align_shapes(llvm::Value*& a, llvm::Value*& b);
  llvm::Value* lane_index(llvm::Type* element);
  llvm::Value* vector_mask();
  llvm::Value* any(llvm::Value* mask);
  llvm::Value* and_masks(llvm::Value* a, llvm::Value* b);

  struct VarInfo {
    llvm::Value* value = nullptr;
    int64_t multiple = 1;  // divides value; 0: value is 0
    int64_t lo = 0;        // what it is at least
    int64_t step = 1;      // between lanes, of the vectorized loop's
  };
  struct AliasInfo {
    llvm::MDNode* scope = nullptr;
    llvm::MDNode* noalias = nullptr;
  };

  const ir::Program& program_;
  ir::IrBuilder joined_;                                          // owns what joined_index makes
  std::unordered_map<const ir::Expr*, ir::Expr> joined_indices_;  // by an access' first index
  const StoragePlan& plan_;
  int64_t vector_bytes_;
  bool has_avx512_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilderBase& ir_;
  llvm::Function* function_ = nullptr;
  std::unordered_map<ir::VarId, VarInfo> vars_;
  ir::VarRanges ranges_;  // of the same variables; loops rewind it
  std::unordered_map<ir::BufferId, llvm::Value*> buffers_;
  std::map<std::pair<llvm::Function*, ir::BufferId>, llvm::Value*> stack_buffers_;
  std::map<llvm::Function*, int64_t> tile_bytes_;  // of stack buffers that no copy shares
  std::set<ir::BufferId> captured_;  // by the task being emitted: other tasks have them as well
  std::unordered_map<ir::BufferId, AliasInfo> alias_;
  llvm::Value* shared_workspace_ = nullptr;
  llvm::Value* worker_workspace_ = nullptr;
  llvm::Value* launch_ = nullptr;
  bool in_parallel_ = false;
  bool has_tiles_ = false;  // in any function
  /// The tile registers of the function being emitted.
  struct Tiles {
    llvm::GlobalVariable* config = nullptr;  // what its begin sets; null: nothing
    TileConfig sizes{};                      // what that will say
  };
  Tiles tiles_;
  int num_tasks_functions_ = 0;
  int64_t unrolled_copies_ = 1;

  // The vectorized loop being emitted; lanes_ is 0 outside of one.
  int64_t lanes_ = 0;
  ir::VarId lane_var_;
  // Lanes (or, outside vectors, whether at all) that may touch memory; null: all.
  llvm::Value* mask_ = nullptr;
  // The part of mask_ that comes from statements: where it is in force, at least one of its lanes
  // is set.
  llvm::Value* branch_mask_ = nullptr;
  std::vector<ir::Stmt> around_;  // statements being emitted, outermost first
  // Values of shared subexpressions within one statement.
  std::map<std::pair<const ir::ExprNode*, llvm::Value*>, llvm::Value*> memo_;
  std::map<std::pair<const ir::ExprNode*, llvm::Value*>, std::optional<Affine>> affine_memo_;
  std::optional<TileRows> tile_rows_;  // of the innermost unrolled loop, if it has that form
  Result<void> status_;
};

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CPU_EMITTER_H_

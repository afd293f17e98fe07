// The printer of one kernel: names, ranges and the text so far. Internal to codegen/cuda.
#ifndef PRUNERC_CODEGEN_CUDA_PRINTER_H_
#define PRUNERC_CODEGEN_CUDA_PRINTER_H_

#include "codegen/cuda/print.h"
#include "codegen/lower/analysis/fragment.h"
#include "ir/arith/interval.h"
#include "ir/arith/linear.h"
#include "ir/builder.h"
#include "ir/tensor/bulk_copy.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace prunerc::codegen {

/// C++ precedence of what a piece of text is made of, for as few parentheses as needed.
enum class Prec : uint8_t { kSelect, kOr, kAnd, kEqual, kLess, kAdd, kMul, kUnary, kAtom };

struct Text {
  std::string text;
  Prec prec = Prec::kAtom;
  /// Of a value that was rounded to 16 bits: what it was rounded from.
  std::string unrounded = {};
};
/// The text, in parentheses if it binds weaker than `at_least`.
std::string within(const Text& t, Prec at_least);

/// Has the term no variables but these?
bool depends_only_on(const ir::Term& term, const std::set<ir::VarId>& vars);

/// Type of an element in memory: "pr_f16".
std::string_view memory_type(ir::DType t);
/// Type that holds a value: f16 and bf16 are held as rounded floats, small integers as int.
std::string_view register_type(ir::DType t);

/// wgmma: 128 threads, factors in shared memory.
bool is_wgmma(const ir::TensorIntrinsic& intrinsic);
/// Of K in one such product. Units: bytes of a factor's row.
inline constexpr int64_t kWgmmaBytesOfK = 32;

struct ByteBlock;  // print_transpose.cc

class KernelPrinter {
 public:
  KernelPrinter(const ir::Program& program, const GpuStorage& storage, const Kernel& kernel,
                const ir::Target& target);

  /// The function; null args of `out` are filled in.
  Result<std::string> print(KernelText* out);

 private:
  // Statements (print.cc).
  void statement(ir::Stmt s);
  void loop(const ir::Loop& loop);
  void serial_loop(const ir::Loop& loop);
  void alloc(const ir::Alloc& alloc);
  void branch(const ir::If& branch);
  void store(const ir::Store& store);
  void line(const std::string& text);
  void open(const std::string& text);
  void close();
  bool must_unroll(const ir::Loop& loop) const;
  int64_t volume(ir::Stmt s) const;
  void declare_arguments(KernelText* out);
  void declare_shared(ir::BufferId id);
  void meet(const ir::Loop& loop);
  void nest_of(const ir::Loop& loop);
  void find_unrolled();

  // Which dimensions of registers are the thread itself (print_lanes.cc).
  void find_lane_dims(ir::Stmt s);
  void find_lane_dims(ir::Expr e);
  void note_lanes(ir::BufferId id, std::span<const ir::Expr> indices, ir::Expr shuffled);
  std::size_t num_lane_dims(ir::BufferId id) const;

  // Vector accesses (print_vector.cc).
  void vector_loop(const ir::Loop& loop);
  bool can_vectorize_here(const ir::Loop& loop);
  bool vector_store(const ir::Loop& loop, const ir::Store& store);
  void load_vectors(ir::Expr value, const ir::Loop& loop, const std::string& lane,
                    std::vector<const ir::ExprNode*>* bound);
  std::vector<const ir::Load*> vector_loads(ir::Expr value, const ir::Loop& loop);
  bool vector_copy(const ir::Loop& loop, const ir::Store& store);
  bool padded_copy(const ir::Loop& loop, const ir::Store& store);
  bool element_copy(const ir::Store& store);
  int64_t copies_in_flight(const ir::Loop& loop) const;
  bool is_update(const ir::Loop& loop) const;
  bool vector_update(const ir::Loop& loop, const ir::Store& store);
  bool reads_vector(ir::Expr e, const ir::Loop& loop);
  bool can_be_async(const ir::Store& store, const ir::Load& load, int64_t bytes) const;
  std::optional<ir::Expr> lane_base(ir::BufferId id, std::span<const ir::Expr> indices,
                                    const ir::Loop& loop);
  // Blocks of bytes whose rows become columns (print_transpose.cc).
  bool transposed_copy(const ir::Loop& rows);
  void turn_words(const ByteBlock& block, const ir::Loop& rows, ir::Expr from, ir::Expr to);

  // Tensor instructions and their operands (print_tensor.cc).
  void tensor_loop(const ir::Loop& loop, const ir::TensorIntrinsic& intrinsic);
  std::string tensor_operand(const ir::TensorIntrinsic& intrinsic, std::size_t index,
                             const ir::TensorMatch::Operand& at);
  std::string row_address(const ir::TensorIntrinsic& intrinsic, const ir::TensorMatch::Operand& at);
  std::string row_address_at(const ir::TensorMatch::Operand& at, ir::Expr row, ir::Expr column);
  std::string swizzled_row(ir::BufferId id, ir::Expr flat_index);
  ir::Expr fragment_flat(ir::BufferId id, std::span<const ir::Expr> indices);
  std::optional<ir::Expr> lane_of(const Fragment& fragment);
  std::optional<ir::Expr> fragment_offset(ir::BufferId id, std::span<const ir::Expr> indices,
                                          ir::Expr lane, ir::Expr reg);
  int64_t num_registers(ir::BufferId id);

  // Products of warpgroups (print_wgmma.cc).
  struct Factor {
    std::string text;  // its descriptor
    bool is_transposed;
  };
  bool is_product_nest(ir::Stmt s) const;
  bool only_multiplies(ir::Stmt s) const;
  std::size_t products_behind(const ir::Seq& seq, std::size_t first) const;
  void sequence(const ir::Seq& seq);
  bool multiplies_in_warpgroups() const;
  bool stores_swizzled(ir::Stmt s) const;
  bool is_multiple(ir::Expr e, int64_t of);
  std::optional<Factor> factor(const ir::TensorMatch::Operand& at, std::size_t k_dim,
                               int64_t extent);
  void warpgroup_product(const ir::TensorIntrinsic& intrinsic, const ir::TensorMatch& match);

  // Ring buffers, filled by a producer and emptied by a consumer (print_warp_specialized.cc).
  enum class Role : uint8_t { kBoth, kProducer, kConsumer };
  struct RingBuffer {
    std::string name;
    int64_t num_stages = 1, bytes = 0;  // of all tiles of one stage
    int64_t offset = 0;                 // of the mbarriers
    std::set<ir::BufferId> buffers;
    bool is_read_by_threads = false;
    bool is_shared = false;     // some of its boxes go to all blocks of the cluster
    bool overlaps = false;      // a group of products is in flight while the next one is issued
    mutable std::string stage;  // of the iteration at hand
  };
  struct BulkLoad {
    ir::BulkCopy copy;
    int64_t box_rows = 1, box_columns = 1;
    int64_t num_boxes() const { return copy.rows / box_rows * (copy.columns / box_columns); }
    std::ptrdiff_t map = 0;
    bool is_shared = false;  // the same for all blocks of the cluster, which start a part each
  };
  ir::Stmt own_statements();
  void find_cluster();
  bool grows_along(const ir::Loop& axis) const;
  bool is_same_in_cluster(ir::Expr e);
  void find_ring_buffers(ir::Stmt s);
  void note_bulk_copy(const ir::Loop& loop);
  bool is_read_by_threads(const RingBuffer& ring, ir::Stmt s) const;
  void find_overlaps(ir::Stmt s);
  bool overlaps_products(const ir::Loop& loop, const RingBuffer& ring);
  void release(const RingBuffer& ring, const std::string& stage, const std::string& condition);
  void end_ring(const ir::Loop& loop);
  void place_mbarriers(KernelText* out);
  /// Along which one more index is the producer: 1, or 2 where rows are lanes of a warpgroup.
  std::size_t producer_axis() const;
  void begin_mbarriers();
  void one_role(ir::Stmt body);
  void both_roles(ir::Stmt body);
  bool belongs_to_other_role(ir::Stmt s) const;
  void loop_body(const ir::Loop& loop);
  void bulk_loop(const ir::Loop& loop);
  std::string bulk_source(const BulkLoad& load, int64_t row, int64_t column);
  Result<void> check_specialised() const;

  // What leaves a warpgroup's registers through shared memory (print_staged.cc).
  struct StagedStore {
    ir::BulkCopy box;  // the other way: from the output into a panel
    const ir::Var* warp;
    const ir::Var* panel;
    int64_t columns = 1, panels = 1, slots = 1;
    int64_t offset = 0;  // of the slots
    std::ptrdiff_t map = 0;
    bool has_guard = false;
    int64_t slot_bytes(int64_t elem) const { return kStagedRows * columns * elem; }
  };
  static constexpr int64_t kStagedRows = 16;  // of a warp's sums
  void find_staged_stores(ir::Stmt s);
  void note_staged_store(const ir::Loop& outer);
  void place_staged_stores(KernelText* out);
  void staged_store(const ir::Loop& outer, const StagedStore& staged);
  bool loaded_global(ir::Expr e) const;
  void staged_pair(const ir::Loop& inner, const StagedStore& staged, const std::string& to);

  // What lanes give each other (print_shuffle.cc).
  struct Shuffle {
    std::string_view function;  // of the preludes
    int64_t step = 0;
    ir::Expr lane;  // whose element comes
  };
  ir::Expr shuffled_lane(const ir::Loop& loop);
  bool shuffle_loop(const ir::Loop& loop);
  void shuffle_body(ir::Stmt s, const Shuffle& shuffle);
  void fetch_shuffled(ir::Stmt s, const Shuffle& shuffle);
  bool is_shuffled(const ir::Load& load, const Shuffle& shuffle);

  // Values (print_expr.cc).
  Text value(ir::Expr e);
  Text index_value(ir::Expr e);
  Text compare(const ir::BinaryNode& node);
  Text arithmetic(ir::ExprKind kind, ir::DType dtype, const Text& a, const Text& b);
  Text division(const ir::BinaryNode& node);
  Text cast(ir::DType from, ir::DType to, const Text& v);
  Text rounded(const ir::Cast& node);
  Text call(const ir::Call& node);
  Text load(const ir::Load& node);
  Text to_register(ir::DType dtype, const Text& memory);
  Text to_memory(ir::DType dtype, const Text& reg);
  std::optional<Text> contracted(const ir::Store& store);
  std::optional<Text> rescaled(const ir::Store& store);
  bool fits_int(ir::Expr e) const;
  bool leaves_int(ir::Expr e) const;
  static bool is_continuous(const ir::Program& program);

  // Places.
  ir::Expr flat(ir::BufferId id, std::span<const ir::Expr> indices);
  ir::Expr flat_in_panels(ir::BufferId id, std::span<const ir::Expr> indices, int64_t bytes);
  std::string element(ir::BufferId id, std::span<const ir::Expr> indices);
  std::string address(ir::BufferId id, ir::Expr flat_index);
  /// Before the swizzle moves it.
  std::string unswizzled_address(ir::BufferId id, ir::Expr flat_index);
  std::string unswizzled_index_text(ir::BufferId id, ir::Expr flat_index);
  std::string index_text(ir::BufferId id, ir::Expr flat_index);
  /// Where an element of a swizzled buffer is: (swizzle of `inside` ^ pieces) + outside.
  struct SwizzledIndex {
    ir::Linear inside, pieces, outside;
  };
  SwizzledIndex swizzled_index(ir::BufferId id, ir::Expr flat_index);
  std::string swizzled_index_text(ir::BufferId id, const SwizzledIndex& index);
  ir::Linear take_pieces(ir::Linear* index, int64_t row, int64_t piece) const;
  const ir::Buffer& buffer(ir::BufferId id) const { return b_.buffer(id); }
  bool is_wide(ir::BufferId id) const;
  std::string fresh(std::string_view prefix);

  ir::IrBuilder b_;
  const GpuStorage& storage_;
  const Kernel& kernel_;
  const ir::Target& target_;
  const bool is_continuous_;             // no value jumps
  const std::set<ir::BufferId> stored_;  // by this kernel
  ir::VarRanges ranges_;
  std::string out_;
  int indent_ = 0;
  std::unordered_map<ir::VarId, std::string> vars_;
  std::unordered_map<ir::BufferId, std::string> buffers_;
  std::map<std::string, int, std::less<>> num_names_;
  std::set<ir::VarId> unrolled_;                         // index registers
  std::set<ir::VarId> thread_vars_;                      // of thread.x, .y and .z
  std::set<ir::VarId> copied_vars_;                      // of unrolled loops: constants of a copy
  std::map<ir::BufferId, std::size_t> lane_dims_;        // leading dimensions that are the thread
  std::map<const ir::ExprNode*, std::string> loaded_;    // loads that a vector access did
  std::array<const ir::Loop*, kNumThreadDims> lanes_{};  // while finding lane dimensions
  ir::Expr shuffled_;  // the other lane of a shuffle, while finding them
  Fragments fragments_;
  const ir::Var* lane_ = nullptr;  // of thread.x, where one is open
  const ir::Var* row_ = nullptr;   // of thread.y
  ir::Expr register_;              // of the fragment at hand
  bool exchanges_ = false;         // lanes give each other values, both ways
  std::map<ir::LoopId, RingBuffer> ring_buffers_;
  std::map<ir::LoopId, BulkLoad> loads_;
  std::map<ir::LoopId, StagedStore> staged_;
  std::vector<KernelMap> maps_;
  RingBuffer* open_ring_ = nullptr;           // while finding ring buffers
  const RingBuffer* current_ring_ = nullptr;  // while printing
  Role role_ = Role::kBoth;
  int64_t cluster_ = 1;          // blocks along x that give each other what they all read
  bool in_products_ = false;     // of a warpgroup
  bool waits_later_ = false;     // for those, behind fetches that run meanwhile
  bool writes_factors_ = false;  // threads write what wgmma reads
  int64_t unroll_limit_ = 0;     // statements and conditions of a loop, in all its copies
  int64_t copies_ = 1;           // of the code at hand, by unrolled loops around it
  bool wide_index_ = false;
  bool is_async_ = false;  // copies into shared memory may be
  std::optional<Error> failed_;
};

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CUDA_PRINTER_H_

// What conditions say about intermediate buffers: where their elements are a constant, and where
// nobody needs them.
#ifndef PRUNERC_IR_ANALYSIS_MASKS_MASKS_H_
#define PRUNERC_IR_ANALYSIS_MASKS_MASKS_H_

#include "ir/arith/linear.h"
#include "ir/builder.h"
#include "ir/program.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace prunerc::ir {

/// What becomes of instances that nobody needs: they are left out, and what they alone read is not needed either (those
/// that compute a tile run); or they run, but in loops that are trimmed, and what they read must be there.
enum class Unneeded : uint8_t { kLeftOut, kRun };

/// What follows from conditions that are affine comparisons of block variables; others say nothing.
/// Values that are masked away are taken to be finite: 0*x is 0.
/// Cost: O(size of the program * conditions in a block).
class Masks {
 public:
  /// Makes expressions with b, which must outlive this.
  Masks(IrBuilder& b, const Program& program, Unneeded unneeded = Unneeded::kLeftOut);

  /// An instance of the block does something that anybody needs only where each of these, over the
  /// block's variables, is at most 0. Empty: no condition is known. Without `by_updates` those are left
  /// out that follow from updates that change nothing.
  std::vector<Linear> needed_where(const Block& block, bool by_updates = true);

 private:
  /// The elements of a buffer whose indices have sum of coefs[d]*index[d] + constant <= 0.
  struct HalfSpace {
    std::vector<int64_t> coefs;
    int64_t constant = 0;
    bool operator==(const HalfSpace&) const = default;
  };
  /// Elements that are not inside have the value.
  struct Outside {
    HalfSpace inside;
    double value;
  };
  /// What is needed of a buffer: elements inside of all of these. Nullopt: all of them.
  using Needs = std::optional<std::vector<HalfSpace>>;
  struct Use {
    const Load* load;
    std::vector<Linear> where;  // its value matters only where all are at most 0
    bool is_address = false;    // what it says decides where memory is, or divides integers
  };

  void find_values(const Block& block);
  void find_needs(const Block& block);
  void need_all(Expr e);
  void need(const Use& use, const VarRanges& ranges);
  void collect_uses(Expr e, const VarRanges& ranges, const Use& around, std::vector<Use>* out);
  std::vector<Linear> needs_of_writes(const Block& block, const VarRanges& ranges);

  std::vector<Linear> conditions_in(Expr value, const VarRanges& ranges);
  std::optional<double> value_outside(Expr e, const Linear& condition, std::span<const Linear> all,
                                      const VarRanges& ranges);
  std::set<BufferId> roots_of(BufferId of);
  bool is_positive(Expr e);
  bool is_of_full_row(const BinaryNode& n, std::span<const Linear> all, const VarRanges& ranges);
  const Var* every_row_has_one(Expr of_row, std::span<const Linear> all, const VarRanges& ranges);

  std::optional<HalfSpace> half_space(const Linear& condition, std::span<const Expr> indices,
                                      const VarRanges& ranges);
  Linear at(const HalfSpace& space, std::span<const Expr> indices, const VarRanges& ranges);

  IrBuilder& b_;
  Unneeded unneeded_;
  std::map<BufferId, int> num_stores_;
  std::map<BufferId, std::vector<const Block*>> writers_;
  std::map<BufferId, std::size_t> last_store_;  // by block, in the order of the text
  std::map<BufferId, std::vector<Outside>> values_;
  std::map<BufferId, Needs> needs_;  // missing: no use was seen yet
};

/// A block of whose instances fewer than this part are masked away is taken to be whole: leaving out
/// a picture's border gains nothing.
inline constexpr double kLeastMaskedPart = 0.1;

/// The part of the block's instances for which all conditions are at most 0, exactly; nullopt if they
/// are of more than plain variables, or too many to count.
std::optional<double> share_where(const Block& block, std::span<const Linear> conditions);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_MASKS_MASKS_H_

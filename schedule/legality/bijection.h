// Subscripts that name every instance of a block by elements of its own: which elements they are,
// and which instance an element is of.
#ifndef PRUNERC_SCHEDULE_LEGALITY_BIJECTION_H_
#define PRUNERC_SCHEDULE_LEGALITY_BIJECTION_H_

#include "ir/arith/interval.h"
#include "ir/arith/iter_map.h"
#include "ir/builder.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace prunerc::schedule {

/// Element indices as a function of iteration variables: different instances have different
/// elements, and the indices of all of them are independent of each other. Sums of multiples of the
/// variables, of their quotients and of their remainders are recognised (ir/arith/iter_map.h):
/// i*4 + j, (i // 4, i % 4) also where 4 does not divide the extent, 2*i. Borrows from the block and
/// the builder.
class Bijection {
 public:
  /// Nullopt unless it is proved. `vars`: those that count; others are constants.
  static std::optional<Bijection> of(ir::IrBuilder& b, std::span<const ir::IterVar> vars,
                                     std::span<const ir::Expr> indices);

  /// By the variables, the instance that has the element, simplified under `ranges`. Means nothing
  /// where the element is of none.
  std::vector<ir::Expr> instance_at(ir::IrBuilder& b, std::span<const ir::Expr> element,
                                    const ir::VarRanges& ranges) const;

  /// The elements [first, first + count) of a dimension.
  struct Run {
    int64_t first = 0;
    int64_t count = 1;
    bool operator==(const Run&) const = default;
    bool contains(const Run& other) const {
      return first <= other.first && other.first + other.count <= first + count;
    }
    bool meets(const Run& other) const {
      return first < other.first + other.count && other.first < first + count;
    }
  };
  /// By dimension. Empty if the elements are no box, or not at constant places.
  const std::optional<std::vector<Run>>& box() const { return box_; }

 private:
  std::vector<const ir::Var*> vars_;
  ir::IterMap map_;
  std::optional<std::vector<Run>> box_;
};

/// The condition that an element of a buffer is in the box; null if all that the buffer has is.
ir::Expr inside_box(ir::IrBuilder& b, std::span<const Bijection::Run> box,
                    std::span<const ir::Expr> shape, std::span<const ir::Expr> element);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_BIJECTION_H_

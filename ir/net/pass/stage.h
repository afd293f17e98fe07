// The statements of a program: what each stores, and whether it is a sum of products.
#ifndef PRUNERC_IR_NET_PASS_STAGE_H_
#define PRUNERC_IR_NET_PASS_STAGE_H_

#include "ir/program.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace prunerc::net {

/// A block that stores once.
struct Stage {
  const ir::Block* block = nullptr;
  const ir::Store* store = nullptr;
  ir::Expr value;  ///< what is stored, or what one instance of a reduction brings
  bool reduces = false;
  std::vector<ir::VarId> reduce_vars;
};

std::vector<const ir::Block*> blocks_of(const ir::Program& program);
/// Nullopt if it does anything else.
std::optional<Stage> stage_of(const ir::Block& block);

std::vector<const ir::Load*> loads_of(ir::Expr e);
/// A subscript depends on data.
bool is_gather(const ir::Load& load);
bool mentions_any(const ir::Load& load, const std::vector<ir::VarId>& vars);
/// A sum of products of two tensors, each read along the sum.
bool is_linear(const Stage& stage);
/// The same of any terms: a sum of products of which two factors share no tensor, each read along the sum.
bool is_contraction(const Stage& stage);
/// A subscript moves with a reduction and with the result's place.
bool reads_window(const ir::Load& load, const Stage& stage);

int64_t num_operations(ir::Expr e);
/// 0: not a number.
int64_t extent_of(ir::Expr e);
int64_t num_elements(const ir::Buffer& buffer);
bool same_shape(const ir::Buffer& a, const ir::Buffer& b);
/// The same without axes of one element.
bool same_shape_but_units(const ir::Buffer& a, const ir::Buffer& b);

}  // namespace prunerc::net

#endif  // PRUNERC_IR_NET_PASS_STAGE_H_

// Products of a warpgroup: sums in the registers of its 128 threads, factors in swizzled shared
// memory, named by descriptors.
#include "codegen/cuda/printer.h"
#include "codegen/lower/analysis/statements.h"
#include "ir/arith/linear.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::codegen {

using namespace ir;

namespace {

constexpr std::string_view kCall = "wgmma.";
/// Distance of the halves of K in a layout that the hardware ignores it for. Units: bytes.
constexpr int64_t kUnusedLead = 16;

// Of the wrapper's template.
std::string_view factor_type(DType dtype) {
  switch (dtype) {
    case DType::kF16: return "pr_f16";
    case DType::kBF16: return "pr_bf16";
    case DType::kF32: return "pr_tf32";
    default: return "signed char";
  }
}

}  // namespace

bool is_wgmma(const TensorIntrinsic& intrinsic) {
  return intrinsic.call.substr(0, kCall.size()) == kCall;
}

// Nothing but such products: they are issued together and waited for once.
bool KernelPrinter::is_product_nest(Stmt s) const {
  if (const Seq* seq = s.as<Seq>()) {
    for (Stmt child : seq->stmts) {
      if (!is_product_nest(child)) return false;
    }
    return true;
  }
  const Loop* loop = s.as<Loop>();
  if (loop == nullptr || is_lane_axis(loop->loop_kind)) return false;
  const TensorIntrinsic* intrinsic = warp_intrinsic(*loop);
  return intrinsic != nullptr ? is_wgmma(*intrinsic) : is_product_nest(loop->body);
}

// The same below loops over lanes.
bool KernelPrinter::only_multiplies(Stmt s) const {
  const Loop* loop = s.as<Loop>();
  for (; loop != nullptr && is_lane_axis(loop->loop_kind); loop = s.as<Loop>()) s = loop->body;
  return loop != nullptr && is_product_nest(s);
}

// Where the products stand that all statements from `first` on up to them fetch ahead of, if nothing
// forbids to issue these fetches behind them; else `first`.
std::size_t KernelPrinter::products_behind(const Seq& seq, std::size_t first) const {
  const auto meets = [](const Loop& loop) {
    return attr_of(loop, kSyncAttr).value_or(0) != 0 || attr_of(loop, kWaitAttr).has_value();
  };
  std::set<BufferId> read;
  std::size_t i = first;
  for (; i < seq.stmts.size(); ++i) {
    const Loop* loop = seq.stmts[i].as<Loop>();
    if (loop == nullptr || !attr_of(*loop, kAheadAttr)) break;
    const std::set<BufferId> stored = stored_buffers(seq.stmts[i]);
    const bool is_shared = std::all_of(stored.begin(), stored.end(), [&](BufferId id) {
      return buffer(id).scope == Scope::kShared;
    });
    if (!is_shared || any_loop(i == first ? loop->body : seq.stmts[i], meets)) return first;
    read.merge(loaded_buffers(seq.stmts[i]));
  }
  if (i == first || i == seq.stmts.size()) return first;
  const Stmt products = seq.stmts[i];
  if (!only_multiplies(products) || any_loop(products, meets)) return first;
  const std::set<BufferId> sums = stored_buffers(products);
  const bool reads_sums =
      std::any_of(sums.begin(), sums.end(), [&](BufferId id) { return read.count(id) != 0; });
  return reads_sums ? first : i;
}

// Fetches for later iterations are issued behind the products of this one, which run meanwhile.
void KernelPrinter::sequence(const Seq& seq) {
  for (std::size_t i = 0; i < seq.stmts.size(); ++i) {
    const std::size_t products = role_ == Role::kProducer ? i : products_behind(seq, i);
    if (products == i) {
      statement(seq.stmts[i]);
      continue;
    }
    meet(*seq.stmts[i].as<Loop>());
    waits_later_ = true;
    statement(seq.stmts[products]);
    waits_later_ = false;
    for (; i < products; ++i) nest_of(*seq.stmts[i].as<Loop>());
    line("pr_wgmma_wait<0>();");
  }
}

bool KernelPrinter::multiplies_in_warpgroups() const {
  return any_loop(kernel_.body, [](const Loop& loop) {
    const TensorIntrinsic* intrinsic = warp_intrinsic(loop);
    return intrinsic != nullptr && is_wgmma(*intrinsic);
  });
}

bool KernelPrinter::stores_swizzled(Stmt s) const {
  const std::set<BufferId> stored = stored_buffers(s);
  return std::any_of(stored.begin(), stored.end(),
                     [&](BufferId id) { return storage_.swizzles.count(id) != 0; });
}

bool KernelPrinter::is_multiple(Expr e, int64_t of) {
  const Linear linear = to_linear(b_, e, ranges_);
  return !linear.overflow && !linear.has_data && linear.constant % of == 0 &&
         coefficient_gcd(linear) % of == 0;
}

// A factor whose dimension `k_dim` is K; the other one has `extent` elements. Panels hold eight
// rows of the swizzle's width one after the other (print_expr.cc, flat_in_panels), which is what
// the canonical layouts of the PTX manual say. Null if it is not in whole pieces of panels.
std::optional<KernelPrinter::Factor> KernelPrinter::factor(const TensorMatch::Operand& at,
                                                           std::size_t k_dim, int64_t extent) {
  const auto swizzle = storage_.swizzles.find(at.buffer);
  if (swizzle == storage_.swizzles.end()) return std::nullopt;
  const Buffer& here = buffer(at.buffer);
  const int last = static_cast<int>(here.shape.size()) - 1;
  const bool by_k = at.dims[k_dim] == last && at.dims[1 - k_dim] == last - 1;
  const bool by_other = at.dims[1 - k_dim] == last && at.dims[k_dim] == last - 1;
  const bool is_half = byte_size(here.dtype) == 2;
  if (!by_k && !(by_other && is_half)) return std::nullopt;
  const int64_t bytes = swizzle->second;
  const int64_t width = bytes / byte_size(here.dtype);
  const int64_t rows = here.shape[static_cast<std::size_t>(last - 1)].as<IntImm>()->value;
  const Expr row = at.base[static_cast<std::size_t>(last - 1)];
  const Expr column = at.base[static_cast<std::size_t>(last)];
  const int64_t along = by_k ? kWgmmaBytesOfK / byte_size(here.dtype) : extent;
  const bool in_panel = width % along == 0 && is_multiple(column, along);
  if (rows % kSwizzleRows != 0 || !is_multiple(row, kSwizzleRows) ||
      !(in_panel || (!by_k && is_multiple(column, width)))) {
    return std::nullopt;
  }
  // Where bytes lie follows from their address: descriptors are made of addresses without swizzle.
  const int64_t lead = by_k ? kUnusedLead : rows * bytes;
  return Factor{fmt::format("pr_wgmma_desc({}, {}, {}, {})",
                            unswizzled_address(at.buffer, flat(at.buffer, at.base)), lead,
                            kSwizzleRows * bytes, bytes),
                by_other};
}

void KernelPrinter::warpgroup_product(const TensorIntrinsic& intrinsic, const TensorMatch& match) {
  const auto refuse = [&](std::string needs) {
    failed_ = prunerc::error(Diag::kTensorTarget, intrinsic.name, std::move(needs),
                             std::string("this schedule"));
  };
  const Buffer& described = intrinsic.description.buffer(intrinsic.operands[0].buffer);
  const auto extent = [&](std::size_t d) { return described.shape[d].as<IntImm>()->value; };
  const std::optional<Factor> a = factor(match.operands[1], 1, extent(0));
  const std::optional<Factor> b = factor(match.operands[2], 0, extent(1));
  if (!a || !b) return refuse("factors in whole panels of swizzled shared memory");
  const TensorMatch::Operand& sum = match.operands[0];
  if (fragments_.count(sum.buffer) == 0) return refuse("sums in scope local");
  const std::optional<Expr> offset =
      fragment_offset(sum.buffer, sum.base, b_.int_imm(0), b_.int_imm(0));
  if (!offset) return refuse("operands at whole tiles");
  line(fmt::format("pr_wgmma<{}, {}, {:d}, {:d}>(pr_regs<{}, {}>({}), {}, {}, 1);", extent(1),
                   factor_type(buffer(match.operands[1].buffer).dtype), a->is_transposed,
                   b->is_transposed, register_type(buffer(sum.buffer).dtype),
                   intrinsic.operands[0].registers, address(sum.buffer, *offset), a->text,
                   b->text));
}

}  // namespace prunerc::codegen

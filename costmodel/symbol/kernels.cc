#include "costmodel/symbol/kernels.h"

#include "costmodel/symbol/code.h"

namespace prunerc::costmodel {
namespace {

constexpr std::size_t kBlock = SymbolCode::kBlock;

// The number of iterations is a constant and nothing overlaps: the compiler makes vectors of it.
template <SymOp kOp, bool kScalarA, bool kScalarB>
void run(double* __restrict out, const double* __restrict a, const double* __restrict b) {
  const double a0 = *a, b0 = *b;
  for (std::size_t i = 0; i < kBlock; ++i) {
    out[i] = symbol::apply<kOp>(kScalarA ? a0 : a[i], kScalarB ? b0 : b[i]);
  }
}

template <bool kScalarB, bool kScalarC>
void choose(double* __restrict out, const double* __restrict a, const double* __restrict b,
            const double* __restrict c) {
  const double b0 = *b, c0 = *c;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const double yes = kScalarB ? b0 : b[i];
    const double no = kScalarC ? c0 : c[i];
    out[i] = a[i] != 0.0 ? yes : no;
  }
}

void run_select(double* out, BlockOperand a, BlockOperand b, BlockOperand c) {
  if (a.is_scalar) {
    const BlockOperand chosen = *a.data != 0.0 ? b : c;
    for (std::size_t i = 0; i < kBlock; ++i) out[i] = chosen.data[chosen.is_scalar ? 0 : i];
    return;
  }
  if (b.is_scalar && c.is_scalar) return choose<true, true>(out, a.data, b.data, c.data);
  if (b.is_scalar) return choose<true, false>(out, a.data, b.data, c.data);
  if (c.is_scalar) return choose<false, true>(out, a.data, b.data, c.data);
  choose<false, false>(out, a.data, b.data, c.data);
}

}  // namespace

void run_operation(SymOp op, double* out, BlockOperand a, BlockOperand b, BlockOperand c) {
  if (op == SymOp::kSelect) return run_select(out, a, b, c);
  dispatch(op, [&]<SymOp kOp>() {
    if constexpr (is_unary(kOp)) {
      run<kOp, false, true>(out, a.data, a.data);
    } else if (a.is_scalar) {
      run<kOp, true, false>(out, a.data, b.data);
    } else if (b.is_scalar) {
      run<kOp, false, true>(out, a.data, b.data);
    } else {
      run<kOp, false, false>(out, a.data, b.data);
    }
  });
}

}  // namespace prunerc::costmodel

#include "costmodel/symbol/kernels.h"

namespace prunerc::costmodel {
namespace {

// The number of inner iterations is a constant and nothing overlaps: the compiler makes vectors of
// it.
template <SymOp kOp, bool kScalarA, bool kScalarB>
void run(double* __restrict out, const double* __restrict a, const double* __restrict b,
         std::size_t n) {
  const double a0 = *a, b0 = *b;
  for (std::size_t first = 0; first < n; first += kKernelStep) {
    for (std::size_t i = first; i < first + kKernelStep; ++i) {
      out[i] = symbol::apply<kOp>(kScalarA ? a0 : a[i], kScalarB ? b0 : b[i]);
    }
  }
}

template <bool kScalarB, bool kScalarC>
void choose(double* __restrict out, const double* __restrict a, const double* __restrict b,
            const double* __restrict c, std::size_t n) {
  const double b0 = *b, c0 = *c;
  for (std::size_t first = 0; first < n; first += kKernelStep) {
    for (std::size_t i = first; i < first + kKernelStep; ++i) {
      const double yes = kScalarB ? b0 : b[i];
      const double no = kScalarC ? c0 : c[i];
      out[i] = a[i] != 0.0 ? yes : no;
    }
  }
}

void run_select(double* out, BlockOperand a, BlockOperand b, BlockOperand c, std::size_t n) {
  if (a.is_scalar) {
    const BlockOperand chosen = *a.data != 0.0 ? b : c;
    for (std::size_t i = 0; i < n; ++i) out[i] = chosen.data[chosen.is_scalar ? 0 : i];
    return;
  }
  if (b.is_scalar && c.is_scalar) return choose<true, true>(out, a.data, b.data, c.data, n);
  if (b.is_scalar) return choose<true, false>(out, a.data, b.data, c.data, n);
  if (c.is_scalar) return choose<false, true>(out, a.data, b.data, c.data, n);
  choose<false, false>(out, a.data, b.data, c.data, n);
}

}  // namespace

void run_operation(SymOp op, double* out, BlockOperand a, BlockOperand b, BlockOperand c,
                   std::size_t n) {
  if (op == SymOp::kSelect) return run_select(out, a, b, c, n);
  dispatch(op, [&]<SymOp kOp>() {
    if constexpr (is_unary(kOp)) {
      run<kOp, false, true>(out, a.data, a.data, n);
    } else if (a.is_scalar) {
      run<kOp, true, false>(out, a.data, b.data, n);
    } else if (b.is_scalar) {
      run<kOp, false, true>(out, a.data, b.data, n);
    } else {
      run<kOp, false, false>(out, a.data, b.data, n);
    }
  });
}

}  // namespace prunerc::costmodel

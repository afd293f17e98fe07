#include "costmodel/symbol/kernels.h"

namespace prunerc::costmodel {
namespace {

using Values = const double* __restrict;

// The number of inner iterations is a constant and nothing overlaps: the compiler makes vectors of
// it.
template <typename F>
inline void for_each_value(std::size_t n, F&& f) {
  for (std::size_t first = 0; first < n; first += kKernelStep) {
    for (std::size_t i = 0; i < kKernelStep; ++i) f(first + i);
  }
}

template <SymOp kOp, bool kUniformA, bool kUniformB>
struct Apply {
  static void run(double* __restrict out, Values a, Values b, Values, std::size_t n) {
    const double a0 = *a, b0 = *b;
    for_each_value(n, [&](std::size_t i) {
      out[i] = symbol::apply<kOp>(kUniformA ? a0 : a[i], kUniformB ? b0 : b[i]);
    });
  }
};

template <SymOp kOp>
struct ApplyUnary {
  static void run(double* __restrict out, Values a, Values, Values, std::size_t n) {
    for_each_value(n, [&](std::size_t i) { out[i] = symbol::apply<kOp>(a[i], 0); });
  }
};

template <bool kUniformB, bool kUniformC>
struct Choose {
  static void run(double* __restrict out, Values a, Values b, Values c, std::size_t n) {
    const double b0 = *b, c0 = *c;
    for_each_value(n, [&](std::size_t i) {
      const double yes = kUniformB ? b0 : b[i];
      const double no = kUniformC ? c0 : c[i];
      out[i] = a[i] != 0.0 ? yes : no;
    });
  }
};

// All take the same of one of two.
template <bool kUniformB, bool kUniformC>
struct ChooseOnce {
  static void run(double* __restrict out, Values a, Values b, Values c, std::size_t n) {
    const bool yes = *a != 0.0;
    const double* const from = yes ? b : c;
    const std::size_t step = (yes ? kUniformB : kUniformC) ? 0 : 1;
    for (std::size_t i = 0; i < n; ++i) out[i] = from[i * step];
  }
};

template <typename Body>
[[gnu::flatten]] void narrow(double* out, const double* a, const double* b, const double* c,
                             std::size_t n) {
  Body::run(out, a, b, c, n);
}

// The same bits: every operation is rounded by itself (-ffp-contract=off), whatever the width.
template <typename Body>
[[gnu::flatten, gnu::target("avx512f,avx512vl,avx512dq,avx512bw,prefer-vector-width=512")]] void
wide(double* out, const double* a, const double* b, const double* c, std::size_t n) {
  Body::run(out, a, b, c, n);
}

template <typename Body>
Kernel kernel(bool is_wide) {
  return is_wide ? wide<Body> : narrow<Body>;
}

template <template <bool, bool> typename Body>
Kernel kernel(bool b, bool c, bool is_wide) {
  if (b) return c ? kernel<Body<true, true>>(is_wide) : kernel<Body<true, false>>(is_wide);
  return c ? kernel<Body<false, true>>(is_wide) : kernel<Body<false, false>>(is_wide);
}

}  // namespace

bool has_wide_vectors() {
  static const bool has =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512bw") != 0;
  return has;
}

Kernel kernel_of(SymOp op, Uniform uniform, bool wide_vectors) {
  if (op == SymOp::kSelect) {
    return uniform.a ? kernel<ChooseOnce>(uniform.b, uniform.c, wide_vectors)
                     : kernel<Choose>(uniform.b, uniform.c, wide_vectors);
  }
  return dispatch(op, [&]<SymOp kOp>() {
    if constexpr (is_unary(kOp)) {
      return kernel<ApplyUnary<kOp>>(wide_vectors);
    } else {
      if (uniform.a) return kernel<Apply<kOp, true, false>>(wide_vectors);
      return uniform.b ? kernel<Apply<kOp, false, true>>(wide_vectors)
                       : kernel<Apply<kOp, false, false>>(wide_vectors);
    }
  });
}

}  // namespace prunerc::costmodel

// Tensor: a dense, row-major value in memory, as programs take and give them.
#ifndef PRUNERC_IR_INTERP_TENSOR_H_
#define PRUNERC_IR_INTERP_TENSOR_H_

#include "ir/dtype.h"
#include "ir/program.h"
#include "ir/support/rng.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace prunerc::ir {

/// Elements lie in `data` as kernels see them: IEEE binary formats, two's complement, one byte per
/// bool.
struct Tensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // empty: a scalar
  std::vector<std::byte> data;

  Tensor() = default;
  /// Zeros.
  Tensor(DType element_type, std::vector<int64_t> dims);

  int64_t num_elements() const;
  /// Element at a flat, row-major position. Floats are read exactly and rounded when written;
  /// integers wrap.
  double get(int64_t position) const;       // any type
  int64_t get_int(int64_t position) const;  // integer types and bool
  void set(int64_t position, double value);
  void set_int(int64_t position, int64_t value);
  /// Same type, shape and bits.
  bool operator==(const Tensor&) const = default;
};

/// f(flat position) for every element, rounded.
Tensor tensor_from(DType dtype, std::vector<int64_t> shape,
                   const std::function<double(int64_t)>& f);
/// Whole numbers in [low, high]: float sums of them are exact in any order as long as they stay
/// below 2^24.
Tensor random_ints(DType dtype, std::vector<int64_t> shape, int64_t low, int64_t high, Rng& rng);
/// Standard normal, rounded.
Tensor random_normal(DType dtype, std::vector<int64_t> shape, Rng& rng);

/// The constant shape of a buffer; tile parameters take `params`. A negative entry: not constant.
std::vector<int64_t> shape_of(const Buffer& buffer, std::span<const int64_t> params = {});

/// "f32[2, 3]" and, for few elements, their values.
std::string to_string(const Tensor& tensor);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_INTERP_TENSOR_H_

#include "ir/interp/tensor.h"

#include "ir/domain.h"
#include "ir/interp/storage.h"
#include "ir/support/check.h"

#include <cmath>
#include <cstdio>

namespace prunerc::ir {

Tensor::Tensor(DType element_type, std::vector<int64_t> dims)
    : dtype(element_type), shape(std::move(dims)) {
  data.resize(static_cast<std::size_t>(num_elements() * byte_size(dtype)));
}

int64_t Tensor::num_elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

double Tensor::get(int64_t position) const {
  return is_float(dtype) ? load_float(data.data(), dtype, position)
                         : static_cast<double>(load_int(data.data(), dtype, position));
}

int64_t Tensor::get_int(int64_t position) const {
  PRUNERC_CHECK(!is_float(dtype), "get_int of a float tensor");
  return load_int(data.data(), dtype, position);
}

void Tensor::set(int64_t position, double value) {
  if (is_float(dtype)) {
    store_float(data.data(), dtype, position, value);
  } else {
    set_int(position, is_bool(dtype) ? value != 0 : saturate_to(dtype, value));
  }
}

void Tensor::set_int(int64_t position, int64_t value) {
  PRUNERC_CHECK(!is_float(dtype), "set_int of a float tensor");
  store_int(data.data(), dtype, position, wrap_to(dtype, value));
}

Tensor tensor_from(DType dtype, std::vector<int64_t> shape,
                   const std::function<double(int64_t)>& f) {
  Tensor tensor(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set(i, f(i));
  return tensor;
}

Tensor random_ints(DType dtype, std::vector<int64_t> shape, int64_t low, int64_t high, Rng& rng) {
  return tensor_from(dtype, std::move(shape),
                     [&](int64_t) { return static_cast<double>(rng.between(low, high)); });
}

Tensor random_normal(DType dtype, std::vector<int64_t> shape, Rng& rng) {
  constexpr double kTwoPi = 6.283185307179586;
  return tensor_from(dtype, std::move(shape), [&](int64_t) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - rng.uniform()));  // Box-Muller
    return radius * std::cos(kTwoPi * rng.uniform());
  });
}

std::vector<int64_t> shape_of(const Buffer& buffer, std::span<const int64_t> params) {
  std::vector<int64_t> shape;
  for (Expr extent : buffer.shape) shape.push_back(evaluate_params(extent, params).value_or(-1));
  return shape;
}

std::string to_string(const Tensor& tensor) {
  constexpr int64_t kMaxShown = 64;
  std::string text(to_string(tensor.dtype));
  text += "[";
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(tensor.shape[i]);
  }
  text += "]";
  if (tensor.num_elements() > kMaxShown) return text;
  text += " {";
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    char number[40];
    std::snprintf(number, sizeof(number), "%s%.9g", i == 0 ? "" : ", ", tensor.get(i));
    text += number;
  }
  return text + "}";
}

}  // namespace prunerc::ir

// Host tensors: aligned storage, .npy files, named fills.
#ifndef PRUNERC_TOOLS_DRIVER_TENSOR_H_
#define PRUNERC_TOOLS_DRIVER_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "ir/support/result.h"

namespace prunerc {

/// Dense, row-major, 64-byte aligned; f16 and bf16 are stored as their 16 bits, bool as one byte. Movable.
class Tensor {
 public:
  Tensor() = default;
  /// Zero-filled. Shape: any rank; a scalar has none.
  Tensor(ir::DType dtype, std::vector<int64_t> shape);

  ir::DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t num_elems() const { return num_elems_; }
  int64_t num_bytes() const { return num_elems_ * ir::byte_size(dtype_); }
  void* data() { return data_.get(); }
  const void* data() const { return data_.get(); }

  /// Element `i` of the flat array; set rounds or saturates to the type.
  double get(int64_t i) const;
  void set(int64_t i, double value);

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  ir::DType dtype_ = ir::DType::kF32;
  std::vector<int64_t> shape_;
  int64_t num_elems_ = 0;
  std::unique_ptr<std::byte, Free> data_;
};

/// Reads a .npy file (versions 1 to 3, little endian, C order; bf16 as a two-byte void as ml_dtypes writes it).
/// Errors: IoError, NpyMalformed.
Result<Tensor> read_npy(const std::string& path);
/// The same from bytes. Total: any bytes give a tensor or an error.
Result<Tensor> parse_npy(std::string_view bytes);
/// Writes a .npy file; the file appears whole or not at all. Errors: IoError.
Result<void> write_npy(const std::string& path, const Tensor& tensor);
std::string npy_bytes(const Tensor& tensor);

/// Fills by name: "zeros", "ones", "arange", "rand:uniform(-1,1):seed=7", "rand:normal", "rand:int(-3,3)".
/// Integers get whole numbers of the range. Errors: FillUnknown.
Result<void> fill(Tensor& tensor, std::string_view description);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_TENSOR_H_

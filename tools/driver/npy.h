// Tensors in files (.npy) and by name ("rand:uniform(-1,1):seed=7").
#ifndef PRUNERC_TOOLS_DRIVER_NPY_H_
#define PRUNERC_TOOLS_DRIVER_NPY_H_

#include "ir/interp/tensor.h"
#include "ir/support/file.h"
#include "ir/support/result.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prunerc {

/// An open .npy file of which only the header was read: what it holds can be refused before there is
/// memory for it.
class NpyFile {
 public:
  /// Errors: as read_npy.
  static Result<NpyFile> open(const std::string& path);
  ir::DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  /// To be called once.
  Result<ir::Tensor> read();

 private:
  explicit NpyFile(InputFile file) : file_(std::move(file)) {}
  InputFile file_;
  std::string path_;
  std::string begin_;  // bytes of the data that came with the header
  ir::DType dtype_ = ir::DType::kF32;
  std::vector<int64_t> shape_;
  bool is_swapped_ = false;
};

/// Reads a .npy file (versions 1 to 3, either byte order, C order; bf16 as a two-byte void as ml_dtypes
/// writes it). Errors: IoError, FileKind, NpyMalformed.
Result<ir::Tensor> read_npy(const std::string& path);
/// The same from bytes. Total: any bytes give a tensor or an error.
Result<ir::Tensor> parse_npy(std::string_view bytes);
/// Writes a .npy file; the file appears whole or not at all. Errors: IoError.
Result<void> write_npy(const std::string& path, const ir::Tensor& tensor);
std::string npy_bytes(const ir::Tensor& tensor);

/// Fills by name: "zeros", "ones", "arange", "rand:uniform(-1,1):seed=7", "rand:normal",
/// "rand:int(-3,3)". Integers get whole numbers of the range. Errors: FillUnknown.
Result<void> fill(ir::Tensor& tensor, std::string_view description);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_NPY_H_

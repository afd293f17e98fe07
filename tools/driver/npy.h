// Tensors in files (.npy) and by name ("rand:uniform(-1,1):seed=7").
#ifndef PRUNERC_TOOLS_DRIVER_NPY_H_
#define PRUNERC_TOOLS_DRIVER_NPY_H_

#include "ir/interp/tensor.h"
#include "ir/support/result.h"

#include <string>
#include <string_view>

namespace prunerc {

/// Reads a .npy file (versions 1 to 3, either byte order, C order; bf16 as a two-byte void as ml_dtypes
/// writes it). Errors: IoError, NpyMalformed.
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

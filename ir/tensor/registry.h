// The texts of the registered tensor intrinsics; see TensorIntrinsic for their form.
#ifndef PRUNERC_IR_TENSOR_REGISTRY_H_
#define PRUNERC_IR_TENSOR_REGISTRY_H_

#include <span>
#include <string_view>
#include <vector>

namespace prunerc::ir {

std::span<const std::string_view> cpu_tensor_texts();
std::span<const std::string_view> cuda_tensor_texts();
std::span<const std::string_view> ldmatrix_tensor_texts();
/// Both.
std::vector<std::string_view> tensor_texts();

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_TENSOR_REGISTRY_H_

// The texts of the registered tensor intrinsics; see TensorIntrinsic for their form.
#ifndef PRUNERC_IR_TENSOR_REGISTRY_H_
#define PRUNERC_IR_TENSOR_REGISTRY_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::ir {

std::vector<std::string> cpu_tensor_texts();
std::vector<std::string> x86_tensor_texts();
std::vector<std::string> amx_tensor_texts();
std::vector<std::string> cuda_tensor_texts();
std::vector<std::string> ldmatrix_tensor_texts();
std::vector<std::string> wgmma_tensor_texts();
/// All.
std::vector<std::string> tensor_texts();

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_TENSOR_REGISTRY_H_

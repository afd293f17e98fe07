// ONNX models as networks.
#ifndef PRUNERC_TOOLS_DRIVER_NETWORK_ONNX_H_
#define PRUNERC_TOOLS_DRIVER_NETWORK_ONNX_H_

#include "ir/onnx/model.h"
#include "tools/driver/network/network.h"

#include <string>
#include <string_view>
#include <vector>

namespace prunerc {

/// Whether the file is taken for an ONNX model: by its name.
bool is_onnx(std::string_view file);

/// A run that somebody recorded, by port of the net.
struct RecordedRun {
  std::string folder;
  std::vector<ir::Tensor> inputs, outputs;
};
/// Those in folders test_data_set_* beside the model (input_0.pb, output_0.pb, ...), as ONNX's own tests
/// have them. Of runs that the request is not about `left_out` says why: their inputs have other sizes,
/// where it chooses some, or they have other constants than it gives. Errors: those of onnx::read_tensor
/// and given_constant; UsageShape.
Result<std::vector<RecordedRun>> read_recorded(const OperatorRequest& request, const LoadedNet& net,
                                               std::vector<std::string>* left_out);

/// Of a request: "@FILE.npy" or a whole number. Errors: UsageOption; those of read_npy.
Result<ir::Tensor> given_constant(const std::string& name, const std::string& text);

/// Reads, imports and compiles the text of the net, and runs passes over it. `bindings` of the request give named dimensions,
/// `shapes` those of inputs, `constants` inputs that are the same in every run. Errors: those of
/// onnx::read_model and onnx::import_model; OperatorText; those of read_npy.
Result<LoadedNet> load_onnx(const OperatorRequest& request);
/// The same of a model that was read.
Result<LoadedNet> load_onnx(const OperatorRequest& request, const onnx::Model& model);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_NETWORK_ONNX_H_

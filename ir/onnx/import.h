// ONNX -> `.prn`: each node becomes calls of small operators, written out with all sizes.
#ifndef PRUNERC_IR_ONNX_IMPORT_H_
#define PRUNERC_IR_ONNX_IMPORT_H_

#include "ir/net/weights.h"
#include "ir/onnx/model.h"

#include <map>
#include <string>
#include <vector>

namespace prunerc::onnx {

struct ImportOptions {
  std::map<std::string, int64_t> dims;  ///< named dimensions; "x.0" is x's first if it has no name
  /// Inputs that are the same in every run; one that the model gives itself, too.
  std::map<std::string, ir::Tensor> constants;
  bool partial = false;  ///< leave out what has no row, and what follows from it
};

struct ImportedNet {
  std::string text;         ///< a net with its operators; its constants name `weights`
  net::WeightFile weights;  ///< bytes of the model, kept as long as this lives
  std::vector<std::string>
      input_names;  ///< as the model has them, in the order of the net's inputs
  std::vector<std::string> output_names;
  std::vector<std::string>
      fed_names;  ///< all inputs that the model does not give itself, in its order
  std::vector<std::string> left_out;   ///< with `partial`: "NonMaxSuppression (2 nodes: ...): why"
  std::vector<std::string> in_floats;  ///< what stands between quantisers and stays so, likewise
};

/// Errors: OnnxMalformed; OnnxDims (unbound, with the list); OnnxDimUnknown; UsageUnknownTensor,
/// UsageShape (what is given is no input, or another type or shape); OnnxUnsupported, with all that is
/// missing at once; OnnxOperand (an operand that must be known).
Result<ImportedNet> import_model(const Model& model, const ImportOptions& options = {});

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_IMPORT_H_

#include "tools/driver/network/onnx.h"

#include "ir/lang/lang.h"
#include "ir/onnx/import.h"
#include "ir/support/file.h"
#include "tools/driver/npy.h"
#include "tools/driver/operator.h"

#include <fmt/format.h>

#include <charconv>

namespace prunerc {
namespace {

Result<onnx::ImportOptions> options_of(const OperatorRequest& request, const onnx::Model& model) {
  onnx::ImportOptions options;
  options.partial = request.partial;
  // An array that is given says what its dimensions are; -D goes before.
  for (const onnx::ValueInfo& info : model.graph.inputs) {
    const auto given = request.shapes.find(info.name);
    if (given == request.shapes.end()) continue;
    PRUNERC_TRY(const std::vector<int64_t> shape, parse_shape(info.name, given->second));
    for (std::size_t i = 0; i < shape.size() && i < info.shape.size(); ++i) {
      if (info.shape[i].value < 0) options.dims.emplace(onnx::dim_name(info, i), shape[i]);
    }
  }
  for (const auto& [name, text] : request.bindings) {
    int64_t value = 0;
    const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || stop != text.data() + text.size() || value < 1)
      return error(Diag::kUsageOption, "-D", fmt::format("needs {}=N, found '{}'", name, text));
    options.dims[name] = value;
  }
  for (const auto& [name, text] : request.constants) {
    PRUNERC_TRY(ir::Tensor tensor, given_constant(name, text));
    options.constants.emplace(name, std::move(tensor));
  }
  return options;
}

}  // namespace

bool is_onnx(std::string_view file) { return file.ends_with(".onnx"); }

Result<ir::Tensor> given_constant(const std::string& name, const std::string& text) {
  if (text.starts_with("@")) return read_npy(text.substr(1));
  // A number is a scalar of whole numbers, as axes and sizes are.
  int64_t number = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || stop != text.data() + text.size()) {
    return error(Diag::kUsageOption, "--const",
                 fmt::format("needs {}=@FILE.npy or a whole number, found '{}'", name, text));
  }
  ir::Tensor tensor(ir::DType::kI64, {});
  tensor.set_int(0, number);
  return tensor;
}

Result<LoadedNet> load_onnx(const OperatorRequest& request) {
  PRUNERC_TRY(const onnx::Model model, onnx::read_model(request.file));
  return load_onnx(request, model);
}

Result<LoadedNet> load_onnx(const OperatorRequest& request, const onnx::Model& model) {
  if (!request.op.empty())
    return error(Diag::kUsageOption, "--op", "chooses an operator of a .prn file, not of a model");
  PRUNERC_TRY(const onnx::ImportOptions options, options_of(request, model));
  PRUNERC_TRY(onnx::ImportedNet imported, onnx::import_model(model, options));
  lang::CompileInput input;
  input.file_name = request.file;
  input.text = imported.text;
  input.max_bytes = lang::kMaxNetBytes;
  lang::NetResult result = lang::compile_net(input);
  if (!result.net) return error(Diag::kOperatorText, result.rendered);
  LoadedNet net;
  net.net = std::move(*result.net);
  net.weights = std::move(imported.weights);
  net.input_names = std::move(imported.input_names);
  net.output_names = std::move(imported.output_names);
  net.fed_names = std::move(imported.fed_names);
  net.files = model.files;
  for (const std::string& line : imported.left_out)
    net.warnings += fmt::format("left out: {}\n", line);
  for (const std::string& line : imported.in_floats)
    net.warnings += fmt::format("note: in floats, not in 8 bits: {}\n", line);
  PRUNERC_TRY_VOID(run_passes(request, net));
  return net;
}

}  // namespace prunerc

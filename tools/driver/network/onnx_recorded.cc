// Recorded runs beside a model, in the folders that ONNX's own tests have.
#include "ir/onnx/model.h"
#include "tools/driver/network/onnx.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace prunerc {
namespace {

namespace fs = std::filesystem;

Result<ir::Tensor> read_port(const fs::path& file, const net::Tensor& port) {
  PRUNERC_TRY(ir::Tensor tensor, onnx::read_tensor(file.string()));
  if (tensor.dtype == port.dtype && tensor.shape == port.shape) return tensor;
  return error(Diag::kUsageShape, file.string(), net::type_text(port),
               fmt::format("{}[{}]", ir::to_string(tensor.dtype), fmt::join(tensor.shape, ",")));
}

fs::path folder_of(const std::string& model_path, int run) {
  return fs::path(model_path).parent_path() / fmt::format("test_data_set_{}", run);
}

// The places of the net's outputs among the model's. Fewer: one is none of them, since part of the
// model was left out.
std::vector<std::size_t> output_places(const onnx::Model& model, const LoadedNet& loaded) {
  std::vector<std::size_t> places;
  for (const std::string& name : loaded.output_names) {
    const std::vector<onnx::ValueInfo>& outputs = model.graph.outputs;
    const auto found = std::find_if(outputs.begin(), outputs.end(),
                                    [&](const onnx::ValueInfo& info) { return info.name == name; });
    if (found != outputs.end()) places.push_back(static_cast<std::size_t>(found - outputs.begin()));
  }
  return places;
}

// The places of the net's inputs among those that the model is fed.
std::vector<std::size_t> input_places(const LoadedNet& loaded) {
  std::vector<std::size_t> places;
  for (const std::string& name : loaded.input_names) {
    const auto fed = std::find(loaded.fed_names.begin(), loaded.fed_names.end(), name);
    places.push_back(static_cast<std::size_t>(fed - loaded.fed_names.begin()));
  }
  return places;
}

// "input_0.pb" of place 0 and so on; false if one is not there.
Result<bool> read_ports(const fs::path& folder, std::string_view kind,
                        const std::vector<std::size_t>& places, const net::Net& net,
                        const std::vector<std::size_t>& ports, std::vector<ir::Tensor>* tensors) {
  for (std::size_t p = 0; p < ports.size(); ++p) {
    const fs::path file = folder / fmt::format("{}_{}.pb", kind, places[p]);
    std::error_code code;
    if (!fs::exists(file, code)) return false;
    PRUNERC_TRY(ir::Tensor tensor, read_port(file, net.tensors[ports[p]]));
    tensors->push_back(std::move(tensor));
  }
  return true;
}

}  // namespace

Result<std::vector<RecordedRun>> read_recorded(const std::string& model_path,
                                               const LoadedNet& loaded, OtherShapes others) {
  const net::Net& net = loaded.net;
  std::vector<RecordedRun> runs;
  std::error_code code;
  if (!fs::is_directory(folder_of(model_path, 0), code)) return runs;
  PRUNERC_TRY(const onnx::Model model, onnx::read_model(model_path));
  const std::vector<std::size_t> places = output_places(model, loaded);
  if (places.size() != net.outputs.size()) return runs;
  for (int i = 0;; ++i) {
    const fs::path folder = folder_of(model_path, i);
    if (!fs::is_directory(folder, code)) return runs;
    RecordedRun run;
    run.folder = folder.string();
    Result<bool> inputs =
        read_ports(folder, "input", input_places(loaded), net, net.inputs, &run.inputs);
    const bool is_other = !inputs.ok() && inputs.error().id() == Diag::kUsageShape;
    if (is_other && others == OtherShapes::kSkip) continue;
    PRUNERC_TRY(const bool has_inputs, std::move(inputs));
    if (!has_inputs) return runs;
    PRUNERC_TRY(const bool has_outputs,
                read_ports(folder, "output", places, net, net.outputs, &run.outputs));
    if (!has_outputs) return runs;
    runs.push_back(std::move(run));
  }
}

}  // namespace prunerc

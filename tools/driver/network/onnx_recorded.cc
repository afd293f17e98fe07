// Recorded runs beside a model, in the folders that ONNX's own tests have.
#include "ir/onnx/model.h"
#include "tools/driver/network/onnx.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace prunerc {
namespace {

namespace fs = std::filesystem;

// `is_other`, if given: set where the extents alone differ, which is an error otherwise.
Result<ir::Tensor> read_port(const fs::path& file, const net::Tensor& port, bool* is_other) {
  PRUNERC_TRY(ir::Tensor tensor, onnx::read_tensor(file.string()));
  if (tensor.dtype == port.dtype && tensor.shape == port.shape) return tensor;
  if (is_other != nullptr && tensor.dtype == port.dtype &&
      tensor.shape.size() == port.shape.size()) {
    *is_other = true;
    return tensor;
  }
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
                        const std::vector<std::size_t>& ports, bool* is_other,
                        std::vector<ir::Tensor>* tensors) {
  for (std::size_t p = 0; p < ports.size(); ++p) {
    const fs::path file = folder / fmt::format("{}_{}.pb", kind, places[p]);
    std::error_code code;
    if (!fs::exists(file, code)) return false;
    PRUNERC_TRY(ir::Tensor tensor, read_port(file, net.tensors[ports[p]], is_other));
    tensors->push_back(std::move(tensor));
  }
  return true;
}

// What an input or a tensor of the model was in the run, as far as it is known.
Result<std::optional<ir::Tensor>> recorded_constant(const fs::path& folder, const std::string& name,
                                                    const onnx::Model& model,
                                                    const LoadedNet& loaded) {
  const auto fed = std::find(loaded.fed_names.begin(), loaded.fed_names.end(), name);
  if (fed != loaded.fed_names.end()) {
    const fs::path file = folder / fmt::format("input_{}.pb", fed - loaded.fed_names.begin());
    std::error_code code;
    if (!fs::exists(file, code)) return std::optional<ir::Tensor>();
    PRUNERC_TRY(ir::Tensor tensor, onnx::read_tensor(file.string()));
    return std::optional<ir::Tensor>(std::move(tensor));
  }
  for (const auto& [own, constant] : model.graph.initializers) {
    if (own == name && constant.dtype) return std::optional<ir::Tensor>(tensor_of(constant));
  }
  return std::optional<ir::Tensor>();
}

// Whether the run was recorded with what the request gives.
Result<bool> has_constants(const fs::path& folder, const OperatorRequest& request,
                           const onnx::Model& model, const LoadedNet& loaded) {
  for (const auto& [name, text] : request.constants) {
    PRUNERC_TRY(ir::Tensor given, given_constant(name, text));
    PRUNERC_TRY(const std::optional<ir::Tensor> recorded,
                recorded_constant(folder, name, model, loaded));
    // A number alone stands for a tensor of one element.
    if (recorded && given.shape.empty() && recorded->num_elements() == 1)
      given.shape = recorded->shape;
    if (!recorded || *recorded != given) return false;
  }
  return true;
}

}  // namespace

Result<std::vector<RecordedRun>> read_recorded(const OperatorRequest& request,
                                               const LoadedNet& loaded,
                                               std::vector<std::string>* left_out) {
  const net::Net& net = loaded.net;
  const bool is_chosen = !request.bindings.empty() || !request.lists.empty();
  std::vector<RecordedRun> runs;
  std::error_code code;
  if (!fs::is_directory(folder_of(request.file, 0), code)) return runs;
  PRUNERC_TRY(const onnx::Model model, onnx::read_model(request.file));
  const std::vector<std::size_t> places = output_places(model, loaded);
  if (places.size() != net.outputs.size()) return runs;
  for (int i = 0;; ++i) {
    const fs::path folder = folder_of(request.file, i);
    if (!fs::is_directory(folder, code)) return runs;
    RecordedRun run;
    run.folder = folder.string();
    PRUNERC_TRY(const bool is_with_these, has_constants(folder, request, model, loaded));
    if (!is_with_these) {
      left_out->push_back(run.folder + " does not have the constants of --const");
      continue;
    }
    bool is_other = false;
    PRUNERC_TRY(const bool has_inputs,
                read_ports(folder, "input", input_places(loaded), net, net.inputs,
                           is_chosen ? &is_other : nullptr, &run.inputs));
    if (!has_inputs) return runs;
    if (is_other) {
      left_out->push_back(run.folder + " is of other sizes");
      continue;
    }
    PRUNERC_TRY(const bool has_outputs,
                read_ports(folder, "output", places, net, net.outputs, nullptr, &run.outputs));
    if (!has_outputs) return runs;
    runs.push_back(std::move(run));
  }
}

}  // namespace prunerc

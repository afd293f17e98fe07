// Recorded runs beside a model, in the folders that ONNX's own tests have.
#include "ir/onnx/model.h"
#include "tools/driver/onnx.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace prunerc {
namespace {

namespace fs = std::filesystem;

Result<ir::Tensor> read_port(const fs::path& file, const net::Tensor& port) {
  PRUNERC_TRY(ir::Tensor tensor, onnx::read_tensor(file.string()));
  if (tensor.dtype == port.dtype && tensor.shape == port.shape) return tensor;
  return error(Diag::kUsageShape, file.string(), net::type_text(port),
               fmt::format("{}[{}]", ir::to_string(tensor.dtype), fmt::join(tensor.shape, ",")));
}

}  // namespace

Result<std::vector<RecordedRun>> read_recorded(const std::string& model_path,
                                               const LoadedNet& loaded) {
  const net::Net& net = loaded.net;
  std::vector<RecordedRun> runs;
  std::error_code code;
  for (int i = 0;; ++i) {
    const fs::path folder = fs::path(model_path).parent_path() / fmt::format("test_data_set_{}", i);
    if (!fs::is_directory(folder, code)) return runs;
    RecordedRun run;
    run.folder = folder.string();
    for (std::size_t p = 0; p < net.inputs.size(); ++p) {
      const auto fed =
          std::find(loaded.fed_names.begin(), loaded.fed_names.end(), loaded.input_names[p]);
      const fs::path file = folder / fmt::format("input_{}.pb", fed - loaded.fed_names.begin());
      if (!fs::exists(file, code)) return runs;
      PRUNERC_TRY(ir::Tensor tensor, read_port(file, net.tensors[net.inputs[p]]));
      run.inputs.push_back(std::move(tensor));
    }
    for (std::size_t p = 0; p < net.outputs.size(); ++p) {
      const fs::path file = folder / fmt::format("output_{}.pb", p);
      if (!fs::exists(file, code)) return runs;
      PRUNERC_TRY(ir::Tensor tensor, read_port(file, net.tensors[net.outputs[p]]));
      run.outputs.push_back(std::move(tensor));
    }
    runs.push_back(std::move(run));
  }
}

}  // namespace prunerc

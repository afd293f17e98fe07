#include "tests/onnx/cases.h"

#include "ir/interp/interpreter.h"
#include "ir/lang/lang.h"
#include "ir/onnx/import.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>
#include <vector>

namespace prunerc::onnx {
namespace {

namespace fs = std::filesystem;

Result<std::map<std::string, ir::Tensor>> read_set(const fs::path& folder, const std::string& stem,
                                                   const std::vector<ValueInfo>& infos) {
  std::map<std::string, ir::Tensor> out;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const fs::path file = folder / fmt::format("{}_{}.pb", stem, i);
    if (!fs::exists(file)) continue;
    PRUNERC_TRY(ir::Tensor tensor, read_tensor(file.string()));
    out.emplace(infos[i].name, std::move(tensor));
  }
  return out;
}

std::string difference(const std::string& name, const ir::Tensor& got, const ir::Tensor& want,
                       const CaseOptions& options) {
  if (got.dtype != want.dtype || got.shape != want.shape)
    return fmt::format("{} is {}[{}], recorded is {}[{}]", name, ir::to_string(got.dtype),
                       fmt::join(got.shape, ","), ir::to_string(want.dtype),
                       fmt::join(want.shape, ","));
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const double g = got.get(i), w = want.get(i);
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    // Of an infinity any allowance would be infinite.
    const bool is_number = std::isfinite(w);
    if (is_number && ir::is_float(want.dtype) &&
        std::fabs(g - w) <= options.absolute + options.relative * std::fabs(w))
      continue;
    // The recorded one was rounded to 8 bits from a float.
    if (is_number && want.dtype == ir::DType::kF16 &&
        std::fabs(g - w) <= 2e-3 * std::max(1.0, std::fabs(w)))
      continue;
    return fmt::format("{}[{}] is {}, recorded is {}", name, i, g, w);
  }
  return {};
}

Result<std::vector<ir::Tensor>> evaluate(const net::Net& net, const ImportedNet& imported,
                                         const std::map<std::string, ir::Tensor>& inputs) {
  std::vector<ir::Tensor> known(net.tensors.size());
  for (std::size_t i = 0; i < net.inputs.size(); ++i)
    known[net.inputs[i]] = inputs.at(imported.input_names[i]);
  for (std::size_t i = 0; i < net.tensors.size(); ++i) {
    const net::Tensor& tensor = net.tensors[i];
    if (tensor.role != net::Role::kConst) continue;
    known[i] = ir::Tensor(tensor.dtype, tensor.shape);
    if (tensor.value) {
      for (int64_t e = 0; e < known[i].num_elements(); ++e) known[i].set(e, *tensor.value);
      continue;
    }
    const net::Weight* const weight = imported.weights.find(tensor.weight);
    if (weight == nullptr) return error(Diag::kInternal, "no weight " + tensor.weight);
    std::memcpy(known[i].data.data(), weight->bytes.data(), weight->bytes.size());
  }
  for (const net::Call& call : net.calls) {
    std::vector<ir::Tensor> args;
    for (const std::size_t arg : call.args) args.push_back(known[arg]);
    PRUNERC_TRY(std::vector<ir::Tensor> results, ir::interpret(net.programs[call.program], args));
    for (std::size_t i = 0; i < results.size(); ++i) known[call.results[i]] = std::move(results[i]);
  }
  std::vector<ir::Tensor> outputs;
  for (const std::size_t i : net.outputs) outputs.push_back(std::move(known[i]));
  return outputs;
}

// Operands that must be known are given as constants, one after the other.
Result<ImportedNet> import_with(const Model& model, const std::map<std::string, ir::Tensor>& inputs,
                                ImportOptions options) {
  for (int attempt = 0;; ++attempt) {
    Result<ImportedNet> imported = import_model(model, options);
    if (imported.ok() || imported.error().id() != Diag::kOnnxOperand || attempt == 8)
      return imported;
    const std::string name = std::get<std::string>(imported.error().data().args[2]);
    const auto found = inputs.find(name);
    if (found == inputs.end() || options.constants.contains(name)) return imported;
    options.constants.emplace(name, found->second);
  }
}

Verdict run_set(const Model& model, const fs::path& folder, const CaseOptions& how) {
  const Result<std::map<std::string, ir::Tensor>> inputs =
      read_set(folder, "input", model.graph.inputs);
  if (!inputs.ok()) return {"unsupported", inputs.error().message()};
  const Result<std::map<std::string, ir::Tensor>> outputs =
      read_set(folder, "output", model.graph.outputs);
  if (!outputs.ok()) return {"unsupported", outputs.error().message()};
  ImportOptions options;
  for (const ValueInfo& info : model.graph.inputs) {
    const auto given = inputs->find(info.name);
    if (given == inputs->end()) continue;
    if (!info.has_shape) options.constants.emplace(info.name, given->second);
    for (std::size_t i = 0; i < info.shape.size() && i < given->second.shape.size(); ++i) {
      const Dim& dim = info.shape[i];
      if (dim.value < 0)
        options.dims[dim.name.empty() ? fmt::format("{}.{}", info.name, i) : dim.name] =
            given->second.shape[i];
    }
  }
  const Result<ImportedNet> imported = import_with(model, *inputs, options);
  if (!imported.ok()) {
    const Diag id = imported.error().id();
    const bool is_said =
        id == Diag::kOnnxUnsupported || id == Diag::kOnnxOperand || id == Diag::kOnnxDims;
    return {is_said ? "unsupported" : "error", imported.error().message()};
  }
  if (how.verbose) fmt::print("{}\n", imported->text);
  lang::CompileInput input;
  input.file_name = "model.onnx";
  input.text = imported->text;
  input.max_bytes = lang::kMaxNetBytes;
  const lang::NetResult net = lang::compile_net(input);
  if (!net.net) return {"error", net.rendered};
  const Result<std::vector<ir::Tensor>> results = evaluate(*net.net, *imported, *inputs);
  if (!results.ok()) return {"error", results.error().message()};
  for (std::size_t i = 0; i < results->size(); ++i) {
    const std::string& name = imported->output_names[i];
    const auto want = outputs->find(name);
    if (want == outputs->end()) continue;
    const std::string what = difference(name, (*results)[i], want->second, how);
    if (!what.empty()) return {"wrong", what};
  }
  return {"pass", ""};
}

}  // namespace

Verdict run_case(const fs::path& folder, const CaseOptions& options) {
  const Result<Model> model = read_model((folder / "model.onnx").string());
  if (!model.ok()) return {"unsupported", model.error().message()};
  Verdict verdict{"error", "no data"};
  for (int i = 0; fs::exists(folder / fmt::format("test_data_set_{}", i)); ++i) {
    verdict = run_set(*model, folder / fmt::format("test_data_set_{}", i), options);
    if (verdict.kind != "pass") break;
  }
  return verdict;
}

}  // namespace prunerc::onnx

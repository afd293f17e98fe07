#include "tools/prunerc/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace prunerc::cli {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

std::string type_text(ir::DType dtype, const std::vector<int64_t>& shape) {
  return fmt::format("{}[{}]", ir::to_string(dtype), fmt::join(shape, ", "));
}

// An input without its @ would be an unknown fill, an output with one a file of an odd name.
Result<void> check_at_signs(const Named& inputs, const Named& outputs) {
  std::error_code ignored;
  for (const auto& [name, source] : inputs) {
    if (source.starts_with("@")) continue;
    if (!source.ends_with(".npy") && !std::filesystem::exists(source, ignored)) continue;
    return error(Diag::kUsageOption, "--input",
                 fmt::format("'{1}' is no fill; did you mean {0}=@{1}?", name, source));
  }
  for (const auto& [name, file] : outputs) {
    if (!file.starts_with("@")) continue;
    return error(
        Diag::kUsageOption, "--output",
        fmt::format("takes the name of a file; did you mean {}={}?", name, file.substr(1)));
  }
  return {};
}

// The .npy files among the inputs.
Result<Files> open_files(const Named& inputs) {
  Files files;
  for (const auto& [name, source] : inputs) {
    if (source.substr(0, 1) != "@") continue;
    PRUNERC_TRY(NpyFile file, NpyFile::open(source.substr(1)));
    files.emplace(name, std::move(file));
  }
  return files;
}

void print_summary(const std::string& name, const ir::Tensor& tensor) {
  constexpr int64_t kShown = 8;
  std::string values;
  for (int64_t i = 0; i < std::min(tensor.num_elements(), kShown); ++i) {
    values += fmt::format("{}{:.6g}", i == 0 ? "" : ", ", tensor.get(i));
  }
  if (tensor.num_elements() > kShown) values += ", ...";
  fmt::print("{}: {} = {}\n", name, type_text(tensor.dtype, tensor.shape), values);
}

}  // namespace

std::vector<Port> ports_of(const Operator& op) {
  std::vector<Port> ports;
  for (const ir::BufferId id : op.program.params()) {
    const ir::Buffer& buffer = op.program.buffer(id);
    ports.push_back({std::string(buffer.name), buffer.dtype, ir::shape_of(buffer),
                     buffer.role == ir::BufferRole::kInput});
  }
  return ports;
}

std::vector<Port> ports_of(const net::Net& net) {
  std::vector<Port> ports;
  for (const auto& [list, is_input] : {std::pair(&net.inputs, true), {&net.outputs, false}}) {
    for (const std::size_t i : *list)
      ports.push_back({net.tensors[i].name, net.tensors[i].dtype, net.tensors[i].shape, is_input});
  }
  return ports;
}

void ArrayOptions::add_to(CLI::App& verb) {
  verb.add_option("--input", inputs,
                  "A=@a.npy, or A= with one of zeros, ones, arange, rand:uniform(a,b):seed=n,"
                  " rand:normal(mean,deviation):seed=n, rand:int(a,b):seed=n")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  verb.add_option("--output", outputs, "C=c.npy; without any, outputs are summarised")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  in_group(verb, "Arrays");
}

Result<Arrays> open_arrays(const ArrayOptions& options) {
  Arrays arrays;
  PRUNERC_TRY(arrays.inputs, named(options.inputs, "--input"));
  PRUNERC_TRY(arrays.outputs, named(options.outputs, "--output"));
  PRUNERC_TRY_VOID(check_at_signs(arrays.inputs, arrays.outputs));
  PRUNERC_TRY(arrays.files, open_files(arrays.inputs));
  return arrays;
}

void add_shapes(const Arrays& arrays, OperatorRequest* request) {
  for (const auto& [name, file] : arrays.files) {
    if (!file.shape().empty()) request->shapes.try_emplace(name, shape_text(file.shape()));
  }
}

Result<void> check_names(const std::string& owner, const std::vector<Port>& ports,
                         const Arrays& arrays) {
  for (const auto& [given, is_input] :
       {std::pair(&arrays.inputs, true), {&arrays.outputs, false}}) {
    std::vector<std::string> known;
    for (const Port& port : ports) {
      if (port.is_input == is_input) known.push_back(port.name);
    }
    for (const auto& [name, value] : *given) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      return error(Diag::kUsageUnknownTensor, owner,
                   fmt::format("{} '{}'", is_input ? "input" : "output", name),
                   known.empty() ? "none" : fmt::format("'{}'", fmt::join(known, "', '")));
    }
  }
  return {};
}

Result<std::vector<ir::Tensor>> gather(const std::vector<Port>& ports, Arrays& arrays) {
  std::vector<ir::Tensor> tensors;
  for (const Port& port : ports) {
    if (!port.is_input) continue;
    const auto given = arrays.inputs.find(port.name);
    if (given == arrays.inputs.end()) {
      return error(
          Diag::kUsageOption, "--input",
          fmt::format("'{0}' ({1}) is missing; give {0}=@file.npy or {0}=rand:uniform(-1,1)",
                      port.name, type_text(port.dtype, port.shape)));
    }
    if (const auto file = arrays.files.find(port.name); file != arrays.files.end()) {
      NpyFile& npy = file->second;
      if (npy.dtype() != port.dtype || npy.shape() != port.shape) {
        return error(Diag::kUsageShape, port.name, type_text(port.dtype, port.shape),
                     type_text(npy.dtype(), npy.shape()));
      }
      PRUNERC_TRY(ir::Tensor tensor, npy.read());
      tensors.push_back(std::move(tensor));
      continue;
    }
    ir::Tensor tensor(port.dtype, port.shape);
    PRUNERC_TRY_VOID(fill(tensor, given->second));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<void> deliver(const std::vector<Port>& ports, const std::vector<std::string>& bytes,
                     const Named& files) {
  std::size_t i = 0;
  for (const Port& port : ports) {
    if (port.is_input) continue;
    ir::Tensor tensor(port.dtype, port.shape);
    PRUNERC_CHECK(bytes[i].size() == tensor.data.size(), "whoever runs returns whole outputs");
    if (!bytes[i].empty()) std::memcpy(tensor.data.data(), bytes[i].data(), bytes[i].size());
    ++i;
    const auto file = files.find(port.name);
    if (file == files.end()) {
      if (files.empty()) print_summary(port.name, tensor);
      continue;
    }
    PRUNERC_TRY_VOID(write_npy(file->second, tensor));
    fmt::print(stderr, "wrote {}: {}\n", file->second, type_text(tensor.dtype, tensor.shape));
  }
  return {};
}

}  // namespace prunerc::cli

// An ONNX model as plain data: what the file says, checked for size and sense, nothing interpreted.
// Format: onnx/onnx.proto of the ONNX project.
#ifndef PRUNERC_IR_ONNX_MODEL_H_
#define PRUNERC_IR_ONNX_MODEL_H_

#include "ir/dtype.h"
#include "ir/interp/tensor.h"
#include "ir/support/result.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prunerc::onnx {

/// A tensor whose values the file holds. Bytes are little-endian and row-major, in the model's memory
/// or in a mapped file beside it, which `owner` keeps.
struct Constant {
  int32_t onnx_type = 0;           ///< TensorProto.DataType
  std::optional<ir::DType> dtype;  ///< empty: a type that we have not
  std::vector<int64_t> shape;
  std::string_view bytes;  ///< empty where there is neither dtype nor stand_in
  std::shared_ptr<const void> owner;
  /// Of integers of 4 and 16 bits, which have no dtype: that of `bytes`, which hold the same numbers wider.
  std::optional<ir::DType> stand_in = std::nullopt;

  int64_t num_elements() const;
};

/// A copy of a constant that has one of our types.
ir::Tensor tensor_of(const Constant& constant);

struct Graph;

/// The fields that the file sets; an attribute of a type that no row reads keeps none.
struct Attribute {
  std::string name;
  std::string refers_to;  ///< within a function: the attribute of the call that it stands for
  std::optional<float> f;
  std::optional<int64_t> i;
  std::optional<std::string> s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::optional<Constant> tensor;
  std::shared_ptr<const Graph> graph;
};

struct Node {
  std::string name;  ///< its first output's, if the file gives it none
  std::string op, domain;
  std::string overload;                      ///< which of the functions of one name; mostly empty
  std::vector<std::string> inputs, outputs;  ///< an empty name: not given
  std::vector<Attribute> attributes;
};

/// A dimension: a number, a name, or (neither) unknown.
struct Dim {
  int64_t value = -1;
  std::string name;
};

struct ValueInfo {
  std::string name;
  int32_t onnx_type = 0;  ///< 0: no tensor, or none is said
  bool has_shape = false;
  std::vector<Dim> shape;
};

/// The name of a dimension that has no value: its own, or "x.0" for the first of x.
std::string dim_name(const ValueInfo& info, std::size_t i);

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<std::pair<std::string, Constant>> initializers;
  std::vector<ValueInfo> inputs, outputs;
};

/// An operator that the model defines itself.
struct Function {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> defaults;  ///< of attributes that a call may leave out
  std::vector<Node> nodes;
  std::map<std::string, int64_t> opsets;
};

struct Model {
  std::string path;
  Graph graph;
  std::vector<Function> functions;
  std::map<std::string, int64_t> opsets;  ///< by domain; "" is ONNX's own
  std::vector<std::string> files;         ///< in the model's folder, with tensors that it reads
};

/// Limits of what is read.
inline constexpr std::size_t kMaxNodes = 100'000;
inline constexpr std::size_t kMaxRank = 16;
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;

/// Of a tensor whose elements have so many. Nullopt: a shape that cannot be, which one of no elements can be,
/// too: the product of any of its extents fits.
std::optional<int64_t> tensor_bytes(int64_t element_bytes, const std::vector<int64_t>& shape);

/// Reads a model and maps the tensors that lie in files beside it. Total: any bytes give a model or
/// an error. Errors: IoError, FileKind, TooMany, OnnxMalformed, OnnxExternal.
Result<Model> read_model(const std::string& path);
/// The same of bytes; `path` is shown in errors, and its folder is where further files lie.
Result<Model> parse_model(std::string_view bytes, const std::string& path);
/// One tensor in a file of its own (TensorProto), as test data come. Errors: as read_model;
/// Unsupported (its type).
Result<ir::Tensor> read_tensor(const std::string& path);

/// "float16"; "type 23" for one that has no name here.
std::string type_name(int32_t onnx_type);
std::optional<ir::DType> dtype_of(int32_t onnx_type);

/// Of names of files beside a model, in bytes.
inline constexpr std::size_t kMaxLocation = 4096;
/// A file of data beside a model. `location` must be a plain relative name that stays in `folder`,
/// without links. Errors: OnnxExternal.
struct MappedFile {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};
Result<MappedFile> map_external(const std::string& folder, const std::string& location);

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_MODEL_H_

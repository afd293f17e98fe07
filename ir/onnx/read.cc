// The only file that sees protobuf: ModelProto -> Model.
#include "ir/onnx/model.h"
#include "ir/support/file.h"

#include "third_party/onnx.pb.h"
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <tuple>

namespace prunerc::onnx {
namespace {

/// Graphs within attributes.
constexpr int kMaxDepth = 64;
/// protobuf's own limit of a message. Units: bytes.
constexpr uint64_t kMaxModelBytes = (uint64_t{1} << 31) - 1;
/// Of a file that are read at once. Units: bytes.
constexpr int kBlockBytes = 1 << 16;

struct TypeRow {
  int32_t number;
  const char* name;
  std::optional<ir::DType> dtype;
  int64_t bytes;  // 0: elements are not of one size, or two share a byte
  std::optional<ir::DType> stand_in = std::nullopt;
};
constexpr std::optional<ir::DType> kNone = std::nullopt;
constexpr int32_t kInt16 = 5, kInt4 = 22;
const TypeRow kTypes[] = {{1, "float", ir::DType::kF32, 4},
                          {2, "uint8", ir::DType::kU8, 1},
                          {3, "int8", ir::DType::kI8, 1},
                          {4, "uint16", kNone, 2, ir::DType::kI32},
                          {kInt16, "int16", kNone, 2, ir::DType::kI32},
                          {6, "int32", ir::DType::kI32, 4},
                          {7, "int64", ir::DType::kI64, 8},
                          {8, "string", kNone, 0},
                          {9, "bool", ir::DType::kBool, 1},
                          {10, "float16", ir::DType::kF16, 2},
                          {11, "double", ir::DType::kF64, 8},
                          {12, "uint32", kNone, 4},
                          {13, "uint64", kNone, 8},
                          {14, "complex64", kNone, 8},
                          {15, "complex128", kNone, 16},
                          {16, "bfloat16", ir::DType::kBF16, 2},
                          {17, "float8e4m3fn", kNone, 1},
                          {18, "float8e4m3fnuz", kNone, 1},
                          {19, "float8e5m2", kNone, 1},
                          {20, "float8e5m2fnuz", kNone, 1},
                          {21, "uint4", kNone, 0, ir::DType::kU8},
                          {kInt4, "int4", kNone, 0, ir::DType::kI8},
                          {23, "float4e2m1", kNone, 0}};

const TypeRow* find_type(int32_t number) {
  for (const TypeRow& row : kTypes) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

// Values of one of the typed fields, each written as the element type.
template <typename Wide, typename Field>
std::string packed(const Field& field) {
  std::string bytes(static_cast<std::size_t>(field.size()) * sizeof(Wide), '\0');
  std::size_t at = 0;
  for (const auto value : field) {
    const Wide element = static_cast<Wide>(value);
    std::memcpy(bytes.data() + at, &element, sizeof element);
    at += sizeof element;
  }
  return bytes;
}

std::string typed_bytes(const ::onnx::TensorProto& proto, const TypeRow& type) {
  if (!type.dtype)
    return type.bytes == 2 ? packed<uint16_t>(proto.int32_data())
                           : packed<uint8_t>(proto.int32_data());
  switch (*type.dtype) {
    case ir::DType::kF32: return packed<float>(proto.float_data());
    case ir::DType::kF64: return packed<double>(proto.double_data());
    case ir::DType::kI64: return packed<int64_t>(proto.int64_data());
    case ir::DType::kI32: return packed<int32_t>(proto.int32_data());
    case ir::DType::kF16:
    case ir::DType::kBF16: return packed<uint16_t>(proto.int32_data());
    case ir::DType::kI8:
    case ir::DType::kU8:
    case ir::DType::kBool: return packed<uint8_t>(proto.int32_data());
  }
  return {};
}

// The numbers of a stand-in as it holds them. Of two in a byte the first has the lower bits.
std::string widened(const Constant& constant) {
  const bool is_byte = ir::byte_size(*constant.stand_in) == 1;
  const auto count = static_cast<std::size_t>(constant.num_elements());
  std::string out;
  out.reserve(count * static_cast<std::size_t>(ir::byte_size(*constant.stand_in)));
  for (std::size_t i = 0; i < count; ++i) {
    if (is_byte) {
      const int both = static_cast<uint8_t>(constant.bytes[i / 2]);
      const int one = i % 2 == 0 ? both & 15 : both >> 4;
      out += static_cast<char>(constant.onnx_type == kInt4 && one > 7 ? one - 16 : one);
      continue;
    }
    uint16_t bits = 0;
    std::memcpy(&bits, constant.bytes.data() + i * sizeof bits, sizeof bits);
    const int32_t number = constant.onnx_type == kInt16 ? static_cast<int16_t>(bits) : bits;
    out.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return out;
}

// A file read block by block: the whole of it need not be in memory beside the message.
class FileBytes final : public google::protobuf::io::CopyingInputStream {
 public:
  explicit FileBytes(InputFile& file) : file_(file) {}
  int Read(void* buffer, int size) override {
    Result<std::size_t> count =
        file_.read({static_cast<char*>(buffer), static_cast<std::size_t>(size)});
    if (count.ok()) return static_cast<int>(*count);
    outcome_ = count.error();
    return -1;
  }
  const Result<void>& outcome() const { return outcome_; }

 private:
  InputFile& file_;
  Result<void> outcome_;
};

/// Fields that the packaged schema has not: of nodes, and of functions.
constexpr int kNodeOverload = 8, kFunctionDefault = 11, kFunctionOverload = 13;

// The values of one such field, in order: a message keeps the bytes of what it does not know.
std::vector<std::string> unknown_values(const std::string& bytes, int wanted) {
  using google::protobuf::internal::WireFormatLite;
  std::vector<std::string> values;
  if (bytes.empty()) return values;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  while (const uint32_t tag = in.ReadTag()) {
    if (WireFormatLite::GetTagFieldNumber(tag) != wanted ||
        WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&in, tag)) break;
      continue;
    }
    uint32_t size = 0;
    std::string value;
    if (!in.ReadVarint32(&size) || size > bytes.size() ||
        !in.ReadString(&value, static_cast<int>(size)))
      break;
    values.push_back(std::move(value));
  }
  return values;
}

// Of a field that is there once; as protobuf has it, the last one holds.
std::string unknown_text(const std::string& bytes, int wanted) {
  std::vector<std::string> values = unknown_values(bytes, wanted);
  return values.empty() ? std::string() : std::move(values.back());
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    const std::size_t slash = path.rfind('/');
    folder_ = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  }

  Result<Model> model(std::shared_ptr<::onnx::ModelProto> proto) {
    owner_ = proto;
    Model out;
    out.path = path_;
    if (!proto->has_graph()) return malformed("it has no graph");
    PRUNERC_TRY(out.graph, graph(*proto->mutable_graph(), 0));
    for (const auto& set : proto->opset_import()) out.opsets[domain(set.domain())] = set.version();
    std::set<std::vector<std::string>> names;
    for (auto& item : *proto->mutable_functions()) {
      PRUNERC_TRY(Function read, function(item));
      if (!names.insert({read.domain, read.name, read.overload}).second)
        return malformed("it defines the function '" + read.name + "' twice");
      out.functions.push_back(std::move(read));
    }
    for (const auto& [name, file] : files_) out.files.push_back(name);
    return out;
  }

  Result<Constant> tensor(::onnx::TensorProto& proto) {
    Constant out;
    out.onnx_type = proto.data_type();
    out.shape.assign(proto.dims().begin(), proto.dims().end());
    const TypeRow* const type = find_type(out.onnx_type);
    if (out.shape.size() > kMaxRank)
      return malformed("the tensor '" + proto.name() + "' has more than 16 dimensions");
    const std::optional<int64_t> bytes =
        tensor_bytes(type == nullptr || type->bytes == 0 ? 1 : type->bytes, out.shape);
    if (!bytes) return malformed("the tensor '" + proto.name() + "' has a shape that cannot be");
    if (type == nullptr || !(type->dtype || type->stand_in)) return out;
    out.dtype = type->dtype;
    out.stand_in = type->stand_in;
    const auto size = static_cast<uint64_t>(type->bytes == 0 ? (*bytes + 1) / 2 : *bytes);
    if (proto.data_location() == ::onnx::TensorProto::EXTERNAL) {
      PRUNERC_TRY_VOID(external(proto, size, out));
    } else if (proto.has_raw_data()) {
      // The message stays alive, so that its bytes need no copy.
      out.bytes = proto.raw_data();
      out.owner = owner_;
    } else {
      own(typed_bytes(proto, *type), out);
    }
    if (out.bytes.size() != size) {
      return malformed(fmt::format("the tensor '{}' has {} bytes of data, its shape needs {}",
                                   proto.name(), out.bytes.size(), size));
    }
    if (out.stand_in && proto.data_location() == ::onnx::TensorProto::EXTERNAL) {
      PRUNERC_TRY_VOID(widen_external(out));
    } else if (out.stand_in) {
      own(widened(out), out);
    }
    return out;
  }

  void keep(std::shared_ptr<const void> owner) { owner_ = std::move(owner); }

  Error malformed(const std::string& why) const {
    return error(Diag::kOnnxMalformed, path_, printable_line(why));
  }

 private:
  static void own(std::string bytes, Constant& out) {
    auto owner = std::make_shared<std::string>(std::move(bytes));
    out.bytes = *owner;
    out.owner = std::move(owner);
  }

  static std::string domain(const std::string& name) { return name == "ai.onnx" ? "" : name; }

  Result<void> external(const ::onnx::TensorProto& proto, uint64_t size, Constant& out) {
    std::string location;
    uint64_t offset = 0;
    for (const auto& entry : proto.external_data()) {
      if (entry.key() == "location") location = entry.value();
      if (entry.key() != "offset" && entry.key() != "length") continue;
      uint64_t number = 0;
      for (const char c : entry.value()) {
        if (c < '0' || c > '9' || number > std::numeric_limits<uint64_t>::max() / 10 - 9)
          return error(Diag::kOnnxExternal, location,
                       "its " + entry.key() + " is no number: " + printable_line(entry.value()));
        number = number * 10 + static_cast<uint64_t>(c - '0');
      }
      if (entry.key() == "offset") offset = number;
      if (entry.key() == "length" && number != size)
        return error(Diag::kOnnxExternal, location,
                     fmt::format("the tensor '{}' has {} bytes there, its shape needs {}",
                                 proto.name(), number, size));
    }
    // Without links a plain name is the only one of its file. What is longer than any path is refused below.
    const std::string plain = location.size() > kMaxLocation
                                  ? location
                                  : std::filesystem::path(location).lexically_normal().string();
    auto found = files_.find(plain);
    if (found == files_.end()) {
      PRUNERC_TRY(MappedFile file, map_external(folder_, location));
      mapped_bytes_ += file.bytes.size();
      found = files_.emplace(plain, std::move(file)).first;
    }
    const std::string_view bytes = found->second.bytes;
    if (offset > bytes.size() || size > bytes.size() - offset)
      return error(Diag::kOnnxExternal, location,
                   fmt::format("the tensor '{}' lies at {} to {} of {} bytes", proto.name(), offset,
                               offset + size, bytes.size()));
    out.bytes = bytes.substr(offset, size);
    out.owner = found->second.owner;
    return {};
  }

  // Each part of a file once, and no more than the files have: many tensors may lie in the same bytes.
  Result<void> widen_external(Constant& out) {
    Constant& wide = widened_[{out.bytes.data(), out.num_elements(), out.onnx_type}];
    if (wide.owner == nullptr) {
      widened_bytes_ += out.bytes.size();
      if (widened_bytes_ > mapped_bytes_)
        return malformed("its integers of 4 and 16 bits share the bytes of a file");
      own(widened(out), wide);
    }
    out.bytes = wide.bytes;
    out.owner = wide.owner;
    return {};
  }

  Result<Attribute> attribute(::onnx::AttributeProto& proto, int depth) {
    Attribute out;
    out.name = proto.name();
    out.refers_to = proto.ref_attr_name();
    using Type = ::onnx::AttributeProto;
    // Writers of the first versions left the type out.
    if (proto.has_f() || proto.type() == Type::FLOAT) out.f = proto.f();
    if (proto.has_i() || proto.type() == Type::INT) out.i = proto.i();
    if (proto.has_s() || proto.type() == Type::STRING) out.s = proto.s();
    out.floats.assign(proto.floats().begin(), proto.floats().end());
    out.ints.assign(proto.ints().begin(), proto.ints().end());
    out.strings.assign(proto.strings().begin(), proto.strings().end());
    if (proto.has_t()) {
      PRUNERC_TRY(out.tensor, tensor(*proto.mutable_t()));
    }
    if (proto.has_g()) {
      PRUNERC_TRY(Graph inner, graph(*proto.mutable_g(), depth + 1));
      out.graph = std::make_shared<const Graph>(std::move(inner));
    }
    return out;
  }

  Result<Node> node(::onnx::NodeProto& proto, int depth) {
    if (++num_nodes_ > kMaxNodes)
      return malformed(fmt::format("it has more than {} nodes", kMaxNodes));
    Node out;
    out.name = proto.name();
    out.op = proto.op_type();
    out.domain = domain(proto.domain());
    out.overload = unknown_text(proto.unknown_fields(), kNodeOverload);
    out.inputs.assign(proto.input().begin(), proto.input().end());
    out.outputs.assign(proto.output().begin(), proto.output().end());
    if (out.name.empty() && !out.outputs.empty()) out.name = out.outputs[0];
    for (auto& item : *proto.mutable_attribute()) {
      PRUNERC_TRY(Attribute read, attribute(item, depth));
      out.attributes.push_back(std::move(read));
    }
    return out;
  }

  static ValueInfo value_info(const ::onnx::ValueInfoProto& proto) {
    ValueInfo out;
    out.name = proto.name();
    if (!proto.type().has_tensor_type()) return out;
    const auto& type = proto.type().tensor_type();
    out.onnx_type = type.elem_type();
    out.has_shape = type.has_shape();
    for (const auto& dim : type.shape().dim()) {
      Dim read;
      if (dim.has_dim_value()) read.value = dim.dim_value();
      if (dim.has_dim_param()) read.name = dim.dim_param();
      out.shape.push_back(std::move(read));
    }
    return out;
  }

  Result<Graph> graph(::onnx::GraphProto& proto, int depth) {
    if (depth > kMaxDepth) return malformed("its graphs nest deeper than 64 levels");
    Graph out;
    out.name = proto.name();
    if (proto.sparse_initializer_size() > 0) return malformed("it has sparse initializers");
    for (auto& item : *proto.mutable_initializer()) {
      PRUNERC_TRY(Constant read, tensor(item));
      out.initializers.emplace_back(item.name(), std::move(read));
    }
    for (auto& item : *proto.mutable_node()) {
      PRUNERC_TRY(Node read, node(item, depth));
      out.nodes.push_back(std::move(read));
    }
    for (const auto& item : proto.input()) out.inputs.push_back(value_info(item));
    for (const auto& item : proto.output()) out.outputs.push_back(value_info(item));
    for (const std::vector<ValueInfo>* list : {&out.inputs, &out.outputs}) {
      for (const ValueInfo& info : *list) {
        if (info.shape.size() > kMaxRank)
          return malformed("'" + info.name + "' has more than 16 dimensions");
      }
    }
    return out;
  }

  // Since IR version 9 a function gives values for attributes that its calls leave out.
  Result<std::vector<Attribute>> defaults(const ::onnx::FunctionProto& proto) {
    std::vector<Attribute> out;
    const std::shared_ptr<const void> whole = owner_;
    for (const std::string& bytes : unknown_values(proto.unknown_fields(), kFunctionDefault)) {
      auto item = std::make_shared<::onnx::AttributeProto>();
      if (!item->ParseFromString(bytes))
        return malformed("a default of the function '" + proto.name() + "' is no attribute");
      owner_ = item;
      Result<Attribute> read = attribute(*item, 0);
      owner_ = whole;
      if (!read.ok()) return read.error();
      out.push_back(std::move(read).value());
    }
    return out;
  }

  Result<Function> function(::onnx::FunctionProto& proto) {
    Function out;
    out.name = proto.name();
    out.domain = domain(proto.domain());
    out.overload = unknown_text(proto.unknown_fields(), kFunctionOverload);
    PRUNERC_TRY(out.defaults, defaults(proto));
    out.inputs.assign(proto.input().begin(), proto.input().end());
    out.outputs.assign(proto.output().begin(), proto.output().end());
    for (const auto& set : proto.opset_import()) out.opsets[domain(set.domain())] = set.version();
    for (auto& item : *proto.mutable_node()) {
      PRUNERC_TRY(Node read, node(item, 0));
      out.nodes.push_back(std::move(read));
    }
    return out;
  }

  std::string path_, folder_;
  std::shared_ptr<const void> owner_;
  std::map<std::string, MappedFile> files_;
  // Wider copies of parts of files, by place, number of elements and type.
  std::map<std::tuple<const char*, int64_t, int32_t>, Constant> widened_;
  std::size_t mapped_bytes_ = 0, widened_bytes_ = 0;
  std::size_t num_nodes_ = 0;
};

}  // namespace

int64_t Constant::num_elements() const {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

std::optional<int64_t> tensor_bytes(int64_t element_bytes, const std::vector<int64_t>& shape) {
  int64_t bytes = element_bytes;
  bool is_empty = false;
  for (const int64_t extent : shape) {
    is_empty |= extent == 0;
    if (extent < 0 || __builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes) ||
        bytes > kMaxTensorBytes)
      return std::nullopt;
  }
  return is_empty ? 0 : bytes;
}

ir::Tensor tensor_of(const Constant& constant) {
  ir::Tensor out(*constant.dtype, constant.shape);
  if (!constant.bytes.empty())
    std::memcpy(out.data.data(), constant.bytes.data(), constant.bytes.size());
  return out;
}

std::string dim_name(const ValueInfo& info, std::size_t i) {
  const std::string& name = info.shape[i].name;
  // Some exporters write "?" for what they do not know, wherever it stands.
  return name.empty() || name == "?" ? fmt::format("{}.{}", info.name, i) : name;
}

std::string type_name(int32_t onnx_type) {
  const TypeRow* const row = find_type(onnx_type);
  return row != nullptr ? row->name : fmt::format("type {}", onnx_type);
}

std::optional<ir::DType> dtype_of(int32_t onnx_type) {
  const TypeRow* const row = find_type(onnx_type);
  return row != nullptr ? row->dtype : std::nullopt;
}

Result<Model> parse_model(std::string_view bytes, const std::string& path) {
  auto proto = std::make_shared<::onnx::ModelProto>();
  Reader reader(path);
  if (bytes.size() > kMaxModelBytes ||
      !proto->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return reader.malformed("its bytes are no model, or a part of one");
  return reader.model(std::move(proto));
}

Result<Model> read_model(const std::string& path) {
  PRUNERC_TRY(InputFile file, InputFile::open(path));
  if (file.size_bytes() > kMaxModelBytes)
    return error(Diag::kTooMany, "'" + path + "'", bytes_text(file.size_bytes()),
                 bytes_text(kMaxModelBytes));
  auto proto = std::make_shared<::onnx::ModelProto>();
  FileBytes bytes(file);
  google::protobuf::io::CopyingInputStreamAdaptor stream(&bytes, kBlockBytes);
  const bool is_model = proto->ParseFromZeroCopyStream(&stream);
  PRUNERC_TRY_VOID(bytes.outcome());
  Reader reader(path);
  if (!is_model) return reader.malformed("its bytes are no model, or a part of one");
  return reader.model(std::move(proto));
}

Result<ir::Tensor> read_tensor(const std::string& path) {
  PRUNERC_TRY(const std::string bytes, read_file(path));
  auto proto = std::make_shared<::onnx::TensorProto>();
  Reader reader(path);
  if (!proto->ParseFromString(bytes)) return reader.malformed("its bytes are no tensor");
  reader.keep(proto);
  PRUNERC_TRY(const Constant constant, reader.tensor(*proto));
  if (!constant.dtype)
    return error(Diag::kUnsupported, "a tensor of " + type_name(constant.onnx_type));
  return tensor_of(constant);
}

}  // namespace prunerc::onnx

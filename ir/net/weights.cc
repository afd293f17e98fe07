#include "ir/net/weights.h"

#include "ir/support/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

namespace prunerc::net {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

/// The format's own limit of a header. Units: bytes.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr uint64_t kLengthBytes = 8;
constexpr std::size_t kMaxRank = 16;
constexpr std::size_t kDataAlignment = 64;

struct TypeRow {
  std::string_view name;
  int64_t bytes;
};
constexpr TypeRow kTypes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2},  {"BF16", 2},    {"I64", 8},
                              {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U64", 8},     {"U32", 4},
                              {"U16", 2}, {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};

int64_t bytes_of_type(std::string_view name) {
  for (const TypeRow& row : kTypes) {
    if (row.name == name) return row.bytes;
  }
  return 0;
}

// One entry of the header; what is wrong, or nothing.
std::string read_entry(const Json& entry, std::string_view data, Weight& weight) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets"))
    return "lacks dtype, shape or data_offsets";
  const Json& type = entry["dtype"];
  const Json& shape = entry["shape"];
  const Json& offsets = entry["data_offsets"];
  if (!type.is_string() || bytes_of_type(type.get<std::string>()) == 0)
    return "has an unknown dtype";
  weight.type = type.get<std::string>();
  if (!shape.is_array() || shape.size() > kMaxRank) return "has no shape of at most 16 dimensions";
  int64_t bytes = bytes_of_type(weight.type);
  for (const Json& extent : shape) {
    if (!extent.is_number_unsigned()) return "has an extent that is no number from 0 on";
    const auto value = extent.get<uint64_t>();
    if (value > INT64_MAX || __builtin_mul_overflow(bytes, static_cast<int64_t>(value), &bytes))
      return "has a shape whose size overflows";
    weight.shape.push_back(static_cast<int64_t>(value));
  }
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    return "has no two offsets";
  const auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  if (begin > end || end > data.size()) return "lies outside of the file";
  if (end - begin != static_cast<uint64_t>(bytes)) return "has another size than its shape";
  weight.bytes = data.substr(begin, end - begin);
  return {};
}

}  // namespace

Result<WeightFile> WeightFile::parse(std::string_view bytes, const std::string& name) {
  const auto malformed = [&](std::string what) {
    return error(Diag::kWeightsMalformed, name, std::move(what));
  };
  if (bytes.size() < kLengthBytes) return malformed("it is shorter than 8 bytes");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kMaxHeaderBytes || length > bytes.size() - kLengthBytes)
    return malformed("its header does not end within it");
  const std::string_view header = bytes.substr(kLengthBytes, length);
  if (nests_deeper(header)) return malformed("its header nests too deep");
  std::set<std::string> names;
  bool is_twice = false;
  const auto note = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key)
      is_twice |= !names.insert(parsed.get<std::string>()).second;
    return true;
  };
  const Json root = Json::parse(header, note, /*allow_exceptions=*/false);
  if (!root.is_object()) return malformed("its header is no JSON object");
  if (is_twice) return malformed("its header has a name twice");
  WeightFile file;
  file.path_ = name;
  const std::string_view data = bytes.substr(kLengthBytes + length);
  for (const auto& [key, entry] : root.items()) {
    if (key == "__metadata__") continue;
    Weight weight;
    if (const std::string wrong = read_entry(entry, data, weight); !wrong.empty())
      return malformed(fmt::format("'{}' {}", printable_line(key), wrong));
    file.weights_.emplace(key, std::move(weight));
  }
  return file;
}

WeightFile WeightFile::of(std::string path, std::map<std::string, Weight> weights,
                          std::shared_ptr<const void> owner) {
  WeightFile file;
  file.path_ = std::move(path);
  file.weights_ = std::move(weights);
  file.mapping_ = std::move(owner);
  return file;
}

Result<WeightFile> WeightFile::open(const std::string& path) {
  // Says what it is if it is no regular file.
  PRUNERC_TRY(const InputFile checked, InputFile::open(path));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info = {};
  if (fd < 0 || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    const int code = errno;
    if (fd >= 0) ::close(fd);
    return error(Diag::kIoError, std::string("open"), path, std::string(std::strerror(code)));
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* const at = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int code = errno;
  ::close(fd);
  if (at == MAP_FAILED)
    return error(Diag::kIoError, std::string("map"), path, std::string(std::strerror(code)));
  const std::shared_ptr<const void> mapping(at, [size](const void* memory) {
    if (memory != nullptr) ::munmap(const_cast<void*>(memory), size);
  });
  PRUNERC_TRY(WeightFile file, parse({static_cast<const char*>(at), size}, path));
  file.mapping_ = mapping;
  return file;
}

const Weight* WeightFile::find(const std::string& name) const {
  const auto found = weights_.find(name);
  return found == weights_.end() ? nullptr : &found->second;
}

std::string_view weight_type(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF64: return "F64";
    case ir::DType::kF32: return "F32";
    case ir::DType::kF16: return "F16";
    case ir::DType::kBF16: return "BF16";
    case ir::DType::kI64: return "I64";
    case ir::DType::kI32: return "I32";
    case ir::DType::kI8: return "I8";
    case ir::DType::kU8: return "U8";
    case ir::DType::kBool: return "BOOL";
    default: return {};
  }
}

Result<std::string> weight_file_bytes(const std::vector<WeightToWrite>& weights) {
  OrderedJson header = OrderedJson::object();
  uint64_t offset = 0;
  for (const WeightToWrite& weight : weights) {
    const std::string_view type = weight_type(weight.dtype);
    if (type.empty())
      return error(Diag::kUnsupported,
                   fmt::format("a weight of type {}", ir::to_string(weight.dtype)));
    header[weight.name] = {{"dtype", type},
                           {"shape", weight.shape},
                           {"data_offsets", {offset, offset + weight.bytes.size()}}};
    offset += weight.bytes.size();
  }
  std::string text =
      header.dump(-1, ' ', /*ensure_ascii=*/true, OrderedJson::error_handler_t::replace);
  while ((text.size() + kLengthBytes) % kDataAlignment != 0) text += ' ';
  const uint64_t length = text.size();
  std::string bytes(reinterpret_cast<const char*>(&length), kLengthBytes);
  bytes += text;
  for (const WeightToWrite& weight : weights) bytes += weight.bytes;
  return bytes;
}

}  // namespace prunerc::net

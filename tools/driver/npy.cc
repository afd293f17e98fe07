#include "tools/driver/npy.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace prunerc {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
/// Tensors stay below 2^40 bytes (the language's limit).
constexpr int64_t kMaxBytes = int64_t{1} << 40;
/// numpy's own have 128 bytes.
constexpr std::size_t kMaxHeaderBytes = std::size_t{64} << 10;

struct Descr {
  std::string_view text;
  ir::DType dtype;
};
// The first row of a type is the one written. A bf16 array of ml_dtypes is a two-byte void to
// numpy.
constexpr Descr kDescrs[] = {
    {"<f8", ir::DType::kF64},  {"<f4", ir::DType::kF32},  {"<f2", ir::DType::kF16},
    {"<V2", ir::DType::kBF16}, {"|V2", ir::DType::kBF16}, {"<i8", ir::DType::kI64},
    {"<i4", ir::DType::kI32},  {"|i1", ir::DType::kI8},   {"|u1", ir::DType::kU8},
    {"|b1", ir::DType::kBool},
};

Error malformed(std::string what) { return error(Diag::kNpyMalformed, std::move(what)); }

// The text between the quotes after 'key': in the header's dictionary.
std::optional<std::string_view> entry(std::string_view header, std::string_view key) {
  const std::size_t at = header.find("'" + std::string(key) + "'");
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = header.substr(at + key.size() + 2);
  const std::size_t start = rest.find_first_not_of(" :");
  if (start == std::string_view::npos) return std::nullopt;
  return rest.substr(start);
}

Result<std::vector<int64_t>> parse_shape(std::string_view text) {
  std::vector<int64_t> shape;
  if (text.empty() || text[0] != '(') return malformed("shape is no tuple");
  std::size_t i = 1;
  while (i < text.size() && text[i] != ')') {
    if (text[i] == ' ' || text[i] == ',') {
      ++i;
      continue;
    }
    int64_t extent = 0;
    std::size_t digits = 0;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i, ++digits) {
      extent = extent * 10 + (text[i] - '0');
      if (extent > kMaxBytes) return malformed("extent is too large");
    }
    if (digits == 0) return malformed("shape holds something else than numbers");
    shape.push_back(extent);
    if (shape.size() > 64) return malformed("more than 64 dimensions");
  }
  if (i >= text.size()) return malformed("shape has no end");
  return shape;
}

struct Header {
  std::size_t size_bytes = 0;  // up to the data
  ir::DType dtype = ir::DType::kF32;
  std::vector<int64_t> shape;
  bool is_swapped = false;  // the high byte of a number comes first
  std::size_t data_bytes = 0;
};

// Of a file of `file_bytes` that begins with `bytes`: all, or kMaxHeaderBytes.
Result<Header> parse_header(std::string_view bytes, uint64_t file_bytes) {
  if (bytes.size() < 10 || bytes.substr(0, 6) != kMagic) return malformed("no .npy signature");
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3) return malformed("unknown version " + std::to_string(version));
  const std::size_t prefix = version == 1 ? 10 : 12;
  if (bytes.size() < prefix) return malformed("header is cut off");
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - prefix) {
    return malformed(bytes.size() < file_bytes
                         ? "header is longer than " + bytes_text(kMaxHeaderBytes)
                         : "header is cut off");
  }
  const std::string_view header = bytes.substr(prefix, length);
  const auto descr = entry(header, "descr");
  const auto order = entry(header, "fortran_order");
  const auto shape_text = entry(header, "shape");
  if (!descr || !order || !shape_text) return malformed("header lacks descr, order or shape");
  if (order->substr(0, 5) != "False") return malformed("Fortran order; save it in C order");
  constexpr std::size_t kShown = 12;
  std::string type(descr->substr(1, descr->find('\'', 1) - 1).substr(0, kShown));
  Header found;
  // Numbers with their high byte first are turned round; bf16, a void to numpy, has no such form.
  found.is_swapped = type[0] == '>' && type != ">V2";
  if (found.is_swapped) type[0] = '<';
  const Descr* row = std::find_if(std::begin(kDescrs), std::end(kDescrs),
                                  [&](const Descr& d) { return d.text == type; });
  if (row == std::end(kDescrs)) {
    if (found.is_swapped) type[0] = '>';
    return malformed("type '" + type + "' is not supported");
  }
  found.dtype = row->dtype;
  PRUNERC_TRY(found.shape, parse_shape(*shape_text));
  int64_t num_bytes = ir::byte_size(row->dtype);
  for (int64_t extent : found.shape) {
    if (extent != 0 && num_bytes > kMaxBytes / extent) return malformed("array is too large");
    num_bytes *= extent;
  }
  found.size_bytes = prefix + length;
  found.data_bytes = static_cast<std::size_t>(num_bytes);
  if (file_bytes - found.size_bytes < found.data_bytes) {
    return malformed("data has " + std::to_string(file_bytes - found.size_bytes) +
                     " bytes, needs " + std::to_string(num_bytes));
  }
  return found;
}

void swap_bytes(ir::Tensor& tensor) {
  const std::ptrdiff_t width = ir::byte_size(tensor.dtype);
  for (auto at = tensor.data.begin(); at != tensor.data.end(); at += width) {
    std::reverse(at, at + width);
  }
}

}  // namespace

Result<ir::Tensor> parse_npy(std::string_view bytes) {
  PRUNERC_TRY(Header header, parse_header(bytes, bytes.size()));
  ir::Tensor tensor(header.dtype, std::move(header.shape));
  std::copy_n(bytes.data() + header.size_bytes, tensor.data.size(),
              reinterpret_cast<char*>(tensor.data.data()));
  if (header.is_swapped) swap_bytes(tensor);
  return tensor;
}

Result<NpyFile> NpyFile::open(const std::string& path) {
  PRUNERC_TRY(InputFile file, InputFile::open(path));
  NpyFile npy(std::move(file));
  npy.path_ = path;
  npy.begin_.resize(std::min<uint64_t>(kMaxHeaderBytes, npy.file_.size_bytes()));
  PRUNERC_TRY(const std::size_t got, npy.file_.read(npy.begin_));
  npy.begin_.resize(got);
  Result<Header> header = parse_header(npy.begin_, npy.file_.size_bytes());
  if (!header.ok()) return with_detail(header.error(), "in " + path);
  npy.begin_.erase(0, header->size_bytes);
  npy.dtype_ = header->dtype;
  npy.shape_ = std::move(header->shape);
  npy.is_swapped_ = header->is_swapped;
  return npy;
}

Result<ir::Tensor> NpyFile::read() {
  ir::Tensor tensor(dtype_, shape_);
  const std::size_t here = std::min(begin_.size(), tensor.data.size());
  if (here > 0) std::memcpy(tensor.data.data(), begin_.data(), here);
  auto* const rest = reinterpret_cast<char*>(tensor.data.data()) + here;
  PRUNERC_TRY(const std::size_t got, file_.read({rest, tensor.data.size() - here}));
  if (here + got < tensor.data.size()) {
    return with_detail(malformed("it became shorter while it was read"), "in " + path_);
  }
  if (is_swapped_) swap_bytes(tensor);
  return tensor;
}

Result<ir::Tensor> read_npy(const std::string& path) {
  PRUNERC_TRY(NpyFile file, NpyFile::open(path));
  return file.read();
}

std::string npy_bytes(const ir::Tensor& tensor) {
  const Descr* row = std::find_if(std::begin(kDescrs), std::end(kDescrs),
                                  [&](const Descr& d) { return d.dtype == tensor.dtype; });
  std::string shape;
  for (int64_t extent : tensor.shape) shape += std::to_string(extent) + ", ";
  if (tensor.shape.size() > 1) shape.resize(shape.size() - 2);
  if (tensor.shape.size() == 1) shape.resize(shape.size() - 1);
  std::string header = "{'descr': '" + std::string(row->text) +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // The data starts at a multiple of 64.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\x00';
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  out.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  return out;
}

Result<void> write_npy(const std::string& path, const ir::Tensor& tensor) {
  return replace_file(path, npy_bytes(tensor));
}

}  // namespace prunerc

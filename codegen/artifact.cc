#include "codegen/artifact.h"

#include "ir/support/wire.h"
#include "ir/thread_axis.h"

namespace prunerc::codegen {
namespace {

constexpr uint32_t kMagic = 0x54524150;  // "PART"
constexpr uint32_t kVersion = 7;
/// Of blocks; what every GPU with clusters takes.
constexpr int64_t kMaxCluster = 8;

/// No tensor or workspace of a runnable kernel is larger; keeps all size arithmetic far from
/// overflow.
constexpr int64_t kMaxBytes = int64_t{1} << 40;
constexpr size_t kMaxParams = 256;
constexpr size_t kMaxRank = 64;
constexpr size_t kMaxTileFeatures = 8;

Error malformed(std::string what) { return error(Diag::kArtifactMalformed, std::move(what)); }

/// Symbols end up in linkers and in messages: plain C identifiers only.
bool is_identifier(std::string_view text) {
  if (text.empty() || text.size() > 256) return false;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(c >= '0' && c <= '9')) return false;
  }
  return !(text[0] >= '0' && text[0] <= '9');
}

bool is_tile_feature(std::string_view name) {
  return name.starts_with("amx-") && name.size() <= 16 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == name.npos;
}

Result<void> check_tile_features(const Artifact& artifact) {
  const std::vector<std::string>& features = artifact.tile_features;
  if (!features.empty() && artifact.kind != ArtifactKind::kCpuObject)
    return malformed("only a CPU kernel has tile registers");
  for (const std::string& name : features) {
    if (!is_tile_feature(name)) return malformed("unknown feature of tile registers");
  }
  if (features.size() > kMaxTileFeatures) return malformed("too many features of tile registers");
  return {};
}

bool has_sane_size(const ArtifactParam& param) {
  if (param.shape.size() > kMaxRank) return false;
  int64_t bytes = ir::byte_size(param.dtype);
  for (const int64_t extent : param.shape) {
    if (extent < 0 || extent > kMaxBytes) return false;
    if (extent != 0 && bytes > kMaxBytes / extent) return false;
    bytes *= extent;
  }
  return true;
}

ArtifactParam read_param(WireReader& reader) {
  ArtifactParam param;
  param.name = reader.get_string();
  param.dtype = reader.get<ir::DType>();
  param.role = reader.get<ParamRole>();
  param.is_const = reader.get<uint8_t>() != 0;
  const uint64_t rank = reader.get_count(sizeof(int64_t));
  for (uint64_t i = 0; i < rank; ++i) param.shape.push_back(reader.get<int64_t>());
  return param;
}

void write_param(WireWriter& writer, const ArtifactParam& param) {
  writer.put_string(param.name);
  writer.put(param.dtype);
  writer.put(param.role);
  writer.put(static_cast<uint8_t>(param.is_const ? 1 : 0));
  writer.put(static_cast<uint64_t>(param.shape.size()));
  for (const int64_t extent : param.shape) writer.put(extent);
}

/// Limits of the CUDA driver.
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxSharedBytes = 1 << 20;
constexpr size_t kMaxLaunches = 4096;
constexpr int64_t kMaxBox = 256;
constexpr int64_t kMaxMatrixExtent = (int64_t{1} << 31) - 1;  // coordinates are signed
constexpr int64_t kTmaAlignment = 16;
constexpr int64_t kLeastCorner = -128, kMostCorner = 127, kMostStep = 8;  // of images of rank 4
constexpr int64_t kMostImageBytes = (int64_t{1} << 40) - 1;

/// Bytes from where `arg` points to the end of what it points into; negative if it is none.
int64_t bytes_behind(const Artifact& artifact, const LaunchArg& arg) {
  if (arg.value < 0) return -1;
  if (arg.kind == LaunchArgKind::kParam) {
    const auto idx = static_cast<uint64_t>(arg.value);
    return idx < artifact.params.size() ? size_bytes(artifact.params[idx]) : -1;
  }
  if (arg.kind != LaunchArgKind::kWorkspace || arg.value % kWorkspaceAlignment != 0) return -1;
  return artifact.workspace_bytes - arg.value;
}

Result<void> check_pixels(const TensorMap& map, const PixelBox& pixels) {
  const bool is_image = pixels.height >= 1 && pixels.width >= 1 && pixels.height <= map.rows &&
                        pixels.width <= map.rows / pixels.height &&
                        map.rows % (pixels.height * pixels.width) == 0;
  if (!is_image || map.pitch_bytes != map.cols * ir::byte_size(map.dtype) ||
      pixels.height * pixels.width > kMostImageBytes / map.pitch_bytes) {
    return malformed("the rows of a tensor map are no pixels of images");
  }
  const int64_t extents[] = {pixels.height, pixels.width};
  for (size_t d = 0; d < 2; ++d) {
    for (const int64_t corner : {pixels.lower[d], pixels.upper[d]}) {
      if (corner < kLeastCorner || corner > kMostCorner)
        return malformed("the windows of a tensor map are out of range");
    }
    if (pixels.steps[d] < 1 || pixels.steps[d] > kMostStep ||
        extents[d] - 1 + pixels.upper[d] < pixels.lower[d]) {
      return malformed("the windows of a tensor map are out of range");
    }
  }
  return {};
}

Result<void> check_tensor_map(const Artifact& artifact, const TensorMap& map) {
  if (static_cast<int>(map.dtype) >= ir::kNumDTypes) return malformed("unknown element type");
  const int64_t elem = ir::byte_size(map.dtype);
  for (const int64_t extent : {map.rows, map.cols}) {
    if (extent < 1 || extent > kMaxMatrixExtent)
      return malformed("an extent of a tensor map is out of range");
  }
  if (map.pitch_bytes % kTmaAlignment != 0 || map.pitch_bytes < map.cols * elem ||
      map.pitch_bytes > kMaxBytes / map.rows) {
    return malformed("the pitch of a tensor map is out of range");
  }
  if (bytes_behind(artifact, map.base) < (map.rows - 1) * map.pitch_bytes + map.cols * elem) {
    return malformed("a tensor map reaches beyond its buffer");
  }
  for (const int64_t extent : {map.box_rows, map.box_cols}) {
    if (extent < 1 || extent > kMaxBox) return malformed("the box of a tensor map is out of range");
  }
  const int64_t row = map.box_cols * elem;
  const int64_t swizzle = map.swizzle_bytes;
  const bool known = swizzle == 0 || swizzle == 32 || swizzle == 64 || swizzle == 128;
  if (!known || row % kTmaAlignment != 0 || (swizzle != 0 && row > swizzle))
    return malformed("the box of a tensor map does not fit its swizzle");
  return map.pixels ? check_pixels(map, *map.pixels) : Result<void>();
}

Result<void> check_launch(const Artifact& artifact, const Launch& launch) {
  if (!is_identifier(launch.kernel)) return malformed("a launch names no function");
  int64_t num_threads = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (launch.grid[axis] < 1 || launch.grid[axis] > ir::kMostBlocks[axis])
      return malformed("the grid of a launch is out of range");
    if (launch.block[axis] < 1 || launch.block[axis] > ir::kMostThreads[axis])
      return malformed("the block of a launch is out of range");
    num_threads *= launch.block[axis];
  }
  if (num_threads > kMaxThreads) return malformed("a launch has too many threads in a block");
  if (launch.shared_bytes < 0 || launch.shared_bytes > kMaxSharedBytes)
    return malformed("the shared memory of a launch is out of range");
  if (launch.cluster < 1 || launch.cluster > kMaxCluster || launch.grid[0] % launch.cluster != 0)
    return malformed("the clusters of a launch do not divide its grid");
  if (launch.args.size() > kMaxParams || launch.tensor_maps.size() > kMaxParams)
    return malformed("a launch has too many arguments");
  for (const TensorMap& map : launch.tensor_maps) PRUNERC_TRY_VOID(check_tensor_map(artifact, map));
  for (const LaunchArg& arg : launch.args) {
    if (arg.kind > LaunchArgKind::kTensorMap) return malformed("unknown kind of argument");
    const bool exists = arg.kind == LaunchArgKind::kTensorMap
                            ? static_cast<uint64_t>(arg.value) < launch.tensor_maps.size()
                            : bytes_behind(artifact, arg) >= 0;
    if (!exists) return malformed("an argument of a launch does not exist");
  }
  return {};
}

Result<void> check_launches(const Artifact& artifact) {
  const bool is_cpu = artifact.kind == ArtifactKind::kCpuObject;
  if (is_cpu != artifact.launches.empty())
    return malformed(is_cpu ? "a CPU kernel has launches" : "a CUDA kernel has no launch");
  if (artifact.launches.size() > kMaxLaunches) return malformed("too many launches");
  for (const Launch& launch : artifact.launches) PRUNERC_TRY_VOID(check_launch(artifact, launch));
  return {};
}

LaunchArg read_launch_arg(WireReader& reader) {
  LaunchArg arg;
  arg.kind = reader.get<LaunchArgKind>();
  arg.value = reader.get<int64_t>();
  return arg;
}

void write_launch_arg(WireWriter& writer, const LaunchArg& arg) {
  writer.put(arg.kind);
  writer.put(arg.value);
}

Launch read_launch(WireReader& reader) {
  Launch launch;
  launch.kernel = reader.get_string();
  for (int64_t& extent : launch.grid) extent = reader.get<int64_t>();
  for (int64_t& extent : launch.block) extent = reader.get<int64_t>();
  launch.shared_bytes = reader.get<int64_t>();
  launch.cluster = reader.get<int64_t>();
  const uint64_t num_args = reader.get_count(9);  // a byte and a number
  for (uint64_t i = 0; i < num_args; ++i) launch.args.push_back(read_launch_arg(reader));
  const uint64_t num_maps = reader.get_count(122);  // an argument, a byte and 14 numbers
  for (uint64_t i = 0; i < num_maps; ++i) {
    TensorMap& map = launch.tensor_maps.emplace_back();
    map.base = read_launch_arg(reader);
    map.dtype = reader.get<ir::DType>();
    for (int64_t* number :
         {&map.rows, &map.cols, &map.pitch_bytes, &map.box_rows, &map.box_cols, &map.swizzle_bytes})
      *number = reader.get<int64_t>();
    PixelBox pixels;
    for (int64_t* number : {&pixels.height, &pixels.width}) *number = reader.get<int64_t>();
    for (auto* pair : {&pixels.lower, &pixels.upper, &pixels.steps}) {
      for (int64_t& number : *pair) number = reader.get<int64_t>();
    }
    if (pixels != PixelBox{}) map.pixels = pixels;
  }
  return launch;
}

void write_launch(WireWriter& writer, const Launch& launch) {
  writer.put_string(launch.kernel);
  for (const int64_t extent : launch.grid) writer.put(extent);
  for (const int64_t extent : launch.block) writer.put(extent);
  writer.put(launch.shared_bytes);
  writer.put(launch.cluster);
  writer.put(static_cast<uint64_t>(launch.args.size()));
  for (const LaunchArg& arg : launch.args) write_launch_arg(writer, arg);
  writer.put(static_cast<uint64_t>(launch.tensor_maps.size()));
  for (const TensorMap& map : launch.tensor_maps) {
    write_launch_arg(writer, map.base);
    writer.put(map.dtype);
    for (const int64_t number :
         {map.rows, map.cols, map.pitch_bytes, map.box_rows, map.box_cols, map.swizzle_bytes})
      writer.put(number);
    const PixelBox pixels = map.pixels.value_or(PixelBox{});
    writer.put(pixels.height);
    writer.put(pixels.width);
    for (const auto& pair : {pixels.lower, pixels.upper, pixels.steps}) {
      for (const int64_t number : pair) writer.put(number);
    }
  }
}

}  // namespace

std::string c_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool ok =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    out += ok ? c : '_';
  }
  return out;
}

int TensorMap::cuda_type() const {
  switch (dtype) {
    case ir::DType::kI8:
    case ir::DType::kU8:
    case ir::DType::kBool: return 0;
    case ir::DType::kI32: return 3;
    case ir::DType::kI64: return 5;
    case ir::DType::kF16: return 6;
    case ir::DType::kF32: return 7;
    case ir::DType::kF64: return 8;
    case ir::DType::kBF16: return 9;
  }
  return 0;
}

int TensorMap::cuda_swizzle() const {
  return swizzle_bytes == 128 ? 3 : swizzle_bytes == 64 ? 2 : swizzle_bytes == 32 ? 1 : 0;
}

int64_t num_elems(const ArtifactParam& param) {
  int64_t count = 1;
  for (const int64_t extent : param.shape) count *= extent;
  return count;
}

int64_t size_bytes(const ArtifactParam& param) {
  return num_elems(param) * ir::byte_size(param.dtype);
}

int64_t total_workspace_bytes(const Artifact& artifact, int num_workers) {
  return artifact.workspace_bytes + int64_t{num_workers} * artifact.workspace_bytes_per_worker;
}

Result<void> validate(const Artifact& artifact) {
  if (static_cast<int>(artifact.kind) >= kNumArtifactKinds) return malformed("unknown kind");
  if (!is_identifier(artifact.entry)) return malformed("the entry is not an identifier");
  if (artifact.params.size() > kMaxParams) return malformed("too many parameters");
  bool seen_output = false, has_const = false;
  for (const ArtifactParam& param : artifact.params) {
    if (param.is_const && param.role == ParamRole::kOutput) return malformed("an output is const");
    has_const = has_const || param.is_const;
    if (static_cast<int>(param.dtype) >= ir::kNumDTypes) return malformed("unknown element type");
    if (param.role > ParamRole::kOutput) return malformed("unknown parameter role");
    if (param.role == ParamRole::kInput && seen_output)
      return malformed("an input follows an output");
    if (!has_sane_size(param)) return malformed("the size of a parameter is out of range");
    seen_output = param.role == ParamRole::kOutput;
  }
  for (const int64_t bytes : {artifact.workspace_bytes, artifact.workspace_bytes_per_worker,
                              artifact.prepared_bytes, artifact.stack_bytes}) {
    if (bytes < 0 || bytes > kMaxBytes) return malformed("the workspace size is out of range");
  }
  const bool prepares = !artifact.prepare_entry.empty();
  if (prepares && !is_identifier(artifact.prepare_entry))
    return malformed("the prepare entry is not an identifier");
  if (prepares != has_const || (!prepares && artifact.prepared_bytes > 0))
    return malformed("a prepare entry, const inputs and prepared memory come together");
  if (prepares && artifact.kind != ArtifactKind::kCpuObject)
    return malformed("only a CPU kernel has a prepare entry");
  PRUNERC_TRY_VOID(check_tile_features(artifact));
  return check_launches(artifact);
}

std::string serialize(const Artifact& artifact) {
  WireWriter writer;
  writer.put(kMagic);
  writer.put(kVersion);
  writer.put(artifact.kind);
  writer.put_string(artifact.bytes);
  writer.put_string(artifact.entry);
  writer.put_string(artifact.prepare_entry);
  writer.put_string(artifact.triple);
  writer.put_string(artifact.cpu);
  writer.put(static_cast<uint64_t>(artifact.tile_features.size()));
  for (const std::string& name : artifact.tile_features) writer.put_string(name);
  writer.put(static_cast<uint64_t>(artifact.params.size()));
  for (const ArtifactParam& param : artifact.params) write_param(writer, param);
  writer.put(static_cast<uint64_t>(artifact.launches.size()));
  for (const Launch& launch : artifact.launches) write_launch(writer, launch);
  writer.put(artifact.workspace_bytes);
  writer.put(artifact.workspace_bytes_per_worker);
  writer.put(artifact.prepared_bytes);
  writer.put(artifact.stack_bytes);
  writer.put(artifact.flops);
  writer.put(artifact.bytes_moved);
  return writer.take();
}

Result<Artifact> deserialize(std::string_view bytes) {
  WireReader reader(bytes);
  if (reader.get<uint32_t>() != kMagic) return malformed("not an artifact");
  if (reader.get<uint32_t>() != kVersion) return malformed("written by another version");
  Artifact artifact;
  artifact.kind = reader.get<ArtifactKind>();
  artifact.bytes = reader.get_string();
  artifact.entry = reader.get_string();
  artifact.prepare_entry = reader.get_string();
  artifact.triple = reader.get_string();
  artifact.cpu = reader.get_string();
  const uint64_t num_features = reader.get_count(sizeof(uint64_t));
  for (uint64_t i = 0; i < num_features; ++i)
    artifact.tile_features.emplace_back(reader.get_string());
  const uint64_t num_params =
      reader.get_count(19);  // a parameter takes at least two counts and three bytes
  for (uint64_t i = 0; i < num_params; ++i) artifact.params.push_back(read_param(reader));
  const uint64_t num_launches = reader.get_count(80);  // ten numbers or counts
  for (uint64_t i = 0; i < num_launches; ++i) artifact.launches.push_back(read_launch(reader));
  artifact.workspace_bytes = reader.get<int64_t>();
  artifact.workspace_bytes_per_worker = reader.get<int64_t>();
  artifact.prepared_bytes = reader.get<int64_t>();
  artifact.stack_bytes = reader.get<int64_t>();
  artifact.flops = reader.get<double>();
  artifact.bytes_moved = reader.get<double>();
  if (!reader.at_end()) return malformed("truncated, or followed by other data");
  PRUNERC_TRY_VOID(validate(artifact));
  return artifact;
}

}  // namespace prunerc::codegen

#include "codegen/artifact.h"

#include "ir/support/wire.h"

namespace prunerc::codegen {
namespace {

constexpr uint32_t kMagic = 0x54524150;  // "PART"
constexpr uint32_t kVersion = 1;

/// No tensor or workspace of a runnable kernel is larger; keeps all size arithmetic far from
/// overflow.
constexpr int64_t kMaxBytes = int64_t{1} << 40;
constexpr size_t kMaxParams = 256;
constexpr size_t kMaxRank = 64;

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
  const uint64_t rank = reader.get_count(sizeof(int64_t));
  for (uint64_t i = 0; i < rank; ++i) param.shape.push_back(reader.get<int64_t>());
  return param;
}

void write_param(WireWriter& writer, const ArtifactParam& param) {
  writer.put_string(param.name);
  writer.put(param.dtype);
  writer.put(param.role);
  writer.put(static_cast<uint64_t>(param.shape.size()));
  for (const int64_t extent : param.shape) writer.put(extent);
}

}  // namespace

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
  bool seen_output = false;
  for (const ArtifactParam& param : artifact.params) {
    if (static_cast<int>(param.dtype) >= ir::kNumDTypes) return malformed("unknown element type");
    if (param.role > ParamRole::kOutput) return malformed("unknown parameter role");
    if (param.role == ParamRole::kInput && seen_output)
      return malformed("an input follows an output");
    if (!has_sane_size(param)) return malformed("the size of a parameter is out of range");
    seen_output = param.role == ParamRole::kOutput;
  }
  for (const int64_t bytes : {artifact.workspace_bytes, artifact.workspace_bytes_per_worker}) {
    if (bytes < 0 || bytes > kMaxBytes) return malformed("the workspace size is out of range");
  }
  return {};
}

std::string serialize(const Artifact& artifact) {
  WireWriter writer;
  writer.put(kMagic);
  writer.put(kVersion);
  writer.put(artifact.kind);
  writer.put_string(artifact.bytes);
  writer.put_string(artifact.entry);
  writer.put_string(artifact.triple);
  writer.put_string(artifact.cpu);
  writer.put(static_cast<uint64_t>(artifact.params.size()));
  for (const ArtifactParam& param : artifact.params) write_param(writer, param);
  writer.put(artifact.workspace_bytes);
  writer.put(artifact.workspace_bytes_per_worker);
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
  artifact.triple = reader.get_string();
  artifact.cpu = reader.get_string();
  const uint64_t num_params =
      reader.get_count(18);  // a parameter takes at least two counts and two bytes
  for (uint64_t i = 0; i < num_params; ++i) artifact.params.push_back(read_param(reader));
  artifact.workspace_bytes = reader.get<int64_t>();
  artifact.workspace_bytes_per_worker = reader.get<int64_t>();
  artifact.flops = reader.get<double>();
  artifact.bytes_moved = reader.get<double>();
  if (!reader.at_end()) return malformed("truncated, or followed by other data");
  PRUNERC_TRY_VOID(validate(artifact));
  return artifact;
}

}  // namespace prunerc::codegen

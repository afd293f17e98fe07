#include "costmodel/model/checkpoint.h"

#include "ir/support/file.h"
#include "ir/support/hash.h"
#include "ir/support/wire.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace prunerc::costmodel::model {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMagic = "PRNMODL\n";
/// Magic, format, size of the header, checksum of header and tensors.
constexpr std::size_t kPreamble = 8 + 4 + 8 + 8;
/// Bounds of what a header may ask for, far above what is of use: a header cannot make us allocate
/// gigabytes.
constexpr int kMostWidth = 1024, kMostBlocks = 8, kMostMembers = 64;
constexpr std::size_t kMostBytes = std::size_t{256} << 20;
/// Of the header, whose text takes many times as much once it is parsed.
constexpr std::size_t kMostHeaderBytes = std::size_t{1} << 20;

struct Field {
  const char* name;
  int NetworkOptions::*value;
  int least, most;
};
constexpr Field kFields[] = {
    {"statement_inputs", &NetworkOptions::statement_inputs, 1, kMostWidth},
    {"flow_inputs", &NetworkOptions::flow_inputs, 1, kMostWidth},
    {"context_inputs", &NetworkOptions::context_inputs, 0, kMostWidth},
    {"token_length", &NetworkOptions::token_length, 1, kMostWidth},
    {"token_inputs", &NetworkOptions::token_inputs, 1, kMostWidth},
    {"statement_width", &NetworkOptions::statement_width, 1, kMostWidth},
    {"flow_width", &NetworkOptions::flow_width, 1, kMostWidth},
    {"context_width", &NetworkOptions::context_width, 1, kMostWidth},
    {"width", &NetworkOptions::width, 1, kMostWidth},
    {"heads", &NetworkOptions::heads, 1, kMostWidth},
    {"positions", &NetworkOptions::positions, 1, kMostWidth},
    {"blocks", &NetworkOptions::blocks, 0, kMostBlocks},
};

constexpr std::pair<const char*, NormaliserKind> kNormaliserKinds[] = {
    {"none", NormaliserKind::kNone},
    {"column_max", NormaliserKind::kColumnMax},
    {"standard", NormaliserKind::kStandard},
};

struct NormaliserField {
  const char* name;
  Normaliser Normalisers::*value;
  int NetworkOptions::*inputs;
};
constexpr NormaliserField kNormalisers[] = {
    {"statements", &Normalisers::statements, &NetworkOptions::statement_inputs},
    {"flow", &Normalisers::flow, &NetworkOptions::flow_inputs},
    {"context", &Normalisers::context, &NetworkOptions::context_inputs},
    {"tokens", &Normalisers::tokens, &NetworkOptions::token_inputs},
};

// A row of numbers of the file.
struct Part {
  std::string name;
  std::span<float> values;
};

// All numbers of a model in the file's order.
std::vector<Part> parts_of(Model* model) {
  std::vector<Part> parts;
  for (const NormaliserField& field : kNormalisers) {
    Normaliser& normaliser = model->normalisers.*field.value;
    parts.push_back({std::string("normaliser.") + field.name + ".mean", normaliser.mean});
    parts.push_back({std::string("normaliser.") + field.name + ".scale", normaliser.scale});
  }
  for (std::size_t i = 0; i < model->members.size(); ++i) {
    const std::string prefix = "member." + std::to_string(i) + ".";
    for (nn::Parameters<float>* set :
         {&model->members[i]->parameters, &model->members[i]->buffers}) {
      for (const nn::Tensor& tensor : set->tensors) {
        parts.push_back(
            {prefix + tensor.name, std::span(set->values).subspan(tensor.offset, tensor.size())});
      }
    }
  }
  return parts;
}

Json options_json(const NetworkOptions& options) {
  Json json = {{"kind", to_string(options.kind)}};
  for (const Field& field : kFields) json[field.name] = options.*field.value;
  json["batch_statistics"] = options.statistics == nn::Statistics::kBatch;
  return json;
}

Json normalisers_json(const Normalisers& normalisers) {
  Json json = Json::object();
  for (const NormaliserField& field : kNormalisers) {
    const Normaliser& normaliser = normalisers.*field.value;
    for (const auto& [text, kind] : kNormaliserKinds) {
      if (kind != normaliser.kind) continue;
      json[field.name] = {{"kind", text}, {"columns", normaliser.scale.size()}};
    }
  }
  return json;
}

Json header_json(const Model& model, const std::vector<Part>& parts, std::string_view tool) {
  Json header = {{"options", options_json(model.options)},
                 {"members", model.members.size()},
                 {"feature_set", model.feature_set},
                 {"platforms", model.platforms},
                 {"has_normalisers", model.has_normalisers},
                 {"normalisers", normalisers_json(model.normalisers)},
                 {"tool", tool},
                 {"tensors", Json::array()}};
  for (const Part& part : parts) {
    header["tensors"].push_back({{"name", part.name}, {"size", part.values.size()}});
  }
  return header;
}

uint64_t checksum(uint64_t header_size, std::string_view body) {
  return hash_combine(header_size, hash_bytes(body));
}

// A whole number of an object within bounds.
bool read_int(const Json& json, const char* key, int least, int most, int* value) {
  const auto at = json.find(key);
  if (at == json.end() || !at->is_number_integer()) return false;
  const auto number = at->get<int64_t>();
  if (number < least || number > most) return false;
  *value = static_cast<int>(number);
  return true;
}

bool read_bool(const Json& json, const char* key, bool* value) {
  const auto at = json.find(key);
  if (at == json.end() || !at->is_boolean()) return false;
  *value = at->get<bool>();
  return true;
}

bool read_text(const Json& json, const char* key, std::string* value) {
  const auto at = json.find(key);
  if (at == json.end() || !at->is_string()) return false;
  *value = at->get<std::string>();
  return true;
}

const Json* read_object(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at == json.end() || !at->is_object() ? nullptr : &*at;
}

bool read_options(const Json& header, NetworkOptions* options) {
  const Json* const json = read_object(header, "options");
  std::string kind;
  bool batch_statistics = false;
  if (json == nullptr || !read_text(*json, "kind", &kind)) return false;
  if (!read_bool(*json, "batch_statistics", &batch_statistics)) return false;
  const std::optional<NetworkKind> known = network_kind_from_string(kind);
  if (!known) return false;
  options->kind = *known;
  options->statistics = batch_statistics ? nn::Statistics::kBatch : nn::Statistics::kRunning;
  for (const Field& field : kFields) {
    if (!read_int(*json, field.name, field.least, field.most, &(options->*field.value))) {
      return false;
    }
  }
  return options->flow_width % options->heads == 0;
}

bool read_normalisers(const Json& header, Model* model) {
  const Json* const json = read_object(header, "normalisers");
  if (json == nullptr || !read_bool(header, "has_normalisers", &model->has_normalisers)) {
    return false;
  }
  for (const NormaliserField& field : kNormalisers) {
    Normaliser& normaliser = model->normalisers.*field.value;
    const Json* const one = read_object(*json, field.name);
    std::string text;
    int columns = 0;
    if (one == nullptr || !read_text(*one, "kind", &text)) return false;
    if (!read_int(*one, "columns", 0, kMostWidth, &columns)) return false;
    const auto at = std::find_if(std::begin(kNormaliserKinds), std::end(kNormaliserKinds),
                                 [&](const auto& row) { return row.first == text; });
    if (at == std::end(kNormaliserKinds)) return false;
    // One of another width would be passed over.
    const bool applies = at->second != NormaliserKind::kNone;
    if (applies && columns != model->options.*field.inputs) return false;
    normaliser = {at->second, std::vector<float>(static_cast<std::size_t>(columns), 0),
                  std::vector<float>(static_cast<std::size_t>(columns), 1)};
  }
  return true;
}

bool read_platforms(const Json& header, Model* model) {
  const auto at = header.find("platforms");
  if (at == header.end() || !at->is_array()) return false;
  for (const Json& platform : *at) {
    if (!platform.is_string()) return false;
    model->platforms.push_back(printable_line(platform.get<std::string>()));
  }
  return true;
}

// "" if the header describes a model, which then has the right shape; else what is wrong.
std::string read_header(std::string_view text, std::size_t tensor_bytes, Model* model) {
  if (nests_deeper(text)) return "nesting of the header";
  const Json header = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  int members = 0;
  if (!header.is_object() || !read_options(header, &model->options))
    return "options of the network";
  if (!read_int(header, "members", 1, kMostMembers, &members)) return "number of members";
  if (!read_normalisers(header, model)) return "normalisers";
  if (!read_platforms(header, model)) return "platforms";
  if (!read_text(header, "feature_set", &model->feature_set)) return "feature set";
  const NetworkOptions options = model->options;
  for (int i = 0; i < members; ++i) {
    model->members.push_back(make_network<float>(options, 0));
    // The first one tells how large all are.
    const std::size_t each = model->members.back()->parameters.values.size() * sizeof(float);
    if (each > tensor_bytes / static_cast<std::size_t>(members))
      return "too few bytes for its tensors";
  }
  const auto tensors = header.find("tensors");
  const std::vector<Part> parts = parts_of(model);
  if (tensors == header.end() || !tensors->is_array() || tensors->size() != parts.size()) {
    return "number of tensors";
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Json& tensor = (*tensors)[i];
    std::string name;
    int size = 0;
    constexpr int kMostValues = 1 << 26;
    if (!tensor.is_object() || !read_text(tensor, "name", &name) || name != parts[i].name) {
      return "name of tensor " + std::to_string(i);
    }
    if (!read_int(tensor, "size", 0, kMostValues, &size) ||
        static_cast<std::size_t>(size) != parts[i].values.size()) {
      return "size of tensor " + name;
    }
  }
  return "";
}

std::string read_tensors(std::string_view bytes, Model* model) {
  for (const Part& part : parts_of(model)) {
    const std::size_t size = part.values.size_bytes();
    if (size > bytes.size()) return "too few bytes for tensor " + part.name;
    if (size > 0) std::memcpy(part.values.data(), bytes.data(), size);
    bytes.remove_prefix(size);
    const bool is_variance = part.name.ends_with(".running_variance");
    for (const float value : part.values) {
      if (!std::isfinite(value) || (is_variance && value < 0)) {
        return "a value of tensor " + part.name;
      }
    }
  }
  return bytes.empty() ? "" : "bytes after the last tensor";
}

Error damaged(const std::string& path, const std::string& what) {
  return error(Diag::kModelDamaged, path, what);
}

}  // namespace

std::string serialize(const Model& model, std::string_view tool) {
  static_assert(std::endian::native == std::endian::little, "the format is little endian");
  Model copy = model;
  const std::vector<Part> parts = parts_of(&copy);
  const std::string header = header_json(model, parts, tool).dump();
  std::string body = header;
  for (const Part& part : parts) {
    body.append(reinterpret_cast<const char*>(part.values.data()), part.values.size_bytes());
  }
  WireWriter out;
  out.put(static_cast<uint32_t>(kCheckpointFormat));
  out.put(static_cast<uint64_t>(header.size()));
  out.put(checksum(header.size(), body));
  return std::string(kMagic) + out.take() + body;
}

Result<Model> parse_checkpoint(std::string_view bytes, const std::string& path) {
  if (bytes.size() < kPreamble || bytes.substr(0, kMagic.size()) != kMagic) {
    return damaged(path, "this is no model");
  }
  if (bytes.size() > kMostBytes) return damaged(path, "too large");
  WireReader in(bytes.substr(kMagic.size()));
  const auto format = in.get<uint32_t>();
  const auto header_size = in.get<uint64_t>();
  const auto sum = in.get<uint64_t>();
  if (format != static_cast<uint32_t>(kCheckpointFormat)) {
    return error(Diag::kModelVersion, path, int64_t{format}, int64_t{kCheckpointFormat});
  }
  const std::string_view body = bytes.substr(kPreamble);
  if (header_size > body.size() || checksum(header_size, body) != sum) {
    return damaged(path, "checksum");
  }
  if (header_size > kMostHeaderBytes) return damaged(path, "size of the header");
  Model model;
  const std::string_view tensors = body.substr(static_cast<std::size_t>(header_size));
  std::string wrong =
      read_header(body.substr(0, static_cast<std::size_t>(header_size)), tensors.size(), &model);
  if (wrong.empty()) wrong = read_tensors(tensors, &model);
  if (!wrong.empty()) return damaged(path, wrong);
  return model;
}

Result<void> write_checkpoint(const Model& model, std::string_view tool, const std::string& path) {
  return replace_file(path, serialize(model, tool));
}

Result<Model> read_checkpoint(const std::string& path) {
  PRUNERC_TRY(const std::string bytes, read_file(path, kMostBytes));
  return parse_checkpoint(bytes, path);
}

}  // namespace prunerc::costmodel::model

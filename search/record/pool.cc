#include "search/record/pool.h"

#include "ir/parser.h"
#include "ir/support/file.h"
#include "ir/support/hash.h"
#include "search/record/pool_columns.h"

#include <nlohmann/json.hpp>
#include <zstd.h>

namespace prunerc::search {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMagic = "PRNPOOL\n";
/// Magic, format, size of what is compressed, checksum of the compressed bytes.
constexpr std::size_t kPreamble = 8 + 4 + 8 + 8;
/// Of a file, and of what it unpacks to; the largest recorded so far have a hundredth of a percent.
constexpr uint64_t kMaxBytes = uint64_t{64} << 20;
constexpr int kCompression = 19;
/// Far more than there are rows.
constexpr int64_t kMostBatches = int64_t{1} << 40;

template <typename T>
void put_number(std::string* out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) *out += static_cast<char>((value >> (8 * i)) & 0xFF);
}

template <typename T>
T get_number(std::string_view bytes) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

Json sketch_json(const Sketch& sketch, const SketchDraws& draws) {
  return {{"name", sketch.name},
          {"trace", schedule::print(sketch.trace)},
          {"drawn", draws.drawn},
          {"rejected", draws.rejected},
          {"repeated", draws.repeated}};
}

Json header_json(const Pool& pool) {
  Json header = {{"op", pool.op},
                 {"op_text", pool.op_text},
                 {"bindings", pool.bindings},
                 {"program", pool.program},
                 {"platform", pool.platform},
                 {"timer", pool.timer},
                 {"version", pool.version},
                 {"created", pool.created},
                 {"seed", pool.seed},
                 {"share_searched", pool.share_searched},
                 {"num_batches", pool.num_batches},
                 {"num_rows", pool.rows.size()},
                 {"sketches", Json::array()},
                 {"examples", Json::object()}};
  for (std::size_t i = 0; i < pool.sketches.size(); ++i) {
    header["sketches"].push_back(sketch_json(pool.sketches[i], pool.draws[i]));
  }
  for (int i = 0; i < kNumMeasureStatuses; ++i) {
    const std::string& example = pool.examples[static_cast<std::size_t>(i)];
    if (!example.empty()) {
      header["examples"][std::string(to_string(static_cast<MeasureStatus>(i)))] = example;
    }
  }
  return header;
}

/// Reads members of the header; `ok` turns false at the first that is missing or of another type.
struct HeaderReader {
  const Json& json;
  bool ok = true;

  template <typename T>
  void get(const char* key, T* value) {
    const auto at = json.find(key);
    constexpr bool kText = std::is_same_v<T, std::string>;
    constexpr bool kReal = std::is_floating_point_v<T>;
    ok = ok && at != json.end() &&
         (kText   ? at->is_string()
          : kReal ? at->is_number()
                  : at->is_number_integer());
    if (ok) *value = at->get<T>();
  }
};

bool read_sketch(const Json& json, Pool* pool) {
  if (!json.is_object()) return false;
  HeaderReader in{json};
  std::string name, text;
  SketchDraws draws;
  in.get("name", &name);
  in.get("trace", &text);
  in.get("drawn", &draws.drawn);
  in.get("rejected", &draws.rejected);
  in.get("repeated", &draws.repeated);
  if (!in.ok) return false;
  name = printable_line(name);
  Result<schedule::Trace> trace = schedule::parse_trace(text);
  if (!trace) return false;
  pool->sketches.push_back(make_sketch(std::move(name), std::move(trace).value()));
  pool->draws.push_back(draws);
  return true;
}

bool read_header(const std::string& text, Pool* pool, std::size_t* num_rows) {
  if (nests_deeper(text)) return false;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  HeaderReader in{json};
  in.get("op", &pool->op);
  in.get("op_text", &pool->op_text);
  in.get("bindings", &pool->bindings);
  in.get("program", &pool->program);
  in.get("platform", &pool->platform);
  in.get("timer", &pool->timer);
  in.get("version", &pool->version);
  in.get("created", &pool->created);
  in.get("seed", &pool->seed);
  in.get("share_searched", &pool->share_searched);
  in.get("num_batches", &pool->num_batches);
  in.get("num_rows", num_rows);
  // A recording that goes on counts further, by parts of batches.
  const bool is_share = pool->share_searched >= 0 && pool->share_searched <= 1;
  if (!is_share || pool->num_batches < 0 || pool->num_batches > kMostBatches) return false;
  const auto sketches = json.find("sketches");
  const auto examples = json.find("examples");
  if (!in.ok || sketches == json.end() || !sketches->is_array()) return false;
  if (examples == json.end() || !examples->is_object()) return false;
  for (const Json& sketch : *sketches) {
    if (!read_sketch(sketch, pool)) return false;
  }
  for (const auto& [key, value] : examples->items()) {
    const std::optional<MeasureStatus> status = measure_status_from_string(key);
    if (!status || !value.is_string()) return false;
    pool->examples[static_cast<std::size_t>(*status)] = printable(value.get<std::string>());
  }
  for (std::string* const shown :
       {&pool->op, &pool->bindings, &pool->timer, &pool->version, &pool->created}) {
    *shown = printable_line(*shown);
  }
  return true;
}

// What was compressed; nothing if it is not whole.
std::optional<std::string> unpack(std::string_view bytes) {
  const auto size = get_number<uint64_t>(bytes.substr(12));
  const std::string_view packed = bytes.substr(kPreamble);
  if (ZSTD_getFrameContentSize(packed.data(), packed.size()) != size) return std::nullopt;
  std::string raw(static_cast<std::size_t>(size), '\0');
  const std::size_t got = ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size());
  if (ZSTD_isError(got) != 0 || got != raw.size()) return std::nullopt;
  return raw;
}

}  // namespace

std::string_view to_string(PoolOrigin origin) {
  return origin == PoolOrigin::kUniform ? "uniform" : "searched";
}

Result<Task> Pool::task() const {
  PRUNERC_TRY(ir::Program base, ir::parse(program));
  PRUNERC_TRY(ir::Target target, ir::target_from_string(platform));
  Task task = make_task(op, std::move(base), std::move(target));
  task.op_text = op_text;
  task.bindings = bindings;
  return task;
}

SearchSpace Pool::space() const {
  SearchSpace space;
  space.sketches = sketches;
  return space;
}

int Pool::best() const {
  int best = -1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].ok()) continue;
    if (best < 0 || rows[i].median_ns < rows[static_cast<std::size_t>(best)].median_ns) {
      best = static_cast<int>(i);
    }
  }
  return best;
}

Pool make_pool(const Task& task, const SearchSpace& space) {
  Pool pool;
  pool.op = task.name;
  pool.op_text = task.op_text;
  pool.bindings = task.bindings;
  pool.program = task.key.program;
  pool.platform = ir::to_string(task.target);
  pool.sketches = space.sketches;
  pool.draws.resize(space.sketches.size());
  return pool;
}

std::string serialize(const Pool& pool) {
  // Text from outside (a compiler's log) may not be UTF-8.
  const std::string header = header_json(pool).dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string raw;
  put_number(&raw, static_cast<uint64_t>(header.size()));
  raw += header;
  raw += encode_rows(pool);
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  const std::size_t size =
      ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), kCompression);
  PRUNERC_CHECK(ZSTD_isError(size) == 0, "there is room for the worst case");
  packed.resize(size);
  std::string out(kMagic);
  put_number(&out, static_cast<uint32_t>(kPoolFormat));
  put_number(&out, static_cast<uint64_t>(raw.size()));
  put_number(&out, hash_bytes(packed, raw.size()));
  return out + packed;
}

Result<Pool> parse_pool(std::string_view bytes, const std::string& path) {
  const auto damaged = [&](const char* why) {
    return error(Diag::kPoolDamaged, path, std::string(why));
  };
  if (bytes.size() < kPreamble) return damaged("it is too short");
  if (bytes.substr(0, kMagic.size()) != kMagic) return damaged("it does not begin as pools do");
  const auto format = get_number<uint32_t>(bytes.substr(8));
  if (format > static_cast<uint32_t>(kPoolFormat)) {
    return error(Diag::kPoolVersion, path, static_cast<int64_t>(format), int64_t{kPoolFormat});
  }
  const auto size = get_number<uint64_t>(bytes.substr(12));
  if (get_number<uint64_t>(bytes.substr(20)) != hash_bytes(bytes.substr(kPreamble), size)) {
    return damaged("its bytes do not fit their checksum");
  }
  if (size > kMaxBytes) {
    return error(Diag::kTooMany, "the pool '" + path + "'", bytes_text(size) + " unpacked",
                 bytes_text(kMaxBytes));
  }
  const std::optional<std::string> raw = unpack(bytes);
  if (!raw || raw->size() < 8) return damaged("it cannot be decompressed");
  const auto header_size = get_number<uint64_t>(*raw);
  if (header_size > raw->size() - 8) return damaged("its header has no end");
  Pool pool;
  std::size_t num_rows = 0;
  if (!read_header(raw->substr(8, header_size), &pool, &num_rows)) {
    return damaged("its header cannot be read");
  }
  if (num_rows > kMaxPoolRows) {
    return error(Diag::kTooMany, "the pool '" + path + "'", std::to_string(num_rows) + " rows",
                 std::to_string(kMaxPoolRows));
  }
  const std::string_view columns = std::string_view(*raw).substr(8 + header_size);
  if (const char* wrong = decode_rows(columns, num_rows, &pool); wrong != nullptr) {
    return damaged(wrong);
  }
  return pool;
}

Result<void> write_pool(const Pool& pool, const std::string& path) {
  return replace_file(path, serialize(pool));
}

Result<Pool> read_pool(const std::string& path) {
  PRUNERC_TRY(const std::string bytes, read_file(path, kMaxBytes));
  return parse_pool(bytes, path);
}

}  // namespace prunerc::search

#include "tools/driver/t4/t4_file.h"

#include "ir/support/file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace prunerc {
namespace {

using Json = nlohmann::json;

/// Of a file, and of what it unpacks to: the largest so far have 25 MiB.
constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

constexpr double kNsPerMs = 1e6;
constexpr double kNsPerSecond = 1e9;
/// Thirty years: longer was not measured. A pool keeps whole nanoseconds.
constexpr double kMaxNs = 1e18;
/// Of names, and parts of a file that a message shows. Units: bytes.
constexpr std::size_t kMaxName = 128;
constexpr std::size_t kMaxParams = 64;
/// Of a row; a pool's column has room for so many.
constexpr std::size_t kMaxSamples = 1'000'000;
constexpr std::string_view kGzipMagic = "\x1f\x8b";
/// windowBits of inflateInit2 for a gzip header (zlib.h).
constexpr int kGzipWindow = 15 + 16;

/// How a failure is called, in T4 and in Kernel Tuner's caches, and what it is to us.
struct Failure {
  std::string_view word;
  MeasureStatus status;
};
constexpr Failure kFailures[] = {
    {"compile", MeasureStatus::kBuildError},
    {"runtime", MeasureStatus::kRunError},
    {"timeout", MeasureStatus::kTimeout},
    {"correctness", MeasureStatus::kWrongResult},
    {"constraints", MeasureStatus::kRejected},
    {"CompilationFailedConfig", MeasureStatus::kBuildError},
    {"RuntimeFailedConfig", MeasureStatus::kRunError},
    {"InvalidConfig", MeasureStatus::kRejected},
};

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  Result<T4File> read(const Json& json) {
    if (!json.is_object()) return damaged("it is no JSON object");
    const Json* const cache = find(json, "cache");
    const Json* const results = find(json, "results");
    if (cache != nullptr && cache->is_object()) {
      PRUNERC_TRY_VOID(read_cache(json, *cache));
    } else if (results != nullptr && results->is_array()) {
      PRUNERC_TRY_VOID(read_results(json, *results));
    } else {
      return damaged("it has neither \"cache\" nor \"results\"");
    }
    if (file_.rows.empty()) return damaged("it has no rows");
    return std::move(file_);
  }

 private:
  Error damaged(std::string why) const {
    return error(Diag::kT4Damaged, path_, printable_line(why));
  }
  Error damaged_row(const std::string& why) const {
    return damaged(fmt::format("row {}: {}", file_.rows.size() + 1, why));
  }

  static const Json* find(const Json& json, const char* key) {
    const auto at = json.find(key);
    return at == json.end() ? nullptr : &*at;
  }

  static double seconds_of(const Json* ms) {
    const double ns = ms != nullptr && ms->is_number() ? ms->get<double>() * kNsPerMs : 0;
    return ns >= 1 && ns <= kMaxNs ? ns / kNsPerSecond : 0;
  }

  // --- Kernel Tuner's caches: {"device_name", "tune_params_keys", "cache": {key: row}}

  Result<void> read_cache(const Json& json, const Json& cache) {
    const Json* const device = find(json, "device_name");
    if (device != nullptr && device->is_string()) {
      file_.device = device->get<std::string>().substr(0, kMaxName);
    }
    const Json* const keys = find(json, "tune_params_keys");
    if (keys == nullptr || !keys->is_array()) return damaged("\"tune_params_keys\" is no list");
    for (const Json& key : *keys) {
      if (!key.is_string()) return damaged("a name in \"tune_params_keys\" is no text");
      file_.params.push_back(key.get<std::string>());
    }
    PRUNERC_TRY_VOID(check_params());
    const Json* const size = find(json, "problem_size");
    for (std::size_t i = 0; size != nullptr && size->is_array() && i < size->size(); ++i) {
      if ((*size)[i].is_number_integer()) file_.problem_size.push_back((*size)[i].get<int64_t>());
    }
    for (const auto& [key, row] : cache.items()) {
      if (!row.is_object()) return damaged_row("it is no object");
      T4Row made;
      PRUNERC_TRY_VOID(read_values(row, &made));
      const Json* const time = find(row, "time");
      if (time == nullptr) return damaged_row("it has no \"time\"");
      const std::string word = time->is_string() ? time->get<std::string>() : "";
      PRUNERC_TRY_VOID(read_outcome(word, find(row, "times"), time, &made.measurement));
      made.measurement.build_s = seconds_of(find(row, "compile_time"));
      made.measurement.measure_s = seconds_of(find(row, "benchmark_time"));
      file_.rows.push_back(std::move(made));
    }
    return {};
  }

  // --- T4: {"metadata", "results": [{"configuration", "times", "invalidity", "measurements"}]}

  Result<void> read_results(const Json& json, const Json& results) {
    PRUNERC_TRY_VOID(check_unit(json));
    for (const Json& row : results) {
      const Json* const configuration = row.is_object() ? find(row, "configuration") : nullptr;
      if (configuration == nullptr || !configuration->is_object()) {
        return damaged_row("it has no \"configuration\"");
      }
      if (file_.rows.empty()) {
        for (const auto& [key, value] : configuration->items()) file_.params.push_back(key);
        PRUNERC_TRY_VOID(check_params());
      }
      if (configuration->size() > file_.params.size()) {
        return damaged_row("it has parameters that the first one has not");
      }
      T4Row made;
      PRUNERC_TRY_VOID(read_values(*configuration, &made));
      const Json* const invalidity = find(row, "invalidity");
      if (invalidity == nullptr || !invalidity->is_string()) {
        return damaged_row("it has no \"invalidity\"");
      }
      std::string word = invalidity->get<std::string>();
      if (word == "correct") word.clear();
      const Json* const times = find(row, "times");
      const bool is_timed = times != nullptr && times->is_object();
      PRUNERC_TRY_VOID(read_outcome(word, is_timed ? find(*times, "runtimes") : nullptr,
                                    time_of(row), &made.measurement));
      if (is_timed) made.measurement.build_s = seconds_of(find(*times, "compilation"));
      file_.rows.push_back(std::move(made));
    }
    return {};
  }

  // The schema's own example spells the unit with one "l".
  Result<void> check_unit(const Json& json) const {
    const Json* const metadata = find(json, "metadata");
    const Json* const unit =
        metadata != nullptr && metadata->is_object() ? find(*metadata, "timeunit") : nullptr;
    if (unit == nullptr || *unit == "miliseconds" || *unit == "milliseconds") return {};
    const std::string text = unit->dump(-1, ' ', false, Json::error_handler_t::replace);
    return damaged("its times are in " + text.substr(0, kMaxName) + ", read are milliseconds");
  }

  static const Json* time_of(const Json& row) {
    const Json* const measurements = find(row, "measurements");
    if (measurements == nullptr || !measurements->is_array()) return nullptr;
    for (const Json& m : *measurements) {
      if (m.is_object() && m.contains("name") && m["name"] == "time") return find(m, "value");
    }
    return nullptr;
  }

  // --- rows

  Result<void> check_params() const {
    const bool is_long = std::any_of(file_.params.begin(), file_.params.end(),
                                     [](const std::string& p) { return p.size() > kMaxName; });
    if (!is_long && file_.params.size() <= kMaxParams) return {};
    return damaged("it has too many parameters, or too long names of them");
  }

  Result<void> read_values(const Json& from, T4Row* row) const {
    for (const std::string& name : file_.params) {
      const Json* const value = find(from, name.c_str());
      if (value == nullptr || !value->is_number_integer()) {
        return damaged_row("parameter '" + name + "' is no integer");
      }
      row->values.push_back(value->get<int64_t>());
    }
    return {};
  }

  // `failure`: empty if it ran. `times`: all samples; where there are none, `time` is what there is.
  Result<void> read_outcome(const std::string& failure, const Json* times, const Json* time,
                            search::Measurement* out) const {
    if (!failure.empty()) {
      const auto* const known = std::find_if(std::begin(kFailures), std::end(kFailures),
                                             [&](const Failure& f) { return f.word == failure; });
      if (known == std::end(kFailures)) {
        return damaged_row("unknown failure '" + failure.substr(0, kMaxName) + "'");
      }
      out->status = known->status;
      out->detail = failure;
      return {};
    }
    out->status = MeasureStatus::kOk;
    const bool has_samples = times != nullptr && times->is_array() && !times->empty();
    const std::size_t count = has_samples ? times->size() : 1;
    if (count > kMaxSamples) return damaged_row(fmt::format("it has {} times", count));
    for (std::size_t i = 0; i < count; ++i) {
      const Json* const sample = has_samples ? &(*times)[i] : time;
      const double ns =
          sample != nullptr && sample->is_number() ? sample->get<double>() * kNsPerMs : 0;
      if (!(ns >= 1 && ns <= kMaxNs)) return damaged_row("a time is no positive number");
      out->samples_ns.push_back(ns);
    }
    search::summarize_samples(*out);
    return {};
  }

  const std::string& path_;
  T4File file_;
};

// Nothing if it is not whole; TooMany is for the caller to say, of more than `most` bytes.
std::optional<std::string> unzip(std::string_view bytes, std::size_t most) {
  z_stream stream = {};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return std::nullopt;
  stream.next_in =
      reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // NOLINT: zlib's type
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  std::array<char, 1 << 16> piece;
  int state = Z_OK;
  while (state == Z_OK && out.size() <= most) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    out.append(piece.data(), piece.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END && out.size() <= most) return std::nullopt;
  return out;
}

}  // namespace

Result<T4File> parse_t4(std::string_view bytes, const std::string& path) {
  const auto damaged = [&](const char* why) {
    return error(Diag::kT4Damaged, path, std::string(why));
  };
  std::string text;
  if (bytes.substr(0, kGzipMagic.size()) == kGzipMagic) {
    std::optional<std::string> unpacked = unzip(bytes, kMaxBytes);
    if (!unpacked) return damaged("it cannot be decompressed");
    if (unpacked->size() > kMaxBytes) {
      return error(Diag::kTooMany, "'" + path + "'", std::string("more bytes unpacked"),
                   bytes_text(kMaxBytes));
    }
    text = *std::move(unpacked);
    bytes = text;
  }
  if (nests_deeper(bytes)) return damaged("it is nested too deep");
  const Json json = Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return damaged("it is no JSON");
  return Reader(path).read(json);
}

Result<T4File> read_t4(const std::string& path) {
  PRUNERC_TRY(const std::string bytes, read_file(path, kMaxBytes));
  return parse_t4(bytes, path);
}

}  // namespace prunerc

#include "search/record/rows_file.h"

#include "ir/support/file.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

namespace prunerc::search {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kSchema = "prunerc.rows/1";
constexpr uint64_t kMaxRowsFileBytes = uint64_t{16} << 20;

struct Part {
  std::string path, op;
  std::size_t num_rows = 0;
  std::vector<int> train, test;
  bool is_whole = false;  // a pool by itself
};

Result<std::vector<Part>> parse(const std::string& path) {
  PRUNERC_TRY(const std::string text, read_file(path, kMaxRowsFileBytes));
  if (nests_deeper(text)) return error(Diag::kRowsFile, path, std::string("nested too deeply"));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto damaged = [&](const char* why) {
    return error(Diag::kRowsFile, path, std::string(why));
  };
  if (!json.is_object() || !json.contains("schema") || json["schema"] != kSchema)
    return damaged("no such schema");
  if (!json.contains("pools") || !json["pools"].is_array()) return damaged("no list of pools");
  std::vector<Part> out;
  for (const Json& entry : json["pools"]) {
    Part part;
    const auto numbers = [&](const char* key, std::vector<int>& into) {
      if (!entry.contains(key) || !entry[key].is_array()) return false;
      for (const Json& n : entry[key]) {
        if (!n.is_number_unsigned() || n.get<std::size_t>() >= part.num_rows) return false;
        into.push_back(n.get<int>());
      }
      return true;
    };
    if (!entry.is_object() || !entry.contains("path") || !entry["path"].is_string() ||
        !entry.contains("op") || !entry["op"].is_string() || !entry.contains("rows") ||
        !entry["rows"].is_number_unsigned()) {
      return damaged("a pool lacks its path, operator or number of rows");
    }
    part.path = (fs::path(path).parent_path() / entry["path"].get<std::string>()).string();
    part.op = entry["op"].get<std::string>();
    part.num_rows = entry["rows"].get<std::size_t>();
    if (!numbers("train", part.train) || !numbers("test", part.test)) {
      return damaged("a list of rows is none, or names rows that the pool does not have");
    }
    const std::set<int> train(part.train.begin(), part.train.end());
    const std::set<int> test(part.test.begin(), part.test.end());
    const bool is_shared =
        std::any_of(test.begin(), test.end(), [&](int row) { return train.contains(row); });
    if (is_shared && train != test) return damaged("rows that test train as well");
    out.push_back(std::move(part));
  }
  return out;
}

// By its name or its first character, since files are named by people.
Result<bool> is_rows_file(const std::string& path) {
  PRUNERC_TRY(InputFile file, InputFile::open(path));
  char first = '\0';
  PRUNERC_TRY_VOID(file.read(std::span(&first, 1)));
  return fs::path(path).extension() == ".json" || first == '{';
}

// A pool that comes twice, if only as a copy, would train and test with the same rows.
Result<void> check_once(const Corpus& corpus) {
  std::set<std::pair<int32_t, std::string>> known;
  for (std::size_t p = 0; p < corpus.pools.size(); ++p) {
    const Pool& pool = corpus.pools[p];
    std::string mark = pool.created.empty() ? "" : pool.created + " " + std::to_string(pool.seed);
    std::error_code code;
    if (mark.empty()) mark = fs::weakly_canonical(corpus.paths[p], code).string();
    if (!known.emplace(corpus.task[p], std::move(mark)).second) {
      return error(Diag::kPoolTwice, corpus.paths[p]);
    }
  }
  return {};
}

}  // namespace

Result<void> write_rows(const Corpus& corpus, const Split& split, const std::string& path) {
  std::map<int, std::pair<std::vector<int>, std::vector<int>>> rows;
  for (const CorpusRow& r : split.train) rows[r.pool].first.push_back(r.row);
  for (const CorpusRow& r : split.test) rows[r.pool].second.push_back(r.row);
  Json pools = Json::array();
  std::error_code code;
  // Links are followed first: what is beside a link is not beside what it stands for.
  const fs::path folder = fs::weakly_canonical(fs::absolute(path, code).parent_path(), code);
  for (const auto& [p, both] : rows) {
    const auto at = static_cast<std::size_t>(p);
    pools.push_back(
        {{"path", fs::weakly_canonical(corpus.paths[at], code).lexically_relative(folder).string()},
         {"op", corpus.pools[at].op},
         {"rows", corpus.pools[at].rows.size()},
         {"train", both.first},
         {"test", both.second}});
  }
  const Json text = {{"schema", kSchema}, {"pools", std::move(pools)}};
  return replace_file(path, text.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result<Selection> read_selection(std::span<const std::string> paths) {
  std::vector<Part> parts;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    PRUNERC_TRY(const bool is_rows, is_rows_file(path));
    if (!is_rows) {
      parts.push_back({path, "", 0, {}, {}, true});
      continue;
    }
    PRUNERC_TRY(const std::vector<Part> more, parse(path));
    parts.insert(parts.end(), more.begin(), more.end());
  }
  for (const Part& part : parts) files.push_back(part.path);
  Selection out;
  PRUNERC_TRY(out.corpus, read_corpus(files));
  PRUNERC_TRY_VOID(check_once(out.corpus));
  const std::vector<CorpusRow> all = all_rows(out.corpus);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Part& part = parts[p];
    const Pool& pool = out.corpus.pools[p];
    if (part.is_whole) {
      for (const CorpusRow& row : all) {
        if (row.pool != static_cast<int>(p)) continue;
        out.split.train.push_back(row);
        out.split.test.push_back(row);
      }
      continue;
    }
    if (pool.op != part.op || pool.rows.size() < part.num_rows) {
      return error(Diag::kRowsFile, part.path, std::string("the pool is another one by now"));
    }
    for (const int row : part.train) out.split.train.push_back({static_cast<int>(p), row});
    for (const int row : part.test) out.split.test.push_back({static_cast<int>(p), row});
  }
  return out;
}

}  // namespace prunerc::search

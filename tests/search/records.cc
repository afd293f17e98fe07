#include "tests/search/records.h"

#include "tests/support/check.h"

#include <unistd.h>

#include <cstdio>
#include <sstream>
#include <utility>

namespace prunerc::testing {

std::string fresh_path(const std::string& name) {
  const std::string path = scratch_path("prunerc_" + name + "_" + std::to_string(getpid()) + ".db");
  for (const char* suffix : {"", "-wal", "-shm"}) std::remove((path + suffix).c_str());
  return path;
}

search::Database open_or_die(const std::string& path) {
  Result<search::Database> db = search::Database::open(path);
  REQUIRE_OK(db);
  return std::move(db).value();
}

std::string lines_of(search::Database& db, search::Export which) {
  std::stringstream out;
  REQUIRE_OK(db.export_lines(out, which));
  return out.str();
}

Result<search::ImportCounts> import_text(search::Database& db, const std::string& text) {
  std::stringstream in(text);
  return db.import_lines(in, "records.jsonl");
}

search::Record make_record(int64_t n, double median_ns, bool verified) {
  search::Record record;
  record.fingerprint = Fingerprint{1, static_cast<uint64_t>(n)}.to_string();
  record.sketch = "tile";
  record.trace = "parallel(@L0)\n";
  record.measurement.status = MeasureStatus::kOk;
  record.measurement.samples_ns = {median_ns, median_ns * 1.01, median_ns * 0.99};
  summarize_samples(record.measurement);
  if (verified) record.measurement.evidence = "all outputs agree";
  record.platform = "cpu";
  record.timer = "test";
  record.seed = 0xFFFFFFFFFFFFFFFFULL;
  record.version = "0";
  return record;
}

}  // namespace prunerc::testing

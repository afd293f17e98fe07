// Bytes as lines of records to import: each is kept, known or refused, what is kept can be exported
// and imported again, and looking for faults in it does not end badly.
#include "search/record/database.h"
#include "tests/fuzz/fuzz.h"

#include <sstream>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using prunerc::search::Database;
  using namespace prunerc::fuzz;
  auto database = Database::open(":memory:");
  require(database.ok(), "no database in memory");
  std::istringstream in{std::string(as_text(data, size))};
  const auto counts = database->import_lines(in, "fuzz.jsonl");
  require_reason(counts, as_text(data, size));
  if (!counts.ok()) return 0;
  require_reason(database->validate(), "");
  std::ostringstream out;
  const auto exported = database->export_lines(out);
  require(exported.ok() && *exported == counts->num_records, "not all that was kept is exported",
          out.str());
  auto other = Database::open(":memory:");
  std::istringstream again(out.str());
  const auto repeated = other->import_lines(again, "again.jsonl");
  require(repeated.ok() && repeated->num_records == counts->num_records, "not all comes back",
          out.str());
  return 0;
}

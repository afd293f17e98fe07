// Bytes as a database file: every question is answered or refused with a reason, opened to read and
// to write.
#include "search/record/database.h"
#include "tests/fuzz/fuzz.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace {

using namespace prunerc::fuzz;  // NOLINT: a program of its own
using prunerc::Result;
using prunerc::search::Database;

void ask(Result<Database> database) {
  require_reason(database, "");
  if (!database.ok()) return;
  require_reason(database->stats(), "");
  require_reason(database->validate(), "");
  std::ostringstream out;
  require_reason(database->export_lines(out), "");
  const auto tasks = database->list_tasks();
  require_reason(tasks, "");
  for (size_t i = 0; tasks.ok() && i < tasks->size() && i < 4; ++i) {
    require_reason(database->best((*tasks)[i].id), "");
    require_reason(database->top_k((*tasks)[i].id, 3), "");
    require_reason(database->records((*tasks)[i].id), "");
    require_reason(database->derived_of((*tasks)[i].id), "");
    require_reason(database->specs_of((*tasks)[i].id), "");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // In memory where there is such a folder: thousands of files a second.
  static const std::string folder = (std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp") +
                                    std::string("/prunerc-fuzz-") + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/db.sqlite";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  ask(Database::open_to_read(path));
  ask(Database::open(path));
  std::filesystem::remove_all(folder);
  return 0;
}

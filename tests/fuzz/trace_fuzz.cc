// Bytes as a trace, as a script and as a trace in JSON: never a crash, and what is read prints and
// reads back as the same.
#include "schedule/trace/trace.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace prunerc::schedule;
  using namespace prunerc::fuzz;
  const std::string_view text = as_text(data, size);
  require_reason(parse_script(text), text);
  const auto trace = parse_trace(text);
  require_reason(trace, text);
  if (trace.ok()) {
    const std::string printed = print(*trace);
    const auto again = parse_trace(printed);
    require(again.ok() && print(*again) == printed, "a trace changes by printing", printed);
    const std::string json = to_json(*trace);
    const auto back = trace_from_json(json);
    // What stands for bytes that are no UTF-8 is another text.
    const bool is_lossy = json.find("\\ufffd") != std::string::npos;
    require(back.ok() && (is_lossy || print(*back) == printed), "a trace changes by JSON", json);
  }
  const auto read = trace_from_json(text);
  require_reason(read, text);
  if (read.ok()) {
    const std::string json = to_json(*read);
    const auto again = trace_from_json(json);
    require(again.ok() && to_json(*again) == json, "JSON changes", json);
  }
  return 0;
}

// The JSON form of traces: to_json and trace_from_json.
#include "ir/support/file.h"
#include "schedule/primitive.h"
#include "schedule/trace/trace.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace prunerc::schedule {
namespace {

using Json = nlohmann::json;
using ir::BlockId;
using ir::LoopId;

Json to_json(LoopId id) { return "@L" + std::to_string(id.value); }
Json to_json(BlockId id) { return "@B" + std::to_string(id.value); }
Json to_json(ValueId id) { return "v" + std::to_string(id.value); }
Json to_json(const std::string& text) { return text; }
Json to_json(const Int& item) { return item.ref.valid() ? to_json(item.ref) : Json(item.value); }
template <typename T>
Json to_json(const std::vector<T>& items) {
  Json out = Json::array();
  for (const T& item : items) out.push_back(to_json(item));
  return out;
}

Error wanted(const std::string& what) { return error(Diag::kTraceJson, what); }

// "@L12" or "v3" behind its prefix.
Result<int32_t> id_of(const Json& json, const std::string& prefix) {
  const std::string name = prefix == "@L" ? "a loop" : prefix == "@B" ? "a block" : "a value";
  if (!json.is_string()) return wanted(name);
  const std::string& text = json.get_ref<const std::string&>();
  if (text.compare(0, prefix.size(), prefix) != 0) return wanted(name);
  const char* const end = text.data() + text.size();
  int32_t id = -1;
  const auto read = std::from_chars(text.data() + prefix.size(), end, id);
  if (read.ec != std::errc() || read.ptr != end || id < 0) return wanted(name);
  return id;
}

// Nothing if it is no whole number, or one beyond 64 bits with a sign.
std::optional<int64_t> whole_number(const Json& json) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  if (!json.is_number_integer()) return std::nullopt;
  if (json.is_number_unsigned() && json.get<uint64_t>() > kMost) return std::nullopt;
  return json.get<int64_t>();
}

class Reader {
 public:
  Result<Trace> run(const Json& json) {
    if (!json.is_object() || !json.contains("steps") || !json["steps"].is_array()) {
      return wanted("a list 'steps'");
    }
    for (const Json& step : json["steps"]) {
      PRUNERC_TRY_VOID(instruction(step));
    }
    PRUNERC_TRY_VOID(decisions(json));
    return std::move(trace_);
  }

 private:
  Result<void> instruction(const Json& json) {
    if (!json.is_object() || !json.contains("do") || !json["do"].is_string()) {
      return wanted("a name 'do' in each step");
    }
    const std::string& name = json["do"].get_ref<const std::string&>();
    Instruction out;
    PRUNERC_TRY(out.primitive, kind_of(name));
    const Json with = json.value("with", Json::array());
    if (!with.is_array()) return wanted("a list 'with' in each step");
    std::size_t next = 0;
    for (std::string_view signature = primitive(out.primitive).operands; !signature.empty();) {
      if (next >= with.size()) return wanted("more operands for " + name);
      PRUNERC_TRY(Operand parsed, operand(with[next++], signature));
      out.operands.push_back(std::move(parsed));
    }
    if (next != with.size()) return wanted("fewer operands for " + name);
    const Json gives = json.value("gives", Json::array());
    if (!gives.is_array()) return wanted("a list 'gives' in each step");
    for (const Json& id : gives) {
      PRUNERC_TRY(const Output parsed, output(id));
      out.outputs.push_back(parsed);
    }
    trace_.instructions.push_back(std::move(out));
    return {};
  }

  static Result<PrimitiveKind> kind_of(const std::string& name) {
#define PRUNERC_PRIMITIVE(Name, text, operands, outputs) \
  if (name == (text)) return PrimitiveKind::k##Name;
#include "schedule/primitive.def"
#undef PRUNERC_PRIMITIVE
    return error(Diag::kParseUnknownName, name.substr(0, 40));
  }

  Result<Int> integer(const Json& json) {
    if (const std::optional<int64_t> number = whole_number(json)) return Int(*number);
    PRUNERC_TRY(const int32_t id, id_of(json, "v"));
    if (id >= num_values_) return error(Diag::kParseUnknownName, "v" + std::to_string(id));
    return Int(0, ValueId(id));
  }

  // One operand of the kind that `signature` starts with, which is consumed.
  Result<Operand> operand(const Json& json, std::string_view& signature) {
    const bool many = signature[0] == '*';
    const char kind = signature[many ? 1 : 0];
    signature.remove_prefix(many ? 2 : 1);
    if (many && !json.is_array()) return wanted("a list of operands");
    if (many && kind == 'L') {
      std::vector<LoopId> ids;
      for (const Json& item : json) {
        PRUNERC_TRY(const int32_t id, id_of(item, "@L"));
        ids.emplace_back(id);
      }
      return Operand(std::move(ids));
    }
    if (many) {
      std::vector<Int> ints;
      for (const Json& item : json) {
        PRUNERC_TRY(const Int parsed, integer(item));
        ints.push_back(parsed);
      }
      return Operand(std::move(ints));
    }
    if (kind == 'L') {
      PRUNERC_TRY(const int32_t id, id_of(json, "@L"));
      return Operand(LoopId(id));
    }
    if (kind == 'B') {
      PRUNERC_TRY(const int32_t id, id_of(json, "@B"));
      return Operand(BlockId(id));
    }
    if (kind == 'I') {
      PRUNERC_TRY(const Int parsed, integer(json));
      return Operand(parsed);
    }
    if (!json.is_string()) return wanted("a text operand");
    std::string text = json.get<std::string>();
    // What a script cannot spell is not read from elsewhere either.
    if (printable_line(text) != text || text.find('"') != std::string::npos) {
      return wanted("printable characters in a text operand");
    }
    return Operand(std::move(text));
  }

  Result<Output> output(const Json& json) {
    if (id_of(json, "@L").ok()) return Output(LoopId(*id_of(json, "@L")));
    if (id_of(json, "@B").ok()) return Output(BlockId(*id_of(json, "@B")));
    PRUNERC_TRY(const int32_t id, id_of(json, "v"));
    if (id != num_values_) return wanted("values numbered in order of appearance");
    ++num_values_;
    return Output(ValueId(id));
  }

  Result<void> decisions(const Json& json) {
    const Json found = json.value("decisions", Json::array());
    if (!found.is_array()) return wanted("a list 'decisions'");
    std::size_t next = 0;
    for (std::size_t i = 0; i < trace_.instructions.size(); ++i) {
      if (!trace_.instructions[i].is_sample()) continue;
      const bool fits = next < found.size() && found[next].is_array() && found[next].size() == 2 &&
                        found[next][0] == i && found[next][1].is_array();
      if (!fits) return wanted("a decision [step, values] for each sampling step, in order");
      Decision decision;
      for (const Json& value : found[next][1]) {
        const std::optional<int64_t> number = whole_number(value);
        if (!number) return wanted("whole numbers in decisions");
        decision.push_back(*number);
      }
      trace_.decisions.push_back(std::move(decision));
      ++next;
    }
    if (next != found.size()) return wanted("a decision for sampling steps only");
    return {};
  }

  Trace trace_;
  int32_t num_values_ = 0;
};

}  // namespace

std::string to_json(const Trace& trace) {
  Json steps = Json::array();
  Json decisions = Json::array();
  std::size_t next = 0;
  for (std::size_t i = 0; i < trace.instructions.size(); ++i) {
    const Instruction& step = trace.instructions[i];
    Json with = Json::array();
    for (const Operand& operand : step.operands) {
      with.push_back(std::visit([](const auto& value) { return to_json(value); }, operand));
    }
    Json gives = Json::array();
    for (const Output& output : step.outputs) {
      gives.push_back(std::visit([](const auto& id) { return to_json(id); }, output));
    }
    steps.push_back({{"do", to_string(step.primitive)}, {"with", with}, {"gives", gives}});
    if (step.is_sample()) decisions.push_back(Json::array({i, trace.decisions[next++]}));
  }
  return Json({{"steps", steps}, {"decisions", decisions}})
      .dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

Result<Trace> trace_from_json(std::string_view text) {
  if (nests_deeper(text)) return wanted("fewer levels of lists");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return wanted("a JSON text");
  return Reader().run(json);
}

}  // namespace prunerc::schedule

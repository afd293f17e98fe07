// The text form of traces: print and parse_trace.
#include "ir/support/file.h"
#include "schedule/trace/trace.h"

#include <cctype>
#include <charconv>

namespace prunerc::schedule {
namespace {

using ir::BlockId;
using ir::LoopId;

/// Each walks over the program that those before it made; a search's own have some hundreds.
constexpr std::size_t kMaxInstructions = 512;
/// Of loops or numbers.
constexpr std::size_t kMaxListLength = 256;

struct Row {
  std::string_view name, operands, outputs;
};
constexpr Row kRows[] = {
#define PRUNERC_PRIMITIVE(Name, text, operands, outputs) {text, operands, outputs},
#include "schedule/primitive.def"
#undef PRUNERC_PRIMITIVE
};

std::string text(LoopId id) { return "@L" + std::to_string(id.value); }
std::string text(BlockId id) { return "@B" + std::to_string(id.value); }
std::string text(ValueId id) { return "v" + std::to_string(id.value); }
std::string text(int64_t value) { return std::to_string(value); }
std::string text(const Int& item) {
  return item.ref.valid() ? text(item.ref) : std::to_string(item.value);
}
std::string text(const std::string& s) { return "\"" + s + "\""; }

template <typename T>
std::string text(const std::vector<T>& items) {
  std::string out = "[";
  for (std::size_t i = 0; i < items.size(); ++i) out += (i > 0 ? ", " : "") + text(items[i]);
  return out + "]";
}

class Parser {
 public:
  explicit Parser(std::string_view input) : input_(input) {}

  Result<TraceScript> run() {
    TraceScript out;
    for (skip_space(); pos_ < input_.size(); skip_space()) {
      out.lines.push_back(line_);
      if (out.lines.size() > kMaxInstructions) {
        return error_at(here(), Diag::kTooMany, "a script", "more instructions",
                        std::to_string(kMaxInstructions));
      }
      PRUNERC_TRY_VOID(instruction(out.trace));
    }
    return out;
  }

 private:
  void skip_space() {
    while (pos_ < input_.size()) {
      const char c = input_[pos_];
      if (c == '#') {
        while (pos_ + 1 < input_.size() && input_[pos_ + 1] != '\n') ++pos_;
      } else if (c == '\n') {
        ++line_;
        line_start_ = pos_ + 1;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
      ++pos_;
    }
  }
  char peek() {
    skip_space();
    return pos_ < input_.size() ? input_[pos_] : '\0';
  }
  bool accept(std::string_view symbol) {
    skip_space();
    if (input_.substr(pos_, symbol.size()) != symbol) return false;
    pos_ += symbol.size();
    return true;
  }
  Locus here() const { return {line_, static_cast<int32_t>(pos_ - line_start_) + 1}; }
  Error expected(std::string_view what) {
    skip_space();
    const std::string found =
        pos_ < input_.size() ? "'" + std::string(1, input_[pos_]) + "'" : "end of text";
    return error_at(here(), Diag::kParseExpected, std::string(what), found);
  }
  Result<void> need(std::string_view symbol) {
    if (!accept(symbol)) return expected("'" + std::string(symbol) + "'");
    return {};
  }

  std::string_view word() {
    skip_space();
    const std::size_t start = pos_;
    while (pos_ < input_.size() &&
           (std::isalnum(static_cast<unsigned char>(input_[pos_])) != 0 || input_[pos_] == '_')) {
      ++pos_;
    }
    return input_.substr(start, pos_ - start);
  }

  Result<int64_t> number() {
    skip_space();
    const char* first = input_.data() + pos_;
    const char* last = input_.data() + input_.size();
    int64_t value = 0;
    const auto parsed = std::from_chars(first, last, value);
    if (parsed.ec == std::errc::result_out_of_range) {
      return error_at(here(), Diag::kParseNumber, std::string(first, parsed.ptr));
    }
    if (parsed.ec != std::errc()) return expected("a number");
    pos_ += static_cast<std::size_t>(parsed.ptr - first);
    return value;
  }

  Result<int32_t> id_after(std::string_view prefix) {
    PRUNERC_TRY_VOID(need(prefix));
    if (pos_ >= input_.size() || std::isdigit(static_cast<unsigned char>(input_[pos_])) == 0) {
      return expected("an id");
    }
    PRUNERC_TRY(const int64_t value, number());
    if (value > INT32_MAX) {
      return error_at(here(), Diag::kParseNumber, std::to_string(value));
    }
    return static_cast<int32_t>(value);
  }

  Result<Int> integer() {
    if (peek() != 'v') {
      PRUNERC_TRY(const int64_t value, number());
      return Int(value);
    }
    const Locus at = here();
    PRUNERC_TRY(const int32_t id, id_after("v"));
    if (id >= num_values_) {
      return error_at(at, Diag::kParseUnknownName, text(ValueId(id)));
    }
    return Int(0, ValueId(id));
  }

  template <typename T, typename F>
  Result<std::vector<T>> list(F&& item) {
    PRUNERC_TRY_VOID(need("["));
    std::vector<T> out;
    if (accept("]")) return out;
    do {
      PRUNERC_TRY(T parsed, item());
      out.push_back(std::move(parsed));
      if (out.size() > kMaxListLength) {
        return error_at(here(), Diag::kTooMany, "a list", "more entries",
                        std::to_string(kMaxListLength));
      }
    } while (accept(","));
    PRUNERC_TRY_VOID(need("]"));
    return out;
  }

  Result<LoopId> loop() {
    PRUNERC_TRY(const int32_t id, id_after("@L"));
    return LoopId(id);
  }
  Result<BlockId> block() {
    PRUNERC_TRY(const int32_t id, id_after("@B"));
    return BlockId(id);
  }
  Result<std::string> quoted() {
    PRUNERC_TRY_VOID(need("\""));
    const std::size_t end = input_.find_first_of("\"\n", pos_);
    if (end == std::string_view::npos || input_[end] != '"') return expected("'\"'");
    std::string out(input_.substr(pos_, end - pos_));
    if (printable_line(out) != out) return expected("printable characters in a name");
    pos_ = end + 1;
    return out;
  }

  // One operand of the kind that `signature` starts with, which is consumed.
  Result<Operand> operand(std::string_view& signature) {
    const bool many = signature[0] == '*';
    const char kind = signature[many ? 1 : 0];
    signature.remove_prefix(many ? 2 : 1);
    if (many && kind == 'L') {
      PRUNERC_TRY(std::vector<LoopId> ids, list<LoopId>([&] { return loop(); }));
      return Operand(std::move(ids));
    }
    if (many) {
      PRUNERC_TRY(std::vector<Int> ints, list<Int>([&] { return integer(); }));
      return Operand(std::move(ints));
    }
    if (kind == 'L') {
      PRUNERC_TRY(const LoopId id, loop());
      return Operand(id);
    }
    if (kind == 'B') {
      PRUNERC_TRY(const BlockId id, block());
      return Operand(id);
    }
    if (kind == 'I') {
      PRUNERC_TRY(const Int item, integer());
      return Operand(item);
    }
    PRUNERC_TRY(std::string s, quoted());
    return Operand(std::move(s));
  }

  Result<Output> output() {
    if (peek() == 'v') {
      const Locus at = here();
      PRUNERC_TRY(const int32_t id, id_after("v"));
      // Values are numbered in order of appearance, so that a reference can be checked while
      // reading.
      if (id != num_values_) {
        return error_at(at, Diag::kParseExpected, text(ValueId(num_values_)), text(ValueId(id)));
      }
      ++num_values_;
      return Output(ValueId(id));
    }
    if (input_.substr(pos_, 2) == "@B") {
      PRUNERC_TRY(const BlockId id, block());
      return Output(id);
    }
    PRUNERC_TRY(const LoopId id, loop());
    return Output(id);
  }

  Result<void> instruction(Trace& trace) {
    skip_space();
    const Locus at = here();
    const std::string_view name = word();
    std::size_t row = 0;
    while (row < std::size(kRows) && kRows[row].name != name) ++row;
    if (row == std::size(kRows)) {
      if (name.empty()) return expected("a primitive");
      return error_at(at, Diag::kParseUnknownName, std::string(name));
    }
    Instruction out;
    out.primitive = static_cast<PrimitiveKind>(row);
    PRUNERC_TRY_VOID(need("("));
    for (std::string_view signature = kRows[row].operands; !signature.empty();) {
      if (!out.operands.empty() && !accept(",")) return expected("','");
      PRUNERC_TRY(Operand parsed, operand(signature));
      out.operands.push_back(std::move(parsed));
    }
    PRUNERC_TRY_VOID(need(")"));
    if (accept("->")) {
      do {
        PRUNERC_TRY(const Output parsed, output());
        out.outputs.push_back(parsed);
      } while (accept(","));
    }
    if (out.is_sample()) {
      PRUNERC_TRY_VOID(need("="));
      PRUNERC_TRY(Decision decision, list<int64_t>([&] { return number(); }));
      trace.decisions.push_back(std::move(decision));
    }
    trace.instructions.push_back(std::move(out));
    return {};
  }

  std::string_view input_;
  std::size_t pos_ = 0;
  std::size_t line_start_ = 0;
  int32_t line_ = 1;
  int32_t num_values_ = 0;
};

}  // namespace

std::string print(const Trace& trace) {
  std::string out;
  std::size_t next_decision = 0;
  for (const Instruction& instruction : trace.instructions) {
    out += std::string(to_string(instruction.primitive)) + "(";
    bool first = true;
    for (const Operand& operand : instruction.operands) {
      out += (first ? "" : ", ") + std::visit([](const auto& v) { return text(v); }, operand);
      first = false;
    }
    out += ")";
    first = true;
    for (const Output& output : instruction.outputs) {
      out += (first ? " -> " : ", ") + std::visit([](const auto& v) { return text(v); }, output);
      first = false;
    }
    if (instruction.is_sample()) out += " = " + text(trace.decisions[next_decision++]);
    out += "\n";
  }
  return out;
}

Result<TraceScript> parse_script(std::string_view input) { return Parser(input).run(); }

Result<Trace> parse_trace(std::string_view input) {
  PRUNERC_TRY(TraceScript script, parse_script(input));
  return std::move(script.trace);
}

}  // namespace prunerc::schedule

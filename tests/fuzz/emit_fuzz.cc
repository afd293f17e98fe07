// Names that reach generated text: the first line is put into every name of a program that has any,
// the rest is the program. What is emitted for a GPU has none of them: only names that we make.
#include "codegen/codegen.h"
#include "ir/parser.h"
#include "ir/verify.h"
#include "tests/fuzz/fuzz.h"

#include <cctype>

namespace {

using namespace prunerc;        // NOLINT: a program of its own
using namespace prunerc::fuzz;  // NOLINT: a program of its own

// In the text this stands where the name goes.
constexpr std::string_view kPlace = "NAME";

std::string with_name(std::string_view text, std::string_view name) {
  std::string out;
  for (size_t at = text.find(kPlace); at != std::string_view::npos; at = text.find(kPlace)) {
    out += std::string(text.substr(0, at)) + std::string(name);
    text.remove_prefix(at + kPlace.size());
  }
  return out + std::string(text);
}

// Long and odd enough not to be part of what we write ourselves.
bool is_telling(std::string_view name) {
  if (name.size() < 4) return false;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != ' ') return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = as_text(data, size);
  const size_t end = bytes.find('\n');
  if (end == std::string_view::npos || size > 8192) return 0;
  const std::string_view name = bytes.substr(0, end);
  const auto program = ir::parse(with_name(bytes.substr(end + 1), name));
  require_reason(program, bytes);
  if (!program.ok() || !ir::verify(*program).ok()) return 0;
  const auto target = ir::target_from_string("cuda:sm_80");
  require(target.ok(), "no target");
  const auto artifact = codegen::print_cuda_artifact(*program, *target);
  require_reason(artifact, bytes);
  if (!artifact.ok()) return 0;
  for (const char c : artifact->bytes) {
    require(c == '\n' || c == '\t' || (c >= ' ' && c <= '~'), "a control character is emitted",
            artifact->bytes);
  }
  require(!is_telling(name) || artifact->bytes.find(name) == std::string::npos,
          "a name of the program is emitted", artifact->bytes);
  for (const char c : artifact->entry)
    require(std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_', "no identifier",
            artifact->entry);
  return 0;
}

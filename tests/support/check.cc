#include "tests/support/check.h"

#include "ir/parser.h"
#include "ir/printer.h"
#include "tests/support/program_gen.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace prunerc::testing {

ir::Program parse_or_die(std::string_view text) {
  const Result<ir::Program> program = ir::parse(text);
  INFO("text:\n" << text);
  REQUIRE_OK(program);
  return *program;
}

std::vector<ir::Tensor> interpret_or_die(const ir::Program& program,
                                         const std::vector<ir::Tensor>& inputs) {
  const Result<std::vector<ir::Tensor>> outputs = ir::interpret(program, inputs);
  INFO("program:\n" << ir::print(program));
  REQUIRE_OK(outputs);
  return *outputs;
}

std::string first_difference(const std::vector<ir::Tensor>& a, const std::vector<ir::Tensor>& b) {
  if (a.size() != b.size()) return "the numbers of outputs differ";
  for (std::size_t t = 0; t < a.size(); ++t) {
    if (a[t] == b[t]) continue;
    std::string where = "output " + std::to_string(t);
    if (a[t].dtype != b[t].dtype || a[t].shape != b[t].shape) {
      return where + ": " + to_string(a[t]) + " and " + to_string(b[t]);
    }
    for (int64_t i = 0; i < a[t].num_elements(); ++i) {
      const double x = a[t].get(i);
      const double y = b[t].get(i);
      if (x != y) {
        return where + " element " + std::to_string(i) + ": " + std::to_string(x) + " and " +
               std::to_string(y);
      }
    }
    return where + ": only the bits of a zero, a NaN or a large integer differ";
  }
  return "";
}

int num_times(std::string_view text, std::string_view part) {
  int num = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++num;
  return num;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  INFO("'" << from << "' is looked for in\n" << text);
  REQUIRE(at != text.npos);
  return std::string(text).replace(at, from.size(), to);
}

void check_same_result(const ir::Program& a, const ir::Program& b, uint64_t seed) {
  Rng rng(seed);
  const std::vector<ir::Tensor> inputs = random_inputs(a, rng);
  const std::string difference =
      first_difference(interpret_or_die(a, inputs), interpret_or_die(b, inputs));
  INFO("first program:\n" << ir::print(a) << "\nsecond program:\n" << ir::print(b));
  CHECK(difference == "");
}

int num_cases(int usual) {
  const char* text = std::getenv("PRUNERC_CASES");
  return text != nullptr ? std::max(1, std::atoi(text)) : usual;
}

uint64_t first_seed() {
  const char* text = std::getenv("PRUNERC_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
}

std::string read_test_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  INFO("file " << path);
  REQUIRE(file.good());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string scratch_path(const std::string& name) {
  const char* const folder = std::getenv("TEST_TMPDIR");
  return std::string(folder != nullptr ? folder : "/tmp") + "/" + name;
}

std::vector<std::string> list_test_files(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace prunerc::testing

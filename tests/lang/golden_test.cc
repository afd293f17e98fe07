// Every file of tests/golden/prn against its `.expected` text: fail_* give exactly these messages
// and no program, warn_* these messages and a program, good_* this program.
// PRUNERC_UPDATE_GOLDEN=<folder> rewrites the texts there.

#include "ir/lang/source.h"
#include "ir/printer.h"
#include "tests/lang/case.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <set>

namespace prunerc::testing {
namespace {

const std::string kFolder = "tests/golden/prn";

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::vector<std::string> cases(const std::string& prefix) {
  std::vector<std::string> names;
  for (const std::string& name : list_test_files(kFolder)) {
    if (name.rfind(prefix, 0) == 0 && ends_with(name, ".prn")) names.push_back(name);
  }
  return names;
}

/// Compares with the expected text, or writes it.
void check_expected(const std::string& name, const std::string& found) {
  const std::string expected_name = name.substr(0, name.size() - 4) + ".expected";
  if (const char* folder = std::getenv("PRUNERC_UPDATE_GOLDEN")) {
    std::ofstream(std::string(folder) + "/" + expected_name) << found;
    return;
  }
  INFO(name);
  CHECK(found == read_test_file(kFolder + "/" + expected_name));
}

lang::LangResult compile_golden(const std::string& name) {
  return compile_case(name, read_test_file(kFolder + "/" + name));
}

}  // namespace

TEST_CASE("malformed operators are refused with the expected text in under a second") {
  const std::vector<std::string> names = cases("fail_");
  CHECK(names.size() >= 45);
  for (const std::string& name : names) {
    const std::clock_t start = std::clock();  // of this process: the machine may be busy
    const lang::LangResult result = compile_golden(name);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    INFO(name << "\n" << result.rendered);
    CHECK_FALSE(result.program.has_value());
    CHECK_FALSE(result.diagnostics.empty());
    CHECK(seconds < 1.0);
    check_expected(name, result.rendered);
  }
}

TEST_CASE("suspicious operators compile with a warning") {
  for (const std::string& name : cases("warn_")) {
    const lang::LangResult result = compile_golden(name);
    INFO(result.rendered);
    CHECK(result.program.has_value());
    check_expected(name, result.rendered);
  }
}

TEST_CASE("well-formed operators give the expected program") {
  for (const std::string& name : cases("good_")) {
    const lang::LangResult result = compile_golden(name);
    INFO(name << "\n" << result.rendered);
    REQUIRE(result.program.has_value());
    check_expected(name, result.rendered + ir::print(*result.program));
  }
}

TEST_CASE("every diagnostic of the language is produced by a golden case or named here") {
  // These need inputs that are no small text files; rejection_test.cc and call_test.cc produce them.
  std::set<std::string> produced = {"FileTooLarge",  "TooDeep",    "TooManyImports",
                                    "ShapeMismatch", "ProofLimit", "TooManyStatements",
                                    "ChooseNet",     "NoNet"};
  for (const std::string& prefix : {std::string("fail_"), std::string("warn_")}) {
    for (const std::string& name : cases(prefix)) {
      for (const lang::Diagnostic& item : compile_golden(name).diagnostics)
        produced.insert(item.name);
    }
  }
  for (const lang::LangDiagRow& row : lang::kLangDiagRows) {
    INFO(row.name);
    CHECK(produced.count(std::string(row.name)) == 1);
  }
}

}  // namespace prunerc::testing

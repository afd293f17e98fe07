// What most tests of programs share: parsing, comparing results, expecting a diagnostic, the number
// of random cases.
#ifndef PRUNERC_TESTS_SUPPORT_CHECK_H_
#define PRUNERC_TESTS_SUPPORT_CHECK_H_

#include "ir/interp/interpreter.h"
#include "ir/program.h"
#include "ir/support/result.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The result failed with this row of diag.def: CHECK_DIAG(parse("x"), ParseExpected).
#define CHECK_DIAG(result, Name)                                            \
  do {                                                                      \
    const auto& check_diag_result = (result);                               \
    CHECK_FALSE(check_diag_result.ok());                                    \
    if (!check_diag_result.ok()) {                                          \
      INFO(check_diag_result.error().message());                            \
      CHECK(::prunerc::diag_name(check_diag_result.error().id()) == #Name); \
    }                                                                       \
  } while (false)

/// The result is a value; its error is shown otherwise.
#define REQUIRE_OK(result)                                                                \
  do {                                                                                    \
    const auto& require_ok_result = (result);                                             \
    INFO((require_ok_result.ok() ? std::string() : require_ok_result.error().message())); \
    REQUIRE(require_ok_result.ok());                                                      \
  } while (false)

namespace prunerc::testing {

/// The program of a text that is known to be good; fails the test otherwise.
ir::Program parse_or_die(std::string_view text);

/// The outputs of a program that is known to run; fails the test otherwise.
std::vector<ir::Tensor> interpret_or_die(const ir::Program& program,
                                         const std::vector<ir::Tensor>& inputs);

/// "" if the tensors agree bit by bit, else where they first differ.
std::string first_difference(const std::vector<ir::Tensor>& a, const std::vector<ir::Tensor>& b);

/// How often a part occurs in a text.
int num_times(std::string_view text, std::string_view part);

/// The text with the first `from` replaced; fails the test if there is none.
std::string replaced(std::string_view text, std::string_view from, std::string_view to);

/// Both programs give the same bits for the same random inputs. Shows the programs if not.
void check_same_result(const ir::Program& a, const ir::Program& b, uint64_t seed);

/// Number of random cases of a property: PRUNERC_CASES if it is set, else `usual`.
int num_cases(int usual = 200);
/// First seed of a property: PRUNERC_SEED if it is set (to repeat one failure), else 1.
uint64_t first_seed();

/// The content of a file that the test declares as data, relative to the repository root; fails the
/// test if missing.
std::string read_test_file(const std::string& path);
/// A path below the folder that tests may write to.
std::string scratch_path(const std::string& name);
/// Names of the files of a folder, sorted.
std::vector<std::string> list_test_files(const std::string& folder);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SUPPORT_CHECK_H_

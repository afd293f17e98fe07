// Goldens that are one line a case: a name and what is expected of it, kept in one text file.
#ifndef PRUNERC_TESTS_GOLDEN_BEHAVIOR_GOLDEN_LINES_H_
#define PRUNERC_TESTS_GOLDEN_BEHAVIOR_GOLDEN_LINES_H_

#include <map>
#include <string>

namespace prunerc::testing {

/// Checks each case against the line "NAME: VALUE" of the file (relative to the repository root),
/// and that the file has no other. If they differ, the lines as they are now are written to the
/// test's outputs under the file's name, to be compared and, if the change was meant, copied over
/// it.
void check_golden_lines(const std::string& path, const std::map<std::string, std::string>& actual);

/// Writes a text to the test's outputs, for a look at what a hash stands for. Nothing outside of a
/// test run.
void keep_output(const std::string& name, const std::string& text);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_GOLDEN_BEHAVIOR_GOLDEN_LINES_H_

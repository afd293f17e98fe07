// Golden cases of the operator language: a `.prn` file whose first line may tell how it is
// compiled.
//   // run: op=conv2d N=1 T=f16        operator and parameters
//   // expr: i=4 dtype=f16 shape:A=4   the rest of the file is an expression as `-e` takes it
#ifndef PRUNERC_TESTS_LANG_CASE_H_
#define PRUNERC_TESTS_LANG_CASE_H_

#include "ir/lang/lang.h"

#include <string>

namespace prunerc::testing {

/// Compiles the text as its first line asks; `name` is shown in messages.
lang::LangResult compile_case(const std::string& name, const std::string& text);

/// Compiles one operator of a text; fails the test with the diagnostics if there are any.
ir::Program compile_or_die(const std::string& text, const std::string& op = "",
                           const std::map<std::string, std::string>& bindings = {});

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_LANG_CASE_H_

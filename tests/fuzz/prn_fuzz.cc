// Bytes as the text of an operator file, and as a `-e` expression: never a crash, and a program
// exactly when there is no error. Programs that come out must be well formed.

#include "ir/lang/lang.h"
#include "ir/verify.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

using prunerc::lang::CompileInput;
using prunerc::lang::ExpressionInput;
using prunerc::lang::LangResult;
using prunerc::lang::OpInfo;

void check(const LangResult& result) {
  bool has_errors = false;
  for (const prunerc::lang::Diagnostic& item : result.diagnostics)
    has_errors = has_errors || item.is_error;
  if (result.program.has_value() == has_errors) std::abort();
  if (result.rendered.empty() != result.diagnostics.empty()) std::abort();
  if (result.program && !prunerc::ir::verify(*result.program).ok()) std::abort();
}

void compile_operator(const std::string& text, const OpInfo& op) {
  CompileInput input;
  input.file_name = "fuzz.prn";
  input.text = text;
  input.op = op.name;
  input.import = prunerc::lang::import_std;
  for (const prunerc::lang::ParamInfo& param : op.params) {
    if (!param.default_text.empty()) continue;
    input.bindings[param.name] = param.kind == "type" ? "f32" : param.kind == "float" ? "0.5" : "4";
  }
  check(prunerc::lang::compile(input));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto list = prunerc::lang::list_ops("fuzz.prn", text, prunerc::lang::import_std);
  constexpr size_t kMaxOps = 4;
  for (size_t i = 0; i < list.ops.size() && i < kMaxOps; ++i) compile_operator(text, list.ops[i]);
  ExpressionInput expression;
  expression.text = text;
  for (const char* name : {"i", "j", "k", "n"}) expression.extents[name] = "4";
  const LangResult strict = prunerc::lang::compile_expression(expression);
  check(strict);
  return 0;
}

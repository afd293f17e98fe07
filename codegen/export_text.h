// C text that the exported libraries of all targets have in common: names, parameters, checks of arguments.
#ifndef PRUNERC_CODEGEN_EXPORT_TEXT_H_
#define PRUNERC_CODEGEN_EXPORT_TEXT_H_

#include "codegen/artifact.h"
#include "ir/support/result.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::codegen {

/// "op_" and the operator's name as a C identifier.
std::string default_symbol(std::string_view operator_name);

/// What a function of a C and C++ program cannot be called. Errors: UsageOption.
Result<void> check_symbol(std::string_view symbol);

/// "float"; f16 and bf16 are their bits.
std::string_view c_type(ir::DType dtype);

/// The names as C identifiers that differ from each other and from `taken`, and are no keyword of C
/// or C++.
std::vector<std::string> c_param_names(std::span<const std::string> names,
                                       std::vector<std::string> taken);

/// " *   [0] X: f32[16, 24]" and " *   [1] out Y: f32[]", a line each, for a comment in a header.
std::string param_comment(std::span<const ArtifactParam> params);

/// The header with this body. Behind another one of the symbol it is an #error, unless `what`, which says what both
/// declare, is the same: the linker would take the first function for both.
std::string guarded_header(std::string_view symbol, std::string_view what, std::string_view body);

/// A string literal for C.
std::string c_literal(std::string_view text);

/// The type pr_param, the table pr_params and the functions of codegen/arguments.c.
/// `params`: those of one function, several times where it is compiled for several sizes.
std::string arguments_text(std::span<const ArtifactParam> params, std::size_t num_sizes = 1);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_EXPORT_TEXT_H_

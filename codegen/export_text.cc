#include "codegen/export_text.h"

#include "ir/support/check.h"
#include "ir/support/hash.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace prunerc::codegen {
namespace {

constexpr std::string_view kArguments =
#include "codegen/arguments_text.inc"
    ;

constexpr std::string_view kParamType = R"(
typedef struct {
  const char* name;
  int code, bits, ndim, is_output, is_const;
  int number;  // among the arguments of the function that takes it
  const int64_t* shape;
} pr_param;

)";

// Of C11 and C++20; macros that headers of the C library and compilers define; and what the headers
// of libraries say themselves.
constexpr std::string_view kReserved[] = {
    "NAN",
    "NULL",
    "EOF",
    "BUFSIZ",
    "HUGE_VAL",
    "INFINITY",
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "assert",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "complex",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "errno",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "i386",
    "if",
    "imaginary",
    "inline",
    "int",
    "linux",
    "long",
    "main",
    "math_errhandling",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "noreturn",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "setjmp",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "stderr",
    "stdin",
    "stdout",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "union",
    "unix",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "I",
    "PRUNERC_ALIGNMENT",
    "PrunercInfo",
    "PrunercKernel",
    "PrunercLaunch",
    "PrunercParam",
    "PrunercTask",
    "int32_t",
    "int64_t",
    "int8_t",
    "uint16_t",
    "uint8_t",
};

// Macros of <stdint.h>, which headers of libraries include: INT64_MAX, UINT_LEAST8_WIDTH, SIZE_MAX.
bool is_limit(std::string_view name) {
  const std::size_t bar = name.rfind('_');
  const std::string_view end = bar == name.npos ? "" : name.substr(bar);
  if (end != "_MAX" && end != "_MIN" && end != "_WIDTH") return false;
  constexpr std::string_view kTypes[] = {"INT", "UINT", "PTRDIFF", "SIG", "SIZE", "WCHAR", "WINT"};
  return std::any_of(std::begin(kTypes), std::end(kTypes),
                     [&](std::string_view type) { return name.substr(0, type.size()) == type; });
}

bool is_reserved(std::string_view name) {
  return is_limit(name) ||
         std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}

bool is_identifier(std::string_view name) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  const auto is_part = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), is_part);
}

// The libraries' own text has names and macros that begin so; the symbol begins others, in capital
// letters, too.
bool is_own(std::string_view symbol) {
  const auto is = [](char c, char small) { return c == small || c == small - 'a' + 'A'; };
  return symbol.size() >= 2 && is(symbol[0], 'p') && is(symbol[1], 'r') &&
         (symbol.size() == 2 || symbol[2] == '_');
}

/// DLDataTypeCode.
int dlpack_code(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kI64:
    case ir::DType::kI32:
    case ir::DType::kI8: return 0;
    case ir::DType::kU8: return 1;
    case ir::DType::kF64:
    case ir::DType::kF32:
    case ir::DType::kF16: return 2;
    case ir::DType::kBF16: return 4;
    case ir::DType::kBool: return 6;
  }
  PRUNERC_UNREACHABLE("dtype");
}

bool is_of_c_library(const std::string& symbol) {
  // Of older ones threads and dlopen lie apart.
  for (const char* const name :
       {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"}) {
    void* const library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    const bool is_there = dlsym(library, symbol.c_str()) != nullptr;
    dlclose(library);
    if (is_there) return true;
  }
  return false;
}

}  // namespace

std::string default_symbol(std::string_view operator_name) { return "op_" + c_name(operator_name); }

Result<void> check_symbol(std::string_view symbol) {
  constexpr std::size_t kMaxLength = 200;
  if (is_own(symbol))
    return error(Diag::kUsageOption, "--symbol",
                 fmt::format("names that begin with pr_ are the library's own, found '{}'",
                             symbol.substr(0, kMaxLength)));
  if (!is_identifier(symbol) || is_reserved(symbol) || symbol.size() > kMaxLength)
    return error(
        Diag::kUsageOption, "--symbol",
        fmt::format("needs an identifier of C and C++ that begins with a letter, found '{}'",
                    symbol.substr(0, kMaxLength)));
  // All of a program, its libraries included, would call the kernel for it.
  if (is_of_c_library(std::string(symbol)))
    return error(Diag::kUsageOption, "--symbol",
                 fmt::format("'{}' is a name of the C library's", symbol));
  return {};
}

std::string guarded_header(std::string_view symbol, std::string_view what, std::string_view body) {
  // Headers of older versions define an empty macro.
  return fmt::format(
      "#ifndef PRUNERC_KERNEL_{0}\n#define PRUNERC_KERNEL_{0} {1:#x}\n\n{2}\n"
      "#elif PRUNERC_KERNEL_{0} + 0 != {1:#x}\n"
      "#error \"two libraries have a function {0}: compile one of them with --symbol\"\n#endif\n",
      symbol, hash_bytes(what) >> 32, body);
}

std::string_view c_type(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF64: return "double";
    case ir::DType::kF32: return "float";
    case ir::DType::kF16:
    case ir::DType::kBF16: return "uint16_t";
    case ir::DType::kI64: return "int64_t";
    case ir::DType::kI32: return "int32_t";
    case ir::DType::kI8: return "int8_t";
    case ir::DType::kU8:
    case ir::DType::kBool: return "uint8_t";
  }
  PRUNERC_UNREACHABLE("dtype");
}

std::vector<std::string> c_param_names(std::span<const std::string> names,
                                       std::vector<std::string> taken) {
  std::vector<std::string> out;
  for (const std::string& wish : names) {
    std::string name = c_name(wish);
    if (!is_identifier(name)) name.insert(0, "p");
    while (is_reserved(name) || std::find(taken.begin(), taken.end(), name) != taken.end())
      name += '_';
    taken.push_back(name);
    out.push_back(std::move(name));
  }
  return out;
}

std::string param_comment(std::span<const ArtifactParam> params) {
  std::string out;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const ArtifactParam& p = params[i];
    out += fmt::format(" *   [{}] {}{}: {}[{}]\n", i, p.role == ParamRole::kOutput ? "out " : "",
                       c_name(p.name), ir::to_string(p.dtype), fmt::join(p.shape, ", "));
  }
  return out;
}

std::string c_literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const bool is_plain = c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '?';
    out += is_plain ? std::string(1, c) : fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  }
  return out + "\"";
}

std::string arguments_text(std::span<const ArtifactParam> params, std::size_t num_sizes) {
  std::string shapes, rows;
  int next[2] = {0, 0};
  for (std::size_t i = 0; i < params.size(); ++i) {
    const ArtifactParam& p = params[i];
    if (i % (params.size() / num_sizes) == 0) next[0] = next[1] = 0;
    // C has no empty arrays.
    shapes += fmt::format("static const int64_t pr_shape_{}[] = {{{}}};\n", i,
                          p.shape.empty() ? "0" : fmt::format("{}", fmt::join(p.shape, ", ")));
    const int is_const = p.is_const ? 1 : 0;
    rows += fmt::format("    {{\"{}\", {}, {}, {}, {}, {}, {}, pr_shape_{}}},\n", c_name(p.name),
                        dlpack_code(p.dtype), 8 * ir::byte_size(p.dtype), p.shape.size(),
                        p.role == ParamRole::kOutput ? 1 : 0, is_const, next[is_const]++, i);
  }
  return fmt::format(
      "{}enum {{ PR_NUM_PARAMS = {} }};\n{}static const pr_param pr_params[] = {{\n{}}};\n\n{}",
      kParamType, params.size() / num_sizes, shapes, rows, kArguments);
}

}  // namespace prunerc::codegen

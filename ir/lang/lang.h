// The operator language: `.prn` text -> Program. The only header of ir/lang that other packages
// need; it brings limits.h.
#ifndef PRUNERC_IR_LANG_LANG_H_
#define PRUNERC_IR_LANG_LANG_H_

#include "ir/lang/limits.h"
#include "ir/net/net.h"
#include "ir/program.h"
#include "ir/support/result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::lang {

/// Gives the text of an imported file. A relative path was joined with the directory of the
/// importing file; "std/..." is passed as it is.
using ImportFn = std::function<Result<std::string>(std::string_view path)>;

/// Imports "std/..." from the library that is built in; everything else is an error.
Result<std::string> import_std(std::string_view path);
/// The same, and regular files below the folder of `file_name` or below one of `folders`, wherever
/// links lead. Errors: of what is imported, ImportOutside; those of read_text_file.
ImportFn import_near(std::string file_name, std::vector<std::string> folders = {});
/// Paths of the built-in library: "std/gemm.prn", ...
std::vector<std::string_view> std_files();

/// Whether a word can be a name: a letter or _ first, then digits too, and no word of the language.
bool is_free_name(std::string_view word);

/// An operator to compile.
struct CompileInput {
  std::string file_name;  // as messages show it; imports are relative to it
  std::string text;
  std::string op;                               // empty: the only operator of the file
  std::map<std::string, std::string> bindings;  // parameter -> value, as -D gives them
  std::map<std::string, std::vector<int64_t>>
      shapes;  // input -> shape, where known: binds parameters without a default
  ImportFn import = import_std;
  std::size_t max_bytes = kMaxFileBytes;  // of the text; kMaxNetBytes where a program wrote it
};

/// `-e 'C[i,j] = sum[k] A[i,k] * B[k,j]'`: one statement without declarations.
struct ExpressionInput {
  std::string text;
  std::map<std::string, std::string> extents;          // index -> extent, as -D gives them
  std::string dtype = "f32";                           // of all inputs, or "A=f16,B=i8"
  std::map<std::string, std::vector<int64_t>> shapes;  // input -> shape; needed for reads with `or`
};

/// One reported problem, for tools that do not show the rendered text.
struct Diagnostic {
  bool is_error = true;
  std::string name;  // row of lang_diag.def
  std::string file;
  int line = 1;  // one-based
  int column = 1;
  std::string message;
};

/// The statement that a block of the Program came from.
struct BlockOrigin {
  std::string block;
  std::string file;
  int line = 1;
};

struct LangResult {
  std::optional<ir::Program> program;  // empty after errors
  std::vector<Diagnostic> diagnostics;
  std::string
      rendered;  // everything as text with source lines and carets; empty if there is nothing
  std::vector<BlockOrigin> origins;
};

/// What a text with a net gives.
struct NetResult {
  std::optional<net::Net> net;  // empty after errors
  std::vector<Diagnostic> diagnostics;
  std::string rendered;
};

/// Parses, binds, proves and lowers one operator. Total: every text gives a Program or errors.
LangResult compile(const CompileInput& input);
LangResult compile_expression(const ExpressionInput& input);
/// The same for a net with ports and the operators that it calls: `op` names the net, `shapes` are
/// those of its inputs. Equal calls are compiled once.
NetResult compile_net(const CompileInput& input);

struct ParamInfo {
  std::string name;
  std::string kind;          // "int", "float" or "type"
  std::string default_text;  // empty: none
};

struct PortInfo {
  std::string name;
  std::string type;  // as written: "f32[M,K]"
  bool is_const = false;
};

struct OpInfo {
  std::string name;
  int line = 1;
  std::vector<ParamInfo> params;
  std::vector<PortInfo> inputs, outputs;
};

/// A line of a net: an operator of the file or of its imports, with sizes, used so many times.
struct NetTaskInfo {
  std::string op;
  std::string label;  // empty: none
  int64_t times = 1;
  std::map<std::string, std::string> bindings;
  int line = 1;
};

struct NetInfo {
  std::string name;
  bool has_ports = false;  // a program of calls, for compile_net; it has no lines
  std::vector<NetTaskInfo> tasks;
};

struct ListResult {
  std::vector<OpInfo> ops;
  std::vector<NetInfo> nets;
  std::string rendered;  // errors, as in LangResult
  bool ok = true;
};

/// The operators that a file defines, without binding anything.
ListResult list_ops(std::string file_name, std::string text, const ImportFn& import = import_std);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_LANG_H_

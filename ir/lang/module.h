// One compilation's files: the main file and its imports, their constants, functions and operators.
#ifndef PRUNERC_IR_LANG_MODULE_H_
#define PRUNERC_IR_LANG_MODULE_H_

#include "ir/lang/lang.h"
#include "ir/lang/limits.h"
#include "ir/lang/parse/ast.h"
#include "ir/lang/source.h"

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::lang {

/// A parsed main file with everything it imports. Names of constants and functions are shared by
/// all files.
struct Module {
  std::deque<AstFile> files;  // the main file first
  std::vector<const AstConst*> consts;
  std::map<std::string_view, const AstFn*> fns;
  std::vector<const AstOperator*> ops;  // of the main file
  std::vector<const AstOperator*> imported_ops;
  std::map<std::string_view, const AstOperator*> operators;  // both, by name
  std::vector<const AstNet*> nets;                           // of the main file
};

/// Limits on what one main file may import.
inline constexpr size_t kMaxImportedFiles = 64;

/// Parses `text`, of at most `max_bytes`, and its imports; problems are reported to `sink`.
Module load_module(SourceSet& sources, const std::string& name, std::string text,
                   const ImportFn& import, DiagSink& sink, size_t max_bytes = kMaxFileBytes);

/// The operator called `name`; with an empty name the only one of the main file. Null after a
/// report.
const AstOperator* find_operator(const Module& module, std::string_view name, DiagSink& sink);

/// The net with ports called `name`; with an empty name the only one of the main file, if it has
/// one. Null without a report if there is none.
const AstNet* find_net(const Module& module, std::string_view name);

/// The closest of `candidates` to a misspelt word, first one that differs in case alone; empty if
/// none is close.
std::string_view closest_name(std::string_view word,
                              const std::vector<std::string_view>& candidates);
/// "'M', 'N'", the first few.
std::string list_names(const std::vector<std::string_view>& names, std::size_t most = 8);
/// "; did you mean 'tune'?", or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_MODULE_H_

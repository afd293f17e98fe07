// Syntax tree + parameter values -> bound operator: names, constants, function expansion, types,
// extents.
#ifndef PRUNERC_IR_LANG_BIND_H_
#define PRUNERC_IR_LANG_BIND_H_

#include "ir/lang/module.h"
#include "ir/lang/typed.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::lang {

/// What the caller fixes about an operator.
struct BindOptions {
  std::map<std::string, std::string> bindings;         // parameter -> value, as -D gives them
  std::map<std::string, std::vector<int64_t>> shapes;  // input -> shape, where known
  /// For `-e`: the extents of all indices; a bare subscript then equates nothing.
  std::optional<std::map<std::string, int64_t>> index_extents;
};

/// Binds `op`; null after errors. Warnings and errors go to `sink`; the proofs of prove.h are a
/// further step.
std::unique_ptr<BoundOp> bind_operator(const Module& module, const AstOperator& op,
                                       const BindOptions& options, SourceSet& sources,
                                       DiagSink& sink);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_BIND_H_

// Syntax tree + parameter values -> bound operator: names, constants, function expansion, types,
// extents.
#ifndef PRUNERC_IR_LANG_BIND_BIND_H_
#define PRUNERC_IR_LANG_BIND_BIND_H_

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
  /// For calls: the values' places in the text, by parameter. Their shapes go before defaults.
  std::optional<std::map<std::string, SourceRange>> call_ranges = std::nullopt;
};

/// Binds `op`; null after errors. Warnings and errors go to `sink`; the proofs of check.h are a
/// further step.
std::unique_ptr<BoundOp> bind_operator(const Module& module, const AstOperator& op,
                                       const BindOptions& options, SourceSet& sources,
                                       DiagSink& sink);

/// A call of a net: an operator bound on its own, and the net's tensors that it reads and writes.
struct BoundCall {
  std::string label;
  const AstOperator* callee = nullptr;
  std::map<std::string, std::string> bindings;
  std::vector<const Tensor*> args, results;
  size_t op = 0;  // among BoundNet::ops
  SourceRange range;
};

struct BoundNetConst {
  const Tensor* tensor = nullptr;
  std::string weight;           // its name in the file of weights
  std::optional<double> value;  // or this number everywhere
};

struct BoundNet {
  std::unique_ptr<BoundOp> scope;  // owns the tensors; has no statements
  std::vector<BoundNetConst> consts;
  std::vector<BoundCall> calls;               // in order
  std::vector<std::unique_ptr<BoundOp>> ops;  // one for equal calls
  std::map<std::string, size_t> op_of_key;    // callee, sizes, types
};

/// Binds a net with ports and the operators that it calls; nullopt after errors.
std::optional<BoundNet> bind_net(const Module& module, const AstNet& net,
                                 const BindOptions& options, SourceSet& sources, DiagSink& sink);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_BIND_BIND_H_

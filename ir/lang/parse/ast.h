// The syntax tree of a `.prn` file. Plain data; nodes live in the AstFile's arena and point at the
// source text.
#ifndef PRUNERC_IR_LANG_PARSE_AST_H_
#define PRUNERC_IR_LANG_PARSE_AST_H_

#include "ir/dtype.h"
#include "ir/lang/source.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

namespace prunerc::lang {

/// A name with its place.
struct AstName {
  std::string_view text;
  SourceRange range;
};

/// A type by its keyword, or by the name of a type parameter.
struct AstType {
  std::optional<ir::DType> dtype;
  AstName name;  // the text in both cases
};

enum class AstKind : uint8_t {
  kInt,
  kFloat,
  kBool,
  kInf,
  kExtreme,  // lowest(T), highest(T)
  kName,
  kRead,    // name[args] or or_value
  kCall,    // name(args): a built-in, an fn, or a type parameter's cast
  kCast,    // type(args[0])
  kReduce,  // reducer:type[indices | condition] args[0]
  kUnary,   // op args[0]
  kBinary,  // args[0] op args[1]
  kIf,      // if args[0] then args[1] else args[2]
};

enum class AstOp : uint8_t {
  kNeg,
  kNot,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr,
};

enum class Reducer : uint8_t { kSum, kProd, kMax, kMin, kAny, kAll, kArgMax, kArgMin };

std::string_view to_string(AstOp op);
std::string_view to_string(Reducer reducer);
std::optional<Reducer> reducer_from_string(std::string_view name);

struct AstExpr;

/// An index of a left-hand side or of a reduction; begin and end are both given or both null.
struct AstIndex {
  AstName name;
  const AstExpr* begin = nullptr;
  const AstExpr* end = nullptr;
};

/// An expression. Which fields count is told by `kind`; see AstKind.
struct AstExpr {
  AstKind kind = AstKind::kInt;
  AstOp op = AstOp::kNeg;
  Reducer reducer = Reducer::kSum;
  bool is_highest = false;  // kExtreme
  bool bool_value = false;  // kBool
  bool parenthesized = false;
  uint32_t depth = 1;           // height of this tree; bounded by the parser
  int64_t int_value = 0;        // kInt
  double float_value = 0;       // kFloat
  SourceRange range;            // everything
  AstName name;                 // kName, kRead, kCall; the operator's place for kUnary, kBinary
  std::optional<AstType> type;  // kCast, kExtreme, kReduce with an accumulator
  std::vector<const AstExpr*> args;
  const AstExpr* or_value = nullptr;   // kRead
  std::vector<AstIndex> indices;       // kReduce
  const AstExpr* condition = nullptr;  // kReduce
};

struct AstImport {
  std::string_view path;  // without quotes
  SourceRange range;
};

struct AstConst {
  AstName name;
  const AstExpr* value = nullptr;
};

struct AstFn {
  AstName name;
  std::vector<AstName> params;
  const AstExpr* body = nullptr;
};

enum class ParamKind : uint8_t { kInt, kFloat, kType };

struct AstParam {
  AstName name;
  ParamKind kind = ParamKind::kInt;
  const AstExpr* default_value = nullptr;  // kInt, kFloat
  std::optional<AstType> default_type;     // kType
};

struct AstPort {
  AstName name;
  AstType type;
  std::vector<const AstExpr*> shape;
  bool is_const = false;
};

/// A derived size (`name` set) or a constraint.
struct AstWhere {
  std::optional<AstName> name;
  const AstExpr* value = nullptr;
};

/// `NAME=value` of a call: an expression over constants, or a type by its name.
struct AstBinding {
  AstName name;
  const AstExpr* value = nullptr;
  std::optional<AstType> type;
  SourceRange range;  // of the value
};

/// `callee<bindings>(args) as label`: an operator applied to whole tensors.
struct AstCall {
  AstName callee;
  std::vector<AstBinding> bindings;
  std::vector<AstName> args;
  std::optional<AstName> label;
  SourceRange range;
};

struct AstStmt {
  bool is_let = false;
  AstName name;
  std::vector<AstName> more_names;  // of a call with several results
  std::vector<AstIndex> indices;
  std::optional<AstType> type;
  const AstExpr* value = nullptr;  // null after a syntax error, and where only a call can stand
  std::optional<AstCall> call;     // with a value: what could be a call of an fn as well
  SourceRange range;

  bool is_complete() const { return value != nullptr || call.has_value(); }
};

struct AstOperator {
  AstName name;
  std::vector<AstParam> params;
  std::vector<AstPort> inputs, outputs;
  std::vector<AstWhere> wheres;
  std::vector<AstStmt> stmts;
  SourceRange range;
  bool has_header_errors = false;
  bool has_body_errors = false;
};

/// One line of a net without ports: an operator with values for its parameters, used so many times.
struct AstNetTask {
  int64_t times = 1;
  AstName op;
  std::vector<AstBinding> bindings;
  std::optional<AstName> label;
};

/// A constant of a net: in its file of weights by this name, or this number everywhere.
struct AstNetConst {
  AstPort port;
  std::optional<std::string_view> weight;  // without quotes
  const AstExpr* value = nullptr;
};

/// A list of tasks; or, with ports, a program of calls: then `op` is its header and its statements.
struct AstNet {
  AstName name;
  std::vector<AstNetTask> tasks;
  bool has_ports = false;
  AstOperator op;
  std::vector<AstNetConst> consts;
  std::optional<AstImport> weights;  // a file, relative to this one
};

/// One parsed file; owns its expressions. Views point into the SourceSet.
struct AstFile {
  AstFile() = default;
  AstFile(const AstFile&) = delete;
  AstFile& operator=(const AstFile&) = delete;
  AstFile(AstFile&&) = default;
  AstFile& operator=(AstFile&&) = default;

  std::vector<AstImport> imports;
  std::vector<AstConst> consts;
  std::vector<AstFn> fns;
  std::vector<AstOperator> ops;
  std::vector<AstNet> nets;
  std::deque<AstExpr> exprs;
};

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_PARSE_AST_H_

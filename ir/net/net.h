// Net: a network as calls of operators on named tensors. Plain data; its text is `.prn`.
#ifndef PRUNERC_IR_NET_NET_H_
#define PRUNERC_IR_NET_NET_H_

#include "ir/dtype.h"
#include "ir/program.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::net {

enum class Role : uint8_t { kInput, kOutput, kConst, kIntermediate };

/// Dense, row-major. A scalar has an empty shape.
struct Tensor {
  std::string name;
  ir::DType dtype = ir::DType::kF32;
  std::vector<int64_t> shape;
  Role role = Role::kIntermediate;
  /// The same in every run: a const input, a kConst, an intermediate that a const call gives.
  bool is_const = false;
  std::string weight;           ///< of a kConst: its name in the file of weights
  std::optional<double> value;  ///< of a kConst: this number everywhere, not in the file
};

/// An operator applied to tensors of the net. Numbers are positions in Net's vectors.
struct Call {
  std::string label;
  std::string op;
  std::map<std::string, std::string> bindings;  ///< as written; what shapes give is not among them
  std::vector<std::size_t> args, results;       ///< tensors
  /// Its const inputs are the arguments that are const here; a const call's has none.
  std::size_t program = 0;
};

struct Net {
  std::string name;
  std::string weights;  ///< a file, as written in the text; may be empty
  std::vector<Tensor> tensors;
  std::vector<std::size_t> inputs, outputs;  ///< in declared order
  std::vector<Call> calls;                   ///< each after those that give its arguments
  std::vector<ir::Program> programs;         ///< unscheduled; equal calls share one
  std::vector<std::size_t> num_statements;   ///< by program: of the operator, with those it calls
  std::string definitions;                   ///< the text of the operators that it calls
};

/// Whether it is made once, before the runs, since its arguments are const: none, it may be. A call
/// that gives an output of the net is made in each run.
bool is_const(const Net& net, const Call& call);
/// The calls that each run makes, in order.
std::vector<std::size_t> run_calls(const Net& net);

/// Number of elements, and bytes of them.
int64_t num_elements(const Tensor& tensor);
int64_t size_bytes(const Tensor& tensor);

/// A number that the language reads as this float: zeros keep their sign, and NaN is a quotient.
std::string float_text(double value);

/// "f32[1,56,56,64]".
std::string type_text(const Tensor& tensor);

/// The net as `.prn`: its operators, then the net. Compiling it gives the same net.
std::string to_text(const Net& net);

}  // namespace prunerc::net

#endif  // PRUNERC_IR_NET_NET_H_

// Arrays on the command line: --input and --output of an operator or a net.
#ifndef PRUNERC_TOOLS_PRUNERC_ARRAYS_H_
#define PRUNERC_TOOLS_PRUNERC_ARRAYS_H_

#include "ir/interp/tensor.h"
#include "ir/net/net.h"
#include "ir/support/result.h"
#include "tools/driver/npy.h"
#include "tools/driver/prunerc.h"
#include "tools/prunerc/cli.h"

#include <CLI/CLI.hpp>

#include <map>
#include <string>
#include <vector>

namespace prunerc::cli {

/// Open .npy files, by the name of their input.
using Files = std::map<std::string, NpyFile>;

/// An array that goes in or comes out.
struct Port {
  std::string name;
  ir::DType dtype = ir::DType::kF32;
  std::vector<int64_t> shape;
  bool is_input = true;
};
std::vector<Port> ports_of(const Operator& op);
std::vector<Port> ports_of(const net::Net& net);

/// --input and --output.
struct ArrayOptions {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  void add_to(CLI::App& verb);
};

struct Arrays {
  Named inputs, outputs;
  Files files;
};
/// Reads the options and the headers of the files. Errors: UsageOption, those of NpyFile::open.
Result<Arrays> open_arrays(const ArrayOptions& options);
/// The shapes of the files, which bind parameters that have no default.
void add_shapes(const Arrays& arrays, OperatorRequest* request);
/// Whether there is a port of each name; `owner` is who has none. Errors: UsageUnknownTensor.
Result<void> check_names(const std::string& owner, const std::vector<Port>& ports,
                         const Arrays& arrays);
/// One tensor per input port, from files and fills. Errors: UsageOption (one is missing), UsageShape.
Result<std::vector<ir::Tensor>> gather(const std::vector<Port>& ports, Arrays& arrays);
/// Writes the outputs, or prints a summary of each if none is asked for. Errors: IoError.
Result<void> deliver(const std::vector<Port>& ports, const std::vector<std::string>& bytes,
                     const Named& files);

}  // namespace prunerc::cli

#endif  // PRUNERC_TOOLS_PRUNERC_ARRAYS_H_

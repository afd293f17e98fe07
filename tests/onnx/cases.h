// A recorded case: a folder with model.onnx and test_data_set_*, as ONNX has them.
#ifndef PRUNERC_TESTS_ONNX_CASES_H_
#define PRUNERC_TESTS_ONNX_CASES_H_

#include <filesystem>
#include <string>

namespace prunerc::onnx {

struct CaseOptions {
  /// How much numbers may differ from the recorded ones; as ONNX's own runner compares.
  double relative = 1e-3, absolute = 1e-7;
  bool verbose = false;  ///< prints the text of the net
};

struct Verdict {
  std::string kind;  ///< "pass", "unsupported", "wrong" or "error"
  std::string why;
};

/// Imports the model and runs the net by the interpreter beside the recorded outputs.
Verdict run_case(const std::filesystem::path& folder, const CaseOptions& options);

}  // namespace prunerc::onnx

#endif  // PRUNERC_TESTS_ONNX_CASES_H_

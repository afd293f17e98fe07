// Bytes as an ONNX model: a net whose text compiles, or an error that says why.
#include "ir/lang/lang.h"
#include "ir/onnx/import.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace prunerc;
  using namespace prunerc::fuzz;
  const auto model = onnx::parse_model(as_text(data, size), "fuzz.onnx");
  require_reason(model, "");
  if (!model.ok()) return 0;
  onnx::ImportOptions options;
  for (int partial = 0; partial < 2; ++partial) {
    options.partial = partial != 0;
    const auto net = onnx::import_model(*model, options);
    require_reason(net, "");
    if (!net.ok()) continue;
    lang::CompileInput input;
    input.text = net->text;
    const lang::NetResult compiled = lang::compile_net(input);
    require(compiled.net.has_value() || !compiled.rendered.empty(), "an error without a reason");
  }
  return 0;
}

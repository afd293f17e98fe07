#!/usr/bin/env python3
"""Networks in 8 bits, as ONNX Runtime's own quantiser makes them of float32 ones: of models.py, say.

`qdq` and `qop`, of networks of images: convolutions and products with weights of int8 for each channel and activations of uint8, whose ranges come of
two batches of noise, as QuantizeLinear and DequantizeLinear around float operators or as operators of whole numbers; before
that ONNX Runtime folds batch normalisations, as its quantiser asks for. `dyn`:
products alone, whose activations are quantised as they come. Ranges of noise make no good classifier: times and agreement are
what these are for.

usage: ~/.cache/prunerc/peers/bin/python tests/bench/network/quantise.py OUT_DIR qdq|qop|dyn:MODEL.onnx...
"""

import os
import sys
import tempfile

SEED = 0
BATCHES = 2


def noise(path):
    import numpy
    import onnx
    from onnxruntime.quantization import CalibrationDataReader

    class Noise(CalibrationDataReader):
        def __init__(self):
            inputs = onnx.load(path, load_external_data=False).graph.input
            shapes = {i.name: [max(d.dim_value, 1) for d in i.type.tensor_type.shape.dim] for i in inputs}
            draw = numpy.random.default_rng(SEED)
            self.batches = [{name: draw.uniform(-1, 1, shape).astype(numpy.float32) for name, shape in shapes.items()} for _ in range(BATCHES)]

        def get_next(self):
            return self.batches.pop() if self.batches else None

    return Noise()


def folded(path, folder):
    """The model after ONNX Runtime's basic optimisations, which know nothing of any machine."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = os.path.join(folder, "folded.onnx")
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return options.optimized_model_filepath


def quantise(kind, path, out):
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static

    if kind == "dyn":
        quantize_dynamic(path, out, weight_type=QuantType.QInt8)
        return
    with tempfile.TemporaryDirectory() as folder:
        quantize_static(folded(path, folder), out, noise(path), quant_format={"qdq": QuantFormat.QDQ, "qop": QuantFormat.QOperator}[kind],
                        per_channel=True, weight_type=QuantType.QInt8, activation_type=QuantType.QUInt8)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    for one in sys.argv[2:]:
        kind, _, path = one.partition(":")
        if kind not in ("qdq", "qop", "dyn"):
            sys.exit("quantise: %s is none of qdq:, qop:, dyn:" % one)
        out = os.path.join(sys.argv[1], "%s_%s.onnx" % (os.path.splitext(os.path.basename(path))[0], kind))
        quantise(kind, path, out)
        print(out)


if __name__ == "__main__":
    main()

"""The ONNX model of one of an operator's graphs; weights are initializers, as in an exported network."""

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET, IR_VERSION = 23, 11
NUMPY = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "u8": np.uint8, "i8": np.int8, "i32": np.int32, "i64": np.int64}
ONNX = {"f32": onnx.TensorProto.FLOAT, "bf16": onnx.TensorProto.BFLOAT16, "u8": onnx.TensorProto.UINT8, "i8": onnx.TensorProto.INT8,
        "i32": onnx.TensorProto.INT32, "i64": onnx.TensorProto.INT64}


def constant(name, spec, arrays):
    """`spec` is (type, nested list), or ("reshape", PORT, shape): a weight in the shape that ONNX wants."""
    value = arrays[spec[1]].reshape(spec[2]) if spec[0] == "reshape" else np.array(spec[1], NUMPY[spec[0]])
    return numpy_helper.from_array(value, name)


def model(operator, nodes, arrays):
    """Its bytes. `arrays` holds the values of the ports by name."""
    used = {name for _, inputs, _, _ in nodes for name in inputs}
    info = lambda port: helper.make_tensor_value_info(port.name, ONNX[port.dtype], port.shape)
    weights = [numpy_helper.from_array(arrays[p.name], p.name) for p in operator.inputs if p.const and p.name in used]
    weights += [constant(name, spec, arrays) for name, spec in operator.consts.items() if name in used]
    graph = helper.make_graph([helper.make_node(kind, list(inputs), list(outputs), **attributes) for kind, inputs, outputs, attributes in nodes],
                              "operator", [info(p) for p in operator.inputs if not p.const], [info(p) for p in operator.outputs], weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    made.ir_version = IR_VERSION
    return made.SerializeToString()

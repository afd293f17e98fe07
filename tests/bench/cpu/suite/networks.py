"""ResNet-50 as an engine runs it: the whole network as one graph, beside the sum of the tasks of `std/nets/resnet50.prn`."""

import re

import reference
from description import Operator, f32

BLOCKS, WIDTHS = (3, 4, 6, 3), (64, 128, 256, 512)


class Builder:
    """Nodes in order, with the shapes [channels, size] that they make and the weights that they want."""

    def __init__(self):
        self.nodes, self.ports, self.convs = [], [], []

    def conv(self, source, ci, co, size, kernel, stride, pad, relu=True, add=None):
        """Bias, sum and ReLU as the tasks have them fused. Returns (name, size)."""
        name = f"c{len(self.convs)}"
        self.ports += [f32(name + "_F", co, ci, kernel, kernel, const=True), f32(name + "_b", co, const=True)]
        attributes = {"strides": [stride] * 2, "pads": [pad] * 4}
        self.nodes.append(("Conv", [source, name + "_F", name + "_b"], [name], attributes))
        # As the net's parameters: height of the input, channels, kernel, stride, and what follows.
        self.convs.append((size, ci, co, kernel, stride, "add_relu" if add else "relu" if relu else ""))
        if add:
            self.nodes.append(("Add", [name, add], [name + "_s"], {}))
            name += "_s"
        if relu:
            self.nodes.append(("Relu", [name], [name + "_r"], {}))
            name += "_r"
        return name, (size + 2 * pad - kernel) // stride + 1

    def block(self, source, ci, width, size, stride):
        """The stride is in the 3x3 convolution."""
        around = source
        if stride > 1 or ci != 4 * width:
            around, _ = self.conv(source, ci, 4 * width, size, 1, stride, 0, relu=False)
        one, _ = self.conv(source, ci, width, size, 1, 1, 0)
        two, smaller = self.conv(one, width, width, size, 3, stride, 1)
        three, _ = self.conv(two, width, 4 * width, smaller, 1, 1, 0, add=around)
        return three, smaller


def build(image):
    made = Builder()
    last, size = made.conv("X", 3, 64, image, 7, 2, 3)
    made.nodes.append(("MaxPool", [last], ["pool1"], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}))
    last, ci, size = "pool1", 64, (size - 1) // 2 + 1
    for stage, (blocks, width) in enumerate(zip(BLOCKS, WIDTHS)):
        for i in range(blocks):
            last, size = made.block(last, ci, width, size, 2 if i == 0 and stage > 0 else 1)
            ci = 4 * width
    made.nodes += [("GlobalAveragePool", [last], ["pool5"], {}), ("Flatten", ["pool5"], ["flat"], {}), ("Gemm", ["flat", "fc_F", "fc_b"], ["Y"], {})]
    made.ports += [f32("fc_F", ci, 1000, const=True), f32("fc_b", 1000, const=True)]
    return made


def evaluate(nodes, arrays):
    """The graph in float64, node by node."""
    kinds = {
        "Conv": lambda x, w, b, strides, pads: reference.conv(x, w, strides[0], pads[0]) + b.reshape(1, -1, 1, 1),
        "Add": lambda x, y: x + y,
        "Relu": reference.relu,
        "MaxPool": lambda x, kernel_shape, strides, pads: reference.max_pool(x, kernel_shape[0], strides[0], pads[0]),
        "GlobalAveragePool": lambda x: x.mean(axis=(2, 3), keepdims=True),
        "Flatten": lambda x: x.reshape(1, -1),
        "Gemm": lambda x, w, b: x @ w + b,
    }
    found = dict(arrays)
    for kind, inputs, outputs, attributes in nodes:
        found[outputs[0]] = kinds[kind](*(found[name] for name in inputs), **attributes)
    return [found["Y"]]


def resnet50(image=224):
    made = build(image)
    return Operator("", {}, (f32("X", 1, 3, image, image), *made.ports), (f32("Y", 1, 1000),), lambda a: evaluate(made.nodes, a), (tuple(made.nodes),))


def tasks(text):
    """[(name, operator, parameters, how often)] of the net in a `.prn` text."""
    found = re.findall(r"^\s*(\d+) \* (\w+)<([^>]*)> as (\w+);", text, flags=re.M)
    return [(name, operator, dict(re.findall(r"(\w+)=(\d+)", sizes)), int(count)) for count, operator, sizes, name in found]

"""What a row of the suite is made of: one operator as prunerc, ONNX, PyTorch, C and float64 numpy have it."""

import re
from dataclasses import dataclass, field

C_TYPES = {"f32": "float", "bf16": "unsigned short", "u8": "unsigned char", "i8": "signed char", "i32": "int", "i64": "long"}
# By type of an output: how far a value may be from the float64 reference, as a part of the reference's largest one.
TOLERANCES = {"f32": 2e-4, "bf16": 1e-2, "i32": 0, "i64": 0, "u8": 0}


@dataclass(frozen=True)
class Port:
    name: str
    dtype: str
    shape: tuple
    const: bool = False  # a weight: the same in every call, so that a peer may bring it into its own layout before


@dataclass(frozen=True)
class Operator:
    """Forms that a row does not have are empty: a peer that would need one is told apart from a peer that refuses."""

    body: str  # of the `.prn` operator
    sizes: dict  # its parameters
    inputs: tuple
    outputs: tuple
    reference: object  # (float64 arrays by name) -> the outputs
    graphs: tuple = ()  # variants of the ONNX graph: nodes (type, inputs, outputs, attributes); the fastest counts
    consts: dict = field(default_factory=dict)  # further initializers: name -> (type, nested list)
    torch: object = None  # (torch, torch.nn.functional, tensors in order) -> tensor
    loops: str = ""  # C statements over the ports' names
    where: str = ""  # condition of the `.prn` operator

    def prn(self, name):
        """The operator as text, in the form that a user would write."""
        ports = lambda some: ", ".join(f"{'const ' * p.const}{p.name}: {p.dtype}[{','.join(map(str, p.shape))}]" for p in some)
        sizes = ", ".join(f"{key}={value}" for key, value in self.sizes.items())
        head = f"op {name}<{sizes}>" if sizes else f"op {name}"
        lines = "\n".join("  " + line.strip() for line in self.body.strip().splitlines())
        return f"{head}({ports(self.inputs)}) -> ({ports(self.outputs)}){self.where} {{\n{lines}\n}}\n"

    def c(self, threads, symbol="run"):
        """Plain loops as one function `symbol(void** ports)`; the outermost ones are parallel with more than one thread."""
        lines = ["#include <math.h>", "#include <string.h>", f"void {symbol}(void** ports) {{"]
        if self.sizes:
            lines.append(f"  enum {{ {', '.join(f'{key} = {value}' for key, value in self.sizes.items())} }};")
        for i, port in enumerate(self.inputs + self.outputs):
            const = "const " if i < len(self.inputs) else ""
            lines.append(f"  {const}{C_TYPES[port.dtype]}* restrict {port.name} = ports[{i}];")
        # Words after PARALLEL are clauses of OpenMP.
        pragma = r"#pragma omp parallel for\1" if threads > 1 else ""
        return "\n".join(lines) + "\n" + re.sub(r"^ *PARALLEL\b(.*)$", pragma, self.loops, flags=re.M) + "\n}\n"


def f32(name, *shape, const=False):
    return Port(name, "f32", shape, const)


@dataclass(frozen=True)
class Row:
    name: str
    cls: str
    family: object  # a function of sizes that returns an Operator
    sizes: dict

    def operator(self):
        return self.family(**self.sizes)

    def tiny(self):
        """The same operator, small enough for an interpreter."""
        sizes = {key: min(value, TINY[key]) if key in TINY else value for key, value in self.sizes.items()}
        if sizes.get("g", 1) > 1:
            sizes["g"] = min(sizes["g"], 4)
            grouped = {"ci": 2, "co": 2, "c": 2, "b": 2}  # what is divided into groups, in groups
            sizes.update({key: size * sizes["g"] for key, size in grouped.items() if key in sizes})
            if "co" in sizes:
                sizes["co"] *= self.sizes["co"] // self.sizes["ci"]
        for size in ("h", "w", "l"):
            if size in sizes and "kernel" in sizes:
                sizes[size] = max(sizes[size], 2 * sizes["kernel"])
        return self.family(**sizes)


TINY = {"m": 5, "n": 12, "k": 7, "b": 2, "h": 9, "w": 11, "l": 6, "ci": 6, "co": 8, "c": 6, "t": 7, "s": 9, "e": 8, "mid": 10}

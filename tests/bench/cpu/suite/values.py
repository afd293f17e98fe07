"""Inputs of an operator, equal for all who run it, and the comparison of outputs with the float64 reference."""

import numpy as np

from description import TOLERANCES

STORED = {"f32": np.float32, "bf16": np.uint16, "u8": np.uint8, "i8": np.int8, "i32": np.int32, "i64": np.int64}


def to_bf16(x):
    """The bits of the nearest bf16, ties to even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def to_float64(stored, dtype):
    if dtype == "bf16":
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return stored.astype(np.float64)


def inputs(operator, seed):
    """Arrays by name, in the types that lie in memory."""
    random = np.random.default_rng(seed)
    made = {}
    for port in operator.inputs:
        if port.dtype in ("u8", "i8"):
            # Small enough that no product of two pairs leaves 16 bits, where older instructions saturate.
            low, high = (0, 128) if port.dtype == "u8" else (-64, 64)
            made[port.name] = random.integers(low, high, port.shape).astype(STORED[port.dtype])
            continue
        value = random.standard_normal(port.shape)
        if port.const and len(port.shape) == 4:
            value /= np.sqrt(np.prod(port.shape[1:]))  # of a convolution: its sums stay as large as their terms
        if port.name == "var":
            value = 0.5 + np.abs(value)  # a variance
        made[port.name] = to_bf16(value) if port.dtype == "bf16" else value.astype(np.float32)
    return made


def reference(operator, arrays):
    wide = {port.name: to_float64(arrays[port.name], port.dtype) for port in operator.inputs}
    return [np.asarray(y, np.float64).reshape(port.shape) for y, port in zip(operator.reference(wide), operator.outputs)]


def deviation(operator, outputs, wanted):
    """(largest distance of an output as a part of the largest reference, what is allowed): of several outputs those of the one that is
    furthest from what is allowed."""
    worst = (0.0, TOLERANCES[operator.outputs[0].dtype])
    if not len(operator.outputs) == len(outputs) == len(wanted):
        return float("inf"), worst[1]
    for port, got, want in zip(operator.outputs, outputs, wanted):
        got, allowed = to_float64(got, port.dtype), TOLERANCES[port.dtype]
        if got.shape != want.shape or not np.isfinite(got).all():
            return float("inf"), allowed
        worst = max(worst, (float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-30)), allowed), key=lambda each: each[0] - each[1])
    return worst

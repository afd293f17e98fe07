"""The suite's operators in float64 numpy, each in another way than its definition."""

import math

import numpy as np


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def gelu(x):
    return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))


def relu(x):
    return np.maximum(x, 0)


def relu6(x):
    return np.clip(x, 0, 6)


def silu(x):
    return x / (1 + np.exp(-x))


ACTIVATIONS = {"": lambda x: x, "relu": relu, "relu6": relu6, "gelu": gelu}


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x, gamma, beta, eps=1e-5):
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + eps) * gamma + beta


def windows(x, kernel, stride, dilation, pad, value=0.0):
    """One slice of x [n, c, ...] for each place of the kernel, with that place."""
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(pad, pad)] * rank, constant_values=value)
    out = [(size - dilation * (kernel - 1) - 1) // stride + 1 for size in x.shape[2:]]
    for place in np.ndindex(*[kernel] * rank):
        at = [slice(p * dilation, p * dilation + stride * (o - 1) + 1, stride) for p, o in zip(place, out)]
        yield place, x[(slice(None), slice(None), *at)]


def conv(x, weights, stride=1, pad=0, dilation=1, groups=1):
    """x [n, ci, ...], weights [co, ci/groups, kernel...]"""
    parts = []
    for part, w in zip(np.split(x, groups, axis=1), np.split(weights, groups, axis=0)):
        total = 0
        for place, window in windows(part, weights.shape[2], stride, dilation, pad):
            total = total + np.moveaxis(np.tensordot(w[(slice(None), slice(None), *place)], window, axes=(1, 1)), 0, 1)
        parts.append(total)
    return np.concatenate(parts, axis=1)


def conv_transpose(x, weights, stride, pad):
    """x [n, ci, ...], weights [ci, co, kernel...]: what each input adds to the output."""
    kernel = weights.shape[2]
    full = np.zeros((x.shape[0], weights.shape[1], *[(size - 1) * stride + kernel for size in x.shape[2:]]))
    for place in np.ndindex(*weights.shape[2:]):
        at = [slice(p, p + stride * (size - 1) + 1, stride) for p, size in zip(place, x.shape[2:])]
        product = np.tensordot(weights[(slice(None), slice(None), *place)], x, axes=(0, 1))
        full[(slice(None), slice(None), *at)] += np.moveaxis(product, 0, 1)
    inner = [slice(pad, size - pad) for size in full.shape[2:]]
    return full[(slice(None), slice(None), *inner)]


def max_pool(x, kernel, stride, pad):
    return np.max([window for _, window in windows(x, kernel, stride, 1, pad, -np.inf)], axis=0)


def avg_pool(x, kernel, stride):
    return np.mean([window for _, window in windows(x, kernel, stride, 1, 0)], axis=0)


def attention(q, k, v, causal=False):
    """q [h, t, e], k and v [h/group, s, e]"""
    k, v = (np.repeat(x, q.shape[0] // x.shape[0], axis=0) for x in (k, v))
    scores = q @ np.swapaxes(k, 1, 2) / math.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(scores.shape[1], scores.shape[2], dtype=bool), scores, -np.inf)
    return softmax(scores) @ v

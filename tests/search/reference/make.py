#!/usr/bin/env python3
"""Writes what twelve operators compute, by numpy in double: OPERATOR.PARAMETER.npy beside this file.

Inputs are standard normal, rounded to f32; outputs are f64 of those. Shapes are those of the test's bindings.

usage: make.py
"""

import os

import numpy

SEED = 31
FOLDER = os.path.dirname(os.path.abspath(__file__))


def softmax(scores):
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def chain3(A, B, v):
    return {"y": A @ B @ v}


def lora_added(X, W, A, B):
    return {"Y": X @ (W + A @ B)}


def linear_attention(Q, K, V):
    return {"O": Q @ K.T @ V}


def attention(Q, K, V):
    return {"O": softmax(Q @ K.transpose(0, 2, 1) / numpy.sqrt(Q.shape[-1])) @ V}


def raw_attention(Q, K, V):
    weights = numpy.exp(Q @ K.transpose(0, 2, 1))
    return {"O": weights / weights.sum(axis=-1, keepdims=True) @ V}


def causal_attention(Q, K, V):
    scores = Q @ K.transpose(0, 2, 1) / numpy.sqrt(Q.shape[-1])
    seen = numpy.tril(numpy.ones(scores.shape[1:], dtype=bool))
    return {"O": softmax(numpy.where(seen, scores, -numpy.inf)) @ V}


def grouped_decode(Q, K, V):
    group = Q.shape[0] // K.shape[0]
    keys, values = numpy.repeat(K, group, axis=0), numpy.repeat(V, group, axis=0)
    weights = softmax(numpy.einsum("he,hse->hs", Q, keys) / numpy.sqrt(Q.shape[-1]))
    return {"O": numpy.einsum("hs,hse->he", weights, values)}


def logsumexp_linear(X, W):
    return {"Y": numpy.log(numpy.exp(X @ W).sum(axis=-1))}


def rmsnorm_linear(X, g, W):
    return {"Y": X / numpy.sqrt((X * X).mean(axis=-1, keepdims=True) + 1e-6) * g @ W}


def layernorm_linear(X, W):
    return {"Y": (X - X.mean(axis=-1, keepdims=True)) / numpy.sqrt(X.var(axis=-1, keepdims=True) + 1e-5) @ W}


def gated_mlp(X, G, U):
    gate = X @ G
    return {"Y": gate / (1 + numpy.exp(-gate)) * (X @ U)}


def conv3x3(X, F):
    height, width = X.shape[2:]
    padded = numpy.pad(X, ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = numpy.zeros((X.shape[0], F.shape[0], height, width))
    for kh in range(3):
        for kw in range(3):
            window = padded[:, :, kh:kh + height, kw:kw + width]
            out += numpy.einsum("nchw,oc->nohw", window, F[:, :, kh, kw])
    return {"Y": out}


CASES = [
    (chain3, {"A": (31, 31), "B": (31, 31), "v": (31,)}),
    (lora_added, {"X": (7, 31), "W": (31, 13), "A": (31, 2), "B": (2, 13)}),
    (linear_attention, {"Q": (31, 7), "K": (31, 7), "V": (31, 7)}),
    (attention, {"Q": (2, 13, 7), "K": (2, 31, 7), "V": (2, 31, 7)}),
    (raw_attention, {"Q": (2, 13, 7), "K": (2, 31, 7), "V": (2, 31, 7)}),
    (causal_attention, {"Q": (2, 13, 7), "K": (2, 13, 7), "V": (2, 13, 7)}),
    (grouped_decode, {"Q": (6, 7), "K": (2, 31, 7), "V": (2, 31, 7)}),
    (logsumexp_linear, {"X": (7, 13), "W": (13, 31)}),
    (rmsnorm_linear, {"X": (7, 31), "g": (31,), "W": (31, 13)}),
    (layernorm_linear, {"X": (7, 31), "W": (31, 13)}),
    (gated_mlp, {"X": (7, 31), "G": (31, 13), "U": (31, 13)}),
    (conv3x3, {"X": (1, 32, 7, 9), "F": (32, 32, 3, 3)}),
]


def main():
    rng = numpy.random.default_rng(SEED)
    for compute, shapes in CASES:
        inputs = {name: rng.standard_normal(shape).astype("<f4") for name, shape in shapes.items()}
        outputs = compute(**{name: array.astype("<f8") for name, array in inputs.items()})
        for name, array in {**inputs, **outputs}.items():
            numpy.save(os.path.join(FOLDER, f"{compute.__name__}.{name}.npy"), numpy.ascontiguousarray(array))


if __name__ == "__main__":
    main()

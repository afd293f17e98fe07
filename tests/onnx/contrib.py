#!/usr/bin/env python3
"""Records what ONNX Runtime makes of operators of its own domain, and of ONNX's where those say little: small random
cases, as ONNX keeps cases.

usage: contrib.py OUT [--only OPERATOR]     OUT/OPERATOR.tar: CASE/model.onnx, CASE/test_data_set_0/{input,output}_N.pb

Needs onnx and onnxruntime (`./dev setup --peers`), and makes the same cases each time. tests/data/onnx_contrib holds them;
contrib_cases_test.cc compares.
"""

import argparse
import io
import os
import tarfile
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

CASES = []
F16, F32 = np.float16, np.float32


class Case:
    """A node, its inputs (None: not given; those in `fixed` are constants of the model) and the outputs it names."""

    def __init__(self, name, op, inputs, outputs=1, fixed=(), domain="com.microsoft", **attributes):
        self.name, self.op, self.inputs, self.fixed = name, op, inputs, fixed
        self.outputs = ["y%d" % i for i in range(outputs)] if isinstance(outputs, int) else outputs
        self.domain, self.attributes = domain, attributes

    def model(self):
        names = ["" if value is None else "x%d" % i for i, value in enumerate(self.inputs)]
        infos, constants = [], []
        for i, (name, value) in enumerate(zip(names, self.inputs)):
            if value is None:
                continue
            if i in self.fixed:
                constants.append(numpy_helper.from_array(value, name))
            else:
                kind = helper.np_dtype_to_tensor_dtype(value.dtype)
                infos.append(helper.make_tensor_value_info(name, kind, value.shape))
        node = helper.make_node(self.op, names, self.outputs, domain=self.domain, **self.attributes)
        results = [onnx.ValueInfoProto(name=name) for name in self.outputs if name]
        graph = helper.make_graph([node], self.name, infos, results, constants)
        sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=sets, ir_version=8)

    def record(self):
        """The files of the case by name."""
        model = self.model()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        given = [i.name for i in model.graph.input]
        feed = {name: self.inputs[int(name[1:])] for name in given}
        results = session.run(None, feed)
        for info, value in zip(model.graph.output, results):
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            info.CopyFrom(helper.make_tensor_value_info(info.name, kind, value.shape))
        files = {self.name + "/model.onnx": model.SerializeToString(deterministic=True)}
        for stem, values in (("input", [feed[name] for name in given]), ("output", results)):
            for i, value in enumerate(values):
                name = "%s/test_data_set_0/%s_%d.pb" % (self.name, stem, i)
                files[name] = numpy_helper.from_array(value).SerializeToString(deterministic=True)
        return files


def write_archive(path, files):
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            info = tarfile.TarInfo(name)
            info.size = len(files[name])
            archive.addfile(info, io.BytesIO(files[name]))


class Numbers:
    """Random operands; each case has a stream of its own, so that one more case changes no other."""

    def __init__(self, name):
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def real(self, *shape, dtype=F32, scale=1.0):
        return (scale * self.rng.standard_normal(shape)).astype(dtype)

    def whole(self, low, high, *shape, dtype=np.int32):
        return self.rng.integers(low, high, shape).astype(dtype)

    def byte(self, *shape, dtype=np.uint8):
        info = np.iinfo(dtype)
        return self.whole(info.min, info.max + 1, *shape, dtype=dtype)

    def scales(self, *shape, low=0.01, high=0.1, dtype=F32):
        return (low + (high - low) * self.rng.random(shape)).astype(dtype)


def case(name, op, operands, **more):
    """`operands` makes the inputs of a stream of numbers."""
    CASES.append(Case(name, op, operands(Numbers(name)), **more))


def one(value, dtype=F32):
    return np.array(value, dtype)


def normalisations():
    for dtype, tag in ((F32, "f32"), (F16, "f16")):
        rows = lambda n, *shape, d=dtype: n.real(*shape, dtype=d)
        case("simplified_layer_norm_" + tag, "SimplifiedLayerNormalization",
             lambda n: [rows(n, 3, 5, 7), rows(n, 7)], domain="", axis=-1, fixed=(1,))
        case("skip_layer_norm_" + tag, "SkipLayerNormalization",
             lambda n: [rows(n, 2, 3, 9), rows(n, 2, 3, 9), rows(n, 9), rows(n, 9), rows(n, 9)],
             outputs=["y", "", "", "sum"], fixed=(2, 3, 4), epsilon=1e-5)
        case("skip_rms_norm_" + tag, "SkipSimplifiedLayerNormalization",
             lambda n: [rows(n, 2, 3, 9), rows(n, 2, 3, 9), rows(n, 9), rows(n, 9)],
             outputs=["y", "", "", "sum"], epsilon=1e-6)
    case("simplified_layer_norm_axis", "SimplifiedLayerNormalization",
         lambda n: [n.real(2, 3, 5), n.real(3, 5)], outputs=2, domain="", axis=1)
    case("simplified_layer_norm_f64", "SimplifiedLayerNormalization",
         lambda n: [n.real(4, 5, dtype=np.float64), n.real(5, dtype=np.float64)], outputs=2, domain="", axis=-1)
    case("skip_layer_norm_stats", "SkipLayerNormalization",
         lambda n: [n.real(2, 3, 5), n.real(2, 3, 5), n.real(5)], outputs=4)
    case("skip_layer_norm_batch_1", "SkipLayerNormalization",
         lambda n: [n.real(2, 3, 5), n.real(1, 3, 5), n.real(5), n.real(5)])
    case("skip_layer_norm_no_batch", "SkipLayerNormalization",
         lambda n: [n.real(2, 3, 5), n.real(3, 5), n.real(5), None, n.real(5)])
    case("skip_rms_norm_tokens", "SkipSimplifiedLayerNormalization",
         lambda n: [n.real(4, 5), n.real(4, 5), n.real(5)])
    tables = lambda n: [n.real(9, 8), n.real(6, 8)]
    case("embed_layer_norm", "EmbedLayerNormalization",
         lambda n: [n.whole(0, 9, 2, 4), n.whole(0, 2, 2, 4), *tables(n), n.real(2, 8), n.real(8), n.real(8),
                    np.array([[1, 1, 1, 0], [0, 2, 1, 0]], np.int32)],
         outputs=3, fixed=(2, 3, 4, 5, 6), epsilon=1e-5)
    case("embed_layer_norm_words", "EmbedLayerNormalization",
         lambda n: [n.whole(0, 9, 2, 4), None, *tables(n), None, n.real(8), n.real(8)], outputs=2, fixed=(2, 3))
    case("embed_layer_norm_places", "EmbedLayerNormalization",
         lambda n: [n.whole(0, 9, 2, 4), None, *tables(n), None, n.real(8), n.real(8), None, n.whole(0, 6, 1, 4)],
         outputs=2)


def activations():
    case("gelu", "Gelu", lambda n: [n.real(3, 7, scale=2)])
    case("bias_gelu", "BiasGelu", lambda n: [n.real(2, 3, 7), n.real(7)], fixed=(1,))
    case("fast_gelu", "FastGelu", lambda n: [n.real(3, 7, scale=2)])
    case("fast_gelu_bias", "FastGelu", lambda n: [n.real(3, 7), n.real(7)])
    case("quick_gelu", "QuickGelu", lambda n: [n.real(3, 7, scale=2)])
    case("quick_gelu_alpha", "QuickGelu", lambda n: [n.real(3, 7, scale=2)], alpha=0.5)


def products():
    case("fused_matmul", "FusedMatMul", lambda n: [n.real(2, 3, 5), n.real(5, 4)], alpha=0.5)
    case("fused_matmul_turned", "FusedMatMul", lambda n: [n.real(2, 5, 3), n.real(2, 4, 5)], transA=1, transB=1)
    case("fused_matmul_batch_a", "FusedMatMul", lambda n: [n.real(3, 2, 5), n.real(2, 5, 4)], transBatchA=1, alpha=2.0)
    case("fused_matmul_batch_b", "FusedMatMul", lambda n: [n.real(2, 3, 5), n.real(5, 2, 4)], transBatchB=1)
    case("fused_matmul_all", "FusedMatMul", lambda n: [n.real(5, 2, 3, 4), n.real(6, 2, 3, 5)],
         transA=1, transB=1, transBatchA=1, transBatchB=1)
    case("fused_matmul_vector", "FusedMatMul", lambda n: [n.real(5), n.real(5, 4)], transA=1, alpha=-1.5)
    case("fused_matmul_f64", "FusedMatMul",
         lambda n: [n.real(3, 5, dtype=np.float64), n.real(4, 5, dtype=np.float64)], transB=1)
    image = lambda n: [n.real(1, 3, 5, 6), n.real(2, 3, 3, 3, scale=0.3)]
    for activation, by in (("Relu", []), ("Tanh", []), ("Sigmoid", []), ("HardSwish", []), ("LeakyRelu", [0.2]),
                           ("Clip", [-0.5, 0.7]), ("HardSigmoid", [0.3, 0.4])):
        more = {"activation_params": by} if by else {}
        case("fused_conv_" + activation.lower(), "FusedConv", lambda n: [*image(n), n.real(2)],
             fixed=(1, 2), activation=activation, **more)
    case("fused_conv_sum", "FusedConv", lambda n: [*image(n), n.real(2), n.real(1, 2, 3, 4)], activation="Relu")
    case("fused_conv_sum_no_bias", "FusedConv", lambda n: [*image(n), None, n.real(1, 2, 5, 6)],
         activation="Relu", pads=[1, 1, 1, 1])
    for activation, by in (("Relu", {}), ("Tanh", {}), ("LeakyRelu", dict(activation_alpha=0.2)),
                           ("HardSigmoid", dict(activation_alpha=0.3, activation_beta=0.4))):
        case("fused_gemm_" + activation.lower(), "FusedGemm", lambda n: [n.real(4, 6), n.real(5, 6), n.real(5)],
             activation=activation, transB=1, alpha=0.5, fixed=(1, 2), **by)
    case("fused_gemm_plain", "FusedGemm", lambda n: [n.real(4, 6), n.real(6, 5)], activation="Sigmoid")


def few_bits(n, rows, k, block, bits, zeros="none", dtype=F32, bias=False, flat=False):
    """Operands of MatMulNBits with 5 columns."""
    blocks, per = -(-k // block), 8 // bits
    weights = n.byte(5, blocks, block // per)
    zero = {"none": None, "packed": n.byte(5, -(-blocks // per)), "real": n.real(5, blocks, dtype=dtype) + dtype(8)}[zeros]
    scales = n.scales(5, blocks, low=0.01, high=0.05, dtype=dtype)
    if flat:
        scales, zero = scales.reshape(-1), zero.reshape(-1)
    out = [n.real(*rows, k, dtype=dtype), weights, scales]
    return out + [zero, None, n.real(5, dtype=dtype)] if bias else out + ([] if zero is None else [zero])


def packed_products():
    for bits in (2, 4, 8):
        for k, block in ((48, 16), (70, 32), (13, 16)):
            for zeros in ("none", "packed"):
                case("matmul_%dbits_%d_of_%d_%s" % (bits, k, block, zeros), "MatMulNBits",
                     lambda n: few_bits(n, (3,), k, block, bits, zeros), fixed=(1, 2, 3) if k == 70 else (),
                     K=k, N=5, bits=bits, block_size=block)
    at = dict(K=70, N=5, bits=4, block_size=32)
    case("matmul_4bits_real_zeros", "MatMulNBits", lambda n: few_bits(n, (3,), 70, 32, 4, "real"), **at)
    case("matmul_4bits_flat", "MatMulNBits", lambda n: few_bits(n, (3,), 70, 32, 4, "packed", flat=True), **at)
    case("matmul_4bits_bias", "MatMulNBits", lambda n: few_bits(n, (2, 3), 70, 32, 4, "packed", bias=True), **at)
    case("matmul_4bits_f16", "MatMulNBits", lambda n: few_bits(n, (3,), 70, 32, 4, "packed", dtype=F16), **at)
    case("matmul_8bits_f16", "MatMulNBits", lambda n: few_bits(n, (3,), 16, 16, 8, "none", dtype=F16),
         K=16, N=5, bits=8, block_size=16)


def tables(n, rows, half, dtype=F32):
    angles = n.real(rows, half)
    return [np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)]


def rotary():
    for dtype, tag in ((F32, "f32"), (F16, "f16")):
        case("rotary_" + tag, "RotaryEmbedding",
             lambda n: [n.real(2, 5, 12, dtype=dtype), n.whole(0, 10, 2, 5, dtype=np.int64), *tables(n, 10, 2, dtype)])
    case("rotary_offset", "RotaryEmbedding", lambda n: [n.real(2, 3, 5, 4), np.array([3], np.int64), *tables(n, 10, 2)])
    case("rotary_neighbours", "RotaryEmbedding",
         lambda n: [n.real(2, 5, 12), n.whole(0, 10, 2, 5, dtype=np.int64), *tables(n, 10, 2)], interleaved=1, fixed=(2, 3))
    for shape, tag in (((2, 5, 18), "packed"), ((2, 3, 5, 6), "heads")):
        case("rotary_part_" + tag, "RotaryEmbedding",
             lambda n: [n.real(*shape), n.whole(0, 10, 2, 5, dtype=np.int64), *tables(n, 10, 2)],
             num_heads=3, rotary_embedding_dim=4)


def multi_head():
    def operands(n, keys=5, width=6, more=()):
        return [n.real(2, 3, 8), n.real(2, keys, 8), n.real(2, keys, 2 * width), *more]

    op = "MultiHeadAttention"
    mask = np.array([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1]], np.int32)
    case("mha", op, operands, num_heads=2)
    case("mha_bias_scale", op, lambda n: operands(n, more=[n.real(28)]), num_heads=2, scale=0.3, fixed=(3,))
    case("mha_mask", op, lambda n: operands(n, more=[None, mask]), num_heads=2)
    case("mha_mask_lengths", op, lambda n: operands(n, more=[None, np.array([3, 5], np.int32)]), num_heads=2)
    case("mha_mask_pairs", op, lambda n: operands(n, more=[None, n.whole(0, 2, 2, 3, 5)]),
         num_heads=2, mask_filter_value=-5.0)
    case("mha_score_bias", op, lambda n: operands(n, more=[None, mask, n.real(1, 2, 3, 5)]), num_heads=2)
    case("mha_score_bias_heads", op, lambda n: operands(n, more=[None, None, n.real(2, 1, 3, 5)]), num_heads=2)
    case("mha_present", op, operands, outputs=3, num_heads=2)
    past = lambda n: [n.real(2, 2, 4, 4), n.real(2, 2, 4, 4)]
    for causal in (0, 1):
        case("mha_past_%d" % causal, op, lambda n: operands(n, 3, 4, [n.real(24), None, None, *past(n)]),
             outputs=3, num_heads=2, unidirectional=causal)
    case("mha_causal", op, lambda n: operands(n, 3, 6), num_heads=2, unidirectional=1)
    case("mha_causal_mask", op, lambda n: operands(n, 3, 4, [None, mask[:, :3].copy()]), num_heads=2, unidirectional=1)
    case("mha_keys_with_heads", op,
         lambda n: [n.real(2, 3, 8), n.real(2, 2, 5, 4), n.real(2, 2, 5, 4), n.real(24)], num_heads=2)


def projected():
    """Queries, keys and values of one product."""
    op = "Attention"
    lengths, mask = np.array([2, 3], np.int32), np.array([[1, 0, 1], [1, 1, 1]], np.int32)
    operands = lambda n, *more: [n.real(2, 3, 5), n.real(5, 24), n.real(24), *more]
    case("attention", op, operands, num_heads=2, fixed=(1, 2))
    case("attention_no_bias", op, lambda n: [n.real(2, 3, 5), n.real(5, 24)], num_heads=2, scale=0.3)
    case("attention_lengths", op, lambda n: operands(n, lengths), num_heads=2)
    case("attention_mask", op, lambda n: operands(n, mask, None, n.real(1, 2, 3, 3)), num_heads=2)
    case("attention_pairs", op, lambda n: operands(n, n.whole(0, 2, 2, 3, 3)), num_heads=2, mask_filter_value=-4.0)
    case("attention_causal", op, operands, num_heads=2, unidirectional=1)
    case("attention_widths", op, lambda n: [n.real(2, 3, 5), n.real(5, 28), n.real(28)],
         num_heads=2, qkv_hidden_sizes=[8, 8, 12])
    case("attention_present", op, operands, outputs=2, num_heads=2)
    for causal in (0, 1):
        case("attention_past_%d" % causal, op, lambda n: operands(n, None, n.real(2, 2, 2, 2, 4)),
             outputs=2, num_heads=2, unidirectional=causal)
    small = lambda n, *more: [n.byte(2, 3, 5), n.byte(5, 24, dtype=np.int8), n.real(24), one(0.01), one(0.002), *more]
    case("qattention", "QAttention", small, num_heads=2)
    case("qattention_zeros", "QAttention",
         lambda n: [n.byte(2, 3, 5), n.byte(5, 24, dtype=np.int8), n.real(24), one(0.01), n.scales(24, low=0.001, high=0.004),
                    lengths, one(9, np.uint8), n.whole(-5, 5, 24, dtype=np.int8)], num_heads=2, fixed=(1, 2, 4, 6, 7))
    case("qattention_past", "QAttention",
         lambda n: small(n, None, one(9, np.uint8), one(2, np.int8), n.real(2, 2, 2, 2, 4)),
         outputs=2, num_heads=2, unidirectional=1)


def grouped(name, fresh, total, lengths, earlier=0, dtype=F32, turns=False, places=None, bias=None, sink=False,
            packed=False, fixed=(), **more):
    """4 heads of 16 to 2; batch by `lengths`."""

    def operands(n):
        batch = len(lengths)
        q, k, v = (n.real(batch, fresh, heads * 16, dtype=dtype) for heads in (4, 2, 2))
        past = [n.real(batch, 2, earlier, 16, dtype=dtype) for _ in range(2)] if earlier else [None, None]
        if packed:
            q, k, v = np.concatenate([q, k, v], -1), None, None
        inputs = [q, k, v, *past, np.array(lengths, np.int32), np.array([total], np.int32)]
        inputs += tables(n, 16, 8, dtype) if turns else [None, None]
        inputs += [places, None if bias is None else n.real(*bias, dtype=dtype), n.real(4, dtype=dtype) if sink else None]
        while inputs[-1] is None:
            inputs.pop()
        return inputs

    case("gqa_" + name, "GroupQueryAttention", operands, outputs=3, num_heads=4, kv_num_heads=2,
         do_rotary=int(turns), fixed=(6, *fixed), **more)


def grouped_query():
    grouped("first", 5, 5, [4, 4])
    grouped("first_full", 5, 5, [4, 4], fixed=(5,))
    grouped("first_ragged", 5, 5, [4, 2])
    grouped("first_buffer", 5, 5, [4, 3], earlier=8)
    grouped("first_f16", 5, 5, [4, 4], dtype=F16)
    grouped("first_packed", 5, 5, [4, 4], packed=True)
    grouped("next", 1, 5, [4, 4], earlier=4)
    grouped("next_ragged", 1, 5, [4, 2], earlier=4)
    grouped("next_buffer", 1, 5, [4, 2], earlier=8)
    grouped("next_f16", 1, 5, [4, 2], earlier=8, dtype=F16)
    grouped("several", 3, 7, [6], earlier=4)
    grouped("several_buffer", 3, 7, [6], earlier=9)
    grouped("rotary_first", 5, 5, [4, 4], turns=True)
    grouped("rotary_first_places", 5, 5, [4, 4], turns=True, places=np.array([[3, 4, 5, 6, 7]] * 2, np.int64))
    grouped("rotary_neighbours", 5, 5, [4, 4], turns=True, rotary_interleaved=1, packed=True)
    grouped("rotary_next", 1, 5, [4, 2], earlier=8, turns=True)
    grouped("rotary_next_places", 1, 5, [4, 2], earlier=4, turns=True, places=np.array([[7], [3]], np.int64))
    grouped("rotary_several", 3, 7, [6], earlier=9, turns=True)
    grouped("window_first", 5, 5, [4, 4], local_window_size=2)
    grouped("window_full", 5, 5, [4, 4], local_window_size=2, fixed=(5,))
    grouped("window_next", 1, 7, [6, 5], earlier=8, local_window_size=3)
    grouped("window_several", 3, 7, [6], earlier=9, local_window_size=2)
    grouped("softcap", 5, 5, [4, 4], softcap=0.5)
    grouped("softcap_bias", 5, 5, [4, 4], softcap=0.7, bias=(2, 1, 5, 5))
    grouped("bias", 5, 5, [4, 4], bias=(1, 4, 5, 5))
    grouped("bias_several", 3, 7, [6], earlier=9, bias=(1, 4, 3, 7))
    grouped("sink", 5, 5, [4, 4], sink=True)
    grouped("sink_next", 1, 5, [4, 2], earlier=8, sink=True)
    grouped("smooth", 5, 5, [4, 4], smooth_softmax=1, fixed=(5,))
    grouped("both_ways", 5, 5, [4, 2], causal=0)
    grouped("both_ways_several", 3, 7, [6], earlier=9, causal=0)
    grouped("scale", 5, 5, [4, 4], scale=0.3)


def scaled(n, *shape, dtype=np.uint8):
    """Numbers of 8 bits, their scale and zero point."""
    return [n.byte(*shape, dtype=dtype), one(n.scales()), n.byte(dtype=dtype)]


def result(n, dtype=np.uint8, low=0.05, high=0.15):
    """A scale and a zero point in the middle, so that few results are the largest or the least."""
    middle = 0 if dtype == np.int8 else 128
    return [one(n.scales(low=low, high=high)), n.whole(middle - 25, middle + 25, dtype=dtype)]


def quantized():
    for dtype, tag in ((np.uint8, "u8"), (np.int8, "i8")):
        for op, stem, high in (("QLinearAdd", "qlinear_add", 0.4), ("QLinearMul", "qlinear_mul", 2.0)):
            case("%s_%s" % (stem, tag), op,
                 lambda n: scaled(n, 7, 31, dtype=dtype) + scaled(n, 7, 31, dtype=dtype) + result(n, dtype, high / 4, high),
                 fixed=(1, 2, 4, 5, 6, 7))
            case("%s_broadcast_%s" % (stem, tag), op,
                 lambda n: scaled(n, 2, 3, 9, dtype=dtype) + scaled(n, 3, 1, dtype=dtype) + result(n, dtype, high / 4, high))
        case("qlinear_sigmoid_" + tag, "QLinearSigmoid",
             lambda n: scaled(n, 200, dtype=dtype) + [one(1 / 256), one(np.iinfo(dtype).min, dtype)], fixed=(1, 2, 3, 4))
        case("qlinear_leaky_relu_" + tag, "QLinearLeakyRelu",
             lambda n: scaled(n, 200, dtype=dtype) + result(n, dtype), alpha=0.3)
        case("qlinear_global_average_pool_" + tag, "QLinearGlobalAveragePool",
             lambda n: scaled(n, 2, 3, 5, 7, dtype=dtype) + result(n, dtype), fixed=(1, 2, 3, 4))
        case("qlinear_concat_" + tag, "QLinearConcat",
             lambda n: result(n, dtype) + scaled(n, 2, 3, 4, dtype=dtype) + scaled(n, 2, 1, 4, dtype=dtype), axis=1)
    # Scales whose sums are often half way between two results.
    for op, stem in (("QLinearAdd", "qlinear_add"), ("QLinearMul", "qlinear_mul")):
        case(stem + "_ties", op,
             lambda n: [n.byte(500), one(0.1), one(3, np.uint8), n.byte(500), one(0.3), one(10, np.uint8),
                        one(0.4 if op == "QLinearAdd" else 6.0), one(5, np.uint8)])
    case("qlinear_concat_same", "QLinearConcat",
         lambda n: [one(0.5), one(3, np.uint8), n.byte(2, 3), one(0.5), one(3, np.uint8), n.byte(2, 5), one(0.25),
                    one(7, np.uint8)], axis=-1, fixed=(0, 1, 3, 4, 6, 7))
    case("qlinear_global_average_pool_last", "QLinearGlobalAveragePool",
         lambda n: scaled(n, 2, 5, 7, 3) + result(n), channels_last=1)
    for tag, at in (("", {}), ("_pads", dict(pads=[1, 1, 1, 1])), ("_same", dict(auto_pad="SAME_UPPER")),
                    ("_count_pads", dict(pads=[1, 0, 1, 2], count_include_pad=1))):
        case("qlinear_average_pool" + tag, "QLinearAveragePool",
             lambda n: scaled(n, 1, 2, 6, 7) + result(n), kernel_shape=[3, 3], strides=[2, 2], **at)
    case("qlinear_average_pool_i8", "QLinearAveragePool",
         lambda n: scaled(n, 1, 2, 6, 7, dtype=np.int8) + result(n, np.int8), kernel_shape=[2, 3], fixed=(1, 2, 3, 4))


def quantized_products():
    for a, b, tag in ((np.uint8, np.int8, "u8_i8"), (np.uint8, np.uint8, "u8_u8"), (np.int8, np.int8, "i8_i8")):
        small = lambda n, *shape: n.whole(0, 9, *shape, dtype=b)
        case("qgemm_" + tag, "QGemm",
             lambda n: scaled(n, 4, 9, dtype=a) + [n.byte(9, 5, dtype=b), n.scales(5), small(n, 5),
                                                    n.whole(-500, 500, 5)] + result(n, a, 1, 3),
             fixed=(1, 2, 3, 4, 5, 6, 7, 8))
        case("matmul_integer_to_float_" + tag, "MatMulIntegerToFloat",
             lambda n: [n.byte(2, 4, 9, dtype=a), n.byte(9, 5, dtype=b), one(n.scales()), n.scales(5), n.byte(dtype=a),
                        small(n, 5), n.real(5)], fixed=(1, 3, 5) if tag == "u8_i8" else ())
    case("qgemm_turned", "QGemm",
         lambda n: [n.byte(9, 4), one(0.02), one(7, np.uint8), n.byte(5, 9, dtype=np.int8), one(0.05), one(3, np.int8),
                    n.whole(-500, 500, 4, 1), one(1.5), one(90, np.uint8)], transA=1, transB=1, alpha=0.5)
    case("qgemm_real", "QGemm",
         lambda n: scaled(n, 4, 9) + [n.byte(9, 5, dtype=np.int8), one(0.05), one(0, np.int8)], alpha=0.5)
    case("matmul_integer_to_float_plain", "MatMulIntegerToFloat",
         lambda n: [n.byte(4, 9), n.byte(9, 5), one(0.02), one(0.05)])
    for zeros, tag in ((False, ""), (True, "_zeros")):
        case("dynamic_quantize_matmul" + tag, "DynamicQuantizeMatMul",
             lambda n: [n.real(2, 4, 9), n.byte(9, 5, dtype=np.int8), n.scales(5)]
             + ([n.whole(-5, 5, 5, dtype=np.int8), n.real(5)] if zeros else []), fixed=(1, 2, 3))
    case("dynamic_quantize_matmul_u8", "DynamicQuantizeMatMul",
         lambda n: [n.real(4, 9), n.byte(9, 5), one(0.03), one(120, np.uint8)], fixed=(1, 2, 3))


def recurrent_bytes():
    def operands(n, dtype=np.int8, columns=False, zeros=False, directions=1, state=False, holes=False, bias=True,
                 shape=(4, 2, 5, 3)):
        steps, batch, inputs, hidden = shape
        of = (directions, 4 * hidden) if columns else (directions,)
        zero = lambda: n.byte(*of, dtype=dtype) if zeros else np.zeros(of, dtype)
        return [n.real(steps, batch, inputs), n.byte(directions, inputs, 4 * hidden, dtype=dtype),
                n.byte(directions, hidden, 4 * hidden, dtype=dtype),
                n.real(directions, 8 * hidden, scale=0.3) if bias else None, None,
                n.real(directions, batch, hidden) if state else None, n.real(directions, batch, hidden) if state else None,
                n.real(directions, 3 * hidden) if holes else None,
                n.scales(*of, low=0.003, high=0.013), zero(), n.scales(*of, low=0.003, high=0.013), zero()]

    def of_bytes(name, fixed=(1, 2, 3, 7, 8, 9, 10, 11), shape=(4, 2, 5, 3), more=None, **how):
        case("dynamic_quantize_lstm_" + name, "DynamicQuantizeLSTM", lambda n: operands(n, shape=shape, **how), outputs=3,
             fixed=fixed, hidden_size=shape[-1], **(more or {}))

    both = dict(directions=2, more=dict(direction="bidirectional"))
    of_bytes("i8")
    of_bytes("u8", dtype=np.uint8, zeros=True)
    of_bytes("columns", columns=True, bias=False)
    of_bytes("inputs", fixed=(), zeros=True)
    of_bytes("reverse", zeros=True, more=dict(direction="reverse"))
    of_bytes("both", columns=True, state=True, **both)
    of_bytes("holes", holes=True, state=True, more=dict(clip=0.5, input_forget=1))
    of_bytes("larger", zeros=True, state=True, shape=(8, 3, 9, 6), **both)


def no_numbers():
    """Operators of ONNX on NaN, and rests of floats."""

    def some(n, *shape, dtype=F32):
        x = n.real(*shape, dtype=dtype, scale=2)
        x[n.rng.random(shape) < 0.3] = np.nan
        return x

    for dtype, tag in ((F32, "f32"), (F16, "f16")):
        for op in ("Max", "Min"):
            stem = "%s_nan_%s" % (op.lower(), tag)
            case(stem, op, lambda n: [some(n, 5, 7, dtype=dtype), some(n, 7, dtype=dtype)], domain="")
            case(stem + "_number", op,
                 lambda n: [some(n, 5, 7, dtype=dtype), one(0.5, dtype), *(some(n, 5, 7, dtype=dtype) for _ in range(2))],
                 domain="", fixed=(1,))
        case("relu_nan_" + tag, "Relu", lambda n: [some(n, 5, 7, dtype=dtype)], domain="")
        case("clip_nan_" + tag, "Clip", lambda n: [some(n, 5, 7, dtype=dtype), one(-1, dtype), one(1, dtype)],
             domain="", fixed=(1, 2))
        case("hard_sigmoid_nan_" + tag, "HardSigmoid", lambda n: [some(n, 5, 7, dtype=dtype)], domain="")
    # Its Sign of f16 gives 0, which is none of ours.
    for dtype, tag in ((F32, "f32"), (np.float64, "f64")):
        case("sign_nan_" + tag, "Sign", lambda n: [some(n, 5, 7, dtype=dtype)], domain="")
    left = [5.3, -5.3, 6.0, -6.0, 0.3, -0.0, 1e10, 7e-41, np.inf, 4.0, np.nan, 3.0, -3.0, 0.9, 1.0, 65504.0]
    right = [2.0, 2.0, -3.0, 3.0, 0.1, 3.0, 3e-4, 3e-42, 2.0, 0.0, 2.0, np.inf, -np.inf, 0.3, 0.1, 3e-5]
    for dtype, tag in ((F32, "f32"), (F16, "f16"), (np.float64, "f64")):
        with np.errstate(over="ignore"):
            both = [np.array(side, dtype) for side in (left, right)]
        case("fmod_" + tag, "Mod", lambda n: both, domain="", fmod=1)
        case("fmod_random_" + tag, "Mod",
             lambda n: [(n.real(500, scale=3) * 2.0 ** n.whole(0, 7, 500)).astype(dtype), n.real(500, dtype=dtype)],
             domain="", fmod=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--only", metavar="OPERATOR", help="the cases of one operator")
    args = parser.parse_args()
    for group in (normalisations, activations, products, packed_products, rotary, multi_head, projected, grouped_query,
                  quantized, quantized_products, recurrent_bytes, no_numbers):
        group()
    names = [item.name for item in CASES]
    assert len(set(names)) == len(names), "two cases of one name"
    os.makedirs(args.out, exist_ok=True)
    for op in sorted({item.op for item in CASES if args.only in (None, item.op)}):
        files = {}
        for item in CASES:
            if item.op == op:
                files.update(item.record())
        write_archive(os.path.join(args.out, op + ".tar"), files)


if __name__ == "__main__":
    main()

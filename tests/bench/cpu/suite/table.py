"""The rows of `./dev bench cpu --suite all` and `--suite algebra`: name, class, definition, sizes. Activations are channels-first and
row-major."""

import algebra as alg
import attention as att
import convolutions as cv
import movement as mv
import networks
import products as mm
import rowwise as rw
from description import Row
from score import CALL, NETWORK


def rows(cls, family, **named):
    return [Row(name, cls, family, sizes) for name, sizes in named.items()]


def conv(cls, **named):
    return rows(cls, cv.conv, **named)


FIVE_POINT = [[0, 0.25, 0], [0.25, -1.0, 0.25], [0, 0.25, 0]]
BLUR = [[0.0625, 0.125, 0.0625], [0.125, 0.25, 0.125], [0.0625, 0.125, 0.0625]]

ROWS = [
    *rows(CALL, mv.add_relu, call_1x1=dict(m=1, n=1)),
    *rows("gemm", mm.gemm,
          gemm_512=dict(m=512, n=512, k=512), gemm_1024=dict(m=1024, n=1024, k=1024), gemm_197x768x768=dict(m=197, n=768, k=768),
          gemm_128x768x3072=dict(m=128, n=768, k=3072), gemm_nt_384=dict(m=384, n=384, k=384, nt=True),
          gemm_127x129x131=dict(m=127, n=129, k=131), gemm_333x517x259_relu=dict(m=333, n=517, k=259, after="relu")),
    *rows("skinny gemm", mm.gemm,
          gemm_1x1024x4096=dict(m=1, n=1024, k=4096), gemm_4x4096x1024=dict(m=4, n=4096, k=1024), gemm_16x1024x1024=dict(m=16, n=1024, k=1024),
          gemm_3136x64x64=dict(m=3136, n=64, k=64), gemm_1024x16x1024=dict(m=1024, n=16, k=1024)),
    *rows("batched gemm", mm.batched,
          bmm_12x128x128x64=dict(b=12, m=128, n=128, k=64), bmm_nt_12x128x128x64=dict(b=12, m=128, n=128, k=64, nt=True),
          bmm_64x32x32x32=dict(b=64, m=32, n=32, k=32)),
    *rows("int8 gemm", mm.int8, gemm_i8_512=dict(m=512, n=512, k=512), gemm_i8_16x1024x1024=dict(m=16, n=1024, k=1024)),
    *rows("bf16 gemm", mm.bf16, gemm_bf16_512=dict(m=512, n=512, k=512), gemm_bf16_128x768x3072=dict(m=128, n=768, k=3072)),
    *conv("conv",
          conv1d_64x512_3=dict(rank=1, ci=64, co=64, w=512), conv1d_16x4096_9=dict(rank=1, ci=16, co=32, w=4096, kernel=9, pad=4),
          conv_64x56_3x3=dict(h=56, w=56), conv_256x14_3x3=dict(ci=256, co=256, h=14, w=14), conv_512x7_3x3=dict(ci=512, co=512, h=7, w=7),
          conv_3x224_7x7s2=dict(ci=3, co=64, h=224, w=224, kernel=7, stride=2, pad=3),
          conv_256x56_1x1=dict(ci=256, co=64, h=56, w=56, kernel=1, pad=0), conv_1024x14_1x1=dict(ci=1024, co=256, h=14, w=14, kernel=1, pad=0),
          conv_256x56_1x1s2=dict(ci=256, co=512, h=56, w=56, kernel=1, stride=2, pad=0),
          conv3d_16x8x28_3x3x3=dict(rank=3, ci=16, co=32, l=8, h=28, w=28), conv3d_3x16x56_3x3x3=dict(rank=3, ci=3, co=32, l=16, h=56, w=56)),
    *conv("dilated conv", conv_256x14_3x3_d2=dict(ci=256, co=256, h=14, w=14, pad=2, dilation=2),
          conv_64x28_3x3_d4=dict(ci=64, co=64, h=28, w=28, pad=4, dilation=4)),
    *conv("grouped conv", gconv_64x56_3x3s2_g4=dict(ci=64, co=128, h=56, w=56, stride=2, g=4),
          gconv_128x28_3x3_g32=dict(ci=128, co=128, h=28, w=28, g=32)),
    *rows("depthwise conv", cv.depthwise, dw_96x112_3x3s2=dict(c=96, h=112, w=112, stride=2), dw_144x56_3x3=dict(c=144, h=56, w=56),
          dw_384x14_5x5=dict(c=384, h=14, w=14, kernel=5, pad=2)),
    *rows("transposed conv", cv.transposed, tconv_128x16_4x4s2=dict(ci=128, co=64, h=16, w=16, kernel=4, stride=2, pad=1),
          tconv_64x32_2x2s2=dict(ci=64, co=32, h=32, w=32, kernel=2, stride=2, pad=0),
          tconv_32x28_3x3s1=dict(ci=32, co=32, h=28, w=28, kernel=3, stride=1, pad=1)),
    *rows("pooling", cv.max_pool, maxpool_64x112_3x3s2=dict(c=64, h=112, w=112, kernel=3, stride=2, pad=1)),
    *rows("pooling", cv.avg_pool, avgpool_128x28_2x2=dict(c=128, h=28, w=28, kernel=2, stride=2),
          avgpool_2048x7_all=dict(c=2048, h=7, w=7, kernel=7, stride=1)),
    *rows("softmax", rw.softmax, softmax_64x5000=dict(m=64, n=5000), softmax_1536x128=dict(m=1536, n=128),
          logsoftmax_128x1000=dict(m=128, n=1000, log=True)),
    *rows("norm", rw.layer_norm, layernorm_128x768=dict(m=128, n=768)), *rows("norm", rw.rms_norm, rmsnorm_64x4096=dict(m=64, n=4096)),
    *rows("norm", rw.batch_norm, batchnorm_64x56=dict(c=64, h=56, w=56)),
    *rows("norm", rw.group_norm, groupnorm_128x28_g32=dict(c=128, h=28, w=28, g=32)),
    *rows("attention", att.attention, attention_12x128x64=dict(b=12, t=128, s=128, e=64),
          attention_8x512x64=dict(b=8, t=512, s=512, e=64), attention_causal_8x256x64=dict(b=8, t=256, s=256, e=64, causal=True),
          attention_grouped_8x128x64_g4=dict(b=8, t=128, s=128, e=64, g=4), attention_decode_8x1024x64=dict(b=8, t=1, s=1024, e=64)),
    *rows("reduction", rw.reduction, row_sum_1024x1024=dict(kind="sum", m=1024, n=1024), col_sum_1024x1024=dict(kind="sum", m=1024, n=1024, axis=0),
          row_max_2048x512=dict(kind="max", m=2048, n=512), col_max_512x2048=dict(kind="max", m=512, n=2048, axis=0),
          total_sum_1024x1024=dict(kind="sum", m=1024, n=1024, axis=None)),
    *rows("reduction", rw.variance, variance_512x1024=dict(m=512, n=1024)),
    *rows("argmax", rw.argmax, argmax_1024x1024=dict(m=1024, n=1024), argmax_columns_512x1024=dict(m=512, n=1024, axis=0)),
    *rows("scan", rw.cumsum, cumsum_256x1024=dict(m=256, n=1024), cumsum_columns_256x512=dict(m=256, n=512, axis=0)),
    *rows("stencil", mv.stencil_2d, stencil_1024x1024_5=dict(h=1024, w=1024, weights=FIVE_POINT), blur_1080x1920_9=dict(h=1080, w=1920, weights=BLUR)),
    *rows("stencil", mv.stencil_3d, stencil_96x96x96_7=dict(l=96, h=96, w=96)),
    *rows("transpose", mv.transpose, transpose_add_1024x1536=dict(m=1024, n=1536, add=True), transpose_1000x777=dict(m=1000, n=777)),
    *rows("transpose", mv.permute, heads_1x128x12x64=dict(shape=(1, 128, 12, 64), order=(0, 2, 1, 3)),
          nchw_to_nhwc_64x56=dict(shape=(1, 64, 56, 56), order=(0, 2, 3, 1))),
    *rows("movement", mv.concat, concat_64_64x56=dict(parts=(64, 64), h=56, w=56), concat_64_96_32_32x28=dict(parts=(64, 96, 32, 32), h=28, w=28)),
    *rows("movement", mv.pad_edges, pad_64x112_1=dict(c=64, h=112, w=112, pad=1)),
    *rows("element-wise", mv.bias_gelu, bias_gelu_128x3072=dict(m=128, n=3072)), *rows("element-wise", mv.silu_mul, silu_mul_128x4096=dict(m=128, n=4096)),
    *rows("element-wise", mv.add_relu, add_relu_256x3136=dict(m=256, n=3136)),
    *rows("fused", mm.gemm, bert_up_128x3072x768_gelu=dict(m=128, n=3072, k=768, bias=True, after="gelu"),
          vit_qkv_197x2304x768=dict(m=197, n=2304, k=768, bias=True), vit_projection_197x768x768=dict(m=197, n=768, k=768, bias=True, residual=True)),
    *rows("fused", mm.gemm_layer_norm, bert_down_128x768x3072_norm=dict(m=128, n=768, k=3072)),
    *conv("fused", vit_patches_3x224_16x16s16=dict(ci=3, co=768, h=224, w=224, kernel=16, stride=16, pad=0, bias=True),
          resnet_128x28_3x3_relu=dict(ci=128, co=128, h=28, w=28, bias=True, after="relu"),
          resnet_64x56_1x1_add_relu=dict(ci=64, co=256, h=56, w=56, kernel=1, pad=0, bias=True, after="relu", residual=True),
          mobilenet_24x56_1x1_relu6=dict(ci=24, co=144, h=56, w=56, kernel=1, pad=0, bias=True, after="relu6")),
    *rows("fused", cv.depthwise, mobilenet_dw_144x56_relu6=dict(c=144, h=56, w=56, bias=True, after="relu6")),
    *rows("fused", cv.separable, mobilenet_dw_pw_96x28=dict(c=96, co=32, h=28, w=28)),
]

# The cases of `./dev bench algebra`, by their names there, and causal attention.
ALGEBRA = [
    *rows("algebra", alg.lora_merged, lora_merged=dict(m=16, n=4096, k=4096, r=16)),
    *rows("algebra", alg.lora_added, lora_added=dict(m=16, n=4096, k=256, r=16)),
    *rows("algebra", alg.chain3, chain3=dict(n=1024)), *rows("algebra", alg.product_row_sums, product_row_sums=dict(n=1024)),
    *rows("algebra", alg.linear_attention, linear_attention=dict(t=4096, e=64)),
    *rows("algebra", alg.outer_then_sum, outer_then_sum=dict(n=2048, e=64)),
    *rows("algebra", alg.grouped_decode,
          grouped_decode_4096=dict(b=32, g=8, s=4096, e=128), grouped_decode_65536=dict(b=32, g=8, s=65536, e=128)),
    *rows("algebra", alg.rmsnorm_linear, rmsnorm_linear=dict(m=16, n=6144, k=4096)),
    *rows("algebra", alg.layernorm_linear, layernorm_linear=dict(m=16, n=4096, k=4096)),
    *rows("algebra", alg.raw_attention, raw_attention=dict(b=8, t=128, s=128, e=64)),
    *rows("algebra", alg.qk_norm, qk_norm=dict(b=8, t=128, s=128, e=64)), *rows("algebra", alg.gated_mlp, gated_mlp=dict(m=8, n=4096, k=4096)),
    *rows("algebra", att.attention, attention_keys_16384=dict(b=4, t=256, s=16384, e=64),
          attention_causal_8x1024x64=dict(b=8, t=1024, s=1024, e=64, causal=True)),
    *conv("algebra", conv3x3_64ch_56=dict(h=56, w=56), conv3x3_128ch_28=dict(ci=128, co=128, h=28, w=28)),
]

NETWORKS = rows(NETWORK, networks.resnet50, resnet50={})
SUITES = {"all": ROWS, "algebra": ALGEBRA}


def classes():
    return list(dict.fromkeys(row.cls for row in ROWS))

#!/usr/bin/env python3
"""Well-known networks as PyTorch's exporter writes them, with random weights: float32, batch 1, static shapes.

Made by torch.onnx.export of Debian's PyTorch 1.13 (operator set 14, unless --opset says otherwise) from the definitions of
torchvision and transformers, in evaluation mode. The same seed gives the same file on the same machine. Statistics of
batch normalisations are those of noise through the network, and neither they nor any bias or scale are left at 0 or 1; the
exporter does not fold normalisations into convolutions, so that this is left to who reads the file.

usage: models.py OUT_DIR [NAME...] [--opset N]         NAME: resnet50 mobilenet_v2 efficientnet_b0 vit_b_16 bert_base
                                                              gpt2_prefill gpt2_decode (default: all)
`./dev setup --models` says which Python runs it.
"""

import argparse
import os
import sys
import tempfile

import torch

SEED = 0
IMAGE = (1, 3, 224, 224)
SEQUENCE = 128
DEVIATION = 0.05


def perturb(net):
    """No vector of parameters keeps the value it is made with; a matrix of zeros, as a classifier's, becomes noise."""
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.dim() <= 1:
                parameter += DEVIATION * torch.randn_like(parameter)
            elif not parameter.any():
                parameter.normal_(0, DEVIATION)


def observe(net):
    """Sets the statistics of batch normalisations to those of noise, so that activations keep their size through the depth."""
    norms = [module for module in net.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.train()
        norm.momentum = None  # the plain average
    with torch.no_grad():
        net(torch.randn(4, *IMAGE[1:]))
    for norm in norms:
        norm.eval()


def from_torchvision(name):
    from torchvision import models

    net = getattr(models, name)(weights=None).eval()
    perturb(net)
    observe(net)
    return net, {"input": torch.randn(IMAGE)}, ["output"]


def bert_base():
    from transformers import BertConfig, BertModel

    net = BertModel(BertConfig(return_dict=False)).eval()
    perturb(net)
    ids = torch.randint(0, 1000, (1, SEQUENCE))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    return net, inputs, ["last_hidden_state", "pooler_output"]


class Gpt2(torch.nn.Module):
    """GPT-2 with the caches as plain inputs and outputs: key and value of each layer, [1, heads, length, 64]."""

    def __init__(self):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel

        self.net = GPT2LMHeadModel(GPT2Config(return_dict=False, use_cache=True))

    def forward(self, input_ids, *past):
        pairs = [past[i : i + 2] for i in range(0, len(past), 2)] or None
        logits, present = self.net(input_ids, past_key_values=pairs)
        return (logits, *[cache for pair in present for cache in pair])


def gpt2(length, past):
    net = Gpt2().eval()
    perturb(net)
    config = net.net.config
    caches = ["%s.%d" % (what, i) for i in range(config.n_layer) for what in ("key", "value")]
    inputs = {"input_ids": torch.randint(0, 1000, (1, length))}
    if past:
        shape = (1, config.n_head, past, config.n_embd // config.n_head)
        inputs.update({"past." + name: torch.randn(shape) for name in caches})
    return net, inputs, ["logits"] + ["present." + name for name in caches]


NETWORKS = {
    "resnet50": lambda: from_torchvision("resnet50"),
    "mobilenet_v2": lambda: from_torchvision("mobilenet_v2"),
    "efficientnet_b0": lambda: from_torchvision("efficientnet_b0"),
    "vit_b_16": lambda: from_torchvision("vit_b_16"),
    "bert_base": bert_base,
    "gpt2_prefill": lambda: gpt2(SEQUENCE, 0),
    "gpt2_decode": lambda: gpt2(1, SEQUENCE),
}


def write(name, folder, opset):
    torch.manual_seed(SEED)
    net, inputs, outputs = NETWORKS[name]()
    draft = tempfile.NamedTemporaryFile(dir=folder, prefix=name, suffix=".part", delete=False).name
    torch.onnx.export(
        net,
        tuple(inputs.values()),
        draft,
        opset_version=opset,
        training=torch.onnx.TrainingMode.PRESERVE,  # normalisations stay nodes
        input_names=list(inputs),
        output_names=outputs,
    )
    path = os.path.join(folder, name + ".onnx")
    os.chmod(draft, 0o644)
    os.replace(draft, path)
    print("%s: %.1f MB" % (path, os.path.getsize(path) * 1e-6), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="OUT_DIR")
    parser.add_argument("names", metavar="NAME", nargs="*")
    parser.add_argument("--opset", type=int, default=14)
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in NETWORKS]
    if unknown:
        sys.exit("models.py: no network %s; there are: %s" % (", ".join(unknown), " ".join(NETWORKS)))
    os.makedirs(options.folder, exist_ok=True)
    for name in options.names or NETWORKS:
        write(name, options.folder, options.opset)


if __name__ == "__main__":
    main()

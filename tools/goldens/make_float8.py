#!/usr/bin/env python3
"""One linear layer in float8 by torchao's emulation, for tests/ops_golden/float8_test.cpp.

    make_float8.py OUT_FILE

For each recipe: <recipe>.y, .dx, .dw of x [32, 48], w [64, 48], dy [32, 64], all float32. Scales are not rounded to powers
of two, which torchao's rowwise recipes do and torchtitan's documentation does not say.
"""
import dataclasses
import sys

import torch
from safetensors.torch import save_file
from torchao.float8 import Float8LinearConfig
from torchao.float8.float8_linear import Float8Linear


def main():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(32, 48, generator=generator) * torch.logspace(-3, 2, 32)[:, None]
    w = torch.randn(64, 48, generator=generator) * 0.05
    dy = torch.randn(32, 64, generator=generator) * 1e-3
    x[5] = 0
    w[7] = 0
    tensors = {'x': x, 'w': w, 'dy': dy}
    for recipe in ('rowwise', 'rowwise_with_gw_hp', 'tensorwise'):
        config = dataclasses.replace(Float8LinearConfig.from_recipe_name(recipe), emulate=True,
                                     round_scales_to_power_of_2=False)
        linear = torch.nn.Linear(48, 64, bias=False)
        linear.weight = torch.nn.Parameter(w.clone())
        layer = Float8Linear.from_float(linear, config=config)
        given = x.clone().requires_grad_()
        y = layer(given)
        y.backward(dy)
        tensors |= {f'{recipe}.y': y.detach(), f'{recipe}.dx': given.grad, f'{recipe}.dw': layer.weight.grad}
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, sys.argv[1])


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
"""Trains LoRA adapters of small golden models with PEFT, for tests/golden/lora_test.cpp.

    make_lora.py MODELS_DIR OUT_DIR

MODELS_DIR has the folders of make_models.py. OUT_DIR/<name> gets the start as PEFT saves it (adapter_config.json,
adapter_model.safetensors) and golden.safetensors: losses [6] before each of 6 AdamW updates and grad_norms [6] over the
adapters, both in float64 from float32 weights, final.<key> for every adapter matrix after the last update, and
merged.<name> of one weight with its adapter merged in.
"""
import json
import pathlib
import sys

import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

ADAMW = {'lr': 1e-2, 'betas': (0.9, 0.95), 'eps': 1e-8, 'weight_decay': 0.1}
UPDATES = 6
# Of attention: split projections, and one joined matrix that is stored the other way round.
MODELS = {'qwen3': ['q_proj', 'k_proj', 'v_proj', 'o_proj'], 'gpt2': ['c_attn', 'attn.c_proj']}
MERGED = {'qwen3': 'model.layers.1.self_attn.q_proj', 'gpt2': 'transformer.h.1.attn.c_attn'}


def train(folder, targets, out, merged):
    golden = load_file(folder / 'golden.safetensors')
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation='eager', dtype=torch.float32)
    torch.manual_seed(11)
    config = peft.LoraConfig(r=8, lora_alpha=16, target_modules=targets, task_type='CAUSAL_LM',
                             fan_in_fan_out='c_attn' in targets)
    model = peft.get_peft_model(model, config)
    with torch.no_grad():  # a start at which B has a say too
        for name, parameter in model.named_parameters():
            if 'lora_B' in name:
                parameter.copy_(0.05 * torch.randn(parameter.shape))
    model.save_pretrained(out)
    for other in ('README.md',):
        (out / other).unlink(missing_ok=True)
    model = model.double().eval()
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    optimizer = torch.optim.AdamW(trained.values(), **ADAMW)
    losses, norms = [], []
    for _ in range(UPDATES):
        logits = model(input_ids=golden['input_ids']).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), golden['labels'].flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.detach())
        norms.append(torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in trained.values()])))
        optimizer.step()
    tensors = {'losses': torch.stack(losses), 'grad_norms': torch.stack(norms)}
    for name, parameter in trained.items():
        tensors['final.' + name.replace('.default', '')] = parameter.detach().float().contiguous()
    base = model.merge_and_unload()
    tensors['merged.' + merged + '.weight'] = base.get_submodule(merged).weight.detach().float().contiguous()
    save_file(tensors, out / 'golden.safetensors')
    print(folder.name, [round(float(x), 5) for x in losses])


def main():
    models, out = map(pathlib.Path, sys.argv[1:3])
    for name, targets in MODELS.items():
        train(models / name, targets, out / name, MERGED[name])
        path = out / name / 'adapter_config.json'
        config = json.loads(path.read_text())
        config['base_model_name_or_path'] = name
        path.write_text(json.dumps(config, indent=1, sort_keys=True) + '\n')


if __name__ == '__main__':
    main()

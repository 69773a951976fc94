#!/usr/bin/env python3
"""Makes golden folders of small published models with the Transformers package.

    make_models.py OUT_DIR [NAME...]        default: every model of configs.py

A folder holds config.json, config_v4.json (the same model as Transformers 4 spells it),
model.safetensors, golden.safetensors (logits, loss, every gradient, packed documents, six AdamW
updates, router outputs) and golden.json (sizes, tolerances). Everything is computed in float64 from
float32 weights, also where the model's code asks for float32; the tolerance is ten times what
float32 itself is off, with a floor.
"""
import copy
import json
import math
import pathlib
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

import configs
from float64 import Float64

BATCH, SEQUENCE, DOCUMENTS = 2, 19, (9, 7)
ADAMW = {'lr': 1e-2, 'betas': (0.9, 0.95), 'eps': 1e-8, 'weight_decay': 0.1}
UPDATES = 6
FLOORS = {'logits_abs': 2e-5, 'loss_abs': 6e-6, 'grad_abs': 1e-5, 'grad_tensor_rel': 2e-5, 'grad_norm_rel': 1e-5,
          'losses_adamw_abs': 2e-5, 'final_abs': 5e-5, 'packed_logits_abs': 2e-5}
MARGIN, MARGIN_IN_UPDATES = 1e-3, 2e-4  # between chosen and refused experts


def draw_weights(model, seed, norm_offset):
    """Everything random, norms and biases too, so that no tensor can be left out unseen."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in list(model.named_parameters()) + list(model.named_buffers()):
            if name.endswith(('inv_freq', '.beta', '.eps')) or not tensor.is_floating_point():
                continue
            if name not in model.state_dict():
                continue
            noise = torch.randn(tensor.shape, generator=generator)
            if tensor.dim() < 2:
                offset = norm_offset if 'norm' in name and name.endswith('weight') else 0
                tensor.add_(0.2 * noise - offset)
            else:
                tensor.copy_(noise * 1.2 / math.sqrt(tensor.shape[-1]))


def as_file(model, values=None):
    """The tensors that save_pretrained writes, in its layout: the weights, or `values` by parameter."""
    if values is not None:
        model = copy.deepcopy(model)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(values[name])
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return {k: v.to(torch.float64) for k, v in load_file(f'{folder}/model.safetensors').items()}


class Routers:
    """Logits and choices of the routers in the last pass, by layer, and the margin of the choice."""

    def __init__(self, model):
        self.found, self.margin = {}, math.inf
        for name, module in model.named_modules():
            if type(module).__name__.endswith('Router'):
                layer = next(int(part) for part in name.split('.') if part.isdigit())
                module.register_forward_hook(self.hook(layer))

    def hook(self, layer):
        def keep(_module, inputs, outputs):
            logits, chosen = outputs[0].detach(), outputs[2]
            scores = logits if len(inputs) == 1 else logits.sigmoid() + inputs[1]
            order = scores.sort(dim=-1, descending=True).values
            k = chosen.shape[-1]
            self.margin = min(self.margin, (order[:, k - 1] - order[:, k]).min().item())
            self.found[layer] = (logits, chosen.sort(dim=-1).values)
        return keep

    def take_margin(self):
        margin, self.margin = self.margin, math.inf
        return margin


def batch_of(vocab, seed):
    generator = torch.Generator().manual_seed(seed)
    def draw(*shape):
        return torch.randint(0, vocab, shape, generator=generator)

    ids, packed = draw(BATCH, SEQUENCE), draw(1, sum(DOCUMENTS))
    labels = torch.cat([ids[:, 1:], draw(BATCH, 1)], dim=1)
    for row, column in ((0, 3), (0, 11), (1, 0), (1, 7), (1, 18)):
        labels[row, column] = -100
    packed_labels = torch.cat([packed[:, 1:], torch.full((1, 1), -100)], dim=1)
    packed_labels[0, DOCUMENTS[0] - 1] = -100
    positions = torch.cat([torch.arange(n) for n in DOCUMENTS])[None]
    return ids, labels, packed, packed_labels, positions


def loss_of(logits, labels):
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)


def norm_of(tensors):
    return math.sqrt(sum(float((t.double() ** 2).sum()) for t in tensors))


def compute(model, batch, routers):
    ids, labels, packed, packed_labels, _ = batch
    logits = model(ids, use_cache=False).logits
    loss = loss_of(logits, labels)
    result = {'logits': logits.detach(), 'loss': loss.detach(), 'routers': dict(routers.found),
              'margin': routers.take_margin()}
    model.zero_grad()
    loss.backward()
    grads = {name: p.grad for name, p in model.named_parameters()}
    result['without_gradient'] = [name for name, g in grads.items() if g is None]
    grads = {name: torch.zeros_like(p) if p.grad is None else p.grad.clone() for name, p in model.named_parameters()}
    result['grads'], result['grad_norm'] = as_file(model, grads), norm_of(grads.values())

    parts = packed.split(DOCUMENTS, dim=1)  # each document alone
    logits = torch.cat([model(part, use_cache=False).logits for part in parts], dim=1)
    loss = loss_of(logits, packed_labels)
    model.zero_grad()
    loss.backward()
    result |= {'packed.logits': logits.detach(), 'packed.loss': loss.detach(),
               'packed.grad_norm': norm_of(p.grad for p in model.parameters() if p.grad is not None)}
    result['margin'] = min(result['margin'], routers.take_margin())

    trained = [p for n, p in model.named_parameters() if n not in result['without_gradient']]
    optimizer = torch.optim.AdamW(trained, **ADAMW)
    losses = []
    for _ in range(UPDATES):
        optimizer.zero_grad(set_to_none=False)
        loss = loss_of(model(ids, use_cache=False).logits, labels)
        loss.backward()
        losses.append(loss.detach())
        optimizer.step()
    result |= {'losses_adamw': torch.stack(losses), 'final': as_file(model), 'update_margin': routers.take_margin()}
    return result


def errors_of(got, wanted, finals):
    def worst(a, b):
        return float((a.double() - b.double()).abs().max())

    grads = {k: (worst(got['grads'][k], g), float(g.abs().max())) for k, g in wanted['grads'].items() if g.numel()}
    return {
        'logits_abs': worst(got['logits'], wanted['logits']),
        'loss_abs': worst(got['loss'], wanted['loss']),
        'grad_abs': max(error for error, _ in grads.values()),
        'grad_tensor_rel': max(error / scale for error, scale in grads.values() if scale > 1e-5),
        'grad_norm_rel': abs(got['grad_norm'] / wanted['grad_norm'] - 1),
        'losses_adamw_abs': worst(got['losses_adamw'], wanted['losses_adamw']),
        'final_abs': max(worst(got['final'][k], wanted['final'][k]) for k in finals),
        'packed_logits_abs': worst(got['packed.logits'], wanted['packed.logits']),
    }


def old_spelling(config):
    """config.json as Transformers 4 writes it."""
    old = copy.deepcopy(config)
    old['torch_dtype'] = old.pop('dtype')
    old['transformers_version'] = '4.51.0'
    rope = old.pop('rope_parameters', None)
    if rope is not None:
        old['rope_theta'] = rope.pop('rope_theta')
        if 'partial_rotary_factor' in rope:
            old['partial_rotary_factor'] = rope.pop('partial_rotary_factor')
        old['rope_scaling'] = None if rope['rope_type'] == 'default' else rope
    return old


def make(name, folder):
    config = configs.make(name)
    attention = configs.MODELS[name].get('attention', 'eager')
    vocab = config.vocab_size
    for draw in range(1, 200):
        torch.manual_seed(draw)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention,
                                                              experts_implementation='eager').float().eval()
        draw_weights(model, draw, configs.MODELS[name].get('norm_offset', 0))
        batch = batch_of(vocab, 1000 + draw)
        narrow, wide = copy.deepcopy(model), copy.deepcopy(model).double()
        with Float64():
            wanted = compute(wide, batch, Routers(wide))
        if wanted['margin'] > MARGIN and wanted['update_margin'] > MARGIN_IN_UPDATES:
            break
    else:
        raise RuntimeError(f'{name}: no draw without near-ties')

    weights = as_file(model)
    constants = [k for k in weights if torch.equal(wanted['grads'][k], weights[k]) and
                 torch.equal(wanted['final'][k], weights[k])]
    finals = configs.three_of([k for k in weights if k not in constants])
    errors = errors_of(compute(narrow, batch, Routers(narrow)), wanted, finals)
    tensors = dict(zip(('input_ids', 'labels', 'packed.input_ids', 'packed.labels', 'packed.position_ids'), batch))
    tensors |= {k: wanted[k].float() for k in ('logits', 'loss', 'losses_adamw', 'packed.logits', 'packed.loss')}
    tensors |= {f'grad.{k}': v.float() for k, v in wanted['grads'].items() if k not in constants}
    tensors |= {f'final.{k}': wanted['final'][k].float() for k in finals}
    for layer, (logits, chosen) in wanted['routers'].items():
        tensors |= {f'router_logits.{layer}': logits.float(), f'router_experts.{layer}': chosen}

    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    (folder / 'generation_config.json').unlink(missing_ok=True)
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / 'golden.safetensors')
    written = json.loads((folder / 'config.json').read_text())
    if attention != 'eager':
        written['attn_implementation'] = attention
        (folder / 'config.json').write_text(json.dumps(written, indent=2) + '\n')
    old = configs.old_fields(name, old_spelling(written))
    (folder / 'config_v4.json').write_text(json.dumps(old, indent=1) + '\n')
    tiny = [k for k, g in wanted['grads'].items() if k not in constants and g.numel() and float(g.abs().max()) < 1e-12]
    golden = {
        'name': name, 'architecture': type(model).__name__, 'model_type': config.model_type,
        'note': configs.MODELS[name]['note'], 'transformers': transformers.__version__,
        'torch': torch.__version__.split('+')[0], 'computed_in': 'float64', 'attention': attention, 'draw': draw,
        'batch': BATCH, 'sequence': SEQUENCE, 'vocab': vocab, 'valid_labels': int((batch[1] >= 0).sum()),
        'parameters': sum(p.numel() for p in model.parameters()), 'loss': float(wanted['loss']),
        'logits_std': float(wanted['logits'].std()), 'grad_norm': wanted['grad_norm'],
        'losses_adamw': wanted['losses_adamw'].tolist(), 'final_parameters': finals,
        'tensors_without_gradient': constants, 'parameters_outside_autograd': wanted['without_gradient'],
        'parameters_with_gradient_near_zero': tiny, 'routed_layers': sorted(wanted['routers']),
        'smallest_routing_margin': wanted['margin'] if wanted['routers'] else None,
        'float32_error_measured': errors,
        'tolerance_float32': {k: max(FLOORS[k], float(f'{10 * e:.0e}')) for k, e in errors.items()},
        'packed': {'document_lengths': list(DOCUMENTS), 'loss': float(wanted['packed.loss']),
                   'grad_norm': wanted['packed.grad_norm']},
    }
    (folder / 'golden.json').write_text(json.dumps(golden, indent=1) + '\n')
    print(f"{name}: {golden['parameters']} parameters, loss {golden['loss']:.4f}, logits std "
          f"{golden['logits_std']:.2f}, errors {max(errors.values()):.1e}, draw {draw}")


def main():
    out = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or configs.MODELS:
        make(name, out / name)


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
"""Writes what Transformers makes of rotary settings, in every spelling of config.json, to one file.

    make_ropes.py OUT.json

For each config: cos and sin of the last of `length` positions, per kind of layer, one number for
each pair of dims. Where Transformers does not read a field, neither does the table that it gives.
"""
import json
import sys

import torch
import transformers

LENGTH = 24
SIZES = dict(vocab_size=16, hidden_size=40, intermediate_size=8, num_hidden_layers=6, num_attention_heads=4,
             num_key_value_heads=2, head_dim=10, max_position_embeddings=64, pad_token_id=0)
LINEAR = dict(rope_type='linear', factor=3.0)
YARN = dict(rope_type='yarn', factor=8.0, original_max_position_embeddings=16, attention_factor=1.2079)
LLAMA3 = dict(rope_type='llama3', factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0)
LONG = dict(short_factor=[1.0, 1.1, 1.3, 1.6, 2.0], long_factor=[1.5, 2.5, 4.0, 6.0, 9.0])

# What the classes of these have in common: one object of settings, at the top or in one of two places.
PLAIN = [
    {},
    dict(rope_theta=700.0),
    dict(rope_theta=700.0, rope_scaling=None),
    dict(rope_theta=700.0, rope_scaling={}),
    dict(rope_theta=700.0, rope_parameters={}),
    dict(rope_theta=700.0, rope_parameters=None),
    dict(rope_theta=700.0, rope_scaling=dict(rope_type='default')),
    dict(rope_theta=700.0, rope_scaling=LINEAR),
    dict(rope_theta=700.0, rope_scaling=dict(type='linear', factor=3.0)),
    dict(rope_theta=700.0, rope_scaling=dict(type='dynamic', factor=3.0), max_position_embeddings=16),
    dict(rope_theta=700.0, rope_scaling=YARN),
    dict(rope_theta=700.0, rope_scaling=dict(YARN, truncate=False)),
    dict(rope_theta=700.0, rope_scaling=dict(LLAMA3, original_max_position_embeddings=32)),
    dict(rope_parameters=dict(rope_type='default')),
    dict(rope_parameters=dict(rope_type='default', rope_theta=700.0)),
    dict(rope_parameters=dict(YARN, rope_theta=700.0)),
    dict(rope_theta=700.0, rope_parameters=LINEAR),
    dict(original_max_position_embeddings=20, rope_parameters=dict(YARN, rope_theta=700.0)),
]
# Those whose layers with a window have an object of their own.
FULL, SLIDING = 'full_attention', 'sliding_attention'
LAYERED = [
    {},
    dict(rope_theta=700.0),
    dict(rope_theta=700.0, rope_scaling=None),
    dict(rope_theta=700.0, rope_scaling={}),
    dict(rope_theta=700.0, rope_scaling=LINEAR),
    dict(rope_theta=700.0, rope_scaling=YARN),
    dict(rope_scaling=YARN),
    dict(rope_parameters={FULL: dict(rope_type='default', rope_theta=700.0)}),
    dict(rope_parameters={SLIDING: dict(rope_type='default', rope_theta=700.0)}),
    dict(rope_theta=700.0, rope_parameters={FULL: LINEAR}),
    dict(rope_theta=700.0, rope_parameters={SLIDING: LINEAR}),
    dict(rope_theta=700.0, rope_parameters={FULL: dict(YARN, rope_theta=300.0), SLIDING: dict(LINEAR, rope_theta=90.0)}),
    dict(rope_parameters=dict(rope_type='default', rope_theta=700.0)),
    dict(rope_theta=900.0, rope_parameters=dict(LINEAR, rope_theta=700.0)),
    dict(rope_parameters={FULL: LINEAR, 'rope_theta': 77.0, 'factor': 5.0}),
]
LONG_ROPE = [
    dict(rope_parameters=dict(LONG, rope_type='longrope', original_max_position_embeddings=12)),
    dict(original_max_position_embeddings=12, rope_parameters=dict(LONG, rope_type='longrope')),
    dict(original_max_position_embeddings=12,
         rope_parameters=dict(LONG, rope_type='longrope', original_max_position_embeddings=30)),
    dict(rope_scaling=dict(LONG, type='longrope', original_max_position_embeddings=12)),
    dict(rope_scaling=dict(LONG, type='su', original_max_position_embeddings=12)),
    dict(original_max_position_embeddings=12, rope_scaling=dict(LONG, type='yarn')),
    dict(original_max_position_embeddings=32, rope_scaling=dict(LONG, type='longrope')),
    dict(original_max_position_embeddings=12, rope_scaling=dict(LONG, type='longrope', factor=3.0)),
]
FAMILIES = {
    'llama': PLAIN, 'apertus': PLAIN, 'cwm': PLAIN, 'gpt_oss': PLAIN, 'smollm3': PLAIN, 'exaone4': PLAIN,
    'olmo3': LAYERED, 'gemma3_text': LAYERED + [dict(c, rope_local_base_freq=50.0) for c in LAYERED],
    'phi3': [c for c in PLAIN if 'rope_scaling' not in c and 'original' not in ''.join(c)
             and c.get('rope_parameters', {}) is not None and 'factor' not in c.get('rope_parameters', {})] + LONG_ROPE,
}


def last_row(rotary, kind, layered):
    x, places = torch.zeros(1, LENGTH, 40), torch.arange(LENGTH)[None]
    cos, sin = rotary(x, places, kind) if layered else rotary(x, places)
    return {name: [round(float(v), 8) for v in table[0, -1, :5]] for name, table in (('cos', cos), ('sin', sin))}


def main():
    lines = []
    for model_type, cases in FAMILIES.items():
        for case in cases:
            config = {'model_type': model_type, **SIZES, **case}
            fields = json.loads(json.dumps({k: v for k, v in config.items() if k != 'model_type'}))
            made = transformers.AutoConfig.for_model(model_type, **fields)
            rotary = transformers.AutoModel.from_config(made, attn_implementation='eager').rotary_emb
            layered = model_type in ('olmo3', 'gemma3_text')
            rows = {kind: last_row(rotary, kind, layered) for kind in ((FULL, SLIDING) if layered else (FULL,))}
            lines.append(json.dumps({'config': config, 'length': LENGTH, 'rows': rows}))
    with open(sys.argv[1], 'w') as out:
        out.write('[\n' + ',\n'.join(lines) + '\n]\n')


if __name__ == '__main__':
    main()

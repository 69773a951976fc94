#!/usr/bin/env python3
"""Writes the greedy text of golden model folders, as Transformers' generate() makes it, to one file.

    make_greedy.py OUT.json MODELS_DIR...

For each folder with a config.json: a prompt from its golden batch and the ids that follow. A prompt
is taken where no choice is near a tie, so that float32 must choose the same ids.
"""
import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import load_file

PROMPT_LENGTHS, NEW_TOKENS, MARGIN = (5, 4, 6, 3), 14, 2e-3


def greedy(model, prompt, count):
    """The new ids and the smallest distance of a chosen logit from the second best."""
    model.generation_config.eos_token_id = None
    out = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                         do_sample=False, max_new_tokens=count, output_logits=True, return_dict_in_generate=True,
                         pad_token_id=0)
    best = torch.stack([logits[0].topk(2).values for logits in out.logits])
    return out.sequences[0, len(prompt):].tolist(), float((best[:, 0] - best[:, 1]).min())


def positions_of(config):
    limits = [getattr(config, name, None) for name in ('max_position_embeddings', 'n_positions', 'max_seq_len')]
    return min([limit for limit in limits if limit] or [1 << 30])


def main():
    texts = {}
    for root in sys.argv[2:]:
        for folder in sorted(path.parent for path in pathlib.Path(root).glob('*/config.json')):
            attention = json.loads((folder / 'config.json').read_text()).get('attn_implementation', 'eager')
            model = transformers.AutoModelForCausalLM.from_pretrained(
                folder, dtype=torch.float32, attn_implementation=attention, experts_implementation='eager').eval()
            rows = load_file(folder / 'golden.safetensors')['input_ids'].tolist()
            depends_on_length = (getattr(model.config, 'rope_parameters', None) or {}).get('rope_type') in (
                'dynamic', 'longrope')
            limit = 1 << 30 if depends_on_length else positions_of(model.config)
            for row, length in ((row, length) for length in PROMPT_LENGTHS for row in rows):
                count = min(NEW_TOKENS, limit - length)
                ids, margin = greedy(model, row[:length], count)
                if margin > MARGIN:
                    break
            else:
                raise RuntimeError(f'{folder.name}: every prompt meets a near-tie')
            texts[folder.name] = {'prompt': row[:length], 'greedy': ids}
            print(f'{folder.name}: {ids} margin {margin:.1e}')
    lines = [f' {json.dumps(name)}: {json.dumps(text)}' for name, text in texts.items()]
    pathlib.Path(sys.argv[1]).write_text('{\n' + ',\n'.join(lines) + '\n}\n')


if __name__ == '__main__':
    main()

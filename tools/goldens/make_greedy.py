#!/usr/bin/env python3
"""Writes the greedy texts of golden model folders, as Transformers' generate() makes them, to one file.

    make_greedy.py OUT.json MODELS_DIR...

For each folder with a config.json two texts: after a prompt of a few tokens, and after one of 150, which Rhea reads in several
pieces. A small random model mostly repeats itself and has few positions, so the model is changed first, here and in the test alike
(tests/golden/generate_test.cpp): the tensors of its layers are multiplied by `scale` and those of its embedding divided by it, a
power of two, so that the numbers are exact; it gets 192 positions, of which a learned table is repeated. The smallest scale is taken
at which both texts have five different tokens, and prompts where no choice is near a tie, so that float32 must choose the same ids.
`seed` makes the prompt: see prompt_of.
"""
import json
import pathlib
import re
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

LENGTHS, NEW_TOKENS, DISTINCT, POSITIONS = (5, 150), 14, 5, 192
MARGIN = 1e-3  # of the largest logit
SCALES, SEEDS = (1, 2, 4, 8), range(10)
POSITION_FIELDS = ('max_position_embeddings', 'n_positions', 'max_seq_len')
LAYER = re.compile(r'\.(layers|h|blocks)\.\d+\.')
EMBEDDING = re.compile(r'(embed_tokens|wte|word_embeddings|embed_in)\.weight$')
POSITION_TABLE = re.compile(r'(wpe|embed_positions)\.weight$')
# Their tables follow the length of the text, measured by the positions of the file.
LENGTH_ROPES = ('dynamic', 'longrope')


def prompt_of(length, seed, vocab_size):
    return [(7 * i * i + (5 + seed) * i + 3 * seed + 1) % vocab_size for i in range(length)]


def write_variant(folder, out, scale):
    """The model of `folder` with layers scaled and more positions; what changed decides nothing else."""
    config = json.loads((folder / 'config.json').read_text())
    more = 0
    if (config.get('rope_parameters') or {}).get('rope_type') not in LENGTH_ROPES:
        for field in POSITION_FIELDS:
            if field in config and config[field] < POSITIONS:
                more = POSITIONS - config[field]
                config[field] = POSITIONS
    tensors = load_file(folder / 'model.safetensors')
    for name, tensor in tensors.items():
        if LAYER.search(name):
            tensors[name] = tensor * scale
        elif EMBEDDING.search(name):
            tensors[name] = tensor / scale
        elif POSITION_TABLE.search(name):
            tensors[name] = tensor[torch.arange(len(tensor) + more) % len(tensor)]
    (out / 'config.json').write_text(json.dumps(config))
    save_file(tensors, out / 'model.safetensors', metadata={'format': 'pt'})


def load(folder, scale):
    attention = json.loads((folder / 'config.json').read_text()).get('attn_implementation', 'eager')
    with tempfile.TemporaryDirectory() as out:
        write_variant(folder, pathlib.Path(out), scale)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            out, dtype=torch.float32, attn_implementation=attention, experts_implementation='eager')
    model.generation_config.eos_token_id = None
    return model.eval()


def greedy(model, prompt):
    """The new ids and the smallest distance of a chosen logit from the second best, as a share of the largest one."""
    out = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                         do_sample=False, max_new_tokens=NEW_TOKENS, output_logits=True, return_dict_in_generate=True,
                         pad_token_id=0)
    logits = torch.cat(out.logits)
    best = logits.topk(2).values
    return out.sequences[0, len(prompt):].tolist(), float(((best[:, 0] - best[:, 1]) / logits.abs().amax(1)).min())


def texts_of(model):
    """One text of each length, none where a length has no varied one without a near-tie."""
    texts = []
    for length in LENGTHS:
        for seed in SEEDS:
            ids, margin = greedy(model, prompt_of(length, seed, model.config.vocab_size))
            if margin > MARGIN and len(set(ids)) >= DISTINCT:
                texts.append({'length': length, 'seed': seed, 'greedy': ids})
                break
        else:
            return None
    return texts


def main():
    transformers.logging.set_verbosity_error()
    models = {}
    for root in sys.argv[2:]:
        for folder in sorted(path.parent for path in pathlib.Path(root).glob('*/config.json')):
            for scale in SCALES:
                texts = texts_of(load(folder, scale))
                if texts:
                    break
            else:
                raise RuntimeError(f'{folder.name}: every text repeats itself or meets a near-tie')
            models[folder.name] = {'scale': scale, 'texts': texts}
            print(f'{folder.name}: scale {scale}, {texts}', flush=True)
    lines = [f' {json.dumps(name)}: {json.dumps(model)}' for name, model in models.items()]
    pathlib.Path(sys.argv[1]).write_text('{\n' + ',\n'.join(lines) + '\n}\n')


if __name__ == '__main__':
    main()

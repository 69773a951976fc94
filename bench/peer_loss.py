"""Loss and gradient norm of the peer's model on given weights and tokens; prints them as a JSON list.

    peer_loss.py PEER WEIGHTS_FOLDER TOKENS [options of the peer]

Runs the peer's script up to the point where it makes its optimizer, then puts the weights of a Hugging Face folder in.
"""
import json, os, struct, sys

import torch

PEER, FOLDER, TOKENS = sys.argv[1:4]
DTYPES = {'F32': torch.float32, 'BF16': torch.bfloat16, 'I32': torch.int32}


def read(path):
    data = open(path, 'rb').read()
    size = struct.unpack('<Q', data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != '__metadata__':
            begin, end = (8 + size + x for x in entry['data_offsets'])
            tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=DTYPES[entry['dtype']]).view(entry['shape'])
    return tensors


def own_names(weights, layers):
    """The merged projections of the peer's own model."""
    named = {'embed.weight': weights['model.embed_tokens.weight'], 'norm.weight': weights['model.norm.weight'],
             'head.weight': weights.get('lm_head.weight', weights['model.embed_tokens.weight'])}
    for i in range(layers):
        def hf(name): return weights[f'model.layers.{i}.{name}.weight']
        parts = {'norm1': hf('input_layernorm'), 'norm2': hf('post_attention_layernorm'), 'o': hf('self_attn.o_proj'),
                 'down': hf('mlp.down_proj'), 'gate_up': torch.cat([hf('mlp.gate_proj'), hf('mlp.up_proj')]),
                 'qkv': torch.cat([hf(f'self_attn.{x}_proj') for x in 'qkv'])}
        if f'model.layers.{i}.self_attn.q_norm.weight' in weights:
            parts.update(qn=hf('self_attn.q_norm'), kn=hf('self_attn.k_norm'))
        named.update({f'layers.{i}.{name}.weight': value for name, value in parts.items()})
    return named


class OptimizerReached(Exception):
    pass


def stop(*_, **__):
    raise OptimizerReached


sys.argv = [PEER] + sys.argv[4:]
scope = {'__name__': '__main__', '__file__': PEER, '__doc__': ''}
torch.optim.AdamW = stop
try:
    exec(compile(open(PEER).read(), PEER, 'exec'), scope)
    sys.exit(f'{PEER} made no torch.optim.AdamW')
except OptimizerReached:
    pass
weights = {}
for name in sorted(os.listdir(FOLDER)):
    if name.endswith('.safetensors'):
        weights.update(read(os.path.join(FOLDER, name)))
args, model = scope['A'], scope['model']
if args.impl == 'own':
    missing, unexpected = model.load_state_dict(own_names(weights, scope['L']), strict=False)
    missing = [x for x in missing if x not in ('cos', 'sin')]
else:
    missing, unexpected = model.load_state_dict(weights, strict=False)
    missing = [x for x in missing if not (scope['TIED'] and x == 'lm_head.weight')]
if missing or unexpected:
    sys.exit(f'weights of {FOLDER}: missing {missing}, unexpected {unexpected}')
tokens = read(TOKENS)
ids, labels = (tokens[name].view(-1, args.seq).long() for name in ('input', 'labels'))
with torch.autocast('cpu', dtype=torch.bfloat16, enabled=args.dtype == 'bf16'):
    loss = scope['loss_of'](ids, labels)
loss.backward()
norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9)
print(json.dumps([loss.item(), norm.item()]))

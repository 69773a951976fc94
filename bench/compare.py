#!/usr/bin/env python3
"""Whole training steps of Rhea and of a PyTorch peer, interleaved in one run.

    python3 bench/compare.py --rhea build/release/rhea/cli/rhea --peer ../shared/bench/torch_step.py --python venv/bin/python3

Model A: 12 layers, D 768, 12 heads of 64, QK-norm, SwiGLU 2048, V 32000 untied; random tokens. Prints, for each round and as
medians, tokens/s of both sides, their ratio, the share of the roofline (the machine's matrix peak measured by Rhea in the same
run over 6 N + 6 L N_heads H T flop per token), peak resident memory and time to the first step.
"""
import argparse, json, os, re, statistics, struct, subprocess, sys, tempfile, time

P = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
P.add_argument('--rhea', required=True, help='the built program')
P.add_argument('--peer', required=True, help='the PyTorch step script')
P.add_argument('--python', default=sys.executable, help='interpreter with torch for the peer')
P.add_argument('--dtype', default='bf16', choices=['f32', 'bf16'])
P.add_argument('--rounds', type=int, default=5)
P.add_argument('--batch', type=int, default=4)
P.add_argument('--seq', type=int, default=512)
P.add_argument('--steps', type=int, default=8)
P.add_argument('--peer-mode', default='best', choices=['best', 'shipped'])
A = P.parse_args()

CONFIG = dict(architectures=['Qwen3ForCausalLM'], model_type='qwen3', hidden_size=768, num_hidden_layers=12,
              num_attention_heads=12, num_key_value_heads=12, head_dim=64, intermediate_size=2048, vocab_size=32000,
              tie_word_embeddings=False, rms_norm_eps=1e-6, rope_theta=1e4, max_position_embeddings=32768, hidden_act='silu')


def roofline_flops():
    c = CONFIG
    d, h = c['hidden_size'], c['num_attention_heads'] * c['head_dim']
    layer = d * 3 * h + h * d + 3 * d * c['intermediate_size']
    n = c['num_hidden_layers'] * layer + c['vocab_size'] * d
    return 6 * n + 6 * c['num_hidden_layers'] * h * A.seq


def write_tokens(path):
    import random
    rng = random.Random(0)
    shape = [A.steps, A.batch, A.seq]
    count = A.steps * A.batch * A.seq
    data = struct.pack(f'<{count}i', *[rng.randrange(CONFIG['vocab_size']) for _ in range(count)])
    header = json.dumps({'input': {'dtype': 'I32', 'shape': shape, 'data_offsets': [0, len(data)]}}).encode()
    header += b' ' * (-len(header) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(header)) + header + data)


def run_rhea(folder):
    out = os.path.join(folder, 'out')
    subprocess.run(['rm', '-rf', out])
    dtype = 'float32' if A.dtype == 'f32' else 'bfloat16'
    start = time.time()
    done = subprocess.run(
        [A.rhea, 'train', '--module', 'qwen3', '--config', 'qwen3_from_config', '--hf_assets_path', folder,
         '--dataloader.dataset', 'tokens', '--dataloader.dataset_path', os.path.join(folder, 'tokens.safetensors'),
         '--training.seq_len', str(A.seq), '--training.local_batch_size', str(A.batch), '--training.steps', str(A.steps),
         '--training.mixed_precision_param', dtype, '--activation_checkpoint.mode', 'none', '--dump_folder', out,
         '--debug.seed', '0', '--debug.no_enable_structured_logging'],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout)
    rows = [json.loads(line) for line in open(os.path.join(out, 'metrics', 'rank_0.jsonl'))]
    speeds = [r['throughput(tps)'] for r in rows[2:]]
    peak = float(re.search(r'Peak FLOPS used for computing MFU: (\S+)', done.stdout).group(1))
    return dict(tps=statistics.median(speeds), best=max(speeds), peak=peak, first=rows[0]['time'] - start,
                memory=rows[-1]['memory/max_reserved(GiB)'], loss=rows[0]['loss_metrics/global_avg_loss'])


def run_peer():
    words = [A.python, A.peer, '--model', 'a', '--dtype', A.dtype, '--batch', str(A.batch), '--seq', str(A.seq), '--steps', '5']
    if A.peer_mode == 'best':
        words += ['--mode', 'compile', '--loss', 'chunked']
    else:
        words += ['--impl', 'hf', '--mode', 'eager', '--malloc', 'default', '--mkl', 'asis']
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


with tempfile.TemporaryDirectory() as folder:
    json.dump(CONFIG, open(os.path.join(folder, 'config.json'), 'w'))
    write_tokens(os.path.join(folder, 'tokens.safetensors'))
    ours, theirs = [], []
    for i in range(A.rounds):
        ours.append(run_rhea(folder))
        theirs.append(run_peer())
        r, p = ours[-1], theirs[-1]
        print(f'round {i}: rhea {r["tps"]:.0f} tokens/s (best {r["best"]:.0f}), loss {r["loss"]:.4f}, {r["memory"]:.2f} GiB, '
              f'first step after {r["first"]:.2f} s; peer {json.dumps(p)}', flush=True)
    median = lambda rows, key: statistics.median(r[key] for r in rows)
    limit = median(ours, 'peak') / roofline_flops()
    print(f'roofline {limit:.0f} tokens/s; rhea {median(ours, "tps"):.0f} ({100 * median(ours, "tps") / limit:.1f} %), '
          f'{median(ours, "memory"):.2f} GiB')
    for key in theirs[0]:
        if isinstance(theirs[0][key], (int, float)):
            print(f'peer {key}: median {median(theirs, key)}')

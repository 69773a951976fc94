#!/usr/bin/env python3
"""Makes tests/data/gguf with the PyPI packages gguf, numpy and safetensors. usage: tools/make_gguf_goldens.py [OUT]

blocks.safetensors: for each type <T>.blocks [n, bytes] and <T>.values [n, elements], as the package dequantizes them.
<arch>.gguf and <arch>.safetensors: a tiny model as llama.cpp's converter writes it, and the published weights that reading it
must give back (dequantized where the file is quantized).
tekken.gguf and tekken.json: a vocabulary that would join any of the texts whole, so that ids show where Tekken's published expression
cuts them; the ids of tiktoken with it. Needs the packages mistral-common, tiktoken and tokenizers too.
"""
import json
import sys
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T
from safetensors.numpy import save_file

OUT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "tests/data/gguf")
rng = np.random.default_rng(7)

# Byte offsets of the halves that scale a block.
HALVES = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.Q2_K: [80, 82], T.Q3_K: [108],
          T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208]}


def blocks():
    out = {}
    for kind in [T.F32, T.F16, T.BF16, *HALVES]:
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        if kind in HALVES:
            raw = rng.integers(0, 256, (6, size), dtype=np.uint8)
            for offset in HALVES[kind]:
                scale = np.array([1.5, -0.03125, 6e-8, 0.0, 1000.0, -2.7e-5], np.float16)  # 6e-8 is subnormal
                raw[:, offset:offset + 2] = scale.view(np.uint8).reshape(6, 2)
        else:
            values = rng.normal(size=(6, 1)).astype(np.float32)
            raw = gguf.quants.quantize(values, kind).view(np.uint8).reshape(6, size)
        out[f"{kind.name}.blocks"] = raw
        out[f"{kind.name}.values"] = gguf.quants.dequantize(raw, kind).astype(np.float32).reshape(6, elements)
    save_file(out, OUT / "blocks.safetensors")


def interleave(weight, heads):
    """Row order of q and k in a converted llama: the two halves of a head become pairs."""
    rows = weight.shape[0] // heads
    return weight.reshape(heads, 2, rows // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


class Model:
    """Collects published weights and their GGUF form."""

    def __init__(self, name, arch, vocab=260):
        self.name, self.published = name, {}
        self.writer = gguf.GGUFWriter(OUT / f"{name}.gguf", arch)
        self.vocab = vocab

    def add(self, gguf_name, hf_name, shape, kind=T.F32, change=lambda w: w, undo=lambda w: w):
        weight = (rng.normal(size=shape) * 0.1 + 0.01).astype(np.float32)
        stored = gguf.quants.quantize(np.ascontiguousarray(change(weight)), kind)
        self.writer.add_tensor(gguf_name, stored, raw_dtype=kind)
        back = gguf.quants.dequantize(stored, kind).astype(np.float32).reshape(change(weight).shape)
        if isinstance(hf_name, list):
            for name, part in zip(hf_name, undo(back)):
                self.published[name] = np.ascontiguousarray(part)
        else:
            self.published[hf_name] = np.ascontiguousarray(undo(back))

    def finish(self):
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()
        save_file(self.published, OUT / f"{self.name}.safetensors")

    def sizes(self, hidden, layers, heads, kv_heads, feed_forward, head_dim=None):
        w = self.writer
        w.add_context_length(64), w.add_embedding_length(hidden), w.add_block_count(layers)
        w.add_feed_forward_length(feed_forward), w.add_head_count(heads), w.add_head_count_kv(kv_heads)
        w.add_layer_norm_rms_eps(1e-5), w.add_rope_freq_base(500000.0)
        if head_dim:
            w.add_key_length(head_dim), w.add_value_length(head_dim)

    def byte_level_tokenizer(self, pre):
        alphabet = byte_alphabet()
        tokens = alphabet + [alphabet[97] + alphabet[98], alphabet[32] + alphabet[97]]
        tokens += ["<|end|>", "<tool>"]
        assert len(tokens) == self.vocab
        w = self.writer
        w.add_tokenizer_model("gpt2"), w.add_tokenizer_pre(pre), w.add_token_list(tokens)
        w.add_token_types([1] * 258 + [3, 4])
        w.add_token_merges([f"{alphabet[97]} {alphabet[98]}", f"{alphabet[32]} {alphabet[97]}"])
        w.add_bos_token_id(258), w.add_eos_token_id(258)

    def sentencepiece_tokenizer(self):
        tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
        scores, kinds = [0.0] * len(tokens), [2, 3, 3] + [6] * 256
        for i, piece in enumerate(["\u2581", "a", "b", "ab", "\u2581ab", "\u00e9"]):
            tokens.append(piece), scores.append(-float(i)), kinds.append(1)
        assert len(tokens) == self.vocab
        w = self.writer
        w.add_tokenizer_model("llama"), w.add_token_list(tokens), w.add_token_scores(scores), w.add_token_types(kinds)
        w.add_bos_token_id(1), w.add_eos_token_id(2), w.add_unk_token_id(0)
        w.add_add_bos_token(True)


def byte_alphabet():
    """GPT-2's spelling of the 256 bytes, by byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelling, other = {b: chr(b) for b in plain}, 0
    for byte in range(256):
        if byte not in spelling:
            spelling[byte], other = chr(256 + other), other + 1
    return [spelling[b] for b in range(256)]


def attention(m, i, hidden, heads, kv_heads, head_dim, kind, permuted=False, bias=False, qk_norm=False, norm=None):
    norm = norm or {}
    for part, n in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
        turn = {"change": lambda w, n=n: interleave(w, n),
                "undo": lambda w, n=n: w.reshape(n, head_dim // 2, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)}
        turn = turn if permuted and part != "v" else {}
        base = f"model.layers.{i}.self_attn.{part}_proj"
        m.add(f"blk.{i}.attn_{part}.weight", f"{base}.weight", (n * head_dim, hidden), kind, **turn)
        if bias:
            m.add(f"blk.{i}.attn_{part}.bias", f"{base}.bias", (n * head_dim,), **turn)
    m.add(f"blk.{i}.attn_output.weight", f"model.layers.{i}.self_attn.o_proj.weight", (hidden, heads * head_dim), kind)
    if qk_norm:
        for part in "qk":
            m.add(f"blk.{i}.attn_{part}_norm.weight", f"model.layers.{i}.self_attn.{part}_norm.weight", (head_dim,), **norm)


def mlp(m, i, hidden, width, kind):
    for part, shape in (("gate", (width, hidden)), ("up", (width, hidden)), ("down", (hidden, width))):
        m.add(f"blk.{i}.ffn_{part}.weight", f"model.layers.{i}.mlp.{part}_proj.weight", shape, kind)


def llama():
    m = Model("llama", "llama")
    m.sizes(32, 2, 2, 1, 64)
    m.writer.add_rope_dimension_count(16), m.writer.add_vocab_size(260)
    m.byte_level_tokenizer("llama-bpe")
    m.writer.add_chat_template("{% for m in messages %}{{ m.content }}{% endfor %}")
    m.add("token_embd.weight", "model.embed_tokens.weight", (260, 32), T.Q8_0)
    m.add("output_norm.weight", "model.norm.weight", (32,))
    m.add("output.weight", "lm_head.weight", (260, 32), T.F16)
    original, base = 8192.0, 500000.0
    wavelength = 2 * np.pi * base ** (np.arange(0, 16, 2) / 16)
    smooth = np.clip((original / wavelength - 1) / 3, 0, 1)
    m.writer.add_tensor("rope_freqs.weight", (1 / ((1 - smooth) / 32 + smooth)).astype(np.float32))
    for i, kind in enumerate([T.Q4_0, T.Q5_1]):
        m.add(f"blk.{i}.attn_norm.weight", f"model.layers.{i}.input_layernorm.weight", (32,))
        m.add(f"blk.{i}.ffn_norm.weight", f"model.layers.{i}.post_attention_layernorm.weight", (32,))
        attention(m, i, 32, 2, 1, 16, kind, permuted=True)
        mlp(m, i, 32, 64, kind)
    m.finish()


def llama_spm():
    m = Model("llama_spm", "llama", vocab=265)
    m.sizes(32, 1, 2, 2, 32)
    m.sentencepiece_tokenizer()
    m.add("token_embd.weight", "model.embed_tokens.weight", (265, 32), T.F16)
    m.add("output_norm.weight", "model.norm.weight", (32,))
    m.add("blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight", (32,))
    m.add("blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight", (32,))
    attention(m, 0, 32, 2, 2, 16, T.F16, permuted=True)
    mlp(m, 0, 32, 32, T.F16)
    m.finish()


def qwen2():
    m = Model("qwen2", "qwen2")
    m.sizes(32, 1, 2, 1, 64)
    m.byte_level_tokenizer("qwen2")
    m.add("token_embd.weight", "model.embed_tokens.weight", (260, 32), T.BF16)
    m.add("output_norm.weight", "model.norm.weight", (32,))
    m.add("blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight", (32,))
    m.add("blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight", (32,))
    attention(m, 0, 32, 2, 1, 16, T.Q4_1, bias=True)
    mlp(m, 0, 32, 64, T.Q5_0)
    m.finish()


def qwen3moe():
    m = Model("qwen3moe", "qwen3moe")
    m.sizes(32, 1, 2, 1, 64, head_dim=32)
    w = m.writer
    w.add_expert_count(3), w.add_expert_used_count(2), w.add_expert_feed_forward_length(32)
    m.byte_level_tokenizer("qwen2")
    m.add("token_embd.weight", "model.embed_tokens.weight", (260, 32), T.BF16)
    m.add("output.weight", "lm_head.weight", (260, 32), T.BF16)
    m.add("output_norm.weight", "model.norm.weight", (32,))
    m.add("blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight", (32,))
    m.add("blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight", (32,))
    attention(m, 0, 32, 2, 1, 32, T.Q8_0, qk_norm=True)
    m.add("blk.0.ffn_gate_inp.weight", "model.layers.0.mlp.gate.weight", (3, 32))
    for part, shape in (("gate", (3, 32, 32)), ("up", (3, 32, 32)), ("down", (3, 32, 32))):
        m.add(f"blk.0.ffn_{part}_exps.weight", [f"model.layers.0.mlp.experts.{e}.{part}_proj.weight" for e in range(3)],
              shape, T.Q8_0, undo=list)
    m.finish()


def gemma2():
    m = Model("gemma2", "gemma2")
    m.sizes(32, 1, 2, 1, 64, head_dim=32)
    m.writer.add_sliding_window(8), m.writer.add_attn_logit_softcapping(50.0), m.writer.add_final_logit_softcapping(30.0)
    m.byte_level_tokenizer("gpt-2")
    plus = {"change": lambda w: w + np.float32(1), "undo": lambda w: w - np.float32(1)}
    m.add("token_embd.weight", "model.embed_tokens.weight", (260, 32), T.Q8_0)
    m.add("output_norm.weight", "model.norm.weight", (32,), **plus)
    for part, name in (("attn_norm", "input"), ("post_attention_norm", "post_attention"),
                       ("ffn_norm", "pre_feedforward"), ("post_ffw_norm", "post_feedforward")):
        m.add(f"blk.0.{part}.weight", f"model.layers.0.{name}_layernorm.weight", (32,), **plus)
    attention(m, 0, 32, 2, 1, 32, T.Q4_0)
    mlp(m, 0, 32, 64, T.Q4_0)
    m.finish()


PLUS_ONE = {"change": lambda w: w + np.float32(1), "undo": lambda w: w - np.float32(1)}


def outside_layers(m, hidden, **norm):
    m.add("token_embd.weight", "model.embed_tokens.weight", (m.vocab, hidden), T.F16)
    m.add("output_norm.weight", "model.norm.weight", (hidden,), **norm)


def norms(m, i, names, hidden, **norm):
    for part, name in names.items():
        m.add(f"blk.{i}.{part}.weight", f"model.layers.{i}.{name}.weight", (hidden,), **norm)


BEFORE_BRANCHES = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}


def gemma():
    m = Model("gemma", "gemma", vocab=32)
    m.sizes(32, 1, 2, 1, 64, head_dim=16)
    outside_layers(m, 32, **PLUS_ONE)
    norms(m, 0, BEFORE_BRANCHES, 32, **PLUS_ONE)
    attention(m, 0, 32, 2, 1, 16, T.F16)
    mlp(m, 0, 32, 64, T.F16)
    m.finish()


def gemma3():
    m = Model("gemma3", "gemma3", vocab=32)
    m.sizes(32, 6, 1, 1, 32, head_dim=16)
    m.writer.add_sliding_window(8)
    m.writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR), m.writer.add_rope_scaling_factor(8.0)
    outside_layers(m, 32, **PLUS_ONE)
    for i in range(6):
        norms(m, i, {"attn_norm": "input_layernorm", "post_attention_norm": "post_attention_layernorm",
                     "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}, 32, **PLUS_ONE)
        attention(m, i, 32, 1, 1, 16, T.F16, qk_norm=True, norm=PLUS_ONE)
        mlp(m, i, 32, 32, T.Q8_0)
    m.finish()


def olmo2():
    m = Model("olmo2", "olmo2", vocab=32)
    m.sizes(32, 1, 2, 2, 64)
    outside_layers(m, 32)
    m.add("output.weight", "lm_head.weight", (32, 32), T.F16)
    norms(m, 0, {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
                 "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}, 32)
    attention(m, 0, 32, 2, 2, 16, T.F16)
    mlp(m, 0, 32, 64, T.F16)
    m.finish()


def granite():
    m = Model("granite", "granite", vocab=32)
    m.sizes(32, 1, 2, 1, 64)
    w = m.writer
    w.add_attention_scale(0.015625), w.add_embedding_scale(12.0), w.add_residual_scale(0.22), w.add_logit_scale(8.0)
    outside_layers(m, 32)
    norms(m, 0, BEFORE_BRANCHES, 32)
    attention(m, 0, 32, 2, 1, 16, T.F16, permuted=True)
    mlp(m, 0, 32, 64, T.F16)
    m.finish()


def phi3(name="phi3", turned=16, long_rope=False):
    m = Model(name, "phi3", vocab=32)
    m.sizes(32, 1, 2, 1, 64)
    m.writer.add_rope_dimension_count(turned), m.writer.add_sliding_window(16)
    if long_rope:
        m.writer.add_rope_scaling_orig_ctx_len(16)
        m.writer.add_rope_scaling_attn_factors(float(np.sqrt(1 + np.log(64 / 16) / np.log(16))))
        m.writer.add_tensor("rope_factors_long.weight", np.linspace(1.5, 9, turned // 2).astype(np.float32))
        m.writer.add_tensor("rope_factors_short.weight", np.linspace(1, 2, turned // 2).astype(np.float32))
    outside_layers(m, 32)
    m.add("output.weight", "lm_head.weight", (32, 32), T.F16)
    norms(m, 0, BEFORE_BRANCHES, 32)
    for part, name, shape in (("attn_qkv", "self_attn.qkv_proj", (64, 32)), ("attn_output", "self_attn.o_proj", (32, 32)),
                              ("ffn_up", "mlp.gate_up_proj", (128, 32)), ("ffn_down", "mlp.down_proj", (32, 64))):
        m.add(f"blk.0.{part}.weight", f"model.layers.0.{name}.weight", shape, T.F16)
    m.finish()


def mixtral():
    m = Model("mixtral", "llama", vocab=32)
    m.sizes(32, 1, 2, 1, 32)
    m.writer.add_expert_count(2), m.writer.add_expert_used_count(1), m.writer.add_rope_dimension_count(16)
    outside_layers(m, 32)
    m.add("output.weight", "lm_head.weight", (32, 32), T.F16)
    norms(m, 0, BEFORE_BRANCHES, 32)
    attention(m, 0, 32, 2, 1, 16, T.F16, permuted=True)
    m.add("blk.0.ffn_gate_inp.weight", "model.layers.0.block_sparse_moe.gate.weight", (2, 32))
    for part, name in (("gate", "w1"), ("up", "w3"), ("down", "w2")):
        m.add(f"blk.0.ffn_{part}_exps.weight", [f"model.layers.0.block_sparse_moe.experts.{e}.{name}.weight" for e in range(2)],
              (2, 32, 32), T.F16, undo=list)
    m.finish()


def qwen2moe():
    m = Model("qwen2moe", "qwen2moe", vocab=32)
    m.sizes(32, 1, 2, 1, 64)
    w = m.writer
    w.add_expert_count(2), w.add_expert_used_count(1), w.add_expert_feed_forward_length(32)
    w.add_expert_shared_feed_forward_length(64)
    outside_layers(m, 32)
    m.add("output.weight", "lm_head.weight", (32, 32), T.F16)
    norms(m, 0, BEFORE_BRANCHES, 32)
    attention(m, 0, 32, 2, 1, 16, T.F16, bias=True)
    m.add("blk.0.ffn_gate_inp.weight", "model.layers.0.mlp.gate.weight", (2, 32))
    m.add("blk.0.ffn_gate_inp_shexp.weight", "model.layers.0.mlp.shared_expert_gate.weight", (32,), undo=lambda w: w[None])
    for part, shape in (("gate", (2, 32, 32)), ("up", (2, 32, 32)), ("down", (2, 32, 32))):
        m.add(f"blk.0.ffn_{part}_exps.weight", [f"model.layers.0.mlp.experts.{e}.{part}_proj.weight" for e in range(2)], shape,
              T.F16, undo=list)
    for part, shape in (("gate", (64, 32)), ("up", (64, 32)), ("down", (32, 64))):
        m.add(f"blk.0.ffn_{part}_shexp.weight", f"model.layers.0.mlp.shared_expert.{part}_proj.weight", shape, T.F16)
    m.finish()


def phi3_long():
    phi3("phi3_long", turned=12, long_rope=True)


CUT_TEXTS = ["Hello World", "HELLO world", "helloWorldFooBAR barBAZqux", "don't DON'T I'll we'VE", "12345 3.14 1,000", "a1b2c3", "x = y/z;\n\ny += 1",
             "path/to//file\n/next", "  two  spaces   \n\n\tand tab\r\n end ", "na\u00efve caf\u00e9 e\u0301te\u0301", "\u4f60\u597d\uff0c\u4e16\u754c123", "\u041f\u0440\u0438\u0432\u0435\u0442 \u041c\u0418\u0420",
             "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 \u0661\u0662\u0663", "\U0001f642\U0001f680 go!", "\u01c5amija \u02b0a \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "tail   ", "\n \n", "(a)[b]{c}<d>", "#!/bin/sh\n",
             "camelCase_snake_CASE-9\u00bd\u00b2"]


def tekken():
    import mistral_common
    import tiktoken
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    published = json.loads((Path(mistral_common.__file__).parent / "data/tekken_240718.json").read_text())["config"]["pattern"]
    whole = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer, tokenizer.decoder = whole, decoders.ByteLevel()
    alphabet = byte_alphabet()
    trainer = trainers.BpeTrainer(vocab_size=2000, min_frequency=1, initial_alphabet=alphabet, show_progress=False)
    # Parts of the texts too: what a right cut leaves must have entries as well as what a wrong one does.
    tokenizer.train_from_iterator([text[i:j] for text in CUT_TEXTS for i in range(0, len(text), 3) for j in (len(text), i + 4)], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    byte_of = {spelling: byte for byte, spelling in enumerate(alphabet)}
    ranks = {bytes(byte_of[c] for c in token): i for i, token in enumerate(tokens)}
    reference = tiktoken.Encoding("tekken", pat_str=published, mergeable_ranks=ranks, special_tokens={})
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(published), "isolated"), whole])
    cases = [{"text": text, "ids": reference.encode(text)} for text in CUT_TEXTS]
    for case in cases:
        assert case["ids"] == tokenizer.encode(case["text"]).ids, case
    (OUT / "tekken.json").write_text(json.dumps({"cases": cases}) + "\n")
    m = Model("tekken", "qwen2", vocab=len(tokens))
    m.sizes(2, 1, 1, 1, 2)
    w = m.writer
    w.add_tokenizer_model("gpt2"), w.add_tokenizer_pre("tekken"), w.add_token_list(tokens), w.add_token_types([1] * len(tokens))
    w.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]])
    w.add_tensor("token_embd.weight", np.zeros((len(tokens), 2), np.float16))
    w.write_header_to_file(), w.write_kv_data_to_file(), w.write_tensors_to_file(), w.close()


OUT.mkdir(parents=True, exist_ok=True)
blocks()
for model in (llama, llama_spm, qwen2, qwen3moe, gemma2, gemma, gemma3, olmo2, granite, phi3, mixtral, qwen2moe, phi3_long):
    model()
tekken()

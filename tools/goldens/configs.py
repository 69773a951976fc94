"""Small configs of the architectures that make_models.py makes goldens for.

Sizes differ wherever the architecture lets them, so that a swapped or transposed tensor shows.
"""
import transformers

LLAMA3 = {'rope_type': 'llama3', 'rope_theta': 10000.0, 'factor': 8.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0,
          'original_max_position_embeddings': 16}
SIZES = {'vocab_size': 71, 'hidden_size': 28, 'num_hidden_layers': 2, 'max_position_embeddings': 64,
         'bos_token_id': 1, 'eos_token_id': 2, 'pad_token_id': None, 'dtype': 'float32', 'attention_dropout': 0.0}


def gqa(**more):
    return {**SIZES, 'intermediate_size': 36, 'num_attention_heads': 4, 'num_key_value_heads': 2, **more}


def gpt(**more):
    sizes = {'vocab_size': 71, 'n_positions': 48, 'n_embd': 28, 'n_layer': 2, 'n_head': 4, 'n_inner': 36,
             'resid_pdrop': 0.0, 'embd_pdrop': 0.0, 'attn_pdrop': 0.0, 'bos_token_id': 1, 'eos_token_id': 2,
             'pad_token_id': None, 'dtype': 'float32'}
    return {**sizes, **more}


def rope(theta=10000.0, **more):
    return {'rope_type': 'default', 'rope_theta': theta, **more}


MIXTURE = {**SIZES, 'hidden_size': 32, 'intermediate_size': 36, 'num_attention_heads': 4, 'num_key_value_heads': 4,
           'moe_intermediate_size': 12, 'num_experts_per_tok': 2}
LATENT = {'kv_lora_rank': 10, 'q_lora_rank': 14, 'qk_nope_head_dim': 6, 'qk_rope_head_dim': 4, 'v_head_dim': 8}

MODELS = {
    'exaone4': {
        'class': 'Exaone4Config', 'note': 'norms on branch outputs; full layers have no rotary embedding',
        'config': gqa(num_hidden_layers=3, hidden_size=32, sliding_window=5, sliding_window_pattern=3,
                      rope_parameters=rope())},
    'exaone4_full': {
        'class': 'Exaone4Config', 'note': 'without a window every layer is full and rotated',
        'config': gqa(hidden_size=24, sliding_window=None, layer_types=['full_attention'] * 2, tie_word_embeddings=True,
                      rope_parameters=rope(500.0))},
    'apertus': {
        'class': 'ApertusConfig', 'note': 'xielu with learned alphas; beta and eps are constants in the file',
        'config': gqa(hidden_size=32, rope_parameters=LLAMA3)},
    'seed_oss': {
        'class': 'SeedOssConfig', 'note': 'biases on q, k, v and not on o',
        'config': gqa(head_dim=10, attention_bias=True, attention_out_bias=False, residual_dropout=0.0,
                      rope_parameters=rope(777.0))},
    'arcee': {
        'class': 'ArceeConfig', 'note': 'relu squared without a gate',
        'config': gqa(head_dim=6, mlp_bias=True, rope_parameters={
            'rope_type': 'yarn', 'rope_theta': 10000.0, 'factor': 4.0, 'original_max_position_embeddings': 16})},
    'helium': {
        'class': 'HeliumConfig', 'note': 'interleaved rotary pairs',
        'config': gqa(hidden_size=32, head_dim=8, rope_parameters=rope(100000.0))},
    'granitemoe': {
        'class': 'GraniteMoeConfig', 'note': 'fused experts, softmax over the chosen, four multipliers',
        'config': gqa(hidden_size=32, num_local_experts=5, num_experts_per_tok=2, intermediate_size=12, embedding_multiplier=3.0,
                      logits_scaling=0.7, residual_multiplier=0.6, attention_multiplier=0.3, router_aux_loss_coef=0.0,
                      tie_word_embeddings=True, rope_parameters=rope())},
    'nemotron': {
        'class': 'NemotronConfig', 'norm_offset': 1, 'note': 'LayerNorm with 1 + weight, relu squared, partial rotary',
        'config': gqa(hidden_size=32, rope_parameters=rope(partial_rotary_factor=0.5))},
    'codegen': {
        'class': 'CodeGenConfig', 'note': 'qkv in 4 groups, each q, v, k; head count 8 so that a group has 2 heads',
        'config': gpt(n_embd=48, n_head=8, n_ctx=48, rotary_dim=4, n_inner=36)},
    'cwm': {
        'class': 'CwmConfig', 'note': 'sliding windows in layers that are not full, llama3 rope',
        'config': gqa(num_hidden_layers=3, head_dim=10, sliding_window=4, rope_parameters=LLAMA3,
                      layer_types=['full_attention', 'sliding_attention', 'sliding_attention'])},
    'gpt_bigcode': {
        'class': 'GPTBigCodeConfig', 'note': 'one kv head, weights [out, in]',
        'config': gpt(multi_query=True)},
    'gpt_bigcode_mha': {
        'class': 'GPTBigCodeConfig', 'note': 'as many kv heads as query heads: q, k, v interleaved per head',
        'config': gpt(multi_query=False)},
    'persimmon': {
        'class': 'PersimmonConfig', 'note': 'qkv per head, LayerNorm on q and k, relu squared, partial rotary',
        'config': {**SIZES, 'intermediate_size': 36, 'hidden_size': 32, 'num_attention_heads': 4,
                   'hidden_dropout': 0.0, 'rope_parameters': rope(partial_rotary_factor=0.5)}},
    'minimax_m2': {
        'class': 'MiniMaxM2Config', 'note': 'sigmoid router with correction bias, q and k norm over the full width',
        'config': gqa(head_dim=10, num_local_experts=5, num_experts_per_tok=2, intermediate_size=12,
                      router_aux_loss_coef=0.0, rope_parameters=rope(5000.0, partial_rotary_factor=0.4))},
    'llama_pad': {
        'class': 'LlamaConfig', 'note': 'the row of pad_token_id gets no gradient', 'config': gqa(hidden_size=32, pad_token_id=7)},
    'gemma_pad': {
        'class': 'GemmaConfig', 'note': 'tied: the row of pad_token_id gets the gradient of the head only',
        'config': gqa(pad_token_id=7, head_dim=10, tie_word_embeddings=True)},
    'deepseek_v2_bias': {
        'class': 'DeepseekV2Config', 'note': 'mlp_bias: biases of dense and of shared feed-forwards, none of experts',
        'config': {**MIXTURE, **LATENT, 'mlp_bias': True, 'first_k_dense_replace': 1, 'n_routed_experts': 5,
                   'n_shared_experts': 2, 'topk_method': 'greedy', 'routed_scaling_factor': 0.8,
                   'rope_parameters': rope(500.0)}},
    'deepseek_v3_no_shared': {
        'class': 'DeepseekV3Config', 'note': 'n_shared_experts 0: matrices without elements in the file, no place in the model',
        'config': {**MIXTURE, **LATENT, 'first_k_dense_replace': 1, 'n_routed_experts': 6, 'n_shared_experts': 0,
                   'n_group': 2, 'topk_group': 1, 'num_nextn_predict_layers': 0, 'rope_parameters': rope(500.0)}},
    'ernie4_5_moe_bias': {
        'class': 'Ernie4_5_MoeConfig', 'note': 'use_bias: also of shared experts and of the head, which is tied',
        'config': gqa(head_dim=10, use_bias=True, tie_word_embeddings=True, moe_intermediate_size=12, moe_k=2,
                      moe_num_experts=5, moe_num_shared_experts=1, moe_layer_start_index=1, moe_layer_end_index=-1,
                      router_aux_loss_coef=0.0, rope_parameters=rope(700.0))},
    'smollm3_windows': {
        'class': 'SmolLM3Config', 'note': 'layer_types slide although use_sliding_window is false',
        'config': gqa(num_hidden_layers=3, hidden_size=32, use_sliding_window=False, sliding_window=5,
                      layer_types=['sliding_attention', 'full_attention', 'sliding_attention'], no_rope_layers=[1, 0, 1],
                      rope_parameters=rope(900.0))},
    'falcon_alibi_sdpa': {
        'class': 'FalconConfig', 'attention': 'sdpa', 'note': 'sdpa adds the ALiBi biases once, eager attention twice',
        'config': {**SIZES, 'hidden_size': 32, 'num_attention_heads': 4, 'alibi': True, 'multi_query': False,
                   'parallel_attn': True, 'bias': True, 'hidden_dropout': 0.0, 'ffn_hidden_size': 36}},
}


def make(name):
    model = MODELS[name]
    return getattr(transformers, model['class'])(**model['config'])


def old_fields(name, config):
    """Fields that published files of Transformers 4 spell in their own way."""
    if name == 'exaone4':
        del config['layer_types']  # follows from sliding_window_pattern
    if name == 'cwm':
        del config['layer_types']  # every fourth layer from 0 is full
    if name == 'minimax_m2':
        config['rotary_dim'] = int(config.pop('partial_rotary_factor') * config['head_dim'])
    return config


def three_of(names):
    """An embedding, a matrix of the first layer and a norm."""
    layer = [n for n in names if '.0.' in n]
    matrices = [n for n in layer if n.endswith('.weight') and 'norm' not in n and '.ln' not in n]
    norms = [n for n in layer if 'norm' in n or '.ln' in n]
    embedding = next(n for n in names if 'embed' in n or 'wte' in n)
    return [embedding, matrices[0], norms[0]]

"""Mixtral: a router over four experts, greedy text, a few steps."""

from same import done, fill, integers, show, steps
from transformers import MixtralConfig, MixtralForCausalLM

config = MixtralConfig(
    vocab_size=50,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    num_local_experts=4,
    num_experts_per_tok=2,
    max_position_embeddings=64,
    bos_token_id=0,
    eos_token_id=0,
    pad_token_id=0,
    output_router_logits=True,
)
model = fill(MixtralForCausalLM(config), scale=0.3).eval()
ids = integers(50, 2, 9, low=1)
show("logits", model(ids).logits)
show("greedy", model.generate(ids, max_new_tokens=6, do_sample=False).flatten().tolist())
model.train()
steps(model, lambda: model(ids, labels=ids).loss)
done()

"""Llama with grouped queries: the loss, greedy text from its cache, a few steps."""

import torch
from same import done, fill, integers, show, steps
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    vocab_size=50,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    bos_token_id=0,
    eos_token_id=0,
    pad_token_id=0,
)
model = fill(LlamaForCausalLM(config), scale=0.3).eval()
ids = integers(50, 2, 9, low=1)
show("logits", model(ids).logits)
show("greedy", model.generate(ids, max_new_tokens=10, do_sample=False).flatten().tolist())
model.train()
steps(model, lambda: model(ids, labels=ids).loss, optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3))
done()

"""GPT-2: the loss, and text generated greedily, by beams, and with a repetition penalty."""

import torch
from same import done, fill, integers, show, steps
from transformers import GPT2Config, GPT2LMHeadModel

config = GPT2Config(
    vocab_size=50,
    n_positions=64,
    n_embd=32,
    n_layer=2,
    n_head=4,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    bos_token_id=0,
    eos_token_id=0,
    pad_token_id=0,
)
model = fill(GPT2LMHeadModel(config), scale=0.3).eval()
ids = integers(50, 2, 10, low=1)
show("logits", model(ids).logits)
greedy = model.generate(ids, max_new_tokens=12, do_sample=False)
show("greedy", greedy.flatten().tolist())
beams = model.generate(ids, max_new_tokens=8, num_beams=3, num_return_sequences=2, do_sample=False)
show("beams", beams.flatten().tolist())
penalty = model.generate(
    ids, max_new_tokens=6, do_sample=False, repetition_penalty=1.5, no_repeat_ngram_size=2
)
show("penalty", penalty.flatten().tolist())
model.train()
steps(model, lambda: model(ids, labels=ids).loss, optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3))
done()

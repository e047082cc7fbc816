"""Mamba: the sequential scan, greedy text from its state, a few steps."""

from same import done, fill, integers, show, steps
from transformers import MambaConfig, MambaForCausalLM

config = MambaConfig(
    vocab_size=50,
    hidden_size=16,
    state_size=4,
    num_hidden_layers=2,
    expand=2,
    conv_kernel=4,
    time_step_rank=4,
    bos_token_id=0,
    eos_token_id=0,
    pad_token_id=0,
)
model = fill(MambaForCausalLM(config), scale=0.2).eval()
ids = integers(50, 2, 8, low=1)
show("logits", model(ids).logits)
show("greedy", model.generate(ids, max_new_tokens=6, do_sample=False).flatten().tolist())
model.train()
steps(model, lambda: model(ids, labels=ids).loss)
done()

"""T5: an encoder and a decoder, greedy text and beams, a few steps."""

from same import done, fill, integers, show, steps
from transformers import T5Config, T5ForConditionalGeneration

config = T5Config(
    vocab_size=50,
    d_model=32,
    d_kv=8,
    d_ff=48,
    num_layers=2,
    num_heads=4,
    dropout_rate=0.0,
    decoder_start_token_id=0,
    pad_token_id=0,
    eos_token_id=1,
)
model = fill(T5ForConditionalGeneration(config), scale=0.3).eval()
ids, labels = integers(50, 2, 9, low=2), integers(50, 2, 6, seed=1, low=2)
show("loss", model(input_ids=ids, labels=labels).loss)
show("greedy", model.generate(ids, max_new_tokens=8, do_sample=False).flatten().tolist())
show("beams", model.generate(ids, max_new_tokens=6, num_beams=2, do_sample=False).flatten().tolist())
model.train()
steps(model, lambda: model(input_ids=ids, labels=labels).loss)
done()

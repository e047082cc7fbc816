"""Whisper: log-Mel features in, tokens out, a few steps."""

from same import done, fill, integers, numbers, show, steps
from transformers import WhisperConfig, WhisperForConditionalGeneration

config = WhisperConfig(
    vocab_size=60,
    num_mel_bins=8,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=48,
    decoder_ffn_dim=48,
    max_source_positions=20,
    max_target_positions=24,
    dropout=0.0,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=3,
    suppress_tokens=None,
    begin_suppress_tokens=None,
)
model = fill(WhisperForConditionalGeneration(config), scale=0.2).eval()
sound, labels = numbers(2, 8, 40), integers(60, 2, 7, low=4)
show("logits", model(input_features=sound, labels=labels).logits)
made = model.generate(input_features=sound, max_new_tokens=6, do_sample=False)
show("greedy", made.flatten().tolist())
model.train()
steps(model, lambda: model(input_features=sound, labels=labels).loss)
done()

"""ViT as a classifier: logits, attentions, a few steps."""

import torch
from same import done, fill, numbers, show, steps
from transformers import ViTConfig, ViTForImageClassification

config = ViTConfig(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    image_size=16,
    patch_size=4,
    num_labels=5,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    attn_implementation="eager",
)
model = fill(ViTForImageClassification(config)).eval()
pixels = numbers(2, 3, 16, 16)
out = model(pixels, output_attentions=True)
show("logits", out.logits)
show("attention", out.attentions[1])
model.train()
steps(model, lambda: model(pixels, labels=torch.tensor([1, 4])).loss)
done()

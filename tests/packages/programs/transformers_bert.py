"""BERT with a classifier: forward, hidden states, a few steps of AdamW."""

import torch
from same import done, fill, integers, show, steps
from transformers import BertConfig, BertForSequenceClassification

config = BertConfig(
    vocab_size=60,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=32,
    num_labels=3,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
model = fill(BertForSequenceClassification(config)).eval()
ids = integers(60, 4, 12)
mask = torch.ones_like(ids)
mask[1, 8:] = 0
labels = torch.tensor([0, 2, 1, 1])
out = model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
show("logits", out.logits)
show("hidden", out.hidden_states[-1])
model.train()
steps(
    model,
    lambda: model(input_ids=ids, attention_mask=mask, labels=labels).loss,
    optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
)
done()

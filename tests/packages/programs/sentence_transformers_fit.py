"""sentence-transformers: a transformer and pooling, similarities, a loss of pairs."""

import torch
from same import done, fill, integers, show, steps
from sentence_transformers import util
from sentence_transformers.models import Pooling
from torch import nn
from transformers import BertConfig, BertModel

config = BertConfig(
    vocab_size=60,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=32,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
bert = fill(BertModel(config)).eval()
pooling = Pooling(32, pooling_mode="mean")


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.bert, self.pooling = bert, pooling

    def forward(self, ids, mask):
        hidden = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        out = self.pooling({"token_embeddings": hidden, "attention_mask": mask})
        return nn.functional.normalize(out["sentence_embedding"], dim=-1)


encoder = Encoder()
ids, mask = integers(60, 6, 8), torch.ones(6, 8, dtype=torch.long)
mask[2, 5:] = 0
found = encoder(ids, mask)
show("embeddings", found)
show("similarities", util.cos_sim(found, found))
hits = util.semantic_search(found[:2].detach(), found.detach(), top_k=3)
show("hits", [hit["corpus_id"] for row in hits for hit in row])
steps(
    encoder,
    lambda: nn.functional.cross_entropy(
        20 * util.cos_sim(encoder(ids[:3], mask[:3]), encoder(ids[3:], mask[3:])), torch.arange(3)
    ),
)
done()

"""x-transformers: a decoder with rotary positions, an encoder over images, generated tokens."""

import torch
from same import done, fill, integers, numbers, show, steps
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper, ViTransformerWrapper

net = fill(
    TransformerWrapper(
        num_tokens=40,
        max_seq_len=24,
        attn_layers=Decoder(
            dim=32, depth=2, heads=4, attn_dim_head=8, rotary_pos_emb=True, attn_kv_heads=2, ff_glu=True
        ),
    ),
    scale=0.2,
)
ids = integers(40, 2, 12)
show("logits", net(ids))
show(
    "alibi",
    fill(
        TransformerWrapper(
            num_tokens=40,
            max_seq_len=24,
            attn_layers=Decoder(
                dim=32, depth=1, heads=4, attn_dim_head=8, alibi_pos_bias=True, alibi_num_heads=2
            ),
        ),
        scale=0.2,
    )(ids),
)
whole = AutoregressiveWrapper(net)
steps(whole, lambda: whole(ids), optimizer=torch.optim.AdamW(whole.parameters(), lr=1e-3))
show("train generated", whole.generate(ids[:, :4], 6, temperature=0.0).flatten().tolist())
images = fill(
    ViTransformerWrapper(
        image_size=16,
        patch_size=4,
        num_classes=5,
        attn_layers=Encoder(dim=32, depth=1, heads=4, attn_dim_head=8),
    )
)
show("images", images(numbers(2, 3, 16, 16)))
done()

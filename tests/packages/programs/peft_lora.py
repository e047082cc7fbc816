"""LoRA over GPT-2: only the adapters train; merged, saved and loaded they give the same."""

import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from same import done, fill, integers, show, steps
from transformers import GPT2Config, GPT2LMHeadModel


def base():
    return fill(
        GPT2LMHeadModel(
            GPT2Config(
                vocab_size=50,
                n_positions=32,
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
        )
    )


ids = integers(50, 2, 10, low=1)
model = get_peft_model(
    base(),
    LoraConfig(
        r=4,
        lora_alpha=8,
        lora_dropout=0.0,
        target_modules=["c_attn"],
        fan_in_fan_out=True,
        task_type="CAUSAL_LM",
    ),
)
adapters = [p for p in model.parameters() if p.requires_grad]
rng = torch.nn.ParameterList(adapters)
fill(rng, seed=7, scale=0.2)
show("trainable", [len(adapters), sum(p.numel() for p in adapters)])
show("logits", model(ids).logits)
steps(model, lambda: model(input_ids=ids, labels=ids).loss, optimizer=torch.optim.AdamW(adapters, lr=1e-2))
model.eval()
with tempfile.TemporaryDirectory() as folder, torch.no_grad():
    here = model(ids).logits
    model.save_pretrained(folder)
    again = PeftModel.from_pretrained(base(), folder).eval()
    show("loaded", float((again(ids).logits - here).abs().max()) < 1e-5)
    merged = model.merge_and_unload()
    show("merged", float((merged(ids).logits - here).abs().max()) < 1e-3)
done()

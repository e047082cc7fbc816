"""Trainer: a small training with a checkpoint, saved, loaded and evaluated."""

import tempfile

import numpy as np
import torch
from same import done, fill, integers, show
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

config = BertConfig(
    vocab_size=40,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=24,
    num_labels=2,
    max_position_embeddings=16,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
ids, labels = integers(40, 12, 8), integers(2, 12, seed=1)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return len(ids)

    def __getitem__(self, index):
        return {
            "input_ids": ids[index],
            "attention_mask": torch.ones(8, dtype=torch.long),
            "labels": labels[index],
        }


class InOrder(Trainer):
    def _get_train_sampler(self, *arguments):
        return torch.utils.data.SequentialSampler(self.train_dataset)


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=2,
        per_device_train_batch_size=4,
        learning_rate=1e-3,
        logging_steps=1,
        save_strategy="epoch",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=3,
    )
    trainer = InOrder(
        model=fill(BertForSequenceClassification(config)),
        args=arguments,
        train_dataset=Rows(),
        eval_dataset=Rows(),
        compute_metrics=lambda p: {"right": float((np.argmax(p.predictions, -1) == p.label_ids).mean())},
    )
    result = trainer.train()
    show("train losses", [row["loss"] for row in trainer.state.log_history if "loss" in row])
    found = trainer.evaluate()
    show("train evaluation", [found["eval_loss"], found["eval_right"]])
    trainer.save_model(f"{folder}/model")
    again = BertForSequenceClassification.from_pretrained(f"{folder}/model").eval()
    trainer.model.eval()
    with torch.no_grad():
        show("same after loading", float((again(ids).logits - trainer.model(ids).logits).abs().max()) < 1e-6)
    resumed = InOrder(model=fill(BertForSequenceClassification(config)), args=arguments, train_dataset=Rows())
    resumed.train(resume_from_checkpoint=f"{folder}/checkpoint-3")
    show("train resumed", [row["loss"] for row in resumed.state.log_history if "loss" in row])
done()

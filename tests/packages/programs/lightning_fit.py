"""lightning: a module fitted by a Trainer with validation, a checkpoint and a test."""

import logging
import tempfile
import warnings

import lightning as L
import torch
from same import done, fill, integers, numbers, show
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
losses = []


class Classifier(L.LightningModule):
    def __init__(self, width=16):
        super().__init__()
        self.save_hyperparameters()
        self.net = fill(nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 3)))

    def training_step(self, batch, index):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("loss", loss)
        losses.append(float(loss))
        return loss

    def validation_step(self, batch, index):
        self.log("val", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

    test_step = validation_step

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)}


with tempfile.TemporaryDirectory() as folder:
    data = DataLoader(TensorDataset(numbers(24, 6), integers(3, 24)), batch_size=8)
    trainer = L.Trainer(
        max_epochs=2,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_progress_bar=False,
        gradient_clip_val=0.5,
        enable_model_summary=False,
        default_root_dir=folder,
        enable_checkpointing=True,
    )
    model = Classifier()
    trainer.fit(model, data, data)
    show("train losses", losses)
    show("train validation", float(trainer.callback_metrics["val"]))
    trainer.save_checkpoint(f"{folder}/own.ckpt")
    again = Classifier.load_from_checkpoint(f"{folder}/own.ckpt")
    show("loaded", float((again.net[0].weight - model.net[0].weight).abs().max()) == 0)
    show("train test", trainer.test(again, data, verbose=False)[0]["val"])
done()

"""monai: a UNet in three dimensions, its losses and metrics, transforms, sliding windows."""

import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, TverskyLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import Compose, NormalizeIntensity, Rotate90, ScaleIntensity
from same import done, fill, numbers, show, steps

model = fill(UNet(3, 1, 2, channels=(4, 8, 8), strides=(2, 2), num_res_units=1, norm="BATCH"))
x = numbers(2, 1, 8, 8, 8)
y = (numbers(2, 1, 8, 8, 8, seed=4) > 0).float()
model.eval()
show("out", model(x))
show("windows", sliding_window_inference(x, (4, 4, 4), 2, model, overlap=0.5, mode="gaussian"))
model.train()
loss = DiceCELoss(to_onehot_y=True, softmax=True)
steps(model, lambda: loss(model(x), y), optimizer=torch.optim.Adam(model.parameters(), 1e-3))
show("tversky", TverskyLoss(sigmoid=True)(x, y))
metric = DiceMetric(include_background=True)
metric((x > 0).float(), y)
show("dice", metric.aggregate())
show("transformed", torch.as_tensor(Compose([ScaleIntensity(), Rotate90(), NormalizeIntensity()])(x[0])))
done()

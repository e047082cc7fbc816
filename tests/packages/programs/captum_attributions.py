"""captum: what a small network's output follows from, by nine methods."""

from captum.attr import (
    DeepLift,
    FeatureAblation,
    GuidedBackprop,
    InputXGradient,
    IntegratedGradients,
    LayerConductance,
    LayerGradCam,
    Occlusion,
    Saliency,
)
from same import done, fill, numbers, show
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.relu = nn.Conv2d(1, 4, 3, padding=1), nn.ReLU()
        self.pool, self.lin = nn.AvgPool2d(2), nn.Linear(16, 3)

    def forward(self, x):
        return self.lin(self.pool(self.relu(self.conv(x))).flatten(1))


net, x = fill(Net()).eval(), numbers(2, 1, 4, 4)
show("integrated", IntegratedGradients(net).attribute(x, target=1, n_steps=20))
show("saliency", Saliency(net).attribute(x.clone(), target=1))
show("times input", InputXGradient(net).attribute(x.clone(), target=2))
show("deeplift", DeepLift(net).attribute(x.clone(), target=0))
show("guided", GuidedBackprop(net).attribute(x.clone(), target=0))
show("occlusion", Occlusion(net).attribute(x, sliding_window_shapes=(1, 2, 2), target=1))
show("ablation", FeatureAblation(net).attribute(x, target=1))
show("conductance", LayerConductance(net, net.conv).attribute(x, target=1, n_steps=10))
show("gradcam", LayerGradCam(net, net.conv).attribute(x, target=1))
done()

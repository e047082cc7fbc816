"""skorch: a network as an estimator of scikit-learn's, fitted, scored, in a pipeline."""

import numpy as np
from same import done, fill, integers, numbers, show
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = fill(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)))

    def forward(self, x):
        return self.net(x).softmax(-1)


x, y = numbers(32, 6).numpy(), integers(3, 32).numpy()
net = NeuralNetClassifier(
    Net, max_epochs=3, lr=0.1, batch_size=8, train_split=None, iterator_train__shuffle=False, verbose=0
)
pipeline = make_pipeline(StandardScaler(), net)
pipeline.fit(x, y)
show("train losses", [row["train_loss"] for row in net.history])
show("train scores", pipeline.predict_proba(x[:4]).astype(np.float64))
show("right", pipeline.score(x, y))
done()

"""Loops: data, losses, optimizers, schedules, mixed precision, compiled steps, averages."""

from collections.abc import Callable, Iterator

import xtensor
import xtensor.nn.functional as F
from xtensor import Tensor, nn
from xtensor.optim import Optimizer, lr_scheduler, swa_utils
from xtensor.optim.lr_scheduler import CosineAnnealingLR, LRScheduler, OneCycleLR, StepLR
from xtensor.utils import data
from xtensor.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Squares(Dataset[tuple[Tensor, Tensor]]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return xtensor.tensor([float(index)]), xtensor.tensor([float(index) ** 2])


class Counting(data.IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        assert data.get_worker_info() is None
        return iter(range(4))


xtensor.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = xtensor.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
schedules = [
    CosineAnnealingLR(optimizer, T_max=10),
    StepLR(optimizer, 10, gamma=0.5),
    OneCycleLR(optimizer, 0.1, total_steps=100),
]
train, test = random_split(Squares(), [48, 16])
loader = DataLoader(train, batch_size=16, shuffle=True, drop_last=True)


def step(x: Tensor, y: Tensor) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    loss = F.mse_loss(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.detach()


fast = xtensor.compile(step)
for epoch in range(2):
    for x, y in loader:
        print(epoch, step(x, y).item())
        fast(x, y)
    schedules[0].step()
    print(optimizer.param_groups[0]["lr"], schedules[0].get_last_lr(), len(test), len(loader))
scaler = xtensor.amp.GradScaler("cpu")
with xtensor.autocast("cpu", dtype=xtensor.bfloat16):
    assert xtensor.is_autocast_enabled("cpu") and xtensor.get_autocast_dtype("cpu") == xtensor.bfloat16
    out: Tensor = model(xtensor.rand(4, 1))
scaler.scale(out.sum()).backward()
scaler.step(optimizer)
scaler.update()

# Data
numbers = TensorDataset(xtensor.arange(4), xtensor.arange(4))
for batch in DataLoader(numbers, batch_size=2):
    print(batch[0].shape)
assert len(data.ConcatDataset([numbers, numbers])) == 8 and len(data.Subset(numbers, [0, 1])) == 2
assert len(data.StackDataset(numbers, numbers)) == 4 and list(data.SequentialSampler(numbers)) == [0, 1, 2, 3]
assert sorted(data.RandomSampler(numbers)) == sorted(data.SubsetRandomSampler([0, 1, 2, 3])) == [0, 1, 2, 3]
assert len(list(data.BatchSampler(data.SequentialSampler(numbers), 2, drop_last=False))) == 2
assert list(data.WeightedRandomSampler([0.0, 1.0], 3)) == [1, 1, 1]
assert list(data.ChainDataset([Counting(), Counting()])) == [0, 1, 2, 3] * 2
assert data.default_collate([1, 2]).tolist() == [1, 2] and list(DataLoader(Counting(), batch_size=4))

# Losses: modules, and functions
guess, truth = xtensor.rand(4, 3), xtensor.rand(4, 3)
labels, signs = xtensor.tensor([0, 1, 2, 0]), xtensor.tensor([1.0, -1.0, 1.0, -1.0])
pairs: list[tuple[Tensor, Tensor]] = [
    (nn.MSELoss()(guess, truth), F.mse_loss(guess, truth)),
    (nn.L1Loss()(guess, truth), F.l1_loss(guess, truth)),
    (nn.HuberLoss()(guess, truth), F.huber_loss(guess, truth)),
    (nn.SmoothL1Loss()(guess, truth), F.smooth_l1_loss(guess, truth)),
    (nn.CrossEntropyLoss()(guess, labels), F.cross_entropy(guess, labels)),
    (nn.NLLLoss()(guess.log(), labels), F.nll_loss(guess.log(), labels)),
    (nn.BCELoss()(guess, truth), F.binary_cross_entropy(guess, truth)),
    (nn.BCEWithLogitsLoss()(guess, truth), F.binary_cross_entropy_with_logits(guess, truth)),
    (nn.KLDivLoss(reduction="sum")(guess, truth), F.kl_div(guess, truth, reduction="sum")),
    (nn.PoissonNLLLoss()(guess, truth), F.poisson_nll_loss(guess, truth)),
    (nn.GaussianNLLLoss()(guess, truth, truth), F.gaussian_nll_loss(guess, truth, truth)),
    (nn.SoftMarginLoss()(guess, truth), F.soft_margin_loss(guess, truth)),
    (nn.MultiMarginLoss()(guess, labels), F.multi_margin_loss(guess, labels)),
    (nn.HingeEmbeddingLoss()(guess[:, 0], signs), F.hinge_embedding_loss(guess[:, 0], signs)),
    (nn.CosineEmbeddingLoss()(guess, truth, signs), F.cosine_embedding_loss(guess, truth, signs)),
    (nn.TripletMarginLoss()(guess, truth, guess), F.triplet_margin_loss(guess, truth, guess)),
    (nn.CosineSimilarity()(guess, truth), F.cosine_similarity(guess, truth)),
    (nn.PairwiseDistance()(guess, truth), F.pairwise_distance(guess, truth)),
]
for one, other in pairs:
    assert xtensor.allclose(one, other)

# Functions of layers
image, kernel = xtensor.rand(1, 2, 4, 4), xtensor.rand(2, 2, 3, 3)
assert F.conv2d(image, kernel).shape == (1, 2, 2, 2) and F.conv_transpose2d(image, kernel).shape[-1] == 6
assert F.conv1d(image[:, :, 0], kernel[:, :, 0]).shape == (1, 2, 2) and F.one_hot(labels).shape == (4, 3)
assert F.pad(guess, (1, 1)).shape == (4, 5) and F.linear(guess, truth).shape == (4, 4)
assert F.avg_pool2d(image, 2).shape == F.max_pool2d(image, 2).shape == F.adaptive_avg_pool2d(image, 2).shape
assert F.interpolate(image, scale_factor=2.0, mode="bilinear").shape[-1] == 8
assert F.unfold(image, 2).shape == (1, 8, 9) and F.fold(F.unfold(image, 2), (4, 4), 2).shape == image.shape
grid = F.affine_grid(xtensor.eye(2, 3)[None], [1, 2, 4, 4], align_corners=False)
assert xtensor.allclose(F.grid_sample(image, grid, align_corners=False), image, atol=1e-5)
assert F.embedding(labels, truth).equal(truth[labels]) and F.embedding_bag(labels[None], truth).shape == (
    1,
    3,
)
assert F.scaled_dot_product_attention(guess[None], truth[None], truth[None]).shape == (1, 4, 3)
assert F.pixel_shuffle(F.pixel_unshuffle(image, 2), 2).equal(image) and F.gumbel_softmax(guess).shape == (
    4,
    3,
)
running = xtensor.zeros(2), xtensor.ones(2)
assert F.batch_norm(image, *running, training=True).shape == F.instance_norm(image).shape
assert F.layer_norm(guess, [3]).shape == F.rms_norm(guess, [3]).shape == F.normalize(guess).shape
assert F.group_norm(image, 1).shape == F.local_response_norm(image, 2).shape == F.dropout2d(image).shape
activations: list[Callable[[Tensor], Tensor]] = [
    F.elu, F.selu, F.celu, F.silu, F.mish, F.relu, F.relu6, F.softplus, F.softsign, F.hardtanh,
    F.hardswish, F.hardsigmoid, F.leaky_relu, F.logsigmoid, F.softshrink, F.hardshrink, F.tanhshrink,
]  # fmt: skip
for activation in activations:
    assert activation(guess).shape == guess.shape
assert xtensor.allclose(F.log_softmax(guess, 1).exp(), F.softmax(guess, 1)) and F.glu(image).shape[-1] == 2

# Optimizers and schedules
weight = nn.Parameter(xtensor.ones(2, 2))
kinds: list[Optimizer] = [
    xtensor.optim.SGD([weight], lr=0.1, momentum=0.9, nesterov=True),
    xtensor.optim.Adam([{"params": [weight], "lr": 0.1}]),
    xtensor.optim.NAdam([weight]),
    xtensor.optim.RAdam([weight]),
    xtensor.optim.Adamax([weight]),
    xtensor.optim.Adagrad([weight]),
    xtensor.optim.Adadelta([weight]),
    xtensor.optim.RMSprop([weight]),
    xtensor.optim.Rprop([weight]),
    xtensor.optim.ASGD([weight]),
    xtensor.optim.Adafactor([weight]),
    xtensor.optim.Muon([weight]),
]
for kind in kinds:
    before = weight.detach().clone()
    kind.zero_grad()
    (weight * weight).sum().backward()
    kind.step()
    assert not weight.equal(before), kind
newton = xtensor.optim.LBFGS([weight], max_iter=2)


def closure() -> Tensor:
    newton.zero_grad()
    loss = (weight * weight).sum()
    loss.backward()
    return loss


newton.step(closure)
sgd = kinds[0]
changing: list[LRScheduler] = [
    lr_scheduler.ConstantLR(sgd),
    lr_scheduler.ExponentialLR(sgd, 0.9),
    lr_scheduler.LambdaLR(sgd, lambda epoch: 0.5**epoch),
    lr_scheduler.LinearLR(sgd),
    lr_scheduler.MultiStepLR(sgd, [1, 2]),
    lr_scheduler.MultiplicativeLR(sgd, lambda epoch: 0.9),
    lr_scheduler.PolynomialLR(sgd),
    lr_scheduler.CosineAnnealingWarmRestarts(sgd, 4),
    lr_scheduler.CyclicLR(sgd, 0.01, 0.1),
]
changing += [lr_scheduler.ChainedScheduler(changing[:2]), lr_scheduler.SequentialLR(sgd, changing[:2], [2])]
for schedule in changing:
    sgd.step()
    schedule.step()
    assert len(schedule.get_last_lr()) == 1
lr_scheduler.ReduceLROnPlateau(sgd).step(0.1)

# Averages
averaged = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))
averaged.update_parameters(model)
swa_utils.update_bn([xtensor.rand(4, 1)], averaged)
slow = swa_utils.SWALR(optimizer, swa_lr=0.05)
optimizer.step()
slow.step()

"""Models of images: classifiers, segmentation, detection, vision transformers, points and graphs."""

from __future__ import annotations

import xtensor as torch
from xtensor import nn
from xtensor.nn import functional as F

from . import Model, batch, images, model


class BasicBlock(nn.Module):
    def __init__(self, inputs, width, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != width:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width)
            )

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(BasicBlock(8, 8), BasicBlock(8, 8))
        self.layer2 = nn.Sequential(BasicBlock(8, 16, 2), BasicBlock(16, 16))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(16, classes)

    def forward(self, x):
        x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        return self.fc(torch.flatten(self.avgpool(x), 1))


@model
def resnet():
    return images(ResNet())


class InvertedResidual(nn.Module):
    """MobileNet's block, and with `squeeze` EfficientNet's."""

    def __init__(self, inputs, outputs, stride, expand, squeeze=False, act: type[nn.Module] = nn.ReLU6):
        super().__init__()
        hidden = inputs * expand
        self.residual = stride == 1 and inputs == outputs
        self.expand = nn.Sequential(nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), act())
        self.depth = nn.Sequential(
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden), act()
        )
        self.squeeze = None
        if squeeze:
            self.squeeze = nn.Sequential(
                nn.AdaptiveAvgPool2d(1), nn.Conv2d(hidden, inputs, 1), act(), nn.Conv2d(inputs, hidden, 1), nn.Sigmoid()
            )  # fmt: skip
        self.project = nn.Sequential(nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.depth(self.expand(x))
        if self.squeeze is not None:
            y = y * self.squeeze(y)
        y = self.project(y)
        return x + y if self.residual else y


def classifier(*layers, width):
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(width, 10)
    )


@model
def mobilenet():
    first = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6())
    return images(classifier(first, InvertedResidual(8, 8, 1, 2), InvertedResidual(8, 12, 2, 4), width=12))


@model
def efficientnet():
    blocks = [InvertedResidual(8, 8, 1, 2, True, nn.SiLU), InvertedResidual(8, 12, 2, 4, True, nn.SiLU)]
    first = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8, eps=1e-3), nn.SiLU())
    return images(classifier(first, *blocks, width=12))


@model
def vgg():
    layers = []
    inputs = 3
    for width in (8, "M", 12, 12, "M"):
        if width == "M":
            layers.append(nn.MaxPool2d(2, 2))
        else:
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(inplace=True)]
            inputs = width
    head = [
        nn.AdaptiveAvgPool2d((4, 4)),
        nn.Flatten(),
        nn.Linear(12 * 16, 20),
        nn.ReLU(True),
        nn.Dropout(),
        nn.Linear(20, 10),
    ]
    return images(nn.Sequential(*layers, *head))


class DenseBlock(nn.Module):
    def __init__(self, inputs, growth, count):
        super().__init__()
        self.layers = nn.ModuleList([
            nn.Sequential(nn.BatchNorm2d(inputs + i * growth), nn.ReLU(), nn.Conv2d(inputs + i * growth, growth, 3, padding=1, bias=False))
            for i in range(count)
        ])  # fmt: skip

    def forward(self, x):
        features = [x]
        for layer in self.layers:
            features.append(layer(torch.cat(features, 1)))
        return torch.cat(features, 1)


@model
def densenet():
    transition = nn.Sequential(nn.BatchNorm2d(20), nn.ReLU(), nn.Conv2d(20, 10, 1), nn.AvgPool2d(2))
    net = classifier(
        nn.Conv2d(3, 8, 3, padding=1), DenseBlock(8, 4, 3), transition, DenseBlock(10, 4, 2), width=18
    )
    return images(net, size=16)


class LayerNorm2d(nn.LayerNorm):
    def forward(self, input):
        return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1 = nn.Linear(dim, 4 * dim)
        self.pwconv2 = nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(torch.full((dim,), 0.5))

    def forward(self, x):
        y = self.dwconv(x).permute(0, 2, 3, 1)
        y = self.gamma * self.pwconv2(F.gelu(self.pwconv1(self.norm(y))))
        return x + y.permute(0, 3, 1, 2)


@model
def convnext():
    stem = nn.Sequential(nn.Conv2d(3, 8, 4, 4), LayerNorm2d(8, eps=1e-6))
    return images(
        classifier(
            stem, ConvNeXtBlock(8), LayerNorm2d(8), nn.Conv2d(8, 12, 2, 2), ConvNeXtBlock(12), width=12
        )
    )


class UNet(nn.Module):
    def __init__(self, width=8, classes=2):
        super().__init__()
        self.down1, self.down2 = self.twice(3, width), self.twice(width, 2 * width)
        self.middle = self.twice(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.right2 = self.twice(4 * width, 2 * width)
        self.up1 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.right1 = self.twice(3 * width, width)
        self.last = nn.Conv2d(width, classes, 1)

    @staticmethod
    def twice(inputs, outputs):
        parts = []
        for i in (inputs, outputs):
            parts += [
                nn.Conv2d(i, outputs, 3, padding=1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(inplace=True),
            ]
        return nn.Sequential(*parts)

    def forward(self, x):
        one = self.down1(x)
        two = self.down2(F.max_pool2d(one, 2))
        y = self.middle(F.max_pool2d(two, 2))
        y = self.right2(torch.cat([two, self.up2(y)], dim=1))
        y = self.right1(torch.cat([one, self.up1(y)], dim=1))
        return self.last(y)


@model
def unet():
    return images(UNet())


class ViT(nn.Module):
    def __init__(self, size=32, patch=8, dim=24, heads=3, classes=10):
        super().__init__()
        self.patches = nn.Conv2d(3, dim, patch, patch)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, 1 + (size // patch) ** 2, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(
            dim, heads, 48, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


@model
def vit():
    return images(ViT())


class WindowAttention(nn.Module):
    """Attention within windows that are shifted, with a bias for each relative place, as Swin has it."""

    def __init__(self, dim, window, heads, size, shift):
        super().__init__()
        self.window, self.heads, self.shift = window, heads, shift
        self.norm = nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.02)
        grid = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(
            1
        )
        apart = (grid[:, :, None] - grid[:, None, :]).permute(1, 2, 0) + window - 1
        self.register_buffer("index", apart[..., 0] * (2 * window - 1) + apart[..., 1])
        marks = torch.zeros(1, size, size, 1)
        parts = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
        for i, rows in enumerate(parts):
            for j, columns in enumerate(parts):
                marks[:, rows, columns] = 3 * i + j
        marks = self.cut(marks).squeeze(-1)
        mask = (marks[:, None] - marks[:, :, None]).ne(0).float() * -100.0
        self.register_buffer("mask", mask)

    def cut(self, x):
        w = self.window
        batch, rows, columns, dim = x.shape
        x = x.view(batch, rows // w, w, columns // w, w, dim).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(-1, w * w, dim)

    def forward(self, x):
        batch, rows, columns, dim = x.shape
        w = self.window
        y = self.cut(torch.roll(self.norm(x), (-self.shift, -self.shift), (1, 2)))
        count = y.shape[0]
        q, k, v = self.qkv(y).reshape(count, w * w, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        scores = scores + self.table[self.index.view(-1)].view(w * w, w * w, -1).permute(2, 0, 1)
        masks = self.mask.shape[0]
        scores = scores.view(batch, masks, self.heads, w * w, w * w) + self.mask[None, :, None]
        y = scores.view(-1, self.heads, w * w, w * w).softmax(-1) @ v
        y = self.proj(y.transpose(1, 2).reshape(count, w * w, dim))
        y = y.view(batch, rows // w, columns // w, w, w, dim).permute(0, 1, 3, 2, 4, 5)
        return x + torch.roll(y.reshape(batch, rows, columns, dim), (self.shift, self.shift), (1, 2))


class Swin(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 12, 4, 4)
        self.attention = WindowAttention(12, 4, 3, 8, 2)
        self.reduction = nn.Linear(48, 16, bias=False)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = self.attention(self.patches(x).permute(0, 2, 3, 1))
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.head(self.reduction(x).mean((1, 2)))


@model
def swin():
    return images(Swin())


class Detector(nn.Module):
    """A detector without anchors: scores, boxes of distances, the best hundred by `topk`."""

    def __init__(self, classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU())
        self.scores, self.boxes = nn.Conv2d(16, classes, 3, padding=1), nn.Conv2d(16, 4, 3, padding=1)
        self.classes = classes

    def forward(self, x):
        y = self.body(x)
        rows, columns = y.shape[-2:]
        scores = self.scores(y).sigmoid()
        peaks = F.max_pool2d(scores, 3, 1, 1)
        scores = (scores * (peaks == scores)).flatten(1)
        best, where = scores.topk(20)
        label = torch.div(where, rows * columns, rounding_mode="floor")
        place = where % (rows * columns)
        distances = F.softplus(self.boxes(y)).flatten(2).transpose(1, 2)
        distances = distances.gather(1, place.unsqueeze(-1).expand(-1, -1, 4))
        cx, cy = (
            (place % columns).float() + 0.5,
            torch.div(place, columns, rounding_mode="floor").float() + 0.5,
        )
        left, top, right, bottom = distances.unbind(-1)
        boxes = torch.stack([cx - left, cy - top, cx + right, cy + bottom], -1) * 4
        return boxes.clamp(0, 32), best, label


@model
def detector():
    return images(Detector())


class DETR(nn.Module):
    def __init__(self, dim=16, queries=5):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.ReLU(), nn.Conv2d(8, dim, 2, 2))
        self.transformer = nn.Transformer(dim, 2, 1, 1, 32)
        self.classes, self.boxes = nn.Linear(dim, 4), nn.Linear(dim, 4)
        self.queries = nn.Parameter(torch.rand(queries, dim))
        self.rows, self.columns = nn.Parameter(torch.rand(8, dim // 2)), nn.Parameter(torch.rand(8, dim // 2))

    def forward(self, x):
        h = self.backbone(x)
        rows, columns = h.shape[-2:]
        place = torch.cat([
            self.columns[:columns].unsqueeze(0).repeat(rows, 1, 1), self.rows[:rows].unsqueeze(1).repeat(1, columns, 1)
        ], dim=-1).flatten(0, 1).unsqueeze(1)  # fmt: skip
        queries = self.queries.unsqueeze(1).repeat(1, x.shape[0], 1)
        h = self.transformer(place + 0.1 * h.flatten(2).permute(2, 0, 1), queries).transpose(0, 1)
        return self.classes(h), self.boxes(h).sigmoid()


@model
def detr():
    return images(DETR())


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU())
        self.angles = nn.Linear(16, 9)
        self.body = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 24, 1))
        self.head = nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 5))

    def forward(self, x):
        turn = self.angles(torch.max(self.turn(x), 2, keepdim=True)[0].view(-1, 16)).view(-1, 3, 3)
        turn = turn + torch.eye(3, device=x.device)
        x = torch.bmm(x.transpose(2, 1), turn).transpose(2, 1)
        return F.log_softmax(self.head(torch.max(self.body(x), 2)[0]), dim=1)


@model
def pointnet():
    points = torch.export.Dim("points", min=2, max=4096)
    return Model(PointNet(), (torch.randn(2, 3, 20),), (torch.randn(4, 3, 31),), ({0: batch(), 2: points},))


class GraphConvolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.3)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x, adjacency):
        own = adjacency + torch.eye(adjacency.shape[0])
        degree = own.sum(1).pow(-0.5)
        degree = degree.masked_fill(torch.isinf(degree), 0.0)
        return (degree[:, None] * own * degree[None]) @ (x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = GraphConvolution(6, 16), GraphConvolution(16, 4)

    def forward(self, x, adjacency):
        return F.log_softmax(
            self.two(F.dropout(F.relu(self.one(x, adjacency)), training=self.training), adjacency), 1
        )


@model
def graph_convolution():
    def graph(nodes):
        links = (torch.rand(nodes, nodes) > 0.6).float()
        return torch.randn(nodes, 6), torch.maximum(links, links.T)

    nodes = torch.export.Dim("nodes", min=2, max=4096)
    return Model(GCN(), graph(7), graph(11), ({0: nodes}, {0: nodes, 1: nodes}))

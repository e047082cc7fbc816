"""Operators of middling size as programs call them, against PyTorch: many, each once, to find what is slow.

    python benchmarks/operators.py                  all; the slowest beside PyTorch come last
    python benchmarks/operators.py pool cumsum      those whose text has one of these words
    python benchmarks/operators.py --turns 9 --json operators.json

What the benchmarks of kernels and steps do not call can be slow for long: the first such table found bilinear images at 39 times
PyTorch's time. A case is an expression over the tensors below; behind "d im: " it is differentiated too, in `im`. Both libraries take
turns in one process; results are compared before, unless they are random or not unique.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from turns import measure, ratio

import xtensor

try:
    import torch
except ImportError:
    torch: Any = None

CASES = """
F.conv2d(im, w, padding=1)
F.conv2d(im, dw, padding=1, groups=16)
F.conv2d(im, w, stride=2, padding=1)
F.conv_transpose2d(im, wt, stride=2, padding=1)
F.conv1d(rows, w1, padding=2)
F.conv3d(vol, w3, padding=1)
d im: F.conv2d(im, w, padding=1)
d im: F.conv2d(im, w, stride=2, padding=1)
d im: F.conv2d(im, dw, padding=1, groups=16)
d im: F.conv_transpose2d(im, wt, stride=2, padding=1)
d rows: F.conv1d(rows, w1, padding=2)
d vol: F.conv3d(vol, w3, padding=1)
F.max_pool2d(im, 2)
d im: F.max_pool2d(im, 2)
d im: F.max_pool2d(im, 3, 2, 1)
F.avg_pool2d(im, 3, 2, 1)
d im: F.avg_pool2d(im, 3, 2, 1)
F.adaptive_avg_pool2d(im, 7)
d im: F.adaptive_avg_pool2d(im, 7)
F.adaptive_max_pool2d(im, 5)
F.interpolate(im, scale_factor=2, mode="bilinear")
d im: F.interpolate(im, scale_factor=2, mode="bilinear")
F.interpolate(im, size=(90, 90), mode="bicubic")
F.interpolate(im, scale_factor=2, mode="nearest")
F.interpolate(vol, scale_factor=2, mode="trilinear")
F.grid_sample(im, grid, align_corners=False)
d im: F.grid_sample(im, grid, align_corners=False)
F.unfold(im, 3, padding=1)
F.fold(F.unfold(im, 3, padding=1), (64, 64), 3, padding=1)
F.pixel_shuffle(im, 2)
F.pad(im, (2, 2, 2, 2), mode="reflect")
d im: F.pad(im, (2, 2, 2, 2), mode="reflect")
F.pad(im, (2, 2, 2, 2), mode="replicate")
d im: F.batch_norm(im, None, None, training=True)
d im: F.group_norm(im, 4)
d seq: F.layer_norm(seq, (64,))
d seq: F.gelu(seq)
d seq: F.softmax(seq, -1)
d a: F.log_softmax(a, -1)
d table: F.embedding(ids, table)
F.embedding_bag(ids, table)
a.gather(1, places)
d a: a.gather(1, places)
a[some]
d a: a[some]
a[some, some]
a.index_select(1, some)
d a: a.index_select(1, some)
a.scatter(1, order, a)
zeros.scatter_add(1, places, a)
line[:1000].index_add(0, many, line)
line[:1000].scatter_reduce(0, many, line, "amax")
t.bincount(many)
t.histc(line, 100)
a.index_put((some, some), line[:256])
a.masked_fill(mask, 0.0)
a[mask]
t.take_along_dim(a, places, 1)
F.one_hot(many[:5000], 1000)
mask.nonzero()
t.unique(many)
t.unique(many, return_inverse=True)[1]
t.unique_consecutive(many)
line.sort()[0]
a.sort(1)[0]
a.topk(10)[0]
a.kthvalue(5)[0]
a.median(1)[0]
line.median()
t.quantile(a, 0.3, dim=1)
(a * 10).long().mode(1)[0]
a.cummax(1)[0]
a.cumprod(1)
a.cumsum(0)
a.cumsum(1)
a.logcumsumexp(1)
t.searchsorted(sorted_line, a)
t.bucketize(a, bounds)
t.isin(many, some)
big.sum(0)
big.sum(1)
big.mean()
big.std(1)
big.amax(0)
big.argmax(1)
big.norm(dim=1)
big.logsumexp(1)
big.prod(1)
big.max(1)[0]
big.t().contiguous()
im.permute(0, 2, 3, 1).contiguous()
big.roll(3, 1)
big.flip(1)
big.rot90()
t.cat([big, big], 1)
t.stack([big, big], 2)
a.repeat(3, 3)
a.repeat_interleave(2, 1)
big.tril()
t.diag(line[:500])
t.where(mask, a, 1 - a)
big.clamp(0.2, 0.8)
t.outer(line[:1000], line[:1000])
t.cartesian_prod(hundred, hundred)
big @ big
batch @ batch
big @ big[0]
t.einsum("bhqd,bhkd->bhqk", q, q)
d q: F.scaled_dot_product_attention(q, q, q)
t.cdist(a, b)
t.kron(small, small[:8, :8])
t.linalg.inv(spd)
t.linalg.solve(spd, small)
t.linalg.cholesky(spd)
t.linalg.eigvalsh(spd)
t.linalg.svdvals(small)
t.linalg.det(spd)
t.linalg.matrix_exp(small / 64)
t.fft.fft(c).abs()
t.fft.rfft2(a).abs()
(c * c).real
t.randn(256, 256)
t.randperm(10000)
t.bernoulli(a)
F.dropout(big, 0.5)
d a: F.cross_entropy(a, some)
d a: F.binary_cross_entropy_with_logits(a, mask.float())
d a: F.mse_loss(a, b)
F.kl_div(a.log(), b)
F.cosine_similarity(a, b)
""".strip().splitlines()
UNLIKE = ("rand", "bernoulli", "dropout")
"""What has no result to compare."""
WORST = 15


def tensors(lib: Any) -> dict[str, Any]:
    """What the cases name, the same in each library."""
    draw = np.random.default_rng(0)

    def real(*shape: int) -> Any:
        return lib.tensor(draw.random(shape).astype(np.float32))

    def whole(most: int, *shape: int) -> Any:
        return lib.tensor(draw.integers(0, most, shape))

    found = dict(
        im=real(4, 16, 64, 64), vol=real(4, 8, 16, 16, 16), rows=real(16, 64, 100), seq=real(16, 100, 64), w=real(32, 16, 3, 3),
        dw=real(16, 1, 3, 3), wt=real(16, 32, 4, 4), w1=real(64, 64, 5), w3=real(16, 8, 3, 3, 3), grid=real(4, 32, 32, 2) * 2 - 1,
        a=real(256, 256), b=real(256, 256), big=real(1000, 1000), batch=real(16, 64, 64), q=real(4, 8, 64, 32), small=real(64, 64),
        line=real(100000), table=real(1000, 64), ids=whole(1000, 16, 100), some=whole(256, 256), places=whole(256, 256, 256),
        many=whole(1000, 100000), hundred=lib.arange(100), zeros=lib.zeros(256, 256), bounds=lib.linspace(0, 1, 50),
    )  # fmt: skip
    found["mask"], found["c"] = found["a"] > 0.5, lib.complex(found["a"], found["b"])
    found["spd"] = found["small"] @ found["small"].mT + 64 * lib.eye(64)
    found["order"], found["sorted_line"] = found["a"].argsort(1), found["line"].sort()[0]
    return {"t": lib, "F": lib.nn.functional, **found}


def case(text: str, names: dict[str, Any]) -> Callable[[], Any]:
    """A call of a case: it gives its result, or the gradient of what it is differentiated in."""
    asked, _, expression = text.rpartition(": ") if text.startswith("d ") else ("", "", text)
    body = compile(expression, "<case>", "eval")
    if not asked:
        return lambda: eval(body, names)
    first = asked.removeprefix("d ")
    own = {**names, first: names[first].clone().requires_grad_()}

    def run() -> Any:
        own[first].grad = None
        eval(body, own).sum().backward()
        return own[first].grad

    return run


def arguments(about: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="parts of cases; every case without any")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.02, help="how long a turn of one contender is")
    parser.add_argument("--json", help="write the figures to this file")
    return parser


def compared(options: argparse.Namespace, cases: dict[str, dict[str, Callable[[], Any]]]) -> None:
    """Time each case of every library; `cases` has for each what to call, which gives what waits for its result."""
    figures: dict[str, dict[str, Any]] = {}
    print(f"{'case':<62}{'us':>9}{'torch':>9}{'ratio':>7}")
    for text, calls in cases.items():
        times = measure(calls, options.turns, options.seconds)
        found: dict[str, Any] = {title: statistics.median(t) for title, t in times.items()}
        if "torch" in times:
            found["ratio"] = ratio(times, "xtensor", "torch")
        figures[text] = found
        theirs_told = f"{found['torch']:>9.0f}{found['ratio']:>7.1f}" if "torch" in found else ""
        print(f"{text:<62}{found['xtensor']:>9.0f}{theirs_told}", flush=True)
    ratios = [f["ratio"] for f in figures.values() if "ratio" in f]
    if ratios:
        print(f"\ngeometric mean {statistics.geometric_mean(ratios):.2f}; the slowest beside PyTorch:")
        for text in sorted(figures, key=lambda text: -figures[text]["ratio"])[:WORST]:
            print(
                f"{text:<62}{figures[text]['xtensor']:>9.0f}{figures[text]['torch']:>9.0f}{figures[text]['ratio']:>7.1f}"
            )
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=2)


def libraries() -> dict[str, Any]:
    """The contenders by their names; PyTorch on as many threads as there are cores of the benchmark's machines."""
    if torch is not None:
        torch.set_num_threads(2)
    return {"xtensor": xtensor} | ({} if torch is None else {"torch": torch})


def main(argv: list[str] | None = None) -> int:
    options = arguments(__doc__).parse_args(argv)
    names = {title: tensors(lib) for title, lib in libraries().items()}
    cases: dict[str, dict[str, Callable[[], Any]]] = {}
    for text in CASES:
        if options.words and not any(word in text for word in options.words):
            continue
        calls = {title: case(text, own) for title, own in names.items()}
        if torch is not None and not any(word in text for word in UNLIKE):
            ours, theirs = (np.asarray(call().detach()) for call in calls.values())
            np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-3, err_msg=text)
        cases[text] = {title: (lambda call=call: call().detach().numpy) for title, call in calls.items()}
    compared(options, cases)
    return 0


if __name__ == "__main__":
    sys.exit(main())

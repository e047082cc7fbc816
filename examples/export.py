"""A classifier of digits, trained here, exported three ways, and served each time by a fresh process without xtensor.

    python examples/export.py

The three ways: one file that plain JAX reads, an ONNX model for onnxruntime, and a pure function of JAX's, kept as JAX keeps functions. It
needs the extras `examples`, `export` and `onnx`.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import jax
import numpy as np
from jax import export as jax_export
from sklearn.datasets import load_digits

import xtensor as torch
from xtensor import nn
from xtensor.nn import functional as F

EPOCHS = 20


def digits():
    """Images (N, 1, 8, 8) and labels, in a fixed order: the last fifth is for tests."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    images = torch.from_numpy((data.data[order] / 16).astype(np.float32)).reshape(-1, 1, 8, 8)
    return images, torch.from_numpy(data.target[order].astype(np.int64))


def trained(images, labels):
    """A small convolutional network."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(32, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    @torch.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    for epoch in range(EPOCHS):
        for start in range(0, len(images) - 127, 128):
            loss = step(images[start : start + 128], labels[start : start + 128])
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1}: loss {loss.item():.3f}")
    return model.eval()


# What the fresh processes run: each imports neither xtensor nor PyTorch, and says so.
SERVERS = {
    "one file, by plain JAX": """
import zipfile, jax
from jax import export
from safetensors.numpy import load
with zipfile.ZipFile("digits.xtx") as file:
    program = export.deserialize(bytearray(file.read("export/program.jax")))
    weights = load(file.read("export/weights.safetensors"))
with jax.enable_x64(True):
    (scores,), _ = program.call(weights, [images])
""",
    "ONNX, by onnxruntime": """
import onnxruntime
session = onnxruntime.InferenceSession("digits.onnx", providers=["CPUExecutionProvider"])
(scores,) = session.run(["scores"], {"images": images})
""",
    "a pure function, by plain JAX": """
from jax import export
program = export.deserialize(bytearray(open("digits.jax", "rb").read()))
parameters = dict(np.load("parameters.npz"))
scores = program.call(parameters, images)
""",
}
AROUND = """
import sys, time
sys.modules["xtensor"] = sys.modules["torch"] = None
import numpy as np
images = np.load("images.npy")
{serve}
np.save("scores.npy", np.asarray(scores))
"""


def main():
    """Train, export, serve, compare."""
    images, labels = digits()
    count = len(images) * 4 // 5
    model = trained(images[:count], labels[:count])
    test, truth = images[count:], labels[count:]
    with torch.no_grad():
        expected = model(test).numpy()
    report = {"accuracy": float((expected.argmax(1) == truth.numpy()).mean())}
    print(f"accuracy {report['accuracy']:.3f}")
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        np.save(place / "images.npy", test.numpy())
        batch = torch.export.Dim("batch", min=2)
        program = torch.export.export(model, (test[:4],), dynamic_shapes=({0: batch},))
        torch.export.save(program, place / "digits.xtx")
        torch.onnx.export(
            model, (test[:4],), place / "digits.onnx", input_names=["images"], output_names=["scores"], dynamic_axes={"images": {0: "batch"}}
        )  # fmt: skip
        function, parameters = torch.jax.to_jax(model)
        shapes = jax.tree.map(
            lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), (parameters, jax.numpy.asarray(test.numpy()))
        )
        (place / "digits.jax").write_bytes(jax_export.export(jax.jit(function))(*shapes).serialize())
        np.savez(place / "parameters.npz", **parameters)
        for way, serve in SERVERS.items():
            subprocess.run([sys.executable, "-c", AROUND.format(serve=serve)], cwd=place, check=True)
            apart = float(np.abs(np.load(place / "scores.npy") - expected).max())
            report[way] = apart
            print(f"{way}: differs by at most {apart:.1e}")
    return report


if __name__ == "__main__":
    report = main()
    print(json.dumps(report))
    assert report["accuracy"] > 0.9 and all(
        apart < 1e-4 for way, apart in report.items() if way != "accuracy"
    )

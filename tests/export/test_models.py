"""Whole models exported both ways: a few here, all by `python -m tests.export.models` and with `--full`."""

import pytest

from tests.export import models
from tests.export.architectures import MODELS

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("flatbuffers")
pytest.importorskip("safetensors")

FEW = ("t5", "graph_convolution", "swin")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in FEW else [pytest.mark.full]) for n in MODELS]
)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_models_run_by_onnxruntime_at_other_sizes(name):
    assert max(models.by_onnx(models.built(name)).values()) <= models.BOUND


def test_models_run_by_plain_jax_where_xtensor_cannot_be_imported():
    found = models.by_jax({name: models.built(name) for name in ("t5", "graph_convolution")})
    assert all(max(calls.values()) <= models.BOUND for calls in found.values())


def test_there_are_the_models_that_are_promised():
    assert len(MODELS) >= 25

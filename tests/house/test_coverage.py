"""How much of PyTorch's public names is here, and that docs/coverage.md says so."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import coverage as names  # noqa: E402

# What issue and documentation promise of all namespaces together, and of each.
ALL, EACH = 0.90, 0.80


@pytest.fixture(scope="module")
def found():
    return {c.namespace: c for c in names.coverage()}


def test_nine_tenths_of_the_names_are_here(found):
    present = sum(len(c.present) for c in found.values())
    counted = present + sum(len(c.absent) - c.excused for c in found.values())
    assert present / counted >= ALL
    low = {c.namespace: round(c.share, 3) for c in found.values() if c.share < EACH}
    assert not low


def test_the_list_is_that_of_pytorch(torch):
    listed = names.SYMBOLS.read_text("utf-8")
    if listed.splitlines()[0] != f"# PyTorch {torch.__version__.split('+')[0]}":
        pytest.skip("another version of PyTorch is installed than the list is of")
    # Modules that other tests have imported are names of their packages too.
    missing = set(listed.splitlines()) - set(names.collect().splitlines())
    assert not missing


def test_reasons_are_those_of_absent_names_only(found):
    assert found["torch"].absent["cudnn_convolution"] in names.EXCUSED
    assert found["torch"].absent["ScriptModule"] in names.EXCUSED
    assert "relu" in found["torch"].present and "relu" in found["torch.nn.functional"].present
    assert names.reason("no_such_name_at_all") == ""

"""The counts of training steps: those of one model are those of the table, and a change of any is told."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import counts  # noqa: E402  # pyright: ignore[reportMissingImports]
import suite  # noqa: E402  # pyright: ignore[reportMissingImports]
import turns  # noqa: E402  # pyright: ignore[reportMissingImports]

sys.path.remove(str(ROOT / "benchmarks"))


def test_a_models_counts_are_those_of_the_table() -> None:
    kept = json.loads(counts.TABLE.read_text("utf-8"))
    assert kept.keys() == {*counts.CASES}
    worse, _ = counts.changes(kept, {"mlp-32x64-sgd": counts.apart("mlp-32x64-sgd")})
    assert worse == []


@pytest.mark.parametrize(
    ("what", "number", "worse", "better"),
    [
        ("launches", 10, 0, 0),
        ("launches", 11, 1, 0),
        ("launches", 9, 0, 1),
        ("kept", 3, 1, 0),
        ("kept", 5, 0, 1),
        ("bytes held", 1009, 0, 0),
        ("bytes held", 1011, 1, 0),
        ("bytes held", 980, 0, 1),
    ],
)
def test_changes_are_told(what: str, number: int, worse: int, better: int) -> None:
    kept = {"a": {"launches": 10, "kept": 4, "bytes held": 1000}}
    found = {"a": {**kept["a"], what: number}}
    assert [*map(len, counts.changes(kept, found))] == [worse, better]


def test_what_the_table_has_not_is_worse() -> None:
    assert counts.changes({}, {"a": {}}) == (["a is not in the table"], [])
    assert counts.changes({"a": {}}, {"a": {"launches": 1}}) == (["a: launches None -> 1"], [])


def test_a_trace_without_launches_is_refused() -> None:
    with pytest.raises(RuntimeError, match="must learn its name"):
        counts.launches_and_copies(counts.collections.Counter({"other": 3}))


def test_an_interval_holds_the_ratio_and_narrows_with_the_noise() -> None:
    quiet = {"a": [2.0, 2.02, 1.98] * 3, "b": [1.0, 1.01, 0.99] * 3}
    noisy = {"a": [2.0, 3.0, 1.0] * 3, "b": [1.6, 0.5, 1.0] * 3}
    for found, widest in ((quiet, 0.1), (noisy, 6.0)):
        low, high = turns.interval(found, "a", "b")
        assert low - 1e-9 <= 2.0 <= high + 1e-9
        assert high - low < widest
    assert turns.interval(noisy, "a", "b") == turns.interval(noisy, "a", "b")
    low, high = turns.interval(noisy, "a", "b")
    assert high - low > 0.5


def test_a_verdict_waits_until_the_interval_is_on_one_side() -> None:
    def verdict(ratio: float, within: tuple[float, float] | None) -> str:
        return suite.Row("kernels", "gelu", "torch", ratio, 1.5, within).verdict

    assert verdict(1.4, (1.3, 1.45)) == "holds"
    assert verdict(1.4, (1.3, 1.6)) == verdict(1.6, (1.4, 1.8)) == "unclear"
    assert verdict(1.6, (1.55, 1.8)) == verdict(1.6, None) == "**missed**"
    assert suite.Row("kernels", "gelu", "torch", 1.6, None).verdict == ""


def test_machines_stand_side_by_side() -> None:
    def machine(cores: int, ratio: float) -> dict[str, object]:
        about = {
            "processor": "Some(R) CPU 3000 @ 2 GHz",
            "cores": cores,
            "python": "3",
            "jax": "0",
            "torch": "2",
        }
        figures = {"ratio": ratio, "turns": {"xtensor": [ratio] * 3, "torch": [1.0] * 3}}
        return {"about": about, "kernels": {"gelu": figures}}

    one, two = machine(2, 1.25), machine(64, 1.75)
    assert suite.machine_name(one["about"]) == "some-3000-2-cores"
    text = suite.markdown({"one": one, "two": two})
    assert (
        "| kernels | gelu | torch | 1.50 | 1.25 [1.25, 1.25] | holds | 1.75 [1.75, 1.75] | **missed** |"
        in text
    )
    assert "- `two`: 64 cores of Some(R) CPU 3000" in text

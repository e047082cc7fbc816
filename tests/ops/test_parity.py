"""Operators against PyTorch's own description of them: a sample of the pairs that are committed as agreeing.

`--full` runs every pair. `python -m tests.parity` runs any part of it and prints tables (see `tests/parity/__init__.py`).
"""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[parity]'")
pytest.importorskip("expecttest", reason="PyTorch's OpInfo database needs it: pip install -e '.[parity]'")

from tests.parity import compare, entries, facets, report, worker  # noqa: E402
from tests.parity.__main__ import jobs_for  # noqa: E402

SAMPLED = 40  # pairs of a sampled run
COMMITTED = sorted((name, label) for name, labels in report.committed().items() for label in labels)


def chosen(full: bool) -> list[tuple[str, str]]:
    """All pairs, or some that stay the same while the list grows: those whose names hash lowest."""
    if full:
        return COMMITTED
    return sorted(COMMITTED, key=lambda pair: zlib.crc32(" ".join(pair).encode()))[:SAMPLED]


@pytest.mark.timeout(7200)  # a full run judges every pair
def test_committed_pairs_agree(full: bool, capsys: pytest.CaptureFixture[str]):
    pairs = chosen(full)
    wanted: dict[tuple[str, str], None] = dict.fromkeys(pairs)
    jobs = [job for name, label in pairs for job in jobs_of(name, label)]
    verdicts: list[worker.Verdict] = []
    if full:
        worker.run_jobs(jobs, 2, 300, verdicts.append)
    else:
        for job in jobs:
            subject = facets.Subject(entries.entries()[job.name], job.dtype)
            for facet in job.facets:
                status, detail, samples = facets.run(subject, facet)
                verdicts.append(worker.Verdict(job.name, job.dtype, facet, status, detail, samples))
    assert {report.pair_of(verdict) for verdict in verdicts} == set(wanted)
    differing = [f"{v.name} {v.dtype} {v.facet}: {v.detail}" for v in verdicts if v.status == "differ"]
    assert differing == []


def jobs_of(name: str, label: str) -> list[worker.Job]:
    """The runs that a pair stands for."""
    if label in ("errors", "gradgrad"):
        return jobs_for([name], [], [label], False)
    return jobs_for([name], [label], list(facets.FACETS)[:5], False)


def test_every_entry_is_counted_or_left_out_with_a_reason():
    held = json.loads(report.AGREEING.read_text("utf-8"))
    for name, entry in entries.entries().items():
        counted = name in held["agreeing"] or name in held["differing"]
        assert counted != bool(entries.left_out(name) or not entries.dtypes_of(entry)), name


def test_no_reason_is_stale():
    names = list(entries.entries())
    for pattern in entries.REASONS:
        assert any(entries.matches(name, (pattern,)) for name in names), pattern


# The judge must be able to fail.


def subject_with(monkeypatch: pytest.MonkeyPatch, name: str, function) -> facets.Subject:
    subject = facets.Subject(entries.entries()[name], "float32")
    monkeypatch.setattr(subject, "ours", lambda: function)
    return subject


def test_a_wrong_value_is_found(monkeypatch):
    xtensor = facets.xtensor
    subject = subject_with(monkeypatch, "tanh", lambda x, **kw: xtensor.tanh(x) * 1.0001)
    assert facets.run(subject, "forward")[0] == "differ"


def test_a_wrong_dtype_is_found(monkeypatch):
    subject = subject_with(monkeypatch, "tanh", lambda x, **kw: facets.xtensor.tanh(x).double())
    assert "float64[" in facets.run(subject, "forward")[1]


def test_a_wrong_gradient_is_found(monkeypatch):
    def half(x, **kw):
        y = facets.xtensor.tanh(x)
        return (y + y.detach()) / 2

    subject = subject_with(monkeypatch, "tanh", half)
    assert facets.run(subject, "forward")[0] == "agree"
    assert facets.run(subject, "gradient")[1].startswith("gradient 0")


def test_a_missing_operator_is_found(monkeypatch):
    monkeypatch.delattr(facets.xtensor, "tanh")
    subject = facets.Subject(entries.entries()["tanh"], "float32")
    assert facets.run(subject, "forward") == ("differ", "missing: xtensor.tanh", 0)


def test_an_error_of_another_class_is_found(monkeypatch):
    def wrong(*args, **kwargs):
        raise ValueError("no")

    subject = subject_with(monkeypatch, "cat", wrong)
    assert "ValueError: no; expected" in facets.run(subject, "errors")[1]


def test_numbers_of_another_distribution_are_found(rng: np.random.Generator):
    draws = [rng.normal(size=4000) for _ in range(3)]
    compare.drawn_alike(draws[:1], draws[1:2])
    with pytest.raises(compare.Difference, match="another distribution"):
        compare.drawn_alike(draws[:1], [draws[2] * 2])


def test_rounding_is_judged_against_double_precision():
    exact = np.linspace(1, 2, 50) * 1e4
    theirs = (exact * (1 + 3e-6)).astype(np.float32)
    assert compare.near((exact * (1 - 3e-6)).astype(np.float32), theirs, exact, "float32")
    assert not compare.near((exact * (1 - 3e-5)).astype(np.float32), theirs, exact, "float32")


def test_a_process_that_ends_costs_its_entry_only():
    """A worker is given an unknown entry, which ends it, and then a real one."""
    from tests.parity.__main__ import settings

    settings()
    verdicts: list[worker.Verdict] = []
    jobs = [worker.Job("no such entry", "float32", ("forward",)), worker.Job("neg", "float32", ("forward",))]
    worker.run_jobs(jobs, 1, 120, verdicts.append)
    assert [(v.name, v.status) for v in verdicts] == [("no such entry", "differ"), ("neg", "agree")]
    assert "ended the process" in verdicts[0].detail

"""Verdicts as tables, as JSON, and as the committed list of what agrees."""

from __future__ import annotations

import json
import pathlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from .entries import DTYPES, REASONS, entries, family, matches
from .worker import Verdict

__all__ = ["AGREEING", "as_json", "record", "regressions", "tables"]

AGREEING = pathlib.Path(__file__).with_name("agreeing.json")
FACETS = ("forward", "gradient", "inplace", "out", "method", "errors", "gradgrad")


def pair_of(verdict: Verdict) -> tuple[str, str]:
    """What a verdict counts towards: an entry in a dtype, or its errors, or its second derivatives."""
    label = verdict.facet if verdict.facet in ("errors", "gradgrad") else verdict.dtype
    return verdict.name, label


def pairs(verdicts: Iterable[Verdict]) -> dict[tuple[str, str], bool]:
    """Whether each pair agrees in every facet that applies; pairs to which none applies are left away."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for verdict in verdicts:
        found[pair_of(verdict)].append(verdict.status)
    return {pair: "differ" not in statuses for pair, statuses in found.items() if set(statuses) != {"none"}}


def rate(agreeing: int, total: int) -> str:
    return f"{agreeing} of {total} ({100 * agreeing / total:.1f} %)" if total else "-"


def table(head: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [head, *rows]
    ]
    return "\n".join(lines)


def counts(verdicts: Iterable[Verdict]) -> dict[str, dict[str, tuple[int, int]]]:
    """Per family and facet: entries that agree (in every dtype run) and entries that the facet applies to."""
    statuses: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.status != "none":
            statuses[family(entries()[verdict.name]), verdict.facet, verdict.name].append(verdict.status)
    made: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for (group, facet, _), found in statuses.items():
        for key in (group, "all"):
            made[key][facet][0] += "differ" not in found
            made[key][facet][1] += 1
    return {group: {facet: (n[0], n[1]) for facet, n in row.items()} for group, row in made.items()}


def tables(verdicts: list[Verdict], names: list[str]) -> str:
    """A table per family, totals per facet and per dtype, and what was left out."""
    parts = []
    found = counts(verdicts)
    rows = []
    for group in sorted(found, key=lambda g: (g == "all", g)):
        cells = [found[group].get(facet, (0, 0)) for facet in FACETS]
        rows.append([group, *(f"{a}/{n}" if n else "-" for a, n in cells)])
    parts.append(table(["family", *FACETS], rows))
    agreed = pairs(verdicts)
    lines = []
    for label in (*DTYPES, "errors", "gradgrad"):
        values = [ok for (_, of), ok in agreed.items() if of == label]
        if values:
            lines.append([label, rate(sum(values), len(values))])
    parts.append(table(["pairs of", "agree in every facet"], lines))
    absent = [[p, r] for p, r in REASONS.items() if any(matches(name, (p,)) for name in names)]
    if absent:
        parts.append(table(["left out", "because"], absent))
    return "\n\n".join(parts)


def as_json(verdicts: list[Verdict]) -> dict[str, Any]:
    return {"verdicts": [asdict(verdict) for verdict in verdicts], "totals": totals(verdicts)}


def totals(verdicts: list[Verdict]) -> dict[str, Any]:
    """Agreeing and all: of pairs per dtype, and of entries per family and facet."""
    agreed = pairs(verdicts)
    per_label = {}
    for label in (*DTYPES, "errors", "gradgrad"):
        values = [ok for (_, of), ok in agreed.items() if of == label]
        if values:
            per_label[label] = [sum(values), len(values)]
    first = [v for v in verdicts if v.dtype == "float32" or v.facet in ("errors", "gradgrad")]
    return {
        "pairs": per_label,
        "float32": {group: {f: list(n) for f, n in row.items()} for group, row in counts(first).items()},
    }


def record(verdicts: list[Verdict]) -> None:
    """Write the committed file: totals, what agrees, and what differs with its first difference."""
    agreeing: dict[str, list[str]] = defaultdict(list)
    differing: dict[str, dict[str, str]] = defaultdict(dict)
    details: dict[tuple[str, str], str] = {}
    for verdict in verdicts:
        if verdict.status == "differ":
            details.setdefault(pair_of(verdict), f"{verdict.facet}: {verdict.detail}")
    order = {label: i for i, label in enumerate((*DTYPES, "errors", "gradgrad"))}
    for (name, label), ok in sorted(
        pairs(verdicts).items(), key=lambda item: (item[0][0], order[item[0][1]])
    ):
        if ok:
            agreeing[name].append(label)
        else:
            differing[name][label] = details[name, label][:200]
    held = {
        "totals": totals(verdicts),
        "agreeing": {name: " ".join(labels) for name, labels in agreeing.items()},
        "differing": differing,
    }
    AGREEING.write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n", "utf-8")


def committed() -> dict[str, set[str]]:
    """The pairs that must agree."""
    if not AGREEING.exists():
        return {}
    held = json.loads(AGREEING.read_text("utf-8"))["agreeing"]
    return {name: set(labels.split()) for name, labels in held.items()}


def regressions(verdicts: list[Verdict]) -> list[str]:
    """Pairs of the committed list that were run and differ."""
    known = committed()
    return [
        f"{name} ({label})"
        for (name, label), ok in pairs(verdicts).items()
        if not ok and label in known.get(name, ())
    ]

"""What a check found: as a table, in a notebook, and as JSON."""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jaxlib.version

from .. import devices

__all__ = ["Finding", "Report"]

Verdict = Literal["right", "wrong", "failed", "refused", "unsupported"]
ORDER: tuple[str, ...] = ("right", "refused", "unsupported", "failed", "wrong")


@dataclass(frozen=True)
class Finding:
    """One operator in one dtype.

    verdict: "right" within the bound, "wrong" beyond it, "failed" with an error that says nothing about the dtype,
        "refused" by the operator as PyTorch refuses, "unsupported" by the device.
    ulps: the largest error in units in the last place (inf: another number, NaN or shape altogether). bound: how much
        is allowed. reference: "NumPy" (or SciPy), or "kernel": the operator's own in float64, unoptimised.
    detail: the error's text.
    """

    operator: str
    dtype: str
    verdict: str
    ulps: float
    bound: float
    reference: str
    detail: str

    def but(self, **changes: Any) -> Finding:
        """The same with other values."""
        return dataclasses.replace(self, **changes)

    @property
    def badness(self) -> tuple[int, float]:
        """What sorts findings: the verdict, then how much of the bound is taken."""
        return ORDER.index(self.verdict), self.ulps / self.bound

    @property
    def cell(self) -> str:
        """The finding as a table shows it."""
        if self.verdict in ("refused", "unsupported", "failed"):
            return self.verdict
        text = "exact" if self.ulps == 0 else "other" if math.isinf(self.ulps) else f"{self.ulps:.3g}"
        return f"WRONG {text}" if self.verdict == "wrong" else text


@dataclass(frozen=True)
class Report:
    """What a device makes of the operators. Prints as a table, the worst first, also in a notebook."""

    device: devices.device
    findings: tuple[Finding, ...]
    seconds: float

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """What is wrong or failed, the worst first."""
        bad = [f for f in self.findings if f.verdict in ("wrong", "failed")]
        return tuple(sorted(bad, key=lambda f: f.badness, reverse=True))

    @property
    def dtypes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(f.dtype for f in self.findings))

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The table's lines: operator, a cell for each dtype, and what it was compared with."""
        groups: dict[str, dict[str, Finding]] = {}
        for finding in self.findings:
            groups.setdefault(finding.operator, {})[finding.dtype] = finding
        worst = sorted(groups.items(), key=lambda g: max(f.badness for f in g[1].values()), reverse=True)
        for name, found in worst:
            cells = [found[d].cell if d in found else "" for d in self.dtypes]
            yield (name, *cells, next(iter(found.values())).reference)

    @property
    def title(self) -> str:
        """What was checked, and on what."""
        known = devices.properties(self.device)
        return (
            f"{len({f.operator for f in self.findings})} operators on {self.device} ({known.name}, "
            f"{known.platform_version.splitlines()[0]}; jax {jax.__version__}, jaxlib {jaxlib.version.__version__}) "
            f"in {self.seconds:.0f} s; errors in units in the last place"
        )

    @property
    def summary(self) -> str:
        """How many findings there are of each kind."""
        counts = {v: sum(f.verdict == v for f in self.findings) for v in ORDER}
        return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)

    def __str__(self) -> str:
        lines = [("operator", *self.dtypes, "against"), *self.rows()]
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        table = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        errors = [f"{f.operator} in {f.dtype}: {f.detail}" for f in self.wrong if f.detail]
        return "\n".join([self.title, "", *table, "", *errors, self.summary])

    def _repr_html_(self) -> str:
        def row(cells: tuple[str, ...], tag: str) -> str:
            def cell(text: str) -> str:
                bad = text.startswith("WRONG") or text == "failed"
                return f"<{tag} style='text-align:left'>{'<b>' if bad else ''}{html.escape(text)}{'</b>' if bad else ''}</{tag}>"

            return f"<tr>{''.join(map(cell, cells))}</tr>"

        head = row(("operator", *self.dtypes, "against"), "th")
        body = "".join(row(cells, "td") for cells in self.rows())
        return (
            f"<p>{html.escape(self.title)}</p><table>{head}{body}</table><p>{html.escape(self.summary)}</p>"
        )

    def as_dict(self) -> dict[str, Any]:
        """All of it as what JSON can hold; an infinite error is the text "inf"."""
        known = devices.properties(self.device)
        return {
            "device": str(self.device),
            "name": known.name,
            "platform": known.platform,
            "platform_version": known.platform_version,
            "jax": jax.__version__,
            "jaxlib": jaxlib.version.__version__,
            "seconds": round(self.seconds, 1),
            "findings": [
                dataclasses.asdict(f) | {"ulps": f.ulps if math.isfinite(f.ulps) else "inf"}
                for f in self.findings
            ],
        }

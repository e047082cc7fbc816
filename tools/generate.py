"""Write what is generated from the operators' declarations: stubs, reference pages, tables in other pages.

python tools/generate.py            write what has changed
python tools/generate.py --check    write nothing; say what is stale, and fail if anything is
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import architecture  # noqa: E402
import coverage  # noqa: E402
import differences  # noqa: E402
import errors_page  # noqa: E402
import reference  # noqa: E402
import stubs  # noqa: E402


def wanted() -> dict[pathlib.Path, str]:
    """Every generated file and its text."""
    files = {
        ROOT / "xtensor" / "functions.pyi": stubs.functions(),
        ROOT / "xtensor" / "methods.pyi": stubs.methods(),
        ROOT / "xtensor" / "return_types.pyi": stubs.return_types(),
    }
    files |= {ROOT / "xtensor" / name: text for name, text in stubs.stubbed().items()}
    files |= {ROOT / "docs" / "reference" / name: text for name, text in reference.pages().items()}
    files[ROOT / "docs" / "reference" / "errors.md"] = errors_page.page()
    files[ROOT / "docs" / "coverage.md"] = coverage.page()
    held = json.loads((ROOT / "tests" / "parity" / "agreeing.json").read_text("utf-8"))
    page = ROOT / "docs" / "agreement.md"
    files[page] = between(page.read_text("utf-8"), "parity", parity_tables(held["totals"]))
    files[ROOT / "docs" / "coming_from_pytorch.md"] = differences.page()
    page = ROOT / "docs" / "architecture.md"
    text = page.read_text("utf-8")
    for name, section in architecture.sections().items():
        text = between(text, name, section)
    files[page] = text
    return files


def parity_tables(totals: dict[str, Any]) -> str:
    """What agreed with PyTorch when the list was last recorded: per dtype, and per family and facet."""
    lines = ["| compared in | agree | of | |", "|---|---|---|---|"]
    named = {"errors": "errors of bad input", "gradgrad": "second derivatives"}
    for label, (agreeing, total) in totals["pairs"].items():
        share = f"{100 * agreeing / total:.1f} %"
        lines.append(f"| {named.get(label, f'`{label}`')} | {agreeing} | {total} | {share} |")
    rows = totals["float32"]
    facets = list(rows["all"])
    lines += ["", "| family, in float32 | " + " | ".join(facets) + " |", "|---" * (len(facets) + 1) + "|"]
    for family in sorted(rows, key=lambda name: (name == "all", name)):
        cells = (rows[family].get(facet) for facet in facets)
        shown = (f"{cell[0]} of {cell[1]}" if cell else "" for cell in cells)
        lines.append(f"| {family} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def between(text: str, name: str, table: str) -> str:
    """The text with what stands between the markers of a name replaced."""
    first, last = f"<!-- generated: {name} -->", "<!-- end of generated -->"
    head, begin, rest = text.partition(first)
    _, end, tail = rest.partition(last)
    if not begin or not end:
        raise SystemExit(f"a page has lost its markers {first} and {last}")
    return f"{head}{first}\n{table}{last}{tail}"


def stale(files: dict[pathlib.Path, str]) -> list[pathlib.Path]:
    """The files whose text is not what it should be, and pages of families that are gone."""
    changed = [path for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text]
    gone = [path for path in (ROOT / "docs" / "reference").glob("*.md") if path not in files]
    return changed + gone


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only say what is stale")
    options = parser.parse_args(arguments)
    files = wanted()
    changed = stale(files)
    for path in changed:
        print(
            f"{'stale' if options.check else 'wrote' if path in files else 'deleted'}: {path.relative_to(ROOT)}"
        )
        if options.check:
            continue
        if path in files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], "utf-8")
        else:
            path.unlink()
    if options.check and changed:
        print("run: python tools/generate.py")
    return int(options.check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())

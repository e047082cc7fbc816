"""Notebooks with their outputs, run once for each state of the library: for the site, and for the tests.

python tools/notebooks.py                    run all that were not run with these sources
python tools/notebooks.py NOTEBOOK.ipynb     one
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import os
import pathlib
import re
import sys
import time
from typing import Any

import nbclient
import nbformat

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / ".cache" / "notebooks"
NOTEBOOKS = [ROOT / "examples" / "tour.ipynb", *sorted((ROOT / "examples" / "tutorials").glob("*.ipynb"))]
# Packages without which a notebook cannot be run.
NEEDS = {"hugging_face": "transformers"}


@functools.cache
def sources() -> bytes:
    """A digest of the library's sources."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "xtensor").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


def place(path: pathlib.Path) -> pathlib.Path:
    """Where the outputs of a notebook are kept."""
    digest = hashlib.sha256(sources() + path.read_bytes()).hexdigest()[:16]
    return KEPT / f"{path.stem}-{digest}.ipynb"


def executed(path: pathlib.Path) -> Any:
    """The notebook with its outputs; an exception of the first cell that fails."""
    kept = place(path)
    if not kept.exists():
        notebook = nbformat.read(path, 4)
        inherited = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), inherited]))
        try:
            nbclient.NotebookClient(notebook, timeout=250, kernel_name="python3").execute()
        finally:
            if inherited is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = inherited
        kept.parent.mkdir(parents=True, exist_ok=True)
        for old in KEPT.glob(f"{path.stem}-*.ipynb"):
            old.unlink()
        nbformat.write(notebook, kept)
    return nbformat.read(kept, 4)


def page(path: pathlib.Path, run: bool = True) -> str:
    """A notebook as Markdown, with its outputs where it was run before, or `run` allows it."""
    missing = NEEDS.get(path.stem)
    runs = place(path).exists() or (run and (missing is None or importable(missing)))
    notebook = executed(path) if runs else nbformat.read(path, 4)
    parts: list[str] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.source:
            parts.append(f"```python\n{cell.source}\n```")
            parts += [shown(output) for output in cell.get("outputs", ())]
    where = path.relative_to(ROOT).as_posix()
    parts.insert(
        1, f"*This page is the notebook `{where}`{', run when the site was built' if runs else ''}.*"
    )
    return "\n\n".join(filter(None, parts)) + "\n"


def importable(package: str) -> bool:
    """Whether a package is installed."""
    return any((pathlib.Path(folder) / package).exists() for folder in sys.path if folder)


def shown(output: Any) -> str:
    """What a cell gave, as Markdown: a picture, a table, or text."""
    data = output.get("data", {})
    if output.get("name") == "stderr":
        return ""
    if "image/png" in data:
        return f'<img alt="" class="output" src="data:image/png;base64,{"".join(data["image/png"].split())}">'
    if "image/svg+xml" in data and "text/html" not in data:
        code = base64.b64encode(data["image/svg+xml"].encode()).decode()
        return f'<img alt="" class="output" src="data:image/svg+xml;base64,{code}">'
    if "text/html" in data:
        flat = re.sub(r"\n\s*\n", "\n", data["text/html"])
        return f'<div class="output">{flat}</div>'
    text = output.get("text") or data.get("text/plain", "")
    return f'<pre class="output">{html.escape(text.rstrip())}</pre>'.replace("\n", "&#10;") if text else ""


def main(arguments: list[str]) -> int:
    """Run notebooks, and say how long each took."""
    for path in [pathlib.Path(name).resolve() for name in arguments] or NOTEBOOKS:
        if (missing := NEEDS.get(path.stem)) and not importable(missing):
            print(f"{path.stem}: not run, {missing} is not installed")
            continue
        begun = time.perf_counter()
        executed(path)
        print(f"{path.stem}: {time.perf_counter() - begun:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

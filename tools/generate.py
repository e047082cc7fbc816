"""Write what is generated from the operators' declarations: stubs, reference pages, the README's table.

python tools/generate.py            write what has changed
python tools/generate.py --check    write nothing; say what is stale, and fail if anything is
"""

from __future__ import annotations

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import reference  # noqa: E402
import stubs  # noqa: E402

BEGIN, END = "<!-- generated: operators -->", "<!-- end of generated -->"


def wanted() -> dict[pathlib.Path, str]:
    """Every generated file and its text."""
    files = {
        ROOT / "xtensor" / "functions.pyi": stubs.functions(),
        ROOT / "xtensor" / "methods.pyi": stubs.methods(),
    }
    files |= {ROOT / "docs" / "reference" / name: text for name, text in reference.pages().items()}
    readme = ROOT / "README.md"
    files[readme] = between(readme.read_text("utf-8"), reference.table("docs/reference/", names=False))
    return files


def between(text: str, table: str) -> str:
    """The text with what stands between the markers replaced."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"README.md has lost its markers {BEGIN} and {END}")
    return f"{head}{BEGIN}\n{table}{END}{tail}"


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

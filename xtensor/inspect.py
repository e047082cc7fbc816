"""`python -m xtensor.inspect FILE`: what is in a checkpoint, without loading it."""

from __future__ import annotations

import argparse
import json
import pickle
import sys
from collections.abc import Iterator

from .serialization.contents import Contents, Entry, describe
from .serialization.errors import FileFormatError

__all__ = ["main", "report"]


def main(arguments: list[str] | None = None) -> int:
    """The command; 0 where the file could be read, 1 where not."""
    parser = argparse.ArgumentParser(
        prog="python -m xtensor.inspect",
        description="What is in a checkpoint (PyTorch, safetensors, .npz): names, sizes, types, sharing, and the globals "
        "that loading it would refuse. Nothing in the file is run, and no tensor is read.",
    )
    parser.add_argument("file", nargs="+", help="a file, or the index of a checkpoint in shards")
    parser.add_argument("--json", action="store_true", help="one JSON object per file")
    options = parser.parse_args(arguments)
    failed = False
    for path in options.file:
        try:
            contents = describe(path)
        except (
            OSError,
            FileFormatError,
            RuntimeError,
            ValueError,
            EOFError,
            pickle.UnpicklingError,
            ImportError,
        ) as error:
            print(f"{path}: {error}", file=sys.stderr)
            failed = True
            continue
        if options.json:
            print(json.dumps({"file": path, **contents.as_dict()}))
        else:
            print(f"{path}: " + "\n".join(report(contents)))
    return int(failed)


def report(contents: Contents) -> Iterator[str]:
    """The lines for a reader."""
    total = sum(contents.storages.values())
    yield (
        f"{contents.format}, {contents.size:,} bytes; {len(contents.tensors)} tensors in {len(contents.storages)} "
        f"storages of {total:,} bytes"
    )
    for key, value in contents.metadata.items():
        yield f"  {key} = {shortened(value)}"
    widths = [max((len(cell) for cell in column), default=0) for column in zip(*map(row, contents.tensors))]
    for entry in contents.tensors:
        cells = row(entry)
        yield (
            "  "
            + "  ".join(
                cell.rjust(width) if i == 3 else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(cells, widths))
            ).rstrip()
        )
    for key, names in contents.shared().items():
        yield f"shared: storage {key} of {contents.storages.get(key, 0):,} bytes by {', '.join(map(shortened, names))}"
    if contents.values:
        kinds: dict[str, int] = {}
        for kind in contents.values.values():
            kinds[kind] = kinds.get(kind, 0) + 1
        yield "other values: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    for refused in contents.refused:
        times = f", {refused.count} times" if refused.count > 1 else ""
        yield f"refused: {refused.name} ({refused.where}{times})"


def row(entry: Entry) -> tuple[str, ...]:
    marks = [
        "Parameter" if entry.parameter else "requires_grad" if entry.requires_grad else "",
        "" if entry.location == "cpu" else entry.location,
        "" if entry.stride is None else f"stride={entry.stride}",
        f"offset={entry.offset}" if entry.offset else "",
    ]
    sizes = "x".join(map(str, entry.shape)) or "()"
    return shortened(entry.name), entry.dtype, sizes, f"{entry.nbytes:,}", " ".join(filter(None, marks))


def shortened(text: str) -> str:
    """One line of text, safe to print on a terminal."""
    plain = text if text.isprintable() else repr(text)[1:-1]
    return plain if len(plain) <= 100 else f"{plain[:97]}..."


if __name__ == "__main__":
    sys.exit(main())

"""Checkpoints in parts to and from single files: `python -m xtensor.distributed.checkpoint.format_utils dcp_to_torch FOLDER FILE`."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
from typing import Any

from ...serialization import load as load_file
from ...serialization import save as save_file
from .saving import save, whole

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(
    dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]
) -> None:
    """Write a checkpoint in parts, PyTorch's or xtensor's, as one file that `load` of both libraries reads."""
    save_file(whole(pathlib.Path(dcp_checkpoint_dir)), torch_save_path)


def torch_save_to_dcp(
    torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]
) -> None:
    """Write what is in a file as a checkpoint in parts."""
    state: dict[str, Any] = load_file(torch_save_path)
    save(state, checkpoint_id=dcp_checkpoint_dir, no_dist=True)


WAYS = {"dcp_to_torch": dcp_to_torch_save, "torch_to_dcp": torch_save_to_dcp}


def main(argv: list[str] | None = None) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(
        prog="python -m xtensor.distributed.checkpoint.format_utils", description=__doc__
    )
    parser.add_argument("mode", choices=WAYS)
    parser.add_argument("src")
    parser.add_argument("dst")
    options = parser.parse_args(argv)
    WAYS[options.mode](options.src, options.dst)
    return 0


if __name__ == "__main__":
    sys.exit(main())

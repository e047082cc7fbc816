"""Patient calls, in a process of their own: what other tests left to the collector, or on threads, ends segments."""

from __future__ import annotations

import pathlib
import subprocess
import sys


def test_the_cases_of_patience() -> None:
    cases = pathlib.Path(__file__).with_name("patience_cases.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", str(cases)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "6 passed" in ended.stdout

"""`python -m tests.array_api SUITE`: the array API's conformance suite, a clone of data-apis/array-api-tests, on `xtensor.array_api`.

`--examples 50` says how many examples a test draws, `--random` draws others each time, `-k` chooses tests, `--record` writes
`tests/array_api/skipped.txt`: what the suite skips, and why. The exit status is 1 where a test fails, or is skipped that is
not in that list.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORD = pathlib.Path(__file__).parent / "skipped.txt"
HEAD = "# What the conformance suite skips on xtensor.array_api, with its reason: `python -m tests.array_api SUITE --record`.\n"
COUNTED = re.compile(r"(\d+) (failed|passed|skipped|xfailed|xpassed|errors?)\b")
NAMED = re.compile(r"^SKIPPED \[(\d+)\] \S*?(array_api_tests/[^:]+)(?::\d+)?: (.*)$")


def run(suite: pathlib.Path, file: str, examples: int, chosen: str, random: bool) -> tuple[str, int]:
    """What the suite says of one of its files, and the exit status."""
    cache = os.environ.get("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".cache" / "array-api"))
    environment = os.environ | {
        "ARRAY_API_TESTS_MODULE": "xtensor.array_api",
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        file,
        "-q",
        "-rs",
        "--tb=short",
        "--no-header",
        "-p",
        "no:cacheprovider",
    ]
    command += ["--disable-warnings", "--disable-deadline"]
    command += [f"--max-examples={examples}", *(["-k", chosen] if chosen else [])]
    command += [] if random else ["--hypothesis-derandomize"]
    done = subprocess.run(command, cwd=suite, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr, done.returncode


def skipped(told: str) -> list[str]:
    """A line for each file and reason of what was skipped."""
    found = [NAMED.match(line) for line in told.splitlines()]
    return [f"{m[2]} ({m[1]}): {m[3]}" for m in found if m]


def main(arguments: list[str] | None = None) -> int:
    """Run the suite file by file, each in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m tests.array_api", description=__doc__)
    parser.add_argument("suite", type=pathlib.Path)
    parser.add_argument("--examples", type=int, default=50)
    parser.add_argument("-k", dest="chosen", default="")
    parser.add_argument("--random", action="store_true", help="other examples each time")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args(arguments)
    if not (given.suite / "array_api_tests").is_dir():
        parser.error(f"{given.suite} is no clone of data-apis/array-api-tests")
    totals: dict[str, int] = {}
    lines: list[str] = []
    failed = False
    for path in sorted((given.suite / "array_api_tests").glob("test_*.py")):
        told, status = run(
            given.suite, f"array_api_tests/{path.name}", given.examples, given.chosen, given.random
        )
        if status == 5:  # nothing of this file was chosen
            continue
        if status:
            failed = True
            print(told)
        print(f"{path.stem}: {told.strip().splitlines()[-1]}", flush=True)
        lines += skipped(told)
        for number, what in COUNTED.findall(told.strip().splitlines()[-1]):
            totals[what] = totals.get(what, 0) + int(number)
    print(", ".join(f"{number} {what}" for what, number in totals.items()))
    if given.record:
        RECORD.write_text(HEAD + "".join(f"{line}\n" for line in sorted(lines)), "utf-8")
    known = RECORD.read_text("utf-8").splitlines()
    fresh = [line for line in lines if line not in known]
    if fresh and not given.chosen:
        print("skipped and not in the list:", *fresh, sep="\n  ")
    return 1 if failed or (fresh and not given.chosen) else 0


if __name__ == "__main__":
    raise SystemExit(main())

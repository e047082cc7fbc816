"""The persistent compile cache: hits across processes, damage, sharing, limits, and the user's JAX left alone."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

from xtensor import compile_cache

PROGRAM = """
import json, sys, jax, xtensor
from xtensor import compile_cache
x = xtensor.tensor([1.0, 2.0], requires_grad=True)
(x.tanh() * 3).sum().backward()
theirs = jax.jit(lambda v: v * 3 + 1)(1.0)
config = jax.config
print(json.dumps(dict(
    grad=x.grad.tolist(), **compile_cache.stats(), directory=str(compile_cache.directory()),
    jax=[config.jax_compilation_cache_dir, config.jax_persistent_cache_min_compile_time_secs],
)))
"""


def start(**environment: str) -> subprocess.Popen[str]:
    """A fresh process without the test session's own JAX cache."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env={**kept, **environment}, stdout=subprocess.PIPE, text=True
    )


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return json.loads(out)


def test_processes_share_programs_and_damage_is_mended(tmp_path: pathlib.Path) -> None:
    folder = str(tmp_path / "cache")
    # Two at once, into a folder that is not there yet.
    first, second = [start(XTENSOR_COMPILE_CACHE=folder) for _ in range(2)]
    found = [told(first), told(second)]
    assert found[0]["directory"] == folder
    files = sorted(pathlib.Path(folder).glob("*.xla"))
    assert files
    assert {f.name for f in pathlib.Path(folder).iterdir()} - {f.name for f in files} == {"secret"}
    assert os.stat(folder).st_mode & 0o077 == 0 or os.name == "nt"

    # Each under its signature, and under JAX's key; and what was found out of rules by tracing them.
    calls = [f for f in files if f.name.startswith("call_") and not f.stem.endswith("-facts")]
    facts = [f for f in files if f.stem.endswith("-facts")]
    assert 2 * len(calls) + len(facts) == len(files)

    again = told(start(XTENSOR_COMPILE_CACHE=folder))
    assert (again["hits"], again["misses"]) == (len(calls), 0)

    calls[0].write_bytes(calls[0].read_bytes()[:-7])
    calls[1].write_bytes(b"")
    mended = told(start(XTENSOR_COMPILE_CACHE=folder))
    assert (mended["damaged"], mended["hits"], mended["misses"]) == (2, len(calls), 0)
    for file in files:
        file.write_bytes(file.read_bytes()[:-7])
    anew = told(start(XTENSOR_COMPILE_CACHE=folder))
    assert (anew["damaged"], anew["hits"], anew["misses"]) == (len(files), 0, len(calls))
    assert told(start(XTENSOR_COMPILE_CACHE=folder))["hits"] == len(calls)
    assert len({tuple(f["grad"]) for f in [*found, again, mended, anew]}) == 1
    # The user's own program was not kept, and JAX's settings are what they were.
    assert all(f["jax"] == [None, 1.0] for f in [*found, again, mended])


def test_off_and_the_users_own(tmp_path: pathlib.Path) -> None:
    off, own = (
        start(XTENSOR_COMPILE_CACHE="off", XDG_CACHE_HOME=str(tmp_path)),
        start(JAX_COMPILATION_CACHE_DIR=str(tmp_path / "jax"), XDG_CACHE_HOME=str(tmp_path / "xdg")),
    )
    for process in (off, own):
        found = told(process)
        assert found["directory"] == "None"
        assert found["hits"] == 0
    assert not (tmp_path / "xtensor").exists()
    assert not (tmp_path / "xdg").exists()


def test_the_folder_is_bounded(tmp_path: pathlib.Path) -> None:
    cache = compile_cache.Cache(tmp_path / "small", limit=1000)
    compile_cache._own.seen = compile_cache.Seen()
    try:
        for i in range(30):
            cache.put(f"key{i}", bytes(96))
            os.utime(tmp_path / "small" / f"key{i}.xla", (i, i))
            assert sum(size for _, size, _ in cache.entries()) <= 1000
        cache.put("huge", bytes(2000))
        assert cache.get("huge") is None
        assert cache.get("key0") is None
        assert cache.get("key29") == bytes(96)
    finally:
        compile_cache._own.seen = None
    # Outside `compiling()` it is not there: the user's own programs neither fill nor read it.
    assert cache.get("key29") is None
    cache.put("theirs", bytes(4))
    assert not (tmp_path / "small" / "theirs.xla").exists()


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = compile_cache.Cache(tmp_path / "file" / "cache", limit=1000)
    compile_cache._own.seen = compile_cache.Seen()
    try:
        cache.put("key", bytes(8))
        assert cache.get("key") is None
    finally:
        compile_cache._own.seen = None


def test_the_default_folder_names_what_programs_depend_on() -> None:
    folder = compile_cache.default_directory()
    assert folder is not None
    assert folder.name.startswith("jaxlib-")
    assert folder == compile_cache.default_directory()

"""Whose compiled programs are run: folders of the user's own, entries under their own names, a secret that is theirs."""

from __future__ import annotations

import os
import pathlib
import stat
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from xtensor.xla import compile_cache, trust

POSIX = pytest.mark.skipif(not hasattr(os, "getuid"), reason="modes and owners are POSIX's")

PROGRAM = """
import xtensor
from xtensor import compile_cache
x, y = xtensor.tensor([3.0]), xtensor.tensor([5.0])
print((x + y).item(), (x * y).item(), *compile_cache.stats().values())
"""


def start(umask: int = -1, **environment: str) -> list[float]:
    """3 + 5, 3 * 5, and what the cache counted, in a process without JAX's own cache."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**kept, **environment},
        umask=umask,
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(word) for word in done.stdout.split()]


def mode(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def compiling() -> Iterator[None]:
    compile_cache._own.seen = compile_cache.Seen()
    yield
    compile_cache._own.seen = None


@pytest.fixture
def choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the cache shall be is open again, and JAX has none of the user's."""
    monkeypatch.setattr(compile_cache._Choice, "path", None)
    unset = SimpleNamespace(config=SimpleNamespace(jax_compilation_cache_dir=None))
    monkeypatch.setattr(compile_cache, "jax", unset)


def test_an_entry_under_another_name_is_not_run(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "cache"
    assert start(XTENSOR_COMPILE_CACHE=str(folder))[:2] == [8, 15]
    add, product = [
        next(f for f in folder.glob(f"call_{name}*.xla") if "facts" not in f.name) for name in ("add", "mul")
    ]
    add.write_bytes(product.read_bytes())
    total, _, hits, _, damaged, *_ = start(XTENSOR_COMPILE_CACHE=str(folder))
    assert total == 8
    assert damaged == 1
    assert hits > 0
    assert start(XTENSOR_COMPILE_CACHE=str(folder))[4] == 0  # the entry was written anew


@POSIX
@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_files_and_folders_are_the_users_alone(tmp_path: pathlib.Path, umask: int) -> None:
    start(umask, XTENSOR_COMPILE_CACHE=str(tmp_path / "outer" / "inner"))
    assert mode(tmp_path / "outer") == mode(tmp_path / "outer" / "inner") == 0o700
    files = list((tmp_path / "outer" / "inner").iterdir())
    assert "secret" in [f.name for f in files]
    assert {mode(f) for f in files} == {0o600}


@POSIX
def test_a_umask_that_takes_all_rights_leaves_the_users(tmp_path: pathlib.Path, compiling: None) -> None:
    before = os.umask(0o777)
    try:
        cache = compile_cache.Cache(tmp_path / "outer" / "inner", limit=1000)
        cache.put("key", b"program")
    finally:
        os.umask(before)
    assert mode(tmp_path / "outer" / "inner") == 0o700
    assert {mode(f) for f in (tmp_path / "outer" / "inner").iterdir()} == {0o600}
    assert compile_cache.Cache(tmp_path / "outer" / "inner", limit=1000).get("key") == b"program"


def test_entries_without_a_seal_are_missed_and_removed(tmp_path: pathlib.Path, compiling: None) -> None:
    cache = compile_cache.Cache(tmp_path, limit=1000)
    cache.put("key", b"program")
    old = tmp_path / "old.xla"
    old.write_bytes(b"\x01\x02\x03\x04program")
    before = compile_cache.stats()
    assert cache.get("old") is None
    after = compile_cache.stats()
    assert (after["misses"], after["damaged"]) == (before["misses"] + 1, before["damaged"])
    assert not old.exists()
    assert cache.get("key") == b"program"


def test_entries_of_another_secret_are_not_run(tmp_path: pathlib.Path, compiling: None) -> None:
    for name in ("one", "two"):
        compile_cache.Cache(tmp_path / name, limit=1000).put("key", b"program")
    (tmp_path / "one" / "key.xla").replace(tmp_path / "two" / "key.xla")
    assert compile_cache.Cache(tmp_path / "two", limit=1000).get("key") is None


@pytest.mark.parametrize(
    "change", [lambda d: d[:-1], lambda d: d[:20], lambda d: d + b"!", lambda d: d[:-1] + b"!"]
)
def test_a_seal_fits_its_name_and_content_only(change) -> None:
    seal = trust.Seal(bytes(32))
    sealed = seal.close("name", b"content")
    assert seal.open("name", sealed) == b"content"
    assert seal.open("other", sealed) is None
    assert seal.open("name", change(sealed)) is None
    # A name does not run over into the content.
    assert seal.open("nam", sealed[:40] + b"e" + sealed[40:]) is None
    assert trust.Seal(b"1" * 32).open("name", sealed) is None


@POSIX
@pytest.mark.parametrize("bad", [0o777, 0o770, 0o702])
@pytest.mark.parametrize("place", ["itself", "above"])
def test_a_folder_that_others_may_write_is_refused(
    tmp_path: pathlib.Path, choice: None, monkeypatch: pytest.MonkeyPatch, bad: int, place: str
) -> None:
    folder = tmp_path / "outer" / "inner"
    folder.mkdir(parents=True, mode=0o700)
    # The group of the user's own name is no other; here it has a member.
    monkeypatch.setattr(trust, "_private", lambda *_: False)
    (folder if place == "itself" else folder.parent).chmod(bad)
    monkeypatch.setenv("XTENSOR_COMPILE_CACHE", str(folder))
    with pytest.warns(
        UserWarning, match=rf"compile cache is off: others may write to .*\(mode {bad:04o}\).*chmod go-w"
    ):
        assert compile_cache.directory() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        assert compile_cache.directory() is None
    # And what is held by hand neither reads nor writes there.
    compile_cache._own.seen = compile_cache.Seen()
    try:
        cache = compile_cache.Cache(folder, limit=1000)
        cache.put("key", b"program")
        assert cache.get("key") is None
    finally:
        compile_cache._own.seen = None
    assert list(folder.iterdir()) == []


@POSIX
def test_a_refused_folder_costs_the_cache_and_nothing_else(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    assert start(XTENSOR_COMPILE_CACHE=str(folder))[:3] == [8, 15, 0]
    assert list(folder.iterdir()) == []


@POSIX
def test_a_folder_of_another_user_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    assert trust.fault(folder) is None
    owner = os.getuid()
    monkeypatch.setattr(trust.os, "getuid", lambda: owner + 1)
    monkeypatch.setattr(trust, "_administrators", lambda: {0, owner})
    # An administrator's folders on the way are no fault, one for programs is.
    assert trust.fault(folder / "not there yet") is None
    assert trust.fault(folder) == f"{folder} belongs to user {owner}"
    monkeypatch.setattr(trust, "_administrators", lambda: {0} - {owner})
    assert "belongs to user" in str(trust.fault(folder / "not there yet"))


@POSIX
def test_the_way_through_links_counts(tmp_path: pathlib.Path) -> None:
    (tmp_path / "good").mkdir(mode=0o700)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad").chmod(0o777)
    (tmp_path / "bad" / "link").symlink_to(tmp_path / "good")
    (tmp_path / "into").symlink_to("bad/link")
    (tmp_path / "fine").symlink_to("good")
    (tmp_path / "round").symlink_to("round")
    assert trust.fault(tmp_path / "fine" / "cache") is None
    # Where the folder ends up is fine; who may turn the link is not.
    assert "others may write" in str(trust.fault(tmp_path / "bad" / "link" / "cache"))
    assert "others may write" in str(trust.fault(tmp_path / "into"))
    assert "symbolic links" in str(trust.fault(tmp_path / "round" / "cache"))
    (tmp_path / "file").write_text("")
    assert "is no folder" in str(trust.fault(tmp_path / "file" / "cache"))


@POSIX
def test_a_sticky_folder_may_hold_one_of_the_users(tmp_path: pathlib.Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    assert trust.fault(tmp_path / "tmp" / "cache") is None
    assert "others may write" in str(trust.fault(tmp_path / "tmp"))


@POSIX
def test_a_group_of_the_user_alone_may_write_above(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import grp
    import pwd

    (tmp_path / "home").mkdir()
    (tmp_path / "home").chmod(0o775)
    group = (tmp_path / "home").stat().st_gid
    named = pwd.struct_passwd(("me", "x", os.getuid(), group, "", "/", "/bin/sh"))
    monkeypatch.setattr(trust.pwd, "getpwuid", lambda _: named)
    for name, members, private in (
        ("me", [], True),
        ("me", ["me"], True),
        ("me", ["you"], False),
        ("staff", [], False),
    ):
        found = grp.struct_group((name, "x", group, members))
        monkeypatch.setattr(trust.grp, "getgrgid", lambda _, found=found: found)
        assert (trust.fault(tmp_path / "home" / "cache") is None) == private
        assert trust.fault(tmp_path / "home") is not None


def test_without_a_home_folder_there_is_no_cache(
    tmp_path: pathlib.Path, choice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> pathlib.Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "XTENSOR_COMPILE_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pathlib.Path, "home", none)
    assert compile_cache.default_directory() is None
    assert compile_cache.directory() is None
    with compile_cache.compiling():
        pass
    # One that is named needs no home.
    monkeypatch.setattr(compile_cache._Choice, "path", None)
    monkeypatch.setenv("XTENSOR_COMPILE_CACHE", str(tmp_path / "named"))
    assert compile_cache.directory() == tmp_path / "named"


def test_processes_that_make_the_secret_at_once_agree(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ThreadPoolExecutor(8) as pool:
        seals = list(pool.map(lambda _: trust.open_seal(tmp_path, True), range(32)))
    assert len({seal.close("name", b"content") for seal in seals if seal}) == 1
    assert None not in seals
    assert [f.name for f in tmp_path.iterdir()] == ["secret"]
    # Where files cannot be linked the last one counts.
    (tmp_path / "secret").unlink()
    monkeypatch.setattr(trust.os, "link", lambda *_: os.stat(tmp_path / "not there"))
    assert trust.open_seal(tmp_path, True)
    assert [f.name for f in tmp_path.iterdir()] == ["secret"]


def shorten(file: pathlib.Path) -> None:
    file.write_bytes(b"short")


def show(file: pathlib.Path) -> None:
    file.chmod(0o644)


def link(file: pathlib.Path) -> None:
    file.unlink()
    file.symlink_to("elsewhere")


@POSIX
@pytest.mark.parametrize("spoil", [shorten, show, link])
def test_a_secret_that_is_damaged_or_seen_by_others_is_made_anew(tmp_path: pathlib.Path, spoil) -> None:
    file = tmp_path / "secret"
    assert trust.open_seal(tmp_path, False) is None
    trust.open_seal(tmp_path, True)
    before = file.read_bytes()
    spoil(file)
    assert trust.open_seal(tmp_path, False) is None
    assert trust.open_seal(tmp_path, True) is not None
    assert file.read_bytes() != before
    assert mode(file) == 0o600

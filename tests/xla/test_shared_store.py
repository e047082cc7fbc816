"""Programs made ahead and shared: read behind the own cache, from where nobody but the user and root can write."""

from __future__ import annotations

import os
import pathlib
import stat
from collections.abc import Iterator

import pytest

from xtensor.xla import compile_cache, shared_store, trust
from xtensor.xla.shared_store import SharedStore

POSIX = pytest.mark.skipif(not hasattr(os, "getuid"), reason="modes and owners are POSIX's")


@pytest.fixture
def store(tmp_path: pathlib.Path) -> SharedStore:
    """One with the entry `a.xla`, as another process finds it."""
    SharedStore(tmp_path / "shared", "machine").put("a.xla", b"program")
    return SharedStore(tmp_path / "shared", "machine")


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    compile_cache._own.seen = compile_cache.Seen()
    monkeypatch.setattr(shared_store, "_opened", {})
    yield
    compile_cache._own.seen = None


def mode(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_put_is_found(store: SharedStore) -> None:
    assert store.get("a.xla") == b"program"
    assert store.get("b.xla") is None
    assert SharedStore(store.path.parent, "another").get("a.xla") is None


@POSIX
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_all_may_read_and_none_may_write(tmp_path: pathlib.Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        SharedStore(tmp_path / "outer" / "shared", "machine").put("a.xla", b"program")
    finally:
        os.umask(before)
    for folder in ("outer", "outer/shared", "outer/shared/machine"):
        assert mode(tmp_path / folder) == 0o755
    files = list((tmp_path / "outer" / "shared" / "machine").iterdir())
    assert {f.name for f in files} == {"key", "a.xla"}
    assert {mode(f) for f in files} == {0o644}


def damaged(file: pathlib.Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def of_another_name(file: pathlib.Path) -> None:
    file.rename(file.with_name("c.xla"))
    SharedStore(file.parent.parent, file.parent.name).put("b.xla", b"another")
    file.with_name("b.xla").rename(file)


def without_its_key(file: pathlib.Path) -> None:
    file.with_name("key").unlink()


def under_another_key(file: pathlib.Path) -> None:
    file.with_name("key").write_bytes(bytes(32))


def under_a_short_key(file: pathlib.Path) -> None:
    file.with_name("key").write_bytes(bytes(31))


@pytest.mark.parametrize(
    "spoil", [damaged, of_another_name, without_its_key, under_another_key, under_a_short_key]
)
def test_an_entry_whose_seal_does_not_fit_is_none(store: SharedStore, spoil) -> None:
    spoil(store.path / "a.xla")
    assert store.get("a.xla") is None


def file_for_others(store: SharedStore) -> None:
    (store.path / "a.xla").chmod(0o646)


def key_for_others(store: SharedStore) -> None:
    (store.path / "key").chmod(0o664)


def folder_for_others(store: SharedStore) -> None:
    store.path.chmod(0o775)


def folder_above_for_others(store: SharedStore) -> None:
    store.path.parent.chmod(0o777)


def link_to_elsewhere(store: SharedStore) -> None:
    (store.path / "a.xla").rename(store.path / "real")
    (store.path / "a.xla").symlink_to("real")


@POSIX
@pytest.mark.parametrize(
    "spoil",
    [file_for_others, key_for_others, folder_for_others, folder_above_for_others, link_to_elsewhere],
)
def test_what_others_may_have_written_is_not_run(
    store: SharedStore, spoil, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The group of the user's own name is no other; here it has a member.
    monkeypatch.setattr(trust, "_private", lambda *_: False)
    spoil(store)
    assert store.get("a.xla") is None


@POSIX
def test_roots_is_as_good_as_the_users_and_another_users_is_not(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = os.getuid()
    for uid, mode_of_file, trusted in (
        (owner, 0o100644, True),
        (0, 0o100444, True),
        (owner + 1, 0o100644, False),
        (0, 0o100664, False),
        (0, 0o040755, False),
    ):
        status = os.stat_result((mode_of_file, 0, 0, 1, uid, *range(5)))
        assert shared_store._trusted(status) == trusted
    # The folder itself: an administrator's other than root's is none that programs are read from.
    monkeypatch.setattr(trust.os, "getuid", lambda: owner + 1)
    monkeypatch.setattr(trust, "_administrators", lambda: {0, owner})
    assert (trust.fault(store.path, roots=True) is None) == (owner == 0)
    assert trust.fault(store.path) is not None


@POSIX
def test_nothing_is_put_where_others_may_write(tmp_path: pathlib.Path) -> None:
    (tmp_path / "shared" / "machine").mkdir(parents=True)
    (tmp_path / "shared" / "machine").chmod(0o777)
    with pytest.raises(PermissionError, match="others may write to"):
        SharedStore(tmp_path / "shared", "machine").put("a.xla", b"program")
    assert list((tmp_path / "shared" / "machine").iterdir()) == []


@pytest.mark.usefixtures("compiling")
def test_what_the_own_cache_lacks_is_looked_for(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = SharedStore(tmp_path / "shared", compile_cache.machine())
    shared.put("key1.xla", b"program")
    monkeypatch.setenv(shared_store.VARIABLE, str(tmp_path / "shared"))
    cache = compile_cache.Cache(tmp_path / "own", limit=1000)
    before = compile_cache.stats()
    assert cache.get("key1") == b"program"
    assert cache.get("key2") is None
    after = compile_cache.stats()
    assert (after["hits"] - before["hits"], after["misses"] - before["misses"]) == (1, 1)
    assert not (tmp_path / "own").exists()
    # The own one comes first, and takes what is new.
    cache.put("key1", b"own")
    assert cache.get("key1") == b"own"
    assert shared.get("key1.xla") == b"program"


@POSIX
@pytest.mark.usefixtures("compiling")
def test_a_store_that_others_may_write_to_is_warned_of_once(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = SharedStore(tmp_path / "shared", compile_cache.machine())
    shared.put("key1.xla", b"program")
    shared.path.chmod(0o777)
    monkeypatch.setenv(shared_store.VARIABLE, str(tmp_path / "shared"))
    cache = compile_cache.Cache(tmp_path / "own", limit=1000)
    with pytest.warns(UserWarning, match=r"is not used: others may write to .*chmod go-w"):
        assert cache.get("key1") is None
    assert cache.get("key1") is None


def test_publishing_takes_what_the_own_seal_closes(tmp_path: pathlib.Path) -> None:
    seal = trust.open_seal(tmp_path, make=True)
    assert seal is not None
    (tmp_path / "a.xla").write_bytes(seal.close("a", b"by its stem"))
    (tmp_path / "b.run").write_bytes(seal.close("b.run", b"by its name"))
    (tmp_path / "c.xla").write_bytes(seal.close("another", b"by no name of its own"))
    (tmp_path / "d.part").write_bytes(b"unfinished")
    store = SharedStore(tmp_path / "shared", "machine")
    assert shared_store.publish(tmp_path, seal, store) == len(b"by its stem" + b"by its name")
    assert {f.name for f in store.path.iterdir()} == {"key", "a.xla", "b.run"}
    assert (store.get("a.xla"), store.get("b.run")) == (b"by its stem", b"by its name")

"""`torch.hub`: models that a repository's `hubconf.py` makes, from a folder or from GitHub, and weights from an address."""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib.util
import os
import pathlib
import re
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
import warnings
import zipfile
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

from ..serialization import load as load_file

try:
    # In a notebook without its widgets tqdm warns, in red, of a bar that nobody has asked for yet.
    with warnings.catch_warnings(action="ignore"):
        from tqdm.auto import tqdm  # pyright: ignore[reportMissingModuleSource, reportMissingImports]
except ImportError:
    from ..utils.progress import tqdm

__all__ = [
    "HASH_REGEX",
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
    "tqdm",
    "urlparse",
]

CONFIGURATION = "hubconf.py"
# Eight or more hexadecimal digits before the ending are the start of the content's SHA-256.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
CHUNK = 1 << 17

_chosen: builtins.list[str] = []


def _get_torch_home() -> str:
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder that downloads are kept in: what `set_dir` chose, else `$TORCH_HOME/hub`."""
    return _chosen[0] if _chosen else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Choose the folder that downloads are kept in."""
    _chosen[:] = [os.path.expanduser(os.fspath(d))]


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetch an address into a file, which appears only when it is whole; `hash_prefix` starts its SHA-256."""
    destination = pathlib.Path(dst).expanduser()
    digest = hashlib.sha256()
    request = urllib.request.Request(url, headers={"User-Agent": "xtensor.hub"})
    with urllib.request.urlopen(request) as source:
        handle, partial = tempfile.mkstemp(prefix=destination.name, suffix=".partial", dir=destination.parent)
        size = source.headers.get("Content-Length")
        bar = tqdm(total=int(size) if size else None, disable=not progress, unit="B", unit_scale=True)
        try:
            with os.fdopen(handle, "wb") as out, bar:
                while block := source.read(CHUNK):
                    out.write(block)
                    digest.update(block)
                    bar.update(len(block))
            if hash_prefix and digest.hexdigest()[: len(hash_prefix)] != hash_prefix:
                raise RuntimeError(
                    f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")'
                )
            shutil.move(partial, destination)
        finally:
            if os.path.exists(partial):
                os.remove(partial)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """What `load` reads from the file at an address, fetched into `model_dir` (`get_dir()/checkpoints`) once."""
    folder = pathlib.Path(model_dir or os.path.join(get_dir(), "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    cached = folder / name
    if not cached.exists():
        sys.stderr.write(f'Downloading: "{url}" to {cached}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, str(cached), found.group(1) if found else None, progress)
    return load_file(cached, map_location=map_location, weights_only=weights_only)


def load(
    repo_or_dir: str | os.PathLike[str],
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str | None = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Call the entry point `model` of the repository's `hubconf.py`; `source="local"` reads a folder."""
    with _configuration(repo_or_dir, source, force_reload, trust_repo) as configuration:
        return _entry(configuration, model)(*args, **kwargs)


def list(
    github: str | os.PathLike[str],
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = None,
    verbose: bool = True,
) -> builtins.list[str]:
    """The entry points of a repository on GitHub, or of a folder."""
    source = "local" if os.path.isdir(github) else "github"
    with _configuration(github, source, force_reload, trust_repo) as configuration:
        return [
            n for n in dir(configuration) if callable(getattr(configuration, n)) and not n.startswith("_")
        ]


def help(
    github: str | os.PathLike[str],
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = None,
) -> str | None:
    """The docstring of an entry point."""
    source = "local" if os.path.isdir(github) else "github"
    with _configuration(github, source, force_reload, trust_repo) as configuration:
        return _entry(configuration, model).__doc__


@contextlib.contextmanager
def _configuration(
    place: str | os.PathLike[str], source: str, force: bool, trust: bool | str | None
) -> Iterator[ModuleType]:
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = _fetched(os.fspath(place), force, trust) if source == "github" else os.fspath(place)
    path = os.path.join(folder, CONFIGURATION)
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location("hubconf", path)
        if spec is None or spec.loader is None:
            raise FileNotFoundError(path)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        yield made
    finally:
        sys.path.remove(folder)


def _entry(configuration: ModuleType, model: str) -> Callable[..., Any]:
    missing = [
        name for name in getattr(configuration, "dependencies", []) if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    found = getattr(configuration, model, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found


def _fetched(repository: str, force: bool, trust: bool | str | None) -> str:
    """The folder with a repository of GitHub's, `owner/name[:branch]`, in it."""
    owner, _, rest = repository.partition("/")
    name, _, branch = rest.partition(":")
    if not owner or not name:
        raise ValueError(f"Invalid repository {repository!r}: expected owner/name or owner/name:branch")
    refs = [branch] if branch else ["main", "master"]
    kept = pathlib.Path(get_dir())
    kept.mkdir(parents=True, exist_ok=True)
    for ref in refs:
        folder = kept / f"{owner}_{name}_{ref.replace('/', '_')}"
        if folder.exists() and not force:
            return str(folder)
    _ask(owner, name, trust)
    with tempfile.TemporaryDirectory(dir=kept) as scratch:
        for ref in refs:
            archive = os.path.join(scratch, "archive.zip")
            try:
                download_url_to_file(
                    f"https://github.com/{owner}/{name}/zipball/{ref}", archive, progress=False
                )
            except urllib.error.HTTPError as error:
                if error.code == 404 and ref != refs[-1]:
                    continue
                raise
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(scratch)
                top = packed.namelist()[0].partition("/")[0]
            folder = kept / f"{owner}_{name}_{ref.replace('/', '_')}"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.move(os.path.join(scratch, top), folder)
            return str(folder)
    raise AssertionError("a repository has at least one branch to try")


def _ask(owner: str, name: str, trust: bool | str | None) -> None:
    """PyTorch's question before code from the network runs; the answer is kept beside the downloads."""
    trusted = pathlib.Path(get_dir()) / "trusted_list"
    known = trusted.read_text("utf-8").split() if trusted.exists() else []
    if trust is not True and f"{owner}_{name}" not in known:
        question = (
            f"The repository {owner}_{name} does not belong to the list of trusted repositories and as such cannot be "
            "downloaded. Do you trust this repository and wish to add it to the trusted list of repositories (y/N)?"
        )
        if trust is False or input(question).strip().lower() not in ("y", "yes"):
            raise Exception("Untrusted repository.")
    if f"{owner}_{name}" not in known:
        with trusted.open("a", encoding="utf-8") as out:
            out.write(f"{owner}_{name}\n")

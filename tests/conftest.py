"""The test session: JAX's settings, sampled or full runs, and the fixtures that several files share.

JAX reads its environment when it is first imported, so this file sets it before anything imports JAX.
xdist workers inherit it, so they share one compile cache.
"""

import ctypes
import gc
import importlib
import importlib.metadata
import os
import pathlib
import platform
import random
import sys
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEMORY_LIMIT = 2 << 30  # bytes; past it a test process lets go of its compiled programs
_resident_limit = [MEMORY_LIMIT]
COMPILE_CACHE_LIMIT = 1 << 30  # bytes; the directory is halved when it has grown past this

assert "jax" not in sys.modules, "JAX was imported before tests/conftest.py could set it up"

# Compiled programs are loadable by the jaxlib and on the kind of machine that made them.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR",
    str(ROOT / ".cache" / f"jax-{importlib.metadata.version('jaxlib')}-{platform.node() or 'local'}"),
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "2")

settings.register_profile(
    "default",
    max_examples=50,
    deadline=None,
    print_blob=True,
    # The first example of a test compiles: slow is not a failure.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None)
settings.register_profile("full", settings.get_profile("default"), max_examples=10_000)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full",
        action="store_true",
        help="run everything: tests marked `full`, and 10,000 examples per hypothesis test",
    )
    parser.addoption(
        "--plans",
        action="store_true",
        help="run every backward graph that can be one as a plan, from its first time",
    )


def pytest_configure(config: pytest.Config) -> None:
    profile = "full" if config.getoption("--full") else "ci" if os.environ.get("CI") else "default"
    if not config.getoption("--hypothesis-profile", None):
        settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", profile))
    # When a plan is ready depends on the machine, and tests count programs and runs; they ask for plans themselves.
    importlib.import_module("xtensor.plans.plans").executor.enabled = False
    # As is whether it pays that calls wait, and when a process is calm enough for compiling programs once more.
    importlib.import_module("xtensor.xla.segments.structures").state.due = 1 << 60
    importlib.import_module("xtensor.xla.quick").CALM = 1e6
    if config.getoption("--plans"):
        importlib.import_module("tests.fuzz.planned")
    if not hasattr(config, "workerinput"):
        _trim_compile_cache(pathlib.Path(os.environ["JAX_COMPILATION_CACHE_DIR"]), COMPILE_CACHE_LIMIT)


def pytest_report_header(config: pytest.Config) -> str:
    run = "full" if config.getoption("--full") else "sampled (--full runs everything)"
    return f"run: {run}; compile cache: {os.environ['JAX_COMPILATION_CACHE_DIR']}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--full"):
        skip = pytest.mark.skip(reason="a full run only: --full")
        for item in items:
            # Names, unlike places in a list, stay the same when others are added.
            shares = [mark.args[0] for mark in item.iter_markers("one_in")]
            if item.get_closest_marker("full") or any(zlib.crc32(item.name.encode()) % n for n in shares):
                item.add_marker(skip)


def _resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not tell."""
    try:
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    # A process that has run thousands of tests holds gigabytes of programs that nobody will call again.
    jax = sys.modules.get("jax")
    if jax is not None and _resident() > _resident_limit[0]:
        importlib.import_module("xtensor.xla.cache").clear_all()
        jax.clear_caches()
        gc.collect()
        if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
            libc.malloc_trim(0)  # glibc keeps what was freed
        _resident_limit[0] = max(MEMORY_LIMIT, _resident() + MEMORY_LIMIT // 2)


def _trim_compile_cache(directory: pathlib.Path, limit: int) -> None:
    """Delete the oldest entries until half the limit is left, once the limit is passed."""
    if not directory.is_dir():
        return
    entries = []
    with os.scandir(directory) as files:
        for file in files:
            if file.is_file():
                status = file.stat()
                entries.append((status.st_mtime, status.st_size, file.path))
    total = sum(size for _, size, _ in entries)
    if total <= limit:
        return
    for _, size, path in sorted(entries):
        pathlib.Path(path).unlink(missing_ok=True)
        total -= size
        if total <= limit // 2:
            return


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether this is a full run: for tests that choose their own number of cases."""
    return bool(request.config.getoption("--full"))


@pytest.fixture(scope="session")
def torch():
    """PyTorch, the oracle, on two threads; the test is skipped where it is not installed."""
    module = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[parity]'")
    module.set_num_threads(2)
    return module


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A seed that is the test's own, printed so that a failure shows it; XTENSOR_TEST_SEED overrides it."""
    given = os.environ.get("XTENSOR_TEST_SEED")
    value = int(given) if given else zlib.crc32(request.node.nodeid.encode())
    print(f"XTENSOR_TEST_SEED={value}")
    random.seed(value)
    return value


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    """NumPy's generator on the test's seed."""
    return np.random.default_rng(seed)


@pytest.fixture
def waits():
    """Calls run at once, and first ones wait for their programs."""
    from xtensor.xla import segments

    with segments.paused():
        yield


@pytest.fixture(autouse=True)
def modes_are_put_back():
    """No test leaves a mode on for those after it, nor 64-bit types in JAX."""
    before = modes_held()
    yield
    left = modes_held()
    if before and left != before:
        state = sys.modules["xtensor.engine.modes"].state
        for name, value in before.items():
            if name == "64-bit types of JAX":
                sys.modules["jax"].enable_x64.set_local(value)
            else:
                setattr(state, name, value)
        changed = {name: (value, left[name]) for name, value in before.items() if left[name] != value}
        pytest.fail(f"the test left modes behind (before, now): {changed}")


def modes_held():
    """What a test may not change for those after it; nothing before xtensor is imported."""
    if "xtensor.engine.modes" not in sys.modules:
        return {}
    state = sys.modules["xtensor.engine.modes"].state
    held = {
        n: getattr(state, n)
        for n in ("mode", "overrides_off", "function_modes", "dispatch_modes", "transforms")
    }
    return held | {"64-bit types of JAX": bool(sys.modules["jax"].config.jax_enable_x64)}

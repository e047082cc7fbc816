"""The cases that need more devices or processes than a test session has, each in processes of its own and with a time limit."""

from __future__ import annotations

import importlib
import os
import pathlib
import pickle
import re
import subprocess
import sys
import warnings
from datetime import timedelta

import pytest

import xtensor
import xtensor.distributed as dist
from xtensor import multiprocessing
from xtensor.distributed import checkpoint
from xtensor.distributed.algorithms.join import Join
from xtensor.distributed.checkpoint import format_utils
from xtensor.distributed.run import job_of, processes
from xtensor.distributed.tensor import Shard
from xtensor.interop import alias

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
SECONDS = 600


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def launch(*command: str, count: int = 4, **environment: str) -> subprocess.CompletedProcess[str]:
    head = ("-m", "xtensor.distributed.run", "--standalone", "--nproc-per-node", str(count))
    return run(*head, *command, JAX_NUM_CPU_DEVICES="1", **environment)


@pytest.mark.parametrize("name", ["mesh_cases"])
def test_on_eight_devices(name):
    flags = ("-q", "-x", "-p", "no:cacheprovider")
    done = run("-m", "pytest", *flags, str(HERE / f"{name}.py"), JAX_NUM_CPU_DEVICES="8")
    assert done.returncode == 0, done.stdout[-6000:]


def test_reductions_are_of_the_class_that_packages_ask_for():
    assert isinstance(dist.ReduceOp.SUM, dist.ReduceOp.RedOpType)
    assert dist.ReduceOp.RedOpType.MAX == dist.ReduceOp.MAX
    with pytest.raises(AttributeError, match="ReduceOp has no MEAN"):
        dist.ReduceOp.MEAN  # noqa: B018


EXAMPLES = ROOT / "examples" / "distributed"
IN_PROCESSES = {"data_parallel": 2, "pipelined": 4}


LONG = {"pipelined"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=pytest.mark.full) if n in LONG else n
        for n in sorted(p.stem for p in EXAMPLES.glob("*.py"))
    ],
)
@pytest.mark.one_in(2)
def test_examples(name):
    path = str(EXAMPLES / f"{name}.py")
    done = (
        launch(path, count=IN_PROCESSES[name]) if name in IN_PROCESSES else run(path, JAX_NUM_CPU_DEVICES="8")
    )
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.parametrize("name", ["process_cases", "train_cases"])
def test_four_processes(name, full):
    every = {"XTENSOR_EVERY_DTYPE": "1"} if full else {}
    done = launch("--with-torch", str(HERE / f"{name}.py"), **every)
    assert done.returncode == 0, done.stdout[-6000:]
    assert sorted(re.findall(r"rank (\d) is done", done.stdout)) == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("how", "text"),
    [("kill", "signal SIGKILL"), pytest.param("raise", "exit code 1", marks=pytest.mark.full)],
)
def test_a_dead_rank_ends_the_others_and_is_named(how, text):
    done = launch("--max-restarts", "1", str(HERE / "dying.py"), how, count=2)
    assert done.returncode == 1
    for left in (1, 0):  # what fails is named at every start
        assert any(
            "rank 1 (local rank 1" in line and line.endswith(f"failed with {text}; {left} restarts are left")
            for line in done.stdout.splitlines()
        ), done.stdout
    assert "rank 0 ends, since rank 1 has ended with an error or was killed" in done.stdout


def test_restarts_and_redirected_output(tmp_path):
    done = launch(
        "--max-restarts", "1", "--log-dir", str(tmp_path), "-r", "3", str(HERE / "dying.py"), "once", count=2
    )
    assert done.returncode == 0, done.stdout
    printed = sorted(p.read_text() for p in tmp_path.glob("*/attempt_1/*/stdout.log"))
    assert [p for p in printed if "start 1" in p] == printed and len(printed) == 2


@pytest.mark.full
def test_killed_processes_lose_nothing():
    done = run("-m", "tests.distributed.kills", "4")
    assert done.returncode == 0 and "nothing is lost" in done.stdout, done.stdout[-4000:]


@pytest.mark.full
def test_a_pipelined_gpt_follows_one_process():
    done = launch("--with-torch", str(HERE / "pipelined_gpt.py"), "--steps", "5")
    assert done.returncode == 0 and done.stdout.count("furthest apart") == 2, done.stdout[-4000:]


def test_pytorch_programs_use_it():
    done = launch(str(HERE / "dying.py"), "never", count=2)
    assert done.returncode == 0 and done.stdout.count("start 0") == 2, done.stdout


# ---- one process


@pytest.fixture
def alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_without_a_group():
    assert dist.is_available() and not dist.is_initialized() and not dist.is_torchelastic_launched()
    assert dist.is_gloo_available() and not dist.is_mpi_available() and dist.is_backend_available("gloo")
    for function in (dist.get_rank, dist.get_world_size, dist.barrier, dist.get_backend):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            function()
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        dist.init_process_group("gloo")
    with pytest.raises(ValueError, match="Unknown c10d backend type SMOKE"):
        dist.init_process_group("smoke")
    with pytest.raises(AssertionError, match="cannot be None"):
        dist.destroy_process_group()


def test_names_of_backends_and_modules():
    assert dist.get_default_backend_for_device("cpu") == "gloo" and dist.get_pg_count() == 0
    assert dist.supports_complex(dist.ReduceOp.SUM) and not dist.supports_complex(dist.ReduceOp.MAX)
    assert dist.get_debug_level() is dist.DebugLevel.OFF
    assert issubclass(dist.DistStoreError, dist.DistError) and issubclass(dist.DistNetworkError, RuntimeError)
    with alias.installed():
        found = importlib.import_module("torch.distributed.distributed_c10d")
        assert found.all_reduce is dist.all_reduce and found.get_pg_count() == 0
        mesh = importlib.import_module("torch.distributed._tensor.device_mesh")
        assert mesh.init_device_mesh is dist.init_device_mesh
        assert importlib.import_module("torch.distributed._tensor").Shard is Shard
        rpc = importlib.import_module("torch.distributed.rpc")
        assert rpc.is_available() is False
        with pytest.raises(NotImplementedError, match=r"torch\.distributed\.rpc\.init_rpc is not in xtensor"):
            rpc.init_rpc("worker")


def test_a_rendezvous_of_ones_own():
    dist.register_rendezvous_handler("single", lambda url, **_: iter([(dist.HashStore(), 0, 1)]))
    with pytest.raises(RuntimeError, match="already registered"):
        dist.register_rendezvous_handler("single", lambda url, **_: iter([]))
    dist.init_process_group(init_method="single://here")
    assert dist.get_world_size() == 1 == dist.get_pg_count()
    dist.destroy_process_group()


def test_joining_takes_something(alone):
    with pytest.raises(ValueError, match="at least one joinable"):
        Join([])


def test_a_group_of_one(alone):
    x = xtensor.arange(4.0)
    dist.all_reduce(x)
    gathered = [xtensor.zeros(4)]
    dist.all_gather(gathered, x)
    assert x.tolist() == gathered[0].tolist() == [0, 1, 2, 3] and dist.get_backend() == "gloo"
    found = [None]
    dist.all_gather_object(found, "one")
    assert found == ["one"] and dist.new_group([0]).size() == 1 and dist.group.WORLD.rank() == 0
    dist.barrier()
    dist.monitored_barrier()


@pytest.mark.parametrize("kind", ["hash", "file", "tcp", "prefix"])
def test_stores(kind, tmp_path):
    made = {
        "hash": dist.HashStore,
        "file": lambda: dist.FileStore(str(tmp_path / "store"), 1),
        "tcp": lambda: dist.TCPStore("127.0.0.1", 0, 1, True),
        "prefix": lambda: dist.PrefixStore("p", dist.HashStore()),
    }[kind]()
    made.set("a", "1")
    assert made.get("a") == b"1" and made.add("n", 2) == 2 and made.add("n", 3) == 5
    made.append("a", "2")
    assert made.get("a") == b"12" and made.compare_set("a", "12", "x") == b"x" == made.get("a")
    assert made.compare_set("a", "nothing", "y") == b"x" and made.compare_set("new", "", "z") == b"z"
    assert made.check(["a", "n"]) and not made.check(["a", "absent"])
    assert made.multi_get(["a", "n"]) == [b"x", b"5"] and made.num_keys() == 3
    assert made.delete_key("a") and not made.delete_key("a")
    made.set_timeout(timedelta(milliseconds=20))
    with pytest.raises(dist.DistStoreError, match=r"wait timeout after 20ms, keys: .*absent"):
        made.get("absent")
    with pytest.raises(dist.DistStoreError):
        made.wait(["absent"], timedelta(milliseconds=10))


def test_the_launchers_options():
    job = job_of(
        [
            "--nproc_per_node=2",
            "--nnodes=2",
            "--node_rank=1",
            "--master_addr=h",
            "--master_port=7",
            "a.py",
            "--x",
        ]
    )
    assert (job.command, job.processes, job.nodes, job.node, job.host, job.port) == (
        ["a.py", "--x"],
        2,
        2,
        1,
        "h",
        7,
    )
    job = job_of(["--rdzv-backend", "c10d", "--rdzv-endpoint", "h:8", "--nnodes", "1:2", "-m", "pkg.mod"])
    assert job.kind == "module" and (job.host, job.port, job.nodes) == ("h", 8, 1)
    assert processes("cpu") == os.cpu_count()
    with pytest.raises(ValueError, match="Unsupported nproc_per_node value: many"):
        processes("many")


def test_a_checkpoint_of_pytorch_is_read(tmp_path):
    torch = pytest.importorskip("torch")
    theirs = importlib.import_module("torch.distributed.checkpoint")
    weight = torch.arange(12.0).reshape(3, 4)
    state = {"model": {"w": weight, "half": torch.ones(5, dtype=torch.bfloat16)}, "n": 3, "lr": [0.1, 0.2]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.save(state, checkpoint_id=str(tmp_path), no_dist=True)
    own = {
        "model": {"w": xtensor.zeros(3, 4), "half": xtensor.zeros(5, dtype=xtensor.bfloat16)},
        "n": 0,
        "lr": None,
    }
    checkpoint.load(own, checkpoint_id=tmp_path)
    assert own["model"]["w"].tolist() == weight.tolist() and own["model"]["half"].tolist() == [1] * 5
    assert own["n"] == 3 and own["lr"] == [0.1, 0.2]
    index = pickle.dumps({"state": os.getcwd})
    (tmp_path / ".metadata").write_bytes(index)
    with pytest.raises(pickle.UnpicklingError, match=r"the index of a checkpoint names (posix|nt)\.getcwd"):
        checkpoint.load(own, checkpoint_id=tmp_path)


def test_a_checkpoint_as_one_file(tmp_path):
    weight = xtensor.arange(6, dtype=xtensor.bfloat16).reshape(2, 3)
    state = {"model": {"w": weight}, "groups": [{"lr": 0.1, "moment": weight + 1}, {"lr": 0.2}], "n": 3}
    checkpoint.save(state, checkpoint_id=tmp_path / "parts")
    format_utils.main(["dcp_to_torch", str(tmp_path / "parts"), str(tmp_path / "one.pt")])
    made = xtensor.load(tmp_path / "one.pt")
    assert made["model"]["w"].tolist() == weight.tolist() and made["model"]["w"].dtype is xtensor.bfloat16
    assert made["groups"][0]["moment"].tolist() == (weight + 1).tolist()
    assert [g["lr"] for g in made["groups"]] == [0.1, 0.2] and made["n"] == 3
    format_utils.main(["torch_to_dcp", str(tmp_path / "one.pt"), str(tmp_path / "again")])
    own = {"model": {"w": weight * 0}, "n": 0}
    checkpoint.load(own, checkpoint_id=tmp_path / "again")
    assert own["model"]["w"].tolist() == weight.tolist() and own["n"] == 3


ASKING = """
import sys
import torch
import torch.distributed as dist

torch.manual_seed(0)
device = torch.accelerator.current_accelerator() if torch.cuda.is_available() else torch.device("cpu")
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=int(sys.argv[2]), world_size=2)
x = torch.ones(2, device=device)
dist.all_reduce(x)
print(x.tolist(), torch.randn(1).shape)
dist.destroy_process_group()
"""


def test_a_group_comes_after_questions_for_devices(tmp_path):
    script = tmp_path / "asking.py"
    script.write_text(ASKING)
    command = [sys.executable, "-m", "xtensor", str(script), str(tmp_path / "store")]
    options = dict(cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), "JAX_NUM_CPU_DEVICES": "1"}
    started = [subprocess.Popen([*command, str(rank)], env=environment, **options) for rank in range(2)]
    for process in started:
        printed, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0 and "[2.0, 2.0]" in printed, printed


def echo(index: int, folder: str) -> None:
    pathlib.Path(folder, str(index)).write_text("here")
    if index == 1:
        raise KeyError("gone")


def test_spawn(tmp_path):
    with pytest.raises(
        multiprocessing.ProcessRaisedException, match=r"(?s)Process 1 terminated.*KeyError: 'gone'"
    ):
        multiprocessing.spawn(echo, (str(tmp_path),), nprocs=2)


def test_plain_tensors_list_no_attributes_of_meshes() -> None:
    x = xtensor.ones(2)
    assert Shard(0).dim == 0 and not {"placements", "device_mesh"} & set(dir(x))
    assert "to_local" in dir(x)

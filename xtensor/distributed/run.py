"""`python -m xtensor.distributed.run`: a program in several processes, with the options of `torchrun`."""

from __future__ import annotations

import argparse
import os
import sys
import uuid
from collections.abc import Sequence

from .agent import Agent, Job

__all__ = ["main"]


def options() -> argparse.ArgumentParser:
    """The options of `torchrun`, each also with underscores."""
    made = argparse.ArgumentParser(prog="python -m xtensor.distributed.run", description=__doc__)

    def add(name: str, **more: object) -> None:
        spellings = [f"--{name}"]
        if "-" in name:
            spellings.append(f"--{name.replace('-', '_')}")
        made.add_argument(*spellings, **more)  # pyright: ignore[reportArgumentType]

    add("nnodes", default="1", help="how many machines, or the least and the most: 1:4")
    add("nproc-per-node", default="1", help="processes on each machine: a number, or auto, cpu, gpu")
    add("rdzv-backend", default="static", help="static or c10d: how machines find their numbers")
    add("rdzv-endpoint", default="", help="HOST:PORT of the machine that serves the store")
    add("rdzv-id", default="none", help="a name of the job")
    add("rdzv-conf", default="", help="further settings, k=v,k=v: timeout in seconds")
    add("standalone", action="store_true", help="one machine, and any free port")
    add("max-restarts", type=int, default=0, help="how often all processes are started again after a failure")
    add("monitor-interval", type=float, default=0.1, help="seconds between looks at the processes")
    add("start-method", default="spawn", choices=["spawn", "fork", "forkserver"], help="taken, and not used")
    add("role", default="default", help="a name of the processes in what they say")
    made.add_argument("-m", "--module", action="store_true", help="the program is a module")
    add("no-python", action="store_true", help="the program is an executable of its own")
    add("run-path", action="store_true", help="taken: scripts are run by their path")
    add("log-dir", default=None, help="where redirected output goes")
    made.add_argument(
        "-r", "--redirects", default="0", help="into files: 1 what is printed, 2 errors, 3 both; or 0:3,1:1"
    )
    made.add_argument("-t", "--tee", default="0", help="as --redirects, and to the terminal besides")
    add("local-ranks-filter", default="", help="of these local ranks alone the output is shown: 0,1")
    add("node-rank", type=int, default=int(os.environ.get("GROUP_RANK", "0")), help="the machine's number")
    add("master-addr", default="127.0.0.1", help="the machine of rank 0, with --rdzv-backend static")
    add("master-port", type=int, default=29500, help="a port of it")
    add("local-addr", default=None, help="taken, and not used")
    add("logs-specs", default=None, help="taken, and not used")
    add("with-torch", action="store_true", help="`import torch` in the program is PyTorch, not xtensor")
    made.add_argument("training_script", help="the program")
    made.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return made


def processes(text: str) -> int:
    """How many processes a machine has; ValueError for what is no number and no name."""
    if text in ("auto", "cpu", "gpu"):
        if text != "cpu":
            visible = os.environ.get("CUDA_VISIBLE_DEVICES")
            found = len(visible.split(",")) if visible else len([n for n in os.listdir("/dev") if is_gpu(n)])
            if found:
                return found
            if text == "gpu":
                raise ValueError("Cuda is not available.")
        return os.cpu_count() or 1
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"Unsupported nproc_per_node value: {text}") from None


def is_gpu(name: str) -> bool:
    """Whether a device file is a GPU."""
    return name.startswith("nvidia") and name[6:].isdigit()


def job_of(arguments: Sequence[str]) -> Job:
    """What is to be run, out of the command line."""
    given = options().parse_args(arguments)
    least = int(str(given.nnodes).partition(":")[0])
    host, port = given.master_addr, given.master_port
    name = given.rdzv_id
    if given.standalone:
        host, port, name = "127.0.0.1", 0, str(uuid.uuid4())
    elif given.rdzv_endpoint:
        host, _, text = (
            given.rdzv_endpoint.rpartition(":")
            if ":" in given.rdzv_endpoint
            else (given.rdzv_endpoint, "", "29400")
        )
        port = int(text)
    settings = dict(part.split("=", 1) for part in given.rdzv_conf.split(",") if "=" in part)
    return Job(
        command=[given.training_script, *given.training_script_args],
        kind="module"
        if given.module
        else "executable"
        if given.no_python
        else "torch"
        if given.with_torch
        else "script",
        nodes=least,
        node=None if given.rdzv_backend != "static" and least > 1 else given.node_rank,
        processes=processes(given.nproc_per_node),
        host=host,
        port=port,
        name=name,
        restarts=given.max_restarts,
        interval=given.monitor_interval,
        role=given.role,
        folder=given.log_dir,
        redirects=given.redirects,
        tee=given.tee,
        shown=[int(r) for r in given.local_ranks_filter.split(",") if r],
        timeout=float(settings.get("timeout", "600")),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; the exit status is 0 where all processes ended well."""
    return Agent(job_of(sys.argv[1:] if arguments is None else arguments)).run()


if __name__ == "__main__":
    sys.exit(main())

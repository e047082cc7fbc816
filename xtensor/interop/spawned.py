"""The main module of processes that a program under `python -m xtensor` spawns."""

from .program import continue_in_worker

if __name__ == "__mp_main__":
    continue_in_worker(globals())

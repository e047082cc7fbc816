"""xtensor with every backward graph that a plan can honour run as one, from its first time: `--subject tests.fuzz.planned`."""

import sys

import xtensor
from xtensor.plans.plans import executor

executor.enabled = True
executor.hot = 1
executor.background = False
sys.modules[__name__] = xtensor

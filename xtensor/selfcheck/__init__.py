"""Every operator on a device against float64 on the host: `python -m xtensor.selfcheck --device cuda`."""

from .checking import CASES, check
from .report import Finding, Report

__all__ = ["CASES", "Finding", "Report", "check"]

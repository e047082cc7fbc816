"""`python -m xtensor.env`: the report."""

from . import report

if __name__ == "__main__":
    print(report())

"""Prints what both libraries say to every mistake, those that differ with their words; an argument chooses by name."""

import sys

import torch

import xtensor

from . import judge


def main(names: str = "") -> int:
    verdicts = judge(torch, xtensor, names)
    for verdict in verdicts:
        mark = "  " if verdict.same_facts else "f " if verdict.same_class else "C "
        print(mark + verdict.name)
        if not verdict.same_facts:
            for said in (verdict.theirs, verdict.ours):
                print(f"      {said.kind.__name__ if said.kind else 'no error'}: {said.text[:300]}")
            print(f"      missing: {', '.join(sorted(verdict.missing))}")
    count = len(verdicts)
    for what, number in (
        ("class", sum(v.same_class for v in verdicts)),
        ("facts", sum(v.same_facts for v in verdicts)),
    ):
        print(f"{what}: {number} of {count}, {100 * number / max(count, 1):.1f} %")
    return 0


sys.exit(main(*sys.argv[1:2]))

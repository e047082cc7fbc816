"""What the docstrings of the public names tell, counted.

python -m tests.house.docstrings             names, and how many of them tell shapes, errors, a source, an example
python -m tests.house.docstrings --lacking   with the names that tell no shapes, no errors or no source of a formula
"""

from __future__ import annotations

import argparse
import inspect

from tests.house.raises import clauses
from tests.house.test_docstrings import (
    QUERIES,
    commonest,
    gives_no_tensor,
    has_example,
    has_shapes,
    public_names,
)
from tests.house.test_sources import ELEMENTARY, SOURCE, formulas, source


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lacking", action="store_true", help="the names that lack something, too")
    options = parser.parse_args()
    names = public_names()
    docs = {name: inspect.getdoc(value) or "" for name, value in names.items()}
    stated = {
        f"{space}.{name}": bool(SOURCE.search(source(value)))
        for space, name, value in formulas()
        if name not in ELEMENTARY[space].split()
    }
    rows = {
        "a docstring": {name: bool(doc) for name, doc in docs.items()},
        "shapes, or gives no tensor": {
            n: has_shapes(doc) or n in QUERIES or gives_no_tensor(names[n]) for n, doc in docs.items()
        },
        "errors": {name: bool(clauses(doc)) for name, doc in docs.items()},
        "an example": {name: has_example(doc) for name, doc in docs.items()},
        "a source, of somebody's formulas": stated,
    }
    for what, has in rows.items():
        print(f"{what:36}{sum(has.values()):5} of {len(has):4}")
        if options.lacking and what not in ("a docstring", "an example"):
            print("   ", *(name for name, present in has.items() if not present))
    print(
        f"{sum(1 for _ in formulas()) - len(stated)} formulas are nobody's, and told in full: `ELEMENTARY` in test_sources.py"
    )
    print(f"{len(commonest())} commonest names, by `tests/house/commonest.txt`, are tested one by one")


if __name__ == "__main__":
    main()

"""PyTorch's own tests, run with xtensor in PyTorch's place.

    python -m tests.upstream FOLDER                          the files of `FILES`, from a folder `test` of PyTorch's sources
    python -m tests.upstream FOLDER test_indexing nn/test_init --limit 90 --out results

Of every test function one or two cases are taken, by its name; what PyTorch itself passes here is judged. PyTorch's helpers for tests
come from the installed PyTorch (the extra `parity`, besides `expecttest`, `hypothesis` and `scipy`), its test files from sources that
the user has, of that version or an older one. Prints how many cases of each file pass; the folder holds the last words of the others.
"""

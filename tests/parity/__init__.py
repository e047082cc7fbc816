"""Parity: PyTorch's own description of its operators (its OpInfo database), run on both libraries.

    python -m tests.parity                        every entry in float32, and its errors and second derivatives
    python -m tests.parity add linalg.svd         these entries (a trailing * stands for anything)
    python -m tests.parity --dtypes all           the ten dtypes, where PyTorch's CPU has them
    python -m tests.parity --facets forward,out   these facets only
    python -m tests.parity --dtypes all --record  everything, and write `agreeing.json` from what was found
    python -m tests.parity --quick ...            code that XLA does not optimize: a third of the time
    python -m tests.parity --large                samples of 4,096 elements and more: values and gradients

An entry is an operator (in one of its uses) with sample inputs and inputs that must fail. Samples are made by PyTorch
and reach our library through their memory, strides kept. What is compared of a sample:

    forward    values, dtypes, shapes and structure
    gradient   of every input that wants one, for random gradients of the outputs
    inplace    the in-place form: result, identity, and the gradient through it
    out        `out=` of the right size, of a wrong size, and of another dtype
    method     the method, the Python operator and the aliases
    errors     the class of the error for inputs that must fail
    gradgrad   second derivatives, in float64 (or what the entry has)

Operators that draw numbers are compared in shape, dtype and distribution; decompositions that are unique up to a sign
or a phase by what they rebuild. Rounding is judged as PyTorch's own tests do, and where that is too narrow, against
PyTorch in double precision: we may be a few times as far from it as PyTorch itself. Of an entry's samples, 20 evenly
chosen ones are run (`facets.LIMITS` has the figures per facet; `--all` runs every one). With `--large` two of them are
enlarged (`large.py`): code for vectors is not in what PyTorch's own small samples run.
"""

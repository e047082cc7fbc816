"""What XLA's flags of `xtensor/xla/host.py` do to results: every operator in a process with them against one without.

    python -m tests.flags                            # every row of the operator table, all flags together and each alone
    python -m tests.flags 'tanh' 'fft_*'             # some rows
    python -m tests.flags --flag xla_cpu_prefer_vector_width=512 'a*'   # a flag that is on trial, alone
    python -m tests.flags --parity                   # PyTorch's own samples instead (`tests/parity`), enlarged alike
    python -m tests.flags --dtypes bfloat16,int64 --json flags.json

The rows are those of `tests/table`, whose tensors are enlarged to 4,096 elements and more (`enlarge.py`): the loops over
vectors, in which generated code can be wrong, begin where the table's small samples end. The first process has no flags
(`XTENSOR_TUNE_HOST=0`), finds out which enlarged calls an operator takes, and writes their results and gradients to
files; each other process makes the same calls and compares (`compare.py` says what counts as rounding). A table says
how many calls there were and the largest difference, in units of the tolerance; the exit status is 1 where one is beyond it.
"""

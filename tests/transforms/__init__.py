"""Every operator of the table under function transforms.

    python -m tests.transforms                  all rows, each against loops and against its own gradient
    python -m tests.transforms 'linalg_*' --samples 3

For each row's first samples in double precision: `vmap` over each tensor argument alone and over all together, in batches of two, one
and none, and with samples along the last dimension, against a loop over the samples; `jvp` against the transposed `vjp`; `vmap` of `jvp` and
`jvp` of `vmap` against loops; what each kind of randomness means. `listed.json` holds what differs, with the reason; the command fails
for anything that is not in it, and `--record` writes it anew.
"""

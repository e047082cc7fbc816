"""Functions captured as one program: forward, backward, the optimizer's step, writes and random numbers of eager code.

function  when a call is captured, when a program serves it, when it runs eagerly
watch     the tensors that a capture meets, as inputs
follow    what it reads and changes of Python's world; rewrite: the user's code made to tell
results   what it leaves behind
joint     its equations as functions; program: their calls
guards    what must be as it was
"""

"""Functions captured as one program: forward, backward, the optimizer's step, writes and random numbers of eager code.

function  when a call is captured, when a program serves it, when it runs eagerly
watch     the tensors that a capture meets, as inputs
follow    the user's code that runs in it; rewrite: that code made to tell; recorder: what it tells; reads: what was read, compared again
effects   schedulers, GradScaler and `print` within it
results   what it leaves behind
split     a function in two parts, where it cannot be captured whole; numbers: arguments that are values of the program
joint     its equations as functions; program: their calls
guards    what must be as it was
"""

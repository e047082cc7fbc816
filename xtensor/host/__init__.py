"""What Python and NumPy answer on the CPU, where a program would cost more than what it computes.

numbers    numbers of no dimensions, computed by Python
at_hand    values that are on the host already
writes     numbers and such values, written to small tensors
"""

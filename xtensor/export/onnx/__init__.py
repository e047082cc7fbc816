"""Exported programs as ONNX models: one translation for each operator, in tables by what they are about.

building  nodes, constants and shapes of a model while it is made
memory    what writes and views become where nothing can be written
values, shapes, reductions, layers, sequences  the tables
model     the whole model, checked
"""

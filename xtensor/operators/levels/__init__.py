"""Function transforms and operators: tensors that cross the border of a level, and tangents of results."""

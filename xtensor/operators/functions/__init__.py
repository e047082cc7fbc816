"""The Python functions that users call: generated from the schema, made when first called."""

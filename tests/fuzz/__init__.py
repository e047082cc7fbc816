"""Judges: seeded random programs run on two libraries, compared step by step, and shrunk when they disagree."""

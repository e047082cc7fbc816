"""Operators that fold, scan, order or measure dimensions."""

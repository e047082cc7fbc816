"""Readings and derivative rules where sizes vary."""

"""The examples of `docs/transforms.md` print what they say."""

import doctest
import pathlib

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "transforms.md"


def test_examples():
    assert doctest.testfile(str(PAGE), module_relative=False) == (0, 25)

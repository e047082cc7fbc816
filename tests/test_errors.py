"""Codes of errors: every class has an example that raises it, typical mistakes have a class, messages stay as they are."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import warnings

import pytest

import xtensor
from tests.house.test_documents import anchors
from tests.mistakes import MISTAKES
from tests.mistakes.case import said
from xtensor import errors, nn

ROOT = pathlib.Path(__file__).resolve().parents[1]


def raised(code: str) -> Exception:
    """The error that a program ends with."""
    with warnings.catch_warnings():
        try:
            exec(code, {"xtensor": xtensor, "nn": nn})
        except Exception as error:
            return error
    raise AssertionError(f"no error: {code}")


@pytest.mark.parametrize("entry", errors.ENTRIES, ids=lambda entry: entry.code)
def test_an_example_raises_an_error_of_its_class(entry, monkeypatch):
    # What an example hides is found again after it.
    monkeypatch.setitem(sys.modules, "safetensors", sys.modules.get("safetensors"))
    error = raised(entry.example)
    assert errors.entry_of(error) is entry, error


def test_codes_are_in_order_and_in_groups():
    codes = [entry.code for entry in errors.ENTRIES]
    assert codes == sorted(set(codes))
    assert {code[1] for code in codes} == set(errors.GROUPS)
    assert all(re.fullmatch(r"X\d\d\d", code) for code in codes)


def test_every_class_leads_to_a_page_and_its_section():
    for entry in errors.ENTRIES:
        file, _, anchor = entry.page.partition("#")
        path = ROOT / file.removeprefix("project/") if file.startswith("project/") else ROOT / "docs" / file
        assert path.exists(), entry.code
        assert not anchor or anchor in anchors(path.read_text("utf-8")), entry.code


def test_typical_mistakes_have_a_class():
    """All but a few that are Python's own: messages that no table could tell apart."""
    told = [said(case, xtensor) for case in MISTAKES.values()]
    unknown = {text for _, text in told if text and errors.entry_of(text) is None}
    assert len(unknown) <= 16, unknown


def test_an_error_says_its_code_under_its_message():
    error = raised("xtensor.ones(2, 3) + xtensor.ones(2)")
    assert error.__notes__ == ['xtensor.help("X201") tells more']
    assert str(error).endswith("at non-singleton dimension 1")


NOTED = (
    "X101",
    "X102",
    "X103",
    "X104",
    "X107",
    "X201",
    "X202",
    "X203",
    "X204",
    "X301",
    "X302",
    "X303",
    "X501",
    "X601",
)


@pytest.mark.parametrize("code", NOTED)
def test_what_the_library_refuses_carries_a_code_of_its_class(code):
    (entry,) = (entry for entry in errors.ENTRIES if entry.code == code)
    assert raised(entry.example).__notes__ == [f'xtensor.help("{code}") tells more']


def test_help_prints_what_the_page_says(capsys):
    page = (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8")
    for entry in errors.ENTRIES:
        xtensor.help(entry.code)
        told = capsys.readouterr().out
        assert told.startswith(f"{entry.code}: {entry.title}\n")
        assert f"### {entry.code}\n\n**{entry.title}.** {entry.meaning}\n" in page
        assert "](" not in told


def test_help_of_an_error_of_the_last_one_and_of_none(capsys, monkeypatch):
    xtensor.help(raised("xtensor.ones(3)[5]"))
    assert capsys.readouterr().out.startswith("X401: ")
    monkeypatch.setattr(sys, "last_value", ValueError("something of the user's"), raising=False)
    xtensor.help()
    assert capsys.readouterr().out == "ValueError of this kind has no code: something of the user's\n"
    monkeypatch.delattr(sys, "last_value")
    xtensor.help()
    assert capsys.readouterr().out.startswith("No error was shown yet.")
    with pytest.raises(LookupError, match="no error has the code 'X999'"):
        xtensor.help("X999")


def test_a_traceback_shows_the_code_below_the_message():
    done = subprocess.run(
        [sys.executable, "-c", "import xtensor\nxtensor.ones(2).view(3)"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-2:] == [
        "RuntimeError: shape '[3]' is invalid for input of size 2",
        'xtensor.help("X203") tells more',
    ]


def test_a_users_error_stays_as_it_was():
    class Odd(xtensor.autograd.Function):
        """Fails in the words of no class."""

        @staticmethod
        def forward(ctx, value):
            raise ValueError("nothing of the library's")

    with pytest.raises(ValueError, match="nothing of the library's") as caught:
        Odd.apply(xtensor.ones(1))
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.nn.functional.cross_entropy(t.ones(2, 3), [0, 1]),
        lambda t: t.nn.functional.pad([1.0], (1, 1)),
        lambda t: t.nn.functional.prelu(t.ones(2), 0.5),
        lambda t: t.flipud([[1.0]]),
        lambda t: t.unique([1, 2]),
        lambda t: t.cdist(t.ones(2, 2), [[1.0]]),
        lambda t: t.repeat_interleave([1], 2),
        lambda t: t.broadcast_tensors(t.ones(2), 3),
        lambda t: t.select_scatter(t.ones(2, 2), [1.0, 2.0], 0, 0),
        lambda t: t.transpose_copy([1.0], 0, 0),
        lambda t: t.fft.fftshift("text"),
    ],
)
def test_what_is_no_tensor_is_told(torch, call):
    """In PyTorch's words, where a function is written in Python too: not as an attribute that a list has not."""
    with pytest.raises(TypeError) as found:
        call(xtensor)
    with pytest.raises(TypeError) as wanted:
        call(torch)
    lists = (str(e.value).partition("but expected")[0] for e in (found, wanted))
    assert len(set(lists)) == 1


def test_an_attribute_that_is_missing_elsewhere_is_told_as_it_is():
    class Odd(xtensor.Tensor):
        def dim(self):
            return self.no_such_attribute

    with pytest.raises(AttributeError, match="no_such_attribute"):
        xtensor.flipud(xtensor.ones(2, 2).as_subclass(Odd))

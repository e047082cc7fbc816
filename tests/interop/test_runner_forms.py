"""`python -m xtensor` takes programs in every form in which Python does; Python itself is what it is compared with."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What a program can see of how it was started.
LOOK = '''"""The program's own text."""
import sys
def annotated(x: int): ...
names = ("__name__", "__file__", "__package__", "__doc__", "__cached__")
print(sys.argv, {n: globals().get(n, "absent") for n in names}, sys.path[0], annotated.__annotations__)
print(__spec__ and (__spec__.name, __spec__.origin, __spec__.parent), __builtins__ is __import__("builtins"))
print(type(__loader__).__name__, sys.modules["__main__"].annotated is annotated, sorted(globals()))
'''


def both(folder, arguments, text=None, flags=()):
    """The same command line given to Python and to the runner: their exit codes, outputs and errors."""
    found = []
    for runner in ([], ["-m", "xtensor"]):
        done = subprocess.run(
            [sys.executable, *flags, *runner, *arguments],
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=folder,
            input=text or "",
            capture_output=True,
            text=True,
            check=False,
        )
        found.append((done.returncode, done.stdout, done.stderr))
    return found


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "script.py").write_text(LOOK)
    (tmp_path / "package" / "inner").mkdir(parents=True)
    (tmp_path / "package" / "__init__.py").write_text("import sys\nprint('package', sys.argv)\n")
    (tmp_path / "package" / "__main__.py").write_text(LOOK)
    (tmp_path / "package" / "inner" / "__init__.py").write_text("")
    (tmp_path / "package" / "inner" / "module.py").write_text(LOOK)
    with zipfile.ZipFile(tmp_path / "program.zip", "w") as file:
        file.writestr("__main__.py", LOOK)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "linked.py").symlink_to(tmp_path / "script.py")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["script.py", "--", "--device", "none of the runner's", "-m", "-h"],
        ["--", "script.py", "--", "a"],
        ["other/linked.py"],
        ["package", "a", "--"],
        ["program.zip", "a"],
        ["-m", "package", "--", "-x"],
        ["-m", "package.inner.module", "-c", "b"],
        [f"-c{LOOK}", "--", "-c", "a b"],
        ["-", "--", "-"],
    ],
    ids=lambda arguments: " ".join(a if "\n" not in a else "LOOK" for a in arguments),
)
def test_a_program_sees_what_python_shows_it(folder, arguments):
    theirs, ours = both(folder, arguments, LOOK)
    assert theirs[0] == 0, theirs[2]
    assert ours[1].splitlines() == theirs[1].splitlines()
    assert ours == theirs


FAILURES = {
    "script": ["fail.py"],
    "module": ["-m", "fail"],
    "code": ["-c", "def f():\n    1 / 0\nf()"],
    "input": ["-"],
    "syntax": ["bad.py"],
    "syntax of a module": ["-m", "bad"],
    "imported": ["-c", "import bad"],
    "exit": ["-c", "import sys; sys.exit('for a reason')"],
    "code of an exit": ["-c", "raise SystemExit(7)"],
    "interrupt": ["-c", "raise KeyboardInterrupt"],
    "hook": ["-c", "import sys; sys.excepthook = lambda *a: print(a[0], a[1], file=sys.stderr); 1 / 0"],
    "chained": ["-c", "try:\n    1 / 0\nexcept Exception as e:\n    raise KeyError(3) from e"],
    "no file": ["no/such/file.py"],
    "no main": ["."],
    "no module": ["-m", "no_such_module"],
    "no parent": ["-m", "no_such_package.module"],
    "no main of a package": ["-m", "empty"],
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_program_fails_as_under_python(tmp_path, name):
    (tmp_path / "fail.py").write_text("def f():\n    1 / 0\n\nf()\n")
    (tmp_path / "bad.py").write_text("x = 1\ny = = 2\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "__init__.py").write_text("")
    theirs, ours = both(tmp_path, FAILURES[name], "def f():\n    1 / 0\nf()")
    assert theirs[0] != 0
    assert ours[:2] == theirs[:2]

    # Frames of Python's own machinery are not the program's, and where there are no others no frame is shown.
    lines = [line for line in theirs[2].splitlines() if "<frozen " not in line]
    if name == "syntax of a module":
        del lines[0]
    assert ours[2].splitlines() == lines
    if name == "interrupt" and os.name == "posix":
        assert ours[0] == -signal.SIGINT


def test_an_interactive_python_goes_on_behind_the_program(tmp_path):
    (tmp_path / "fail.py").write_text("import torch\nx = torch.ones(2)\n1 / 0\n")
    _, (_, out, error) = both(tmp_path, ["fail.py"], "print(x.sum().item(), torch.__name__)\n2 / 0\n", ["-i"])
    assert out.split() == ["2.0", "torch"]
    assert error.count("ZeroDivisionError") == 2
    assert "interop" not in error


def test_torch_is_there_in_every_form(tmp_path):
    text = "import sys, torch; print(torch.ones(2, device='cuda').device, sys.argv[1:])"
    for arguments in (["-c", text, "a"], ["-", "a"]):
        _, (code, out, error) = both(tmp_path, arguments, text)
        assert code == 1, out  # no GPU was asked to be another device
        assert "cuda" in error
        done = subprocess.run(
            [sys.executable, "-m", "xtensor", "--device=cpu:1", *arguments],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == ["cpu:1", "['a']"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--"], "SCRIPT is missing"),
        (["--device"], "--device: expected one argument"),
        (["--device", "cpu"], "SCRIPT is missing"),
        (["-m"], "argument expected for the -m option"),
        (["-c"], "argument expected for the -c option"),
        (["--epochs", "3"], "unrecognized argument: --epochs"),
    ],
)
def test_what_is_no_program_is_refused(capsys, arguments, message):
    from xtensor.__main__ import main

    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_help_names_the_forms(capsys):
    from xtensor.__main__ import main

    main(["--help"])
    out = capsys.readouterr().out
    assert all(form in out for form in ("-m MODULE", "-c CODE", "--device", "SCRIPT"))


@pytest.mark.parametrize("form", ["code", "input", "module"])
def test_workers_of_every_form_find_torch(tmp_path, form):
    (tmp_path / "squares.py").write_text(
        textwrap.dedent("""
        import torch
        from torch.utils.data import Dataset

        class Squares(Dataset):
            def __len__(self):
                return 4
            def __getitem__(self, i):
                return torch.tensor(i * i)
        """)
    )
    text = (
        "from squares import Squares\nfrom torch.utils.data import DataLoader\n"
        "if __name__ == '__main__':\n"
        "    print([b.tolist() for b in DataLoader(Squares(), batch_size=2, num_workers=1)], __spec__ is None)\n"
    )
    (tmp_path / "program.py").write_text(text)
    arguments = {"code": ["-c", text], "input": ["-"], "module": ["-m", "program"]}[form]
    done = subprocess.run(
        [sys.executable, "-m", "xtensor", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == f"[[0, 1], [4, 9]] {form != 'module'}", done.stderr[-2000:]

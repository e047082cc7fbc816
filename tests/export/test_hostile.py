"""Exported files that somebody has changed on purpose, with right checksums: each is refused in words, or is a program of the library's."""

import io
import json
import random
import struct
import zipfile

import pytest

import xtensor
from xtensor import nn
from xtensor.export import export, load, save
from xtensor.serialization.errors import FileFormatError

from .test_files import rewritten

pytest.importorskip("flatbuffers")


class Net(nn.Module):
    """Layers, a branch and random numbers."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x, times=2):
        y = nn.functional.dropout(self.norm(self.layer(x)), 0.1)[:, 1:]
        return {"y": xtensor.cond(y.sum() > 0, lambda: y * times, lambda: -y), "n": times}


@pytest.fixture(scope="module")
def raw():
    """The bytes of a file."""
    file = io.BytesIO()
    save(export(Net(), (xtensor.ones(5, 3),)), file, platforms=("cpu",))
    return file.getvalue()


VALUES = (
    None, -1, 0, 1 << 70, 1e308, float("nan"), "", "x", "__class__", "builtins.eval", "aten.add.Tensor", "higher_order.cond", "getitem", [], {}, [[1]], True,
    {"node": "x"}, {"slot": -1}, {"size": "2**9**9**9"}, {"size": "mod(1,0)"}, {"size": "().__class__"}, {"dict": [[1, 2]]},
    {"graph": ["f", [], [], {"tuple": []}]},
)  # fmt: skip


def mutated(value, chance):
    """A value of JSON in which one thing is another."""
    if not isinstance(value, (dict, list)) or not value or chance.random() < 0.05:
        return chance.choice(VALUES)
    place = chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
    kind = chance.random()
    if kind < 0.1:
        value.pop(place)
    elif kind < 0.2 and isinstance(value, list):
        value.append(value[place])
    elif kind < 0.2:
        value[chance.choice(("x", "node", "tuple"))] = value.pop(place)
    else:
        value[place] = mutated(value[place], chance)
    return value


def opened(data):
    """Load, and say what it is; False where it is refused."""
    try:
        program = load(io.BytesIO(data))
    except FileFormatError:
        return False
    assert "def forward" in str(program)
    return True


def test_signatures_with_anything_in_them(raw, seed):
    chance = random.Random(seed)
    refused = 0
    for _ in range(120):

        def change(data):
            return json.dumps(mutated(json.loads(data), chance)).encode()

        refused += not opened(rewritten(raw, "export/signature.json", change))
    assert refused > 60


@pytest.mark.parametrize("name", ["program.jax", "module.stablehlo", "weights.safetensors"])
def test_records_with_flipped_bits(raw, name, seed):
    chance = random.Random(seed)

    def change(data):
        data = bytearray(data)
        for _ in range(chance.choice((1, 1, 3, 20))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        return bytes(data)

    found = [opened(rewritten(raw, f"export/{name}", change)) for _ in range(15)]
    if name != "weights.safetensors":  # whose values may be any
        assert not any(found)


def test_a_program_with_flipped_bits_and_no_digest(raw, seed):
    """As whoever writes a file on purpose may have it: it is refused, or what it was."""
    chance = random.Random(seed)

    def undigested(data):
        told = json.loads(data)
        assert len(told.pop("digest")) == 64
        return json.dumps(told).encode()

    def flipped(data):
        data = bytearray(data)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        return bytes(data)

    plain = rewritten(raw, "export/signature.json", undigested)
    assert opened(plain)
    found = [opened(rewritten(plain, "export/program.jax", flipped)) for _ in range(60)]
    assert found.count(False) > 30


def archive(records, **options):
    """A zip archive of these records."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", **options) as file:
        for name, data in records:
            file.writestr(name, data)
    return made.getvalue()


def records_of(raw):
    with zipfile.ZipFile(io.BytesIO(raw)) as file:
        return [(name, file.read(name)) for name in file.namelist()]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_archives_that_are_traps(raw, tmp_path, monkeypatch):
    """Compressed records (bombs among them), names that lead elsewhere, records twice, sizes that are claimed."""
    monkeypatch.chdir(tmp_path)
    records = records_of(raw)
    assert opened(archive(records))
    bomb = [(n, b" " * (1 << 24) + d if n.endswith("signature.json") else d) for n, d in records]
    traps = {
        "compressed": archive(records, compression=zipfile.ZIP_DEFLATED),
        "a bomb": archive(bomb, compression=zipfile.ZIP_DEFLATED),
        "two signatures": archive([*records, ("export/signature.json", b"{}")]),
        "another folder": archive([(n.replace("export/", "../export/"), d) for n, d in records]),
        "two folders": archive([(n.replace("export/w", "other/w"), d) for n, d in records]),
        "nothing": archive([]),
    }
    for what, data in traps.items():
        assert not opened(data), what
    for name in ("../../outside.txt", "/outside.txt", "export/../../outside.txt"):
        opened(archive([*records, (name, b"outside")]))
    assert not list(tmp_path.iterdir()) and not (tmp_path.parent / "outside.txt").exists()
    whole = bytearray(raw)
    end = whole.rfind(b"PK\x05\x06")
    for at, value in ((end + 10, 0xFFFF), (end + 12, 0x7FFFFFFF), (end + 16, 0x7FFFFFFF)):
        data = bytearray(whole)
        struct.pack_into("<H" if at == end + 10 else "<I", data, at, value)
        assert not opened(bytes(data))


def test_weights_whose_header_lies(raw):
    for header in (
        {"layer.weight": {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 48]}},
        {"layer.weight": {"dtype": "F32", "shape": [-1, 3], "data_offsets": [0, 48]}},
        {"layer.weight": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 1 << 60]}},
        {"layer.weight": {"dtype": "PY", "shape": [3, 4], "data_offsets": [0, 48]}},
        ["layer.weight"],
    ):
        text = json.dumps(header).encode()
        for length in (len(text), 1 << 62, 0):
            data = struct.pack("<Q", length) + text + b"\0" * 48
            assert not opened(rewritten(raw, "export/weights.safetensors", lambda _, d=data: d))

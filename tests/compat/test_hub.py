"""`torch.hub`: models from a folder, and weights from an address, whole or not at all."""

import hashlib
import pathlib

import pytest

import xtensor
from xtensor import hub


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['numpy']\n"
        "from parts import make\n"
        "def model(width, pretrained=False):\n    'A layer.'\n    return make(width)\n"
        "def _hidden():\n    pass\n"
    )
    (tmp_path / "parts.py").write_text(
        "import xtensor\ndef make(width):\n    return xtensor.nn.Linear(width, 1)\n"
    )
    return tmp_path


def test_a_model_from_a_folder(folder):
    assert hub.load(str(folder), "model", 3, source="local").in_features == 3
    assert hub.help(str(folder), "model") == "A layer."
    assert "model" in hub.list(str(folder)) and "_hidden" not in hub.list(str(folder))
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        hub.load(str(folder), "other", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(str(folder), "model", source="elsewhere")
    (folder / "hubconf.py").write_text("dependencies = ['no_such_package_here']\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package_here"):
        hub.load(str(folder), "model", source="local")


def test_weights_from_an_address(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "_chosen", [str(tmp_path / "hub")])
    state = xtensor.nn.Linear(2, 1).state_dict()
    xtensor.save(state, tmp_path / "raw.pt")
    digest = hashlib.sha256((tmp_path / "raw.pt").read_bytes()).hexdigest()
    named = tmp_path / f"weights-{digest[:8]}.pt"
    (tmp_path / "raw.pt").rename(named)
    found = hub.load_state_dict_from_url(named.as_uri(), check_hash=True, progress=False)
    assert found["weight"].tolist() == state["weight"].tolist()
    kept = pathlib.Path(hub.get_dir()) / "checkpoints" / named.name
    named.unlink()
    assert kept.exists() and hub.load_state_dict_from_url(named.as_uri()).keys() == state.keys()


def test_a_download_that_is_not_what_it_should_be_leaves_nothing(tmp_path):
    source = tmp_path / "source"
    source.write_bytes(b"something")
    target = tmp_path / "target"
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.download_url_to_file(source.as_uri(), str(target), "00000000", progress=False)
    assert [p.name for p in tmp_path.iterdir()] == ["source"]

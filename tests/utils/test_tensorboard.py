"""SummaryWriter: TensorBoard's own reader finds what was written, and what PyTorch's writer writes."""

from dataclasses import astuple

import numpy as np
import pytest

pytest.importorskip("tensorboard", reason="tensorboard is not installed: pip install '.[tensorboard]'")

import xtensor

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def write(library, writer_class, folder):
    values = library.arange(20.0) / 10 - 1
    with writer_class(str(folder)) as writer:
        for step in range(3):
            writer.add_scalar("loss", values[step], step)
        writer.add_scalar("new", 2.5, 1, new_style=True)
        writer.add_histogram("weights", values, 4)
        writer.add_image("picture", values.abs().reshape(1, 4, 5), 0)
        writer.add_images("batch", values.abs().reshape(2, 1, 2, 5), 0)
        writer.add_text("note", "hello", 2)
        labels = (values > 0).int()
        writer.add_pr_curve("curve", labels, (values + 1) / 2, 0)
        writer.add_audio("sound", values.reshape(1, -1), 0, sample_rate=8000)
        writer.add_scalars("several", {"a": 1.0, "b": 2.0}, 5)
        writer.add_hparams({"lr": 0.1, "name": "x", "flag": True}, {"best": 0.5}, run_name="trial")


def read(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    held = EventAccumulator(
        str(folder), size_guidance={"tensors": 0, "images": 0, "audio": 0, "histograms": 0}
    )
    held.Reload()
    found = {("scalar", t): [(e.step, e.value) for e in held.Scalars(t)] for t in held.Tags()["scalars"]}
    for tag in held.Tags()["histograms"]:
        found["histogram", tag] = [(e.step, astuple(e.histogram_value)) for e in held.Histograms(tag)]
    for tag in held.Tags()["tensors"]:
        found["tensor", tag] = [
            (e.step, list(e.tensor_proto.float_val), list(e.tensor_proto.string_val))
            for e in held.Tensors(tag)
        ]
    for tag in held.Tags()["audio"]:
        found["audio", tag] = [(e.step, e.sample_rate, e.length_frames) for e in held.Audio(tag)]
    for tag in held.Tags()["images"]:
        found["image", tag] = [(e.step, e.width, e.height, pixels(e)) for e in held.Images(tag)]
    return found


def pixels(event):
    import io

    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(event.encoded_image_string))).tolist()


def test_events_are_those_of_pytorch(torch, tmp_path):
    from torch.utils.tensorboard import SummaryWriter as Theirs

    from xtensor.utils.tensorboard import SummaryWriter as Ours

    write(xtensor, Ours, tmp_path / "ours")
    write(torch, Theirs, tmp_path / "theirs")
    ours, theirs = read(tmp_path / "ours"), read(tmp_path / "theirs")
    assert ours.keys() == theirs.keys()
    for key in theirs:
        if key == ("histogram", "weights"):
            np.testing.assert_allclose(ours[key][0][1][:5], theirs[key][0][1][:5])
            np.testing.assert_allclose(ours[key][0][1][5], theirs[key][0][1][5], rtol=1e-9)
            assert ours[key][0][1][6] == theirs[key][0][1][6]
        elif key[0] == "tensor":
            for (a, x, s), (b, y, t) in zip(ours[key], theirs[key], strict=True):
                assert (a, s) == (b, t)
                np.testing.assert_allclose(x, y, rtol=1e-5)
        elif key == ("image", "batch"):
            assert len(ours[key]) == len(theirs[key])
        else:
            assert ours[key] == theirs[key], key
    folders = sorted(p.name for p in (tmp_path / "ours").iterdir() if p.is_dir())
    assert folders == ["several_a", "several_b", "trial"]


def test_a_graph_is_not_written(tmp_path):
    from xtensor.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer, pytest.warns(UserWarning, match="add_graph writes nothing"):
        writer.add_graph(xtensor.nn.Linear(1, 1), xtensor.ones(1, 1))


def test_plugins_are_those_of_pytorch(torch, tmp_path):
    def written(library, writer_class, folder):
        with writer_class(str(folder)) as writer:
            rows = library.arange(6.0).reshape(3, 2)
            writer.add_embedding(rows, [["a", 1], ["b", 2], ["c", 3]], tag="e", metadata_header=["n", "i"])
            writer.add_embedding(rows, ["x", "y", "z"], library.ones(3, 3, 2, 2), global_step=4)
            writer.add_mesh("mesh", rows.reshape(1, 2, 3), faces=library.tensor([[[0, 1, 1]]]))
            writer.add_custom_scalars(
                {"c": {"one": ["Multiline", ["a", "b"]], "two": ["Margin", list("abc")]}}
            )
            writer.add_custom_scalars_multilinechart(["a", "b"])
        found = {
            str(p.relative_to(folder)): p.read_bytes()
            for p in sorted(folder.rglob("*"))
            if p.is_file() and "tfevents" not in p.name
        }
        return found, read(folder)

    ours = written(xtensor, xtensor.utils.tensorboard.SummaryWriter, tmp_path / "ours")
    theirs = written(torch, pytest.importorskip("torch.utils.tensorboard").SummaryWriter, tmp_path / "theirs")
    assert ours[1] == theirs[1] and ours[0].keys() == theirs[0].keys()
    for name, content in theirs[0].items():
        if not name.endswith(".png"):
            assert ours[0][name] == content, name


def test_moving_pictures_and_boxes(tmp_path):
    with xtensor.utils.tensorboard.SummaryWriter(str(tmp_path)) as writer:
        writer.add_video("video", xtensor.linspace(0, 1, 2 * 3 * 3 * 4 * 5).reshape(2, 3, 3, 4, 5))
        writer.add_image_with_boxes("boxes", xtensor.zeros(3, 20, 30), xtensor.tensor([[2, 3, 10, 12]]), 1)
        with pytest.raises(ValueError, match="5 dimensions"):
            writer.add_video("flat", xtensor.zeros(3, 4, 5))
    found = {key: held for key, held in read(tmp_path).items() if key[0] == "image"}
    assert [e[:3] for e in found["image", "video"]] == [(0, 10, 4)]
    ((step, width, height, drawn),) = found["image", "boxes"]
    assert (step, width, height) == (1, 30, 20)
    assert np.asarray(drawn)[3, 5].tolist()[:3] == [255, 0, 0]

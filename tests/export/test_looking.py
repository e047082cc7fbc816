"""What an exported program costs, and its picture."""

import pytest

import xtensor
from tests.export.architectures import MODELS
from xtensor import nn
from xtensor.export import Dim, Roof, draw, explain, export
from xtensor.utils.flop_counter import FlopCounterMode

ROOF = Roof(1e12, 1e11)


@pytest.mark.parametrize("name", ["resnet", "llama"])
def test_operations_are_those_that_flop_counter_mode_counts(name, seed):
    xtensor.manual_seed(seed)
    model = MODELS[name]()
    model.module.eval()
    with FlopCounterMode(display=False) as counter:
        model.module(*model.args)
    found = explain(export(model.module, model.args, dynamic_shapes=model.sizes), roof=ROOF)
    assert found.flops == counter.get_total_flops() > 0
    assert found.seconds == pytest.approx(sum(max(c.flops / 1e12, c.moved / 1e11) for c in found.costs))
    with FlopCounterMode(display=False) as counter:
        model.module(*model.others)
    sizes = {"batch": 3, "length": 9} if name == "llama" else {"batch": 3}
    again = explain(export(model.module, model.args, dynamic_shapes=model.sizes), sizes=sizes, roof=ROOF)
    assert again.flops == counter.get_total_flops()


def test_bytes_are_those_that_are_read_and_written():
    class Small(nn.Module):
        def forward(self, x):
            y = x.t()[1:]
            y = y + 1
            y.mul_(2)
            return y

    found = explain(export(Small(), (xtensor.ones(4, 3),)), roof=ROOF)
    moved = {c.target.removeprefix("torch.ops.aten."): c.moved for c in found.costs}
    assert moved == {
        "t.default": 0,
        "slice.Tensor": 0,
        "add.Tensor": 2 * 2 * 4 * 4,
        "mul_.Tensor": 2 * 2 * 4 * 4,
    }
    text = str(found)
    assert "f32[2, 4]" in text and "roof: 1,000.0 GFLOP/s, 100.0 GB/s" in text and "all" in text


def test_open_sizes_are_asked_for(tmp_path):
    pytest.importorskip("flatbuffers")
    program = export(nn.Linear(3, 2), (xtensor.ones(4, 3),), dynamic_shapes=({0: Dim("batch", min=2)},))
    assert explain(program, roof=ROOF).flops == 2 * 4 * 3 * 2
    xtensor.export.save(program, tmp_path / "linear.xtx")
    again = xtensor.export.load(tmp_path / "linear.xtx")
    with pytest.raises(ValueError, match=r"explain\(\) needs the values of the open sizes batch"):
        explain(again, roof=ROOF)
    assert explain(again, sizes={"batch": 8}, roof=ROOF).flops == 2 * 8 * 3 * 2


def test_the_roof_of_the_device_is_measured_once():
    program = export(nn.Linear(3, 2), (xtensor.ones(4, 3),))
    one, two = explain(program).roof, explain(program).roof
    assert one is two and one.flops > 0 and one.bandwidth > 0


def test_drawing(tmp_path):
    program = export(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), (xtensor.ones(4, 3),))
    picture = draw(program, tmp_path / "program.dot")
    text = (tmp_path / "program.dot").read_text("utf-8")
    assert text == picture.to_string() and '"linear" -> "relu";' in text and "f32[4, 2]" in text
    pytest.importorskip("pygraphviz")
    draw(program, tmp_path / "program.svg")
    assert (tmp_path / "program.svg").read_text("utf-8").count("<svg") == 1
    assert "relu" in picture.picture().svg

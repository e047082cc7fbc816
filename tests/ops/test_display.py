"""Tensors to look at: in a notebook, in matplotlib's plots, and how little of a large one is read for it."""

import html.parser
import warnings

import numpy as np
import pytest

import xtensor
from xtensor import nn, printing


class Parser(html.parser.HTMLParser):
    """The lines, and the cells of the tables, of what a notebook is given; every tag must be closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.lines, self.tables, self.open = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.style = dict(attributes).get("style", "")
        elif tag == "div":
            self.lines.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open[-1] == "div":
            self.lines[-1] += text
        else:
            self.tables[-1][-1][-1] += text


def shown(tensor) -> Parser:
    return Parser(tensor._repr_html_())


# -- notebooks


def test_a_matrix_is_a_numbered_table_under_a_line():
    x = xtensor.tensor([[1.0, -2.5], [float("nan"), 0.0]], requires_grad=True)
    found = shown(x)
    assert found.lines == ["tensor 2 × 2 · float32 · cpu · requires_grad"]
    assert found.tables == [[["", "0", "1"], ["0", "1.0000", "-2.5000"], ["1", "nan", "0.0000"]]]


def test_vectors_and_numbers():
    assert shown(xtensor.arange(3)).tables == [[["0", "1", "2"], ["0", "1", "2"]]]
    found = shown(xtensor.tensor(2.5, device="cpu:1"))
    assert (found.lines, found.tables) == (["tensor of no dimensions · float32 · cpu:1"], [[["2.5000"]]])
    assert shown(xtensor.tensor([True, False])).tables[0][1] == ["True", "False"]
    assert shown(xtensor.tensor([1 + 2j])).tables[0][1] == ["1.+2.j"]


def test_what_a_tensor_is():
    weight = nn.Linear(2, 2).weight
    assert shown(weight).lines == ["Parameter 2 × 2 · float32 · cpu · requires_grad"]
    assert shown(weight * 2).lines == ["tensor 2 × 2 · float32 · cpu · grad_fn=<MulBackward0>"]
    for empty in (xtensor.ones(2, 3, device="meta"), xtensor.ones(0, 3)):
        assert shown(empty).tables == []
    assert shown(xtensor.ones(2, device="meta")).lines == ["tensor 2 · float32 · meta"]


def test_more_dimensions_are_a_table_each():
    x = xtensor.arange(24).reshape(2, 2, 3, 2)
    found = shown(x)
    assert found.lines[1:] == ["[0, 0]", "[0, 1]", "[1, 0]", "[1, 1]"]
    assert [[row[1:] for row in table[1:]] for table in found.tables] == [
        [[str(v) for v in row] for row in matrix] for matrix in x.reshape(4, 3, 2).tolist()
    ]


def test_a_long_one_is_summarised_as_in_print():
    x = xtensor.arange(200 * 30).reshape(200, 30)
    (table,) = shown(x).tables
    assert table[0] == ["", "0", "1", "2", "", "27", "28", "29"]
    assert table[1] == ["0", "0", "1", "2", "…", "27", "28", "29"]
    assert [row[0] for row in table] == ["", "0", "1", "2", "⋮", "197", "198", "199"]
    assert table[-1][-1] == str(200 * 30 - 1)
    with printing.printoptions(edgeitems=1):
        assert len(shown(x).tables[0]) == 4
    with printing.printoptions(profile="full"):
        assert len(shown(x).tables[0]) == 201
    assert len(shown(xtensor.ones(500, 1, 2)).tables) == 6


def test_larger_values_are_darker():
    text = xtensor.tensor([-4.0, 0.0, 2.0])._repr_html_()
    assert "rgba(214,39,40,0.40)'>-4." in text
    assert "rgba(31,119,180,0.20)'>2." in text
    assert "rgba" not in xtensor.zeros(3)._repr_html_()
    assert "rgba" not in xtensor.tensor([1j])._repr_html_()


@pytest.mark.parametrize("place", ["cpu", "cpu:1"])
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x.t(),
        lambda x: x[1::2, ::3],
        lambda x: x[5].expand(3000, -1),
        lambda x: x.reshape(-1, 2).unfold(0, 4, 1),
        lambda x: xtensor.complex(x, x + 1).conj(),
        lambda x: xtensor.complex(x, x + 1).conj().imag,
        lambda x: xtensor.view_as_real(xtensor.complex(x, x + 1))[:, :, 1],
        lambda x: x.view(xtensor.int32)[::2],
    ],
)
def test_the_edges_of_a_view_are_its_values(place, view):
    """What is read of a long view by its strides is what a copy of it holds."""
    seen = view(xtensor.arange(6000.0, device=place).reshape(60, 100))
    copied = seen.resolve_conj().resolve_neg().clone(memory_format=xtensor.contiguous_format)
    assert repr(seen) == repr(copied)
    assert shown(seen).tables == shown(copied).tables


def test_what_does_not_fit_is_shown_all_the_same():
    endless = xtensor.arange(3.0).unsqueeze(1).expand(3, 10**12)
    assert repr(endless).count("2., 2., 2.,  ..., 2., 2., 2.") == 1
    assert shown(endless).tables[0][-1] == ["2", "2.", "2.", "2.", "…", "2.", "2.", "2."]


def test_ipython_takes_the_table():
    formatters = pytest.importorskip("IPython.core.formatters", reason="IPython is not installed")
    formatter = formatters.DisplayFormatter(active_types=["text/plain", "text/html"])
    made, _ = formatter.format(xtensor.ones(2))
    assert made == {"text/plain": "tensor([1., 1.])", "text/html": xtensor.ones(2)._repr_html_()}


# -- matplotlib


@pytest.fixture
def axes():
    matplotlib = pytest.importorskip(
        "matplotlib", reason="matplotlib is not installed: pip install '.[examples]'"
    )
    matplotlib.use("agg")
    figure = pytest.importorskip("matplotlib.figure").Figure()
    made = figure.add_subplot()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield made
        figure.canvas.draw()


VALUES = [0.0, 0.25, 1.0, 4.0]
KINDS = {
    "plain": lambda: xtensor.tensor(VALUES),
    "requires grad": lambda: xtensor.tensor(VALUES, requires_grad=True),
    "computed": lambda: xtensor.tensor(VALUES, requires_grad=True) * 1.0,
    "parameter": lambda: nn.Parameter(xtensor.tensor(VALUES)),
    "view": lambda: xtensor.tensor([VALUES, VALUES]).t()[:, 1],
    "view that requires grad": lambda: xtensor.tensor([VALUES, VALUES], requires_grad=True).t()[:, 0],
    "conjugated": lambda: xtensor.tensor(VALUES).to(xtensor.complex64).conj().real,
    "bfloat16": lambda: xtensor.tensor(VALUES, dtype=xtensor.bfloat16),
    "float16": lambda: xtensor.tensor(VALUES, dtype=xtensor.float16),
    "another device": lambda: xtensor.tensor(VALUES, device="cpu:1"),
    "numbers in a list": lambda: list(xtensor.tensor(VALUES)),
    "losses in a list": lambda: list(xtensor.tensor(VALUES, requires_grad=True) * 1.0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_tensor_plots(axes, kind):
    y = KINDS[kind]()
    (line,) = axes.plot(y)
    np.testing.assert_allclose(line.get_xydata(), [*enumerate(VALUES)])
    (line,) = axes.plot(y, y, "o--")
    np.testing.assert_allclose(line.get_xydata(), [(v, v) for v in VALUES])
    points = axes.scatter(y, y, c=y, s=y)
    np.testing.assert_allclose(points.get_offsets(), [(v, v) for v in VALUES])
    np.testing.assert_allclose(points.get_array(), VALUES)
    counts, _, _ = axes.hist(y, bins=[0, 0.5, 2, 5])
    assert counts.tolist() == [2, 1, 1]
    assert [bar.get_height() for bar in axes.bar(range(4), y)] == VALUES
    axes.fill_between(range(4), y, y)
    axes.errorbar(range(4), y, yerr=y)
    axes.axhline(y[1])
    axes.set_ylim(y[0], y[3])


@pytest.mark.parametrize("kind", KINDS)
def test_a_tensor_is_an_image(axes, kind):
    if "list" in kind:
        pytest.skip("an image is one tensor")
    for image in (KINDS[kind]().reshape(2, 2), KINDS[kind]().reshape(2, 2).t()):
        shown_image = axes.imshow(image)
        np.testing.assert_allclose(shown_image.get_array(), image.detach().cpu().float().numpy())
    axes.pcolormesh(image)
    axes.contour(image)


def test_integers_booleans_and_colours(axes):
    assert axes.plot(xtensor.arange(3), xtensor.arange(3))[0].get_ydata().tolist() == [0, 1, 2]
    axes.imshow(xtensor.eye(3) > 0)
    colours = xtensor.rand(4, 5, 3)
    assert axes.imshow(colours.permute(2, 0, 1).permute(1, 2, 0)).get_array().shape == (4, 5, 3)
    axes.imshow((colours * 255).to(xtensor.uint8))
    axes.plot(xtensor.rand(5, 3))
    assert axes.boxplot(xtensor.rand(10, 3))["medians"][2]


def test_only_plots_see_through_requires_grad(axes):
    """NumPy's own functions still refuse, so that no gradient is lost unseen."""
    y = xtensor.ones(3, requires_grad=True)
    axes.plot(y)
    for call in (np.asarray, np.sin, np.array, lambda t: np.ma.ravel(t), lambda t: np.mean([t, t])):
        with pytest.raises(RuntimeError, match="Can't call numpy\\(\\) on Tensor that requires grad"):
            call(y)
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar"):
        float(y[0])


def test_a_plot_of_a_meta_tensor_says_why_not(axes):
    with pytest.raises((NotImplementedError, RuntimeError), match="meta tensor"):
        axes.plot(xtensor.ones(3, device="meta"))

"""What TensorBoard's plugins show: points in space, charts of a layout, embeddings, moving pictures, boxes."""

from __future__ import annotations

import io
import json
import math
import pathlib
from typing import Any
from urllib.parse import quote

import numpy as np
from PIL import Image, ImageDraw
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata  # pyright: ignore[reportAttributeAccessIssue]
from tensorboard.compat.proto.tensor_pb2 import TensorProto  # pyright: ignore[reportAttributeAccessIssue]
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto  # pyright: ignore[reportAttributeAccessIssue]
from tensorboard.plugins.custom_scalar.layout_pb2 import (
    Category,  # pyright: ignore[reportAttributeAccessIssue]
    Chart,  # pyright: ignore[reportAttributeAccessIssue]
    Layout,  # pyright: ignore[reportAttributeAccessIssue]
    MarginChartContent,  # pyright: ignore[reportAttributeAccessIssue]
    MultilineChartContent,  # pyright: ignore[reportAttributeAccessIssue]
)
from tensorboard.plugins.mesh import metadata as mesh_metadata
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData  # pyright: ignore[reportAttributeAccessIssue]
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo  # pyright: ignore[reportAttributeAccessIssue]

from .summary import in_rows, values_of

__all__ = ["boxes", "custom_scalars", "embedding", "mesh", "video"]


def custom_scalars(layout: dict[str, dict[str, list[Any]]]) -> Summary:
    """Charts by category: `{"category": {"chart": ["Multiline", tags]}}`, or "Margin" with a value and its bounds."""
    categories = []
    for title, charts in layout.items():
        made = []
        for name, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError("len(tags) != 3")
                series = MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                made.append(Chart(title=name, margin=MarginChartContent(series=[series])))
            else:
                made.append(Chart(title=name, multiline=MultilineChartContent(tag=tags)))
        categories.append(Category(title=title, chart=made))
    held = TensorProto(
        dtype="DT_STRING",
        string_val=[Layout(category=categories).SerializeToString()],
        tensor_shape=TensorShapeProto(),
    )
    plugin = SummaryMetadata.PluginData(plugin_name="custom_scalars")
    value = Summary.Value(
        tag="custom_scalars__config__", tensor=held, metadata=SummaryMetadata(plugin_data=plugin)
    )
    return Summary(value=[value])


def mesh(tag: str, vertices: Any, colors: Any = None, faces: Any = None, config: Any = None) -> Summary:
    """Points in space, of shape (batch, points, 3), with the triangles between them and their colours."""
    kinds = ((vertices, MeshPluginData.VERTEX), (faces, MeshPluginData.FACE), (colors, MeshPluginData.COLOR))
    given = [(values_of(v), kind) for v, kind in kinds if v is not None]
    components = mesh_metadata.get_components_bitmask([kind for _, kind in given])
    made = []
    for values, kind in given:
        described = mesh_metadata.create_summary_metadata(
            tag, None, kind, components, values.shape, None, json_config=json.dumps(config or {})
        )
        held = TensorProto(
            dtype="DT_FLOAT",
            float_val=values.reshape(-1).tolist(),
            tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in values.shape]),
        )
        name = mesh_metadata.get_instance_name(tag, kind)
        made.append(Summary.Value(tag=name, tensor=held, metadata=described))
    return Summary(value=made)


def as_bytes(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Pixels from 0 to 255; floats run from 0 to 1."""
    scaled = values if values.dtype == np.uint8 else values * 255.0
    return scaled.clip(0, 255).astype(np.uint8)


def video(tag: str, data: Any, fps: float = 4) -> Summary:
    """A batch of moving pictures (batch, time, channels, height, width) side by side, as an animated GIF."""
    values = as_bytes(values_of(data))
    if values.ndim != 5:
        raise ValueError(f"expected a video of 5 dimensions (N, T, C, H, W), got {values.ndim}")
    frames = [in_rows(values[:, t], "NCHW") for t in range(values.shape[1])]
    pictures = [Image.fromarray(f) for f in frames]
    out = io.BytesIO()
    pictures[0].save(
        out, format="GIF", save_all=True, append_images=pictures[1:], duration=round(1000 / fps), loop=0
    )
    height, width, channels = frames[0].shape
    held = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=out.getvalue())
    return Summary(value=[Summary.Value(tag=tag, image=held)])


def boxes(
    tag: str, data: Any, corners: Any, rescale: float = 1, dataformats: str = "CHW", labels: Any = None
) -> Summary:
    """A picture with boxes, each its left, upper, right and lower edge in pixels."""
    picture = Image.fromarray(np.ascontiguousarray(in_rows(as_bytes(values_of(data)), dataformats)[..., :3]))
    size = int(picture.width * rescale), int(picture.height * rescale)
    edges = values_of(corners).reshape(-1, 4) * rescale
    picture = picture.resize(size) if rescale != 1 else picture
    pen = ImageDraw.Draw(picture)
    for i, (left, upper, right, lower) in enumerate(edges.tolist()):
        pen.rectangle((left, upper, right, lower), outline="red", width=2)
        if labels is not None:
            pen.text((left + 2, upper + 2), str(labels[i]), fill="red")
    out = io.BytesIO()
    picture.save(out, format="PNG")
    held = Summary.Image(height=size[1], width=size[0], colorspace=3, encoded_image_string=out.getvalue())
    return Summary(value=[Summary.Value(tag=tag, image=held)])


def embedding(
    folder: str, tag: str, step: int | None, matrix: Any, labels: Any, pictures: Any, header: Any
) -> EmbeddingInfo:
    """Write rows, their labels and pictures for the projector into a folder of their own, and describe them."""
    rows = values_of(matrix)
    if rows.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    step = 0 if step is None else step
    inner = f"{str(step).zfill(5)}/{quote(tag, safe='')}"
    place = pathlib.Path(folder, inner)
    place.mkdir(parents=True, exist_ok=True)
    info = EmbeddingInfo(tensor_name=f"{tag}:{str(step).zfill(5)}", tensor_path=f"{inner}/tensors.tsv")
    lines = ("\t".join(str(x) for x in row) for row in rows.tolist())
    (place / "tensors.tsv").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    if labels is not None:
        if len(labels) != len(rows):
            raise AssertionError("#labels should equal with #data points")
        if header and len(header) != len(labels[0]):
            raise AssertionError("len of header must be equal to the number of columns in metadata")
        texts = ["\t".join(map(str, row)) for row in (header, *labels)] if header else list(map(str, labels))
        (place / "metadata.tsv").write_text("".join(f"{text}\n" for text in texts), "utf-8")
        info.metadata_path = f"{inner}/metadata.tsv"
    if pictures is not None:
        small = as_bytes(values_of(pictures))
        if len(small) != len(rows):
            raise AssertionError("#images should equal with #data points")
        sprite(small).save(place / "sprite.png")
        info.sprite.image_path = f"{inner}/sprite.png"
        info.sprite.single_image_dim.extend([small.shape[3], small.shape[2]])
    return info


def sprite(pictures: np.ndarray[Any, Any]) -> Image.Image:
    """All pictures as tiles of one that has as many tiles to a side as they need."""
    count, channels, height, width = pictures.shape
    side = math.ceil(count**0.5)
    grid = np.zeros((side * side, height, width, 3), np.uint8)
    grid[:count] = np.broadcast_to(pictures.transpose(0, 2, 3, 1), (count, height, width, max(channels, 3)))[
        ..., :3
    ]
    tiles = grid.reshape(side, side, height, width, 3).transpose(0, 2, 1, 3, 4)
    return Image.fromarray(np.ascontiguousarray(tiles.reshape(side * height, side * width, 3)))

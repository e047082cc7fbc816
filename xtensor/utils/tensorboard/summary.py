"""Values as TensorBoard's protocol buffers: scalars, histograms, images, sounds, texts, hyperparameters, curves."""

from __future__ import annotations

import io
import wave
from typing import Any

import numpy as np
from google.protobuf import struct_pb2
from PIL import Image
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata  # pyright: ignore[reportAttributeAccessIssue]
from tensorboard.compat.proto.tensor_pb2 import TensorProto  # pyright: ignore[reportAttributeAccessIssue]
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto  # pyright: ignore[reportAttributeAccessIssue]
from tensorboard.plugins.hparams.api_pb2 import (
    DataType,  # pyright: ignore[reportAttributeAccessIssue]
    Experiment,  # pyright: ignore[reportAttributeAccessIssue]
    HParamInfo,  # pyright: ignore[reportAttributeAccessIssue]
    MetricInfo,  # pyright: ignore[reportAttributeAccessIssue]
    MetricName,  # pyright: ignore[reportAttributeAccessIssue]
    Status,  # pyright: ignore[reportAttributeAccessIssue]
)
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo  # pyright: ignore[reportAttributeAccessIssue]
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData  # pyright: ignore[reportAttributeAccessIssue]
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData  # pyright: ignore[reportAttributeAccessIssue]

from ...tensor import Tensor

__all__ = [
    "audio",
    "histogram",
    "histogram_raw",
    "hparams",
    "image",
    "pr_curve",
    "scalar",
    "tensor",
    "text",
    "values_of",
]

HPARAMS = ("_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info")


def values_of(data: Any) -> np.ndarray[Any, Any]:
    """Tensors, arrays, numbers and lists of them as a NumPy array."""
    if isinstance(data, Tensor):
        data = data.detach()
        return (
            (data if data.dtype.itemsize > 1 and "bfloat" not in str(data.dtype) else data.float())
            .cpu()
            .numpy()
        )
    if isinstance(data, (list, tuple)):
        return np.stack([values_of(d) for d in data])
    return np.asarray(data)


def scalar(tag: str, data: Any, new_style: bool = False, double: bool = False) -> Summary:
    """One number; in the newer style a tensor of no dimensions."""
    values = values_of(data).reshape(-1)
    if values.size != 1:
        raise AssertionError("scalar should be 0D")
    value = float(values[0])
    if not new_style:
        return Summary(value=[Summary.Value(tag=tag, simple_value=value)])
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
    held = (
        TensorProto(double_val=[value], dtype="DT_DOUBLE")
        if double
        else TensorProto(float_val=[value], dtype="DT_FLOAT")
    )
    return Summary(value=[Summary.Value(tag=tag, tensor=held, metadata=metadata)])


def tensor(tag: str, data: Any) -> Summary:
    """A tensor's values as they are."""
    values = values_of(data).astype(np.float32)
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in values.shape])
    held = TensorProto(float_val=values.reshape(-1).tolist(), tensor_shape=shape, dtype="DT_FLOAT")
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="tensor"))
    return Summary(value=[Summary.Value(tag=tag, tensor=held, metadata=metadata)])


def default_bins() -> list[float]:
    """TensorFlow's edges: powers of 1.1 on both sides of zero."""
    edges = [1e-12 * 1.1**k for k in range(774)]
    return [-edge for edge in reversed(edges)] + [0.0] + edges


def histogram(tag: str, data: Any, bins: Any = "tensorflow", max_bins: int | None = None) -> Summary:
    """The distribution of all values."""
    values = values_of(data).astype(np.float64).reshape(-1)
    if values.size == 0:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(values, bins=default_bins() if bins == "tensorflow" else bins)
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        counts = np.add.reduceat(counts, np.arange(0, len(counts), step))
        limits = np.concatenate([limits[:-1:step], limits[-1:]])
    used = np.flatnonzero(counts)
    if used.size == 0:
        raise ValueError("The histogram is empty, please file a bug report.")
    first, last = used[0], used[-1]
    # A bucket counts what lies below its limit: an empty one stands before the first.
    kept = counts[first : last + 1].tolist()
    ends = limits[first + 1 : last + 2].tolist()
    return histogram_raw(
        tag,
        values.min(),
        values.max(),
        values.size,
        values.sum(),
        values.dot(values),
        [float(limits[first]), *ends],
        [0, *kept],
    )


def histogram_raw(
    tag: str,
    low: Any,
    high: Any,
    count: Any,
    total: Any,
    squares: Any,
    limits: list[float],
    counts: list[Any],
) -> Summary:
    """A distribution whose buckets are counted already."""
    held = HistogramProto(
        min=low, max=high, num=count, sum=total, sum_squares=squares, bucket_limit=limits, bucket=counts
    )
    return Summary(value=[Summary.Value(tag=tag, histo=held)])


def image(tag: str, data: Any, dataformats: str = "CHW", rescale: float = 1) -> Summary:
    """A picture, or a batch of them side by side, as PNG; floats run from 0 to 1."""
    values = values_of(data)
    if len(dataformats) != values.ndim:
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {values.shape}, input_format: "
            f"{dataformats}"
        )
    scale = 1 if values.dtype == np.uint8 else 255
    pixels = in_rows(values.astype(np.float32), dataformats.upper()) * scale
    pixels = pixels.clip(0, 255).astype(np.uint8)
    height, width, channels = pixels.shape
    encoded = png(pixels, rescale)
    held = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=encoded)
    return Summary(value=[Summary.Value(tag=tag, image=held)])


def in_rows(values: np.ndarray[Any, Any], form: str) -> np.ndarray[Any, Any]:
    """Any layout as height, width, three or four channels; batches as a grid."""
    if len(set(form)) != len(form) or not set(form) <= set("NCHW"):
        raise AssertionError(f"You can not use the same dimension shordhand twice. input_format: {form}")
    for name in "NCHW":
        if name not in form:
            values, form = values[None], name + form
    values = values.transpose([form.index(name) for name in "NCHW"])
    if values.shape[1] == 1:
        values = np.repeat(values, 3, axis=1)
    count, channels, height, width = values.shape
    columns = min(count, 8)
    rows = -(-count // columns)
    grid = np.zeros((rows * columns, channels, height, width), values.dtype)
    grid[:count] = values
    grid = grid.reshape(rows, columns, channels, height, width).transpose(0, 3, 1, 4, 2)
    return grid.reshape(rows * height, columns * width, channels)


def png(pixels: np.ndarray[Any, Any], rescale: float) -> bytes:
    picture = Image.fromarray(pixels)
    if rescale != 1:
        picture = picture.resize((int(picture.width * rescale), int(picture.height * rescale)))
    out = io.BytesIO()
    picture.save(out, format="PNG")
    return out.getvalue()


def audio(tag: str, data: Any, sample_rate: int = 44100) -> Summary:
    """A sound, from -1 to 1, as WAV."""
    values = np.clip(values_of(data).astype(np.float32).reshape(-1), -1, 1)
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes((values * 32767).astype("<i2").tobytes())
    held = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=values.size,
        encoded_audio_string=out.getvalue(),
        content_type="audio/wav",
    )
    return Summary(value=[Summary.Value(tag=tag, audio=held)])


def text(tag: str, words: str) -> Summary:
    """A text, which TensorBoard shows as Markdown."""
    data = SummaryMetadata.PluginData(
        plugin_name="text", content=TextPluginData(version=0).SerializeToString()
    )
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    held = TensorProto(dtype="DT_STRING", string_val=[words.encode("utf-8")], tensor_shape=shape)
    value = Summary.Value(tag=f"{tag}/text_summary", metadata=SummaryMetadata(plugin_data=data), tensor=held)
    return Summary(value=[value])


def pr_curve(tag: str, rows: np.ndarray[Any, Any], thresholds: int) -> Summary:
    """A precision-recall curve from its six rows: true and false positives and negatives, precision, recall."""
    content = PrCurvePluginData(version=0, num_thresholds=thresholds).SerializeToString()
    metadata = SummaryMetadata(
        plugin_data=SummaryMetadata.PluginData(plugin_name="pr_curves", content=content)
    )
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in rows.shape])
    held = TensorProto(dtype="DT_FLOAT", float_val=rows.reshape(-1).tolist(), tensor_shape=shape)
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=held)])


def plugin(tag: str, content: HParamsPluginData) -> Summary:
    metadata = SummaryMetadata(
        plugin_data=SummaryMetadata.PluginData(plugin_name="hparams", content=content.SerializeToString())
    )
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata)])


def hparams(
    chosen: dict[str, Any], metrics: dict[str, Any], discrete: dict[str, list[Any]] | None = None
) -> tuple[Summary, Summary, Summary]:
    """Hyperparameters and the metrics that belong to them: an experiment, its start and its end."""
    start = SessionStartInfo()
    infos = []
    for name, value in chosen.items():
        if value is None:
            continue
        kind, field = kind_of(name, value)
        setattr(start.hparams[name], field, values_of(value).item() if isinstance(value, Tensor) else value)
        domain = None
        if discrete is not None and name in discrete:
            domain = struct_pb2.ListValue(
                values=[struct_pb2.Value(**{kind_of(name, v)[1]: v}) for v in discrete[name]]
            )
        infos.append(HParamInfo(name=name, type=DataType.Value(kind), domain_discrete=domain))
    names = [MetricInfo(name=MetricName(tag=name)) for name in metrics]
    experiment = Experiment(hparam_infos=infos, metric_infos=names)
    return (
        plugin(HPARAMS[0], HParamsPluginData(experiment=experiment, version=0)),
        plugin(HPARAMS[1], HParamsPluginData(session_start_info=start, version=0)),
        plugin(
            HPARAMS[2],
            HParamsPluginData(
                session_end_info=SessionEndInfo(status=Status.Value("STATUS_SUCCESS")), version=0
            ),
        ),
    )


def kind_of(name: str, value: Any) -> tuple[str, str]:
    """TensorBoard's type of a hyperparameter, and the field that holds it."""
    if isinstance(value, bool):
        return "DATA_TYPE_BOOL", "bool_value"
    if isinstance(value, (int, float, Tensor)):
        return "DATA_TYPE_FLOAT64", "number_value"
    if isinstance(value, str):
        return "DATA_TYPE_STRING", "string_value"
    raise ValueError(f"value should be one of int, float, str, bool, or torch.Tensor: {name}={value!r}")

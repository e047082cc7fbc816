"""SummaryWriter: what a program wants to see in TensorBoard, written as event files."""

from __future__ import annotations

import datetime
import io
import os
import socket
import time
from typing import Any

import numpy as np
from google.protobuf import text_format
from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # pyright: ignore[reportAttributeAccessIssue]
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig  # pyright: ignore[reportAttributeAccessIssue]
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from ... import checks
from . import plugins, summary

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Event files in one folder."""

    def __init__(
        self, log_dir: str, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""
    ) -> None:
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        return self.event_writer.get_logdir()

    def add_event(self, event: Event, step: int | None = None, walltime: float | None = None) -> None:
        """Write one event with its time and step."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(
        self, content: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        self.add_event(Event(summary=content), global_step, walltime)

    def flush(self) -> None:
        """Write what is waiting."""
        self.event_writer.flush()

    def close(self) -> None:
        self.event_writer.close()


class SummaryWriter:
    """Writes scalars, pictures, distributions and more for TensorBoard to show, in `log_dir`.

    The folder is `runs/<time>_<machine><comment>` unless one is given. Needs the tensorboard package.
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            stamp = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{stamp}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._projector = ProjectorConfig()
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None or self.all_writers is None:
            self.file_writer = FileWriter(self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers = {self.log_dir: self.file_writer}
            if self.purge_step is not None:
                at = self.purge_step
                self.file_writer.add_event(Event(step=at, file_version="brain.Event:2"))
                self.file_writer.add_event(Event(step=at, session_log=SessionLog(status=SessionLog.START)))
                self.purge_step = None
        return self.file_writer

    def get_logdir(self) -> str:
        return self.log_dir

    def _add(self, content: Any, step: int | None, walltime: float | None) -> None:
        self._get_file_writer().add_summary(content, step, walltime)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """A point of a curve."""
        self._add(summary.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Points of several curves in one chart: each curve has an event file of its own."""
        self._get_file_writer()
        writers = self.all_writers
        assert writers is not None
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in writers:
                writers[folder] = FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)
            writers[folder].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """All values of a tensor."""
        self._add(summary.tensor(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """The distribution of values."""
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: Any,
        max: Any,
        num: Any,
        sum: Any,
        sum_squares: Any,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """A distribution whose buckets are counted already."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        held = summary.histogram_raw(
            tag, min, max, num, sum, sum_squares, list(bucket_limits), list(bucket_counts)
        )
        self._add(held, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture."""
        self._add(summary.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """A batch of pictures, side by side."""
        self._add(summary.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """A Matplotlib figure, or several."""
        from matplotlib import pyplot

        figures = figure if isinstance(figure, list) else [figure]
        pictures = []
        for drawn in figures:
            out = io.BytesIO()
            drawn.savefig(out, format="rgba", dpi=drawn.dpi)
            width, height = (int(n) for n in drawn.canvas.get_width_height())
            pictures.append(np.frombuffer(out.getvalue(), np.uint8).reshape(height, width, 4)[..., :3])
            if close:
                pyplot.close(drawn)
        if len(pictures) == 1:
            self.add_image(tag, pictures[0], global_step, walltime, "HWC")
        else:
            self.add_images(tag, np.stack(pictures), global_step, walltime, "NHWC")

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """A sound."""
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """A text, shown as Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """How precision and recall go together, from labels (0 or 1) and predicted probabilities."""
        truth, guess = summary.values_of(labels).reshape(-1), summary.values_of(predictions).reshape(-1)
        weight = 1.0 if weights is None else summary.values_of(weights).reshape(-1)
        bucket = np.floor(guess * (num_thresholds - 1)).astype(np.int64)
        sizes: Any = dict(bins=num_thresholds, range=(0, num_thresholds - 1))
        right, _ = np.histogram(bucket, weights=truth * weight, **sizes)
        wrong, _ = np.histogram(bucket, weights=(1 - truth) * weight, **sizes)
        positive, false = np.cumsum(right[::-1])[::-1], np.cumsum(wrong[::-1])[::-1]
        self.add_pr_curve_raw(
            tag,
            positive,
            false,
            false[0] - false,
            positive[0] - positive,
            positive / np.maximum(1e-7, positive + false),
            positive / np.maximum(1e-7, positive[0]),
            global_step,
            num_thresholds,
            None,
            walltime,
        )

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """A precision-recall curve whose points are known."""
        rows = [true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts]
        stacked = np.stack([summary.values_of(r).astype(np.float32) for r in (*rows, precision, recall)])
        self._add(summary.pr_curve(tag, stacked, min(num_thresholds, 127)), global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Hyperparameters of a run and the metrics it reached, in a folder of its own."""
        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as run:
            for part in summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete):
                run._get_file_writer().add_summary(part)
            for name, value in metric_dict.items():
                run.add_scalar(name, value, global_step)

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: int | None = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """A batch of moving pictures (batch, time, channels, height, width), as an animated GIF."""
        self._add(plugins.video(tag, vid_tensor, fps), global_step, walltime)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """A picture with boxes, each its left, upper, right and lower edge in pixels."""
        named = [labels] if isinstance(labels, str) else labels
        self._add(
            plugins.boxes(tag, img_tensor, box_tensor, rescale, dataformats, named), global_step, walltime
        )

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Any = None,
    ) -> None:
        """Points (the rows of a matrix) with labels and pictures, for the projector."""
        folder = self._get_file_writer().get_logdir()
        info = plugins.embedding(folder, tag, global_step, mat, metadata, label_img, metadata_header)
        self._projector.embeddings.append(info)
        with open(os.path.join(folder, "projector_config.pbtxt"), "w", encoding="utf-8") as out:
            out.write(text_format.MessageToString(self._projector))

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: dict[str, Any] | None = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Points in space with the triangles between them, each of shape (batch, number, 3)."""
        self._add(plugins.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_custom_scalars(self, layout: dict[str, dict[str, list[Any]]]) -> None:
        """Which curves make which charts, in which categories."""
        self._add(plugins.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """One chart of several curves."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """One chart of a curve between two bounds."""
        if len(tags) != 3:
            raise AssertionError("len(tags) != 3")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Not written: PyTorch's graph is TorchScript's. `xtensor.autograd.draw` shows the autograd graph."""
        checks.warn("add_graph writes nothing in xtensor: there is no TorchScript graph", UserWarning)

    def flush(self) -> None:
        """Write what is waiting."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write what is waiting and close the files; using the writer again opens new ones."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

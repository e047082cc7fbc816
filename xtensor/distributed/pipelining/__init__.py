"""`torch.distributed.pipelining`: a model in stages, a process each or several, through which a batch goes in parts."""

from .schedules import Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B, ScheduleLoopedBFS
from .splitting import Pipe, SplitPoint, pipeline
from .stage import PipelineStage

__all__ = [
    "Pipe",
    "PipelineStage",
    "Schedule1F1B",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleLoopedBFS",
    "SplitPoint",
    "pipeline",
]

"""`torch.distributed.pipelining`: a model in stages, a process each, through which a batch goes in parts."""

from .schedules import Schedule1F1B, ScheduleGPipe
from .stage import PipelineStage

__all__ = ["PipelineStage", "Schedule1F1B", "ScheduleGPipe"]

"""`torch.autograd.anomaly_mode`: errors of backward with the forward's traceback."""

from ..engine import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]

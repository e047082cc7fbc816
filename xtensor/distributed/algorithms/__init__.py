"""`torch.distributed.algorithms`."""

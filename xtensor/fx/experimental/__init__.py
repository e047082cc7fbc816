"""`torch.fx.experimental`: graphs of operators, and passes over models."""

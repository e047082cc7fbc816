"""`torch.fx.passes.infra`: passes as objects, and their order."""

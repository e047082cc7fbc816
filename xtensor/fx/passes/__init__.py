"""`torch.fx.passes`: what is done with graphs: shapes, parts, pictures."""

"""Programs traced by PyTorch's fx and by xtensor's: the same graphs, the same code, the same results."""
